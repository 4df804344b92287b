package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/lsp"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/modules"
)

// lspFlags are the flags of intendant lsp.
type lspFlags struct {
	sites []string
	stdio bool
}

// newLSPCommand serves an editor.
func newLSPCommand(g *globals) *cobra.Command {
	f := &lspFlags{}
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: faults, completion, definitions, renaming, formatting",
		Long: `Speak the Language Server Protocol on standard input and output, until the editor says exit. Editors start this command
themselves; docs/guides/editor.md tells how.

No Python code of a project is run, and nothing is written but copies of the built-in modules in the user's cache directory, for
the editor to show. The log goes to standard error.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelWarn
			if g.verbose > 0 {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), log)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sites, "site", nil, "look for installed modules in this directory of Python packages; may be given several times")
	fl.BoolVar(&f.stdio, "stdio", true, "for compatibility: standard input and output are always used")
	return cmd
}

func (f *lspFlags) run(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	roots := &openRoots{}
	defer roots.close()
	var sites []module.Site
	for _, dir := range f.sites {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("looking for installed modules: %w", err)}
		}
		tree, err := roots.open(abs)
		if err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("looking for installed modules: %w", err)}
		}
		sites = append(sites, module.Site{Name: filepath.ToSlash(abs), FS: tree, Disk: filepath.ToSlash(abs)})
	}
	s := lsp.New(lsp.Config{
		Version: buildVersion(), Log: log, Open: roots.open,
		Stat:    func(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) },
		Builtin: showBuiltin,
		Inputs: func() lang.Inputs {
			return lang.Inputs{Settings: map[string]string{"now": time.Now().UTC().Format(time.RFC3339)}, Env: os.LookupEnv}
		},
		Modules: func(dir string) ([]module.Site, []module.Place, error) { return roots.modules(dir, sites) },
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, in, out) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		// The goroutine still waits for a message: reading standard input can not be interrupted. It ends with the program.
		return nil
	}
	switch {
	case errors.Is(err, lsp.ErrNoShutdown):
		return &exitError{code: exitFailed}
	case err != nil:
		return &exitError{code: exitFailed, err: fmt.Errorf("serving the editor: %w", err)}
	}
	return nil
}

// openRoots are the directories that a server has opened.
type openRoots struct {
	mu     sync.Mutex // guards what follows
	roots  []*os.Root
	opened []*modules.Opened
}

// open opens a directory, so that nothing outside of it can be read through it.
func (o *openRoots) open(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(filepath.FromSlash(dir))
	if err != nil {
		return nil, fmt.Errorf("opening a project: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roots = append(o.roots, root)
	return root.FS(), nil
}

// modules opens the modules that a project has in its lock, as far as they have been fetched. sites come after them.
func (o *openRoots) modules(dir string, sites []module.Site) ([]module.Site, []module.Place, error) {
	root, err := os.OpenRoot(filepath.FromSlash(dir))
	if err != nil {
		return sites, nil, fmt.Errorf("opening a project: %w", err)
	}
	defer func() { _ = root.Close() }()
	f := &compileFlags{main: "main.cf"}
	p, _, err := f.placement(root, filepath.FromSlash(dir))
	if err != nil {
		return sites, nil, errors.New(plainError(err.Error()))
	}
	opened, err := p.Open()
	if err != nil {
		return sites, nil, errors.New(plainError(err.Error()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = append(o.opened, opened)
	return append(opened.Sites, sites...), opened.Fetched, nil
}

func (o *openRoots) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.opened {
		m.Close()
	}
	for _, r := range o.roots {
		_ = r.Close()
	}
}

// showBuiltin writes the source of a built-in module into the user's cache directory. name is that of diagnostics, such as
// {std}/model/_init.cf.
func showBuiltin(name string, text []byte) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache directory: %w", err)
	}
	rel := strings.NewReplacer("{", "", "}", "").Replace(path.Clean(name))
	if !fs.ValidPath(rel) {
		return "", fmt.Errorf("showing a built-in module: %q is no path", name)
	}
	file := filepath.Join(dir, "intendant", "modules", buildVersion(), filepath.FromSlash(rel))
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return filepath.ToSlash(file), nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", fmt.Errorf("showing a built-in module: %w", err)
	}
	_ = os.Remove(file)                                     // it is read-only
	if err := os.WriteFile(file, text, 0o444); err != nil { //nolint:gosec // the sources of the program are no secret
		return "", fmt.Errorf("showing a built-in module: %w", err)
	}
	return filepath.ToSlash(file), nil
}
