package gitsync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// readyName marks a tree that was unpacked to its end. It stands next to the tree, not in it.
const readyName = ".ready"

// bootFile changes with every start of the machine.
const bootFile = "/proc/sys/kernel/random/boot_id"

// ready is the content of the marker.
type ready struct {
	Bytes   int64 `json:"bytes"`
	Entries int   `json:"entries"`
	// Boot is the start of the machine in which the tree was written. Trees are not synced to disk, so a marker from
	// before a power failure proves nothing.
	Boot string `json:"boot,omitempty"`
}

type treeKey struct {
	repository model.RepositoryName
	commit     string
}

// tree is one unpacked commit.
type tree struct {
	key treeKey
	// dir holds the marker and, in "tree", the files.
	dir string
	// making is held while the tree is unpacked, so that those who come meanwhile wait for the first.
	making chan struct{}

	// The rest is guarded by trees.mu. users counts checkouts that were not released; one that is 0 may be pruned.
	ready bool
	users int
	bytes int64
	used  time.Time
}

// trees is the cache of unpacked commits.
type trees struct {
	dir    string
	boot   string
	limits TreeLimits
	most   int64
	log    *slog.Logger
	m      *metrics

	mu    sync.Mutex
	byKey map[treeKey]*tree
	total int64
}

// openTrees reads what earlier runs left behind: complete trees are used again, everything else is removed.
func openTrees(dir string, c Config, m *metrics) (*trees, error) {
	boot, _ := os.ReadFile(bootFile)
	t := &trees{
		dir: dir, boot: strings.TrimSpace(string(boot)), limits: c.Tree, most: c.CacheBytes, log: c.Logger, m: m, byKey: map[treeKey]*tree{},
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the tree cache: %w", err)
	}
	repos, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the tree cache: %w", err)
	}
	for _, r := range repos {
		commits, err := os.ReadDir(filepath.Join(dir, r.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the tree cache: %w", err)
		}
		for _, c := range commits {
			at := filepath.Join(dir, r.Name(), c.Name())
			mark, ok := t.readMark(at)
			if !ok || !commitForm().MatchString(c.Name()) {
				if err := removeTree(at); err != nil {
					return nil, err
				}
				continue
			}
			key := treeKey{model.RepositoryName(r.Name()), c.Name()}
			e := newTree(key, at)
			e.ready, e.bytes, e.used = true, mark.Bytes, time.Now()
			if fi, err := c.Info(); err == nil {
				e.used = fi.ModTime()
			}
			t.byKey[key] = e
			t.total += e.bytes
		}
	}
	t.m.treeBytes.Set(float64(t.total))
	return t, nil
}

func newTree(key treeKey, dir string) *tree {
	return &tree{key: key, dir: dir, making: make(chan struct{}, 1)}
}

func (t *trees) readMark(dir string) (ready, bool) {
	b, err := os.ReadFile(filepath.Join(dir, readyName))
	if err != nil {
		return ready{}, false
	}
	var mark ready
	if json.Unmarshal(b, &mark) != nil || mark.Boot != t.boot {
		return ready{}, false
	}
	return mark, true
}

// commitForm matches full object ids.
var commitForm = lazyregexp.New(`^[0-9a-f]{40}$`)

// get returns the tree of a commit and unpacks it if it is not there. The caller releases it.
func (t *trees) get(ctx context.Context, repository model.RepositoryName, commit string, unpack func(ctx context.Context, dir string) (*plan, error)) (string, func(), error) {
	key := treeKey{repository, commit}
	t.mu.Lock()
	e := t.byKey[key]
	if e == nil {
		e = newTree(key, filepath.Join(t.dir, string(repository), commit))
		t.byKey[key] = e
	}
	e.users++
	t.mu.Unlock()
	release := sync.OnceFunc(func() { t.put(e) })

	select {
	case e.making <- struct{}{}:
	case <-ctx.Done():
		release()
		return "", nil, fmt.Errorf("waiting for the tree of %s: %w", commit, context.Cause(ctx))
	}
	defer func() { <-e.making }()
	t.mu.Lock()
	done := e.ready
	t.mu.Unlock()
	files := filepath.Join(e.dir, "tree")
	if done {
		if _, err := os.Stat(files); err == nil {
			return files, release, nil
		}
		t.forget(e) // somebody removed it beneath us
	}
	begin := time.Now()
	bytes, err := t.unpack(ctx, e, unpack)
	if err != nil {
		release()
		return "", nil, err
	}
	t.m.unpackSeconds.Observe(time.Since(begin).Seconds())
	t.mu.Lock()
	e.ready, e.bytes = true, bytes
	t.total += bytes
	t.m.treeBytes.Set(float64(t.total))
	t.mu.Unlock()
	t.prune()
	return files, release, nil
}

// unpack writes a tree into a temporary directory and moves it to its place when it is complete.
func (t *trees) unpack(ctx context.Context, e *tree, write func(ctx context.Context, dir string) (*plan, error)) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o700); err != nil {
		return 0, fmt.Errorf("unpacking: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(e.dir), ".tmp-")
	if err != nil {
		return 0, fmt.Errorf("unpacking: %w", err)
	}
	fail := func(err error) (int64, error) { return 0, errors.Join(err, removeTree(temp)) }
	files := filepath.Join(temp, "tree")
	if err := os.Mkdir(files, 0o700); err != nil {
		return fail(fmt.Errorf("unpacking: %w", err))
	}
	p, err := write(ctx, files)
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(files, 0o555); err != nil { //nolint:gosec // it must be readable by the compiler, whatever its user
		return fail(fmt.Errorf("unpacking: %w", err))
	}
	// Small files take a block each, and directory entries take room as well.
	bytes := p.total + int64(len(p.paths))*4096
	mark, err := json.Marshal(ready{Bytes: bytes, Entries: len(p.paths), Boot: t.boot})
	if err != nil {
		return fail(fmt.Errorf("unpacking: %w", err))
	}
	if err := os.WriteFile(filepath.Join(temp, readyName), mark, 0o600); err != nil {
		return fail(fmt.Errorf("unpacking: %w", err))
	}
	if err := removeTree(e.dir); err != nil {
		return fail(err)
	}
	if err := os.Rename(temp, e.dir); err != nil {
		return fail(fmt.Errorf("unpacking: %w", err))
	}
	return bytes, nil
}

func (t *trees) put(e *tree) {
	t.mu.Lock()
	e.users--
	e.used = time.Now()
	if e.users == 0 && !e.ready && t.byKey[e.key] == e {
		delete(t.byKey, e.key)
	}
	over := t.total > t.most
	t.mu.Unlock()
	if over {
		t.prune()
	}
}

func (t *trees) forget(e *tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.ready {
		e.ready = false
		t.total -= e.bytes
		t.m.treeBytes.Set(float64(t.total))
	}
}

// prune removes unused trees, the least recently used first, until the cache has its size again.
func (t *trees) prune() {
	for {
		t.mu.Lock()
		var oldest *tree
		if t.total > t.most {
			for _, e := range t.byKey {
				if e.ready && e.users == 0 && (oldest == nil || e.used.Before(oldest.used)) {
					oldest = e
				}
			}
		}
		if oldest == nil {
			t.mu.Unlock()
			return
		}
		delete(t.byKey, oldest.key)
		t.total -= oldest.bytes
		t.m.treeBytes.Set(float64(t.total))
		// Renamed under the lock, so that whoever asks for it again unpacks afresh while the old files go.
		gone := filepath.Join(filepath.Dir(oldest.dir), fmt.Sprintf(".tmp-gone-%d", time.Now().UnixNano()))
		err := os.Rename(oldest.dir, gone)
		t.mu.Unlock()
		if err == nil {
			err = removeTree(gone)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.log.Warn("an unused source tree was not removed", slog.String("error", err.Error()))
		}
	}
}

// keep removes the trees of all repositories but those named.
func (t *trees) keep(names map[model.RepositoryName]bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, e := range slices.SortedFunc(maps.Values(t.byKey), func(a, b *tree) int { return cmp.Compare(a.dir, b.dir) }) {
		if !names[e.key.repository] && e.users == 0 {
			delete(t.byKey, e.key)
			if e.ready {
				t.total -= e.bytes
			}
			errs = append(errs, removeTree(e.dir))
		}
	}
	t.m.treeBytes.Set(float64(t.total))
	return errors.Join(errs...)
}

// removeTree removes a directory whose parts are read-only.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // only to be able to remove it
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a source tree: %w", err)
	}
	return nil
}

// treeOf unpacks a commit of a mirror.
func (m *mirror) treeOf(commit plumbing.Hash, limits TreeLimits) func(ctx context.Context, dir string) (*plan, error) {
	return func(ctx context.Context, dir string) (p *plan, err error) {
		defer func() {
			if r := recover(); r != nil { // go-git reads what strangers wrote
				p, err = nil, fmt.Errorf("%w: reading it: %v", errCorrupt, r)
			}
		}()
		m.disk.RLock()
		defer m.disk.RUnlock()
		st := m.view()
		if p, err = readPlan(ctx, st, commit, limits); err != nil {
			return nil, err
		}
		if err := p.write(ctx, st, dir); err != nil {
			return nil, err
		}
		return p, nil
	}
}
