package module

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/intendant/intendant/lazyregexp"
)

// LockFile is the file that says exactly what a project's modules and packages are. It stands next to project.yml and is
// committed with it.
const LockFile = "intendant.lock"

// Lock is the content of [LockFile].
type Lock struct {
	// Version is that of the file's form: 1.
	Version int `yaml:"version"`
	// Asked is a digest of what the project asked for when the lock was made: a lock whose digest is another one is out of date.
	Asked string `yaml:"asked"`
	// Modules are the modules, sorted by name.
	Modules []LockedModule `yaml:"modules"`
	// Python is the environment of Python packages; nil when the project needs none.
	Python *LockedPython `yaml:"python,omitempty"`
}

// Sources of a module that is not fetched from a repository.
const (
	// SourceEditable is a checkout within the project, whose content is not locked.
	SourceEditable = "editable"
	// SourceIndex is a package index: the module is one of the Python packages.
	SourceIndex = "index"
	// SourceBuiltin is the program itself.
	SourceBuiltin = "builtin"
)

// LockedModule is one module.
type LockedModule struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	Layout  Layout `yaml:"layout"`
	// Source is the address of a git repository without credentials, or one of the sources above.
	Source string `yaml:"source"`
	// Path is where a checkout is, relative to the project.
	Path string `yaml:"path,omitempty"`
	// Ref is the tag or branch that the commit was found at.
	Ref    string `yaml:"ref,omitempty"`
	Commit string `yaml:"commit,omitempty"`
	// Digest covers the paths, modes and contents of the module's files: sha256: and hexadecimal digits.
	Digest string `yaml:"digest,omitempty"`
	// RequiredBy says who asked for it, and for which versions.
	RequiredBy []string `yaml:"required_by,omitempty"`
}

// LockedPython is an environment of Python packages.
type LockedPython struct {
	// Version and Platform are those of the interpreter that the packages were chosen for. Digests are checked for the same only:
	// other ones get other files.
	Version      string          `yaml:"version"`
	Platform     string          `yaml:"platform"`
	Requirements []string        `yaml:"requirements"`
	Packages     []LockedPackage `yaml:"packages"`
}

// LockedPackage is a Python package.
type LockedPackage struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	// File is what was installed, with its digest, where the installer tells.
	File   string `yaml:"file,omitempty"`
	SHA256 string `yaml:"sha256,omitempty"`
}

// Git reports whether the module comes from a repository.
func (m LockedModule) Git() bool { return m.Commit != "" }

// Module returns a module of the lock by its name.
func (l *Lock) Module(name string) (LockedModule, bool) {
	if l == nil {
		return LockedModule{}, false
	}
	i := slices.IndexFunc(l.Modules, func(m LockedModule) bool { return m.Name == name })
	if i < 0 {
		return LockedModule{}, false
	}
	return l.Modules[i], true
}

// Trivial reports whether the lock says nothing that the project does not say itself: it has no packages, and its modules are built
// in or checkouts in the layout V1.
func (l *Lock) Trivial() bool {
	return l == nil || l.Python == nil && !slices.ContainsFunc(l.Modules, func(m LockedModule) bool {
		return m.Source != SourceBuiltin && (m.Source != SourceEditable || m.Layout == LayoutV2)
	})
}

// lockHead is what people read first.
const lockHead = `# The exact modules and packages of this project. Made by "intendant project install" and "intendant project update":
# commit it, and change project.yml instead of this file.
`

// Encode gives the text of the file: the same for the same content.
func (l *Lock) Encode() ([]byte, error) {
	c := *l
	c.Version = 1
	c.Modules = slices.SortedFunc(slices.Values(l.Modules), func(a, b LockedModule) int { return cmp.Compare(a.Name, b.Name) })
	if l.Python != nil {
		p := *l.Python
		p.Packages = slices.SortedFunc(slices.Values(p.Packages), func(a, b LockedPackage) int { return cmp.Compare(a.Name, b.Name) })
		c.Python = &p
	}
	var b bytes.Buffer
	b.WriteString(lockHead)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&c), e.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", LockFile, err)
	}
	return b.Bytes(), nil
}

// maxLock bounds the file, in bytes.
const maxLock = 16 << 20

// ReadLock reads a project's lock. It is nil when there is none.
func ReadLock(project fs.FS) (*Lock, error) {
	src, err := readLimited(project, LockFile, maxLock)
	if isNotExist(err) {
		return nil, nil //nolint:nilnil // a project without a lock is nothing wrong
	}
	if err != nil {
		return nil, err
	}
	l, err := ParseLock(src)
	if err != nil {
		return nil, fmt.Errorf("%s can not be used: %w; make it again with intendant project update", LockFile, err)
	}
	return l, nil
}

var (
	moduleForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	commitForm = lazyregexp.New(`^[0-9a-f]{40}$`)
	digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
	hashForm   = lazyregexp.New(`^[0-9a-f]{64}$`)
	fileForm   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+!-]{0,255}$`)
)

// CheckModuleName reports whether a text may be the name of a module.
func CheckModuleName(name string) error {
	if !moduleForm().MatchString(name) {
		return fmt.Errorf("%.80q is no name of a module: use letters, digits and underscores", name)
	}
	return nil
}

// ParseLock reads the text of a lock and refuses what could not have been written by [Lock.Encode].
func ParseLock(src []byte) (*Lock, error) {
	var l Lock
	d := yaml.NewDecoder(bytes.NewReader(src))
	d.KnownFields(true)
	if err := d.Decode(&l); errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	} else if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
	}
	if l.Version != 1 {
		return nil, fmt.Errorf("its form has version %d: this program knows version 1", l.Version)
	}
	if !digestForm().MatchString(l.Asked) {
		return nil, errors.New("the key asked is no digest")
	}
	seen := map[string]bool{}
	for _, m := range l.Modules {
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("module %.80q: %w", m.Name, err)
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("module %s occurs twice", m.Name)
		}
		seen[m.Name] = true
	}
	if l.Python == nil {
		return &l, nil
	}
	for _, p := range l.Python.Packages {
		_, err := ParseVersion(p.Version)
		if err != nil || p.Name != normalise(p.Name) || requirementForm().FindStringSubmatch(p.Name) == nil || strings.ContainsAny(p.Name, " [") ||
			p.SHA256 != "" && !hashForm().MatchString(p.SHA256) || p.File != "" && !fileForm().MatchString(p.File) {
			return nil, fmt.Errorf("package %.80q can not have been locked like this", p.Name)
		}
	}
	return &l, nil
}

func (m LockedModule) check() error {
	if err := CheckModuleName(m.Name); err != nil {
		return err
	}
	if m.Layout != LayoutV1 && m.Layout != LayoutV2 && m.Layout != LayoutBuiltin {
		return fmt.Errorf("there is no layout %q", m.Layout)
	}
	switch m.Source {
	case SourceBuiltin, SourceIndex:
		return nil
	case SourceEditable:
		if !fs.ValidPath(m.Path) || path.Base(m.Path) != m.Name {
			return fmt.Errorf("the path %q is not that of a checkout", m.Path)
		}
		return nil
	}
	switch {
	case m.Source == "":
		return errors.New("it has no source")
	case !commitForm().MatchString(m.Commit):
		return errors.New("its commit is no full object id")
	case !digestForm().MatchString(m.Digest):
		return errors.New("its digest is none")
	}
	return nil
}
