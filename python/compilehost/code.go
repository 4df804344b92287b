package compilehost

import (
	"crypto/sha1" // the file storage addresses contents by it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// Limits of the Python code of a module.
const (
	maxFiles = model.MaxCodeFiles
	maxFile  = 16 << 20  // bytes of a source file
	maxTree  = 256 << 20 // bytes of a module that has to be copied
)

// code is the Python code of a module.
type code struct {
	m     *module.Module
	files []source
}

// source is a Python file.
type source struct {
	name string // of the Python module, such as inmanta_plugins.fabric.vlan
	path string // within the module's tree, or within root
	root fs.FS  // the tree of a package that the module brings besides; nil for the module's own
}

// read reads the text of a source.
func (c *code) read(s source) ([]byte, error) {
	if s.root != nil {
		return readSource(s.root, s.path)
	}
	return readSource(c.m.Root, s.path)
}

// addPackage adds the sources of a package that the module brings besides its plugins. They are not imported by themselves.
func (c *code) addPackage(name, dir string) error {
	root := os.DirFS(dir)
	other := &code{m: &module.Module{Root: root}}
	if err := other.find(".", name); err != nil {
		return fmt.Errorf("looking for the package %s of module %s: %w", name, c.m.Name, err)
	}
	for _, f := range other.files {
		c.files = append(c.files, source{f.name, f.path, root})
	}
	return nil
}

func (c *code) display(s source) string { return path.Join(c.m.Dir, s.path) }

// findCode lists the modules that have Python code, in the order in which they were loaded; none when all their files are blank, as
// the __init__.py of a module without plugins is: to start Python takes longer than most compiles.
func findCode(p *module.Program) ([]*code, error) {
	var out []*code
	for _, m := range p.Modules {
		if m.Plugins == "" || m.Layout == module.LayoutBuiltin || m.Layout == module.LayoutProject {
			continue
		}
		c := &code{m: m}
		err := c.find(m.Plugins, "inmanta_plugins."+m.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for the Python code of module %s: %w", m.Name, err)
		}
		if len(c.files) > 0 {
			out = append(out, c)
		}
	}
	if !slices.ContainsFunc(out, (*code).acts) {
		out = nil
	}
	return out, nil
}

// acts reports whether there is anything but blank lines and comments in a file. What can not be read is reported when it is run.
func (c *code) acts() bool {
	return slices.ContainsFunc(c.files, func(f source) bool {
		text, err := readSource(c.m.Root, f.path)
		return err != nil || acting().Match(text)
	})
}

// acting finds a line with code.
var acting = lazyregexp.New(`(?m)^[ \t\f\r]*[^# \t\f\r\n]`)

var identifier = lazyregexp.New(`^[\p{L}_][\p{L}\p{N}_]*$`)

// find lists the sources of a directory: its package first, then its files, then those of the directories in it.
func (c *code) find(dir, pkg string) error {
	entries, err := fs.ReadDir(c.m.Root, dir)
	if err != nil {
		return err
	}
	var dirs []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			// What an installed module has besides code.
			if c.m.Plugins == "." && dir == "." && slices.Contains([]string{"model", "files", "templates"}, name) {
				continue
			}
			if identifier().MatchString(name) && name != "__pycache__" {
				dirs = append(dirs, name)
			}
		case name == "__init__.py":
			c.files = slices.Insert(c.files, c.first(pkg), source{name: pkg, path: path.Join(dir, name)})
		case path.Ext(name) == ".py" && identifier().MatchString(strings.TrimSuffix(name, ".py")):
			c.files = append(c.files, source{name: pkg + "." + strings.TrimSuffix(name, ".py"), path: path.Join(dir, name)})
		}
		if len(c.files) > maxFiles {
			return fmt.Errorf("it has more than %d Python files", maxFiles)
		}
	}
	for _, d := range dirs {
		if err := c.find(path.Join(dir, d), pkg+"."+d); err != nil {
			return err
		}
	}
	return nil
}

// first is where the files of a package begin.
func (c *code) first(pkg string) int {
	i := slices.IndexFunc(c.files, func(s source) bool { return strings.HasPrefix(s.name, pkg+".") })
	if i < 0 {
		return len(c.files)
	}
	return i
}

// decorated finds the first function with the decorator of plugins.
var decorated = lazyregexp.New(`(?m)^@(?:plugins\.)?plugin\b[^\n]*\n(?:[@ \t][^\n]*\n)*(?:async )?def (\w+)`)

// refuse says which code would have to be run.
func refuse(mods []*code) diag.List {
	var ds diag.List
	for _, c := range mods {
		at := diag.Range{File: c.display(c.files[0])}
		what := "Python code"
		for _, f := range c.files {
			text, err := readSource(c.m.Root, f.path)
			if err != nil {
				continue
			}
			if m := decorated().FindSubmatchIndex(text); m != nil {
				line := 1 + strings.Count(string(text[:m[2]]), "\n")
				space := strings.ReplaceAll(strings.TrimPrefix(f.name, "inmanta_plugins."), ".", "::")
				what = "the Python plugin " + space + "::" + string(text[m[2]:m[3]])
				at = diag.Range{File: c.display(f), Start: diag.Position{Line: line}, End: diag.Position{Line: line}}
				break
			}
		}
		d := diag.Errorf("PluginModuleLoadException", at, "Module %s needs %s, and running Python is switched off", c.m.Name, what)
		ds.Add(d.WithHint("compile without --no-python, or do without the module"))
	}
	return ds
}

func readSource(root fs.FS, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return text, nil
}

// ship makes what agents need of the modules: all sources of each, with the types that they define.
func ship(mods []*code, types map[string][]string) ([]model.ModuleCode, []model.File, error) {
	var out []model.ModuleCode
	contents := map[string][]byte{}
	for _, c := range mods {
		mc := model.ModuleCode{Module: c.m.Name, Types: types[c.m.Name], Requirements: requirements(c.m)}
		for _, f := range c.files {
			text, err := c.read(f)
			if err != nil {
				return nil, nil, fmt.Errorf("reading the code of module %s: %w", c.m.Name, err)
			}
			sum := sha1.Sum(text)
			hash := hex.EncodeToString(sum[:])
			contents[hash] = text
			mc.Files = append(mc.Files, model.CodeFile{Name: f.name, Hash: hash, Package: path.Base(f.path) == "__init__.py"})
		}
		out = append(out, mc.Canonical())
	}
	files := make([]model.File, 0, len(contents))
	for hash, text := range contents {
		files = append(files, model.File{Hash: hash, Content: text})
	}
	slices.SortFunc(files, func(a, b model.File) int { return strings.Compare(a.Hash, b.Hash) })
	return out, files, nil
}

// requirements are the Python packages that a module says it needs. A V1 module says so in requirements.txt, one line each; of a
// V2 module its metadata has them. What it says of inmanta-core and of other modules tells agents which packages it expects besides.
func requirements(m *module.Module) []string {
	lines := m.Metadata.Requires
	if m.Layout == module.LayoutV1 {
		text, err := readSource(m.Root, "requirements.txt")
		if err != nil {
			return nil
		}
		lines = nil
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, " #")
			lines = append(lines, line)
		}
	}
	var out []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '-' {
			continue
		}
		out = append(out, line)
	}
	return out
}

// copyTree writes a tree to a new directory. Links and the like are left out.
func copyTree(dir string, root fs.FS) error {
	total := int64(0)
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := readSource(root, name)
		if err != nil {
			return err
		}
		if total += int64(len(text)); total > maxTree {
			return fmt.Errorf("it has more than %d bytes", maxTree)
		}
		return os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), text, 0o600)
	})
}
