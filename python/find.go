package python

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// candidates are the names under which an interpreter is looked for, best first.
var candidates = []string{"python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python"}

// NotFoundError says that there is no Python interpreter.
type NotFoundError struct {
	// Name is the interpreter that was asked for; empty when any would do.
	Name string
	Err  error
}

func (e *NotFoundError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("the Python interpreter %s can not be used: %v; set compiler.python to the path of Python 3.9 or later", e.Name, e.Err)
	}
	return "there is no Python interpreter (" + strings.Join(candidates[:1], ", ") + ") on this machine's PATH; install Python 3.9 or later, or set compiler.python to its path"
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// Find returns the path of an interpreter: of the one that is named, or of the first of the usual names that is on the PATH. It
// does not run it: [Start] reports one that is too old. The error is a [*NotFoundError].
func Find(name string) (string, error) {
	if name != "" {
		p, err := exec.LookPath(name)
		if err != nil {
			return "", &NotFoundError{Name: name, Err: err}
		}
		return p, nil
	}
	for _, c := range candidates {
		if p, err := exec.LookPath(c); err == nil {
			return p, nil
		}
	}
	return "", &NotFoundError{Err: exec.ErrNotFound}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
