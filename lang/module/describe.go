package module

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// requirementsFile lists the Python packages of a project or a module of the layout V1.
const requirementsFile = "requirements.txt"

// Description is what a tree that holds a module says about it.
type Description struct {
	Metadata
	Layout Layout
	// Modules and Packages are what the module requires. Extras of a package may apply to a module too.
	Modules  []Requirement
	Packages []Requirement
}

// Describe reads what a tree says about the module in it: a module.yml makes it one of the layout V1, a pyproject.toml or
// setup.cfg one of the layout V2.
func Describe(root fs.FS) (Description, error) {
	var d Description
	switch {
	case isFile(root, v1File):
		meta, ds := readV1(root, v1File)
		if ds.HasErrors() {
			return d, errors.New(strings.Join(strings.Fields(ds.Errors()[0].Message), " "))
		}
		d.Metadata, d.Layout = meta, LayoutV1
	case isFile(root, setupFile), isFile(root, projectFile):
		d.Metadata, d.Layout = readV2(root), LayoutV2
	default:
		return d, fmt.Errorf("it has neither %s nor %s nor %s", v1File, projectFile, setupFile)
	}
	if err := CheckModuleName(d.Name); err != nil {
		return d, err
	}
	if !isFile(root, "model/_init.cf") && !isFile(root, path.Join(packages, d.Name, "model/_init.cf")) {
		return d, errors.New("it has no model/_init.cf")
	}
	own := len(d.Requires)
	if d.Layout == LayoutV1 {
		lines, err := ReadRequirements(root)
		if err != nil {
			return d, err
		}
		d.Requires = append(slices.Clip(d.Requires), lines...)
	}
	for i, text := range d.Requires {
		r, err := ParseRequirement(text)
		if err != nil {
			return d, err
		}
		switch name := NameOf(r.Name); {
		case name != "":
			r.Name = name
			d.Modules = append(d.Modules, r)
		case d.Layout == LayoutV1 && i < own: // module.yml speaks of modules alone
			d.Modules = append(d.Modules, r)
		default:
			d.Packages = append(d.Packages, r)
		}
	}
	return d, nil
}

// ReadRequirements reads the requirements.txt of a project or module: one requirement per line. Without the file there are
// none. Options of pip are refused: where packages come from is up to project.yml.
func ReadRequirements(root fs.FS) ([]string, error) {
	src, err := readLimited(root, requirementsFile, maxMetadata)
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	number := 0
	text := strings.ReplaceAll(strings.ReplaceAll(string(src), "\r\n", "\n"), "\\\n", " ")
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(" "+line, " #")
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "-"):
			return nil, fmt.Errorf("%s: line %d: options such as %q have no effect here: set where packages come from in project.yml, below pip", requirementsFile, number, strings.Fields(line)[0])
		}
		if _, err := ParseRequirement(line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", requirementsFile, number, err)
		}
		out = append(out, line)
	}
	return out, nil
}

// pyproject is the part of pyproject.toml that is of use.
type pyproject struct {
	Project struct {
		Name         string   `toml:"name"`
		Version      string   `toml:"version"`
		Description  string   `toml:"description"`
		License      any      `toml:"license"`
		Dependencies []string `toml:"dependencies"`
	} `toml:"project"`
}

// readProject reads a pyproject.toml with a table project.
func readProject(src []byte) Metadata {
	var p pyproject
	if toml.Unmarshal(src, &p) != nil {
		return Metadata{} // an installed package has been checked when it was built; others lack a name then
	}
	license, _ := p.Project.License.(string)
	if m, ok := p.Project.License.(map[string]any); ok {
		license, _ = m["text"].(string)
	}
	return Metadata{
		Name: p.Project.Name, Version: p.Project.Version, Description: p.Project.Description, License: license, Requires: p.Project.Dependencies,
	}
}

// Checkouts are the modules in the directories of the module path, by name, with the path of each. The first one counts.
func Checkouts(project fs.FS, m *Manifest) map[string]string {
	out := map[string]string{}
	for _, dir := range m.ModulePath {
		entries, err := fs.ReadDir(project, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			if out[e.Name()] != "" || !isDir(project, at) || CheckModuleName(e.Name()) != nil {
				continue
			}
			for _, f := range []string{v1File, setupFile, projectFile} {
				if isFile(project, path.Join(at, f)) {
					out[e.Name()] = at
					break
				}
			}
		}
	}
	return out
}
