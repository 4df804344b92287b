package gitsync

import (
	"context"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A push to a repository on this machine is usually small. Up to these sizes it is copied without starting git, which takes
// a few milliseconds instead of some fifty.
const (
	localObjects = 2000
	localBytes   = 16 << 20
)

// copyLocal brings a mirror up to date with a repository on this machine by reading its files. It reports false, and has
// changed nothing that counts, whenever anything is not plain: then git is asked.
func (m *mirror) copyLocal(ctx context.Context, r remote, wants []string) (tips map[string]tip, fetched, ok bool) {
	dir := r.path
	if _, err := os.Stat(filepath.Join(dir, ".git", "HEAD")); err == nil {
		dir = filepath.Join(dir, ".git")
	}
	for _, odd := range []string{"objects/info/alternates", "shallow", "reftable"} {
		if _, err := os.Stat(filepath.Join(dir, odd)); err == nil {
			return nil, false, false
		}
	}
	theirs := filesystem.NewStorageWithOptions(osfs.New(dir), cache.NewObjectLRU(4*cache.MiByte), filesystem.Options{})
	tips, ok = localTips(theirs, wants)
	if !ok {
		return nil, false, false
	}
	if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); err == nil && m.remembers(m.view(), tips) {
		return tips, false, true
	}
	st, err := m.open()
	if err != nil {
		return nil, false, false
	}
	c := &copier{ours: st, theirs: theirs, seen: map[plumbing.Hash]bool{}}
	for _, t := range tips {
		if !c.commits(ctx, t.commit) {
			return nil, false, false
		}
	}
	if len(c.hashes) > 0 {
		w, err := st.PackfileWriter()
		if err != nil {
			return nil, false, false
		}
		_, err = packfile.NewEncoder(w, theirs, false).Encode(c.hashes, 0)
		if cerr := w.Close(); err != nil || cerr != nil {
			return nil, false, false // the next flight sweeps what is left
		}
		// What was read may not have been what its name says: the mirror goes by content.
		if missing, err := m.missing(st, c.hashes); err != nil || len(missing) > 0 {
			return nil, false, false
		}
	}
	for w, t := range tips {
		if t.revision, err = m.read(st, t); err != nil || m.remember(st, t) != nil {
			return nil, false, false
		}
		tips[w] = t
	}
	return tips, true, true
}

// localTips finds the wanted branches among the refs on disk. It reports false if one is missing, an annotated tag, or odd.
func localTips(theirs *store, wants []string) (map[string]tip, bool) {
	tips := make(map[string]tip, len(wants))
	for _, w := range wants {
		names := candidates(w)
		if w == "" {
			head, err := theirs.Reference(plumbing.HEAD)
			if err != nil || head.Type() != plumbing.SymbolicReference || CheckBranch(head.Target().String()) != nil {
				return nil, false
			}
			names = []string{head.Target().String()}
		}
		found := false
		for _, n := range names {
			ref, err := theirs.Reference(plumbing.ReferenceName(n))
			if err == nil && ref.Type() == plumbing.HashReference {
				tips[w], found = tip{ref: n, commit: ref.Hash()}, true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return tips, true
}

// copier collects the objects that one storage has and the other has not. An object that is there has all that it leads to,
// since objects come in whole packs.
type copier struct {
	ours, theirs *store
	seen         map[plumbing.Hash]bool
	hashes       []plumbing.Hash
	bytes        int64
}

// add notes an object. It reports whether the object is new; ok is false when there is too much, or it can not be read.
func (c *copier) add(h plumbing.Hash) (fresh, ok bool) {
	if c.seen[h] {
		return false, true
	}
	c.seen[h] = true
	if c.ours.HasEncodedObject(h) == nil {
		return false, true
	}
	n, err := c.theirs.EncodedObjectSize(h)
	if err != nil || len(c.hashes) >= localObjects {
		return false, false
	}
	if c.bytes += n; c.bytes > localBytes {
		return false, false
	}
	c.hashes = append(c.hashes, h)
	return true, true
}

func (c *copier) commits(ctx context.Context, tip plumbing.Hash) bool {
	next := []plumbing.Hash{tip}
	for len(next) > 0 {
		if ctx.Err() != nil {
			return false
		}
		h := next[len(next)-1]
		next = next[:len(next)-1]
		fresh, ok := c.add(h)
		if !ok {
			return false
		}
		if !fresh {
			continue
		}
		commit, err := object.GetCommit(c.theirs, h)
		if err != nil || !c.tree(commit.TreeHash, 0) {
			return false
		}
		next = append(next, commit.ParentHashes...)
	}
	return true
}

func (c *copier) tree(h plumbing.Hash, depth int) bool {
	fresh, ok := c.add(h)
	if !ok || depth > 256 {
		return false
	}
	if !fresh {
		return true
	}
	t, err := object.GetTree(c.theirs, h)
	if err != nil {
		return false
	}
	for _, e := range t.Entries {
		switch e.Mode {
		case filemode.Dir:
			if !c.tree(e.Hash, depth+1) {
				return false
			}
		case filemode.Submodule: // it is in another repository
		default:
			if _, ok := c.add(e.Hash); !ok {
				return false
			}
		}
	}
	return true
}
