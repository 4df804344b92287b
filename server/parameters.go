package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type parameterListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"name, source, updated (lt:, le:, gt:, ge:)"`
	Sort    string              `arg:"sort" default:"name.asc"`
}

type factListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"name, resource_id, expires"`
	Sort    string              `arg:"sort" default:"name.asc"`
}

type parameterSetArgs struct {
	Name      string                     `arg:"name"`
	Source    string                     `arg:"source" enum:"fact,plugin,user,report"`
	Value     json.RawMessage            `arg:"value"`
	Metadata  map[string]json.RawMessage `arg:"metadata,optional"`
	Recompile bool                       `arg:"recompile,optional" doc:"Compile if the value changes."`
}

type factSetArgs struct {
	Name      string                     `arg:"name"`
	Source    string                     `arg:"source" enum:"fact,plugin,user,report"`
	Value     json.RawMessage            `arg:"value"`
	Resource  string                     `arg:"resource_id"`
	Metadata  map[string]json.RawMessage `arg:"metadata,optional"`
	Recompile bool                       `arg:"recompile,optional" doc:"Compile if the value changes."`
	Expires   *bool                      `arg:"expires"`
}

type parameterGetV1Args struct {
	ID       string `arg:"id"`
	Resource string `arg:"resource_id,optional"`
}

type parameterSetV1Args struct {
	ID        string                     `arg:"id"`
	Source    string                     `arg:"source" enum:"fact,plugin,user,report"`
	Value     json.RawMessage            `arg:"value"`
	Resource  string                     `arg:"resource_id,optional"`
	Metadata  map[string]json.RawMessage `arg:"metadata,optional"`
	Recompile bool                       `arg:"recompile,optional"`
	Expires   *bool                      `arg:"expires"`
}

type parameterListV1Args struct {
	Query map[string]json.RawMessage `arg:"query,optional" doc:"Metadata that must all be contained."`
}

type parametersSetV1Args struct {
	Parameters []api.ParameterWrite `arg:"parameters"`
}

type resourceFactArgs struct {
	Resource string            `arg:"rid"`
	ID       model.ParameterID `arg:"id"`
}

type parameterV1 struct {
	Parameter api.Fact `json:"parameter"`
}

var parameterListing = listing[model.Parameter]{
	sort: map[string]sortColumn[model.Parameter]{
		"name":    {textColumn, func(p model.Parameter) string { return p.Name }},
		"source":  {textColumn, func(p model.Parameter) string { return string(p.Source) }},
		"updated": {timeColumn, func(p model.Parameter) string { return textTime(p.Updated) }},
	},
	id:      func(p model.Parameter) string { return p.ID.String() },
	idKind:  uuidColumn,
	filters: []string{"name", "source", "updated"},
}

var factListing = listing[model.Parameter]{
	sort: map[string]sortColumn[model.Parameter]{
		"name":        {textColumn, func(p model.Parameter) string { return p.Name }},
		"resource_id": {textColumn, func(p model.Parameter) string { return string(p.Resource) }},
	},
	id:      func(p model.Parameter) string { return p.ID.String() },
	idKind:  uuidColumn,
	filters: []string{"name", "resource_id", "expires"},
}

func (s *Server) parameterList(ctx context.Context, c *call, a parameterListArgs) ([]api.Parameter, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := parameterListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.ParameterFilter{Names: a.Filter["name"], Sources: a.Filter["source"]}
	if f.Updated, err = filterTimes("updated", a.Filter["updated"]); err != nil {
		return nil, err
	}
	list, err := s.store.Parameters(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	parameterListing.describe(c, args, page, list)
	return convertAll(list.Items, parameterOf), nil
}

func (s *Server) factList(ctx context.Context, c *call, a factListArgs) ([]api.Fact, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := factListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.ParameterFilter{Names: a.Filter["name"], Resources: a.Filter["resource_id"]}
	if f.Expires, err = filterBool("expires", a.Filter["expires"]); err != nil {
		return nil, err
	}
	list, err := s.store.Facts(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	factListing.describe(c, args, page, list)
	return convertAll(list.Items, factOf), nil
}

func (s *Server) resourceFacts(ctx context.Context, c *call, a resourceArgs) ([]api.Fact, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return nil, err
	}
	list, err := s.store.ResourceFacts(ctx, c.env(), id)
	return convertAll(list, factOf), err
}

func (s *Server) resourceFact(ctx context.Context, c *call, a resourceFactArgs) (api.Fact, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return api.Fact{}, err
	}
	list, err := s.store.ResourceFacts(ctx, c.env(), id)
	if err != nil {
		return api.Fact{}, err
	}
	for _, p := range list {
		if p.ID == a.ID {
			return factOf(p), nil
		}
	}
	return api.Fact{}, fmt.Errorf("fact %s of %s: %w", a.ID, id, model.ErrNotFound)
}

// parameterText is a value as it is stored: texts as they are, everything else as JSON.
func parameterText(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return text, nil
	}
	switch string(raw) {
	case "true":
		return "True", nil
	case "false":
		return "False", nil
	case "null":
		return "", invalidArgument("value", "type_error", "Field 'value' has an incorrect value: a text is expected")
	}
	canonical, err := model.Canonical(raw)
	return string(canonical), err
}

// newParameter checks one write. A fact expires unless it says otherwise; a parameter never does.
func newParameter(c *call, name, source string, value json.RawMessage, resource string, expires *bool, metadata map[string]json.RawMessage) (model.Parameter, error) {
	if name == "" {
		return model.Parameter{}, invalidArgument("id", "value_error", "the name of a parameter must not be empty")
	}
	text, err := parameterText(value)
	if err != nil {
		return model.Parameter{}, err
	}
	p := model.Parameter{
		ID: model.ParameterID{UUID: uuid.New()}, Environment: c.env(), Name: name, Value: text, Source: model.ParameterSource(source), Updated: c.now,
		Metadata: metadata,
	}
	if resource == "" {
		if expires != nil && *expires {
			return p, invalidArgument("expires", "value_error", "Cannot set expire for parameter")
		}
		return p, nil
	}
	if p.Resource, _, err = resourceID(resource); err != nil {
		return p, err
	}
	p.Expires = expires == nil || *expires
	return p, nil
}

// recompileJob is the job that a change of parameters may need.
func (s *Server) recompileJob(c *call, kind, text string) model.CompileJob {
	quoted := func(v string) json.RawMessage { return json.RawMessage(strconv.Quote(v)) }
	return model.CompileJob{
		ID: model.JobID{UUID: c.id()}, Environment: c.env(), Reason: text, Actor: c.identity.Name, Trace: c.trace, Export: true, RequestedAt: c.now,
		Metadata: map[string]json.RawMessage{"type": quoted(kind), "message": quoted(text)},
	}
}

func (s *Server) setParameters(ctx context.Context, c *call, params []model.Parameter, recompile bool) ([]model.Parameter, error) {
	kind, text := "param", "A parameter was changed through the API"
	for _, p := range params {
		if p.Resource != "" {
			kind, text = "fact", "A fact was reported"
		}
	}
	if recompile && !model.ParseSettings(c.environment.Settings).ServerCompile {
		c.warn(compileDisabled)
		recompile = false
	}
	stored, _, err := s.store.SetParameters(ctx, c.env(), params, recompile, s.recompileJob(c, kind, text))
	return stored, err
}

func (s *Server) setOne(ctx context.Context, c *call, p model.Parameter, recompile bool) (model.Parameter, error) {
	stored, err := s.setParameters(ctx, c, []model.Parameter{p}, recompile)
	if err != nil {
		return p, err
	}
	return stored[0], nil
}

func (s *Server) parameterSet(ctx context.Context, c *call, a parameterSetArgs) (api.Parameter, error) {
	p, err := newParameter(c, a.Name, a.Source, a.Value, "", nil, a.Metadata)
	if err != nil {
		return api.Parameter{}, err
	}
	p, err = s.setOne(ctx, c, p, a.Recompile)
	return parameterOf(p), err
}

func (s *Server) factSet(ctx context.Context, c *call, a factSetArgs) (api.Fact, error) {
	p, err := newParameter(c, a.Name, a.Source, a.Value, a.Resource, a.Expires, a.Metadata)
	if err != nil {
		return api.Fact{}, err
	}
	p, err = s.setOne(ctx, c, p, a.Recompile)
	return factOf(p), err
}

func (s *Server) parameterGetV1(ctx context.Context, c *call, a parameterGetV1Args) (parameterV1, error) {
	var resource model.ResourceID
	if a.Resource != "" {
		var err error
		if resource, _, err = resourceID(a.Resource); err != nil {
			return parameterV1{}, err
		}
	}
	p, err := s.store.Parameter(ctx, c.env(), a.ID, resource)
	stale := err == nil && p.Expires && c.now.Sub(p.Updated) > s.config.FactExpire
	switch {
	case stale, err != nil && resource != "" && errors.Is(err, model.ErrNotFound):
		return parameterV1{}, s.requestFacts(ctx, c, resource, a.ID)
	case err != nil:
		return parameterV1{}, err
	}
	return parameterV1{factOf(p)}, nil
}

// requestFacts asks the handler of a resource for its facts, once in a while however often a fact is asked for, and returns
// the error that tells the client to come again.
func (s *Server) requestFacts(ctx context.Context, c *call, resource model.ResourceID, fact string) error {
	version, err := s.store.FactVersion(ctx, c.env(), resource)
	if err != nil {
		return err
	}
	// The same command for everybody who asks within the time: the store takes each id once.
	window := c.now.Unix() / max(1, int64(s.config.FactResourceBlock.Seconds()))
	err = s.store.EnqueueCommand(ctx, model.Command{
		ID:          model.CommandID{UUID: uuid.NewSHA1(c.env().UUID, fmt.Appendf(nil, "facts of %s %d", resource, window))},
		Environment: c.env(), Kind: model.CommandFacts, Resources: []model.ResourceID{resource}, Version: version, Reason: "the fact " + fact + " was asked for",
		Actor: c.identity.Name, Trace: c.trace, CreatedAt: c.now,
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("resource facts requested: the agent is asked for the facts of %s, ask again in a moment for %s: %w", resource, fact, model.ErrUnavailable)
}

func (s *Server) parameterSetV1(ctx context.Context, c *call, a parameterSetV1Args) (parameterV1, error) {
	p, err := newParameter(c, a.ID, a.Source, a.Value, a.Resource, a.Expires, a.Metadata)
	if err != nil {
		return parameterV1{}, err
	}
	p, err = s.setOne(ctx, c, p, a.Recompile)
	return parameterV1{factOf(p)}, err
}

func (s *Server) parameterDeleteV1(ctx context.Context, c *call, a parameterGetV1Args) (none, error) {
	var resource model.ResourceID
	if a.Resource != "" {
		var err error
		if resource, _, err = resourceID(a.Resource); err != nil {
			return none{}, err
		}
	}
	return none{}, s.store.DeleteParameter(ctx, c.env(), a.ID, resource, s.recompileJob(c, "param", "Parameter "+a.ID+" was deleted"))
}

func (s *Server) parameterListV1(ctx context.Context, c *call, a parameterListV1Args) (api.ParameterListV1, error) {
	f := model.ParameterFilter{Metadata: a.Query}
	out := api.ParameterListV1{Parameters: []api.Fact{}, Expire: int(s.config.FactExpire.Seconds()), Now: api.OptionalTime(c.now)}
	page := model.Page{Sort: "name"}
	parameters, err := s.store.Parameters(ctx, c.env(), f, page)
	if err != nil {
		return out, err
	}
	facts, err := s.store.Facts(ctx, c.env(), f, page)
	if err != nil {
		return out, err
	}
	// Both are by name: merge them.
	p, q := parameters.Items, facts.Items
	for len(p) > 0 || len(q) > 0 {
		if len(q) == 0 || len(p) > 0 && p[0].Name <= q[0].Name {
			out.Parameters, p = append(out.Parameters, factOf(p[0])), p[1:]
		} else {
			out.Parameters, q = append(out.Parameters, factOf(q[0])), q[1:]
		}
	}
	return out, nil
}

func (s *Server) parametersSetV1(ctx context.Context, c *call, a parametersSetV1Args) (none, error) {
	params := make([]model.Parameter, len(a.Parameters))
	for i, w := range a.Parameters {
		resource := ""
		if w.ResourceID != nil {
			resource = *w.ResourceID
		}
		switch model.ParameterSource(w.Source) {
		case model.SourceFact, model.SourcePlugin, model.SourceUser, model.SourceReport:
		default:
			return none{}, invalidArgument("parameters", "enum", "the source %q of parameter %s is not fact, plugin, user or report", w.Source, w.ID)
		}
		var err error
		if params[i], err = newParameter(c, w.ID, w.Source, w.Value, resource, w.Expires, w.Metadata); err != nil {
			return none{}, err
		}
	}
	if len(params) == 0 {
		return none{}, nil
	}
	_, err := s.setParameters(ctx, c, params, false)
	return none{}, err
}

func parameterOf(p model.Parameter) api.Parameter {
	metadata := p.Metadata
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	return api.Parameter{
		ID: p.ID.String(), Name: p.Name, Value: p.Value, Environment: p.Environment.String(), Source: string(p.Source),
		Updated: api.OptionalTime(p.Updated), Metadata: metadata,
	}
}

func factOf(p model.Parameter) api.Fact {
	return api.Fact{Parameter: parameterOf(p), ResourceID: string(p.Resource), Expires: p.Expires}
}
