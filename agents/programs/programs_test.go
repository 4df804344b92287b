package programs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/agents/programs"
	"github.com/intendant/intendant/exectest"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/pipe"
	"github.com/intendant/intendant/sdk/program"
	"github.com/intendant/intendant/sdk/sdktest"
)

// dirVariable names the directory that stands for reality; modeVariable what the program does besides.
const (
	dirVariable  = "PROGRAMS_TEST_DIR"
	modeVariable = "PROGRAMS_TEST_MODE"
)

// TestMain lets the test program be the handler program.
func TestMain(m *testing.M) {
	if os.Getenv(program.Variable) == "1" {
		serve(os.Getenv(modeVariable))
	}
	os.Exit(m.Run())
}

func serve(mode string) {
	switch mode {
	case "mute":
		_, _ = io.Copy(io.Discard, os.NewFile(program.FromAgent, "in"))
		return
	case "old", "changed":
		// One that was built with another version of the sdk, and one that handles something else at its second start.
		hello := program.Hello{Protocol: program.Protocol, Name: "notes", Types: []string{"test::Note"}}
		if mode == "old" {
			hello.Protocol = 99
		} else if f, err := os.OpenFile(filepath.Join(os.Getenv(dirVariable), "started"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			hello.Types = []string{"test::Note", "test::Letter"}
		}
		c := pipe.New(os.NewFile(program.FromAgent, "in"), os.NewFile(program.ToAgent, "out"), pipe.Config{Handlers: map[string]pipe.Handler{
			program.CallExecute: func(context.Context, json.RawMessage) (any, error) { os.Exit(5); return nil, nil },
		}})
		_ = c.Emit(program.EventHello, hello)
		_ = c.Run(context.Background())
		return
	case "noise":
		fmt.Fprint(os.NewFile(program.ToAgent, "out"), "this is no frame")
		select {}
	case "quit":
		fmt.Println("no license")
		os.Exit(4)
	}
	r := sdk.NewRegistry()
	types := []string{"test::Note"}
	if mode == "none" {
		types = nil
	}
	for _, name := range types {
		if err := r.Handle(name, &noteHandler{dir: os.Getenv(dirVariable)}); err != nil {
			panic(err)
		}
	}
	program.Main(program.Info{Name: "notes", Version: "1.0"}, r)
}

// noteHandler keeps notes as files.
type noteHandler struct{ dir string }

func (h *noteHandler) file(r *sdk.Resource) string { return filepath.Join(h.dir, r.String("name")) }

func (h *noteHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	if err := h.trouble(c, r.String("trouble")); err != nil {
		return sdk.Observed{}, err
	}
	text, err := os.ReadFile(h.file(r))
	if errors.Is(err, os.ErrNotExist) {
		return sdk.Observed{}, nil
	}
	return sdk.Observed{Exists: true, Attributes: map[string]any{"text": string(text)}}, err
}

// trouble does what a test asks for.
func (h *noteHandler) trouble(c *sdk.Context, what string) error {
	switch what {
	case "panic":
		panic("no ink")
	case "exit":
		os.Exit(3)
	case "skip":
		return sdk.Skip("not today")
	case "person":
		return sdk.Permanent(errors.New("the pen is broken"))
	case "wait":
		c.Log(model.LevelInfo, "waiting", map[string]any{"for": "the end"})
		<-c.Done()
		return c.Err()
	case "signal":
		if err := os.WriteFile(filepath.Join(h.dir, "begun"), nil, 0); err != nil {
			return err
		}
		<-c.Done()
	case "stuck":
		c.Infof("stuck")
		select {}
	case "flood":
		line := strings.Repeat("ink ", 50)
		for range 100_000 {
			fmt.Fprintln(os.Stderr, line)
		}
	case "log":
		c.Log(model.LevelWarning, "the paper is %(colour)s", map[string]any{"colour": "grey"})
		fmt.Println("to standard output")
	}
	return nil
}

func (h *noteHandler) Change(c *sdk.Context, r *sdk.Resource, action model.Change, _ sdk.Observed, _ model.Diff) error {
	if action == model.ChangePurged {
		return os.Remove(h.file(r))
	}
	text := []byte(r.String("text"))
	if hash := r.String("hash"); hash != "" {
		content, size, err := c.OpenFile(hash)
		if err != nil {
			return err
		}
		defer content.Close()
		if text, err = io.ReadAll(content); err != nil || int64(len(text)) != size {
			return fmt.Errorf("read %d of %d bytes: %w", len(text), size, err)
		}
	}
	return os.WriteFile(h.file(r), text, 0o600)
}

func (h *noteHandler) Reload(_ *sdk.Context, r *sdk.Resource) error {
	f, err := os.OpenFile(h.file(r)+".reloads", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

func (h *noteHandler) Facts(_ *sdk.Context, r *sdk.Resource) ([]model.Fact, error) {
	return []model.Fact{{Name: "length", Value: strconv.Itoa(len(r.String("text"))), Expires: true}}, nil
}

// bench is a registry whose one type is handled by a program, with a directory as reality.
type bench struct {
	dir      string
	registry *sdk.Registry
	programs *programs.Programs
}

func newBench(t testing.TB, mode string, change func(*programs.Config)) (*bench, error) {
	t.Helper()
	b := &bench{dir: t.TempDir(), registry: sdk.NewRegistry()}
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// The test program runs through a script, so that it lies where nobody else can write.
	exectest.Script(t, bin, "notes", "#!/bin/sh\nexec '"+os.Args[0]+"'\n")
	c := programs.Config{
		Paths: []string{bin}, Dir: filepath.Join(t.TempDir(), "work"), Pause: time.Millisecond, Grace: 100 * time.Millisecond,
		Env: []string{"PATH=/usr/bin:/bin", dirVariable + "=" + b.dir, modeVariable + "=" + mode},
	}
	if change != nil {
		change(&c)
	}
	var err error
	b.programs, err = programs.Register(t.Context(), b.registry, c)
	if err == nil {
		t.Cleanup(b.programs.Close)
	}
	return b, err
}

func mustBench(t testing.TB) *bench {
	t.Helper()
	b, err := newBench(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// state is all of reality.
func (b *bench) state(t testing.TB) string {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(e.Name(), ".reloads") {
			fmt.Fprintf(&out, "%s=%q ", e.Name(), text)
		}
	}
	return out.String()
}

const note = model.ResourceID("test::Note[desk,name=a]")

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		b := mustBench(t)
		return sdktest.Fixture{
			Registry: b.registry, Resource: note, Purgeable: true,
			Create: map[string]any{"name": "a", "text": "one"}, Update: map[string]any{"name": "a", "text": "two"},
			State: func() string { return b.state(t) },
			Reloads: func() int {
				text, _ := os.ReadFile(filepath.Join(b.dir, "a.reloads"))
				return len(text)
			},
		}
	})
}

// run deploys a note with trouble and returns the result.
func run(t *testing.T, s *sdktest.Server, attributes map[string]any, change func(*model.Task)) model.Result {
	t.Helper()
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, note, attributes))
	if change != nil {
		change(&task)
	}
	return s.Run(t, task)
}

func text(r model.Result) string {
	var b strings.Builder
	for _, l := range r.Log {
		fmt.Fprintf(&b, "%s %s %s\n", l.Level, l.Message, l.Kwargs)
	}
	return b.String()
}

func serving(t *testing.T) (*bench, *sdktest.Server) {
	t.Helper()
	b, s := mustBench(t), sdktest.NewServer(t)
	s.StartAgent(t, b.registry, []model.AgentName{"desk"})
	s.AwaitUp(t, "desk", 1)
	return b, s
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	_, s := serving(t)
	soon := func(task *model.Task) { task.Deadline = time.Now().Add(300 * time.Millisecond) }
	for _, tt := range []struct {
		trouble string
		change  func(*model.Task)
		outcome model.Outcome
		code    string
		retry   model.RetryHint
		log     string
	}{
		{"log", nil, model.OutcomeDeployed, "", "", `WARNING the paper is %(colour)s {"colour":"grey"}`},
		{"panic", nil, model.OutcomeFailed, sdk.CodePanic, "", "the handler panicked: no ink"},
		{"exit", nil, model.OutcomeFailed, "handler-program-ended", model.RetryLater, "the handler program notes ended (exit status 3) before it was done"},
		{"skip", nil, model.OutcomeSkipped, sdk.CodeSkipped, "", "not today"},
		{"person", nil, model.OutcomeFailed, sdk.CodeHandlerError, model.RetryPerson, "the pen is broken"},
		{"wait", soon, model.OutcomeFailed, sdk.CodeDeadline, model.RetryLater, `INFO waiting {"for":"the end"}`},
		{"stuck", soon, model.OutcomeFailed, sdk.CodeDeadline, "", "the handler did not return 100ms after its deadline; its program notes was ended"},
		{"", nil, model.OutcomeDeployed, "", "", ""},
	} {
		t.Run(tt.trouble, func(t *testing.T) {
			r := run(t, s, map[string]any{"name": "a", "text": tt.trouble, "trouble": tt.trouble}, tt.change)
			if r.Outcome != tt.outcome || r.Code != tt.code || r.Retry != tt.retry || !strings.Contains(text(r), tt.log) {
				t.Errorf("result is %s, code %q, retry %q, log\n%s\nwant %s, %q, %q and %q", r.Outcome, r.Code, r.Retry, text(r), tt.outcome, tt.code, tt.retry, tt.log)
			}
		})
	}
}

// A program that was replaced by one for other types is not used until the agent is started again.
func TestProgramThatHandlesSomethingElseNow(t *testing.T) {
	t.Parallel()
	b, err := newBench(t, "changed", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := sdktest.NewServer(t)
	s.StartAgent(t, b.registry, []model.AgentName{"desk"})
	s.AwaitUp(t, "desk", 1)
	if r := run(t, s, map[string]any{"name": "a", "text": "x"}, nil); r.Outcome != model.OutcomeFailed || !strings.Contains(text(r), "exit status 5") {
		t.Fatalf("outcome is %s, want failed; log\n%s", r.Outcome, text(r))
	}
	r := run(t, s, map[string]any{"name": "a", "text": "x"}, nil)
	if r.Outcome != model.OutcomeUnavailable || r.Retry != model.RetryLater || !strings.Contains(text(r), "handled test::Note, test::Letter when the agent started: restart the agent") {
		t.Errorf("outcome is %s, want unavailable; log\n%s", r.Outcome, text(r))
	}
}

// counting is a log that counts its lines.
type counting struct {
	mu    sync.Mutex
	lines int
	last  string
}

func (c *counting) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	if strings.Contains(string(p), "left out") {
		c.last = string(p)
	}
	return len(p), nil
}

// A program that floods its standard error neither waits nor fills the agent's log.
func TestFlood(t *testing.T) {
	t.Parallel()
	log := &counting{}
	b, err := newBench(t, "", func(c *programs.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	if err != nil {
		t.Fatal(err)
	}
	s := sdktest.NewServer(t)
	s.StartAgent(t, b.registry, []model.AgentName{"desk"})
	s.AwaitUp(t, "desk", 1)
	if r := run(t, s, map[string]any{"name": "a", "text": "x", "trouble": "flood"}, nil); r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s, want deployed; log\n%s", r.Outcome, text(r))
	}
	b.programs.Close() // all that it wrote is read then
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.lines < 1000 || log.lines > 10_000 || !strings.Contains(log.last, "lines=") {
		t.Errorf("the log has %d lines and says %q; want some thousand at most, and how many are left out", log.lines, log.last)
	}
}

// A program that dies takes down what it works on, and serves what comes after.
func TestProgramIsStartedAgain(t *testing.T) {
	t.Parallel()
	b, s := serving(t)
	for range 3 {
		if r := run(t, s, map[string]any{"name": "a", "text": "x", "trouble": "exit"}, nil); r.Outcome != model.OutcomeFailed {
			t.Fatalf("outcome is %s, want failed", r.Outcome)
		}
	}
	if r := run(t, s, map[string]any{"name": "a", "text": "after"}, nil); r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s, want deployed; log\n%s", r.Outcome, text(r))
	}
	if got, want := b.state(t), `a="after" `; got != want {
		t.Errorf("reality is %s, want %s", got, want)
	}
}

func TestFilesAndFacts(t *testing.T) {
	t.Parallel()
	b, s := serving(t)
	content := strings.Repeat("ink ", 1<<18)
	hash := s.AddFile([]byte(content))
	r := run(t, s, map[string]any{"name": "a", "text": "x", "hash": hash}, nil)
	if r.Outcome != model.OutcomeDeployed {
		t.Fatalf("outcome is %s, want deployed; log\n%s", r.Outcome, text(r))
	}
	if got := b.state(t); got != fmt.Sprintf("a=%q ", content) {
		t.Errorf("reality has %d bytes, want the content", len(got))
	}
	if len(r.Facts) != 1 || r.Facts[0] != (model.Fact{Name: "length", Value: "1", Expires: true}) {
		t.Errorf("facts are %v", r.Facts)
	}
	r = run(t, s, map[string]any{"name": "b", "text": "x", "hash": strings.Repeat("0", 40)}, nil)
	if r.Outcome != model.OutcomeFailed || !strings.Contains(text(r), strings.Repeat("0", 40)) {
		t.Errorf("outcome is %s, want failed with the content's hash; log\n%s", r.Outcome, text(r))
	}
}

// What comes of a reference is in nothing that a program says.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	b, s := serving(t)
	if err := b.registry.Resolve("test::Secret", func(*sdk.Context, map[string]json.RawMessage) (any, error) { return "hunter22", nil }); err != nil {
		t.Fatal(err)
	}
	r := run(t, s, map[string]any{
		"name": "a", "text": nil,
		"references": []any{map[string]any{"id": "1", "type": "test::Secret", "args": []any{}}},
		"mutators": []any{map[string]any{"id": "2", "type": "core::Replace", "args": []any{
			map[string]any{"type": "reference", "name": "value", "id": "1"}, map[string]any{"type": "literal", "name": "destination", "value": "text"},
		}}},
	}, nil)
	if got, want := b.state(t), `a="hunter22" `; got != want {
		t.Errorf("reality is %s, want %s", got, want)
	}
	if all := fmt.Sprintf("%s %s", text(r), r.Changes); strings.Contains(all, "hunter22") || r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s; the result says %s", r.Outcome, all)
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mode string
		change     func(t *testing.T, c *programs.Config)
		want       string
	}{
		{"mute", "mute", nil, "it did not say within 200ms what it handles"},
		{"noise", "noise", nil, "before it said what it handles"},
		{"quit", "quit", nil, "it ended (exit status 4) before it said what it handles"},
		{"no types", "none", nil, "it handles no types"},
		{"another version", "old", nil, fmt.Sprintf("it speaks protocol 99 and this agent speaks %d: build it with the same version of the sdk", program.Protocol)},
		{"missing", "", func(_ *testing.T, c *programs.Config) { c.Paths = []string{"/nonexistent/program"} }, "no such file"},
		{"no directory of its own", "", func(_ *testing.T, c *programs.Config) { c.Dir = "" }, "Dir is not set"},
		{"not executable", "", func(t *testing.T, c *programs.Config) {
			chmod(t, filepath.Join(c.Paths[0], "notes"), 0o600)
			c.Paths = []string{filepath.Join(c.Paths[0], "notes")}
		}, "not a file that can be run"},
		{"writable", "", func(t *testing.T, c *programs.Config) { chmod(t, filepath.Join(c.Paths[0], "notes"), 0o722) }, "chmod go-w"},
		{"writable directory", "", func(t *testing.T, c *programs.Config) { chmod(t, c.Paths[0], 0o777) }, "chmod go-w"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := newBench(t, tt.mode, func(c *programs.Config) {
				c.StartTimeout = 10 * time.Second
				if tt.mode == "mute" {
					c.StartTimeout = 200 * time.Millisecond
				}
				if tt.change != nil {
					tt.change(t, c)
				}
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Register() = %v, want %q", err, tt.want)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestTypeThatIsTaken(t *testing.T) {
	t.Parallel()
	var config programs.Config
	b, err := newBench(t, "", func(c *programs.Config) { config = *c })
	if err != nil {
		t.Fatal(err)
	}
	config.Dir = filepath.Join(t.TempDir(), "work")
	if _, err := programs.Register(t.Context(), b.registry, config); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "test::Note") {
		t.Errorf("Register() = %v, want a conflict about test::Note", err)
	}
}

// Close ends a program in the midst of a task.
func TestClose(t *testing.T) {
	t.Parallel()
	b, s := serving(t)
	begun := filepath.Join(b.dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, note, map[string]any{"name": "a", "text": "x", "trouble": "signal"}))
	s.Dispatch(t, task)
	if _, err := os.ReadFile(begun); err != nil { // until the handler has opened and closed it
		t.Fatal(err)
	}
	b.programs.Close()
	if r := s.AwaitResult(t, task.ID); r.Code != "handler-program-ended" {
		t.Errorf("code is %q, want handler-program-ended; log\n%s", r.Code, text(r))
	}
	if r := run(t, s, map[string]any{"name": "a", "text": "x"}, nil); r.Outcome != model.OutcomeUnavailable {
		t.Errorf("outcome after the end is %s, want unavailable", r.Outcome)
	}
}
