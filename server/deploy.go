package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type deployArgs struct {
	Trigger string    `arg:"agent_trigger_method" default:"push_full_deploy" enum:"push_incremental_deploy,push_full_deploy" doc:"The full method repairs, the incremental one deploys what does not match."`
	Agents  *[]string `arg:"agents" doc:"Only these agents; all when absent."`
}

type deployFilteredArgs struct {
	Filter  *resourceFilter `arg:"filter"`
	Trigger string          `arg:"agent_trigger_method" default:"push_full_deploy" enum:"push_incremental_deploy,push_full_deploy"`
}

type deployRequestArgs struct {
	Agents    []string `arg:"agents,optional" doc:"Only these agents; all when absent."`
	Resources []string `arg:"resources,optional" doc:"Only these resources; all when absent."`
	Repair    bool     `arg:"repair,optional" doc:"Check also what is believed to be fine."`
	Message   string   `arg:"message,optional" doc:"Why, for people."`
}

type agentsV1 struct {
	Agents []string `json:"agents"`
}

// textFilter and enumFilter are the filters of resource lists in queries.
type textFilter struct {
	Eq          []string `json:"eq"`
	Neq         []string `json:"neq"`
	Contains    []string `json:"contains"`
	NotContains []string `json:"notContains"`
}

type enumFilter struct {
	Eq  []string `json:"eq"`
	Neq []string `json:"neq"`
}

// resourceFilter selects resources; what is absent does not narrow.
type resourceFilter struct {
	IsOrphan        *bool           `json:"isOrphan,omitempty"`
	ResourceType    *textFilter     `json:"resourceType,omitempty"`
	ResourceIDValue *textFilter     `json:"resourceIdValue,omitempty"`
	Agent           *textFilter     `json:"agent,omitempty"`
	Purged          *bool           `json:"purged,omitempty"`
	Blocked         *enumFilter     `json:"blocked,omitempty"`
	Compliance      *enumFilter     `json:"compliance,omitempty"`
	LastHandlerRun  *enumFilter     `json:"lastHandlerRun,omitempty"`
	IsDeploying     *bool           `json:"isDeploying,omitempty"`
	ModelVersion    json.RawMessage `json:"modelVersion,omitempty"`
}

func (f *textFilter) passes(text string) bool {
	if f == nil {
		return true
	}
	contains := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case len(f.Eq) > 0 && !slices.Contains(f.Eq, text), slices.Contains(f.Neq, text):
		return false
	case len(f.Contains) > 0 && !slices.ContainsFunc(f.Contains, contains), slices.ContainsFunc(f.NotContains, contains):
		return false
	}
	return true
}

func (f *enumFilter) passes(text string) bool {
	same := func(s string) bool { return strings.EqualFold(s, text) }
	return f == nil || (len(f.Eq) == 0 || slices.ContainsFunc(f.Eq, same)) && !slices.ContainsFunc(f.Neq, same)
}

func (f *resourceFilter) passes(r model.ResourceRow, purged map[model.ResourceID]bool) bool {
	p := r.State.Resource.Parts()
	return f.ResourceType.passes(p.Type) && f.ResourceIDValue.passes(p.Value) && f.Agent.passes(string(p.Agent)) &&
		f.Blocked.passes(string(r.State.Blocked)) && f.Compliance.passes(string(r.State.Compliance)) &&
		f.LastHandlerRun.passes(string(r.State.LastRun)) && (f.IsDeploying == nil || *f.IsDeploying == r.State.Deploying) &&
		(f.Purged == nil || *f.Purged == purged[r.State.Resource])
}

// deployable returns the version that a request can be about, and its agents.
func (s *Server) deployable(ctx context.Context, c *call) (int, []model.AgentName, error) {
	if c.environment.Halted {
		return 0, nil, fmt.Errorf("environment %s is halted, nothing is deployed until it is resumed: %w", c.environment.Name, model.ErrNotFound)
	}
	version, err := s.store.ReleasedVersion(ctx, c.env())
	if err != nil {
		return 0, nil, err
	}
	if version == 0 {
		return 0, nil, fmt.Errorf("environment %s has no released version to deploy: %w", c.environment.Name, model.ErrNotFound)
	}
	agents, err := s.store.AgentsOfVersion(ctx, c.env(), version)
	return version, agents, err
}

func (c *call) command(kind model.CommandKind, reason string) model.Command {
	if reason == "" {
		reason = "a user requested a " + string(kind)
	}
	return model.Command{
		ID: model.CommandID{UUID: c.id()}, Environment: c.env(), Kind: kind, Reason: reason, Actor: c.identity.Name, Trace: c.trace, CreatedAt: c.now,
	}
}

func kindOfTrigger(trigger string) model.CommandKind {
	if trigger == "push_incremental_deploy" {
		return model.CommandDeploy
	}
	return model.CommandRepair
}

// known splits names into those of the version and warnings about the others.
func known(c *call, names []string, agents []model.AgentName) []model.AgentName {
	var out []model.AgentName
	for _, name := range names {
		if slices.Contains(agents, model.AgentName(name)) {
			out = append(out, model.AgentName(name))
		} else {
			c.warn("agent " + name + " has no resources in the released version and is passed over")
		}
	}
	return out
}

func (s *Server) deployV1(ctx context.Context, c *call, a deployArgs) (agentsV1, error) {
	_, agents, err := s.deployable(ctx, c)
	if err != nil {
		return agentsV1{}, err
	}
	command := c.command(kindOfTrigger(a.Trigger), "")
	if a.Agents != nil {
		if command.Agents = known(c, *a.Agents, agents); len(command.Agents) == 0 {
			return agentsV1{}, fmt.Errorf("none of the agents %s has resources in the released version: %w", strings.Join(*a.Agents, ", "), model.ErrNotFound)
		}
		agents = command.Agents
	}
	return agentsV1{textsOf(agents)}, s.store.EnqueueCommand(ctx, command)
}

// deployRequest asks for a deploy or a repair of everything, of agents or of resources.
func (s *Server) deployRequest(ctx context.Context, c *call, a deployRequestArgs) (api.DeployRequest, error) {
	version, agents, err := s.deployable(ctx, c)
	if err != nil {
		return api.DeployRequest{}, err
	}
	kind := model.CommandDeploy
	if a.Repair {
		kind = model.CommandRepair
	}
	command := c.command(kind, a.Message)
	command.Version = version
	if len(a.Agents) > 0 {
		if command.Agents = known(c, a.Agents, agents); len(command.Agents) == 0 {
			return api.DeployRequest{}, fmt.Errorf("none of the agents %s has resources in version %d: %w", strings.Join(a.Agents, ", "), version, model.ErrNotFound)
		}
		agents = command.Agents
	}
	for _, text := range a.Resources {
		id, _, err := resourceID(text)
		if err != nil {
			return api.DeployRequest{}, err
		}
		if _, err := s.store.VersionResource(ctx, c.env(), version, id); err != nil {
			return api.DeployRequest{}, err
		}
		command.Resources = append(command.Resources, id)
	}
	return api.DeployRequest{
		ID: command.ID.String(), Kind: string(kind), Version: version, Agents: textsOf(agents), Resources: textsOf(command.Resources),
	}, s.store.EnqueueCommand(ctx, command)
}

func (s *Server) deployFiltered(ctx context.Context, c *call, a deployFilteredArgs) ([]string, error) {
	f := a.Filter
	if f == nil {
		f = &resourceFilter{}
	}
	switch {
	case len(f.ModelVersion) > 0 && string(f.ModelVersion) != "null":
		return nil, invalidArgument("filter", "value_error", "a deploy can not be narrowed by modelVersion")
	case f.IsOrphan != nil && *f.IsOrphan:
		return nil, invalidArgument("filter", "value_error", "orphaned resources can not be deployed")
	}
	version, _, err := s.deployable(ctx, c)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Resources(ctx, c.env(), model.ResourceFilter{ExcludeStatuses: []model.Status{model.StatusOrphaned}}, model.Page{Sort: "resource_id"})
	if err != nil {
		return nil, err
	}
	purged := map[model.ResourceID]bool{}
	if f.Purged != nil {
		intents, err := s.store.VersionResources(ctx, c.env(), version, model.ResourceFilter{}, model.Page{Sort: "resource_type"})
		if err != nil {
			return nil, err
		}
		for _, i := range intents.Items {
			var attributes struct{ Purged bool }
			if json.Unmarshal(i.Attributes, &attributes) == nil {
				purged[i.Resource] = attributes.Purged
			}
		}
	}
	command := c.command(kindOfTrigger(a.Trigger), "")
	for _, r := range rows.Items {
		if f.passes(r, purged) {
			command.Resources = append(command.Resources, r.State.Resource)
		}
	}
	if len(command.Resources) == 0 { // an empty list would mean everything
		return []string{}, nil
	}
	return textsOf(command.Resources), s.store.EnqueueCommand(ctx, command)
}

type dryRunListV1Args struct {
	Version *int `arg:"version"`
}

type dryRunIDArgs struct {
	ID model.DryRunID `arg:"id"`
}

type dryRunReportArgs struct {
	Version int            `arg:"version"`
	ID      model.DryRunID `arg:"report_id"`
}

type dryRunV1 struct {
	DryRun api.DryRunV1 `json:"dryrun"`
}

type dryRunsV1 struct {
	DryRuns []api.DryRunV1 `json:"dryruns"`
}

func (s *Server) startDryRun(ctx context.Context, c *call, version int) (model.DryRun, error) {
	command := c.command(model.CommandDryRun, fmt.Sprintf("a user requested a dry run of version %d", version))
	command.Version = version
	command.DryRun = model.DryRunID{UUID: command.ID.UUID}
	d, err := s.store.CreateDryRun(ctx, command)
	if errors.Is(err, model.ErrConflict) && c.environment.Halted {
		return d, fmt.Errorf("environment %s is halted: %w", c.environment.Name, model.ErrConflict)
	}
	return d, err
}

func (s *Server) dryRunTrigger(ctx context.Context, c *call, a versionArgs) (string, error) {
	d, err := s.startDryRun(ctx, c, a.Version)
	return d.ID.String(), err
}

func (s *Server) dryRunList(ctx context.Context, c *call, a versionArgs) ([]api.DryRun, error) {
	if _, err := s.store.Version(ctx, c.env(), a.Version); err != nil {
		return nil, err
	}
	list, err := s.store.DryRuns(ctx, c.env(), a.Version)
	return convertAll(list, dryRunOf), err
}

func (s *Server) dryRunReport(ctx context.Context, c *call, a dryRunReportArgs) (api.DryRunReport, error) {
	d, results, err := s.store.DryRunReport(ctx, c.env(), a.ID)
	if err == nil && d.Version != a.Version {
		err = fmt.Errorf("dry run %s is not of version %d: %w", a.ID, a.Version, model.ErrNotFound)
	}
	return api.DryRunReport{Summary: dryRunOf(d), Diff: convertAll(results, dryRunDiffOf)}, err
}

func (s *Server) dryRunTriggerV1(ctx context.Context, c *call, a versionIDArgs) (dryRunV1, error) {
	d, err := s.startDryRun(ctx, c, a.ID)
	return dryRunV1{dryRunV1Of(d)}, err
}

func (s *Server) dryRunListV1(ctx context.Context, c *call, a dryRunListV1Args) (dryRunsV1, error) {
	version := 0
	if a.Version != nil {
		version = *a.Version
	}
	list, err := s.store.DryRuns(ctx, c.env(), version)
	return dryRunsV1{convertAll(list, dryRunV1Of)}, err
}

func (s *Server) dryRunReportV1(ctx context.Context, c *call, a dryRunIDArgs) (dryRunV1, error) {
	d, results, err := s.store.DryRunReport(ctx, c.env(), a.ID)
	out := dryRunV1Of(d)
	out.Resources = make(map[string]api.DryRunResourceV1, len(results))
	for _, r := range results {
		x := api.DryRunResourceV1{ID: r.Resource.WithVersion(d.Version), Message: r.Message, Changes: changesOf(r.Changes)}
		if r.Status != model.DiffModified && r.Status != model.DiffUnmodified {
			x.DiffStatus = string(r.Status)
		}
		out.Resources[x.ID] = x
	}
	return dryRunV1{out}, err
}

func dryRunOf(d model.DryRun) api.DryRun {
	return api.DryRun{
		ID: d.ID.String(), Environment: d.Environment.String(), Model: d.Version, Date: api.OptionalTime(d.Date), Total: d.Total, Todo: d.Todo,
	}
}

func dryRunV1Of(d model.DryRun) api.DryRunV1 {
	return api.DryRunV1{
		ID: d.ID.String(), Environment: d.Environment.String(), Model: d.Version, Version: d.Version, Date: api.OptionalTime(d.Date),
		Total: d.Total, Todo: d.Todo,
	}
}

// dryRunDiffOf shows what a dry run found: the recorded changes alone, from reality to the intent. A change of purged says
// whether the resource would come or go.
func dryRunDiffOf(r model.DryRunResult) api.ResourceDiff {
	out := api.ResourceDiff{ResourceID: string(r.Resource), Status: string(r.Status), Attributes: map[string]api.AttributeDiff{}}
	for _, name := range slices.Sorted(maps.Keys(r.Changes)) {
		if name != "requires" {
			out.Attributes[name] = attributeDiffOf(r.Changes[name].Current, r.Changes[name].Desired)
		}
	}
	switch purged := r.Changes["purged"]; {
	case r.Status != model.DiffModified && r.Status != model.DiffUnmodified && r.Status != "":
	case string(purged.Current) == "true" && string(purged.Desired) == "false":
		out.Status = string(model.DiffAdded)
	case string(purged.Current) == "false" && string(purged.Desired) == "true":
		out.Status = string(model.DiffDeleted)
	case len(out.Attributes) > 0:
		out.Status = string(model.DiffModified)
	default:
		out.Status = string(model.DiffUnmodified)
	}
	if r.Message != "" {
		text, err := marshal(r.Message)
		if err == nil && len(r.Changes) == 0 {
			out.Attributes["message"] = attributeDiffOf(nil, text)
		}
	}
	return out
}
