package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	when    = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	taskID  = model.TaskID{UUID: uuid.MustParse("11111111-2222-4333-8444-555555555555")}
	otherID = model.TaskID{UUID: uuid.MustParse("66666666-7777-4888-8999-aaaaaaaaaaaa")}
	dryRun  = model.DryRunID{UUID: uuid.MustParse("bbbbbbbb-cccc-4ddd-8eee-ffffffffffff")}
)

const file = model.ResourceID("std::File[web1,path=/etc/motd]")

func intent() wire.Intent {
	return wire.Intent{
		Resource: file, Attributes: json.RawMessage(`{"mode":644,"path":"/etc/motd"}`), AttributeHash: "abc",
		Requires: []model.ResourceID{"std::Directory[web1,path=/etc]"}, Set: "base",
	}
}

// bodies has one message of each kind with every field set.
func bodies() map[string]wire.Body {
	return map[string]wire.Body{
		"hello": &wire.Hello{
			Protocol: 1, Build: "1.2.3", Hostname: "web1.example.org", Process: "p1", Autostarted: true, Key: "k",
			Agents: []model.AgentName{"web1", "web2"}, Session: "s0", Resume: "r0", Held: []model.TaskID{taskID},
			Desired: map[model.AgentName]string{"web1": "d"}, Epochs: map[model.AgentName]wire.Epoch{"web1": 7},
		},
		"welcome": &wire.Welcome{
			Protocol: 1, Session: "s1", Resume: "r1", ResumeWindow: 15000, Resumed: true, Server: "server1", StreamLogs: true,
		},
		"host":  &wire.Host{Agents: []model.AgentName{"web1"}},
		"names": &wire.Names{Agents: []model.AgentName{"web1"}},
		"primary": &wire.Primary{Agents: []wire.PrimaryAgent{
			{Agent: "web1", Epoch: 8, Primary: true, Standbys: 1}, {Agent: "web2"},
		}},
		"paused": &wire.Paused{Agents: []model.AgentName{"web2"}},
		"desired": &wire.Desired{
			Agent: "web1", Version: 3, Digest: "d", Repair: "600", First: true, Last: true, Intents: []wire.Intent{intent()},
		},
		"assign": &wire.Assign{Tasks: []wire.Task{{
			ID: taskID, Agent: "web1", Epoch: 8, Kind: model.TaskDryRun, Intent: intent(), Version: 3, Reason: "a push",
			Trace: "0123456789abcdef0123456789abcdef", Timeout: 60000, DryRun: &dryRun,
			Requires: map[model.ResourceID]model.Status{"std::Directory[web1,path=/etc]": model.StatusDeployed}, Reload: true,
			Code: "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		}}},
		"cancel": &wire.Cancel{Tasks: []model.TaskID{taskID, otherID}},
		"log": &wire.Log{Task: taskID, Resource: file, Lines: []wire.LogLine{
			{Level: model.LevelInfo, Message: "hello <b>", Kwargs: json.RawMessage(`{"a":1}`), Time: when},
		}},
		"report": &wire.Report{Results: []wire.Result{{
			Task: taskID, Agent: "web1", Epoch: 8, Resource: file, Version: 3, Kind: model.TaskDeploy, AttributeHash: "abc",
			Outcome: model.OutcomeDeployed, Change: model.ChangeUpdated,
			Changes: model.Diff{"mode": {Current: json.RawMessage("600"), Desired: json.RawMessage("644")}},
			Log:     []wire.LogLine{{Level: model.LevelDebug, Message: "done", Time: when}},
			Facts:   []wire.Fact{{Name: "size", Value: "12", Expires: true}}, StartedAt: when, FinishedAt: when.Add(time.Second),
			Trace: "0123456789abcdef0123456789abcdef", DryRun: &dryRun, Code: "c", Retry: model.RetryLater, Offline: true,
		}}},
		"ack": &wire.Ack{
			Stored: []model.TaskID{taskID}, Refused: []wire.Refusal{{Task: otherID, Code: wire.CodeReplaced, Message: "m"}},
			Later: []wire.Refusal{{Task: otherID, Code: wire.CodeUnavailable}},
		},
		"heartbeat": &wire.Heartbeat{Waiting: 3, Running: 2, Spooled: 1},
		"bye":       &wire.Bye{Reason: "stopping"},
		"error":     &wire.Error{Code: wire.CodeForbidden, Message: "no"},
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := wire.Encode(42, body)
			if err != nil {
				t.Fatalf("Encode() = %v", err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, raw, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), pretty.String()); diff != "" {
				t.Errorf("encoding differs from %s (-golden +got):\n%s", path, diff)
			}
			f, err := wire.Decode(golden)
			if err != nil {
				t.Fatalf("Decode() = %v", err)
			}
			// Indenting the golden file has put white space into raw JSON values; that is not a difference.
			if diff := cmp.Diff(wire.Frame{ID: 42, Kind: body.Kind(), Body: body}, f, cmp.Transformer("compact", compact)); diff != "" {
				t.Errorf("Decode(Encode(x)) differs:\n%s", diff)
			}
			if string(body.Kind()) != name {
				t.Errorf("Kind() = %s, want %s", body.Kind(), name)
			}
		})
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

func TestDecodeForwardCompatible(t *testing.T) {
	t.Parallel()
	f, err := wire.Decode([]byte(`{"id":1,"kind":"telepathy","body":{"x":1},"extra":true}`))
	if err != nil || f.Body != nil || f.Kind != "telepathy" {
		t.Errorf("Decode(unknown kind) = %+v, %v, want a frame without a body", f, err)
	}
	f, err = wire.Decode([]byte(`{"id":1,"kind":"bye","body":{"reason":"r","new_field":[1]}}`))
	if err != nil {
		t.Fatalf("Decode(unknown field) = %v", err)
	}
	if diff := cmp.Diff(&wire.Bye{Reason: "r"}, f.Body); diff != "" {
		t.Errorf("body differs:\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", wire.MaxText+1)
	tests := map[string]wire.Body{
		"hello without a process":  &wire.Hello{},
		"hello with a long name":   &wire.Hello{Process: "p", Agents: []model.AgentName{model.AgentName(long)}},
		"hello with an empty name": &wire.Hello{Process: "p", Agents: []model.AgentName{""}},
		"hello with many names":    &wire.Hello{Process: "p", Agents: repeat(model.AgentName("a"), wire.MaxNames+1)},
		"hello with many tasks":    &wire.Hello{Process: "p", Held: repeat(taskID, wire.MaxHeld+1)},
		"welcome without session":  &wire.Welcome{},
		"names with a long name":   &wire.Names{Agents: []model.AgentName{model.AgentName(long)}},
		"host with an empty name":  &wire.Host{Agents: []model.AgentName{""}},
		"primary without a name":   &wire.Primary{Agents: []wire.PrimaryAgent{{}}},
		"paused without a name":    &wire.Paused{Agents: []model.AgentName{""}},
		"desired without a name":   &wire.Desired{},
		"desired with too many":    &wire.Desired{Agent: "a", Intents: repeat(intent(), wire.MaxBatch+1)},
		"assign without resource":  &wire.Assign{Tasks: []wire.Task{{Agent: "a"}}},
		"assign with a timeout":    &wire.Assign{Tasks: []wire.Task{{Agent: "a", Intent: intent(), Timeout: -1}}},
		"assign with too many":     &wire.Assign{Tasks: repeat(wire.Task{Agent: "a", Intent: intent()}, wire.MaxBatch+1)},
		"cancel with too many":     &wire.Cancel{Tasks: repeat(taskID, wire.MaxHeld+1)},
		"log with too many":        &wire.Log{Lines: repeat(wire.LogLine{}, wire.MaxBatch+1)},
		"report without outcome":   &wire.Report{Results: []wire.Result{{Resource: file}}},
		"ack with too many":        &wire.Ack{Stored: repeat(taskID, wire.MaxHeld+1)},
		"negative heartbeat":       &wire.Heartbeat{Running: -1},
		"bye with a long reason":   &wire.Bye{Reason: long},
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := wire.Encode(1, body); !errors.Is(err, model.ErrInvalid) {
				t.Errorf("Encode() = %v, want ErrInvalid", err)
			}
			raw, err := json.Marshal(map[string]any{"id": 1, "kind": body.Kind(), "body": body})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := wire.Decode(raw); !errors.Is(err, model.ErrInvalid) {
				t.Errorf("Decode() = %v, want ErrInvalid", err)
			}
		})
	}
	t.Run("frame too large", func(t *testing.T) {
		t.Parallel()
		if _, err := wire.Decode(make([]byte, wire.MaxFrame+1)); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("Decode() = %v, want ErrInvalid", err)
		}
		big := &wire.Log{Lines: []wire.LogLine{{Message: strings.Repeat("x", wire.MaxFrame)}}}
		if _, err := wire.Encode(1, big); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("Encode() = %v, want ErrInvalid", err)
		}
	})
}

func repeat[T any](v T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func TestConversionsKeepEverything(t *testing.T) {
	t.Parallel()
	env := model.EnvironmentID{UUID: uuid.MustParse("99999999-9999-4999-8999-999999999999")}
	task := model.Task{
		ID: taskID, Environment: env, Agent: "web1", Kind: model.TaskDeploy, Intent: intent().Model(), Version: 3, Reason: "r",
		Trace: "t", Deadline: when.Add(time.Minute), DryRun: dryRun,
		Requires: map[model.ResourceID]model.Status{"a::B[c,d=e]": model.StatusFailed}, Reload: true, Code: "c0de",
	}
	if diff := cmp.Diff(task, wire.FromTask(task, 1, when).Model(env, when)); diff != "" {
		t.Errorf("task differs:\n%s", diff)
	}
	// An agent whose clock is an hour ahead has the same time left.
	if got := wire.FromTask(task, 1, when).Model(env, when.Add(time.Hour)).Deadline; !got.Equal(when.Add(time.Hour + time.Minute)) {
		t.Errorf("deadline on another clock = %v", got)
	}
	if got := wire.FromTask(task, 1, when.Add(time.Hour)).Timeout; got != 1 {
		t.Errorf("timeout of a task that is late = %d, want 1", got)
	}
	result := model.Result{
		Task: taskID, Environment: env, Resource: file, Version: 3, Kind: model.TaskDeploy, AttributeHash: "abc",
		Outcome: model.OutcomeFailed, Change: model.ChangeCreated,
		Changes: model.Diff{"a": {Current: json.RawMessage("1"), Desired: json.RawMessage("2")}},
		Log:     []model.LogLine{{Level: model.LevelError, Message: "m", Time: when}}, Facts: []model.Fact{{Name: "n", Value: "v"}},
		StartedAt: when, FinishedAt: when.Add(time.Second), Trace: "t", DryRun: dryRun, Code: "c", Retry: model.RetryPerson,
	}
	if diff := cmp.Diff(result, wire.FromResult(result, "web1", 1).Model(env)); diff != "" {
		t.Errorf("result differs:\n%s", diff)
	}
}

func TestCodesKeepSentinels(t *testing.T) {
	t.Parallel()
	for _, sentinel := range []error{
		model.ErrUnavailable, model.ErrFenced, model.ErrForbidden, model.ErrInvalid, model.ErrNotFound, model.ErrConflict,
	} {
		if err := wire.CodeOf(sentinel).Err("message"); !errors.Is(err, sentinel) {
			t.Errorf("%v came back as %v", sentinel, err)
		}
	}
	if got := wire.CodeOf(errors.New("other")); got != wire.CodeInternal {
		t.Errorf("CodeOf(other) = %s", got)
	}
	if err := wire.CodeReplaced.Err("m"); !errors.Is(err, model.ErrFenced) {
		t.Errorf("replaced came back as %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range bodies() {
		raw, err := wire.Encode(1, body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"kind":"assign","body":{"tasks":[{"id":"x"}]}}`))
	f.Add([]byte(`{"kind":"report","body":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		frame, err := wire.Decode(raw)
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) {
				t.Fatalf("Decode() = %v, want ErrInvalid", err)
			}
			return
		}
		if frame.Body == nil {
			return
		}
		again, err := wire.Encode(frame.ID, frame.Body)
		if err != nil {
			t.Fatalf("Encode(Decode(%q)) = %v", raw, err)
		}
		second, err := wire.Decode(again)
		if err != nil {
			t.Fatalf("Decode(Encode(Decode(%q))) = %v", raw, err)
		}
		third, err := wire.Encode(second.ID, second.Body)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("encoding is not stable: %q, %q, %v", again, third, err)
		}
	})
}
