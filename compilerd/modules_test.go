package compilerd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/model"
)

// preparer is a function that prepares.
type preparer func(ctx context.Context, dir string, update bool, stage compilerd.ModuleStage) (compilerd.Prepared, error)

func (p preparer) Prepare(ctx context.Context, _ model.Environment, dir string, update bool, stage compilerd.ModuleStage) (compilerd.Prepared, error) {
	return p(ctx, dir, update, stage)
}

// startWith runs a service whose projects need modules.
func startWith(t *testing.T, p preparer) *bench {
	t.Helper()
	b := start(t, "ok", func(c *compilerd.Config) { c.Modules = p })
	t.Cleanup(func() { b.stop() })
	return b
}

func stageNames(r model.CompileReport) []string {
	var out []string
	for _, s := range r.Stages {
		out = append(out, fmt.Sprintf("%s %d", s.Name, *s.ExitCode))
	}
	return out
}

func TestModuleStages(t *testing.T) {
	t.Parallel()
	var released, attempts atomic.Int32
	b := startWith(t, func(_ context.Context, dir string, update bool, stage compilerd.ModuleStage) (compilerd.Prepared, error) {
		p := compilerd.Prepared{
			Placement: []byte(`{"modules":[{"name":"web"}]}`), Lock: json.RawMessage(`[{"name":"web","version":"1.0"}]`),
			Release: func() { released.Add(1) }, Notes: []string{"mind the gap"},
		}
		if dir == "" || !update {
			return p, errors.New("the request was not handed on")
		}
		err := stage("modules", "fetch modules", func(_ context.Context, out io.Writer) error {
			if attempts.Add(1) == 1 {
				return fmt.Errorf("the forge sleeps: %w", model.ErrUnavailable)
			}
			_, err := fmt.Fprintln(out, "web 1.0")
			return err
		})
		if err != nil {
			return p, err
		}
		return p, stage("python environment", "install", func(context.Context, io.Writer) error { return nil })
	})
	o := b.compile(t, model.CompileJob{Export: true, Update: true})
	if o.Report.Status != model.CompileSucceeded {
		t.Fatalf("report = %+v", o.Report)
	}
	want := []string{"fetch 0", "checkout 0", "modules 0", "python environment 0", "modules 0", "compile 0", "export 0"}
	if d := cmp.Diff(want, stageNames(o.Report)); d != "" {
		t.Errorf("stages (-want +got):\n%s", d)
	}
	if s := o.Report.Stages[2]; s.Stdout != "web 1.0\n" || !strings.Contains(s.Stderr, "the forge sleeps") || !strings.Contains(s.Stderr, "trying again") {
		t.Errorf("the stage = %+v, want its output and the first failure", s)
	}
	if s := o.Report.Stages[4]; s.Stderr != "mind the gap\n" {
		t.Errorf("the notes = %+v", s)
	}
	if got := string(o.State.Metadata["modules"]); got != `[{"name":"web","version":"1.0"}]` {
		t.Errorf("metadata modules = %s, want the lock", got)
	}
	if released.Load() != 1 {
		t.Errorf("released %d times, want once", released.Load())
	}
}

// TestModuleLockIsAnInput holds that other modules make another compile.
func TestModuleLockIsAnInput(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	b := startWith(t, func(context.Context, string, bool, compilerd.ModuleStage) (compilerd.Prepared, error) {
		return compilerd.Prepared{Lock: json.RawMessage(fmt.Sprint(n.Load()))}, nil
	})
	env := model.EnvironmentID{UUID: uuid.New()}
	digest := func() string { return b.compile(t, model.CompileJob{Environment: env}).Report.Digest }
	first := digest()
	if again := digest(); again != first || first == "" {
		t.Errorf("the same inputs have the digests %q and %q", first, again)
	}
	n.Add(1)
	if other := digest(); other == first {
		t.Error("another lock has the same digest")
	}
}

func TestModuleFailures(t *testing.T) {
	t.Parallel()
	conflict := fmt.Errorf("the tag was moved: %w", model.ErrConflict)
	for name, tc := range map[string]struct {
		prepare preparer
		stages  []string
		says    string
	}{
		"in a stage": {
			func(_ context.Context, _ string, _ bool, stage compilerd.ModuleStage) (compilerd.Prepared, error) {
				return compilerd.Prepared{}, stage("modules", "fetch", func(context.Context, io.Writer) error { return conflict })
			},
			[]string{"fetch 0", "checkout 0", "modules 1"},
			"the tag was moved",
		},
		"before any stage": {
			func(context.Context, string, bool, compilerd.ModuleStage) (compilerd.Prepared, error) {
				return compilerd.Prepared{}, errors.New("project.yml is odd")
			},
			[]string{"fetch 0", "checkout 0", "modules 1"},
			"project.yml is odd",
		},
		"after a stage": {
			func(_ context.Context, _ string, _ bool, stage compilerd.ModuleStage) (compilerd.Prepared, error) {
				err := stage("modules", "fetch", func(context.Context, io.Writer) error { return nil })
				return compilerd.Prepared{}, errors.Join(err, errors.New("the disk is full"))
			},
			[]string{"fetch 0", "checkout 0", "modules 0", "modules 1"},
			"the disk is full",
		},
		"an odd lock": {
			func(context.Context, string, bool, compilerd.ModuleStage) (compilerd.Prepared, error) {
				return compilerd.Prepared{Lock: json.RawMessage("{")}, nil
			},
			[]string{"fetch 0", "checkout 0", "modules 1"},
			"no JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startWith(t, tc.prepare).compile(t, model.CompileJob{Export: true})
			if o.Report.Status != model.CompileFailed || !strings.Contains(o.Report.Error, tc.says) || o.State != nil {
				t.Errorf("report = %s %q, want a failure that says %q", o.Report.Status, o.Report.Error, tc.says)
			}
			if d := cmp.Diff(tc.stages, stageNames(o.Report)); d != "" {
				t.Errorf("stages (-want +got):\n%s", d)
			}
			if last := o.Report.Stages[len(o.Report.Stages)-1]; !strings.Contains(last.Stderr, tc.says) {
				t.Errorf("the last stage says %q, want %q", last.Stderr, tc.says)
			}
		})
	}
}
