package compilerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/model"
)

// Service claims compile jobs and works on them.
type Service struct {
	config  Config
	queue   Queue
	log     *slog.Logger
	metrics *metrics
	// wake holds a token for each worker that should look at the queue now.
	wake chan struct{}

	// mu guards cancels: what ends the running jobs, by job.
	mu      sync.Mutex
	cancels map[model.JobID]chan struct{}
}

// New makes a service. It does no I/O.
func New(c Config) (*Service, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, fmt.Errorf("compilerd: registering metrics: %w", err)
	}
	return &Service{
		config: c, queue: c.Queue, log: c.Logger, metrics: m,
		wake: make(chan struct{}, c.Workers), cancels: map[model.JobID]chan struct{}{},
	}, nil
}

// Run works on jobs until ctx ends. Compiles that run then are ended and their claims let go, so that another worker begins
// them again. It returns nil on a clean stop.
func (s *Service) Run(ctx context.Context) error {
	if err := s.sweep(); err != nil {
		return err
	}
	hints := s.queue.Subscribe(ctx, model.TopicCompileQueued, model.TopicCompileCancel)
	var wg sync.WaitGroup
	wg.Go(func() { s.follow(ctx, hints) })
	wg.Go(func() { s.purge(ctx) })
	for i := range s.config.Workers {
		wg.Go(func() { s.work(ctx, s.config.Worker+"/"+strconv.Itoa(i)) })
	}
	wg.Wait()
	return nil
}

// follow turns hints into wake-ups.
func (s *Service) follow(ctx context.Context, hints <-chan model.Hint) {
	for {
		select {
		case <-ctx.Done():
			return
		case h, ok := <-hints:
			if !ok {
				return // the workers poll
			}
			if h.Topic == model.TopicCompileCancel {
				s.lookForCancel(h.ID)
				continue
			}
			s.poke()
		}
	}
}

// poke wakes a worker, if one sleeps.
func (s *Service) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookForCancel makes the heartbeat of a job, or of all when none is named, come now.
func (s *Service) lookForCancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for job, c := range s.cancels {
		if id == "" || id == job.String() {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// leastPoll is how soon a worker looks again after there was reason to expect a job: it may wait for its backoff.
const leastPoll = 20 * time.Millisecond

// work claims and compiles, one job after the other.
func (s *Service) work(ctx context.Context, worker string) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := leastPoll
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			pause = leastPoll
		case <-timer.C:
		}
		for ctx.Err() == nil {
			job, err := s.queue.ClaimCompileJob(ctx, worker, time.Now(), s.config.Lease)
			if err != nil {
				if ctx.Err() == nil {
					s.metrics.claimErrors.Inc()
					s.log.WarnContext(ctx, "no compile job could be claimed", slog.String("worker", worker), slog.String("error", err.Error()))
				}
				break
			}
			if job == nil {
				break
			}
			s.poke() // where one was there may be more
			s.handle(ctx, worker, *job)
			pause = leastPoll
		}
		timer.Reset(pause)
		pause = min(2*pause, s.config.PollInterval)
	}
}

// The reasons for ending a job before its time.
var (
	errCancelled = errors.New("cancelled on request")
	errFenced    = errors.New("another worker has taken over")
	errStopped   = errors.New("the service stops")
)

// handle works on one job and lets go of it, whatever happens.
func (s *Service) handle(ctx context.Context, worker string, job model.CompileJob) {
	begin := time.Now()
	log := s.log.With(slog.String("environment", job.Environment.String()), slog.String("compile", job.ID.String()),
		slog.String("trace", string(job.Trace)), slog.String("worker", worker))
	log.InfoContext(ctx, "compile started", slog.String("reason", job.Reason), slog.Int("attempt", job.Attempt))
	s.metrics.running.Inc()
	defer s.metrics.running.Dec()
	if !job.RequestedAt.IsZero() && job.Attempt <= 1 {
		s.metrics.queueWait.Observe(max(begin.Sub(job.RequestedAt), 0).Seconds())
	}

	// The job outlives ctx by as long as it takes to end its child and let go of the claim.
	jobCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	stop := context.AfterFunc(ctx, func() { end(errStopped) })
	defer stop()
	beat := s.register(job.ID)
	defer s.unregister(job.ID)
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { s.heartbeat(beating, worker, job.ID, beat, end) })
	defer wg.Wait()
	defer still()

	r := &run{s: s, job: job, worker: worker, log: log}
	outcome := r.safely(jobCtx)
	status := s.finish(jobCtx, log, worker, job, outcome)
	s.metrics.compiles.WithLabelValues(status).Inc()
	s.metrics.compileSeconds.WithLabelValues(status).Observe(time.Since(begin).Seconds())
}

func (s *Service) register(id model.JobID) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{}, 1)
	s.cancels[id] = c
	return c
}

func (s *Service) unregister(id model.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cancels, id)
}

// heartbeat prolongs a claim until ctx ends. It ends the job when somebody asks for it, when the claim is lost, and when it
// could not be prolonged for so long that another worker may have it.
func (s *Service) heartbeat(ctx context.Context, worker string, id model.JobID, now <-chan struct{}, end context.CancelCauseFunc) {
	held := time.Now()
	tick := time.NewTicker(s.config.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-now:
		}
		at := time.Now()
		callCtx, done := context.WithTimeout(ctx, s.config.Lease/3)
		cancel, err := s.queue.ExtendCompileJob(callCtx, id, worker, at, s.config.Lease)
		done()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, model.ErrFenced):
			end(errFenced)
			return
		case err != nil:
			s.log.WarnContext(ctx, "a claim could not be prolonged", slog.String("compile", id.String()), slog.String("error", err.Error()))
			if time.Since(held) >= s.config.Lease {
				end(errFenced)
				return
			}
			continue
		}
		held = at
		if cancel {
			end(errCancelled)
		}
	}
}

// finish hands in the outcome and returns the metric's label. When the service stops the claim is let go instead.
func (s *Service) finish(ctx context.Context, log *slog.Logger, worker string, job model.CompileJob, outcome model.CompileOutcome) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errFenced):
		log.WarnContext(ctx, "compile given up: another worker has taken over")
		return "fenced"
	case errors.Is(cause, errStopped) && outcome.Report.Status != model.CompileSucceeded:
		letGo, done := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer done()
		if _, err := s.queue.ExtendCompileJob(letGo, job.ID, worker, time.Now(), 0); err != nil {
			log.WarnContext(ctx, "a claim was not let go and will run out", slog.String("error", err.Error()))
		}
		return "stopped"
	}
	pause := 100 * time.Millisecond
	last, done := context.WithTimeout(context.WithoutCancel(ctx), s.config.Lease)
	defer done()
	for {
		version, err := s.queue.FinishCompileJob(last, worker, outcome, time.Now())
		switch {
		case err == nil:
			attrs := []any{slog.String("status", string(outcome.Report.Status)), slog.Int("version", version), slog.String("commit", outcome.Report.Job.Revision.Commit)}
			if outcome.Report.Error != "" {
				attrs = append(attrs, slog.String("error", outcome.Report.Error))
			}
			log.InfoContext(ctx, "compile finished", attrs...)
			return string(outcome.Report.Status)
		case errors.Is(err, model.ErrFenced):
			log.WarnContext(ctx, "compile given up: another worker has taken over")
			return "fenced"
		case errors.Is(err, model.ErrInvalid) && outcome.State != nil:
			// The state can not be stored, now or later: that is the end of the job, and people must see why.
			outcome.State = nil
			outcome.Report.Status = model.CompileFailed
			outcome.Report.Error = "the result was not accepted: " + err.Error()
			failStage(&outcome.Report, outcome.Report.Error)
			continue
		}
		log.WarnContext(ctx, "the outcome of a compile could not be stored yet", slog.String("error", err.Error()))
		if !sleep(last, pause) || errors.Is(context.Cause(ctx), errFenced) {
			log.ErrorContext(ctx, "the outcome of a compile was not stored; it will be compiled again", slog.String("error", err.Error()))
			return "lost"
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// failStage makes the last stage of a report a failed one.
func failStage(r *model.CompileReport, message string) {
	if n := len(r.Stages); n > 0 {
		code := 1
		r.Stages[n-1].ExitCode = &code
		r.Stages[n-1].Stderr += message + "\n"
	}
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// purge deletes old reports at the start and then hourly.
func (s *Service) purge(ctx context.Context) {
	if s.config.ReportRetention < 0 {
		return
	}
	for {
		n, err := s.queue.PurgeCompileReports(ctx, time.Now().Add(-s.config.ReportRetention))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.WarnContext(ctx, "old compile reports were not deleted", slog.String("error", err.Error()))
		case n > 0:
			s.log.InfoContext(ctx, "old compile reports deleted", slog.Int64("reports", n))
		}
		if !sleep(ctx, time.Hour) {
			return
		}
	}
}

// workspacePrefix begins the names of workspaces.
const workspacePrefix = "compile-"

// sweep removes the workspaces that no living process holds.
func (s *Service) sweep() error {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of workspaces: %w", err)
	}
	entries, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return fmt.Errorf("reading the directory of workspaces: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), workspacePrefix) {
			continue
		}
		dir := filepath.Join(s.config.Dir, e.Name())
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			held := errors.Is(err, syscall.EWOULDBLOCK)
			_ = lock.Close()
			if held {
				continue
			}
		} else if fi, serr := os.Stat(dir); serr == nil && time.Since(fi.ModTime()) < time.Minute {
			continue // it is being made right now
		}
		if err := os.RemoveAll(dir); err != nil {
			s.log.Warn("a workspace was not removed", slog.String("error", err.Error()))
		}
	}
	return nil
}

// workspace is the directory of one compile.
type workspace struct {
	dir  string
	lock *os.File
}

func (s *Service) workspace() (*workspace, error) {
	dir, err := os.MkdirTemp(s.config.Dir, workspacePrefix)
	if err != nil {
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	w := &workspace{dir: dir}
	fail := func(err error) (*workspace, error) {
		return nil, errors.Join(fmt.Errorf("making a workspace: %w", err), w.remove())
	}
	if w.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fail(err)
	}
	if err := syscall.Flock(int(w.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fail(err)
	}
	for _, sub := range []string{"home", "tmp", "files"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return fail(err)
		}
	}
	return w, nil
}

func (w *workspace) path(name string) string { return filepath.Join(w.dir, name) }

func (w *workspace) remove() error {
	err := os.RemoveAll(w.dir)
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("removing a workspace: %w", err)
	}
	return nil
}
