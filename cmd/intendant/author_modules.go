package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/modules"
	"github.com/intendant/intendant/python/venv"
)

// imported are the modules that a module under test imports and that do not come with the program.
type imported struct {
	// trees are those from repositories.
	trees []modules.PlacedModule
	// wanted are requirements: the packages of other modules, and what the trees require.
	wanted []string
}

// fetchImports fetches the modules that the model of a module imports, and what those import: from the given repositories, else from
// the package index.
func (f *testFlags) fetchImports(ctx context.Context, c *config.Config, root fs.FS, about module.Description, stderr io.Writer) (imported, error) {
	var out imported
	if !slices.Contains(module.InstallModes, f.installMode) {
		return out, &exitError{code: exitUsage, err: fmt.Errorf("--install-mode is %s, and can be %s", f.installMode, strings.Join(module.InstallModes, ", "))}
	}
	dir, err := os.MkdirTemp("", "intendant-test-")
	if err != nil {
		return out, fmt.Errorf("preparing the modules of the tests: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, err := testIndex(c)
	if err != nil {
		return out, err
	}
	if err := f.testProject(dir, root, about, index.UseSystemConfig); err != nil {
		return out, fmt.Errorf("preparing the modules of the tests: %w", err)
	}
	project, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("preparing the modules of the tests: %w", err)
	}
	defer func() { _ = project.Close() }()
	src, err := newModuleSource(c, false)
	if err != nil {
		return out, err
	}
	defer src.close()
	var said bytes.Buffer
	stage := func(_, _ string, work func(ctx context.Context, out io.Writer) error) error { return work(ctx, &said) }
	res, err := src.Install(ctx, modules.Request{Project: project.FS(), Dir: dir, Stage: stage, NoPackages: true})
	if err != nil {
		_, _ = said.WriteTo(stderr)
		return out, moduleError(err)
	}
	// What is found nowhere may be a module that a test makes; a compile says where it is missing.
	for _, lost := range res.Lost {
		_, _ = fmt.Fprintln(stderr, "warning:", lost)
	}
	if res.Lock == nil {
		return out, nil
	}
	for _, m := range res.Lock.Modules {
		if m.Source == module.SourceIndex {
			out.wanted = append(out.wanted, module.PackageOf(m.Name))
		}
	}
	for _, m := range res.Placement.Modules {
		if m.Name == about.Name {
			continue
		}
		d, err := module.Describe(os.DirFS(m.Dir))
		if err != nil {
			return out, fmt.Errorf("module %s: %w", m.Name, err)
		}
		out.trees = append(out.trees, m)
		for _, p := range d.Packages {
			out.wanted = append(out.wanted, p.Text)
		}
	}
	return out, nil
}

// testIndex says where the packages of tests come from.
func testIndex(c *config.Config) (venv.Index, error) {
	index, err := packageIndex(c)
	if err == nil && index.URL == "" && !index.NoIndex && len(index.FindLinks) == 0 {
		index.UseSystemConfig = true // who tests a module of their own has pip set up
	}
	return index, err
}

// testProject makes a project in a directory that imports the module under test, and has of it what decides what is fetched.
func (f *testFlags) testProject(dir string, root fs.FS, about module.Description, systemConfig bool) error {
	mentioned, err := mentionedIn(root)
	if err != nil {
		return err
	}
	main := "import " + strings.Join(append([]string{about.Name}, mentioned...), "\nimport ") + "\n"
	manifest := map[string]any{"name": "tests", "modulepath": "libs", "downloadpath": "libs", "install_mode": f.installMode}
	if len(f.repos) > 0 {
		manifest["repo"] = f.repos
	}
	if systemConfig {
		manifest["pip"] = map[string]any{"use_system_config": true}
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("writing project.yml: %w", err)
	}
	at := filepath.Join(dir, "libs", about.Name)
	err = errors.Join(
		os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(dir, "project.yml"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "main.cf"), []byte(main), 0o600),
	)
	for _, name := range []string{"module.yml", "setup.cfg", "pyproject.toml", "requirements.txt"} {
		text, readErr := fs.ReadFile(root, name)
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(at, name), text, 0o600))
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	for _, name := range []string{"model", filepath.Join("inmanta_plugins", about.Name, "model")} {
		model, err := fs.Sub(root, filepath.ToSlash(name))
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		if _, err := fs.Stat(model, "."); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.CopyFS(filepath.Join(at, name), model); err != nil {
			return err //nolint:wrapcheck // it names the file
		}
	}
	return nil
}

// testTexts matches the long texts of Python sources, testImports the imports of models in them; shortImports matches a short text that
// begins with one.
var (
	shortImports = lazyregexp.New(`["']import[ \t]+([a-z_][a-z0-9_]*)`)

	testTexts   = lazyregexp.New(`"""(?s:.*?)"""|'''(?s:.*?)'''`)
	testImports = lazyregexp.New(`(?m)^(?:"""|''')?[ \t]*import[ \t]+([a-z_][a-z0-9_]*)(?:::[a-z0-9_:]+)?(?:[ \t]+as[ \t]+[a-z_][a-z0-9_]*)?[ \t]*$`)
)

// mentionedIn lists the modules that the models in a module's tests import, sorted, but for those that the tests have anyway.
func mentionedIn(root fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(root, "tests", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.Type().IsRegular() || path.Ext(name) != ".py":
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		for _, m := range shortImports().FindAllSubmatch(text, -1) {
			out = append(out, string(m[1]))
		}
		for _, model := range testTexts().FindAll(text, -1) {
			for _, m := range testImports().FindAllSubmatch(model, -1) {
				out = append(out, string(m[1]))
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name == module.Std || name == "unittest" }), err
}

// writeTrees writes where modules are to a file that the fixture project reads, and returns its path; none for none. It ends with
// cleanup.
func writeTrees(trees []modules.PlacedModule) (path string, cleanup func(), err error) {
	if len(trees) == 0 {
		return "", func() {}, nil
	}
	text, err := json.Marshal(trees)
	if err != nil {
		return "", nil, fmt.Errorf("saying where modules are: %w", err)
	}
	file, err := os.CreateTemp("", "intendant-modules-*.json")
	if err != nil {
		return "", nil, fmt.Errorf("saying where modules are: %w", err)
	}
	cleanup = func() { _ = os.Remove(file.Name()) }
	if _, err = file.Write(text); err == nil {
		err = file.Close()
	}
	if err != nil {
		cleanup()
		return "", nil, fmt.Errorf("saying where modules are: %w", err)
	}
	return file.Name(), cleanup, nil
}
