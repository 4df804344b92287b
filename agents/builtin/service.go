package builtin

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// serviceHandler handles std::Service by systemd.
type serviceHandler struct {
	commands *commands
	systemd  string
}

type serviceResource struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	OnBoot *bool  `json:"onboot"`
}

// serviceFound is what systemd says of a unit.
type serviceFound struct {
	want               serviceResource
	load, active, file string
}

// startedKey marks a run in which the service was started: it needs no reload then.
const startedKey = "std::Service started"

var unitPattern = lazyregexp.New(`^[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]*$`)

func (h *serviceHandler) decode(r *sdk.Resource) (serviceResource, error) {
	var want serviceResource
	if err := r.Decode(&want); err != nil {
		return want, err
	}
	if !unitPattern().MatchString(want.Name) {
		return want, fmt.Errorf("%q is not the name of a service: %w", want.Name, model.ErrInvalid)
	}
	if want.State != "running" && want.State != "stopped" {
		return want, fmt.Errorf("state %q is neither running nor stopped: %w", want.State, model.ErrInvalid)
	}
	if _, err := os.Stat(h.systemd); err != nil {
		return want, sdk.Unavailable("systemd does not run on this machine: services can not be managed")
	}
	if !h.commands.has("systemctl") {
		return want, sdk.Unavailable("the program systemctl is not on this machine: services can not be managed")
	}
	return want, nil
}

func (f serviceFound) running() bool {
	return f.active == "active" || f.active == "reloading" || f.active == "activating"
}

// onBoot tells whether the unit starts with the machine. fixed means that this can not be chosen: the unit has no such
// section, or is made by something else.
func (f serviceFound) onBoot() (enabled, fixed bool) {
	switch f.file {
	case "enabled", "enabled-runtime", "alias":
		return true, false
	case "static", "generated", "transient", "indirect":
		return false, true
	}
	return false, false
}

// Read implements [sdk.Handler].
func (h *serviceHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	want, err := h.decode(r)
	if err != nil {
		return sdk.Observed{}, err
	}
	out, err := h.commands.run(c, command{args: []string{
		"systemctl", "show", "--no-pager", "--property=LoadState,ActiveState,UnitFileState", "--", want.Name,
	}})
	if err != nil {
		return sdk.Observed{}, err
	}
	if out.code != 0 {
		logOutput(c, model.LevelError, "systemctl show", out)
		return sdk.Observed{}, fmt.Errorf("asking systemd about %s: systemctl ended with status %d", want.Name, out.code)
	}
	found := serviceFound{want: want}
	for line := range strings.Lines(out.stdout) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "LoadState":
			found.load = value
		case "ActiveState":
			found.active = value
		case "UnitFileState":
			found.file = value
		}
	}
	return sdk.Observed{Exists: true, Private: found}, nil
}

// Diff implements [sdk.Differ].
func (h *serviceHandler) Diff(c *sdk.Context, _ *sdk.Resource, o sdk.Observed) (model.Diff, error) {
	found, ok := o.Private.(serviceFound)
	if !ok {
		return nil, errors.New("the observed state is of another handler")
	}
	d := model.Diff{}
	state := "stopped"
	if found.running() {
		state = "running"
	}
	if state != found.want.State {
		d["state"] = sdk.Changed(state, found.want.State)
	}
	if found.want.OnBoot == nil {
		return d, nil
	}
	enabled, fixed := found.onBoot()
	switch {
	case enabled == *found.want.OnBoot:
	case fixed:
		c.Infof("Whether %s starts with the machine can not be chosen: its unit file is %s.", found.want.Name, found.file)
	case found.load == "not-found" && !*found.want.OnBoot:
	default:
		d["onboot"] = sdk.Changed(enabled, *found.want.OnBoot)
	}
	return d, nil
}

// Change implements [sdk.Handler].
func (h *serviceHandler) Change(c *sdk.Context, _ *sdk.Resource, _ model.Change, o sdk.Observed, diff model.Diff) error {
	found, ok := o.Private.(serviceFound)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	want := found.want
	switch found.load {
	case "not-found":
		return sdk.Coded("service-missing", fmt.Errorf("there is no service %s on this machine: install it first, and require it here", want.Name))
	case "masked":
		return sdk.Permanent(fmt.Errorf("the service %s is masked: somebody forbade to start it (systemctl unmask %s)", want.Name, want.Name))
	}
	if _, change := diff["onboot"]; change {
		verb := "disable"
		if *want.OnBoot {
			verb = "enable"
		}
		if err := h.systemctl(c, verb, want.Name); err != nil {
			return err
		}
	}
	if _, change := diff["state"]; change {
		if want.State == "stopped" {
			return h.systemctl(c, "stop", want.Name)
		}
		c.Set(startedKey, true)
		return h.systemctl(c, "start", want.Name)
	}
	return nil
}

// Reload implements [sdk.Reloader]: a running service takes up the change of its requirement.
func (h *serviceHandler) Reload(c *sdk.Context, r *sdk.Resource) error {
	want, err := h.decode(r)
	if err != nil {
		return err
	}
	if _, started := c.Get(startedKey); started || want.State != "running" {
		return nil
	}
	if err := h.systemctl(c, "reload-or-restart", want.Name); err != nil {
		return err
	}
	c.SetChange(model.ChangeUpdated)
	c.AddChange("reloaded", false, true)
	return nil
}

func (h *serviceHandler) systemctl(c *sdk.Context, verb, name string) error {
	out, err := h.commands.run(c, command{args: []string{"systemctl", verb, "--", name}})
	if err != nil {
		return err
	}
	if out.code != 0 {
		logOutput(c, model.LevelError, "systemctl "+verb, out)
		return sdk.Coded("exit-status", fmt.Errorf("systemctl %s %s ended with status %d; see journalctl -u %s", verb, name, out.code, name))
	}
	c.Infof("systemctl %s %s", verb, name)
	return nil
}

var (
	_ sdk.Handler  = (*serviceHandler)(nil)
	_ sdk.Differ   = (*serviceHandler)(nil)
	_ sdk.Reloader = (*serviceHandler)(nil)
)
