package gitsync

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/intendant/intendant/model"
)

// errCorrupt says that a mirror on disk can not be read: it is thrown away and cloned anew.
var errCorrupt = errors.New("the mirror is damaged")

// mirror is the bare copy of one repository. It is made by the first use of a URL and dropped when the URL changes.
type mirror struct {
	dir  string
	name model.RepositoryName

	// mu guards what is below.
	mu sync.Mutex
	// running is the flight that is under way, next the one that will follow: who comes while a flight runs can not use
	// its result, since it may have read the refs already, but shares the following one with everybody else who waits.
	running, next *flight

	// disk is held while objects are read or written; a flight that replaces the mirror holds it alone.
	disk sync.RWMutex
}

// flight is one conversation with the remote on behalf of all who wait for it.
type flight struct {
	repo  model.Repository
	wants map[string]bool
	done  chan struct{}
	// start is closed when it is the flight's turn.
	start   chan struct{}
	waiters int
	cancel  context.CancelFunc

	// The outcome; read after done is closed.
	tips map[string]tip
	err  error
}

// tip is what a watched branch is at.
type tip struct {
	// ref is the full name of the branch or tag, commit what it leads to. Both are empty when the remote has no such ref.
	ref    string
	commit plumbing.Hash
	// revision is set when the commit was read already.
	revision model.Revision
}

// local is the name under which the mirror remembers the tip.
func (t tip) local() plumbing.ReferenceName {
	if t.ref == "HEAD" {
		return "refs/intendant/head"
	}
	return plumbing.ReferenceName(t.ref)
}

// mirrorDir names the directory of a repository's mirror; another URL has another one.
func mirrorDir(base string, name model.RepositoryName, r remote) string {
	sum := sha256.Sum256([]byte(r.String()))
	return filepath.Join(base, string(name), hex.EncodeToString(sum[:8])+".git")
}

// tips returns what the wanted branches are at, fetching what is missing. Calls for one repository are answered one after
// the other; calls that wait share one conversation.
func (s *Service) tips(ctx context.Context, repo model.Repository, wants ...string) (*mirror, map[string]tip, error) {
	r, err := parseURL(repo.URL)
	if err != nil {
		return nil, nil, err
	}
	if err := CheckRepositoryName(repo.Name); err != nil {
		return nil, nil, err
	}
	for _, w := range wants {
		if err := CheckBranch(w); err != nil {
			return nil, nil, err
		}
	}
	m, err := s.mirror(repo.Name, r)
	if err != nil {
		return nil, nil, err
	}
	f := s.join(ctx, m, r, repo, wants)
	select {
	case <-f.done:
	case <-ctx.Done():
		m.leave(f)
		return nil, nil, fmt.Errorf("fetching repository %s: %w", repo.Name, context.Cause(ctx))
	}
	m.leave(f)
	if f.err != nil {
		return nil, nil, f.err
	}
	return m, f.tips, nil
}

// mirror returns the mirror of a repository's URL.
func (s *Service) mirror(name model.RepositoryName, r remote) (*mirror, error) {
	dir, err := s.home()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := mirrorDir(filepath.Join(dir, "mirrors"), name, r)
	m := s.mirrors[name]
	if m == nil || m.dir != at {
		m = &mirror{dir: at, name: name}
		s.mirrors[name] = m
	}
	return m, nil
}

// join adds the caller to the next flight, and starts it if none is under way.
func (s *Service) join(ctx context.Context, m *mirror, r remote, repo model.Repository, wants []string) *flight {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		fctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f := &flight{repo: repo, wants: map[string]bool{}, done: make(chan struct{}), start: make(chan struct{}), cancel: cancel}
		m.next = f
		s.work.Go(func() { s.fly(fctx, m, r, f) })
		if m.running == nil {
			m.promote()
		}
	}
	f := m.next
	if f == nil {
		f = m.running // promoted just now; it has not read anything before mu is free
	}
	f.repo = repo
	for _, w := range wants {
		f.wants[w] = true
	}
	f.waiters++
	return f
}

// promote lets the next flight begin. The caller holds mu.
func (m *mirror) promote() {
	m.running, m.next = m.next, nil
	if m.running != nil {
		close(m.running.start)
	}
}

// leave takes a waiter off a flight; one that nobody waits for is called off.
func (m *mirror) leave(f *flight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.waiters--
	if f.waiters <= 0 {
		f.cancel()
		if m.next == f {
			m.next = nil
		}
	}
}

func (s *Service) fly(ctx context.Context, m *mirror, r remote, f *flight) {
	defer f.cancel()
	defer close(f.done)
	select {
	case <-f.start:
	case <-ctx.Done():
		f.err = fmt.Errorf("fetching repository %s: %w", m.name, context.Cause(ctx))
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.running == f {
			m.promote()
		}
		return
	}
	m.mu.Lock()
	repo := f.repo
	wants := make([]string, 0, len(f.wants))
	for w := range f.wants {
		wants = append(wants, w)
	}
	m.mu.Unlock()
	slices.Sort(wants)

	f.tips, f.err = s.converse(ctx, m, r, repo, wants)

	m.mu.Lock()
	m.promote()
	m.mu.Unlock()
}

// converse asks the remote and cleans its errors: what leaves here says what to do and holds no secret.
func (s *Service) converse(ctx context.Context, m *mirror, r remote, repo model.Repository, wants []string) (tips map[string]tip, err error) {
	begin := time.Now()
	result := "unchanged"
	defer func() {
		if p := recover(); p != nil { // go-git reads what strangers wrote
			err = fmt.Errorf("reading what the remote of repository %s sent: internal fault: %v: %w", m.name, p, model.ErrUnavailable)
		}
		if err != nil {
			result = "failed"
			err = s.explain(err, r, repo)
		}
		s.metrics.syncs.WithLabelValues(result).Inc()
		s.metrics.syncSeconds.WithLabelValues(result).Observe(time.Since(begin).Seconds())
	}()
	if r.scheme == schemeFile && s.transports.local {
		if t, fetched, ok := m.copyLocal(ctx, r, wants); ok {
			if fetched {
				result = "fetched"
				s.tidy(m, m.view())
			}
			return t, nil
		}
	}
	if err := acquire(ctx, s.peeks); err != nil {
		return nil, err
	}
	defer release(s.peeks)

	tips, fetched, err := s.converseOnce(ctx, m, r, repo, wants)
	if errors.Is(err, errCorrupt) && ctx.Err() == nil {
		s.log.Warn("mirror is damaged and is cloned again", slog.String("repository", string(m.name)), slog.String("error", r.redact(err.Error(), repo.Password)))
		s.metrics.reclones.Inc()
		if err := m.drop(); err != nil {
			return nil, err
		}
		tips, fetched, err = s.converseOnce(ctx, m, r, repo, wants)
	}
	if fetched {
		result = "fetched"
	}
	return tips, err
}

func (s *Service) converseOnce(ctx context.Context, m *mirror, r remote, repo model.Repository, wants []string) (map[string]tip, bool, error) {
	peekCtx, cancel := context.WithTimeoutCause(ctx, s.config.PeekTimeout, fmt.Errorf("no answer within %s", s.config.PeekTimeout))
	defer cancel()
	c, err := s.transports.open(peekCtx, r, repo)
	if err != nil {
		return nil, false, err
	}
	defer c.close()
	ar, err := c.refs(peekCtx)
	if err != nil {
		return nil, false, err
	}
	tips, objects := resolveAll(ar, wants)

	st, err := m.open()
	if err != nil {
		return nil, false, err
	}
	if m.remembers(st, tips) {
		return tips, false, nil
	}
	missing, err := m.missing(st, objects)
	if err != nil {
		return nil, false, err
	}
	if len(missing) > 0 {
		if err := acquire(ctx, s.fetches); err != nil {
			return nil, false, err
		}
		defer release(s.fetches)
		fetchCtx, cancel := context.WithTimeoutCause(ctx, s.config.FetchTimeout, fmt.Errorf("not done within %s", s.config.FetchTimeout))
		defer cancel()
		if err := m.fetch(fetchCtx, st, c, ar, missing); err != nil {
			return nil, false, err
		}
	}
	for w, t := range tips {
		if t.commit, err = m.peel(st, t.commit); err != nil {
			return nil, false, err
		}
		if t.revision, err = m.read(st, t); err != nil {
			return nil, false, err
		}
		tips[w] = t
		if err := m.remember(st, t); err != nil {
			return nil, false, err
		}
	}
	s.tidy(m, st)
	return tips, len(missing) > 0, nil
}

// tidy folds the packs of a mirror when there are many. A failure costs time and nothing else.
func (s *Service) tidy(m *mirror, st *store) {
	if m.packs() <= s.config.MaxPacks {
		return
	}
	if err := m.fold(st); err != nil {
		s.log.Warn("the packs of a mirror were not put together", slog.String("repository", string(m.name)), slog.String("error", err.Error()))
	}
}

// resolveAll finds the wanted branches among a remote's refs. Objects are what has to be there, commits and tags alike.
func resolveAll(ar *packp.AdvRefs, wants []string) (map[string]tip, []plumbing.Hash) {
	tips := make(map[string]tip, len(wants))
	var objects []plumbing.Hash
	for _, w := range wants {
		ref, hash := resolveRef(ar, w)
		if ref == "" {
			continue
		}
		if peeled, ok := ar.Peeled[ref]; ok {
			hash = peeled // the commit of an annotated tag
		}
		tips[w] = tip{ref: ref, commit: hash}
		objects = append(objects, hash)
	}
	slices.SortFunc(objects, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return tips, slices.Compact(objects)
}

// resolveRef finds one: a full name exactly, else a branch, else a tag, and the empty name by the remote's HEAD.
func resolveRef(ar *packp.AdvRefs, want string) (string, plumbing.Hash) {
	if want == "" {
		for _, v := range ar.Capabilities.Get(capability.SymRef) {
			if from, to, ok := strings.Cut(v, ":"); ok && from == "HEAD" && CheckBranch(to) == nil {
				if h, ok := ar.References[to]; ok {
					return to, h
				}
			}
		}
		if ar.Head == nil {
			return "", plumbing.ZeroHash
		}
		// An old server does not say what HEAD means: a branch at the same commit, the usual names first.
		var same []string
		for name, h := range ar.References {
			if h == *ar.Head && strings.HasPrefix(name, "refs/heads/") {
				same = append(same, name)
			}
		}
		slices.Sort(same)
		for _, name := range []string{"refs/heads/main", "refs/heads/master"} {
			if slices.Contains(same, name) {
				return name, *ar.Head
			}
		}
		if len(same) > 0 {
			return same[0], *ar.Head
		}
		return "HEAD", *ar.Head
	}
	for _, name := range candidates(want) {
		if h, ok := ar.References[name]; ok {
			return name, h
		}
	}
	return "", plumbing.ZeroHash
}

// candidates are the full names that a branch's name may mean, the preferred first.
func candidates(want string) []string {
	if strings.HasPrefix(want, "refs/") {
		return []string{want}
	}
	return []string{"refs/heads/" + want, "refs/tags/" + want}
}

// store is the part of go-git's storage that a mirror uses.
type store = filesystem.Storage

// view opens the mirror on disk for reading.
func (m *mirror) view() *store {
	return filesystem.NewStorageWithOptions(osfs.New(m.dir), cache.NewObjectLRU(16*cache.MiByte), filesystem.Options{LargeObjectThreshold: 1 << 20})
}

// open opens the mirror for a flight and makes it if there is none. What a killed process left half-written is removed.
func (m *mirror) open() (*store, error) {
	pack := filepath.Join(m.dir, "objects", "pack")
	if err := os.MkdirAll(pack, 0o700); err != nil {
		return nil, fmt.Errorf("making the mirror of %s: %w", m.name, err)
	}
	if err := sweep(pack); err != nil {
		return nil, err
	}
	st := m.view()
	if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		if err := st.Init(); err != nil {
			return nil, fmt.Errorf("making the mirror of %s: %w", m.name, err)
		}
		if err := st.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")); err != nil {
			return nil, fmt.Errorf("making the mirror of %s: %w", m.name, err)
		}
		if err := m.dropOthers(); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// dropOthers removes the mirrors of the URLs that the repository had before.
func (m *mirror) dropOthers() error {
	entries, err := os.ReadDir(filepath.Dir(m.dir))
	if err != nil {
		return fmt.Errorf("reading the mirrors of %s: %w", m.name, err)
	}
	stem := strings.TrimSuffix(filepath.Base(m.dir), filepath.Ext(m.dir))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stem+".") {
			if err := os.RemoveAll(filepath.Join(filepath.Dir(m.dir), e.Name())); err != nil {
				return fmt.Errorf("removing an old mirror of %s: %w", m.name, err)
			}
		}
	}
	return nil
}

// remembers reports whether all tips were fetched before.
func (m *mirror) remembers(st *store, tips map[string]tip) bool {
	for _, t := range tips {
		old, err := st.Reference(t.local())
		if err != nil || old.Hash() != t.commit {
			return false
		}
	}
	return true
}

// sweep removes unfinished packs, and indexes and packs that have lost their other half: a half-written index would be
// believed if the same pack came again.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the mirror: %w", err)
	}
	have := make(map[string]bool, len(entries))
	for _, e := range entries {
		have[e.Name()] = true
	}
	for name := range have {
		stem, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
		if strings.HasPrefix(name, "tmp_") || ext == ".idx" && !have[stem+".pack"] || ext == ".pack" && !have[stem+".idx"] {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cleaning the mirror: %w", err)
			}
		}
	}
	return nil
}

func (m *mirror) packs() int {
	names, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
	return len(names)
}

// drop removes the mirror from disk.
func (m *mirror) drop() error {
	m.disk.Lock()
	defer m.disk.Unlock()
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("removing the mirror of %s: %w", m.name, err)
	}
	return nil
}

// foldBytes bounds the packs that are put together: copying more than that again and again would cost more than it saves.
const foldBytes = 256 << 20

// fold puts all packs but the largest into one. Every reader loads the index of each pack, so their number is what a look
// costs; pushes bring one each.
func (m *mirror) fold(st *store) error {
	type pack struct {
		hash plumbing.Hash
		size int64
	}
	hashes, err := st.ObjectPacks()
	if err != nil {
		return fmt.Errorf("listing packs: %w", err)
	}
	var packs []pack
	dir := filepath.Join(m.dir, "objects", "pack")
	for _, h := range hashes {
		fi, err := os.Stat(filepath.Join(dir, "pack-"+h.String()+".pack"))
		if err != nil {
			return fmt.Errorf("listing packs: %w", err)
		}
		packs = append(packs, pack{h, fi.Size()})
	}
	slices.SortFunc(packs, func(a, b pack) int { return cmp.Compare(a.size, b.size) })
	packs = packs[:max(len(packs)-1, 0)]
	var objects []plumbing.Hash
	var bytes int64
	seen := map[plumbing.Hash]bool{}
	for _, p := range packs {
		if bytes += p.size; bytes > foldBytes {
			return nil
		}
		idx, err := readIndex(filepath.Join(dir, "pack-"+p.hash.String()+".idx"))
		if err != nil {
			return err
		}
		for _, h := range idx {
			if !seen[h] {
				seen[h] = true
				objects = append(objects, h)
			}
		}
	}
	if len(packs) < 2 {
		return nil
	}
	w, err := st.PackfileWriter()
	if err != nil {
		return fmt.Errorf("writing a pack: %w", err)
	}
	made, err := packfile.NewEncoder(w, st, false).Encode(objects, 0)
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("writing a pack: %w", err)
	}
	// Readers know the old packs: they finish first, and the next ones know the new.
	m.disk.Lock()
	defer m.disk.Unlock()
	for _, p := range packs {
		if p.hash == made {
			continue
		}
		for _, ext := range []string{".pack", ".idx"} { // a killed process leaves an index at worst, which is swept
			if err := os.Remove(filepath.Join(dir, "pack-"+p.hash.String()+ext)); err != nil {
				return fmt.Errorf("removing a pack: %w", err)
			}
		}
	}
	return nil
}

// readIndex lists the objects of a pack.
func readIndex(name string) ([]plumbing.Hash, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading a pack's index: %w", err)
	}
	defer f.Close()
	idx := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bufio.NewReader(f)).Decode(idx); err != nil {
		return nil, fmt.Errorf("%w: a pack's index: %w", errCorrupt, err)
	}
	entries, err := idx.Entries()
	if err != nil {
		return nil, fmt.Errorf("%w: a pack's index: %w", errCorrupt, err)
	}
	defer func() { _ = entries.Close() }()
	var out []plumbing.Hash
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: a pack's index: %w", errCorrupt, err)
		}
		out = append(out, e.Hash)
	}
}

// missing are the objects that the mirror does not have.
func (m *mirror) missing(st *store, objects []plumbing.Hash) ([]plumbing.Hash, error) {
	var out []plumbing.Hash
	for _, h := range objects {
		switch err := st.HasEncodedObject(h); {
		case err == nil:
		case errors.Is(err, plumbing.ErrObjectNotFound):
			out = append(out, h)
		default:
			return nil, fmt.Errorf("%w: looking for object %s: %w", errCorrupt, h, err)
		}
	}
	return out, nil
}

// fetch brings the missing objects and all that they lead to. A pack counts when it is whole; anything else leaves no trace.
func (m *mirror) fetch(ctx context.Context, st *store, c session, ar *packp.AdvRefs, missing []plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(ar.Capabilities)
	if ar.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return fmt.Errorf("asking for objects: %w", err)
		}
	}
	req.Wants = missing
	haves, err := m.haves(st)
	if err != nil {
		return err
	}
	req.Haves = haves
	body, err := c.pack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return fmt.Errorf("fetching objects: the remote sent nothing: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	var objects io.Reader = body
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		objects = sideband.NewDemuxer(sideband.Sideband64k, body)
	case req.Capabilities.Supports(capability.Sideband):
		objects = sideband.NewDemuxer(sideband.Sideband, body)
	}
	if err := packfile.UpdateObjectStorage(storer.Storer(st), &contextReader{ctx, objects}); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return errors.Join(fmt.Errorf("receiving objects: %w", err), sweep(filepath.Join(m.dir, "objects", "pack")))
	}
	if left, err := m.missing(st, missing); err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("the remote did not send object %s", missing[0]), err)
	}
	return nil
}

// contextReader stops reading when ctx ends, also when the body under it does not notice.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as the call that reads
	r   io.Reader
}

// Read implements [io.Reader].
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx) //nolint:wrapcheck // the cause is the message
	}
	return c.r.Read(p) //nolint:wrapcheck // a Reader hands on what it wraps
}

// haves are commits that the mirror has whole: the tips it remembers and some of their ancestors, so that a rewritten
// branch still shares its past.
func (m *mirror) haves(st *store) ([]plumbing.Hash, error) {
	refs, err := st.IterReferences()
	if err != nil {
		return nil, fmt.Errorf("%w: reading refs: %w", errCorrupt, err)
	}
	defer refs.Close()
	seen := make(map[plumbing.Hash]bool)
	var out []plumbing.Hash
	const most, perTip = 512, 32
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference {
			return nil
		}
		next := []plumbing.Hash{ref.Hash()}
		for n := 0; len(next) > 0 && n < perTip && len(out) < most; n++ {
			h := next[0]
			next = next[1:]
			if seen[h] {
				continue
			}
			seen[h] = true
			c, err := object.GetCommit(st, h)
			if err != nil {
				return fmt.Errorf("%w: commit %s: %w", errCorrupt, h, err)
			}
			out = append(out, h)
			next = append(next, c.ParentHashes...)
		}
		return nil
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it is our own
	}
	return out, nil
}

// peel follows tags to the commit.
func (m *mirror) peel(st *store, h plumbing.Hash) (plumbing.Hash, error) {
	for range 8 {
		o, err := st.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return h, fmt.Errorf("%w: object %s: %w", errCorrupt, h, err)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			return h, nil
		case plumbing.TagObject:
			t, err := object.DecodeTag(st, o)
			if err != nil {
				return h, fmt.Errorf("tag %s can not be read: %w", h, err)
			}
			h = t.Target
		default:
			return h, fmt.Errorf("object %s is a %s and not a commit: %w", h, o.Type(), model.ErrInvalid)
		}
	}
	return h, fmt.Errorf("tag %s leads to too many tags: %w", h, model.ErrInvalid)
}

// remember stores a tip, so that the next fetch can build on it.
func (m *mirror) remember(st *store, t tip) error {
	name := t.local()
	if old, err := st.Reference(name); err == nil && old.Hash() == t.commit {
		return nil
	}
	if err := st.SetReference(plumbing.NewHashReference(name, t.commit)); err != nil {
		// A directory stands where the file should go, or the other way round: refs/heads/a was replaced by refs/heads/a/b.
		return fmt.Errorf("%w: storing %s: %w", errCorrupt, t.ref, err)
	}
	return nil
}

// explain makes an error useful for whoever reads it in the repository's status.
func (s *Service) explain(err error, r remote, repo model.Repository) error {
	kind := model.ErrUnavailable
	hint := ""
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("fetching repository %s: %w", repo.Name, context.Canceled)
	case errors.Is(err, model.ErrInvalid):
		kind = model.ErrInvalid
	case errors.Is(err, model.ErrForbidden):
		kind = model.ErrForbidden
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		hint = "; check the repository's user name, token or key"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		hint = "; check the URL, and whether the credentials may read it"
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		kind, hint = model.ErrNotFound, "; push a first commit"
	}
	text := r.redact(err.Error(), repo.Password, repo.SSHKey, repo.SSHKeyPassphrase)
	text = strings.TrimSuffix(text, ": "+kind.Error())
	text = strings.TrimRight(text, ": ") // the answer that go-git adds may be empty
	return fmt.Errorf("repository %s (%s): %s%s: %w", repo.Name, r, text, hint, kind)
}

func acquire(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other fetches: %w", context.Cause(ctx))
	}
}

func release(sem chan struct{}) { <-sem }
