package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type resourceListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"resource_type, agent, resource_id_value, status (!status excludes)"`
	Sort    string              `arg:"sort" default:"resource_type.desc"`
	Summary bool                `arg:"deploy_summary,optional" doc:"Count all resources by status in metadata.deploy_summary."`
}

type resourceArgs struct {
	Resource string `arg:"rid"`
}

type resourceHistoryArgs struct {
	Resource string  `arg:"rid"`
	Limit    *int    `arg:"limit"`
	FirstID  *string `arg:"first_id"`
	LastID   *string `arg:"last_id"`
	Start    *string `arg:"start"`
	End      *string `arg:"end"`
	Sort     string  `arg:"sort" default:"date.desc"`
}

type resourceLogsArgs struct {
	Resource string              `arg:"rid"`
	Limit    *int                `arg:"limit"`
	Start    *string             `arg:"start"`
	End      *string             `arg:"end"`
	Filter   map[string][]string `arg:"filter,optional" doc:"minimal_log_level, timestamp (lt:, le:, gt:, ge:), message, action"`
	Sort     string              `arg:"sort" default:"timestamp.desc"`
}

type resourceGetV1Args struct {
	ID       string  `arg:"id" doc:"The id of the resource in one version: …,v=1."`
	Logs     *bool   `arg:"logs"`
	Action   *string `arg:"log_action" enum:"store,push,pull,deploy,dryrun,getfact,other"`
	LogLimit int     `arg:"log_limit,optional"`
}

var resourceListing = listing[model.ResourceRow]{
	sort: map[string]sortColumn[model.ResourceRow]{
		"resource_type":     {textColumn, func(r model.ResourceRow) string { return r.State.Resource.Parts().Type }},
		"agent":             {textColumn, func(r model.ResourceRow) string { return string(r.State.Resource.Parts().Agent) }},
		"resource_id_value": {textColumn, func(r model.ResourceRow) string { return r.State.Resource.Parts().Value }},
		"resource_id":       {textColumn, func(r model.ResourceRow) string { return string(r.State.Resource) }},
		"status":            {textColumn, func(r model.ResourceRow) string { return string(r.State.Status()) }},
	},
	id:      func(r model.ResourceRow) string { return string(r.State.Resource) },
	filters: []string{"resource_type", "agent", "resource_id_value", "status"},
}

func (s *Server) resources(ctx context.Context, c *call, a resourceListArgs) ([]model.ResourceRow, error) {
	args := pageArgs{limit: a.Limit, first: unversioned(a.FirstID), last: unversioned(a.LastID), start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	if a.Summary {
		args.keep = map[string][]string{"deploy_summary": {"true"}}
	}
	page, err := resourceListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.ResourceFilter{Types: a.Filter["resource_type"], Agents: a.Filter["agent"], Values: a.Filter["resource_id_value"]}
	if f.Statuses, f.ExcludeStatuses, err = filterStatuses(a.Filter["status"]); err != nil {
		return nil, err
	}
	list, err := s.store.Resources(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	resourceListing.describe(c, args, page, list)
	if a.Summary {
		counts, err := s.store.DeploySummary(ctx, c.env())
		if err != nil {
			return nil, err
		}
		c.metadata.DeploySummary = summaryOf(counts)
	}
	return list.Items, nil
}

func (s *Server) resourceList(ctx context.Context, c *call, a resourceListArgs) ([]api.Resource, error) {
	rows, err := s.resources(ctx, c, a)
	return convertAll(rows, func(r model.ResourceRow) api.Resource {
		return api.Resource{VersionedResource: versionedOf(r.State.Resource, r.Version, r.Requires), Status: string(r.State.Status())}
	}), err
}

func (s *Server) resourceDetails(ctx context.Context, c *call, a resourceArgs) (api.ReleasedResourceDetails, error) {
	v, err := s.resourceView(ctx, c, a)
	return v.ReleasedResourceDetails, err
}

func (s *Server) resourceView(ctx context.Context, c *call, a resourceArgs) (api.ResourceView, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return api.ResourceView{}, err
	}
	r, err := s.store.Resource(ctx, c.env(), id)
	if err != nil {
		return api.ResourceView{}, err
	}
	attributes, err := withRequires(r.Attributes, r.Requires)
	if err != nil {
		return api.ResourceView{}, err
	}
	return api.ResourceView{
		ReleasedResourceDetails: api.ReleasedResourceDetails{
			ResourceDetails: resourceDetailsOf(id, attributes), LastDeploy: api.OptionalTime(r.State.LastRunAt),
			FirstGeneratedTime: api.OptionalTime(r.FirstGenerated), Status: string(r.State.Status()), RequiresStatus: statusesOf(r.RequiresStatus),
		},
		Version: r.Version, ProvidesStatus: statusesOf(r.ProvidesStatus), Compliance: string(r.State.Compliance),
		LastHandlerRun: string(r.State.LastRun), Blocked: string(r.State.Blocked), LastSuccess: api.OptionalTime(r.State.LastSuccess),
		DeployedVersion: r.State.DeployedVersion, AttributeHash: r.State.IntentHash, FailuresInARow: r.State.Failures,
		OrphanedAfter: r.State.OrphanedAfter,
	}, nil
}

func statusesOf(in map[model.ResourceID]model.Status) map[string]string {
	out := make(map[string]string, len(in))
	for id, status := range in {
		out[string(id)] = string(status)
	}
	return out
}

var historyListing = listing[model.HistoryEntry]{
	sort: map[string]sortColumn[model.HistoryEntry]{
		"date": {timeColumn, func(h model.HistoryEntry) string { return textTime(h.Date) }},
	},
	id: func(h model.HistoryEntry) string { return h.AttributeHash },
}

func (s *Server) resourceHistory(ctx context.Context, c *call, a resourceHistoryArgs) ([]api.ResourceHistory, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return nil, err
	}
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, sort: a.Sort}
	page, err := historyListing.page(args)
	if err != nil {
		return nil, err
	}
	list, err := s.store.ResourceHistory(ctx, c.env(), id, page)
	if err != nil {
		return nil, err
	}
	historyListing.describe(c, args, page, list)
	out := make([]api.ResourceHistory, len(list.Items))
	for i, h := range list.Items {
		attributes, err := withRequires(h.Attributes, h.Requires)
		if err != nil {
			return nil, err
		}
		out[i] = api.ResourceHistory{
			ResourceID: string(h.Resource), Date: api.OptionalTime(h.Date), Attributes: attributes, AttributeHash: h.AttributeHash,
			Requires: textsOf(h.Requires), Version: h.Version,
		}
	}
	return out, nil
}

var logListing = listing[model.LogRow]{
	sort: map[string]sortColumn[model.LogRow]{
		"timestamp": {timeColumn, func(l model.LogRow) string { return textTime(l.Time) }},
	},
	filters: []string{"minimal_log_level", "timestamp", "message", "action"},
}

// logLevels are the levels of log lines, from the gravest, with the numbers that clients may use for them.
var logLevels = []struct {
	level  model.LogLevel
	number string
}{
	{model.LevelCritical, "50"}, {model.LevelError, "40"}, {model.LevelWarning, "30"}, {model.LevelInfo, "20"}, {model.LevelDebug, "10"}, {model.LevelTrace, "3"},
}

func logLevel(text string) (model.LogLevel, error) {
	for _, l := range logLevels {
		if strings.EqualFold(text, string(l.level)) || text == l.number {
			return l.level, nil
		}
	}
	return "", invalidArgument("filter", "value_error", "%q is not a log level: use CRITICAL, ERROR, WARNING, INFO, DEBUG or TRACE", text)
}

func (s *Server) resourceLogs(ctx context.Context, c *call, a resourceLogsArgs) ([]api.ResourceLog, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return nil, err
	}
	args := pageArgs{limit: a.Limit, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := logListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.LogFilter{Messages: a.Filter["message"], Actions: named[model.ActionKind](a.Filter["action"])}
	var errs [2]error
	f.Time, errs[0] = filterTimes("timestamp", a.Filter["timestamp"])
	switch levels := a.Filter["minimal_log_level"]; len(levels) {
	case 0:
	case 1:
		f.MinLevel, errs[1] = logLevel(levels[0])
	default:
		errs[1] = invalidArgument("filter", "value_error", "filter minimal_log_level takes one value")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	list, err := s.store.ResourceLogs(ctx, c.env(), id, f, page)
	if err != nil {
		return nil, err
	}
	logListing.describe(c, args, page, list)
	return convertAll(list.Items, func(l model.LogRow) api.ResourceLog {
		return api.ResourceLog{LogLine: lineOf(l.LogLine), ActionID: l.Action.String(), Action: string(l.Kind), Version: l.Version, Trace: string(l.Trace)}
	}), nil
}

func lineOf(l model.LogLine) api.LogLine {
	kwargs := l.Kwargs
	if len(kwargs) == 0 {
		kwargs = json.RawMessage("{}")
	}
	return api.LogLine{Level: string(l.Level), Msg: l.Message, Args: []string{}, Kwargs: kwargs, Timestamp: api.OptionalTime(l.Time)}
}

// resourceGetV1 is a resource in one version, with the actions on it.
func (s *Server) resourceGetV1(ctx context.Context, c *call, a resourceGetV1Args) (api.ResourceReportV1, error) {
	id, version, err := resourceID(a.ID)
	if err != nil {
		return api.ResourceReportV1{}, err
	}
	if version == 0 {
		return api.ResourceReportV1{}, invalidArgument("id", "value_error", "the id %q must have a version: …,v=1", a.ID)
	}
	i, err := s.store.VersionResource(ctx, c.env(), version, id)
	if err != nil {
		return api.ResourceReportV1{}, err
	}
	out := api.ResourceReportV1{Resource: resourceV1Of(c.env(), version, i), Logs: []api.ResourceAction{}}
	switch r, err := s.store.Resource(ctx, c.env(), id); {
	case err == nil:
		out.Resource.Status, out.Resource.LastDeploy = string(r.State.Status()), api.OptionalTime(r.State.LastRunAt)
	case errors.Is(err, model.ErrNotFound):
		out.Resource.Status = string(model.StatusAvailable)
	default:
		return out, err
	}
	if a.Logs == nil && a.Action == nil && a.LogLimit == 0 || a.Logs != nil && !*a.Logs {
		return out, nil
	}
	f := model.ActionFilter{Resource: id, Version: version, Limit: a.LogLimit}
	if a.Action != nil {
		f.Kind = model.ActionKind(*a.Action)
	}
	actions, err := s.store.Actions(ctx, c.env(), f)
	out.Logs = convertAll(actions, actionOf)
	return out, err
}

func summaryOf(d model.DeploySummary) *api.DeploySummary {
	out := &api.DeploySummary{Total: d.Total, ByState: map[string]int{}}
	for _, s := range allStatuses {
		if s != model.StatusOrphaned {
			out.ByState[string(s)] = d.ByStatus[s]
		}
	}
	return out
}

func actionOf(a model.Action) api.ResourceAction {
	out := api.ResourceAction{
		Environment: a.Environment.String(), Version: a.Version, ResourceVersionIDs: []string{}, ActionID: a.ID.String(), Action: string(a.Kind),
		Started: api.OptionalTime(a.StartedAt), Finished: api.OptionalTime(a.FinishedAt), Messages: convertAll(a.Log, lineOf),
		Changes: map[string]map[string]api.AttributeChange{}, Reason: a.Reason, Trace: string(a.Trace), Code: a.Code,
	}
	if a.Resource != "" {
		rvid := a.Resource.WithVersion(a.Version)
		out.ResourceVersionIDs = append(out.ResourceVersionIDs, rvid)
		if len(a.Changes) > 0 {
			out.Changes[rvid] = changesOf(a.Changes)
		}
	}
	if a.FinishedAt.IsZero() {
		return out
	}
	if a.Outcome != "" {
		out.Status = optionalText(string(statusOfOutcome(a.Outcome)))
	}
	if a.Change != "" {
		out.Change = optionalText(string(a.Change))
		out.SendEvent = a.Change != model.ChangeNone
	}
	return out
}

// statusOfOutcome names an outcome as the statuses of resources do.
func statusOfOutcome(o model.Outcome) model.Status {
	switch o {
	case model.OutcomeSkippedForDependency:
		return model.StatusSkipped
	case model.OutcomeCancelled:
		return "cancelled"
	default:
		return model.Status(o)
	}
}

func changesOf(d model.Diff) map[string]api.AttributeChange {
	out := make(map[string]api.AttributeChange, len(d))
	for name, change := range d {
		out[name] = api.AttributeChange{Current: orNull(change.Current), Desired: orNull(change.Desired)}
	}
	return out
}

type actionListArgs struct {
	Type           string        `arg:"resource_type,optional"`
	Agent          string        `arg:"agent,optional"`
	Attribute      *string       `arg:"attribute" doc:"Only with attribute_value."`
	AttributeValue *string       `arg:"attribute_value" doc:"How the attribute's value begins."`
	Level          *string       `arg:"log_severity" doc:"Only actions with a message of exactly this level."`
	Limit          int           `arg:"limit,optional"`
	ID             *model.TaskID `arg:"action_id" doc:"Breaks ties of the time given."`
	First          *string       `arg:"first_timestamp" doc:"Only actions started later."`
	Last           *string       `arg:"last_timestamp" doc:"Only actions started before."`
	ExcludeChanges []string      `arg:"exclude_changes,optional"`
}

// actionList pages by the time of the start: it has a scheme of its own.
func (s *Server) actionList(ctx context.Context, c *call, a actionListArgs) ([]api.ResourceAction, error) {
	f, err := a.filter()
	if err != nil {
		return nil, err
	}
	actions, err := s.store.Actions(ctx, c.env(), f)
	if err != nil {
		return nil, err
	}
	if a.Limit > 0 && len(actions) > 0 {
		link := func(time, id string, at model.Action) string {
			q := a.query()
			q.Set(time, textTime(at.StartedAt))
			q.Set(id, at.ID.String())
			return c.path + "?" + q.Encode()
		}
		c.links = &api.Links{Prev: link("first_timestamp", "action_id", actions[0])}
		if len(actions) == a.Limit {
			c.links.Next = link("last_timestamp", "action_id", actions[len(actions)-1])
		}
	}
	return convertAll(actions, actionOf), nil
}

func (a actionListArgs) filter() (model.ActionFilter, error) {
	f := model.ActionFilter{Type: a.Type, Agent: model.AgentName(a.Agent), Limit: a.Limit, ExcludeChanges: named[model.Change](a.ExcludeChanges)}
	switch {
	case a.Limit < 0 || a.Limit > maxPage:
		return f, invalidArgument("limit", "value_error", "limit parameter can not exceed %d, got %d", maxPage, a.Limit)
	case (a.Attribute == nil) != (a.AttributeValue == nil):
		return f, invalidArgument("attribute", "value_error", "attribute and attribute_value should both be supplied for attribute filtering")
	case a.First != nil && a.Last != nil:
		return f, invalidArgument("first_timestamp", "value_error", "only one of first_timestamp and last_timestamp may be given")
	case a.ID != nil && a.First == nil && a.Last == nil:
		return f, invalidArgument("action_id", "value_error", "action_id needs first_timestamp or last_timestamp")
	}
	if a.Attribute != nil {
		f.Attribute, f.AttributeValue = *a.Attribute, *a.AttributeValue
	}
	for _, change := range f.ExcludeChanges {
		if !slices.Contains([]model.Change{model.ChangeNone, model.ChangeCreated, model.ChangePurged, model.ChangeUpdated}, change) {
			return f, invalidArgument("exclude_changes", "value_error", "%q is not nochange, created, purged or updated", change)
		}
	}
	var err error
	if a.Level != nil {
		if f.Level, err = logLevel(*a.Level); err != nil {
			return f, err
		}
	}
	for _, x := range []struct {
		text *string
		name string
	}{{a.First, "first_timestamp"}, {a.Last, "last_timestamp"}} {
		if x.text == nil {
			continue
		}
		t, err := api.ParseTime(*x.text)
		if err != nil {
			return f, invalidArgument(x.name, "type_error", "%v", err)
		}
		if x.name == "first_timestamp" {
			f.After = t
		} else {
			f.Before = t
		}
	}
	if a.ID != nil {
		f.ID = *a.ID
	}
	return f, nil
}

// query repeats the filters in links.
func (a actionListArgs) query() url.Values {
	q := url.Values{"limit": {strconv.Itoa(a.Limit)}}
	for name, text := range map[string]string{"resource_type": a.Type, "agent": a.Agent} {
		if text != "" {
			q.Set(name, text)
		}
	}
	for name, text := range map[string]*string{"attribute": a.Attribute, "attribute_value": a.AttributeValue, "log_severity": a.Level} {
		if text != nil {
			q.Set(name, *text)
		}
	}
	if len(a.ExcludeChanges) > 0 {
		q["exclude_changes"] = a.ExcludeChanges
	}
	return q
}

// resourceActions lists what was done with one resource, newest first.
func (s *Server) resourceActions(ctx context.Context, c *call, a resourceActionsArgs) ([]api.ResourceAction, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return nil, err
	}
	f := model.ActionFilter{Resource: id, Limit: a.Limit}
	if f.Limit <= 0 || f.Limit > maxPage {
		return nil, invalidArgument("limit", "value_error", "limit must be between 1 and %d", maxPage)
	}
	if a.Before != nil {
		if f.Before, err = api.ParseTime(*a.Before); err != nil {
			return nil, invalidArgument("before", "type_error", "%v", err)
		}
	}
	if a.ID != nil {
		f.ID = *a.ID
	}
	actions, err := s.store.Actions(ctx, c.env(), f)
	return convertAll(actions, actionOf), err
}

type resourceActionsArgs struct {
	Resource string        `arg:"rid"`
	Limit    int           `arg:"limit" default:"50"`
	Before   *string       `arg:"before" doc:"Only actions started before this time."`
	ID       *model.TaskID `arg:"action_id" doc:"Breaks ties of the time given."`
}

type traceArgs struct {
	Trace string `arg:"trace" doc:"32 hexadecimal digits."`
}

// traceSteps lists everything that a change has left: delivery, compile, version, actions.
func (s *Server) traceSteps(ctx context.Context, c *call, a traceArgs) ([]api.TraceStep, error) {
	id := strings.ToLower(strings.ReplaceAll(a.Trace, "-", ""))
	if _, err := uuid.Parse(id); err != nil || len(id) != 32 {
		return nil, invalidArgument("trace", "value_error", "%q is not a trace id of 32 hexadecimal digits", a.Trace)
	}
	steps, err := s.store.Trace(ctx, model.TraceID(id))
	out := make([]api.TraceStep, 0, len(steps))
	for _, st := range steps {
		if only := c.identity.Environment; only != nil && st.Environment != *only {
			continue
		}
		x := api.TraceStep{
			Kind: st.Kind, ID: st.ID, Resource: string(st.Resource), Text: st.Text, Status: st.Status, At: api.OptionalTime(st.At), EndedAt: api.OptionalTime(st.EndedAt),
		}
		if st.Environment.UUID != uuid.Nil {
			x.Environment = st.Environment.String()
		}
		out = append(out, x)
	}
	return out, err
}

// explain says why a resource is not what it should be.
func (s *Server) explain(ctx context.Context, c *call, a resourceArgs) (api.Explanation, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return api.Explanation{}, err
	}
	x, err := s.explanation(ctx, c, id)
	if err != nil {
		return api.Explanation{}, err
	}
	return api.Explanation{
		Resource: string(id), Summary: x.Summary,
		Reasons: convertAll(x.Reasons, func(r model.ExplainReason) api.ExplainReason {
			return api.ExplainReason{Code: r.Code, Text: r.Text, Resource: string(r.Resource), Agent: string(r.Agent), Until: api.OptionalTime(r.Until)}
		}),
	}, nil
}

func (s *Server) explanation(ctx context.Context, c *call, id model.ResourceID) (model.Explanation, error) {
	if s.config.Explainer != nil {
		x, err := s.config.Explainer.Explain(ctx, c.env(), id)
		// A resource that the scheduler does not manage, an orphan, is still known to the store.
		if err == nil || !errors.Is(err, model.ErrUnavailable) && !errors.Is(err, model.ErrNotFound) {
			return x, err
		}
	}
	r, err := s.store.Resource(ctx, c.env(), id)
	if err != nil {
		return model.Explanation{}, err
	}
	agent := id.Parts().Agent
	agents, err := s.store.Agents(ctx, c.env(), model.AgentFilter{Names: []string{string(agent)}}, model.Page{Sort: "name"})
	if err != nil {
		return model.Explanation{}, err
	}
	i := slices.IndexFunc(agents.Items, func(x model.AgentStatus) bool { return x.Name == agent })
	var status *model.AgentStatus
	if i >= 0 {
		status = &agents.Items[i]
	}
	return explainFromState(c.environment, r, status), nil
}
