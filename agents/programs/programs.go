package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Config says which programs there are.
type Config struct {
	// Paths are programs and directories of programs. Within a directory every executable file counts, in the order of names.
	Paths []string
	// Dir is a directory of our own for contents that programs read. Required.
	Dir string
	// Env is the whole environment of programs, as NAME=value.
	Env []string
	// Logger takes what programs write to their standard streams; nothing by default.
	Logger *slog.Logger
	// StartTimeout bounds the time until a program says what it handles. Default 10 s.
	StartTimeout time.Duration
	// Grace is how long a handler may take to return at its deadline before its program is killed. Default 5 s.
	Grace time.Duration
	// Pause is how long a program that ended unasked is left alone before the next start; it doubles up to a minute with each
	// end in a row. Default 1 s.
	Pause time.Duration
}

// maxPause bounds the pause between starts.
const maxPause = time.Minute

// Programs are running handler programs.
type Programs struct {
	config   Config
	programs []*handlerProgram
}

// Register starts the programs, registers the types that they handle and keeps them running until [Programs.Close]. A program
// that others could write to, that does not start, or whose types are taken is an error that names it.
func Register(ctx context.Context, registry *sdk.Registry, c Config) (*Programs, error) {
	if c.Dir == "" {
		return nil, fmt.Errorf("handler programs: Dir is not set: %w", model.ErrInvalid)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = 10 * time.Second
	}
	if c.Grace <= 0 {
		c.Grace = 5 * time.Second
	}
	if c.Pause <= 0 {
		c.Pause = time.Second
	}
	paths, err := find(c.Paths)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(c.Dir); err != nil { // of an agent that was killed
		return nil, fmt.Errorf("handler programs: %w", err)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("handler programs: %w", err)
	}
	p := &Programs{config: c}
	for _, path := range paths {
		if err := p.add(ctx, registry, path); err != nil {
			p.Close()
			return nil, fmt.Errorf("handler program %s: %w", path, err)
		}
	}
	return p, nil
}

func (p *Programs) add(ctx context.Context, registry *sdk.Registry, path string) error {
	x := newProgram(p.config, path)
	p.programs = append(p.programs, x)
	r, err := x.running(ctx)
	if err != nil {
		return err
	}
	if len(r.hello.Types) == 0 {
		return fmt.Errorf("it handles no types: %w", model.ErrInvalid)
	}
	x.types = slices.Clone(r.hello.Types)
	for _, t := range x.types {
		if err := registry.Execute(t, executor{x}); err != nil {
			return err
		}
	}
	p.config.Logger.Info("handler program started", "program", r.hello.Name, "version", r.hello.Version, "types", x.types)
	return nil
}

// Close ends the programs. Tasks that they work on fail.
func (p *Programs) Close() {
	for _, x := range p.programs {
		x.close()
	}
}

// find lists the programs of paths. A path must exist.
func find(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("handler program %s: %w", path, err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, fmt.Errorf("handler program %s: %w", path, err)
		}
		if !info.IsDir() {
			if err := safe(abs, info); err != nil {
				return nil, fmt.Errorf("handler program %s: %w", path, err)
			}
			out = append(out, abs)
			continue
		}
		entries, err := os.ReadDir(abs)
		if err != nil {
			return nil, fmt.Errorf("handler programs in %s: %w", path, err)
		}
		for _, e := range entries {
			file := filepath.Join(abs, e.Name())
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			if err := safe(file, info); err != nil {
				return nil, fmt.Errorf("handler program %s: %w", file, err)
			}
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// safe refuses a program that somebody else could have put there: it runs with all the agent's rights.
func safe(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("it is not a file that can be run: %w", model.ErrInvalid)
	}
	for _, what := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(what)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.New("this system does not tell who owns a file")
		}
		if uid := os.Geteuid(); stat.Uid != 0 && int(stat.Uid) != uid {
			return fmt.Errorf("%s belongs to user %d; it must belong to root or to the agent's user %d: %w", what, stat.Uid, uid, model.ErrForbidden)
		}
		if info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("%s can be written by others (mode %04o); remove that with chmod go-w: %w", what, info.Mode().Perm(), model.ErrForbidden)
		}
	}
	return nil
}
