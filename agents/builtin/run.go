package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// defaultRunTimeout is how long a command may take when its resource does not say.
const defaultRunTimeout = 300

// runHandler handles exec::Run. A command runs unless one of its conditions says that it need not:
//
//	creates      a path that is there
//	unless       a command that ends with status 0
//	onlyif       a command that ends with another status
//	reload_only  it runs only as a reload
//
// After a change of a requirement the command reload runs, or the command itself when there is none.
type runHandler struct {
	commands *commands
}

type runResource struct {
	Command     string         `json:"command"`
	Creates     string         `json:"creates"`
	Cwd         string         `json:"cwd"`
	Environment map[string]any `json:"environment"`
	OnlyIf      string         `json:"onlyif"`
	Unless      string         `json:"unless"`
	Path        string         `json:"path"`
	Reload      string         `json:"reload"`
	ReloadOnly  bool           `json:"reload_only"`
	Returns     []int          `json:"returns"`
	Timeout     float64        `json:"timeout"`
	SkipOnFail  bool           `json:"skip_on_fail"`
}

// ranKey marks a run in which the command has run already.
const ranKey = "exec::Run ran"

func decodeRun(r *sdk.Resource) (runResource, error) {
	var want runResource
	if err := r.Decode(&want); err != nil {
		return want, err
	}
	if len(want.Returns) == 0 {
		want.Returns = []int{0}
	}
	if want.Timeout <= 0 {
		want.Timeout = defaultRunTimeout
	}
	for _, line := range []string{want.Command, want.OnlyIf, want.Unless, want.Reload} {
		if _, err := split(line); err != nil {
			return want, err
		}
	}
	return want, nil
}

// Read implements [sdk.Handler]: it finds out whether the command is to run.
func (h *runHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	want, err := decodeRun(r)
	if err != nil {
		return sdk.Observed{}, err
	}
	run, err := h.wanted(c, want)
	if err != nil {
		return sdk.Observed{}, err
	}
	return sdk.Observed{Exists: true, Attributes: map[string]any{"executed": !run}, Private: want}, nil
}

func (h *runHandler) wanted(c *sdk.Context, want runResource) (bool, error) {
	if want.ReloadOnly {
		return false, nil
	}
	if want.Creates != "" {
		_, err := os.Lstat(want.Creates)
		if err == nil {
			c.Debugf("The command need not run: %s is there.", want.Creates)
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("looking at %s: %w", want.Creates, err)
		}
	}
	if want.Unless != "" {
		out, err := h.execute(c, want, want.Unless)
		if err == nil && out.code == 0 {
			c.Debugf("The command need not run: the condition unless holds.")
			return false, nil
		}
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return false, fmt.Errorf("the condition unless: %w", err)
		}
	}
	if want.OnlyIf != "" {
		out, err := h.execute(c, want, want.OnlyIf)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return false, fmt.Errorf("the condition onlyif: %w", err)
		}
		if err != nil || out.code != 0 {
			c.Debugf("The command need not run: the condition onlyif does not hold.")
			return false, nil //nolint:nilerr // a condition whose program is not there does not hold
		}
	}
	return true, nil
}

// Diff implements [sdk.Differ].
func (h *runHandler) Diff(_ *sdk.Context, _ *sdk.Resource, o sdk.Observed) (model.Diff, error) {
	if o.Attributes["executed"] == true {
		return nil, nil
	}
	return model.Diff{"executed": sdk.Changed(false, true)}, nil
}

// Change implements [sdk.Handler].
func (h *runHandler) Change(c *sdk.Context, _ *sdk.Resource, _ model.Change, o sdk.Observed, _ model.Diff) error {
	want, ok := o.Private.(runResource)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	c.Set(ranKey, true)
	return h.must(c, want, want.Command)
}

// Reload implements [sdk.Reloader].
func (h *runHandler) Reload(c *sdk.Context, r *sdk.Resource) error {
	want, err := decodeRun(r)
	if err != nil {
		return err
	}
	line := want.Reload
	if line == "" {
		if _, ran := c.Get(ranKey); ran {
			return nil
		}
		line = want.Command
	}
	if err := h.must(c, want, line); err != nil {
		return err
	}
	c.SetChange(model.ChangeUpdated)
	c.AddChange("reloaded", false, true)
	return nil
}

// must runs a command and fails when it does not end as it should.
func (h *runHandler) must(c *sdk.Context, want runResource, line string) error {
	out, err := h.execute(c, want, line)
	switch {
	case err != nil && want.SkipOnFail:
		return sdk.Skip(err.Error())
	case err != nil && errors.Is(err, model.ErrNotFound):
		return sdk.Coded("program-missing", err)
	case err != nil:
		logOutput(c, model.LevelError, "The command", out)
		return err
	case slices.Contains(want.Returns, out.code):
		logOutput(c, model.LevelInfo, "The command", out)
		return nil
	}
	logOutput(c, model.LevelError, "The command", out)
	err = fmt.Errorf("the command ended with status %d, which is not one of %v", out.code, want.Returns)
	if want.SkipOnFail {
		return sdk.Skip(err.Error())
	}
	return sdk.Coded("exit-status", err)
}

func (h *runHandler) execute(c *sdk.Context, want runResource, line string) (output, error) {
	args, err := split(line)
	if err != nil {
		return output{}, err
	}
	env := make(map[string]string, len(want.Environment))
	for k, v := range want.Environment {
		if text, ok := v.(string); ok {
			env[k] = text
		} else if v != nil {
			env[k] = fmt.Sprint(v)
		}
	}
	ctx, cancel := context.WithTimeout(c, time.Duration(want.Timeout*float64(time.Second)))
	defer cancel()
	return h.commands.run(ctx, command{args: args, path: want.Path, env: env, dir: want.Cwd})
}

var (
	_ sdk.Handler  = (*runHandler)(nil)
	_ sdk.Differ   = (*runHandler)(nil)
	_ sdk.Reloader = (*runHandler)(nil)
)
