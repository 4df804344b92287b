package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
			all, err := s.Agents(cmd.Context(), api.ListOptions{})
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
			t, err := s.IssueAgentToken(cmd.Context(), description, true)
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
	cmds := []*cobra.Command{
		list, r.agentSwitch("pause", "Let agents finish their running task and start no other"), r.agentSwitch("unpause", "Let paused agents go on"),
		r.agentDeploy("deploy", "Run what is not known to be as wanted", false),
		r.agentDeploy("repair", "Check everything again, and mend what differs", true), token,
	}
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
				return s.AgentAction(cmd.Context(), "", action)
			}
			known, err := s.Agents(cmd.Context(), api.ListOptions{})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(known, func(a api.Agent) bool { return a.Name == name }) {
				return fmt.Errorf("there is no agent %q; see: intendant agent list", name)
			}
			return s.AgentAction(cmd.Context(), name, action)
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
			_, warnings, err := s.RequestDeploy(cmd.Context(), api.Deploy{Repair: repair, Agents: agents, Resources: resources, Message: "Requested on the command line"})
			if err != nil {
				return err
			}
			return s.say("%s", strings.Join(append([]string{"Requested."}, warnings...), "\n"))
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
			d, err := s.WaitSettled(cmd.Context(), func(d api.DeploySummary) {
				if line := summary(d); line != last {
					last = line
					_ = s.say("%s", line)
				}
			})
			if err != nil {
				return err
			}
			return s.say("Complete: %d/%d", d.Total, d.Total)
		},
	}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	return cmd
}
