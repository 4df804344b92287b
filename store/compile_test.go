package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

const lease = time.Minute

// request queues an exporting job.
func request(t *testing.T, s *store.Store, env model.EnvironmentID, at time.Time, changes ...func(*model.CompileJob)) model.JobID {
	t.Helper()
	job := model.CompileJob{ID: model.JobID{UUID: uuid.New()}, Environment: env, Export: true, Reason: "test", RequestedAt: at}
	for _, c := range changes {
		c(&job)
	}
	if err := s.RequestCompile(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return job.ID
}

func claim(t *testing.T, s *store.Store, worker string, now time.Time) *model.CompileJob {
	t.Helper()
	job, err := s.ClaimCompileJob(t.Context(), worker, now, lease)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func mustClaim(t *testing.T, s *store.Store, worker string, now time.Time) model.CompileJob {
	t.Helper()
	job := claim(t, s, worker, now)
	if job == nil {
		t.Fatalf("worker %s finds nothing to do", worker)
	}
	return *job
}

func finish(t *testing.T, s *store.Store, worker string, id model.JobID, state *model.DesiredState, now time.Time) int {
	t.Helper()
	n, err := s.FinishCompileJob(t.Context(), worker, outcome(id, state), now)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func outcome(id model.JobID, state *model.DesiredState) model.CompileOutcome {
	return model.CompileOutcome{Report: model.CompileReport{Job: model.CompileJob{ID: id}, Status: model.CompileSucceeded}, State: state}
}

func report(t *testing.T, s *store.Store, id model.JobID) model.CompileReport {
	t.Helper()
	r, err := s.CompileReport(t.Context(), model.EnvironmentID{}, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompileFromRequestToVersion(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now, func(j *model.CompileJob) {
		j.Trace = "0af7651916cd43dd8448eb211c80319c"
		j.Metadata = map[string]json.RawMessage{"type": json.RawMessage(`"api"`)}
		j.EnvironmentVariables = map[string]string{"A": "1"}
		j.RemoteID, j.Actor = "remote", "me"
	})
	job := mustClaim(t, s, "w1", now.Add(time.Second))
	if job.ID != id || job.Attempt != 1 || job.RemoteID != "remote" || job.EnvironmentVariables["A"] != "1" || !job.StartedAt.Equal(now.Add(time.Second)) {
		t.Errorf("ClaimCompileJob = %+v", job)
	}
	if other := claim(t, s, "w2", now.Add(time.Second)); other != nil {
		t.Errorf("a second worker got %+v", other)
	}
	rev := model.Revision{Repository: "r", Ref: "refs/heads/main", Commit: "abc", Author: "a", Message: "m", CommittedAt: now}
	if err := s.SetCompileRevision(t.Context(), id, "w1", rev); err != nil {
		t.Fatal(err)
	}
	zero := 0
	stages := []model.CompileStage{
		{Ordinal: 0, Name: "fetch", StartedAt: now, Stdout: "half"},
		{Ordinal: 0, Name: "fetch", StartedAt: now, FinishedAt: now.Add(time.Second), Stdout: "done\x00\xff", ExitCode: &zero},
	}
	for _, st := range stages {
		if err := s.SaveCompileStage(t.Context(), id, "w1", st); err != nil {
			t.Fatal(err)
		}
	}
	state := storetest.State(env, storetest.Intents(t, "a=1", "b=? > a")...)
	state.Unknowns = []model.UnknownParameter{{Name: "ip", Resource: "r", Source: "fact"}}
	state.Files = []model.File{{Hash: "da39a3ee5e6b4b0d3255bfef95601890afd80709"}}
	state.Metadata = map[string]json.RawMessage{"message": json.RawMessage(`"hello"`)}
	done := outcome(id, &state)
	done.Report.Stages = []model.CompileStage{{Ordinal: 1, Name: "compile", StartedAt: now, FinishedAt: now, ExitCode: &zero}}
	done.Report.Diagnostics = []diag.Diagnostic{{Severity: diag.Warning, Code: "X", Message: "m", Range: diag.Range{File: "main.cf", Start: diag.Position{Line: 3, Column: 1}}}}
	done.Report.Excerpts = map[int]model.SourceExcerpt{0: {File: "main.cf", FirstLine: 2, Lines: []string{"x"}}}
	done.Report.Digest, done.Report.PeakMemory, done.Report.CPUTime = "d", 1<<30, time.Second
	version, err := s.FinishCompileJob(t.Context(), "w1", done, now.Add(2*time.Second))
	if err != nil || version != 1 {
		t.Fatalf("FinishCompileJob = %d, %v, want 1", version, err)
	}
	again, err := s.FinishCompileJob(t.Context(), "w1", done, now.Add(3*time.Second))
	if err != nil || again != 1 {
		t.Errorf("finishing again = %d, %v, want 1", again, err)
	}
	if _, err := s.FinishCompileJob(t.Context(), "w2", done, now); !errors.Is(err, model.ErrFenced) {
		t.Errorf("another worker finishes: %v, want fenced", err)
	}

	got := report(t, s, id)
	want := model.CompileReport{
		Job: model.CompileJob{
			ID: id, Environment: env, Revision: rev, Reason: "test", Actor: "me", Trace: "0af7651916cd43dd8448eb211c80319c", Export: true, RemoteID: "remote",
			Metadata: map[string]json.RawMessage{"type": json.RawMessage(`"api"`)}, EnvironmentVariables: map[string]string{"A": "1"},
			RequestedAt: now, StartedAt: now.Add(time.Second), Attempt: 1,
		},
		Status: model.CompileSucceeded, FinishedAt: now.Add(2 * time.Second), Version: 1, Digest: "d", PeakMemory: 1 << 30, CPUTime: time.Second,
		Stages: []model.CompileStage{
			{Ordinal: 0, Name: "fetch", StartedAt: now, FinishedAt: now.Add(time.Second), Stdout: "done\uFFFD\uFFFD", ExitCode: &zero},
			{Ordinal: 1, Name: "compile", StartedAt: now, FinishedAt: now, ExitCode: &zero},
		},
		Diagnostics: done.Report.Diagnostics, Excerpts: done.Report.Excerpts,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("report: %s", d)
	}
	v, err := s.Version(t.Context(), env, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Released || v.Job != id || v.Revision != rev || v.Resources != 2 || v.Added != 2 || len(v.Undeployable) != 1 || v.Digest != state.Digest {
		t.Errorf("version = %+v", v)
	}
	if _, err := s.File(t.Context(), state.Files[0].Hash); err != nil {
		t.Errorf("the file of the state: %v", err)
	}
	unknowns, err := s.VersionUnknowns(t.Context(), env, 1)
	if err != nil || !cmp.Equal(unknowns, state.Unknowns) {
		t.Errorf("unknowns = %v, %v", unknowns, err)
	}
}

func TestCompileThatOnlyChecksMakesNoVersion(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now, func(j *model.CompileJob) { j.Export = false })
	mustClaim(t, s, "w", now)
	state := storetest.State(env, storetest.Intents(t, "a")...)
	if n := finish(t, s, "w", id, &state, now); n != 0 {
		t.Errorf("version %d, want none", n)
	}
}

func TestFailedCompileNotifies(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now)
	mustClaim(t, s, "w", now)
	o := outcome(id, nil)
	o.Report.Status, o.Report.Error = model.CompileFailed, "boom"
	if _, err := s.FinishCompileJob(t.Context(), "w", o, now); err != nil {
		t.Fatal(err)
	}
	l, err := s.Notifications(t.Context(), env, model.NotificationFilter{Severities: []model.Severity{model.SeverityError}}, model.Page{})
	if err != nil || len(l.Items) != 1 || l.Items[0].URI != "/api/v2/compilereport/"+id.String() || l.Items[0].Job != id {
		t.Fatalf("notifications = %+v, %v", l.Items, err)
	}
	read := true
	n, err := s.UpdateNotification(t.Context(), env, l.Items[0].ID, &read, nil)
	if err != nil || !n.Read || n.Cleared {
		t.Errorf("UpdateNotification = %+v, %v", n, err)
	}
	if _, err := s.Notification(t.Context(), model.EnvironmentID{}, n.ID); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a notification of another environment = %v, want not found", err)
	}
}

func TestInvalidStateLeavesTheJobRunning(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now)
	mustClaim(t, s, "w", now)
	state := storetest.State(env, storetest.Intents(t, "a > missing")...)
	if _, err := s.FinishCompileJob(t.Context(), "w", outcome(id, &state), now); !errors.Is(err, model.ErrInvalid) {
		t.Fatalf("FinishCompileJob = %v, want invalid", err)
	}
	if got := report(t, s, id).Status; got != model.CompileRunning {
		t.Errorf("the job is %s, want running", got)
	}
	if n, err := s.ReleasedVersion(t.Context(), env); err != nil || n != 0 {
		t.Errorf("ReleasedVersion = %d, %v, want none", n, err)
	}
}

func TestEqualJobsAreMerged(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	head := request(t, s, env, now)
	same := request(t, s, env, now.Add(1*time.Second), func(j *model.CompileJob) { j.Update = true })
	other := request(t, s, env, now.Add(2*time.Second), func(j *model.CompileJob) { j.EnvironmentVariables = map[string]string{"A": "1"} })
	pinned := request(t, s, env, now.Add(3*time.Second), func(j *model.CompileJob) { j.Revision.Commit = "abc" })

	job := mustClaim(t, s, "w", now.Add(time.Minute))
	if job.ID != head || !job.Update {
		t.Errorf("claimed %+v, want the oldest, with the update of the one merged into it", job)
	}
	merged := report(t, s, same)
	if merged.Status != model.CompileMerged || merged.SubstituteID != head {
		t.Errorf("the equal job is %s by %s, want merged into %s", merged.Status, merged.SubstituteID, head)
	}
	for _, id := range []model.JobID{other, pinned} {
		if r := report(t, s, id); r.Status != model.CompileQueued {
			t.Errorf("job %s is %s, want still queued", id, r.Status)
		}
	}
	state := storetest.State(env, storetest.Intents(t, "a")...)
	version := finish(t, s, "w", head, &state, now.Add(2*time.Minute))
	if r := report(t, s, same); r.Version != version || r.FinishedAt.IsZero() {
		t.Errorf("the merged job has version %d, finished %v, want those of its substitute", r.Version, r.FinishedAt)
	}
	yes := true
	l, err := s.CompileReports(t.Context(), env, model.CompileFilter{Success: &yes}, model.Page{})
	if err != nil || len(l.Items) != 2 {
		t.Errorf("successful reports = %v, %v, want the head and the merged one", l.Items, err)
	}
}

func TestRecordRevisionCoalesces(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s, storetest.Watching("https://git.example.org/a", "a")).ID
	record := func(commit string, force bool) (model.JobID, bool) {
		t.Helper()
		job, queued, err := s.RecordRevision(t.Context(), env, model.Revision{Repository: "a", Ref: "refs/heads/main", Commit: commit}, "push", "", force)
		if err != nil {
			t.Fatal(err)
		}
		return job, queued
	}
	first, queued := record("c1", false)
	if !queued {
		t.Fatal("a new revision queues nothing")
	}
	if _, queued := record("c1", false); queued {
		t.Error("the same revision again queues a job")
	}
	second, queued := record("c2", false)
	if !queued || second != first {
		t.Errorf("a newer revision queues %s (%t), want the waiting job %s", second, queued, first)
	}
	later := time.Now().Add(time.Hour)
	job := mustClaim(t, s, "w", later)
	if job.ID != first || job.Revision.Commit != "c2" {
		t.Errorf("claimed %s at %s, want %s at c2", job.ID, job.Revision.Commit, first)
	}
	third, queued := record("c3", false)
	if !queued || third == first {
		t.Error("a revision that comes while the job runs must queue another")
	}
	if again, queued := record("c3", true); !queued || again != third {
		t.Errorf("forced: %s, %t, want %s queued", again, queued, third)
	}
	e, err := s.Environment(t.Context(), env)
	if err != nil || e.Revision.Commit != "c3" || e.Revision.Repository != "a" {
		t.Errorf("revision = %+v, %v, want c3", e.Revision, err)
	}
}

func TestRecordRevisionWithoutServerCompile(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s, storetest.Setting("server_compile", "false")).ID
	_, queued, err := s.RecordRevision(t.Context(), env, model.Revision{Ref: "r", Commit: "c"}, "push", "", false)
	if err != nil || queued {
		t.Errorf("RecordRevision = %t, %v, want nothing queued", queued, err)
	}
	_, _, err = s.RecordRevision(t.Context(), model.EnvironmentID{UUID: uuid.New()}, model.Revision{}, "push", "", false)
	if !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown environment: %v, want not found", err)
	}
}

func TestBackoffAndHalt(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Setting("recompile_backoff", "10")).ID
	a := request(t, s, env, now)
	if job := claim(t, s, "w", now.Add(time.Second)); job == nil || job.ID != a {
		t.Fatalf("claimed %v, want %s: no compile has ended yet", job, a)
	}
	finish(t, s, "w", a, nil, now.Add(20*time.Second))
	b := request(t, s, env, now.Add(21*time.Second))
	if job := claim(t, s, "w", now.Add(29*time.Second)); job != nil {
		t.Errorf("claimed %s within the backoff", job.ID)
	}
	if err := s.SetHalted(t.Context(), env, true, "me", now); err != nil {
		t.Fatal(err)
	}
	if job := claim(t, s, "w", now.Add(time.Hour)); job != nil {
		t.Errorf("claimed %s of a halted environment", job.ID)
	}
	if err := s.SetHalted(t.Context(), env, false, "me", now); err != nil {
		t.Fatal(err)
	}
	if job := claim(t, s, "w", now.Add(30*time.Second)); job == nil || job.ID != b {
		t.Errorf("claimed %v, want %s after the backoff", job, b)
	}
}

func TestDeadWorkersJobIsClaimedAgain(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now)
	waiting := request(t, s, env, now.Add(time.Millisecond), func(j *model.CompileJob) { j.ExporterPlugin = "x" })
	for attempt := 1; attempt <= store.MaxCompileAttempts; attempt++ {
		worker := fmt.Sprint("w", attempt)
		job := mustClaim(t, s, worker, now)
		if job.ID != id || job.Attempt != attempt {
			t.Fatalf("claimed %s, attempt %d, want %s, attempt %d", job.ID, job.Attempt, id, attempt)
		}
		if err := s.SaveCompileStage(t.Context(), id, worker, model.CompileStage{Name: worker}); err != nil {
			t.Fatal(err)
		}
		if attempt > 1 {
			before := fmt.Sprint("w", attempt-1)
			if _, err := s.ExtendCompileJob(t.Context(), id, before, now, lease); !errors.Is(err, model.ErrFenced) {
				t.Errorf("the dead worker extends: %v, want fenced", err)
			}
			if err := s.SaveCompileStage(t.Context(), id, before, model.CompileStage{}); !errors.Is(err, model.ErrFenced) {
				t.Errorf("the dead worker saves a stage: %v, want fenced", err)
			}
			if err := s.SetCompileRevision(t.Context(), id, before, model.Revision{}); !errors.Is(err, model.ErrFenced) {
				t.Errorf("the dead worker sets the revision: %v, want fenced", err)
			}
			if _, err := s.FinishCompileJob(t.Context(), before, outcome(id, nil), now); !errors.Is(err, model.ErrFenced) {
				t.Errorf("the dead worker finishes: %v, want fenced", err)
			}
		}
		if job := claim(t, s, "other", now.Add(lease-time.Second)); job != nil {
			t.Fatalf("claimed %s while the lease holds", job.ID)
		}
		now = now.Add(lease)
	}
	job := mustClaim(t, s, "w", now.Add(time.Hour))
	if job.ID != waiting {
		t.Errorf("claimed %s, want the next job", job.ID)
	}
	r := report(t, s, id)
	if r.Status != model.CompileFailed || r.Error == "" || len(r.Stages) != 1 {
		t.Errorf("after %d attempts: %s, error %q, %d stages", store.MaxCompileAttempts, r.Status, r.Error, len(r.Stages))
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	id := request(t, s, env, now)
	if cancel, err := s.ExtendCompileJob(t.Context(), id, "w", now, lease); !errors.Is(err, model.ErrFenced) || cancel {
		t.Errorf("extending a queued job = %t, %v, want fenced", cancel, err)
	}
	mustClaim(t, s, "w", now)
	if cancel, err := s.ExtendCompileJob(t.Context(), id, "w", now, lease); err != nil || cancel {
		t.Errorf("ExtendCompileJob = %t, %v", cancel, err)
	}
	queued := request(t, s, env, now)
	for _, j := range []model.JobID{id, queued} {
		if err := s.CancelCompile(t.Context(), env, j, now); err != nil {
			t.Fatal(err)
		}
	}
	if cancel, err := s.ExtendCompileJob(t.Context(), id, "w", now, lease); err != nil || !cancel {
		t.Errorf("ExtendCompileJob = %t, %v, want the wish to cancel", cancel, err)
	}
	if r := report(t, s, queued); r.Status != model.CompileCancelled {
		t.Errorf("the queued job is %s, want cancelled", r.Status)
	}
	if err := s.CancelCompile(t.Context(), env, queued, now); !errors.Is(err, model.ErrConflict) {
		t.Errorf("cancelling twice = %v, want a conflict", err)
	}
	if err := s.CancelCompile(t.Context(), model.EnvironmentID{UUID: uuid.New()}, id, now); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("cancelling in another environment = %v, want not found", err)
	}
	// The worker dies before it answers: nobody tries again.
	if job := claim(t, s, "w2", now.Add(time.Hour)); job != nil {
		t.Errorf("claimed the cancelled job %s", job.ID)
	}
	if r := report(t, s, id); r.Status != model.CompileCancelled {
		t.Errorf("the running job is %s, want cancelled", r.Status)
	}
}

// Many workers on two servers never compile an environment twice at a time, and nothing is lost.
func TestManyClaimers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	now := storetest.Now()
	const environments, jobs, workers = 6, 4, 8
	total := 0
	for range environments {
		env := storetest.Environment(t, servers[0], storetest.Setting("recompile_backoff", "0.000001")).ID
		for i := range jobs {
			request(t, servers[0], env, now, func(j *model.CompileJob) { j.ExporterPlugin = fmt.Sprint(i) })
			total++
		}
	}
	var (
		mu      sync.Mutex
		wait    sync.WaitGroup
		running = map[model.EnvironmentID]model.JobID{}
		done    = map[model.JobID]int{}
	)
	for w := range workers {
		s, name := servers[w%len(servers)], fmt.Sprint("worker", w)
		wait.Go(func() {
			for {
				mu.Lock()
				finished := len(done) == total
				mu.Unlock()
				if finished {
					return
				}
				job, err := s.ClaimCompileJob(t.Context(), name, now.Add(time.Hour), lease)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if job == nil {
					continue
				}
				mu.Lock()
				if other, ok := running[job.Environment]; ok {
					t.Errorf("jobs %s and %s of one environment run at once", other, job.ID)
				}
				running[job.Environment] = job.ID
				mu.Unlock()
				state := storetest.State(job.Environment, storetest.Intents(t, "a="+job.ExporterPlugin)...)
				mu.Lock()
				delete(running, job.Environment)
				done[job.ID]++
				mu.Unlock()
				if _, err := s.FinishCompileJob(t.Context(), name, outcome(job.ID, &state), now); err != nil {
					t.Errorf("finish: %v", err)
					return
				}
			}
		})
	}
	wait.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
	envs, err := servers[0].Environments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range envs {
		if e.LastVersion != jobs {
			t.Errorf("environment %s has %d versions, want %d", e.Name, e.LastVersion, jobs)
		}
	}
}

func TestCompileInputs(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s, storetest.Setting("auto_deploy", "false"), storetest.Setting("auto_full_compile", `"0 1 * * *"`)).ID
	_, _, err := s.SetParameters(t.Context(), env, []model.Parameter{
		{Name: "p", Value: "1"}, {Name: "ip", Value: "10.0.0.1", Resource: storetest.ID("web", "/a"), Expires: true},
	}, false, model.CompileJob{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := s.CompileInputs(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.CompileInputs(t.Context(), env)
	if err != nil || in.Seed == "" || in.Seed != again.Seed {
		t.Errorf("seeds %q and %q, %v, want one and the same", in.Seed, again.Seed, err)
	}
	want := model.CompileInputs{
		Facts: map[string]string{"fs::File[web,path=/a]/ip": "10.0.0.1"}, Parameters: map[string]string{"p": "1"},
		Settings: map[string]string{"auto_deploy": "false", "auto_full_compile": "0 1 * * *"}, Seed: in.Seed,
	}
	if d := cmp.Diff(want, in); d != "" {
		t.Error(d)
	}
	if _, err := s.CompileInputs(t.Context(), model.EnvironmentID{UUID: uuid.New()}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown environment: %v, want not found", err)
	}
}

func TestQueueAndPurge(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	a := request(t, s, env, now)
	b := request(t, s, env, now.Add(time.Second), func(j *model.CompileJob) { j.Export = false })
	mustClaim(t, s, "w", now)
	queue, err := s.CompileQueue(t.Context(), env)
	if err != nil || len(queue) != 2 || queue[0].Job.ID != a || queue[1].Job.ID != b {
		t.Errorf("CompileQueue = %v, %v, want the running one, then the queued one", queue, err)
	}
	compiling, err := s.Compiling(t.Context())
	if err != nil || !cmp.Equal(compiling, []model.EnvironmentID{env}) {
		t.Errorf("Compiling = %v, %v", compiling, err)
	}
	finish(t, s, "w", a, nil, now)
	if n, err := s.PurgeCompileReports(t.Context(), now.Add(time.Second)); err != nil || n != 1 {
		t.Errorf("PurgeCompileReports = %d, %v, want 1", n, err)
	}
	if _, err := s.CompileReport(t.Context(), env, a); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("the purged report = %v, want not found", err)
	}
	// Asking again for a job that is there changes nothing.
	if err := s.RequestCompile(t.Context(), model.CompileJob{ID: b, Environment: env, Reason: "again"}); err != nil {
		t.Fatal(err)
	}
	if r := report(t, s, b); r.Job.Reason != "test" {
		t.Errorf("the job was replaced: %+v", r.Job)
	}
	if err := s.RequestCompile(t.Context(), model.CompileJob{Environment: model.EnvironmentID{UUID: uuid.New()}}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a job of an unknown environment = %v, want not found", err)
	}
}
