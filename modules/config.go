package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// Git reads repositories. gitsync implements it.
type Git interface {
	// Refs maps the full names of branches and tags to commits; head is the name of the default branch.
	Refs(ctx context.Context, repo model.Repository) (head string, refs map[string]string, err error)
	// Export writes the tree of a commit into an empty directory. It fails with model.ErrNotFound when the ref does not lead to
	// the commit (any more).
	Export(ctx context.Context, repo model.Repository, ref, commit, dir string) error
}

// Config is what an [Installer] is made of.
type Config struct {
	// Dir is where the trees of modules are kept. Any number of processes may share it.
	Dir string
	// Git reads repositories; nil when the network must not be used.
	Git Git
	// Environments keeps the environments of Python packages.
	Environments *venv.Cache
	// Python is the interpreter that environments are made of, as in [venv.Spec].
	Python string
	// Provided are the Python packages that the product supplies itself, by name, with their versions.
	Provided map[string]string
	// ProvidedRequires are what these require in their turn; they are installed where there is an index to have them from.
	ProvidedRequires map[string][]string
	// Index is used for a project that does not say where packages come from. Its FindLinks, NoIndex and OnlyBinary are for every
	// project.
	Index venv.Index
	// Builtin are the modules that come with the program.
	Builtin map[string]fs.FS
	// Budget bounds the models that are read for their imports, in bytes; 0 for no bound.
	Budget int64
	// Credentials adds what is needed to read a repository; nil for nothing.
	Credentials func(ctx context.Context, repo model.Repository) (model.Repository, error)
}

// Installer fetches modules. Its methods may be called from any goroutine.
type Installer struct {
	config  Config
	store   store
	builtin map[string]module.Version
}

// New makes an installer. It does no I/O.
func New(c Config) (*Installer, error) {
	if c.Dir == "" || c.Environments == nil {
		return nil, fmt.Errorf("modules: Dir and Environments must be set: %w", model.ErrInvalid)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("modules: Dir: %w", err)
	}
	i := &Installer{config: c, store: store{dir: filepath.Join(dir, "trees")}, builtin: map[string]module.Version{}}
	for name, root := range c.Builtin {
		d, err := module.Describe(root)
		if err != nil {
			return nil, fmt.Errorf("modules: built-in module %s: %w", name, err)
		}
		if i.builtin[name], err = module.ParseVersion(d.Version); err != nil {
			return nil, fmt.Errorf("modules: built-in module %s: %w", name, err)
		}
	}
	return i, nil
}

// Stage runs a part of the work under a name, such as "modules" or "python environment", with a place for what it prints.
type Stage func(name, command string, work func(ctx context.Context, out io.Writer) error) error

// Request says what to do about a project.
type Request struct {
	// Project is the project's tree, Dir its absolute path.
	Project fs.FS
	Dir     string
	// Main is the path of the main file; empty for main.cf.
	Main string
	// Lock is what was chosen before; nil for nothing.
	Lock *module.Lock
	// Update chooses anew: all modules and packages, or those named in Only.
	Update bool
	Only   []string
	// Frozen fails with [ErrOutdated] instead of choosing. TrustLock goes further: the imports of the models are not compared with
	// the lock, which spares reading them.
	Frozen    bool
	TrustLock bool
	// NoPackages leaves out the environment of Python packages: only modules are chosen, and those in repositories fetched.
	NoPackages bool
	// Stage runs the parts. Its work is called before it returns.
	Stage Stage
}

// ErrOutdated says that a lock does not say all that the project asks for. It matches [model.ErrInvalid].
var ErrOutdated = fmt.Errorf("%s is out of date: run intendant project install: %w", module.LockFile, model.ErrInvalid)

// ErrNoLock says that a project that needs modules has no lock. It matches [model.ErrInvalid].
var ErrNoLock = fmt.Errorf("there is no %s: run intendant project install: %w", module.LockFile, model.ErrInvalid)

// errOffline says that something would have to be fetched.
var errOffline = errors.New("the network is not used")

// Placement is where the compiler finds what a project needs.
type Placement struct {
	Modules []PlacedModule `json:"modules"`
	// Python is the interpreter of the project's environment, Sites the directories of its packages. Empty when it needs none.
	Python string   `json:"python,omitempty"`
	Sites  []string `json:"sites,omitempty"`
}

// PlacedModule is a module outside of the project, or a checkout in the layout V2 within.
type PlacedModule struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Layout  module.Layout `json:"layout"`
	Dir     string        `json:"dir"`
}

// Result is what became of a request.
type Result struct {
	// Lock is the new lock; nil when the project needs nothing.
	Lock      *module.Lock
	Placement Placement
	// Warnings are for people. Lost are the modules that are imported and were found nowhere, with where they were looked for.
	Warnings []string
	Lost     []string
}
