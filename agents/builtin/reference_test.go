package builtin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

func environment(id, name string) map[string]any {
	return map[string]any{"id": id, "type": "std::Environment", "args": []any{map[string]any{"type": "literal", "name": "name", "value": name}}}
}

func replaced(id, destination string) map[string]any {
	return map[string]any{"id": "m" + id, "type": "core::Replace", "args": []any{
		map[string]any{"type": "resource", "name": "resource", "id": "x"},
		map[string]any{"type": "reference", "name": "value", "id": id},
		map[string]any{"type": "literal", "name": "destination", "value": destination},
	}}
}

func TestFileWithReferences(t *testing.T) {
	t.Parallel()
	variables := map[string]string{"OWNER": fmt.Sprint(os.Getuid()), "PASSWORD": "correct horse", "MODE": "640"}
	s := host(t, builtin.Config{LookupEnv: func(name string) (string, bool) {
		v, ok := variables[name]
		return v, ok
	}})
	path := filepath.Join(t.TempDir(), "secret")
	attributes := map[string]any{
		"path": path, "hash": nil, "owner": nil, "permissions": nil,
		"references": []any{
			environment("o", "OWNER"), environment("p", "PASSWORD"), environment("m", "MODE"),
			map[string]any{"id": "i", "type": "std::IntReference", "args": []any{map[string]any{"type": "reference", "name": "value", "id": "m"}}},
		},
		"mutators": []any{replaced("o", "owner"), replaced("p", "hash"), replaced("i", "permissions")},
	}
	for _, kind := range []model.TaskKind{model.TaskDryRun, model.TaskDeploy} {
		r := s.Run(t, s.NewTask(kind, sdktest.NewIntent(t, id("std::File", "path", path), attributes)))
		if r.Outcome != model.OutcomeDeployed && r.Outcome != model.OutcomeDryRun {
			t.Fatalf("%s: %s; %s", kind, r.Outcome, messages(r))
		}
		if text := fmt.Sprint(r); strings.Contains(text, "horse") {
			t.Errorf("%s: the secret is reported: %s", kind, text)
		}
		if len(r.Changes) == 0 {
			t.Errorf("%s: no difference", kind)
		}
	}
	if got := read(t, path); got != "correct horse" {
		t.Errorf("content is %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, %v, want 0640", info.Mode(), err)
	}
	r := deploy(t, s, id("std::File", "path", path), attributes)
	if r.Change != model.ChangeNone {
		t.Errorf("again: %s, %v", r.Change, r.Changes)
	}
}

func TestReferenceFaultsOfResources(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{LookupEnv: func(string) (string, bool) { return "secret text", true }})
	attributes := func(references []any, mutator string) map[string]any {
		return map[string]any{"command": nil, "references": references, "mutators": []any{replaced(mutator, "command")}}
	}
	missing := host(t, builtin.Config{LookupEnv: func(string) (string, bool) { return "", false }})
	r := deploy(t, missing, id("exec::Run", "command", "a"), attributes([]any{environment("e", "NONE")}, "e"))
	if r.Outcome != model.OutcomeFailed || !strings.Contains(messages(r), "no variable NONE") {
		t.Errorf("a missing variable: %s; %s", r.Outcome, messages(r))
	}
	number := map[string]any{"id": "i", "type": "std::IntReference", "args": []any{map[string]any{"type": "reference", "name": "value", "id": "e"}}}
	r = deploy(t, s, id("exec::Run", "command", "b"), attributes([]any{environment("e", "X"), number}, "i"))
	if r.Outcome != model.OutcomeFailed || strings.Contains(messages(r), "secret") {
		t.Errorf("a text that is no number: %s; %s", r.Outcome, messages(r))
	}
	fact := map[string]any{"id": "f", "type": "std::FactReference", "args": []any{
		map[string]any{"type": "literal", "name": "resource_id", "value": "r"}, map[string]any{"type": "literal", "name": "fact_name", "value": "n"},
	}}
	r = deploy(t, s, id("exec::Run", "command", "c"), attributes([]any{fact}, "f"))
	if r.Outcome != model.OutcomeUnavailable {
		t.Errorf("a fact: %s; %s", r.Outcome, messages(r))
	}
}
