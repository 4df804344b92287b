package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type agentListArgs struct {
	Limit   *int                `arg:"limit"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Filter  map[string][]string `arg:"filter,optional" doc:"name, process_name, status"`
	Sort    string              `arg:"sort" default:"name.asc"`
}

type agentListV1Args struct {
	Start *string `arg:"start"`
	End   *string `arg:"end"`
	Limit *int    `arg:"limit"`
}

type agentActionArgs struct {
	Name   string `arg:"name"`
	Action string `arg:"action" enum:"pause,unpause,keep_paused_on_resume,unpause_on_resume"`
}

type allAgentsActionArgs struct {
	Action string `arg:"action" enum:"pause,unpause,keep_paused_on_resume,unpause_on_resume,remove_all_agent_venvs"`
}

type agentProcessListArgs struct {
	Environment *model.EnvironmentID `arg:"environment"`
	Expired     bool                 `arg:"expired" default:"true"`
	Start       *string              `arg:"start"`
	End         *string              `arg:"end"`
	Limit       *int                 `arg:"limit"`
}

type agentProcessArgs struct {
	ID     uuid.UUID `arg:"id"`
	Report bool      `arg:"report,optional"`
}

type processesV1 struct {
	Processes []api.AgentProcess `json:"processes"`
}

// schedulerAgent is the name that the reference reserves for the scheduler.
const schedulerAgent = "$__scheduler"

// statusOfAgent is up, down or paused.
func statusOfAgent(a model.AgentStatus) string {
	switch {
	case a.Paused:
		return "paused"
	case a.Up:
		return "up"
	}
	return "down"
}

var agentListing = listing[model.AgentStatus]{
	sort: map[string]sortColumn[model.AgentStatus]{
		"name":         {textColumn, func(a model.AgentStatus) string { return string(a.Name) }},
		"process_name": {textColumn, func(a model.AgentStatus) string { return a.Process }},
		"status":       {textColumn, statusOfAgent},
		"paused":       {boolColumn, func(a model.AgentStatus) string { return strconv.FormatBool(a.Paused) }},
	},
	id:      func(a model.AgentStatus) string { return string(a.Name) },
	filters: []string{"name", "process_name", "status"},
}

func (s *Server) agentList(ctx context.Context, c *call, a agentListArgs) ([]api.Agent, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := agentListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.AgentFilter{Names: a.Filter["name"], Processes: a.Filter["process_name"]}
	for _, status := range a.Filter["status"] {
		status = strings.ToLower(status)
		if !slices.Contains([]string{"up", "down", "paused"}, status) {
			return nil, invalidArgument("filter", "value_error", "filter status: %q is not up, down or paused", status)
		}
		f.Statuses = append(f.Statuses, status)
	}
	list, err := s.store.Agents(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	agentListing.describe(c, args, page, list)
	return convertAll(list.Items, agentOf), nil
}

func (s *Server) agentListV1(ctx context.Context, c *call, a agentListV1Args) (api.AgentListV1, error) {
	args := pageArgs{limit: a.Limit, start: a.Start, end: a.End, sort: "name.asc"}
	page, err := agentListing.page(args)
	if err != nil {
		return api.AgentListV1{}, err
	}
	list, err := s.store.Agents(ctx, c.env(), model.AgentFilter{}, page)
	return api.AgentListV1{
		Agents: convertAll(list.Items, func(x model.AgentStatus) api.AgentV1 {
			out := api.AgentV1{Environment: x.Environment.String(), Name: string(x.Name), Paused: x.Paused, State: statusOfAgent(x)}
			if x.Up {
				out.Primary, out.LastFailover = x.SessionID, api.NewTime(x.Since).String()
			}
			return out
		}),
		Servertime: api.OptionalTime(c.now),
	}, err
}

func (s *Server) agentAction(ctx context.Context, c *call, a agentActionArgs) (none, error) {
	if a.Name == schedulerAgent {
		return none{}, invalidArgument("name", "value_error", "%s stands for the scheduler: halt the environment instead", schedulerAgent)
	}
	return none{}, s.actOnAgents(ctx, c, []model.AgentName{model.AgentName(a.Name)}, a.Action)
}

func (s *Server) allAgentsAction(ctx context.Context, c *call, a allAgentsActionArgs) (none, error) {
	if a.Action == "remove_all_agent_venvs" {
		return none{}, fmt.Errorf("the Python environments of agents are addressed by their content and never need to be removed: %w", model.ErrConflict)
	}
	return none{}, s.actOnAgents(ctx, c, nil, a.Action)
}

func (s *Server) actOnAgents(ctx context.Context, c *call, names []model.AgentName, action string) error {
	switch action {
	case "pause", "unpause":
		return s.store.SetAgentsPaused(ctx, c.env(), names, action == "pause", c.identity.Name, c.now)
	default:
		return s.store.SetUnpauseOnResume(ctx, c.env(), names, action == "unpause_on_resume")
	}
}

func (s *Server) agentProcessesV1(ctx context.Context, c *call, a agentProcessListArgs) (processesV1, error) {
	var env model.EnvironmentID
	switch {
	case a.Environment != nil:
		env = *a.Environment
	case c.identity.Environment != nil:
		env = *c.identity.Environment
	}
	limit := maxPage
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 0 || limit > maxPage {
		return processesV1{}, invalidArgument("limit", "value_error", "limit parameter can not exceed %d, got %d", maxPage, limit)
	}
	list, err := s.store.AgentSessions(ctx, env, a.Expired, limit)
	out := convertAll(list, processOf)
	out = slices.DeleteFunc(out, func(p api.AgentProcess) bool {
		return a.Start != nil && p.SID <= *a.Start || a.End != nil && p.SID >= *a.End
	})
	return processesV1{out}, err
}

func (s *Server) agentProcesses(ctx context.Context, c *call, _ struct{}) ([]api.AgentProcess, error) {
	list, err := s.store.AgentSessions(ctx, c.env(), false, maxPage)
	return convertAll(list, processOf), err
}

func (s *Server) agentProcess(ctx context.Context, c *call, a agentProcessArgs) (api.AgentProcess, error) {
	p, err := s.store.AgentSession(ctx, a.ID.String())
	if err == nil && p.Environment != c.env() {
		err = fmt.Errorf("agent process %s: %w", a.ID, model.ErrNotFound)
	}
	return processOf(p), err
}

func agentOf(a model.AgentStatus) api.Agent {
	out := api.Agent{
		Environment: a.Environment.String(), Name: string(a.Name), Paused: a.Paused, UnpauseOnResume: a.UnpauseOnResume,
		Status: statusOfAgent(a), Hostname: a.Hostname, Since: api.OptionalTime(a.Since),
	}
	if a.Up {
		out.ProcessID, out.ProcessName = optionalText(a.SessionID), optionalText(a.Process)
	}
	return out
}

func processOf(p model.AgentSession) api.AgentProcess {
	return api.AgentProcess{
		SID: p.ID, Hostname: p.Hostname, Environment: p.Environment.String(), FirstSeen: api.OptionalTime(p.ConnectedAt),
		Expired: api.OptionalTime(p.LostAt), Process: p.Process, Agents: textsOf(p.Agents), Version: p.Version, Autostarted: p.Autostarted,
	}
}

type tokenIssueArgs struct {
	Description string `arg:"description,optional" doc:"What the token is for."`
	OneTime     bool   `arg:"one_time" default:"true" doc:"The token enrols one process, once."`
}

type tokenIDArgs struct {
	ID model.TokenID `arg:"id"`
}

func (s *Server) tokenIssue(ctx context.Context, c *call, a tokenIssueArgs) (api.IssuedToken, error) {
	if err := checkDescription(a.Description); err != nil {
		return api.IssuedToken{}, err
	}
	token, err := s.store.IssueAgentToken(ctx, c.env(), a.Description, a.OneTime)
	if err != nil {
		return api.IssuedToken{}, err
	}
	c.header.Set("Cache-Control", "no-store")
	return api.IssuedToken{Token: token.Reveal(), Environment: c.env().String(), Description: a.Description, OneTime: a.OneTime}, nil
}

func (s *Server) tokenList(ctx context.Context, c *call, _ struct{}) ([]api.AgentToken, error) {
	list, err := s.store.AgentTokens(ctx, c.env())
	return convertAll(list, func(t model.AgentToken) api.AgentToken {
		return api.AgentToken{
			ID: t.ID.String(), Environment: t.Environment.String(), Description: t.Description, OneTime: t.OneTime,
			CreatedAt: api.OptionalTime(t.CreatedAt), UsedAt: api.OptionalTime(t.UsedAt), RevokedAt: api.OptionalTime(t.RevokedAt),
		}
	}), err
}

func (s *Server) tokenRevoke(ctx context.Context, c *call, a tokenIDArgs) (none, error) {
	return none{}, s.store.RevokeAgentToken(ctx, c.env(), a.ID, c.now)
}
