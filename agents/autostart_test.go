package agents_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// autostarting starts a server that runs an agent process of its own.
func autostarting(t testing.TB, configure func(*hub.Config)) (*sdktest.Server, *lockedBuffer) {
	t.Helper()
	// The process must know the server's address, which is known only once it runs: a proxy's is known before.
	log := &lockedBuffer{}
	p := newProxy(t, "")
	dir := t.TempDir()
	s := sdktest.NewServer(t, func(cfg *hub.Config) {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		cfg.Autostart = &hub.Autostart{
			Executable: os.Args[0], Args: []string{"agent"}, URL: p.url(), StateDir: dir, MinBackoff: 10 * time.Millisecond,
			Env: []string{helperVariable + "=autostarted", "PATH=" + os.Getenv("PATH")},
		}
		if configure != nil {
			configure(cfg)
		}
	})
	p.setTarget(s.URL)
	return s, log
}

func fact(r model.Result, name string) string {
	for _, f := range r.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func (b *lockedBuffer) mustNotHold(t testing.TB, secret string) {
	t.Helper()
	if secret != "" && strings.Contains(b.String(), secret) {
		t.Errorf("the log has the secret %s", secret)
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAutostart(t *testing.T) {
	t.Parallel()
	s, log := autostarting(t, nil)
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"one", "two"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "one", 1)
	s.AwaitUp(t, "two", 1)
	run := func() model.Result {
		t.Helper()
		r := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{})))
		if r.Outcome != model.OutcomeDeployed {
			t.Fatalf("outcome is %s", r.Outcome)
		}
		return r
	}
	first := run()
	for _, token := range s.Tokens() {
		for _, where := range []string{"arguments", "environment"} {
			if strings.Contains(fact(first, where), token) {
				t.Errorf("the process's %s have its token", where)
			}
		}
		log.mustNotHold(t, token)
	}

	// More names come to the same process.
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"three"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "three", 1)
	if second := run(); fact(second, "pid") != fact(first, "pid") {
		t.Errorf("process %s became %s", fact(first, "pid"), fact(second, "pid"))
	}

	// A process that is killed is started again.
	pid, err := strconv.Atoi(fact(first, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.AwaitUp(t, "one", 2)
	third := run()
	if fact(third, "pid") == fact(first, "pid") {
		t.Errorf("the killed process still answers")
	}
	if !strings.Contains(log.String(), "connected to the server") {
		t.Errorf("the process's log is not in the server's: %s", log)
	}

	// And one whose environment is halted is stopped.
	if err := s.Hub.StopAgents(t.Context(), s.Environment); err != nil {
		t.Fatalf("StopAgents() = %v", err)
	}
	s.AwaitDown(t, "one", 2)
	if pid, _ := strconv.Atoi(fact(third, "pid")); alive(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

func TestAutostartStopsWithTheServer(t *testing.T) {
	t.Parallel()
	s, _ := autostarting(t, nil)
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, one); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "one", 1)
	r := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{})))
	s.Stop()
	if pid, err := strconv.Atoi(fact(r, "pid")); err != nil || alive(pid) {
		t.Errorf("process %d still runs, %v", pid, err)
	}
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"two"}); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("EnsureAgents() of a stopped hub = %v, want ErrUnavailable", err)
	}
}

func TestAutostartLeavesOthersAgentsAlone(t *testing.T) {
	t.Parallel()
	s, _ := autostarting(t, func(cfg *hub.Config) {
		cfg.Autostart.Names = func(_ context.Context, _ model.EnvironmentID, names []model.AgentName) ([]model.AgentName, error) {
			var chosen []model.AgentName
			for _, n := range names {
				if n != "elsewhere" {
					chosen = append(chosen, n)
				}
			}
			return chosen, nil
		}
	})
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"elsewhere"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"one", "two"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "one", 1)
	s.AwaitUp(t, "two", 1)
	// A process of somebody else's offers one of the names: the server's own gives it up.
	external := s.StartAgent(t, registryOf(t, noop), one)
	s.AwaitUp(t, "one", 2)
	r := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{})))
	if fact(r, "pid") != "" {
		t.Errorf("the server's own process ran the task")
	}
	external.Stop()
	s.AwaitDown(t, "one", 2)
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, one); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	r = s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("two", "a"), map[string]any{})))
	if r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s", r.Outcome)
	}
	if got := s.Hub.Agents(s.Environment); len(got) != 1 || got[0] != "two" {
		t.Errorf("Agents() = %v, want two alone: the other belongs to a process elsewhere", got)
	}
}

func TestAutostartEndsWithTheEnvironment(t *testing.T) {
	t.Parallel()
	s, _ := autostarting(t, func(cfg *hub.Config) { cfg.ResumeWindow = 20 * time.Millisecond })
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, one); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "one", 1)
	r := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{})))
	s.DeleteEnvironment()
	s.AwaitDown(t, "one", 1)
	s.Stop() // waits for nothing of the deleted environment, but all of it has been told to end
	pid, err := strconv.Atoi(fact(r, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}

func TestAutostartRemembersOthersAgents(t *testing.T) {
	t.Parallel()
	s, _ := autostarting(t, nil)
	if err := s.SaveSession(t.Context(), model.AgentSession{
		ID: "earlier", Environment: s.Environment, Process: "p", Agents: one, LostAt: time.Unix(1, 0),
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"one", "two"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "two", 1)
	if got := s.Hub.Agents(s.Environment); len(got) != 1 || got[0] != "two" {
		t.Errorf("Agents() = %v, want two alone", got)
	}
}

func TestStateDirectoryIsForOneProcess(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	dir := t.TempDir()
	first := s.StartAgent(t, registryOf(t, noop), one, in(dir))
	s.AwaitUp(t, "one", 1)
	s.StartAgent(t, registryOf(t, noop), []model.AgentName{"one", "two"}, in(dir))
	if got := s.Hub.Agents(s.Environment); len(got) != 1 {
		t.Errorf("Agents() = %v: two processes share a state directory", got)
	}
	first.Stop()
	s.AwaitUp(t, "two", 1)
	s.AwaitUp(t, "one", 2)
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		t.Error(err)
	}
}

// The process knows on which machine an agent works before it gets a task, and after a change that was announced.
func TestAddressesOfAutostartedAgents(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	addresses := map[model.AgentName]string{"one": "ssh://root@one"}
	var fail error
	s, log := autostarting(t, func(cfg *hub.Config) {
		cfg.Autostart.Addresses = func(context.Context, model.EnvironmentID) (map[model.AgentName]string, error) {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(addresses), fail
		}
	})
	set := func(next map[model.AgentName]string, err error) {
		mu.Lock()
		defer mu.Unlock()
		addresses, fail = next, err
	}
	want := func(name model.AgentName, address string) {
		t.Helper()
		r := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing(string(name), "a"), map[string]any{})))
		if got := fact(r, "address"); r.Outcome != model.OutcomeDeployed || got != address {
			t.Errorf("agent %s works on %q, want %q; the outcome is %s", name, got, address, r.Outcome)
		}
	}
	set(nil, errors.New("no database"))
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"one", "two"}); err == nil || !strings.Contains(err.Error(), "no database") {
		t.Fatalf("EnsureAgents() without addresses = %v, want an error", err)
	}
	set(map[model.AgentName]string{"one": "ssh://root@one"}, nil)
	if err := s.Hub.EnsureAgents(t.Context(), s.Environment, []model.AgentName{"one", "two"}); err != nil {
		t.Fatalf("EnsureAgents() = %v", err)
	}
	s.AwaitUp(t, "one", 1)
	s.AwaitUp(t, "two", 1)
	want("one", "ssh://root@one")
	want("two", "")
	set(map[model.AgentName]string{"two": "ssh://root@two"}, nil)
	s.Hub.RefreshAddresses(t.Context(), s.Environment)
	want("one", "")
	want("two", "ssh://root@two")
	set(nil, errors.New("no database"))
	s.Hub.RefreshAddresses(t.Context(), s.Environment)
	want("two", "ssh://root@two")
	if !strings.Contains(log.String(), "addresses of agents could not be read") {
		t.Error("the log does not tell that the addresses could not be read")
	}
}
