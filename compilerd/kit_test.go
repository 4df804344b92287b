package compilerd_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/model"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake-compiler" {
		os.Exit(fakeCompiler(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

// fakeCompiler is what the test binary does when it is started as the compiler.
func fakeCompiler(mode string, args []string) int {
	dir := args[0]
	flags := map[string]string{}
	for i := 1; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	write := func(s string) {
		if err := os.WriteFile(flags["--result"], []byte(s), 0o600); err != nil {
			panic(err)
		}
	}
	mark := func(s string) { fmt.Println(s) }
	const okResult = `{"ok":true,"diagnostics":[{"severity":"warning","code":"W","message":"careful","file":"main.cf","line":2,"column":1,"end_line":2,"end_column":3,"related":[]}],
		"resources":[{"id":"std::File[b,path=/b]","attributes":{"path":"/b","hash":"<<undefined>>"},"requires":["std::File[a,path=/a]"],"resource_set":"s1","state":"undefined"},
		{"id":"std::File[a,path=/a]","attributes":{"path":"/a","n":1.50},"requires":[],"state":"available"}],
		"resource_sets":["s1","empty"],"unknowns":[{"resource":"std::File[b,path=/b]","parameter":"hash","source":"fact"}],
		"files":["x"],"inputs":[],"digest":"d","stats":{"instances":3},"instances":[{"id":1}]}`
	switch mode {
	case "ok":
		raw, err := os.ReadFile(flags["--inputs"])
		if err != nil {
			panic(err)
		}
		fmt.Printf("inputs %s\n", raw)
		fmt.Printf("env %s\n", strings.Join(os.Environ(), " "))
		fmt.Fprintf(os.Stderr, "dir %s\n", dir)
		sum := sha1.Sum([]byte("content"))
		if err := os.WriteFile(filepath.Join(flags["--files"], hex.EncodeToString(sum[:])), []byte("content"), 0o600); err != nil {
			panic(err)
		}
		write(okResult)
	case "faults":
		write(`{"ok":false,"diagnostics":[{"severity":"error","code":"TypeNotFoundException","message":"no","file":"main.cf","line":2,"column":1,"end_line":2,"end_column":3,"related":[]},
			{"severity":"error","code":"X","message":"no","file":"../secret","line":1,"column":1,"end_line":1,"end_column":1,"related":[]}],"resources":[],"unknowns":[],"digest":""}`)
		return 1
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: all is lost")
		return 3
	case "silent":
	case "garbage":
		write(`{"ok": tr`)
	case "wrong-file":
		write(okResult)
		if err := os.WriteFile(filepath.Join(flags["--files"], strings.Repeat("a", 40)), []byte("other"), 0o600); err != nil {
			panic(err)
		}
	case "huge-output":
		block := strings.Repeat("0123456789abcde\n", 4096)
		fmt.Println("the beginning")
		for range 64 {
			fmt.Print(block)
		}
		fmt.Println("the end")
		write(okResult)
	case "huge-result":
		write(`{"ok":true,"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	case "hang":
		mark("hanging")
		select {}
	case "stubborn": // ignores the request, and has a child that keeps the pipes
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		mark(fmt.Sprintf("child %d", child.Process.Pid))
		select {}
	case "orphan": // ends well and leaves a child behind
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		mark(fmt.Sprintf("child %d", child.Process.Pid))
		write(okResult)
	case "hog":
		var all [][]byte
		for {
			b := make([]byte, 8<<20)
			for i := range b {
				b[i] = byte(i)
			}
			all = append(all, b)
			_ = all
		}
	case "spin":
		for spun := 0; ; spun++ {
		}
	case "big-file":
		signal.Reset(syscall.SIGXFSZ)
		f, err := os.Create("big")
		if err != nil {
			panic(err)
		}
		block := make([]byte, 1<<20)
		for {
			if _, err := f.Write(block); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 3
			}
		}
	default:
		if rest, ok := strings.CutPrefix(mode, "result:"); ok {
			write(rest)
			return 0
		}
		panic("mode " + mode)
	}
	return 0
}

// queue is the memory that a store would be.
type queue struct {
	mu       sync.Mutex
	changed  chan struct{}
	waiting  []model.CompileJob
	running  map[model.JobID]*claim
	stages   map[model.JobID]map[int]model.CompileStage
	outcomes map[model.JobID]model.CompileOutcome
	revs     map[model.JobID]model.Revision
	cancel   map[model.JobID]bool
	attempts map[model.JobID]int
	inputs   model.CompileInputs
	subs     []chan model.Hint
	refuse   error // what FinishCompileJob says to a state
	broken   int   // how many calls of FinishCompileJob fail first
}

type claim struct {
	job    model.CompileJob
	worker string
	until  time.Time
}

func newQueue() *queue {
	return &queue{
		changed: make(chan struct{}), running: map[model.JobID]*claim{}, stages: map[model.JobID]map[int]model.CompileStage{},
		outcomes: map[model.JobID]model.CompileOutcome{}, revs: map[model.JobID]model.Revision{}, cancel: map[model.JobID]bool{}, attempts: map[model.JobID]int{},
	}
}

func (q *queue) update(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		q.mu.Lock()
		ok, ch := cond(), q.changed
		q.mu.Unlock()
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

// add queues a job.
func (q *queue) add(job model.CompileJob) model.CompileJob {
	job.ID = model.JobID{UUID: uuid.New()}
	if job.Environment.UUID == uuid.Nil {
		job.Environment = model.EnvironmentID{UUID: uuid.New()}
	}
	job.RequestedAt = time.Now()
	q.update(func() { q.waiting = append(q.waiting, job) })
	q.hint(model.Hint{Topic: model.TopicCompileQueued, Environment: job.Environment})
	return job
}

func (q *queue) hint(h model.Hint) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.subs {
		c <- h
	}
}

func (q *queue) ClaimCompileJob(_ context.Context, worker string, now time.Time, lease time.Duration) (*model.CompileJob, error) {
	var out *model.CompileJob
	q.update(func() {
		for _, c := range q.running {
			if c.until.Before(now) {
				c.worker, c.until = worker, now.Add(lease)
				q.attempts[c.job.ID]++
				j := c.job
				j.Attempt = q.attempts[c.job.ID]
				out = &j
				return
			}
		}
		if len(q.waiting) == 0 {
			return
		}
		j := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.attempts[j.ID]++
		j.Attempt = 1
		q.running[j.ID] = &claim{j, worker, now.Add(lease)}
		out = &j
	})
	return out, nil
}

func (q *queue) held(id model.JobID, worker string) error {
	if c := q.running[id]; c == nil || c.worker != worker {
		return model.ErrFenced
	}
	return nil
}

func (q *queue) ExtendCompileJob(_ context.Context, id model.JobID, worker string, now time.Time, lease time.Duration) (cancel bool, err error) {
	q.update(func() {
		if err = q.held(id, worker); err == nil {
			q.running[id].until = now.Add(lease)
			cancel = q.cancel[id]
		}
	})
	return cancel, err
}

func (q *queue) SetCompileRevision(_ context.Context, id model.JobID, worker string, rev model.Revision) (err error) {
	q.update(func() {
		if err = q.held(id, worker); err == nil {
			q.revs[id] = rev
		}
	})
	return err
}

func (q *queue) SaveCompileStage(_ context.Context, id model.JobID, worker string, st model.CompileStage) (err error) {
	q.update(func() {
		if err = q.held(id, worker); err == nil {
			if q.stages[id] == nil {
				q.stages[id] = map[int]model.CompileStage{}
			}
			q.stages[id][st.Ordinal] = st
		}
	})
	return err
}

func (q *queue) FinishCompileJob(_ context.Context, worker string, o model.CompileOutcome, _ time.Time) (version int, err error) {
	id := o.Report.Job.ID
	q.update(func() {
		switch err = q.held(id, worker); {
		case err != nil:
			return
		case q.broken > 0:
			q.broken--
			err = model.ErrUnavailable
			return
		case o.State != nil && q.refuse != nil:
			err = q.refuse
			return
		}
		q.outcomes[id] = o
		delete(q.running, id)
		if o.State != nil {
			version = 1
		}
	})
	return version, err
}

func (q *queue) CompileInputs(context.Context, model.EnvironmentID) (model.CompileInputs, error) {
	return q.inputs, nil
}

func (q *queue) Environment(_ context.Context, id model.EnvironmentID) (model.Environment, error) {
	return model.Environment{ID: id, Name: "prod", RepoBranch: "main"}, nil
}

func (q *queue) PurgeCompileReports(context.Context, time.Time) (int64, error) { return 0, nil }

func (q *queue) Subscribe(ctx context.Context, _ ...model.Topic) <-chan model.Hint {
	c := make(chan model.Hint, 64)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subs = append(q.subs, c)
	context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.subs = slices.DeleteFunc(q.subs, func(x chan model.Hint) bool { return x == c })
		close(c)
	})
	return c
}

// sources gives out one directory.
type sources struct {
	dir string

	mu       sync.Mutex
	failures []error
	out      int
}

func (s *sources) fail() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		return nil
	}
	err := s.failures[0]
	s.failures = s.failures[1:]
	return err
}

func (s *sources) Resolve(context.Context, model.Environment) (model.Revision, error) {
	return model.Revision{Repository: "demo", Ref: "refs/heads/main", Commit: strings.Repeat("1", 40)}, s.fail()
}

func (s *sources) Checkout(context.Context, model.Environment, model.Revision) (string, func(), error) {
	if err := s.fail(); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out++
	return s.dir, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out--
	}, nil
}

// bench is a service with its surroundings.
type bench struct {
	q    *queue
	src  *sources
	dir  string
	stop func()
}

// start runs a service whose compiler is the fake one in a mode.
func start(t testing.TB, mode string, change ...func(*compilerd.Config)) *bench {
	t.Helper()
	b := &bench{q: newQueue(), src: &sources{dir: t.TempDir()}, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.src.dir, "main.cf"), []byte("line one\nline two\nline three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.stop = b.run(t, mode, change...)
	return b
}

func (b *bench) run(t testing.TB, mode string, change ...func(*compilerd.Config)) (stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := compilerd.Config{Queue: b.q, Sources: b.src, Dir: b.dir, Workers: 2, Command: []string{self, "fake-compiler", mode}, PollInterval: 50 * time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	s, err := compilerd.New(c)
	if err != nil {
		t.Fatal(err)
	}
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

// compile queues a job and waits for its outcome.
func (b *bench) compile(t testing.TB, job model.CompileJob) model.CompileOutcome {
	t.Helper()
	job = b.q.add(job)
	return b.outcome(t, job)
}

func (b *bench) outcome(t testing.TB, job model.CompileJob) model.CompileOutcome {
	t.Helper()
	b.q.await(t, "the compile has ended", func() bool { _, ok := b.q.outcomes[job.ID]; return ok })
	b.q.mu.Lock()
	defer b.q.mu.Unlock()
	return b.q.outcomes[job.ID]
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
