package venv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// Cache keeps environments below a directory. Any number of processes may share it. The zero value but for Dir is ready for use.
type Cache struct {
	// Dir is where environments are kept, one directory each. All in it may be deleted while nobody uses it.
	Dir string
	// Environ are the variables that builders are run with, as in [os.Environ]: the search path, the proxy, certificates. Those
	// that steer Python, pip or uv are left out unless an index says that the system's configuration counts. Without any the usual
	// search path is all that builders get.
	Environ []string
	// UV is the program uv; empty looks for it on the search path, "-" goes without it.
	UV string
	// Timeout bounds one build. Default 15 min.
	Timeout time.Duration
}

// DefaultTimeout bounds a build unless [Cache].Timeout says otherwise.
const DefaultTimeout = 15 * time.Minute

// Env is an environment that is ready for use. Nobody may change it.
type Env struct {
	// Dir is its directory, Python its interpreter.
	Dir    string
	Python string
	// Sites are the directories in which its packages are installed, in the order of the search.
	Sites []string
	// Version is the version of the interpreter, Platform that of the machine as Python names it.
	Version, Platform string
	// Packages are the distributions that were installed, by name.
	Packages []Package
}

// Package is an installed distribution.
type Package struct {
	// Name is normalised: lower case, with dashes.
	Name    string `json:"name"`
	Version string `json:"version"`
	// File is the name of the file that was installed, SHA256 its digest in hexadecimal digits. Both are empty where the
	// installer does not tell.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Provided says that the caller supplies it: see [Spec].Provided.
	Provided bool `json:"provided,omitempty"`
}

// statusName is the file that says that an environment is complete. Its time is that of the last use.
const statusName = ".intendant.json"

// status is the content of the status file.
type status struct {
	Digest   string    `json:"digest"`
	Builder  string    `json:"builder"`
	BuiltAt  time.Time `json:"built_at"`
	Python   string    `json:"python"`
	Platform string    `json:"platform"`
	Sites    []string  `json:"sites"`
	Packages []Package `json:"packages"`
}

// Lookup returns the environment of a specification if it is there, and builds nothing.
func (c *Cache) Lookup(s Spec) (Env, bool) {
	py, err := probe(s.Python)
	if err != nil {
		return Env{}, false
	}
	return c.ready(s.digest(py))
}

// Ensure returns the environment of a specification and builds it if it is not there. What the builder prints goes to log, which
// may be nil. Calls for the same environment, also in other processes, wait for the one that builds.
//
// It fails with [model.ErrInvalid] when the specification can not be met (no such interpreter, package or version, or versions
// that exclude each other), and with [model.ErrUnavailable] when an index can not be reached.
func (c *Cache) Ensure(ctx context.Context, s Spec, log io.Writer) (Env, error) {
	if log == nil {
		log = io.Discard
	}
	if err := s.check(); err != nil {
		return Env{}, fmt.Errorf("python environment: %w", err)
	}
	py, err := probe(s.Python)
	if err != nil {
		return Env{}, fmt.Errorf("python environment: %w", err)
	}
	digest := s.digest(py)
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { // executors of other users run what lies in it
		return Env{}, fmt.Errorf("python environment: %w", err)
	}
	shared, err := c.lock(ctx, digest, syscall.LOCK_SH, log)
	if err != nil {
		return Env{}, err
	}
	env, ok := c.ready(digest)
	shared()
	if ok {
		return env, nil
	}
	unlock, err := c.lock(ctx, digest, syscall.LOCK_EX, log)
	if err != nil {
		return Env{}, err
	}
	defer unlock()
	if env, ok := c.ready(digest); ok { // another one built it meanwhile
		return env, nil
	}
	if err := c.build(ctx, s, py, digest, log); err != nil {
		return Env{}, fmt.Errorf("python environment: %w", err)
	}
	env, ok = c.ready(digest)
	if !ok {
		return Env{}, fmt.Errorf("python environment %s was built and can not be used: %w", c.dir(digest), model.ErrUnavailable)
	}
	return env, nil
}

// dirLength is how much of a digest names a directory: long enough to be unique, short enough for the first line of scripts.
const dirLength = 32

func (c *Cache) dir(digest string) string { return filepath.Join(c.Dir, digest[:dirLength]) }

// ready returns a complete environment and notes that it is used.
func (c *Cache) ready(digest string) (Env, bool) {
	dir, err := filepath.Abs(c.dir(digest))
	if err != nil {
		return Env{}, false
	}
	raw, err := os.ReadFile(filepath.Join(dir, statusName))
	if err != nil {
		return Env{}, false
	}
	var st status
	if json.Unmarshal(raw, &st) != nil || st.Digest != digest {
		return Env{}, false
	}
	env := Env{Dir: dir, Python: filepath.Join(dir, "bin", "python"), Version: st.Python, Platform: st.Platform, Packages: st.Packages}
	if _, err := os.Stat(env.Python); err != nil { // the interpreter that it was made of is gone
		return Env{}, false
	}
	for _, s := range st.Sites {
		env.Sites = append(env.Sites, filepath.Join(dir, s))
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(dir, statusName), now, now) // a cache that can not be written is still good for reading
	return env, true
}

// lockPause is the time between two tries for a lock.
const lockPause = 100 * time.Millisecond

// lock takes the lock of an environment, and waits for it until ctx ends.
func (c *Cache) lock(ctx context.Context, digest string, how int, log io.Writer) (func(), error) {
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for told := false; ; {
		unlock, err := c.tryLock(digest, how)
		if err != nil || unlock != nil {
			return unlock, err
		}
		if !told {
			told = true
			_, _ = fmt.Fprintln(log, "waiting for another process that builds the same environment")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another process to build the environment: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// tryLock takes the lock of an environment, or returns nil when somebody else has it.
func (c *Cache) tryLock(digest string, how int) (func(), error) {
	name := c.dir(digest) + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking an environment: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return nil, nil //nolint:nilnil // neither a lock nor an error: somebody else has it
		}
		return nil, fmt.Errorf("locking an environment: %w", err)
	}
	// The file may have been removed between opening and locking it: a lock on it would hold nobody off.
	mine, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking an environment: %w", err), f.Close())
	}
	if there, statErr := os.Stat(name); statErr != nil || !os.SameFile(mine, there) {
		_ = f.Close()
		return nil, nil //nolint:nilnil,nilerr // try again
	}
	return func() { _ = f.Close() }, nil // closing lets go of the lock
}

// Hold keeps [Cache.Sweep] from removing an environment until release is called or this process ends.
func (c *Cache) Hold(ctx context.Context, env Env) (release func(), err error) {
	name := filepath.Base(env.Dir)
	if !dirForm().MatchString(name) {
		return nil, fmt.Errorf("%s is no environment of this cache: %w", env.Dir, model.ErrInvalid)
	}
	return c.lock(ctx, name, syscall.LOCK_SH, io.Discard)
}

// dirForm matches the directories of environments.
var dirForm = lazyregexp.New(`^[0-9a-f]{32}$`)

// Sweep removes environments that nobody has used for so long, and what killed builders left behind. Those that are held or
// being built are left alone.
func (c *Cache) Sweep(age time.Duration) error {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweeping environments: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".lock"); dirForm().MatchString(name) && (e.IsDir() || name != e.Name()) {
			errs = append(errs, c.sweep(name, age))
		}
	}
	return errors.Join(errs...)
}

// sweep removes one environment if it is due.
func (c *Cache) sweep(name string, age time.Duration) error {
	dir := filepath.Join(c.Dir, name)
	if info, err := os.Stat(filepath.Join(dir, statusName)); err == nil && time.Since(info.ModTime()) < age {
		return nil
	}
	unlock, err := c.tryLock(name, syscall.LOCK_EX)
	if err != nil || unlock == nil {
		return err
	}
	defer unlock()
	if info, err := os.Stat(filepath.Join(dir, statusName)); err == nil && time.Since(info.ModTime()) < age {
		return nil // it was used just now
	}
	// Without its status file it is no environment any more, should this process die before all is gone.
	if err := errors.Join(ignoreMissing(os.Remove(filepath.Join(dir, statusName))), os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("removing an environment: %w", err)
	}
	// Whoever opened the file meanwhile finds it gone and opens another one.
	if err := ignoreMissing(os.Remove(dir + ".lock")); err != nil {
		return fmt.Errorf("removing an environment: %w", err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
