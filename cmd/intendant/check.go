package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/eval"
)

// checkInterval is the time between two looks at the files of a project that is watched.
const checkInterval = 300 * time.Millisecond

// checkFlags are the flags of intendant check.
type checkFlags struct {
	compileFlags
	watch bool
}

// newCheckCommand reports the faults of a project, once or whenever it changes.
func newCheckCommand(g *globals) *cobra.Command {
	f := &checkFlags{}
	f.g = g
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Report the faults of a project, once or after each change",
		Long: `Compile the project in DIR (default: the current directory) and report its faults on standard output. What the model
prints is left out. What the model came to and how long it took goes to standard error.

The exit status is 0 when the model compiles and 1 when it has faults. With --watch the project is compiled again whenever one
of its files changes, until Ctrl-C, which ends the command with status 0.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if f.watch {
				return f.follow(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return f.once(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.watch, "watch", "w", false, "check again whenever a file changes")
	fl.StringVar(&f.inputs, "inputs", "", "read facts, parameters and settings from this JSON file")
	fl.StringVar(&f.format, "format", "text", "form of the diagnostics: text, json or sarif")
	fl.StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	fl.StringVarP(&f.environment, "environment", "e", "", "compile for this environment")
	f.pythonFlags(fl)
	fl.Int64Var(&f.maxSteps, "max-steps", eval.DefaultMaxSteps, "give up on a model that takes more steps than this")
	return cmd
}

// once compiles and reports. The error has the status of the program; one without a text says that the model has faults.
func (f *checkFlags) once(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	collectLate()
	opts, err := f.options()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	start := time.Now()
	return f.project(ctx, dir, opts, func(res *lang.Result, ds diag.List) error {
		took := time.Since(start)
		if err := f.report(stdout, res, ds); err != nil {
			return err
		}
		summary := checkSummary(ds, res.Stats, took)
		if f.watch { // so that it can be seen what is new
			summary += " at " + start.Format(time.TimeOnly) + "\n"
		}
		if _, err := fmt.Fprintln(stderr, summary); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		return nil
	})
}

// checkSummary says in a line what a check found in how many files, and how long it took.
func checkSummary(ds diag.List, s lang.Stats, took time.Duration) string {
	found := ds.Summary()
	if found == "" {
		found = "no faults"
	}
	unit := "files"
	if s.Files == 1 {
		unit = "file"
	}
	made := ""
	if !ds.HasErrors() {
		made = fmt.Sprintf(", %d instances, %d resources", s.Instances, s.Resources)
	}
	return fmt.Sprintf("%s in %d %s%s, checked in %s", found, s.Files, unit, made, took.Round(100*time.Microsecond))
}

// follow checks, and checks again after each change, until the context is done.
func (f *checkFlags) follow(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	f.session = lang.NewSession()
	seed := maphash.MakeSeed()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		// The mark is taken before the compile, so that a change while it runs is not missed.
		mark := f.mark(seed, dir)
		err := f.once(ctx, dir, stdout, stderr)
		if ctx.Err() != nil {
			return nil
		}
		var status *exitError
		if err != nil && (!errors.As(err, &status) || status.code != exitFailed) {
			return err
		}
		for f.mark(seed, dir) == mark {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// mark is a number that changes when a file that a compile may read is added, removed, or written. What can not be looked at
// does not count: it is on its way out, or the compile reports it.
func (f *checkFlags) mark(seed maphash.Seed, dir string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	add := func(name string, info fs.FileInfo) {
		_, _ = fmt.Fprintf(&h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what is gone does not count
		case e.IsDir() && name != dir && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !e.IsDir() && compileReads(name):
			if info, err := os.Stat(name); err == nil {
				add(name, info)
			}
		}
		return nil
	})
	if f.inputs != "" {
		if info, err := os.Stat(f.inputs); err == nil {
			add(f.inputs, info)
		}
	}
	return h.Sum64()
}

// compileReads reports whether a compile may read a file of this name: source, manifests, plugins, templates and files.
func compileReads(name string) bool {
	switch filepath.Ext(name) {
	case ".cf", ".lock", ".yml", ".yaml", ".toml", ".cfg", ".py", ".j2", ".tmpl":
		return true
	}
	if filepath.Base(name) == "requirements.txt" {
		return true
	}
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(name)), "/") {
		if part == "templates" || part == "files" {
			return true
		}
	}
	return false
}
