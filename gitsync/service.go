package gitsync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/intendant/intendant/model"
)

// Service keeps mirrors, hears of news and gives out source trees. Its methods may be called from any goroutine.
// [Service.Resolve] and [Service.Checkout] work without [Service.Run].
type Service struct {
	config     Config
	log        *slog.Logger
	recorder   Recorder
	metrics    *metrics
	peeks      chan struct{}
	fetches    chan struct{}
	transports *transports
	hooks      *hooks

	// work counts the goroutines of the service.
	work sync.WaitGroup

	// opening guards the first use of Config.Dir.
	opening sync.Mutex
	dir     string
	lock    *os.File
	trees   *trees

	// mu guards mirrors.
	mu      sync.Mutex
	mirrors map[model.RepositoryName]*mirror

	poller poller
}

// New makes a service. It does no I/O.
func New(c Config) (*Service, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, fmt.Errorf("gitsync: registering metrics: %w", err)
	}
	s := &Service{
		config: c, log: c.Logger, recorder: c.Recorder, metrics: m,
		peeks: make(chan struct{}, c.Peeks), fetches: make(chan struct{}, c.Fetches), // semaphores
		transports: newTransports(c, ""),
		mirrors:    map[model.RepositoryName]*mirror{},
		hooks:      newHooks(c),
	}
	s.poller.init(s)
	return s, nil
}

// home opens the service's part of Config.Dir. Each process has a part of its own, held by a lock that ends with it.
func (s *Service) home() (string, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.dir != "" {
		return s.dir, nil
	}
	const parts = 64
	for i := range parts {
		dir := filepath.Join(s.config.Dir, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("opening the git cache: %w", err)
		}
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return "", fmt.Errorf("opening the git cache: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			continue
		}
		if err != nil {
			return "", errors.Join(fmt.Errorf("locking the git cache %s: %w", dir, err), f.Close())
		}
		t, err := openTrees(filepath.Join(dir, "trees"), s.config, s.metrics)
		if err != nil {
			return "", errors.Join(err, f.Close())
		}
		s.dir, s.lock, s.trees = dir, f, t
		return dir, nil
	}
	return "", fmt.Errorf("the git cache %s is used by %d other processes: give this one another directory: %w", s.config.Dir, parts, model.ErrConflict)
}

// Close waits for running fetches and lets go of the directory. It is called after Run has returned, or instead of Run.
func (s *Service) Close() error {
	s.work.Wait()
	s.transports.idle()
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.lock == nil {
		return nil
	}
	f := s.lock
	s.dir, s.lock, s.trees = "", nil, nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing the git cache: %w", err)
	}
	return nil
}

// Resolve fetches an environment's branch and returns its newest revision. It fails with [model.ErrUnavailable] when the
// repository can not be reached, [model.ErrNotFound] when the branch does not exist, [model.ErrInvalid] when URL, branch or
// credentials can not be used as they are.
func (s *Service) Resolve(ctx context.Context, env model.Environment) (model.Revision, error) {
	repo, err := s.repositoryOf(ctx, env)
	if err != nil {
		return model.Revision{}, err
	}
	m, tips, err := s.tips(ctx, repo, env.RepoBranch)
	if err != nil {
		return model.Revision{}, err
	}
	t, ok := tips[env.RepoBranch]
	if !ok {
		return model.Revision{}, noBranch(repo, env.RepoBranch)
	}
	rev, err := m.revision(t)
	if errors.Is(err, errCorrupt) {
		if m, tips, err = s.recover(ctx, m, repo, env.RepoBranch); err == nil {
			rev, err = m.revision(tips[env.RepoBranch])
		}
	}
	return rev, err
}

func noBranch(repo model.Repository, branch string) error {
	if branch == "" {
		return fmt.Errorf("repository %s has no default branch: name one in the environment: %w", repo.Name, model.ErrNotFound)
	}
	return fmt.Errorf("repository %s has no branch or tag %q: %w", repo.Name, branch, model.ErrNotFound)
}

// recover throws a damaged mirror away and fetches again.
func (s *Service) recover(ctx context.Context, m *mirror, repo model.Repository, wants ...string) (*mirror, map[string]tip, error) {
	s.log.WarnContext(ctx, "mirror is damaged and is cloned again", slog.String("repository", string(m.name)))
	s.metrics.reclones.Inc()
	if err := m.drop(); err != nil {
		return nil, nil, err
	}
	return s.tips(ctx, repo, wants...)
}

// repositoryOf returns the repository of an environment. One that has a URL and no record gets a record made up for it,
// without credentials but those in the URL.
func (s *Service) repositoryOf(ctx context.Context, env model.Environment) (model.Repository, error) {
	if env.Repository != "" {
		repo, err := s.recorder.Repository(ctx, env.Repository)
		if err != nil {
			return model.Repository{}, fmt.Errorf("reading repository %s of environment %s: %w", env.Repository, env.Name, err)
		}
		return repo, nil
	}
	if env.RepoURL == "" {
		return model.Repository{}, fmt.Errorf("environment %s has no repository: set its repo_url: %w", env.Name, model.ErrInvalid)
	}
	sum := sha256.Sum256([]byte(env.RepoURL))
	return model.Repository{Name: model.RepositoryName("url-" + hex.EncodeToString(sum[:8])), URL: env.RepoURL}, nil
}

// revision reads what people want to know of a commit.
func (m *mirror) revision(t tip) (model.Revision, error) {
	if t.revision.Commit != "" {
		return t.revision, nil
	}
	m.disk.RLock()
	defer m.disk.RUnlock()
	return m.read(m.view(), t)
}

func (m *mirror) read(st *store, t tip) (model.Revision, error) {
	c, err := object.GetCommit(st, t.commit)
	if err != nil {
		return model.Revision{}, fmt.Errorf("%w: commit %s: %w", errCorrupt, t.commit, err)
	}
	return model.Revision{
		Repository: m.name, Ref: t.ref, Commit: t.commit.String(),
		Author: clip(c.Author.String(), 256), Message: clip(strings.TrimSpace(c.Message), 4096), CommittedAt: c.Committer.When.UTC(),
	}, nil
}

// clip makes a text of a stranger valid and bounded.
func clip(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Checkout returns the directory of the environment's path in an immutable tree of a revision. The caller must not write
// there and calls release when done; until then the tree stays. It fails with a [HostileTreeError] when the commit contains
// something that is refused, with [model.ErrNotFound] when the commit or the path does not exist.
func (s *Service) Checkout(ctx context.Context, env model.Environment, rev model.Revision) (dir string, release func(), err error) {
	if err := CheckRepoPath(env.RepoPath); err != nil {
		return "", nil, err
	}
	if !commitForm().MatchString(rev.Commit) {
		return "", nil, fmt.Errorf("commit %.80q is not a full object id: %w", rev.Commit, model.ErrInvalid)
	}
	repo, err := s.repositoryOf(ctx, env)
	if err != nil {
		return "", nil, err
	}
	r, err := parseURL(repo.URL)
	if err != nil {
		return "", nil, err
	}
	if err := CheckRepositoryName(repo.Name); err != nil {
		return "", nil, err
	}
	if _, err := s.home(); err != nil {
		return "", nil, err
	}
	files, release, err := s.trees.get(ctx, repo.Name, rev.Commit, func(ctx context.Context, dir string) (*plan, error) {
		return s.unpack(ctx, repo, r, env, rev, dir)
	})
	if err != nil {
		return "", nil, fmt.Errorf("checking out %s of repository %s: %w", rev.Commit, repo.Name, err)
	}
	dir, err = inside(files, env.RepoPath)
	if err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}

// unpack writes a commit's tree, and fetches when the mirror does not have the commit or is damaged.
func (s *Service) unpack(ctx context.Context, repo model.Repository, r remote, env model.Environment, rev model.Revision, dir string) (*plan, error) {
	m, err := s.mirror(repo.Name, r)
	if err != nil {
		return nil, err
	}
	commit := plumbing.NewHash(rev.Commit)
	wants := []string{env.RepoBranch}
	if rev.Ref != "" && rev.Ref != "HEAD" && CheckBranch(rev.Ref) == nil {
		wants = append(wants, rev.Ref)
	}
	if !m.has(commit) {
		var tips map[string]tip
		if m, tips, err = s.tips(ctx, repo, wants...); err != nil {
			return nil, err
		}
		if isTip(tips, commit) && !m.has(commit) { // the refs remember what the objects have lost
			if m, _, err = s.recover(ctx, m, repo, wants...); err != nil {
				return nil, err
			}
		}
		if !m.has(commit) {
			return nil, fmt.Errorf("the commit is not part of the watched branch (any more); compile the branch's newest commit instead: %w", model.ErrNotFound)
		}
	}
	p, err := m.treeOf(commit, s.config.Tree)(ctx, dir)
	if !errors.Is(err, errCorrupt) || ctx.Err() != nil {
		return p, err
	}
	if m, _, err = s.recover(ctx, m, repo, wants...); err != nil {
		return nil, err
	}
	if err := errors.Join(removeTree(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("unpacking again: %w", err)
	}
	if p, err = m.treeOf(commit, s.config.Tree)(ctx, dir); err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	return p, nil
}

func isTip(tips map[string]tip, commit plumbing.Hash) bool {
	for _, t := range tips {
		if t.commit == commit {
			return true
		}
	}
	return false
}

// has reports whether the mirror has an object. A mirror that can not be read does not have it.
func (m *mirror) has(h plumbing.Hash) bool {
	m.disk.RLock()
	defer m.disk.RUnlock()
	return m.view().HasEncodedObject(h) == nil
}

// inside returns a directory below a tree, and refuses one that is not there or is reached by a link that leaves.
func inside(files, sub string) (string, error) {
	if sub == "" || sub == "." {
		return files, nil
	}
	at, err := filepath.EvalSymlinks(filepath.Join(files, filepath.FromSlash(sub)))
	if err != nil {
		return "", fmt.Errorf("the repository has no directory %q at this commit: %w", sub, model.ErrNotFound)
	}
	root, err := filepath.EvalSymlinks(files)
	if err != nil {
		return "", fmt.Errorf("opening the tree: %w", err)
	}
	if at != root && !strings.HasPrefix(at, root+string(filepath.Separator)) {
		return "", fmt.Errorf("path %q leads out of the repository: %w", sub, model.ErrInvalid)
	}
	if fi, err := os.Stat(at); err != nil || !fi.IsDir() {
		return "", fmt.Errorf("%q is not a directory of the repository at this commit: %w", sub, model.ErrNotFound)
	}
	return at, nil
}

// A SyncResult says what a sync found.
type SyncResult struct {
	// Revisions are the newest commits by environment; Jobs the compiles that were queued for those that are new.
	Revisions map[model.EnvironmentID]model.Revision
	Jobs      map[model.EnvironmentID]model.JobID
}

// SyncNow looks for news of a repository and records them, as a webhook or poll would. The reason is shown to people.
func (s *Service) SyncNow(ctx context.Context, repository model.RepositoryName, reason string, trace model.TraceID) (SyncResult, error) {
	res, err := s.sync(ctx, repository, request{cause: causeRequest, reason: reason, trace: trace, at: time.Now()})
	s.poller.synced(repository, err, 0)
	return res, err
}

// sync fetches what the environments of a repository watch and records it.
func (s *Service) sync(ctx context.Context, name model.RepositoryName, req request) (SyncResult, error) {
	repo, err := s.recorder.Repository(ctx, name)
	if err != nil {
		return SyncResult{}, fmt.Errorf("syncing repository %s: %w", name, err)
	}
	envs, err := s.recorder.WatchingEnvironments(ctx, name)
	if err != nil {
		return SyncResult{}, fmt.Errorf("syncing repository %s: %w", name, err)
	}
	s.poller.learn(name, envs)
	if req.trace == "" {
		req.trace = model.NewTraceID()
	}
	res, err := s.syncEnvironments(ctx, repo, envs, req)
	if ctx.Err() == nil {
		// Who asked must see that it was done, even if there was nothing new.
		s.recordSync(ctx, name, err, len(res.Jobs) > 0 || req.cause != causePoll || req.reason != plainPoll)
	}
	return res, err
}

func (s *Service) syncEnvironments(ctx context.Context, repo model.Repository, envs []model.Environment, req request) (SyncResult, error) {
	res := SyncResult{Revisions: map[model.EnvironmentID]model.Revision{}, Jobs: map[model.EnvironmentID]model.JobID{}}
	var errs []error
	branches := map[string]bool{}
	for _, e := range envs {
		if err := CheckBranch(e.RepoBranch); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", e.Name, err))
			continue
		}
		branches[e.RepoBranch] = true
	}
	if len(branches) == 0 {
		return res, errors.Join(errs...)
	}
	wants := make([]string, 0, len(branches))
	for b := range branches {
		wants = append(wants, b)
	}
	m, tips, err := s.tips(ctx, repo, wants...)
	if err != nil {
		return res, err
	}
	for _, e := range envs {
		if !branches[e.RepoBranch] {
			continue
		}
		t, ok := tips[e.RepoBranch]
		if !ok {
			errs = append(errs, fmt.Errorf("environment %s: %w", e.Name, noBranch(repo, e.RepoBranch)))
			continue
		}
		rev := e.Revision
		if rev.Commit != t.commit.String() || rev.Ref != t.ref || rev.Repository != repo.Name {
			if rev, err = m.revision(t); errors.Is(err, errCorrupt) {
				if m, tips, err = s.recover(ctx, m, repo, wants...); err == nil {
					rev, err = m.revision(tips[e.RepoBranch])
				}
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("environment %s: %w", e.Name, err))
				continue
			}
			job, queued, err := s.recorder.RecordRevision(ctx, e.ID, rev, req.reason, req.trace, false)
			if err != nil {
				errs = append(errs, fmt.Errorf("recording commit %s for environment %s: %w", rev.Commit, e.Name, err))
				continue
			}
			if queued {
				res.Jobs[e.ID] = job
				s.metrics.queued.WithLabelValues(string(req.cause)).Inc()
				s.log.InfoContext(ctx, "new revision", slog.String("repository", string(repo.Name)), slog.String("environment", e.ID.String()),
					slog.String("ref", rev.Ref), slog.String("commit", rev.Commit), slog.String("reason", req.reason), slog.String("trace", string(req.trace)))
			}
		}
		res.Revisions[e.ID] = rev
	}
	return res, errors.Join(errs...)
}

// unchangedRecord is how often a sync that found nothing new is recorded.
const unchangedRecord = 5 * time.Minute

// recordSync stores the outcome of a sync. A success without news after a success is stored now and then only: a thousand
// idle repositories would otherwise write all the time.
func (s *Service) recordSync(ctx context.Context, name model.RepositoryName, syncErr error, news bool) {
	message := ""
	if syncErr != nil {
		message = syncErr.Error()
	}
	now := time.Now()
	if !s.poller.worthRecording(name, message, news, now) {
		return
	}
	if err := s.recorder.RecordSync(ctx, name, now, message); err != nil {
		s.log.WarnContext(ctx, "the outcome of a sync was not recorded", slog.String("repository", string(name)), slog.String("error", err.Error()))
	}
}

// jittered spreads a delay by a part of it, evenly around it.
func jittered(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 + part*(rand.Float64()-0.5))) //nolint:gosec // spreading load needs no secrecy
}
