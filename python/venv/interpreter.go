package venv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// interpreter is what a Python says about itself.
type interpreter struct {
	Executable     string `json:"executable"`
	Implementation string `json:"implementation"`
	// Version is the full one, such as 3.12.1; Platform such as linux-x86_64.
	Version  string `json:"version"`
	Platform string `json:"platform"`
	// Pip is the version of the interpreter's pip, empty without one. Ensurepip says that it can install one.
	Pip       string `json:"pip"`
	Ensurepip bool   `json:"ensurepip"`
}

const probeScript = `
import json, platform, sys, sysconfig
pip = ""
try:
    from importlib.metadata import version
    pip = version("pip")
except Exception:
    pass
try:
    import ensurepip
except ImportError:
    ensurepip = None
print(json.dumps({
    "executable": sys.executable, "implementation": sys.implementation.name, "version": platform.python_version(),
    "platform": sysconfig.get_platform(), "pip": pip, "ensurepip": ensurepip is not None,
}))
`

// probeTimeout bounds asking an interpreter about itself.
const probeTimeout = 30 * time.Second

var versionForm = lazyregexp.New(`^3(\.\d+)?$`)

// minimum is the lowest minor version of Python 3 that is supported.
const minimum = 9

// Interpreter describes a Python.
type Interpreter struct {
	// Executable is its path.
	Executable string
	// Version is the full one, such as 3.12.1; Platform is such as linux-x86_64.
	Version, Platform string
}

// FindPython starts an interpreter, named as in [Spec].Python, and returns what it says about itself. It fails with
// [model.ErrInvalid] when there is none of that name or it is too old.
func FindPython(name string) (Interpreter, error) {
	py, err := probe(name)
	return Interpreter{py.Executable, py.Version, py.Platform}, err
}

// probe starts an interpreter and asks it about itself.
func probe(name string) (interpreter, error) {
	command := name
	switch {
	case command == "":
		command = "python3"
	case versionForm().MatchString(command):
		command = "python" + command
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return interpreter{}, fmt.Errorf("there is no Python %q on this machine: install it, or name another one: %w", command, model.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "-I", "-c", probeScript).Output()
	if err != nil {
		detail := err.Error()
		if x, ok := errors.AsType[*exec.ExitError](err); ok && len(x.Stderr) > 0 {
			detail = lastLine(string(x.Stderr))
		}
		return interpreter{}, fmt.Errorf("starting Python %s: %s: %w", path, detail, model.ErrInvalid)
	}
	var py interpreter
	if err := json.Unmarshal(out, &py); err != nil {
		return interpreter{}, fmt.Errorf("%s did not answer like a Python: %w", path, model.ErrInvalid)
	}
	var major, minor int
	if _, err := fmt.Sscanf(py.Version, "%d.%d", &major, &minor); err != nil || major != 3 || minor < minimum {
		return interpreter{}, fmt.Errorf("%s is Python %s: 3.%d or newer is needed: %w", path, py.Version, minimum, model.ErrInvalid)
	}
	return py, nil
}

// pipAtLeast reports whether a version of pip is not older than another one.
func pipAtLeast(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n == 0 {
		return false
	}
	return a > major || a == major && b >= minor
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
