package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newReportCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "report", Short: "Compile reports: what the server's compiler said"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the newest compiles",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			all, err := s.Compiles(cmd.Context(), api.ListOptions{Limit: 100})
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, c := range all {
				version := ""
				if c.Version != nil {
					version = strconv.Itoa(*c.Version)
				}
				rows = append(rows, []string{c.ID, when(c.Requested), c.Status, took(c.Started, c.Completed), version, shortCommit(c.Revision), c.Reason})
			}
			return s.table([]string{"ID", "Requested", "Status", "Took", "Version", "Commit", "Reason"}, rows, "There are no compiles.")
		},
	}, r.reportOne("show", "Show stages, diagnostics and source of a compile; last means the newest", func(cmd *cobra.Command, s *session, id string) error {
		c, err := s.Client.Compile(cmd.Context(), id)
		if err != nil {
			return err
		}
		if done, err := s.value(c); done {
			return err
		}
		return s.analysis(c)
	}), r.reportOne("cancel", "Stop a compile that waits or runs", func(cmd *cobra.Command, s *session, id string) error {
		return s.CancelCompile(cmd.Context(), id)
	}))
	return cmd
}

// reportOne is a command about one compile, named by its id or as the last.
func (r *remote) reportOne(use, short string, run func(cmd *cobra.Command, s *session, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			id := args[0]
			if id == "last" {
				newest, err := s.Compiles(cmd.Context(), api.ListOptions{Limit: 1})
				if err != nil {
					return err
				}
				if len(newest) == 0 {
					return errors.New("nothing was compiled yet")
				}
				id = newest[0].ID
			}
			return run(cmd, s, id)
		},
	}
}

func (s *session) analysis(c api.CompileAnalysis) error {
	version := ""
	if c.Version != nil {
		version = strconv.Itoa(*c.Version)
	}
	if err := s.facts([2]string{"ID", c.ID}, [2]string{"Status", c.Status}, [2]string{"Reason", c.Reason}, [2]string{"Commit", shortCommit(c.Revision)},
		[2]string{"Requested", when(c.Requested)}, [2]string{"Took", took(c.Started, c.Completed)}, [2]string{"Version", version},
		[2]string{"Trace", c.Trace}, [2]string{"Error", c.Error}); err != nil {
		return err
	}
	var b strings.Builder
	for _, st := range c.Reports {
		status := "running"
		if st.Returncode != nil {
			status = "exit status " + strconv.Itoa(*st.Returncode)
		}
		fmt.Fprintf(&b, "\n== %s: %s %s\n", st.Name, status, took(st.Started, st.Completed))
		for _, text := range []string{st.Outstream, st.Errstream} {
			if text = strings.TrimRight(text, "\n"); text != "" {
				fmt.Fprintf(&b, "%s\n", text)
			}
		}
	}
	for _, d := range c.Diagnostics {
		fmt.Fprintf(&b, "\n%s:%d:%d: %s: %s [%s]\n", d.File, d.Line, d.Column, d.Severity, d.Message, d.Code)
		if d.Excerpt != nil {
			for i, line := range d.Excerpt.Lines {
				n := d.Excerpt.FirstLine + i
				mark := " "
				if n == d.Line {
					mark = ">"
				}
				fmt.Fprintf(&b, "%s %4d | %s\n", mark, n, line)
			}
		}
		if d.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", d.Hint)
		}
		for _, rel := range d.Related {
			fmt.Fprintf(&b, "  %s:%d: %s\n", rel.File, rel.Line, rel.Message)
		}
	}
	return s.say("%s", strings.TrimRight(b.String(), "\n"))
}
