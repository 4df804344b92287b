package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/modules"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/venv"
)

// providedPackages are the Python packages that the program supplies itself, with the versions whose surface it has. The local part
// sets them apart from the packages of that name on an index.
var providedPackages = map[string]string{"inmanta-core": "20.1.0+intendant"}

// providedRequires are the packages that the original of a provided one draws in and that public modules import without naming them.
var providedRequires = map[string][]string{"inmanta-core": python.Companions()}

// cacheDir is where the user's modules and environments are kept.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the directory for fetched modules: set XDG_CACHE_HOME or HOME: %w", err)
	}
	return filepath.Join(dir, "intendant"), nil
}

// noRecorder stands in where nothing is watched.
type noRecorder struct{ gitsync.Recorder }

// moduleSource composes an installer of modules.
type moduleSource struct {
	*modules.Installer
	git *gitsync.Service
}

// close lets go of the mirrors.
func (m *moduleSource) close() {
	if m.git != nil {
		_ = m.git.Close()
	}
}

// packageIndex says where packages come from, as the settings of this machine do.
func packageIndex(c *config.Config) (venv.Index, error) {
	list := func(name string) []string {
		return strings.FieldsFunc(c.String("python", name), func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })
	}
	index := venv.Index{
		URL: c.String("python", "index-url"), Extra: list("extra-index-url"), NoIndex: c.Bool("python", "no-index"),
		UseSystemConfig: c.Bool("python", "use-system-config"), OnlyBinary: c.Bool("python", "only-binary"),
	}
	for _, l := range list("find-links") {
		if !strings.Contains(l, "://") {
			abs, err := filepath.Abs(l)
			if err != nil {
				return index, fmt.Errorf("python.find-links: %w", err)
			}
			l = abs
		}
		index.FindLinks = append(index.FindLinks, l)
	}
	return index, nil
}

// newModuleSource makes an installer for the user of this machine. Offline it fetches nothing from repositories.
func newModuleSource(c *config.Config, offline bool) (*moduleSource, error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	index, err := packageIndex(c)
	if err != nil {
		return nil, err
	}
	cfg := modules.Config{
		Dir: filepath.Join(dir, "modules"), Environments: &venv.Cache{Dir: filepath.Join(dir, "environments"), Environ: os.Environ()},
		Python: c.String("compiler", "python"), Provided: providedPackages, ProvidedRequires: providedRequires, Index: index, Builtin: std.Modules(),
		Credentials: userCredentials,
	}
	m := &moduleSource{}
	if !offline {
		m.git, err = gitsync.New(gitsync.Config{
			Dir: filepath.Join(dir, "git"), Recorder: noRecorder{}, AllowLocal: true, Proxy: http.ProxyFromEnvironment,
		})
		if err != nil {
			return nil, err
		}
		cfg.Git = m.git
	} else {
		cfg.Index.NoIndex = true
	}
	m.Installer, err = modules.New(cfg)
	return m, err
}

// placement says where the modules of a project are: as the file says, or as the project's lock and this machine's cache do.
func (f *compileFlags) placement(root *os.Root, dir string) (modules.Placement, []string, error) {
	if f.modules != "" {
		var p modules.Placement
		raw, err := os.ReadFile(f.modules)
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			return p, nil, fmt.Errorf("reading --modules: %w", err)
		}
		return p, nil, nil
	}
	lock, err := module.ReadLock(root.FS())
	if err != nil || lock == nil {
		return modules.Placement{}, nil, err
	}
	c, err := config.Load(options(), config.System("", nil))
	if err != nil {
		return modules.Placement{}, nil, err
	}
	m, err := newModuleSource(c, true)
	if err != nil {
		return modules.Placement{}, nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return modules.Placement{}, nil, fmt.Errorf("opening the project: %w", err)
	}
	return m.Place(modules.Request{Project: root.FS(), Dir: abs, Main: f.main, Lock: lock})
}

// place adds a project's modules to the options of the compiler. What can not be placed is a fault of the project, which the
// diagnostics tell; the caller closes what is opened.
func (f *compileFlags) place(root *os.Root, dir string, opts *lang.Options) (opened *modules.Opened, warnings, faults diag.List) {
	p, notes, err := f.placement(root, dir)
	if err == nil {
		opened, err = p.Open()
	}
	at := diag.Range{File: module.LockFile}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			faults.Errorf("ModuleLoadingException", at, "%s", plainError(strings.TrimSpace(line)))
		}
		return &modules.Opened{}, nil, faults
	}
	for _, n := range notes {
		warnings.Warnf("InmantaWarning", at, "%s", plainError(n))
	}
	opts.Sites = append(opts.Sites, opened.Sites...)
	opts.Fetched = append(opts.Fetched, opened.Fetched...)
	return opened, warnings, nil
}

// plainError leaves out the names of the sentinels, which say nothing to people.
func plainError(text string) string {
	for _, s := range []error{model.ErrNotFound, model.ErrInvalid, model.ErrConflict, model.ErrUnavailable, model.ErrForbidden} {
		text = strings.ReplaceAll(text, ": "+s.Error(), "")
	}
	return text
}

// plainTextError is an error without the names of the sentinels in its text.
type plainTextError struct{ err error }

func (e *plainTextError) Error() string { return plainError(e.err.Error()) }
func (e *plainTextError) Unwrap() error { return e.err }

func plain(err error) error {
	if err == nil {
		return nil
	}
	return &plainTextError{err}
}

// moduleError gives an error about modules its exit status and the words for people.
func moduleError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return &exitError{code: exitFailed, err: plain(err)}
}

// printStage runs the parts of the work of a command: with a line for each for somebody who waits at a terminal, and with all that
// they print if that is wanted.
func printStage(ctx context.Context, w io.Writer, verbose bool) modules.Stage {
	f, ok := w.(*os.File)
	waits := ok && term.IsTerminal(int(f.Fd()))
	return func(_, command string, work func(ctx context.Context, out io.Writer) error) error {
		out := io.Discard
		if verbose || waits {
			_, _ = fmt.Fprintln(w, command+" …")
		}
		if verbose {
			out = w
		}
		return work(ctx, out)
	}
}
