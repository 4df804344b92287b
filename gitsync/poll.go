package gitsync

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/intendant/intendant/model"
)

// A Poll says when a repository is asked for news.
type Poll struct {
	interval time.Duration
	cron     cron.Schedule
	never    bool
}

// ParsePoll reads [model.Repository].Poll: a number of seconds from 1 to a year, a cron expression of five fields in UTC,
// "0" for never; empty is the given default, of which 0 and less mean never. It fails with [model.ErrInvalid].
func ParsePoll(text string, standard time.Duration) (Poll, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Poll{interval: standard, never: standard <= 0}, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		const year = 366 * 24 * 3600
		switch {
		case n == 0:
			return Poll{never: true}, nil
		case n >= 1 && n <= year: // NaN is neither
			return Poll{interval: time.Duration(n * float64(time.Second))}, nil
		}
		return Poll{}, fmt.Errorf("poll interval %q is not between 1 second and a year: %w", text, model.ErrInvalid)
	}
	if len(text) > 256 || strings.Contains(text, "TZ=") || strings.HasPrefix(text, "@every") {
		return Poll{}, fmt.Errorf("poll schedule %.80q is neither a number of seconds nor a cron expression of five fields: %w", text, model.ErrInvalid)
	}
	c, err := cron.ParseStandard(text)
	if err != nil {
		return Poll{}, fmt.Errorf("poll schedule %q is neither a number of seconds nor a cron expression of five fields (%w): %w", text, err, model.ErrInvalid)
	}
	return Poll{cron: c}, nil
}

// cronSpread is how far polls of one cron expression are spread, so that they do not all start in the same second.
const cronSpread = 5 * time.Second

// next is when the poll is due after now; false when it never is.
func (p Poll) next(now time.Time, jitter float64) (time.Time, bool) {
	switch {
	case p.never:
		return time.Time{}, false
	case p.cron != nil:
		at := p.cron.Next(now.UTC())
		if at.IsZero() {
			return time.Time{}, false // such as 30 February
		}
		return at.Add(time.Duration(rand.Float64() * jitter * float64(cronSpread))), true //nolint:gosec // spreading load needs no secrecy
	default:
		return now.Add(jittered(p.interval, jitter)), true
	}
}

// cause is what led to a sync; it is a label of metrics.
type cause string

const (
	causePoll    cause = "poll"
	causeWebhook cause = "webhook"
	causeRequest cause = "request"
)

// plainPoll is the reason of a poll that nobody asked for.
const plainPoll = "poll"

// request asks for a sync of a repository.
type request struct {
	cause  cause
	reason string
	trace  model.TraceID
	at     time.Time
	// delivery is set for webhooks; it is finished with the sync.
	delivery *model.Delivery
}

// watcher is one repository that is watched. All fields are guarded by poller.mu.
type watcher struct {
	name model.RepositoryName
	// key changes when the repository is configured otherwise.
	key  [sha256.Size]byte
	poll Poll

	// due is when the next sync is to start, index its place in the heap, -1 when it is in none.
	due      time.Time
	index    int
	reason   string
	failures int
	rechecks int
	// asked is the newest request for a sync that was heeded.
	asked time.Time

	// running is true while a sync runs; waiting are the requests that the next one will serve.
	running bool
	waiting []request

	recordedAt time.Time
	recorded   string
}

// poller holds one heap for all repositories; one goroutine waits for the next that is due.
type poller struct {
	s *Service

	mu       sync.Mutex
	watchers map[model.RepositoryName]*watcher
	due      dueHeap
	// ready are watchers with requests and no running sync.
	ready []*watcher
	// known is what was last seen of each environment's source.
	known map[model.EnvironmentID]string
	// active is true while Run takes requests.
	active bool
	wake   chan struct{} // capacity 1
}

func (p *poller) init(s *Service) {
	p.s = s
	p.watchers = map[model.RepositoryName]*watcher{}
	p.known = map[model.EnvironmentID]string{}
	p.wake = make(chan struct{}, 1)
}

// relist is how often the list of repositories is read though no hint came: hints can be lost.
const relist = 5 * time.Minute

// Run polls, follows hints and works on webhooks until ctx ends. It returns nil on a clean stop.
func (s *Service) Run(ctx context.Context) error {
	if _, err := s.home(); err != nil {
		return err
	}
	p := &s.poller
	p.mu.Lock()
	if p.active {
		p.mu.Unlock()
		return fmt.Errorf("gitsync is already running: %w", model.ErrConflict)
	}
	p.active = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.active = false
		p.mu.Unlock()
		s.work.Wait()
		s.transports.idle()
	}()
	hints := s.recorder.Subscribe(ctx, model.TopicRepository, model.TopicEnvironment, model.TopicReplay)
	s.work.Go(func() { p.follow(ctx, hints) })
	p.loop(ctx)
	return nil
}

// loop starts what is due.
func (p *poller) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := p.start(ctx, time.Now())
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.wake:
		}
	}
}

// start begins every sync that is due or requested and returns how long to wait for the next.
func (p *poller) start(ctx context.Context, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.due) > 0 && !p.due[0].due.After(now) {
		w := heap.Pop(&p.due).(*watcher) //nolint:forcetypeassert // the heap holds nothing else
		reason := w.reason
		if reason == "" {
			reason = plainPoll
		}
		w.reason = ""
		p.add(w, request{cause: causePoll, reason: reason, at: now})
	}
	for _, w := range p.ready {
		if !w.running && len(w.waiting) > 0 {
			w.running = true
			p.s.work.Go(func() { p.drain(ctx, w) })
		}
	}
	p.ready = nil
	if len(p.due) == 0 {
		return time.Hour
	}
	return max(time.Until(p.due[0].due), 0)
}

// add notes a request. The caller holds mu.
func (p *poller) add(w *watcher, r request) {
	w.waiting = append(w.waiting, r)
	if !w.running {
		p.ready = append(p.ready, w)
	}
}

// request asks for a sync by Run. When Run is not there nothing is lost: the delivery is stored and will be found.
func (p *poller) request(name model.RepositoryName, r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active {
		return
	}
	w := p.watchers[name]
	if w == nil {
		// It has no watching environment that we know of; a hint may be on its way.
		w = &watcher{name: name, index: -1, poll: Poll{never: true}}
		p.watchers[name] = w
	}
	p.add(w, r)
	p.poke()
}

func (p *poller) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// drain syncs a repository until nothing more is asked. Requests that came together are served together.
func (p *poller) drain(ctx context.Context, w *watcher) {
	for {
		p.mu.Lock()
		batch := w.waiting
		w.waiting = nil
		if len(batch) == 0 || ctx.Err() != nil {
			w.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.serve(ctx, w, batch)
	}
}

// serve syncs once for a batch of requests and finishes its deliveries.
func (p *poller) serve(ctx context.Context, w *watcher, batch []request) {
	lead := batch[len(batch)-1]
	for _, r := range slices.Backward(batch) {
		if r.cause != causePoll {
			lead = r // whoever pushed last gives the reason
			break
		}
	}
	res, err := p.safeSync(ctx, w.name, lead)
	if ctx.Err() != nil {
		return // deliveries stay unfinished and are resumed by the next run
	}
	now := time.Now()
	recheck := false
	for _, r := range batch {
		if r.delivery == nil {
			continue
		}
		status, detail := model.DeliverySynced, describe(res)
		if err != nil {
			status, detail = model.DeliveryFailed, err.Error()
		} else if behind(r.delivery, res) {
			recheck = true
		}
		if len(res.Jobs) > 0 {
			p.s.metrics.pushToQueued.Observe(now.Sub(r.at).Seconds())
		}
		if ferr := p.s.recorder.FinishDelivery(ctx, w.name, r.delivery.Key, status, detail, now); ferr != nil {
			p.s.log.WarnContext(ctx, "the outcome of a webhook delivery was not recorded", slog.String("repository", string(w.name)),
				slog.String("delivery", r.delivery.Key), slog.String("trace", string(r.delivery.Trace)), slog.String("error", ferr.Error()))
		}
	}
	again := time.Duration(0)
	if recheck {
		again = time.Second
	}
	if err != nil {
		p.s.log.WarnContext(ctx, "sync failed", slog.String("repository", string(w.name)), slog.String("reason", lead.reason),
			slog.String("trace", string(lead.trace)), slog.String("error", err.Error()))
	}
	p.synced(w.name, err, again)
}

func (p *poller) safeSync(ctx context.Context, name model.RepositoryName, r request) (res SyncResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("syncing repository %s: internal fault: %v", name, v)
		}
	}()
	return p.s.sync(ctx, name, r)
}

// describe says what a sync found, for the delivery's record.
func describe(res SyncResult) string {
	switch {
	case len(res.Revisions) == 0:
		return "no environment watches this repository"
	case len(res.Jobs) == 0:
		return "nothing new on the watched branches"
	}
	ids := make([]string, 0, len(res.Jobs))
	for env, job := range res.Jobs {
		ids = append(ids, fmt.Sprintf("environment %s at %s: compile %s", env, res.Revisions[env].Commit, job))
	}
	slices.Sort(ids)
	return strings.Join(ids, "; ")
}

// behind reports whether a delivery speaks of a commit of a watched branch that is not what was found there: forges may
// send the hook before the new ref is visible to every reader.
func behind(d *model.Delivery, res SyncResult) bool {
	if !commitForm().MatchString(d.After) || strings.Trim(d.After, "0") == "" || len(res.Jobs) > 0 {
		return false
	}
	for _, rev := range res.Revisions {
		if rev.Ref == d.Ref && rev.Commit == d.Before {
			return true
		}
	}
	return false
}

// retryMost bounds the pause after failures, retryLeast is the first.
const (
	retryLeast = 5 * time.Second
	retryMost  = 15 * time.Minute
)

// synced plans the next sync of a repository. A positive again asks for a look after about that time, twice at most.
func (p *poller) synced(name model.RepositoryName, err error, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watchers[name]
	if w == nil {
		return
	}
	if errors.Is(err, model.ErrNotFound) && w.key == ([sha256.Size]byte{}) {
		delete(p.watchers, name) // never listed: the repository was deleted meanwhile
		return
	}
	now := time.Now()
	if w.index >= 0 && w.reason != "" && !w.due.After(now) {
		return // somebody asked while this sync ran: the next one is due already
	}
	if err != nil {
		w.failures++
		pause := retryMost
		if w.failures < 9 {
			pause = min(retryLeast<<(w.failures-1), retryMost)
		}
		p.plan(w, now.Add(jittered(pause, p.s.config.PollJitter)))
		return
	}
	w.failures = 0
	if again > 0 && w.rechecks < 2 {
		w.rechecks++
		w.reason = "looking again after a webhook"
		p.plan(w, now.Add(again<<(2*(w.rechecks-1))))
		return
	}
	w.rechecks = 0
	if at, ok := w.poll.next(now, p.s.config.PollJitter); ok {
		p.plan(w, at)
	} else if w.index >= 0 {
		heap.Remove(&p.due, w.index)
	}
}

// plan sets when a watcher is due. The caller holds mu.
func (p *poller) plan(w *watcher, at time.Time) {
	w.due = at
	if w.index >= 0 {
		heap.Fix(&p.due, w.index)
	} else {
		heap.Push(&p.due, w)
	}
	p.poke()
}

// worthRecording decides whether an outcome is stored, and notes that it will be.
func (p *poller) worthRecording(name model.RepositoryName, message string, news bool, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watchers[name]
	if w == nil {
		return true
	}
	if !news && w.recorded == message && !w.recordedAt.IsZero() && now.Sub(w.recordedAt) < unchangedRecord {
		return false
	}
	w.recorded, w.recordedAt = message, now
	return true
}

// sourceKey is what of an environment decides what is compiled.
func sourceKey(e model.Environment) string {
	return string(e.Repository) + "\x00" + e.RepoURL + "\x00" + e.RepoBranch + "\x00" + e.RepoPath + "\x00" + strconv.FormatBool(e.Halted)
}

// learn notes the environments of a repository, so that a hint about one of them is news only if its source changed.
func (p *poller) learn(name model.RepositoryName, envs []model.Environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, source := range p.known {
		// One that does not watch now, since it is halted perhaps, is news when it does again.
		if repository, _, _ := strings.Cut(source, "\x00"); repository == string(name) {
			delete(p.known, id)
		}
	}
	for _, e := range envs {
		p.known[e.ID] = sourceKey(e)
	}
}

// follow keeps the list of watchers true: by hints, and by reading all now and then.
func (p *poller) follow(ctx context.Context, hints <-chan model.Hint) {
	first := true
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		all := false
		repos, envs, replays := map[model.RepositoryName]bool{}, map[model.EnvironmentID]bool{}, map[string]bool{}
		note := func(h model.Hint) {
			switch {
			case h.Topic == model.TopicReplay:
				replays[h.ID] = true
			case h.Topic == model.TopicEnvironment && h.Environment != (model.EnvironmentID{}):
				envs[h.Environment] = true
			case h.Topic == model.TopicRepository && h.ID != "":
				repos[model.RepositoryName(h.ID)] = true
			default:
				all = true
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			all = true
		case h, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
			note(h)
			for more := true; more; { // hints come in bursts
				select {
				case h, ok := <-hints:
					if more = ok; ok {
						note(h)
					}
				default:
					more = false
				}
			}
		}
		if len(replays) > 0 {
			if err := p.resume(ctx, func(d model.Delivery) bool { return replays[string(d.Repository)+"/"+d.Key] }); err != nil && ctx.Err() == nil {
				p.s.log.WarnContext(ctx, "the deliveries to replay could not be read", slog.String("error", err.Error()))
			}
		}
		again, err := p.refresh(ctx, all, repos, envs, first)
		if err != nil && ctx.Err() == nil {
			p.s.log.WarnContext(ctx, "the watched repositories could not be read", slog.String("error", err.Error()))
			timer.Reset(retryLeast)
			continue
		}
		if again || all {
			first = false
			timer.Reset(relist)
		}
	}
}

// refresh reads what hints spoke of. It reports whether it read everything.
func (p *poller) refresh(ctx context.Context, all bool, repos map[model.RepositoryName]bool, envs map[model.EnvironmentID]bool, first bool) (bool, error) {
	for id := range envs {
		e, err := p.s.recorder.Environment(ctx, id)
		if errors.Is(err, model.ErrNotFound) {
			p.mu.Lock()
			delete(p.known, id)
			p.mu.Unlock()
			all = true
			continue
		}
		if err != nil {
			return false, fmt.Errorf("reading environment %s: %w", id, err)
		}
		if !p.moved(e) {
			all = true
		}
	}
	for name := range repos {
		repo, err := p.s.recorder.Repository(ctx, name)
		if errors.Is(err, model.ErrNotFound) {
			p.forget(name)
			continue
		}
		if err != nil {
			return false, fmt.Errorf("reading repository %s: %w", name, err)
		}
		p.mu.Lock()
		w := p.watchers[name]
		if w != nil && w.key != ([sha256.Size]byte{}) {
			p.configure(w, repo, time.Now())
		} else {
			all = true
		}
		p.mu.Unlock()
	}
	if !all {
		return false, nil
	}
	list, err := p.s.recorder.Repositories(ctx)
	if err != nil {
		return false, fmt.Errorf("listing repositories: %w", err)
	}
	p.replace(list, first)
	if first {
		p.s.clean(list)
		if err := p.resume(ctx, func(model.Delivery) bool { return true }); err != nil {
			return false, err
		}
	}
	return true, nil
}

// moved looks at an environment that changed: if its source is another one, its repository is due at once. It reports
// false when the repository is not watched yet.
func (p *poller) moved(e model.Environment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := sourceKey(e)
	if p.known[e.ID] == key {
		return true
	}
	if e.Repository == "" {
		_, watched := p.known[e.ID]
		delete(p.known, e.ID)
		return !watched
	}
	w := p.watchers[e.Repository]
	if w == nil || w.key == ([sha256.Size]byte{}) {
		return false
	}
	p.known[e.ID] = key
	w.reason = "the environment's source was changed"
	p.plan(w, time.Now())
	return true
}

func (p *poller) forget(name model.RepositoryName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watchers[name]; w != nil {
		if w.index >= 0 {
			heap.Remove(&p.due, w.index)
		}
		delete(p.watchers, name)
	}
	p.s.metrics.watched.Set(float64(len(p.watchers)))
}

// replace makes the watchers those of the list. Those that are new are due: at once, or spread over some seconds when
// the service starts and there are many.
func (p *poller) replace(list []model.Repository, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	listed := make(map[model.RepositoryName]bool, len(list))
	for i, repo := range list {
		listed[repo.Name] = true
		w := p.watchers[repo.Name]
		if w == nil {
			w = &watcher{name: repo.Name, index: -1}
			p.watchers[repo.Name] = w
		}
		at := now
		if first {
			at = now.Add(time.Duration(i) * 5 * time.Millisecond)
		}
		p.configure(w, repo, at)
	}
	for name, w := range p.watchers {
		if !listed[name] && !w.running && len(w.waiting) == 0 {
			if w.index >= 0 {
				heap.Remove(&p.due, w.index)
			}
			delete(p.watchers, name)
		}
	}
	p.s.metrics.watched.Set(float64(len(p.watchers)))
}

// configure takes over a repository's configuration; if it changed, a sync is due at the given time. The caller holds mu.
func (p *poller) configure(w *watcher, repo model.Repository, at time.Time) {
	if repo.SyncRequested.After(w.asked) {
		w.asked = repo.SyncRequested
		w.reason = "requested"
		p.plan(w, time.Now())
	}
	h := sha256.New()
	for _, part := range []string{
		repo.URL, repo.Username, repo.Password.Reveal(), repo.SSHKey.Reveal(), repo.SSHKeyPassphrase.Reveal(), repo.KnownHosts, repo.Poll,
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	key := [sha256.Size]byte(h.Sum(nil))
	if w.key == key {
		return
	}
	w.key = key
	w.failures = 0
	poll, err := ParsePoll(repo.Poll, p.s.config.PollInterval)
	if err != nil {
		// One repository's mistake must not stop it, and not the others either.
		p.s.log.Warn("a repository's poll schedule can not be used; the default is", slog.String("repository", string(repo.Name)), slog.String("error", err.Error()))
		poll, _ = ParsePoll("", p.s.config.PollInterval)
	}
	w.poll = poll
	p.plan(w, at)
}

// resume takes up deliveries that were accepted and are not finished: those that which accepts.
func (p *poller) resume(ctx context.Context, which func(model.Delivery) bool) error {
	const most = 10_000
	list, err := p.s.recorder.UnfinishedDeliveries(ctx, most)
	if err != nil {
		return fmt.Errorf("listing unfinished deliveries: %w", err)
	}
	resumed := 0
	for i := range list {
		d := &list[i]
		if !which(*d) {
			continue
		}
		resumed++
		p.request(d.Repository, request{cause: causeWebhook, reason: reasonOf(*d) + " (resumed)", trace: d.Trace, at: d.ReceivedAt, delivery: d})
	}
	if resumed > 0 {
		p.s.log.InfoContext(ctx, "webhook deliveries resumed", slog.Int("deliveries", resumed))
	}
	return nil
}

// clean removes mirrors and trees of repositories that nobody watches any more.
func (s *Service) clean(list []model.Repository) {
	dir, err := s.home()
	if err != nil {
		return
	}
	keep := make(map[model.RepositoryName]bool, len(list))
	for _, r := range list {
		keep[r.Name] = true
	}
	s.mu.Lock()
	for name := range s.mirrors {
		keep[name] = true
	}
	s.mu.Unlock()
	entries, _ := os.ReadDir(filepath.Join(dir, "mirrors"))
	for _, e := range entries {
		if !keep[model.RepositoryName(e.Name())] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "mirrors", e.Name())))
		}
	}
	if err = errors.Join(err, s.trees.keep(keep)); err != nil {
		s.log.Warn("unused mirrors or trees were not removed", slog.String("error", err.Error()))
	}
}

// dueHeap orders watchers by when they are due.
type dueHeap []*watcher

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *dueHeap) Push(x any) {
	w := x.(*watcher) //nolint:forcetypeassert // the heap holds nothing else
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements [heap.Interface].
func (h *dueHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
