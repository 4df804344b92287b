package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

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
			all, err := api.All[api.Resource](cmd.Context(), s.Client, "/api/v2/resource", query("sort", "resource_type.asc", "limit", "1000",
				"filter.status", status, "filter.resource_type", kind, "filter.agent", agent, "filter.resource_id_value", value))
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
		all, err := api.All[api.ResourceLog](cmd.Context(), s.Client, "/api/v2/resource/"+id+"/logs", query("sort", "timestamp.asc", "filter.minimal_log_level", level))
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
		x, err := api.Data[api.ResourceView](cmd.Context(), s.Client, http.MethodGet, "/api/v3/resource/"+id, nil, nil)
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
		x, err := api.Data[api.Explanation](cmd.Context(), s.Client, http.MethodGet, "/api/v3/resource/"+id+"/explain", nil, nil)
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
		all, err := api.All[api.ResourceHistory](cmd.Context(), s.Client, "/api/v2/resource/"+id+"/history", nil)
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

// resourceOne is a command about one resource; id comes escaped for a path.
func (r *remote) resourceOne(use, short string, run func(cmd *cobra.Command, s *session, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " RESOURCE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			return run(cmd, s, api.Segment(args[0]))
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
		all, err := api.Data[[]api.ResourceAction](cmd.Context(), s.Client, http.MethodGet, "/api/v3/resource/"+api.Segment(rvid)+"/actions", query("limit", "200"), nil)
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
				status := "running"
				if a.Status != nil {
					status = *a.Status
				}
				rows = append(rows, []string{a.ActionID, a.Action, when(a.Started), took(a.Started, a.Finished), status, a.Reason})
			}
			return s.table([]string{"Action ID", "Action", "Started", "Took", "Status", "Reason"}, rows, "Nothing was done yet.")
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
			params, err := api.All[api.Parameter](cmd.Context(), s.Client, "/api/v2/parameters", nil)
			if err != nil {
				return err
			}
			facts, err := api.All[api.Fact](cmd.Context(), s.Client, "/api/v2/facts", nil)
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
			p, err := api.Data[api.Parameter](cmd.Context(), s.Client, http.MethodPut, "/api/v2/parameters/"+api.Segment(name), nil,
				map[string]any{"source": "user", "value": value, "recompile": true})
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
			var answer struct {
				Parameter api.Parameter `json:"parameter"`
			}
			if err := s.Do(cmd.Context(), http.MethodGet, "/api/v1/parameter/"+api.Segment(name), query("resource_id", resource), nil, &answer); err != nil {
				return err
			}
			return show(s, answer.Parameter)
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

// poll calls ask until it says true or fails.
func poll(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := ask()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
