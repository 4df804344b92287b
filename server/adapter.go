package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// slowestUpload is the rate in bytes per second that a client must reach with a large body.
const slowestUpload = 64 << 10

// other is a route that is not part of the API's table.
type other struct {
	method, path string
	handler      http.Handler
}

func notFound(r *http.Request) *api.Error {
	return &api.Error{
		Status: http.StatusNotFound, Code: api.CodeNotFound, TraceID: string(recordOf(r).trace),
		Message: prefix(http.StatusNotFound) + "there is nothing at " + r.URL.Path,
	}
}

func methodNotAllowed(r *http.Request) *api.Error {
	return &api.Error{
		Status: http.StatusMethodNotAllowed, Code: api.CodeMethodNotAllowed, TraceID: string(recordOf(r).trace),
		Message: "Method not allowed: " + r.URL.Path + " does not take " + r.Method,
	}
}

// answer serves one request to an endpoint: who asks, what with, about what, may they, do it, say so.
func (s *Server) answer(e *endpoint, w http.ResponseWriter, r *http.Request, path map[string]string) {
	rec := recordOf(r)
	rec.endpoint = e.name
	c := &call{
		endpoint: e, trace: rec.trace, now: s.config.Now().UTC(), path: r.URL.EscapedPath(), header: w.Header(),
		key: r.Header.Get("Idempotency-Key"), status: http.StatusOK,
	}
	if err := s.attend(c, w, r, path); err != nil {
		s.fail(w, r, err)
	}
}

func (s *Server) attend(c *call, w http.ResponseWriter, r *http.Request, path map[string]string) error {
	e := c.endpoint
	ctx := r.Context()
	if !e.unbounded {
		// A large body may take its time, but not for ever.
		allowed := s.config.RequestTimeout + time.Duration(max(r.ContentLength, 0)/slowestUpload)*time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, allowed)
		defer cancel()
		until := time.Now().Add(allowed)
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(until)                        // a recorder in a test has none
		_ = control.SetWriteDeadline(until.Add(time.Second * 10)) // enough to say that it took too long
	}
	if e.changes {
		guarded := r.Clone(ctx)
		guarded.Method = http.MethodPost
		if err := s.guard.Check(guarded); err != nil {
			return fmt.Errorf("%w: %w", err, model.ErrForbidden)
		}
	}
	if s.config.Authenticator != nil && !e.public {
		who, err := s.config.Authenticator.Authenticate(r)
		if err != nil {
			return err
		}
		c.identity = who
		recordOf(r).actor = who.Name
	}
	values, err := s.arguments(e, w, r, path)
	if err != nil {
		return err
	}
	about, err := s.subject(c, r, values)
	if err != nil {
		return err
	}
	if s.config.Authenticator != nil && !e.public {
		access := Access{
			Endpoint: e.name, Permission: e.permission, ClientTypes: e.clients, Environment: about,
			ReadOnly: (r.Method == http.MethodGet || r.Method == http.MethodHead) && !e.changes,
		}
		if err := s.config.Authenticator.Authorize(ctx, c.identity, access); err != nil {
			return err
		}
	}
	if e.scoped {
		c.environment, err = s.store.Environment(ctx, *about)
		if err != nil {
			return unknownEnvironment(*about, err)
		}
		w.Header().Set(api.EnvironmentHeader, about.String())
	}
	if e.raw != nil {
		return e.raw(w, r.WithContext(ctx), c, values)
	}
	value, err := e.serve(ctx, c, values)
	if err != nil {
		return err
	}
	body, err := encode(c, value)
	if err != nil {
		return fmt.Errorf("encoding the answer of %s: %w", e.name, err)
	}
	if len(body) == 0 {
		w.WriteHeader(c.status)
		return nil
	}
	write(w, r, c.status, jsonType, body)
	return nil
}

// arguments reads and merges all that a request has.
func (s *Server) arguments(e *endpoint, w http.ResponseWriter, r *http.Request, path map[string]string) (map[string]argValue, error) {
	if r.URL.RawPath != "" {
		for name, value := range path {
			decoded, err := url.PathUnescape(value)
			if err != nil {
				return nil, invalidArgument(name, "value_error", "the path has a broken escape in %q", value)
			}
			path[name] = decoded
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalidArgument("query", "value_error", "the query string is broken: %v", err)
	}
	var body []byte
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		r.Body = http.MaxBytesReader(w, r.Body, s.config.MaxBody+1)
		if body, err = readBody(r, s.config.MaxBody); err != nil {
			return nil, err
		}
	}
	return collect(e, body, path, query)
}

// subject finds the environment that a request is about, nil when there is none.
func (s *Server) subject(c *call, r *http.Request, values map[string]argValue) (*model.EnvironmentID, error) {
	name := c.endpoint.environmentArg
	var text string
	switch {
	case c.endpoint.scoped:
		name = "tid"
		text = r.Header.Get(api.EnvironmentHeader)
		if v, ok := values["tid"]; ok {
			given, err := v.text()
			if err != nil {
				return nil, invalidArgument("tid", "type_error", "Field 'tid' has an incorrect value: %v", err)
			}
			if text != "" && text != given {
				return nil, invalidArgument("tid", "value_error", "the header %s and the argument tid differ", api.EnvironmentHeader)
			}
			text = given
			delete(values, "tid")
		}
		if text == "" {
			return nil, invalidArgument("tid", "missing", "Field 'tid' is required.")
		}
	case name != "":
		v, ok := values[name]
		if !ok || v.isNull() {
			return nil, nil
		}
		var err error
		if text, err = v.text(); err != nil {
			return nil, invalidArgument(name, "type_error", "Field '%s' has an incorrect value: %v", name, err)
		}
	default:
		return nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return nil, invalidArgument(name, "type_error", "Field '%s' has an incorrect value: %q is not a uuid", name, text)
	}
	return &model.EnvironmentID{UUID: id}, nil
}

// fail answers with an error and logs it if a person must look.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	rec := recordOf(r)
	body, internal := describe(err)
	body.TraceID = string(rec.trace)
	if internal {
		s.log.Error("request failed", "endpoint", rec.endpoint, "trace", rec.trace, "error", err)
	}
	if rec.written {
		return
	}
	writeError(w, r, body)
}

// id makes the identifier of something that a request creates: random, or always the same for one idempotency key.
func (c *call) id() uuid.UUID {
	if c.key == "" {
		return uuid.New()
	}
	sum := sha256.Sum256([]byte(c.endpoint.name + "\x00" + c.environment.ID.String() + "\x00" + c.identity.Name + "\x00" + c.key))
	return uuid.NewSHA1(uuid.NameSpaceOID, sum[:])
}
