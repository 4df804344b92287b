package builtin

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// packageHandler handles std::Package by the machine's package manager: apt on Debian and its kin, dnf or yum with rpm.
type packageHandler struct {
	commands *commands
	// mu keeps changes apart: package managers lock each other out.
	mu sync.Mutex
}

type packageResource struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// packageFound is what the package manager says. Newest is asked for only when the latest is wanted.
type packageFound struct {
	want      packageResource
	manager   manager
	installed string
	newest    string
}

// manager is a package manager.
type manager interface {
	// installed returns the version that is installed, empty for none.
	installed(c *sdk.Context, name string) (string, error)
	// newest returns the version that could be installed; empty when it is not known to be another than the installed one.
	newest(c *sdk.Context, name, installed string) (string, error)
	install(c *sdk.Context, name string) error
	upgrade(c *sdk.Context, name string) error
	remove(c *sdk.Context, name string) error
}

var packagePattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.+:~_-]*$`)

func (h *packageHandler) manager() (manager, error) {
	switch {
	case h.commands.has("dpkg-query") && h.commands.has("apt-get"):
		return &apt{h.commands}, nil
	case h.commands.has("rpm") && h.commands.has("dnf"):
		return &rpm{h.commands, "dnf"}, nil
	case h.commands.has("rpm") && h.commands.has("yum"):
		return &rpm{h.commands, "yum"}, nil
	}
	return nil, sdk.Unavailable("this machine has neither apt nor dnf or yum: packages can not be managed")
}

// Read implements [sdk.Handler].
func (h *packageHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	var want packageResource
	if err := r.Decode(&want); err != nil {
		return sdk.Observed{}, err
	}
	if !packagePattern().MatchString(want.Name) {
		return sdk.Observed{}, fmt.Errorf("%q is not the name of a package: %w", want.Name, model.ErrInvalid)
	}
	switch want.State {
	case "installed", "removed", "latest":
	default:
		return sdk.Observed{}, fmt.Errorf("state %q is not installed, removed or latest: %w", want.State, model.ErrInvalid)
	}
	m, err := h.manager()
	if err != nil {
		return sdk.Observed{}, err
	}
	found := packageFound{want: want, manager: m}
	if found.installed, err = m.installed(c, want.Name); err != nil {
		return sdk.Observed{}, err
	}
	if want.State == "latest" && found.installed != "" {
		if found.newest, err = m.newest(c, want.Name, found.installed); err != nil {
			return sdk.Observed{}, err
		}
	}
	return sdk.Observed{Exists: true, Private: found}, nil
}

// Diff implements [sdk.Differ].
func (h *packageHandler) Diff(_ *sdk.Context, _ *sdk.Resource, o sdk.Observed) (model.Diff, error) {
	found, ok := o.Private.(packageFound)
	if !ok {
		return nil, errors.New("the observed state is of another handler")
	}
	d := model.Diff{}
	switch {
	case found.want.State == "removed" && found.installed != "":
		d["state"] = sdk.Changed("installed", "removed")
	case found.want.State != "removed" && found.installed == "":
		d["state"] = sdk.Changed("removed", found.want.State)
	case found.newest != "" && found.newest != found.installed:
		d["state"] = sdk.Changed("installed", "latest")
		d["version"] = sdk.Changed(found.installed, found.newest)
	}
	return d, nil
}

// Change implements [sdk.Handler].
func (h *packageHandler) Change(c *sdk.Context, _ *sdk.Resource, _ model.Change, o sdk.Observed, _ model.Diff) error {
	found, ok := o.Private.(packageFound)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case found.want.State == "removed":
		return found.manager.remove(c, found.want.Name)
	case found.installed == "":
		return found.manager.install(c, found.want.Name)
	}
	return found.manager.upgrade(c, found.want.Name)
}

// must runs a package manager's command and fails when it does.
func must(c *sdk.Context, commands *commands, env map[string]string, args ...string) error {
	out, err := commands.run(c, command{args: args, env: env})
	if err != nil {
		return err
	}
	if out.code != 0 {
		logOutput(c, model.LevelError, strings.Join(args, " "), out)
		return sdk.Coded("exit-status", fmt.Errorf("%s ended with status %d", strings.Join(args, " "), out.code))
	}
	logOutput(c, model.LevelInfo, strings.Join(args, " "), out)
	return nil
}

// apt is the package manager of Debian and its kin.
type apt struct{ commands *commands }

// aptEnvironment keeps apt from asking questions, aptOptions keep changed configuration files, and wait for other runs of apt.
var (
	aptEnvironment = map[string]string{"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
	aptOptions     = []string{
		"--yes", "--quiet", "--option", "Dpkg::Options::=--force-confdef", "--option", "Dpkg::Options::=--force-confold",
		"--option", "DPkg::Lock::Timeout=120",
	}
)

func (m *apt) installed(c *sdk.Context, name string) (string, error) {
	out, err := m.commands.run(c, command{
		args: []string{"dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}\n", "--", name},
		env:  aptEnvironment,
	})
	if err != nil {
		return "", err
	}
	if out.code != 0 && out.code != 1 {
		logOutput(c, model.LevelError, "dpkg-query", out)
		return "", fmt.Errorf("asking dpkg about %s: dpkg-query ended with status %d", name, out.code)
	}
	for line := range strings.Lines(out.stdout) {
		if status, version, _ := strings.Cut(strings.TrimSpace(line), " "); status == "installed" {
			return version, nil
		}
	}
	return "", nil
}

func (m *apt) newest(c *sdk.Context, name, _ string) (string, error) {
	out, err := m.commands.run(c, command{args: []string{"apt-cache", "policy", "--", name}, env: aptEnvironment})
	if err != nil {
		return "", err
	}
	if out.code != 0 {
		logOutput(c, model.LevelError, "apt-cache policy", out)
		return "", fmt.Errorf("asking apt about %s: apt-cache ended with status %d", name, out.code)
	}
	for line := range strings.Lines(out.stdout) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok && version != "(none)" {
			return version, nil
		}
	}
	return "", nil
}

// install installs a package; when that fails it is tried again with fresh lists, which may be older than the package.
func (m *apt) install(c *sdk.Context, name string) error {
	if err := m.get(c, "install", name); err == nil {
		return nil
	}
	c.Infof("Reading the package lists again.")
	if err := must(c, m.commands, aptEnvironment, append(append([]string{"apt-get"}, aptOptions...), "update")...); err != nil {
		return err
	}
	return m.get(c, "install", name)
}

func (m *apt) upgrade(c *sdk.Context, name string) error {
	return m.get(c, "install", "--only-upgrade", name)
}

func (m *apt) remove(c *sdk.Context, name string) error { return m.get(c, "remove", name) }

func (m *apt) get(c *sdk.Context, verb string, rest ...string) error {
	args := append(append([]string{"apt-get"}, aptOptions...), verb)
	return must(c, m.commands, aptEnvironment, append(args, rest...)...)
}

// rpm is the package manager of Red Hat and its kin; tool is dnf or yum.
type rpm struct {
	commands *commands
	tool     string
}

var rpmEnvironment = map[string]string{"LC_ALL": "C"}

func (m *rpm) installed(c *sdk.Context, name string) (string, error) {
	out, err := m.commands.run(c, command{args: []string{"rpm", "--query", "--queryformat", "%{EVR}\n", "--", name}, env: rpmEnvironment})
	if err != nil {
		return "", err
	}
	if out.code != 0 {
		return "", nil
	}
	version, _, _ := strings.Cut(out.stdout, "\n")
	return version, nil
}

// updatesAvailable is the status with which check-update says so.
const updatesAvailable = 100

func (m *rpm) newest(c *sdk.Context, name, installed string) (string, error) {
	out, err := m.commands.run(c, command{args: []string{m.tool, "--quiet", "check-update", name}, env: rpmEnvironment})
	if err != nil {
		return "", err
	}
	switch out.code {
	case 0:
		return installed, nil
	case updatesAvailable:
	default:
		logOutput(c, model.LevelError, m.tool+" check-update", out)
		return "", fmt.Errorf("asking %s about %s: it ended with status %d", m.tool, name, out.code)
	}
	for line := range strings.Lines(out.stdout) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if base, _, _ := strings.Cut(fields[0], "."); base == name || strings.HasPrefix(fields[0], name+".") {
			return fields[1], nil
		}
	}
	return installed, nil
}

func (m *rpm) install(c *sdk.Context, name string) error { return m.do(c, "install", name) }
func (m *rpm) upgrade(c *sdk.Context, name string) error { return m.do(c, "upgrade", name) }
func (m *rpm) remove(c *sdk.Context, name string) error  { return m.do(c, "remove", name) }

func (m *rpm) do(c *sdk.Context, verb, name string) error {
	return must(c, m.commands, rpmEnvironment, m.tool, "--assumeyes", "--quiet", verb, name)
}

var (
	_ sdk.Handler = (*packageHandler)(nil)
	_ sdk.Differ  = (*packageHandler)(nil)
	_ manager     = (*apt)(nil)
	_ manager     = (*rpm)(nil)
)
