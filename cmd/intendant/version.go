package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newVersionCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "version", Short: "Versions: every desired state that was stored"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the newest versions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			all, err := s.Versions(cmd.Context(), api.ListOptions{Limit: 100})
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, v := range all {
				rows = append(rows, []string{when(v.Date), strconv.Itoa(v.Version), yesNo(v.Released), strconv.Itoa(v.Total), fmt.Sprintf("+%d ~%d -%d", v.Added, v.Changed, v.Removed), v.Status, shortCommit(v.Revision)})
			}
			return s.table([]string{"Created at", "Version", "Released", "# Resources", "Changes", "State", "Commit"}, rows, "There are no versions.")
		},
	}, r.versionOne("show VERSION", "Show a version", 1, func(cmd *cobra.Command, s *session, n []int) error {
		v, err := s.Version(cmd.Context(), n[0])
		if err != nil {
			return err
		}
		return s.version(v)
	}), r.versionOne("release VERSION", "Release a version: from then on it is deployed", 1, func(cmd *cobra.Command, s *session, n []int) error {
		if err := s.ReleaseVersion(cmd.Context(), n[0]); err != nil {
			return err
		}
		v, err := s.Version(cmd.Context(), n[0])
		if err != nil {
			return err
		}
		return s.version(v)
	}), r.versionOne("diff FROM TO", "Show what differs between two versions", 2, func(cmd *cobra.Command, s *session, n []int) error {
		d, err := s.DiffVersions(cmd.Context(), n[0], n[1])
		if err != nil {
			return err
		}
		return s.diff(d, "The two versions want the same.")
	}), r.versionOne("delete VERSION", "Delete a version", 1, func(cmd *cobra.Command, s *session, n []int) error {
		return s.DeleteVersion(cmd.Context(), n[0])
	}))
	return cmd
}

// versionOne is a command whose arguments are version numbers.
func (r *remote) versionOne(use, short string, n int, run func(cmd *cobra.Command, s *session, n []int) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(n),
		RunE: func(cmd *cobra.Command, args []string) error {
			var numbers []int
			for _, a := range args {
				v, err := strconv.Atoi(a)
				if err != nil || v < 1 {
					return &exitError{code: exitUsage, err: fmt.Errorf("%q is not a version: give a number from 1", a)}
				}
				numbers = append(numbers, v)
			}
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			return run(cmd, s, numbers)
		},
	}
}

func (s *session) version(v api.VersionDetails) error {
	if done, err := s.value(v); done {
		return err
	}
	return s.facts([2]string{"Version", strconv.Itoa(v.Version)}, [2]string{"Created at", when(v.Date)}, [2]string{"Released", yesNo(v.Released)},
		[2]string{"# Resources", strconv.Itoa(v.Total)}, [2]string{"Changes", fmt.Sprintf("%d added, %d changed, %d removed", v.Added, v.Changed, v.Removed)},
		[2]string{"State", v.Status}, [2]string{"Commit", shortCommit(v.Revision)}, [2]string{"Digest", v.Digest}, [2]string{"Trace", v.Trace})
}

// diff writes differences as a patch: - before, + after.
func (s *session) diff(d []api.ResourceDiff, none string) error {
	if done, err := s.value(d); done {
		return err
	}
	if len(d) == 0 {
		return s.say("%s", none)
	}
	var b strings.Builder
	for _, r := range d {
		fmt.Fprintf(&b, "%s %s\n", r.Status, r.ResourceID)
		var names []string
		for name := range r.Attributes {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			a := r.Attributes[name]
			fmt.Fprintf(&b, "  %s\n", name)
			for _, side := range []struct{ mark, text string }{{"-", a.FromValueCompare}, {"+", a.ToValueCompare}} {
				if side.text == "" {
					continue
				}
				for line := range strings.SplitSeq(strings.TrimRight(side.text, "\n"), "\n") {
					fmt.Fprintf(&b, "    %s %s\n", side.mark, line)
				}
			}
		}
	}
	return s.say("%s", strings.TrimRight(b.String(), "\n"))
}

func newDryRunCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "dryrun", Short: "Dry runs: what a version would change, changing nothing"}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	start := r.versionOne("start VERSION", "Ask all agents what a version would change, and wait for the answers", 1, func(cmd *cobra.Command, s *session, n []int) error {
		id, err := s.RequestDryRun(cmd.Context(), n[0])
		if err != nil {
			return err
		}
		rep, err := s.WaitDryRun(cmd.Context(), n[0], id, nil)
		if err != nil {
			return err
		}
		return s.dryRunReport(rep)
	})
	cmd.AddCommand(start, r.versionOne("list VERSION", "List the dry runs of a version", 1, func(cmd *cobra.Command, s *session, n []int) error {
		all, err := s.DryRuns(cmd.Context(), n[0])
		if err != nil {
			return err
		}
		if done, err := s.value(all); done {
			return err
		}
		var rows [][]string
		for _, d := range all {
			rows = append(rows, []string{d.ID, when(d.Date), strconv.Itoa(d.Total), strconv.Itoa(d.Todo)})
		}
		return s.table([]string{"ID", "Started", "Total", "To do"}, rows, "There are no dry runs.")
	}), &cobra.Command{
		Use: "show VERSION ID", Short: "Show what a dry run has found", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || !isID(args[1]) {
				return &exitError{code: exitUsage, err: fmt.Errorf("give a version and the id of its dry run, not %q %q", args[0], args[1])}
			}
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			rep, err := s.DryRun(cmd.Context(), n, args[1])
			if err != nil {
				return err
			}
			return s.dryRunReport(rep)
		},
	})
	return cmd
}

// dryRunReport writes what a dry run has found.
func (s *session) dryRunReport(rep api.DryRunReport) error {
	if done, err := s.value(rep); done {
		return err
	}
	changed := slices.DeleteFunc(rep.Diff, func(d api.ResourceDiff) bool { return d.Status == "unmodified" })
	if rep.Summary.Todo > 0 {
		if err := s.say("%d of %d resources are still to be asked.", rep.Summary.Todo, rep.Summary.Total); err != nil {
			return err
		}
	}
	return s.diff(changed, "Nothing would change.")
}
