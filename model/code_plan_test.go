package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

// module makes the code of a module with some types.
func module(name string, types ...string) model.ModuleCode {
	return model.ModuleCode{Module: name, Files: []model.CodeFile{{Name: "inmanta_plugins." + name, Hash: emptyFile}}, Types: types}.Canonical()
}

func planned(t testing.TB, id, attributes string) model.Intent {
	t.Helper()
	in, err := model.NewIntent(model.ResourceID(id), json.RawMessage(attributes), nil, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// modulesOf returns which modules the manifest of each agent has, the others after a bar.
func modulesOf(t *testing.T, plan model.CodePlan, files []model.File) map[model.AgentName]string {
	t.Helper()
	contents := map[string][]byte{}
	for _, f := range files {
		contents[f.Hash] = f.Content
	}
	out := map[model.AgentName]string{}
	for agent, hash := range plan.Agents {
		var m model.CodeManifest
		if err := json.Unmarshal(contents[hash], &m); err != nil {
			t.Fatalf("the manifest of %s: %v", agent, err)
		}
		names := []string{}
		for _, c := range m.Modules {
			names = append(names, c.Module)
		}
		names = append(names, "|")
		for _, c := range m.Others {
			names = append(names, c.Module)
		}
		out[agent] = strings.Join(names, " ")
	}
	return out
}

func TestPlanCode(t *testing.T) {
	t.Parallel()
	state := model.DesiredState{
		Code: []model.ModuleCode{module("vault", "vault::Secret"), module("net", "net::Vlan", "net::Port"), module("web", "web::Site"), module("lib")},
		Intents: []model.Intent{
			planned(t, "net::Vlan[switch,id=1]", `{"references":[],"mutators":[]}`),
			planned(t, "net::Port[switch,id=2]", `{}`),
			planned(t, "web::Site[host,name=a]", `{"references":[{"id":"1","type":"vault::Secret","args":[]}],"mutators":[{"type":"core::Replace"}]}`),
			planned(t, "std::File[plain,path=/x]", `{"references":"a text","content":"\"references\":[{"}`),
			planned(t, "std::File[secretive,path=/x]", `{"references":[{"type":"vault::Secret"}]}`),
		},
	}
	state.Code[3].Agents = []model.AgentName{"named"}
	plan, files, err := model.PlanCode(state)
	if err != nil {
		t.Fatal(err)
	}
	want := map[model.AgentName]string{
		"switch": "net | lib vault web", "host": "vault web | lib net", "secretive": "vault | lib net web", "named": "lib | net vault web",
	}
	if d := cmp.Diff(want, modulesOf(t, plan, files)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{emptyFile}, plan.ContentHashes()); d != "" {
		t.Error(d)
	}
	again, _, err := model.PlanCode(state)
	if err != nil || !cmp.Equal(plan, again) {
		t.Errorf("the same state gives another plan (%v)", err)
	}
	state.Code = append(state.Code, module("net"))
	if _, _, err := model.PlanCode(state); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a module twice: %v", err)
	}
}

func BenchmarkPlanCode(b *testing.B) {
	state := model.DesiredState{Code: []model.ModuleCode{module("net", "net::Vlan")}}
	for i := range 100_000 {
		state.Intents = append(state.Intents, planned(b, fmt.Sprintf("net::Vlan[switch%d,id=%d]", i%1000, i), `{"id":"x","mutators":[],"references":[],"members":["a","b","c"]}`))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := model.PlanCode(state); err != nil {
			b.Fatal(err)
		}
	}
}
