package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/venv"
)

// moduleTemplate is what a new module begins with. NAME stands for its name, PACKAGE for that of its package.
//
//go:embed all:template
var moduleTemplate embed.FS

// createFlags are the flags of intendant module create.
type createFlags struct {
	dir string
	v1  bool
}

// newModuleCreateCommand makes a module to begin with.
func newModuleCreateCommand() *cobra.Command {
	f := &createFlags{}
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a new module with a resource, its handler, a plugin, and tests that pass", Args: cobra.ExactArgs(1),
		Example: "  intendant module create dns\n  cd dns && intendant module test",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := f.create(args[0])
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Made %s. Next: cd %s && intendant module test\n", at, at)
			return err
		},
	}
	cmd.Flags().StringVarP(&f.dir, "output-dir", "d", ".", "where the directory of the module is made")
	cmd.Flags().BoolVar(&f.v1, "v1", false, "in the layout V1: a directory with a module.yml, instead of a Python package")
	return cmd
}

// create makes the module and returns its directory.
func (f *createFlags) create(name string) (string, error) {
	if err := module.CheckModuleName(name); err != nil {
		return "", err
	}
	at := filepath.Join(f.dir, name)
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s exists already: choose another name, or another place with --output-dir", at)
	}
	fill := strings.NewReplacer("NAME", name, "PACKAGE", module.PackageOf(name))
	layout := "v2"
	if f.v1 {
		layout = "v1"
	}
	for _, part := range []string{"common", layout} {
		root := path.Join("template", part)
		err := fs.WalkDir(moduleTemplate, root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := moduleTemplate.ReadFile(file)
			if err != nil {
				return err
			}
			rel := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".in")
			plugins := path.Join("inmanta_plugins", name)
			if f.v1 {
				plugins = "plugins"
			}
			rel = fill.Replace(strings.Replace(rel, "plugins/", plugins+"/", 1))
			to := filepath.Join(at, filepath.FromSlash(rel))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, []byte(fill.Replace(string(text))), 0o644) //nolint:gosec // sources, for everybody to read
		})
		if err != nil {
			return "", fmt.Errorf("making the module: %w", err)
		}
	}
	return at, nil
}

// testFlags are the flags of intendant module test.
type testFlags struct {
	g      *globals
	python string
	path   bool
	// repos are where modules are, as in project.yml; installMode says which of their versions count.
	repos       []string
	installMode string
}

// newModuleTestCommand runs the tests of a module.
func newModuleTestCommand(g *globals) *cobra.Command {
	f := &testFlags{g: g}
	cmd := &cobra.Command{
		Use: "test [DIR] [-- PYTEST-ARGUMENTS]", Short: "Run the tests of a module with pytest",
		Long: `Run the tests of the module in DIR (default: the current directory) with pytest.

The tests get the fixture project: project.compile("..."), project.get_resource("..."), project.deploy_resource("...") and others;
see the guide for authors of modules. They run in an environment with what the module requires, which is made once and kept, or in
that of --python, which must have pytest. Modules that the module imports come from --module-repo (or INMANTA_MODULE_REPO, with spaces
between several), else from the package index; with --python alone they are those of its environment. The exit status is that of
pytest.`,
		Args:    cobra.ArbitraryArgs,
		Example: "  intendant module test\n  intendant module test dns -- -k zone -x\n  intendant module test --module-repo 'https://git.example.com/modules/{}.git'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("module-repo") {
				f.repos = strings.Fields(os.Getenv("INMANTA_MODULE_REPO"))
			}
			dir := "."
			if n := cmd.ArgsLenAtDash(); n != 0 && len(args) > 0 {
				if n > 1 || n < 0 && len(args) > 1 {
					return &exitError{code: exitUsage, err: errors.New("at most one directory; arguments of pytest follow --")}
				}
				dir, args = args[0], args[1:]
			}
			return f.run(cmd.Context(), dir, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.python, "python", "", "run in the environment of this interpreter")
	cmd.Flags().StringArrayVar(&f.repos, "module-repo", nil, "git repositories to fetch imported modules from, {} being the module's name; may be given several times")
	cmd.Flags().StringVar(&f.installMode, "install-mode", "release", "which of their versions: release, prerelease or master")
	cmd.Flags().BoolVar(&f.path, "print-path", false, "print the directory for PYTHONPATH and do nothing else: for running pytest -p pytest_inmanta.plugin by other means")
	return cmd
}

// testCompanions come with the package inmanta-dev-dependencies that tests of modules ask for.
var testCompanions = []string{"pytest-asyncio", "pytest-cov"}

// testPackages are what tests get besides the companions of modules and what the module requires.
var testPackages = []string{"pytest>=7", "jinja2>=3.1"}

func (f *testFlags) run(ctx context.Context, dir string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	runtime, err := python.Unpack(filepath.Join(cache, "python"))
	if err != nil {
		return err
	}
	if f.path {
		_, err := fmt.Fprintln(stdout, runtime)
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("opening the module: %w", err)}
	}
	defer func() { _ = root.Close() }()
	about, err := module.Describe(root.FS())
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("%s is not the directory of a module: %w", dir, err)}
	}
	c, err := f.g.load(nil)
	if err != nil {
		return err
	}
	var more imported
	if len(f.repos) > 0 || f.python == "" && about.Layout == module.LayoutV1 {
		if more, err = f.fetchImports(ctx, c, root.FS(), about, stderr); err != nil {
			return err
		}
	}
	interpreter := f.python
	if interpreter == "" {
		if interpreter, err = f.environment(ctx, c, cache, root.FS(), about, more, stderr); err != nil {
			return plain(err)
		}
	}
	if interpreter, err = exec.LookPath(interpreter); err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("finding the interpreter: %w", err)}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	trees, cleanup, err := writeTrees(more.trees)
	if err != nil {
		return err
	}
	defer cleanup()
	command := []string{"-m", "pytest", "-p", "pytest_inmanta.plugin"}
	if testsPath(root.FS()) {
		command = append(command, "-o", "testpaths=tests")
	}
	cmd := exec.CommandContext(ctx, interpreter, append(command, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, stdin, stdout, stderr
	// As in an environment that is activated: what tests run by name is that of the environment.
	search := filepath.Dir(interpreter) + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "PATH="+search, "INTENDANT="+self, "INTENDANT_TEST_MODULES="+trees, "PYTHONPATH="+strings.TrimSuffix(runtime+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"), string(os.PathListSeparator)))
	err = cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return &exitError{code: max(e.ExitCode(), exitFailed)}
	}
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("running pytest: %w", err)}
	}
	return nil
}

// testsPath reports whether the tests are those below tests because nothing else is configured.
func testsPath(root fs.FS) bool {
	if info, err := fs.Stat(root, "tests"); err != nil || !info.IsDir() {
		return false
	}
	for _, name := range []string{"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"} {
		if text, err := fs.ReadFile(root, name); err == nil && bytes.Contains(text, []byte("testpaths")) {
			return false
		}
	}
	return true
}

// environment makes the environment that the tests run in, and returns its interpreter.
func (f *testFlags) environment(ctx context.Context, c *config.Config, cache string, root fs.FS, about module.Description, more imported, stderr io.Writer) (string, error) {
	index, err := testIndex(c)
	if err != nil {
		return "", err
	}
	wanted := append(slices.Clone(testPackages), python.Companions()...)
	own := module.PackageOf(about.Name)
	builtin := std.Modules()
	fetched := map[string]bool{}
	for _, t := range more.trees {
		fetched[t.Name] = true
	}
	for _, m := range about.Modules {
		// The built-in modules serve unless the tests' environment has others.
		switch {
		case module.PackageOf(m.Name) == own || builtin[m.Name] != nil || fetched[m.Name]:
		case about.Layout == module.LayoutV2:
			wanted = append(wanted, m.Text)
		default: // module.yml names modules, not packages
			wanted = append(wanted, module.PackageOf(m.Name)+m.Constraint.String())
		}
	}
	for _, p := range about.Packages {
		wanted = append(wanted, p.Text)
	}
	for _, w := range more.wanted {
		if !slices.ContainsFunc(wanted, func(other string) bool {
			return python.PackageName(other) == python.PackageName(w) && module.NameOf(w) != ""
		}) {
			wanted = append(wanted, w)
		}
	}
	dev, err := developmentRequirements(root)
	if err != nil {
		return "", err
	}
	for _, d := range dev {
		if python.PackageName(d) == "inmanta-dev-dependencies" {
			dev = append(dev, testCompanions...)
			break
		}
	}
	wanted = append(wanted, dev...)
	provided := map[string]string{"pytest-inmanta": "3.2.0", "inmanta-dev-dependencies": "2.160.0", own: "0"}
	maps.Copy(provided, providedPackages)
	wanted = slices.DeleteFunc(wanted, func(text string) bool {
		r, err := module.ParseRequirement(text)
		return err == nil && provided[r.Name] != ""
	})
	// What pip says is of interest only when it fails; that it is at work, from its first word on.
	said := &announced{to: stderr, text: "Preparing the environment of the tests; it is kept for the next time.\n"}
	envs := &venv.Cache{Dir: filepath.Join(cache, "environments"), Environ: os.Environ()}
	env, err := envs.Ensure(ctx, venv.Spec{
		Python: c.String("compiler", "python"), Requirements: wanted, Index: index, Provided: provided,
	}, said)
	if err != nil {
		_, _ = said.kept.WriteTo(stderr)
		return "", fmt.Errorf("making the environment for the tests: %w", err)
	}
	return env.Python, nil
}

// announced keeps what is written to it, and says before the first of it that there will be some.
type announced struct {
	to   io.Writer
	text string
	once sync.Once
	kept bytes.Buffer
}

// Write implements [io.Writer].
func (a *announced) Write(p []byte) (int, error) {
	a.once.Do(func() { _, _ = io.WriteString(a.to, a.text) }) // a message that can not be shown stops nothing
	return a.kept.Write(p)
}

// developmentRequirements reads requirements.dev.txt, without the options of pip and without what tests get anyway.
func developmentRequirements(root fs.FS) ([]string, error) {
	text, err := fs.ReadFile(root, "requirements.dev.txt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading requirements.dev.txt: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(" "+line, " #")
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "-") {
			continue
		}
		if _, err := module.ParseRequirement(line); err != nil {
			return nil, fmt.Errorf("requirements.dev.txt: %w", err)
		}
		out = append(out, line)
	}
	return out, nil
}
