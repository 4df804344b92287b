package model

import (
	"crypto/sha1" //nolint:gosec // module code is addressed by SHA-1, as in the reference
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of the code of one module. A version that is beyond them is refused: no agent could be expected to load it.
const (
	// MaxCodeFiles is the number of source files of a module.
	MaxCodeFiles = 5000
	// MaxCodeRequirements is the number of packages that a module may ask for.
	MaxCodeRequirements = 500
	// MaxCodeTypes is the number of resource types, references and mutators of a module.
	MaxCodeTypes = 5000
	// MaxCodeText is the size in bytes of one name or requirement.
	MaxCodeText = 1000
)

// ModuleCode is the Python code of one module, as it is shipped to the agents whose resources need it (Python API reference,
// section 11).
type ModuleCode struct {
	// Module is the module's name, the part after inmanta_plugins.
	Module string `json:"module"`
	// Digest is [ModuleCode.Sum]: the module's code and requirements.
	Digest string `json:"digest"`
	// Files are all Python sources of the module, sorted by name.
	Files []CodeFile `json:"files"`
	// Requirements are the packages that the code needs, as requirement strings of PEP 508, sorted.
	Requirements []string `json:"requirements"`
	// Types names the resource types, references and mutators that the module defines or handles, sorted: an agent needs the
	// module when one of its resources names one of them.
	Types []string `json:"types"`
}

// CodeFile is one Python source.
type CodeFile struct {
	// Name is the Python module's dotted name, such as inmanta_plugins.fabric.vlan.
	Name string `json:"name"`
	// Hash is the SHA-1 of the content in hex; the content is in the file storage.
	Hash string `json:"hash"`
}

// Sum computes the digest: the SHA-1 over the sorted hashes of the files and then the sorted requirements. The names count
// too, because the same contents under other names are another program.
func (m ModuleCode) Sum() string {
	lines := make([]string, 0, len(m.Files))
	for _, f := range m.Files {
		lines = append(lines, f.Hash+" "+f.Name)
	}
	slices.Sort(lines)
	sum := sha1.New() //nolint:gosec // see the import
	for _, l := range append(lines, slices.Sorted(slices.Values(m.Requirements))...) {
		_, _ = sum.Write([]byte(l + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

var (
	moduleNamePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	codeNamePattern   = regexp.MustCompile(`^inmanta_plugins(\.[\p{L}_][\p{L}\p{N}_]*)+$`)
	codeHashPattern   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Validate checks names, hashes and sizes, as whoever takes code in from outside must. It fails with [ErrInvalid].
func (m ModuleCode) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("code of module %q: %s: %w", m.Module, fmt.Sprintf(format, args...), ErrInvalid)
	}
	switch {
	case !moduleNamePattern.MatchString(m.Module) || len(m.Module) > MaxCodeText:
		return bad("the name of a module is one Python identifier")
	case len(m.Files) > MaxCodeFiles:
		return bad("%d files, at most %d", len(m.Files), MaxCodeFiles)
	case len(m.Requirements) > MaxCodeRequirements:
		return bad("%d requirements, at most %d", len(m.Requirements), MaxCodeRequirements)
	case len(m.Types) > MaxCodeTypes:
		return bad("%d types, at most %d", len(m.Types), MaxCodeTypes)
	}
	root := "inmanta_plugins." + m.Module
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		switch {
		case len(f.Name) > MaxCodeText || !codeNamePattern.MatchString(f.Name):
			return bad("%q is not the dotted name of a Python module below inmanta_plugins", f.Name)
		case f.Name != root && !strings.HasPrefix(f.Name, root+"."):
			return bad("%s is not below %s", f.Name, root)
		case seen[f.Name]:
			return bad("%s is there twice", f.Name)
		case !codeHashPattern.MatchString(f.Hash):
			return bad("the hash %q of %s is not a SHA-1 in lower-case hex", f.Hash, f.Name)
		}
		seen[f.Name] = true
	}
	for _, t := range append(slices.Clone(m.Requirements), m.Types...) {
		if t == "" || len(t) > MaxCodeText || strings.ContainsAny(t, "\x00\r\n") {
			return bad("%.80q is empty, too long, or more than one line", t)
		}
		if strings.HasPrefix(strings.TrimSpace(t), "-") {
			return bad("%.80q is an option of pip, not a requirement", t)
		}
	}
	if want := m.Sum(); m.Digest != want {
		return bad("its digest is %s, not %q", want, m.Digest)
	}
	return nil
}

// Canonical sorts the parts and fills the digest, so that equal code is equal.
func (m ModuleCode) Canonical() ModuleCode {
	m.Files = slices.SortedFunc(slices.Values(m.Files), func(a, b CodeFile) int { return strings.Compare(a.Name, b.Name) })
	m.Requirements = slices.Compact(slices.Sorted(slices.Values(m.Requirements)))
	m.Types = slices.Compact(slices.Sorted(slices.Values(m.Types)))
	m.Digest = m.Sum()
	return m
}
