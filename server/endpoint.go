package server

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// clientTypes are the kinds of clients that may call an endpoint; a token carries them.
type clientTypes []string

// The kinds of clients.
const (
	clientAPI      = "api"
	clientAgent    = "agent"
	clientCompiler = "compiler"
)

// style is how an endpoint's value becomes a body.
type style int

const (
	// wrapped puts the value under "data", with links and metadata beside it.
	wrapped style = iota
	// bare writes the value as it is, with warnings merged in as "metadata".
	bare
	// queued is wrapped with the key "queue", for the one endpoint that has it.
	queued
)

// none is the value of an endpoint that answers with an empty body.
type none struct{}

// endpoint is one row of the routing table.
type endpoint struct {
	method string
	// path has its variables in angle brackets: /api/v2/project/<id>.
	path string
	// name is the operation's name, unique within an API version.
	name string
	// permission is the label that access rules refer to; it is empty for public endpoints alone.
	permission string
	clients    clientTypes
	style      style
	// scoped endpoints are about the environment in the header; environmentArg names the argument that has it instead.
	scoped         bool
	environmentArg string
	public         bool
	// changes marks a GET that changes something, and is therefore guarded against other sites like a write.
	changes bool
	// unbounded endpoints run for as long as the client listens.
	unbounded bool
	doc       string

	args   []argument
	result reflect.Type
	// check decodes the arguments and does nothing with them.
	check func(args map[string]argValue) error
	// serve decodes the arguments, does the work and returns the value.
	serve func(ctx context.Context, c *call, args map[string]argValue) (any, error)
	// raw replaces serve where the answer is not one JSON value.
	raw func(w http.ResponseWriter, r *http.Request, c *call, args map[string]argValue) error
}

// option changes a row of the table.
type option func(*endpoint)

// scoped makes an endpoint about the environment named in the header.
func scoped(e *endpoint) { e.scoped = true }

// asBare makes an endpoint answer without an envelope.
func asBare(e *endpoint) { e.style = bare }

// asQueue makes an endpoint answer under "queue".
func asQueue(e *endpoint) { e.style = queued }

// public makes an endpoint open to everybody.
func public(e *endpoint) { e.public = true }

// changes marks a GET that changes something.
func changes(e *endpoint) { e.changes = true }

// about says which argument holds the environment that the endpoint is about.
func about(arg string) option { return func(e *endpoint) { e.environmentArg = arg } }

// doc describes the endpoint in the OpenAPI document.
func doc(text string) option { return func(e *endpoint) { e.doc = text } }

// on makes a row of the table from a typed handler. A is a struct whose fields are the arguments; see [argumentsOf].
func on[A, R any](method, path, name, permission string, clients clientTypes, fn func(context.Context, *call, A) (R, error), options ...option) endpoint {
	argType := reflect.TypeFor[A]()
	e := endpoint{
		method: method, path: path, name: name, permission: permission, clients: clients,
		args: argumentsOf(argType, path), result: reflect.TypeFor[R](),
	}
	for _, o := range options {
		o(&e)
	}
	e.check = checkOf[A](e.args)
	arguments := e.args
	e.serve = func(ctx context.Context, c *call, values map[string]argValue) (any, error) {
		var a A
		if err := bind(reflect.ValueOf(&a).Elem(), arguments, values); err != nil {
			return nil, err
		}
		return fn(ctx, c, a)
	}
	return e
}

// onRaw makes a row of the table whose handler writes its own answer.
func onRaw[A any](method, path, name, permission string, clients clientTypes, fn func(http.ResponseWriter, *http.Request, *call, A) error, options ...option) endpoint {
	e := endpoint{
		method: method, path: path, name: name, permission: permission, clients: clients,
		args: argumentsOf(reflect.TypeFor[A](), path), result: reflect.TypeFor[none](),
	}
	for _, o := range options {
		o(&e)
	}
	e.check = checkOf[A](e.args)
	arguments := e.args
	e.raw = func(w http.ResponseWriter, r *http.Request, c *call, values map[string]argValue) error {
		var a A
		if err := bind(reflect.ValueOf(&a).Elem(), arguments, values); err != nil {
			return err
		}
		return fn(w, r, c, a)
	}
	return e
}

// checkOf decodes arguments and forgets them.
func checkOf[A any](arguments []argument) func(map[string]argValue) error {
	return func(values map[string]argValue) error {
		var a A
		return bind(reflect.ValueOf(&a).Elem(), arguments, values)
	}
}

// variables are the names in angle brackets of a path.
func variables(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "<"); ok {
			names = append(names, strings.TrimSuffix(name, ">"))
		}
	}
	return names
}

// call is what a handler knows of a request besides its arguments, and where it leaves what goes beside the value.
type call struct {
	endpoint *endpoint
	// environment is filled for scoped endpoints.
	environment model.Environment
	identity    Identity
	trace       model.TraceID
	now         time.Time
	// path is the request's path and key its idempotency key.
	path string
	key  string

	warnings []string
	links    *api.Links
	metadata *api.Metadata
	header   http.Header
	status   int
}

// warn adds a warning to the answer.
func (c *call) warn(text string) { c.warnings = append(c.warnings, text) }

// env is the id of the environment of a scoped endpoint.
func (c *call) env() model.EnvironmentID { return c.environment.ID }
