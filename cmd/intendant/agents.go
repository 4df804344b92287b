package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

// agentCommands are the commands about agents at the server; they stand below the command that runs one.
func agentCommands(g *globals) []*cobra.Command {
	r := &remote{g: g}
	list := &cobra.Command{
		Use: "list", Short: "List the agents of an environment",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			all, err := api.All[api.Agent](cmd.Context(), s.Client, "/api/v2/agents", nil)
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, a := range all {
				rows = append(rows, []string{a.Name, a.Status, a.Hostname, when(a.Since)})
			}
			return s.table([]string{"Agent", "State", "Host", "Since"}, rows, "There are no agents.")
		},
	}
	var description string
	token := &cobra.Command{
		Use: "token", Short: "Make a one-time token that lets an agent process in; it is shown only now",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			t, err := api.Data[api.IssuedToken](cmd.Context(), s.Client, http.MethodPost, "/api/v3/agent-token", nil, map[string]any{"description": description, "one_time": true})
			if err != nil {
				return err
			}
			if done, err := s.value(t); done {
				return err
			}
			return s.say("%s", t.Token)
		},
	}
	token.Flags().StringVar(&description, "description", "Made on the command line", "what it is for")
	cmds := []*cobra.Command{list, r.agentSwitch("pause", "Let agents finish their running task and start no other"), r.agentSwitch("unpause", "Let paused agents go on"),
		r.agentDeploy("deploy", "Run what is not known to be as wanted", false),
		r.agentDeploy("repair", "Check everything again, and mend what differs", true), token}
	for _, c := range cmds {
		r.serverFlags(c)
		r.environmentFlag(c)
	}
	return cmds
}

func (r *remote) agentSwitch(action, short string) *cobra.Command {
	var name string
	var all bool
	cmd := &cobra.Command{
		Use: action, Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (name == "") != all {
				return &exitError{code: exitUsage, err: errors.New("give either --agent NAME or --all")}
			}
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			if all {
				return s.call(cmd.Context(), http.MethodPost, "/api/v2/agents/"+action, nil)
			}
			known, err := api.All[api.Agent](cmd.Context(), s.Client, "/api/v2/agents", nil)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(known, func(a api.Agent) bool { return a.Name == name }) {
				return fmt.Errorf("there is no agent %q; see: intendant agent list", name)
			}
			return s.call(cmd.Context(), http.MethodPost, "/api/v2/agent/"+api.Segment(name)+"/"+action, nil)
		},
	}
	cmd.Flags().StringVar(&name, "agent", "", "name of the agent")
	cmd.Flags().BoolVar(&all, "all", false, "all agents")
	return cmd
}

func (r *remote) agentDeploy(use, short string, repair bool) *cobra.Command {
	var agents, resources []string
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"repair": repair, "agents": append([]string{}, agents...), "resources": append([]string{}, resources...), "message": "Requested on the command line"}
			if err := s.call(cmd.Context(), http.MethodPost, "/api/v3/deploy", body); err != nil {
				return err
			}
			return s.say("Requested.")
		},
	}
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "only this agent; may be repeated")
	cmd.Flags().StringArrayVar(&resources, "resource", nil, "only this resource; may be repeated")
	return cmd
}

func newMonitorCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{
		Use: "monitor", Short: "Follow the deployment until every resource is done",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			last := ""
			return poll(cmd.Context(), watchPoll/2, func() (bool, error) {
				var page api.Envelope[[]api.Resource]
				if err := s.Do(cmd.Context(), http.MethodGet, "/api/v2/resource", query("limit", "1", "deploy_summary", "true"), nil, &page); err != nil {
					return false, err
				}
				if page.Metadata == nil || page.Metadata.DeploySummary == nil {
					return false, errors.New("the server gave no summary of the deployment")
				}
				d := page.Metadata.DeploySummary
				waiting := d.ByState["available"] + d.ByState["deploying"]
				if line := summary(*d); line != last {
					last = line
					if err := s.say("%s", line); err != nil {
						return false, err
					}
				}
				if waiting > 0 {
					return false, nil
				}
				return true, s.say("Complete: %d/%d", d.Total-waiting, d.Total)
			})
		},
	}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	return cmd
}
