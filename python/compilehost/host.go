package compilehost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/python"
)

// Config says how Python code is run.
type Config struct {
	// Interpreter is the Python interpreter; empty for the first usual one on the PATH. That of a virtual environment brings its
	// packages along.
	Interpreter string
	// Disabled refuses to run Python: a module that has code is an error.
	Disabled bool
	// ProjectDir is the directory of the project. Modules are found below it by their paths in diagnostics.
	ProjectDir string
	// Sites are directories with Python packages that the interpreter does not search by itself.
	Sites []string
	// Cache is the directory in which the embedded packages are unpacked; empty for a temporary one that goes with the host.
	Cache string
	// Env is the environment of the process, as NAME=value.
	Env []string
	// Environment is the id of the environment that is compiled for; Settings are what modules read of the configuration, as
	// section, name and value.
	Environment string
	Settings    [][3]string
	// Exports are the export functions that run when all resources are made, by name.
	Exports []string
	// Stdout takes what plugins print, from the goroutines that compile or close the host. Stderr takes what they write to their
	// standard error, line by line, from another one. nil discards.
	Stdout io.Writer
	Stderr func(line string)
	// Attach, when set, are descriptors to and from a Python process that serves compiles already, see [python.Attach]: that of
	// a module's tests. It is used even if no module has Python code, and the model can be read until [Host.Hold] returns.
	Attach [2]*os.File
	// ShareGroup leaves the process in the caller's process group, see [python.Config].
	ShareGroup bool
	// MaxMessage bounds a message in bytes; see [python.Config].MaxFrame.
	MaxMessage int
}

// Host runs the Python code of the modules of one compile. It implements [lang.Plugins].
type Host struct {
	cfg     Config
	process *python.Process
	temp    []string // temporary directories

	// The fields below belong to the goroutine that compiles.
	ctx   context.Context //nolint:containedctx // that of the compile: the interface of plugins has none
	t     *table
	calls []value.ModelContext // the calls that are under way, innermost last
	waits map[int]*value.UnsetError
	wait  int
	dirs  []shown
	// managers says that there is code that looks at all resources once they are made.
	managers bool
	// last is what the last call saw of the model; nil when the model was not evaluated.
	last value.ModelContext

	printing sync.Mutex // guards printed
	printed  []string
}

var _ lang.Plugins = (*Host)(nil)

// New returns a host for one compile. It must be closed.
func New(cfg Config) *Host {
	return &Host{cfg: cfg, t: newTable(), waits: map[int]*value.UnsetError{}}
}

// shown is a directory with its path in diagnostics.
type shown struct{ dir, as string }

// Load starts Python if a module has code, imports all of it, and returns what it registered.
func (h *Host) Load(ctx context.Context, p *module.Program) (lang.Extension, diag.List, error) {
	mods, err := findCode(p)
	if err != nil || len(mods) == 0 && h.cfg.Attach[0] == nil {
		return lang.Extension{}, nil, err
	}
	if h.cfg.Disabled {
		return lang.Extension{}, refuse(mods), nil
	}
	h.ctx = ctx
	req, err := h.request(p, mods)
	if err != nil {
		return lang.Extension{}, nil, err
	}
	if err := h.start(ctx); err != nil {
		var ds diag.List
		if len(mods) == 0 {
			return lang.Extension{}, nil, fmt.Errorf("speaking with the process that asked for the compile: %w", err)
		}
		d := diag.Errorf("PluginModuleLoadException", diag.Range{File: mods[0].display(mods[0].files[0])},
			"Module %s has Python code, which can not be run: %s", mods[0].m.Name, err)
		ds.Add(d.WithHint("install Python 3.9 or later, or set compiler.python (--python) to the path of an interpreter"))
		return lang.Extension{}, ds, nil
	}
	var got loaded
	if err := h.process.Call(ctx, "load", req, &got); err != nil {
		if ctx.Err() != nil {
			return lang.Extension{}, nil, fmt.Errorf("loading Python code: %w", ctx.Err())
		}
		var ds diag.List
		at := diag.Range{}
		if len(mods) > 0 { // tests have Python code without a module that has some
			at.File = mods[0].display(mods[0].files[0])
		}
		ds.Errorf("PluginModuleLoadException", at, "The Python code of the modules can not be loaded: %s", err)
		return lang.Extension{}, ds, nil
	}
	h.flush()
	return h.extension(mods, &got)
}

// start runs the process.
func (h *Host) start(ctx context.Context) error {
	if h.cfg.Attach[0] != nil {
		var err error
		h.process, err = python.Attach(ctx, h.cfg.Attach[0], h.cfg.Attach[1], python.Config{Handlers: h.handlers(), MaxFrame: h.cfg.MaxMessage})
		return err
	}
	interpreter, err := python.Find(h.cfg.Interpreter)
	if err != nil {
		return err
	}
	cache := h.cfg.Cache
	if cache == "" {
		if cache, err = h.temporary(); err != nil {
			return err
		}
	}
	runtime, err := python.Unpack(cache)
	if err != nil {
		return err
	}
	env := h.cfg.Env
	if env == nil {
		env = []string{}
	}
	h.process, err = python.Start(ctx, python.Config{
		Interpreter: interpreter, Runtime: runtime, Module: "intendant_host.compile", Dir: h.cfg.ProjectDir, Env: env,
		Stdout: h.print, Stderr: h.cfg.Stderr, Handlers: h.handlers(), ShareGroup: h.cfg.ShareGroup, MaxFrame: h.cfg.MaxMessage,
	})
	return err
}

// Hold hands the result of the compile, JSON, to the process that the host is attached to, and lets it read the model until it
// has had enough. Without [Config].Attach it does nothing.
func (h *Host) Hold(ctx context.Context, result json.RawMessage) error {
	if h.cfg.Attach[0] == nil {
		return nil
	}
	if h.process == nil { // the project did not get as far as its modules
		if err := h.start(ctx); err != nil {
			return err
		}
	}
	if h.last != nil {
		leave := h.enter(h.last)
		defer leave()
	}
	if err := h.process.Call(ctx, "hold", result, nil); err != nil {
		return fmt.Errorf("lending the model: %w", err)
	}
	return nil
}

func (h *Host) temporary() (string, error) {
	dir, err := os.MkdirTemp("", "intendant-python-")
	if err != nil {
		return "", fmt.Errorf("making a directory for Python code: %w", err)
	}
	h.temp = append(h.temp, dir)
	return dir, nil
}

// Close ends the process and hands on what was printed last. It may be called more than once.
func (h *Host) Close() error {
	if h.process != nil {
		h.process.Close()
	}
	h.flush()
	var first error
	for _, dir := range h.temp {
		if err := os.RemoveAll(dir); err != nil && first == nil {
			first = fmt.Errorf("removing Python code: %w", err)
		}
	}
	h.temp = nil
	return first
}

// print takes a line that Python printed. It is written when the compiling goroutine gets to it: the writer belongs to that.
func (h *Host) print(line string) {
	h.printing.Lock()
	defer h.printing.Unlock()
	h.printed = append(h.printed, line)
}

// flush writes what was printed.
func (h *Host) flush() {
	h.printing.Lock()
	lines := h.printed
	h.printed = nil
	h.printing.Unlock()
	if h.cfg.Stdout == nil {
		return
	}
	for _, line := range lines {
		_, _ = io.WriteString(h.cfg.Stdout, line+"\n") // as with std::print, a reader that is gone is no fault of the model
	}
}

// loadRequest are the arguments of the method load.
type loadRequest struct {
	Project     string       `json:"project"`
	Name        string       `json:"name,omitempty"`
	Environment string       `json:"environment,omitempty"`
	Settings    [][3]string  `json:"settings,omitempty"`
	Sites       []string     `json:"sites"`
	Modules     []loadModule `json:"modules"`
	// Std says that the module std is the compiler's own, for which there is a stand-in in Python.
	Std bool `json:"std"`
}

type loadModule struct {
	Name    string   `json:"name"`
	Layout  string   `json:"layout"`
	Dir     string   `json:"dir"`
	Version string   `json:"version"`
	Model   string   `json:"model"`
	Plugins string   `json:"plugins"`
	Files   []string `json:"files"`
}

// loaded is the result of the method load.
type loaded struct {
	Faults []struct {
		python.Error
		Module string `json:"module"`
		Name   string `json:"name"`
	} `json:"faults"`
	Warnings []struct {
		Class   string `json:"class"`
		Message string `json:"message"`
		File    string `json:"file"`
		Line    int    `json:"line"`
	} `json:"warnings"`
	Plugins []struct {
		Name         string              `json:"name"`
		Params       [][]json.RawMessage `json:"params"`
		Returns      string              `json:"returns"`
		AllowUnknown bool                `json:"allow_unknown"`
		Deprecated   string              `json:"deprecated"`
		At           []json.RawMessage   `json:"at"`
	} `json:"plugins"`
	Resources [][]json.RawMessage `json:"resources"`
	// References, Mutators and Handlers are names with the Python modules that define them.
	References [][2]string `json:"references"`
	Mutators   [][2]string `json:"mutators"`
	Handlers   [][2]string `json:"handlers"`
	Managers   int         `json:"managers"`
	Finalizers int         `json:"finalizers"`
	// Siblings are packages that modules bring besides their plugins.
	Siblings []struct {
		Module string `json:"module"`
		Name   string `json:"name"`
		Dir    string `json:"dir"`
	} `json:"siblings"`
	// Besides are the modules that only Python code imports.
	Besides []struct {
		Name     string   `json:"name"`
		Dir      string   `json:"dir"`
		Requires []string `json:"requires"`
	} `json:"besides"`
}

// request says which modules there are and where.
func (h *Host) request(p *module.Program, mods []*code) (*loadRequest, error) {
	project, err := filepath.Abs(h.cfg.ProjectDir)
	if err != nil {
		return nil, fmt.Errorf("finding the project: %w", err)
	}
	req := &loadRequest{
		Project: project, Environment: h.cfg.Environment, Settings: h.cfg.Settings, Sites: slices.Clone(h.cfg.Sites), Std: true,
		Modules: []loadModule{},
	}
	if p.Manifest != nil {
		req.Name = p.Manifest.Name
	}
	if req.Sites == nil {
		req.Sites = []string{}
	}
	for _, m := range p.Modules {
		if m.Layout == module.LayoutProject || m.Layout == module.LayoutBuiltin {
			continue
		}
		dir, err := h.directory(project, m)
		if err != nil {
			return nil, err
		}
		lm := loadModule{
			Name: m.Name, Layout: string(m.Layout), Dir: dir, Version: m.Metadata.Version, Model: filepath.Join(dir, "model"), Files: []string{},
		}
		if i := slices.IndexFunc(mods, func(c *code) bool { return c.m == m }); i >= 0 {
			lm.Plugins = filepath.Join(dir, filepath.FromSlash(m.Plugins))
			for _, f := range mods[i].files {
				lm.Files = append(lm.Files, f.name)
			}
			if m.Name == module.Std {
				req.Std = false
			}
		}
		h.dirs = append(h.dirs, shown{dir, m.Dir})
		req.Modules = append(req.Modules, lm)
	}
	return req, nil
}

// directory is where the files of a module are on disk. A module that is in a tree of another kind is copied.
func (h *Host) directory(project string, m *module.Module) (string, error) {
	if m.Disk != "" {
		return m.Disk, nil
	}
	dir := filepath.FromSlash(m.Dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(project, dir)
	}
	if h.cfg.ProjectDir != "" && !strings.HasPrefix(m.Dir, "{") {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m.Plugins))); err == nil && info.IsDir() || err != nil && m.Plugins == "" {
			return dir, nil
		}
	}
	for _, site := range h.cfg.Sites {
		if at := filepath.Join(site, "inmanta_plugins", m.Name); m.Layout == module.LayoutV2 {
			if info, err := os.Stat(at); err == nil && info.IsDir() {
				return at, nil
			}
		}
	}
	root, err := h.temporary()
	if err != nil {
		return "", err
	}
	at := filepath.Join(root, m.Name)
	if err := copyTree(at, m.Root); err != nil {
		return "", fmt.Errorf("copying module %s: %w", m.Name, err)
	}
	return at, nil
}

// place is a place in an author's file as diagnostics show it.
func (h *Host) place(file string, line int) diag.Range {
	best := shown{}
	for _, d := range h.dirs {
		if strings.HasPrefix(file, d.dir+string(filepath.Separator)) && len(d.dir) > len(best.dir) {
			best = d
		}
	}
	if best.dir != "" {
		file = best.as + filepath.ToSlash(strings.TrimPrefix(file, best.dir))
	}
	p := diag.Position{Line: line}
	return diag.Range{File: file, Start: p, End: p}
}
