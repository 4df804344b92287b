package gitsync_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "fetch-and-be-killed" {
		fetchUntilKilled(os.Args[2], os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

// file is an entry of a tree: a text, or a link, or whatever mode says.
type file struct {
	mode filemode.FileMode
	text string
	hash plumbing.Hash
}

type files = map[string]file

func text(s string) file { return file{mode: filemode.Regular, text: s} }
func link(s string) file { return file{mode: filemode.Symlink, text: s} }

// origin is a bare repository to push to.
type origin struct {
	t    testing.TB
	dir  string
	repo *git.Repository
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "origin.git")
	r, err := git.PlainInit(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{t: t, dir: dir, repo: r}
	if err := r.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *origin) object(typ plumbing.ObjectType, content []byte) plumbing.Hash {
	o.t.Helper()
	e := o.repo.Storer.NewEncodedObject()
	e.SetType(typ)
	w, err := e.Writer()
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		o.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		o.t.Fatal(err)
	}
	h, err := o.repo.Storer.SetEncodedObject(e)
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

// rawTree stores entries exactly as given, whatever their names and order.
func (o *origin) rawTree(entries ...object.TreeEntry) plumbing.Hash {
	o.t.Helper()
	var b []byte
	for _, e := range entries {
		b = append(b, strings.TrimLeft(e.Mode.String(), "0")...)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.Hash[:]...)
	}
	return o.object(plumbing.TreeObject, b)
}

func (o *origin) blob(s string) plumbing.Hash { return o.object(plumbing.BlobObject, []byte(s)) }

// tree stores nested files.
func (o *origin) tree(fs files) plumbing.Hash {
	o.t.Helper()
	dirs := map[string]files{}
	var entries []object.TreeEntry
	for _, name := range slices.Sorted(maps.Keys(fs)) {
		f := fs[name]
		if top, rest, ok := strings.Cut(name, "/"); ok {
			if dirs[top] == nil {
				dirs[top] = files{}
			}
			dirs[top][rest] = f
			continue
		}
		h := f.hash
		if h.IsZero() {
			h = o.blob(f.text)
		}
		entries = append(entries, object.TreeEntry{Name: name, Mode: f.mode, Hash: h})
	}
	for name, sub := range dirs {
		entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: o.tree(sub)})
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return o.rawTree(entries...)
}

func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// commitTree commits a tree to a ref and returns the commit.
func (o *origin) commitTree(ref string, tree plumbing.Hash, message string) string {
	o.t.Helper()
	who := object.Signature{Name: "Ada", Email: "ada@example.com", When: time.Unix(1_700_000_000, 0)}
	c := &object.Commit{Author: who, Committer: who, Message: message, TreeHash: tree}
	name := plumbing.ReferenceName(ref)
	if old, err := o.repo.Storer.Reference(name); err == nil {
		c.ParentHashes = []plumbing.Hash{old.Hash()}
	}
	e := o.repo.Storer.NewEncodedObject()
	if err := c.Encode(e); err != nil {
		o.t.Fatal(err)
	}
	h, err := o.repo.Storer.SetEncodedObject(e)
	if err != nil {
		o.t.Fatal(err)
	}
	// As git does, and go-git does not: nobody ever reads half a ref.
	at := filepath.Join(o.dir, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(at+".lock", []byte(h.String()+"\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	if err := os.Rename(at+".lock", at); err != nil {
		o.t.Fatal(err)
	}
	return h.String()
}

func (o *origin) push(branch string, fs files, message string) string {
	o.t.Helper()
	return o.commitTree(path.Join("refs/heads", branch), o.tree(fs), message)
}

// recorder is the memory that a store would be.
type recorder struct {
	mu         sync.Mutex
	changed    chan struct{}
	repos      map[model.RepositoryName]model.Repository
	envs       map[model.EnvironmentID]model.Environment
	deliveries map[string]model.Delivery
	jobs       []recorded
	syncedAt   map[model.RepositoryName]time.Time
	syncs      map[model.RepositoryName]string
	synced     map[model.RepositoryName]int
	subs       []chan model.Hint
	failing    error
}

type recorded struct {
	Env    model.EnvironmentID
	Rev    model.Revision
	Reason string
	Trace  model.TraceID
}

func newRecorder() *recorder {
	return &recorder{
		changed: make(chan struct{}), repos: map[model.RepositoryName]model.Repository{}, envs: map[model.EnvironmentID]model.Environment{},
		deliveries: map[string]model.Delivery{}, syncs: map[model.RepositoryName]string{}, synced: map[model.RepositoryName]int{},
		syncedAt: map[model.RepositoryName]time.Time{},
	}
}

func (r *recorder) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until a condition on the recorder holds.
func (r *recorder) await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		ok, ch := cond(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-ch:
		case <-deadline:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func (r *recorder) hint(h model.Hint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.subs {
		c <- h
	}
}

func (r *recorder) addRepo(repo model.Repository) {
	r.update(func() { r.repos[repo.Name] = repo })
}

func (r *recorder) addEnv(repo model.Repository, branch, sub string) model.Environment {
	e := model.Environment{ID: model.EnvironmentID{UUID: uuid.New()}, Name: "env-" + branch, Repository: repo.Name, RepoURL: repo.URL, RepoBranch: branch, RepoPath: sub}
	r.update(func() { r.envs[e.ID] = e })
	return e
}

func (r *recorder) RecordDelivery(_ context.Context, d model.Delivery) (bool, error) {
	fresh := false
	r.update(func() {
		if _, ok := r.deliveries[d.Key]; !ok && r.failing == nil {
			fresh = true
			r.deliveries[d.Key] = d
		}
	})
	return fresh, r.failing
}

func (r *recorder) FinishDelivery(_ context.Context, _ model.RepositoryName, key string, s model.DeliveryStatus, detail string, at time.Time) error {
	r.update(func() {
		d := r.deliveries[key]
		d.Status, d.Detail, d.FinishedAt = s, detail, at
		r.deliveries[key] = d
	})
	return nil
}

func (r *recorder) UnfinishedDeliveries(context.Context, int) ([]model.Delivery, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []model.Delivery
	for _, d := range r.deliveries {
		if d.Status == model.DeliveryReceived {
			out = append(out, d)
		}
	}
	return out, nil
}

func (r *recorder) Repositories(context.Context) ([]model.Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.repos)), nil
}

func (r *recorder) Repository(_ context.Context, n model.RepositoryName) (model.Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.repos[n]; ok {
		return x, nil
	}
	return model.Repository{}, model.ErrNotFound
}

func (r *recorder) WatchingEnvironments(_ context.Context, n model.RepositoryName) ([]model.Environment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []model.Environment
	for _, e := range r.envs {
		if e.Repository == n && !e.Halted {
			out = append(out, e)
		}
	}
	return out, nil
}

func (r *recorder) Environment(_ context.Context, id model.EnvironmentID) (model.Environment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.envs[id]; ok {
		return e, nil
	}
	return model.Environment{}, model.ErrNotFound
}

func (r *recorder) RecordRevision(_ context.Context, id model.EnvironmentID, rev model.Revision, reason string, trace model.TraceID, force bool) (model.JobID, bool, error) {
	queued := false
	r.update(func() {
		e, ok := r.envs[id]
		if !ok || e.Revision.Commit == rev.Commit && !force {
			return
		}
		e.Revision, queued = rev, true
		r.envs[id] = e
		r.jobs = append(r.jobs, recorded{id, rev, reason, trace})
	})
	return model.JobID{UUID: uuid.New()}, queued, nil
}

func (r *recorder) RecordSync(_ context.Context, n model.RepositoryName, at time.Time, message string) error {
	r.update(func() { r.syncs[n] = message; r.synced[n]++; r.syncedAt[n] = at })
	return nil
}

func (r *recorder) Subscribe(ctx context.Context, _ ...model.Topic) <-chan model.Hint {
	c := make(chan model.Hint, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs = append(r.subs, c)
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subs = slices.DeleteFunc(r.subs, func(x chan model.Hint) bool { return x == c })
		close(c)
	})
	return c
}

// newService makes a service that is closed with the test.
func newService(t testing.TB, c gitsync.Config) *gitsync.Service {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	s, err := gitsync.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs a service until the test ends, or the function it returns is called.
func run(t testing.TB, s *gitsync.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func wantErr(t testing.TB, err, is error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %v is not %v", err, is)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
}
