package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newResourceCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "resource", Short: "Resources: what is wanted, how far reality is, and why"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)

	var status, kind, agent, value string
	list := &cobra.Command{
		Use: "list", Short: "List the resources of the newest released version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			all, err := s.Resources(cmd.Context(), api.ListOptions{
				Sort: "resource_type.asc", Filter: filters("status", status, "resource_type", kind, "agent", agent, "resource_id_value", value),
			})
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, x := range all {
				rows = append(rows, []string{x.ResourceID, x.Status, strconv.Itoa(len(x.Requires))})
			}
			return s.table([]string{"Resource", "Status", "Requires"}, rows, "There are no such resources.")
		},
	}
	list.Flags().StringVar(&status, "status", "", "only those with this status; !status: all but those")
	list.Flags().StringVar(&kind, "type", "", "only types with this in them")
	list.Flags().StringVar(&agent, "agent", "", "only agents with this in their name")
	list.Flags().StringVar(&value, "value", "", "only ids with this in their value")

	var level string
	logs := r.resourceOne("logs", "Print what handlers said about a resource, oldest first", func(cmd *cobra.Command, s *session, id string) error {
		all, err := s.ResourceLogs(cmd.Context(), id, api.ListOptions{Sort: "timestamp.asc", Filter: filters("minimal_log_level", level)})
		if err != nil {
			return err
		}
		if done, err := s.value(all); done {
			return err
		}
		for _, l := range all {
			if err := s.say("%s %-7s %s", when(l.Timestamp), l.Level, l.Msg); err != nil {
				return err
			}
		}
		return nil
	})
	logs.Flags().StringVar(&level, "level", "INFO", "least level: TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL")

	cmd.AddCommand(list, logs, r.resourceOne("show", "Show a resource", func(cmd *cobra.Command, s *session, id string) error {
		x, err := s.Resource(cmd.Context(), id)
		if err != nil {
			return err
		}
		if done, err := s.value(x); done {
			return err
		}
		pairs := [][2]string{
			{"Resource", x.ResourceID}, {"Status", x.Status}, {"Version", strconv.Itoa(x.Version)}, {"Last run", when(x.LastDeploy)}, {"Last success", when(x.LastSuccess)},
		}
		var attributes map[string]json.RawMessage
		if json.Unmarshal(x.Attributes, &attributes) == nil {
			for _, name := range slices.Sorted(maps.Keys(attributes)) {
				pairs = append(pairs, [2]string{name, plainJSON(attributes[name])})
			}
		}
		for _, req := range slices.Sorted(maps.Keys(x.RequiresStatus)) {
			pairs = append(pairs, [2]string{"requires", req + " (" + x.RequiresStatus[req] + ")"})
		}
		return s.facts(pairs...)
	}), r.resourceOne("why", "Say why a resource is not what it should be", func(cmd *cobra.Command, s *session, id string) error {
		x, err := s.Explain(cmd.Context(), id)
		if err != nil {
			return err
		}
		if done, err := s.value(x); done {
			return err
		}
		if err := s.say("%s", x.Summary); err != nil {
			return err
		}
		for _, reason := range x.Reasons {
			if err := s.say("  - %s", reason.Text); err != nil {
				return err
			}
		}
		return nil
	}), r.resourceOne("history", "List the intents that a resource had", func(cmd *cobra.Command, s *session, id string) error {
		all, err := s.ResourceHistory(cmd.Context(), id, api.ListOptions{})
		if err != nil {
			return err
		}
		if done, err := s.value(all); done {
			return err
		}
		var rows [][]string
		for _, h := range all {
			rows = append(rows, []string{when(h.Date), strconv.Itoa(h.Version), h.AttributeHash})
		}
		return s.table([]string{"Date", "Since version", "Fingerprint"}, rows, "There is no history.")
	}))
	return cmd
}

// resourceOne is a command about one resource.
func (r *remote) resourceOne(use, short string, run func(cmd *cobra.Command, s *session, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " RESOURCE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			return run(cmd, s, args[0])
		},
	}
}

func newActionLogCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "action-log", Short: "What was done with a resource"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	var rvid, id string
	actions := func(cmd *cobra.Command) (*session, []api.ResourceAction, error) {
		s, err := r.scoped(cmd)
		if err != nil {
			return nil, nil, err
		}
		all, err := s.ResourceActions(cmd.Context(), rvid, 200)
		return s, all, err
	}
	list := &cobra.Command{
		Use: "list", Short: "List the actions on a resource, newest first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, all, err := actions(cmd)
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, a := range all {
				status := ""
				switch {
				case a.Status != nil:
					status = *a.Status
				case a.Finished == nil:
					status = "running"
				}
				change := ""
				if a.Change != nil && *a.Change != "nochange" {
					change = *a.Change
				}
				rows = append(rows, []string{a.ActionID, a.Action, when(a.Started), took(a.Started, a.Finished), status, change, a.Reason})
			}
			return s.table([]string{"Action ID", "Action", "Started", "Took", "Status", "Change", "Reason"}, rows, "Nothing was done yet.")
		},
	}
	messages := &cobra.Command{
		Use: "show-messages", Short: "Print the messages of one action",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, all, err := actions(cmd)
			if err != nil {
				return err
			}
			for _, a := range all {
				if a.ActionID != id {
					continue
				}
				if done, err := s.value(a.Messages); done {
					return err
				}
				for _, m := range a.Messages {
					if err := s.say("%s %s %s", when(m.Timestamp), m.Level, m.Msg); err != nil {
						return err
					}
				}
				return nil
			}
			return s.say("There is no such action among the newest 200.")
		},
	}
	for _, c := range []*cobra.Command{list, messages} {
		c.Flags().StringVar(&rvid, "rvid", "", "id of the resource, with or without a version")
		_ = c.MarkFlagRequired("rvid")
	}
	messages.Flags().StringVar(&id, "action-id", "", "id of the action")
	_ = messages.MarkFlagRequired("action-id")
	cmd.AddCommand(list, messages)
	return cmd
}

func newParamCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "param", Short: "Parameters and facts: inputs of models"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	var name, value, resource string
	show := func(s *session, p api.Parameter) error {
		if done, err := s.value(p); done {
			return err
		}
		return s.facts([2]string{"Name", p.Name}, [2]string{"Value", p.Value}, [2]string{"Source", p.Source}, [2]string{"Updated", when(p.Updated)})
	}
	list := &cobra.Command{
		Use: "list", Short: "List parameters and facts",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			params, err := s.Parameters(cmd.Context(), api.ListOptions{})
			if err != nil {
				return err
			}
			facts, err := s.Facts(cmd.Context(), api.ListOptions{})
			if err != nil {
				return err
			}
			if done, err := s.value(map[string]any{"parameters": params, "facts": facts}); done {
				return err
			}
			var rows [][]string
			for _, p := range params {
				rows = append(rows, []string{"", p.Name, p.Value, p.Source, when(p.Updated)})
			}
			for _, f := range facts {
				rows = append(rows, []string{f.ResourceID, f.Name, f.Value, f.Source, when(f.Updated)})
			}
			return s.table([]string{"Resource", "Name", "Value", "Source", "Updated"}, rows, "There are no parameters.")
		},
	}
	set := &cobra.Command{
		Use: "set", Short: "Set a parameter",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			p, err := s.SetParameter(cmd.Context(), name, value, true)
			if err != nil {
				return err
			}
			return show(s, p)
		},
	}
	set.Flags().StringVar(&value, "value", "", "its value")
	get := &cobra.Command{
		Use: "get", Short: "Print a parameter or a fact",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			f, err := s.Parameter(cmd.Context(), name, resource)
			if err != nil {
				return err
			}
			return show(s, f.Parameter)
		},
	}
	get.Flags().StringVar(&resource, "resource", "", "id of the resource whose fact is meant")
	for _, c := range []*cobra.Command{set, get} {
		c.Flags().StringVar(&name, "name", "", "its name")
		_ = c.MarkFlagRequired("name")
	}
	_ = set.MarkFlagRequired("value")
	cmd.AddCommand(list, set, get)
	return cmd
}
