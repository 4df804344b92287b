package compilerd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/model"
)

func TestCompileMakesVersion(t *testing.T) {
	t.Parallel()
	b := start(t, "ok", func(c *compilerd.Config) { c.Environment = map[string]string{"ALLOWED": "yes"} })
	b.q.inputs = model.CompileInputs{Facts: map[string]string{"r/f": "v"}, Seed: "seed"}
	t.Cleanup(func() { b.stop() })
	o := b.compile(t, model.CompileJob{Export: true, Trace: "abc", EnvironmentVariables: map[string]string{"MINE": "1", "LD_PRELOAD": "/evil.so", "PATH": "/evil"}})
	r := o.Report
	if r.Status != model.CompileSucceeded || r.Error != "" {
		t.Fatalf("status = %s, error = %q, stages = %+v", r.Status, r.Error, r.Stages)
	}
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
		if s.ExitCode == nil || *s.ExitCode != 0 || s.FinishedAt.Before(s.StartedAt) {
			t.Errorf("stage %+v did not end well", s)
		}
	}
	if diff := cmp.Diff([]string{"fetch", "checkout", "compile", "export"}, names); diff != "" {
		t.Error(diff)
	}
	out := r.Stages[2]
	for _, want := range []string{`"facts":{"r/f":"v"}`, `"name":"prod"`, `"seed":"seed"`, "MINE=1", "ALLOWED=yes", "PATH=/usr/local/bin:/usr/bin:/bin"} {
		if !strings.Contains(out.Stdout, want) {
			t.Errorf("standard output %q does not contain %q", out.Stdout, want)
		}
	}
	for _, bad := range []string{"evil", "GOPATH=", "USER="} {
		if strings.Contains(out.Stdout, bad) {
			t.Errorf("the compiler's environment has %q: %s", bad, out.Stdout)
		}
	}
	if !strings.Contains(out.Stderr, `"LD_PRELOAD" is not handed on`) {
		t.Errorf("standard error = %q", out.Stderr)
	}
	st := o.State
	if st == nil || len(st.Intents) != 2 || len(st.Files) != 1 || string(st.Files[0].Content) != "content" {
		t.Fatalf("state = %+v", st)
	}
	first, err := model.NewIntent("std::File[a,path=/a]", []byte(`{"n":1.50,"path":"/a"}`), []model.ResourceID{}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := model.NewIntent("std::File[b,path=/b]", []byte(`{"path":"/b","hash":"<<undefined>>"}`), []model.ResourceID{"std::File[a,path=/a]"}, "s1", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Intent{first, second}
	if toJSON(t, want) != toJSON(t, st.Intents) {
		t.Errorf("intents = %s, want %s", toJSON(t, st.Intents), toJSON(t, want))
	}
	if st.Digest != model.StateDigest(want) || st.Revision.Commit == "" || st.Trace != "abc" || string(st.Metadata["stats"]) != `{"instances":3}` {
		t.Errorf("state = %+v", st)
	}
	if diff := cmp.Diff([]string{"s1", "empty"}, st.ResourceSets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]model.UnknownParameter{{Name: "hash", Resource: "std::File[b,path=/b]", Source: "fact"}}, st.Unknowns); diff != "" {
		t.Error(diff)
	}
	if e := r.Excerpts[0]; e.File != "main.cf" || e.FirstLine != 1 || len(e.Lines) < 3 || e.Lines[1] != "line two" {
		t.Errorf("excerpt = %+v", e)
	}
	if r.Digest == "" || r.CPUTime <= 0 || r.PeakMemory <= 0 {
		t.Errorf("digest %q, CPU time %s, peak memory %d: want all", r.Digest, r.CPUTime, r.PeakMemory)
	}
	again := b.compile(t, model.CompileJob{Revision: model.Revision{Commit: strings.Repeat("1", 40)}})
	if again.State != nil || again.Report.Status != model.CompileSucceeded || again.Report.Stages[0].Name != "checkout" {
		t.Errorf("a checking compile of a known commit = %+v", again.Report)
	}
	b.stop()
	if b.src.out != 0 {
		t.Errorf("%d checkouts were not released", b.src.out)
	}
	if left, _ := os.ReadDir(b.dir); len(left) != 0 {
		t.Errorf("%d workspaces are left", len(left))
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	quick := func(c *compilerd.Config) { c.Limits.Grace = 100 * time.Millisecond }
	ok := `{"ok":true,"resources":`
	for name, tt := range map[string]struct {
		mode   string
		change func(*compilerd.Config)
		want   string // in Report.Error
		exit   int
	}{
		"faults":       {mode: "faults", exit: 1},
		"crash":        {mode: "crash", want: "exit status 3: panic: all is lost", exit: 3},
		"silent":       {mode: "silent", want: "left no result", exit: 1},
		"garbage":      {mode: "garbage", want: `reading "ok"`, exit: 1},
		"wrong file":   {mode: "wrong-file", want: "another content than its name says", exit: 1},
		"no program":   {mode: "ok", change: func(c *compilerd.Config) { c.Command = []string{"/nowhere/compiler"} }, want: "starting the compiler /nowhere/compiler", exit: 1},
		"hang":         {mode: "hang", change: func(c *compilerd.Config) { c.Limits.Time = 200 * time.Millisecond }, want: "took longer than 200ms", exit: 143},
		"stubborn":     {mode: "stubborn", change: func(c *compilerd.Config) { c.Limits.Time = 300 * time.Millisecond }, want: "took longer than 300ms", exit: 137},
		"memory":       {mode: "hog", change: func(c *compilerd.Config) { c.Limits.Memory = 128 << 20 }, want: "more memory than the limit of 128 MiB", exit: -1},
		"cpu":          {mode: "spin", change: func(c *compilerd.Config) { c.Limits.CPUTime = time.Second }, want: "more processor time than the limit of 1s", exit: -1},
		"file":         {mode: "big-file", change: func(c *compilerd.Config) { c.Limits.File = 4 << 20 }, want: "", exit: -1},
		"huge result":  {mode: "huge-result", change: func(c *compilerd.Config) { c.Limits.Result = 1000 }, want: "more than 1000 bytes", exit: 1},
		"many":         {mode: "result:" + ok + `[{"id":"a::B[x,y=1]","attributes":{}},{"id":"a::B[x,y=2]","attributes":{}}]}`, change: func(c *compilerd.Config) { c.Limits.Resources = 1 }, want: "more than 1 resources", exit: 1},
		"twice":        {mode: "result:" + ok + `[{"id":"a::B[x,y=1]","attributes":{}},{"id":"a::B[x,y=1]","attributes":{}}]}`, want: "occurs twice", exit: 1},
		"dangling":     {mode: "result:" + ok + `[{"id":"a::B[x,y=1]","attributes":{},"requires":["a::B[x,y=2]"]}]}`, want: "which is not in the result", exit: 1},
		"bad id":       {mode: "result:" + ok + `[{"id":"nonsense","attributes":{}}]}`, want: "nonsense", exit: 1},
		"version id":   {mode: "result:" + ok + `[{"id":"a::B[x,y=1],v=3","attributes":{}}]}`, want: "has a version", exit: 1},
		"no object":    {mode: "result:" + ok + `[{"id":"a::B[x,y=1]","attributes":[]}]}`, want: "not an object", exit: 1},
		"not a list":   {mode: "result:" + ok + `{}}`, want: "not a list", exit: 1},
		"no verdict":   {mode: "result:{}", want: `whether the model is "ok"`, exit: 1},
		"no json":      {mode: "result:[]", want: "not a JSON object", exit: 1},
		"two keys":     {mode: `result:{"ok":true,"ok":false}`, want: "occurs twice", exit: 1},
		"deep":         {mode: "result:" + `{"ok":true,"x":` + strings.Repeat("[", 20000), want: `reading "x"`, exit: 1},
		"ok but wrong": {mode: `result:{"ok":true,"diagnostics":[{"severity":"error","code":"","message":"m","file":"","line":0,"column":0,"end_line":0,"end_column":0,"related":[]}]}`, want: "lists errors", exit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*compilerd.Config){quick}
			if tt.change != nil {
				change = append(change, tt.change)
			}
			b := start(t, tt.mode, change...)
			o := b.compile(t, model.CompileJob{Export: true})
			if o.Report.Status != model.CompileFailed || o.State != nil {
				t.Fatalf("status = %s, state = %v, want failed and none", o.Report.Status, o.State)
			}
			if !strings.Contains(o.Report.Error, tt.want) {
				t.Errorf("error = %q, want %q", o.Report.Error, tt.want)
			}
			last := o.Report.Stages[len(o.Report.Stages)-1]
			if last.ExitCode == nil || tt.exit >= 0 && *last.ExitCode != tt.exit || *last.ExitCode == 0 {
				t.Errorf("exit code of stage %s = %v, want %d", last.Name, last.ExitCode, tt.exit)
			}
			if tt.want != "" && !strings.Contains(last.Stderr, tt.want) {
				t.Errorf("standard error = %q, want %q in it", last.Stderr, tt.want)
			}
			if name == "faults" {
				if want := "main.cf:2: no"; o.Report.Error != want {
					t.Errorf("error = %q, want %q: the first fault", o.Report.Error, want)
				}
				if len(o.Report.Diagnostics) != 2 || len(o.Report.Excerpts) != 1 || o.Report.Excerpts[0].Lines[1] != "line two" {
					t.Errorf("diagnostics %v, excerpts %v; want two and one: nothing outside of the project is read", o.Report.Diagnostics, o.Report.Excerpts)
				}
			}
			awaitGone(t, childOf(last.Stdout))
		})
	}
}

// childOf finds the process id that the fake compiler printed.
func childOf(stdout string) int {
	_, rest, ok := strings.Cut(stdout, "child ")
	if !ok {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	return pid
}

// awaitGone checks that a process has ended: it does not exist, or is a zombie that somebody else must collect.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		return
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(string(raw), ") Z ") || errors.Is(err, os.ErrProcessDone) || err != nil {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestOrphansAreKilled(t *testing.T) {
	t.Parallel()
	b := start(t, "orphan")
	o := b.compile(t, model.CompileJob{Export: true})
	if o.Report.Status != model.CompileSucceeded {
		t.Fatalf("status = %s: %s", o.Report.Status, o.Report.Error)
	}
	pid := childOf(o.Report.Stages[2].Stdout)
	if pid == 0 {
		t.Fatalf("no child in %q", o.Report.Stages[2].Stdout)
	}
	awaitGone(t, pid)
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	b := start(t, "huge-output", func(c *compilerd.Config) { c.Limits.Output = 10_000 })
	o := b.compile(t, model.CompileJob{Export: true})
	out := o.Report.Stages[2].Stdout
	if len(out) > 11_000 || !strings.HasPrefix(out, "the beginning\n") || !strings.HasSuffix(out, "the end\n") || !strings.Contains(out, "bytes left out") {
		t.Errorf("kept %d bytes: %.40q … %q", len(out), out, out[max(len(out)-40, 0):])
	}
}

func TestOutputGrowsAndCancel(t *testing.T) {
	t.Parallel()
	b := start(t, "hang")
	job := b.q.add(model.CompileJob{Export: true})
	b.q.await(t, "the output shows", func() bool { return strings.Contains(b.q.stages[job.ID][2].Stdout, "hanging") })
	if st := b.q.stages[job.ID][2]; st.ExitCode != nil || st.Name != "compile" {
		t.Errorf("running stage = %+v", st)
	}
	b.q.update(func() { b.q.cancel[job.ID] = true })
	b.q.hint(model.Hint{Topic: model.TopicCompileCancel, ID: job.ID.String()})
	o := b.outcome(t, job)
	if o.Report.Status != model.CompileCancelled || o.Report.Error != "cancelled on request" || o.State != nil {
		t.Errorf("outcome = %+v", o.Report)
	}
}

func TestLostClaimEndsCompile(t *testing.T) {
	t.Parallel()
	b := start(t, "hang", func(c *compilerd.Config) { c.Lease = 300 * time.Millisecond; c.Workers = 1 })
	job := b.q.add(model.CompileJob{})
	b.q.await(t, "it runs", func() bool { return strings.Contains(b.q.stages[job.ID][2].Stdout, "hanging") })
	b.q.update(func() {
		b.q.running[job.ID].worker = "somebody else"
		b.q.running[job.ID].until = time.Now().Add(time.Hour)
	})
	// The worker is free again: it takes the next job.
	next := b.q.add(model.CompileJob{})
	b.q.await(t, "the next job runs", func() bool {
		return b.q.running[next.ID] != nil && strings.Contains(b.q.stages[next.ID][2].Stdout, "hanging")
	})
	if _, ok := b.q.outcomes[job.ID]; ok {
		t.Error("a fenced worker handed in an outcome")
	}
}

func TestStopLetsGo(t *testing.T) {
	t.Parallel()
	b := start(t, "stubborn", func(c *compilerd.Config) { c.Limits.Grace = 50 * time.Millisecond })
	job := b.q.add(model.CompileJob{Export: true})
	b.q.await(t, "it runs", func() bool { return strings.Contains(b.q.stages[job.ID][2].Stdout, "child ") })
	pid := childOf(b.q.stages[job.ID][2].Stdout)
	b.stop()
	awaitGone(t, pid)
	if c := b.q.running[job.ID]; c == nil || c.until.After(time.Now()) {
		t.Errorf("claim = %+v, want it let go", c)
	}
	b.run(t, "ok")
	o := b.outcome(t, job)
	if o.Report.Status != model.CompileSucceeded || o.Report.Job.Attempt != 2 {
		t.Errorf("second attempt = %+v", o.Report)
	}
}

func TestFetchIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := start(t, "ok")
	b.src.mu.Lock()
	b.src.failures = []error{fmt.Errorf("host is down: %w", model.ErrUnavailable)}
	b.src.mu.Unlock()
	o := b.compile(t, model.CompileJob{Export: true})
	if o.Report.Status != model.CompileSucceeded || !strings.Contains(o.Report.Stages[0].Stderr, "host is down") {
		t.Errorf("outcome = %+v", o.Report)
	}
	b.src.mu.Lock()
	b.src.failures = []error{fmt.Errorf("no such branch: %w", model.ErrNotFound)}
	b.src.mu.Unlock()
	o = b.compile(t, model.CompileJob{Export: true})
	if o.Report.Status != model.CompileFailed || !strings.Contains(o.Report.Error, "no such branch") {
		t.Errorf("outcome = %+v", o.Report)
	}
}

func TestFinishIsTriedAgainAndRefused(t *testing.T) {
	t.Parallel()
	b := start(t, "ok")
	b.q.update(func() { b.q.broken = 2 })
	if o := b.compile(t, model.CompileJob{Export: true}); o.State == nil {
		t.Errorf("outcome = %+v", o.Report)
	}
	b.q.update(func() { b.q.refuse = fmt.Errorf("set s1 is odd: %w", model.ErrInvalid) })
	o := b.compile(t, model.CompileJob{Export: true})
	if o.State != nil || o.Report.Status != model.CompileFailed || !strings.Contains(o.Report.Error, "set s1 is odd") {
		t.Errorf("outcome = %+v", o.Report)
	}
}

func TestStaleWorkspacesAreRemoved(t *testing.T) {
	t.Parallel()
	b := &bench{q: newQueue(), src: &sources{dir: t.TempDir()}, dir: t.TempDir()}
	stale := filepath.Join(b.dir, "compile-stale")
	if err := os.MkdirAll(filepath.Join(stale, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t, "ok")
	b.compile(t, model.CompileJob{})
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat(stale) = %v, want it gone", err)
	}
}

func TestNewChecksConfig(t *testing.T) {
	t.Parallel()
	_, err := compilerd.New(compilerd.Config{})
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "Queue") || !strings.Contains(err.Error(), "Sources") || !strings.Contains(err.Error(), "Dir") {
		t.Errorf("New() = %v", err)
	}
}

// BenchmarkCompile measures everything around the compiler: claim, child, result, outcome.
func BenchmarkCompile(b *testing.B) {
	be := start(b, "ok", func(c *compilerd.Config) { c.Workers = 1 })
	defer be.stop()
	b.ReportAllocs()
	for b.Loop() {
		be.compile(b, model.CompileJob{Export: true, Revision: model.Revision{Commit: strings.Repeat("1", 40)}})
	}
}
