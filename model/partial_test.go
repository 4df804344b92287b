package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

// made makes an intent of a line: set/name=value > required, required. An empty set is the shared one.
func made(t *testing.T, line string) model.Intent {
	t.Helper()
	head, tail, _ := strings.Cut(line, ">")
	set, rest, _ := strings.Cut(strings.TrimSpace(head), "/")
	name, value, _ := strings.Cut(rest, "=")
	var requires []model.ResourceID
	for _, r := range strings.FieldsFunc(tail, func(r rune) bool { return r == ',' || r == ' ' }) {
		requires = append(requires, named(r))
	}
	i, err := model.NewIntent(named(name), []byte(`{"value":"`+value+`"}`), requires, set, false)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func named(name string) model.ResourceID { return model.ResourceID("test::R[a,name=" + name + "]") }

func all(t *testing.T, lines ...string) []model.Intent {
	t.Helper()
	var out []model.Intent
	for _, l := range lines {
		out = append(out, made(t, l))
	}
	return out
}

// shown is the reverse of made.
func shown(intents []model.Intent) []string {
	var out []string
	for _, i := range intents {
		line := i.Set + "/" + i.Resource.Parts().Value + "=" + strings.TrimSuffix(strings.TrimPrefix(string(i.Attributes), `{"value":"`), `"}`)
		var requires []string
		for _, r := range i.Requires {
			requires = append(requires, r.Parts().Value)
		}
		if len(requires) > 0 {
			line += " > " + strings.Join(requires, ", ")
		}
		out = append(out, line)
	}
	return out
}

// The rows of section 4.2 of the server reference.
//
// Rules: part-set-1, part-set-2, part-set-3, part-shared-1, part-shared-2, part-move-1, part-req-1.
func TestMergePartial(t *testing.T) {
	t.Parallel()
	base := []string{"/s=1 > a1, b1", "/t=1", "a/a1=1", "a/a2=1 > a1, y", "b/b1=1 > t", "/y=1"}
	for _, tt := range []struct {
		name    string
		given   []string
		removed []string
		want    []string
		err     string
	}{
		{name: "nothing", want: []string{"a/a1=1", "a/a2=1 > a1, y", "b/b1=1 > t", "/s=1 > a1, b1", "/t=1", "/y=1"}},
		{name: "a set is replaced whole", given: []string{"a/a3=1 > y"}, want: []string{"a/a3=1 > y", "b/b1=1 > t", "/s=1 > b1", "/t=1", "/y=1"}},
		{name: "a set is removed", removed: []string{"a"}, want: []string{"b/b1=1 > t", "/s=1 > b1", "/t=1", "/y=1"}},
		{name: "a set that is not there is removed", removed: []string{"z"}, want: []string{"a/a1=1", "a/a2=1 > a1, y", "b/b1=1 > t", "/s=1 > a1, b1", "/t=1", "/y=1"}},
		{name: "a set both ways", given: []string{"a/a1=1"}, removed: []string{"a"}, err: "resource set a is to be removed and has resources"},
		{name: "a new shared resource", given: []string{"/u=1"}, want: []string{"a/a1=1", "a/a2=1 > a1, y", "b/b1=1 > t", "/s=1 > a1, b1", "/t=1", "/u=1", "/y=1"}},
		{name: "a shared resource gets more requirements", given: []string{"a/a3=1", "/s=1 > a3"}, want: []string{"a/a3=1", "b/b1=1 > t", "/s=1 > a3, b1", "/t=1", "/y=1"}},
		{name: "a shared resource changes", given: []string{"/s=2"}, err: "shared resource test::R[a,name=s] differs from that of version 7"},
		{name: "from set to set", given: []string{"b/b1=1", "b/a1=1", "a/a2=1"}, want: []string{"b/a1=1", "a/a2=1", "b/b1=1", "/s=1", "/t=1", "/y=1"}},
		{name: "from a removed set", given: []string{"c/a1=1"}, removed: []string{"a"}, want: []string{"c/a1=1", "b/b1=1 > t", "/s=1 > b1", "/t=1", "/y=1"}},
		{name: "from a set that stays", given: []string{"b/b1=1", "b/a1=1"}, err: "moves from the resource set a to b"},
		{name: "out of the shared ones", given: []string{"a/t=1"}, err: "is shared in version 7 and can not move"},
		{name: "into the shared ones", given: []string{"/a1=1"}, err: "is in the resource set a of version 7 and is shared in the export"},
		{name: "across sets", given: []string{"a/a1=1 > b1"}, err: "test::R[a,name=a1] requires test::R[a,name=b1], which is in another resource set"},
		{name: "on what stays", given: []string{"a/a1=2 > t"}, want: []string{"a/a1=2 > t", "b/b1=1 > t", "/s=1 > b1", "/t=1", "/y=1"}},
		{name: "on what is not there", given: []string{"a/a1=2 > nothing"}, err: "requires test::R[a,name=nothing], which is neither"},
		{name: "on what goes", given: []string{"a/a1=2 > a2"}, err: "requires test::R[a,name=a2], which is neither"},
		{name: "twice", given: []string{"a/a1=2", "a/a1=3"}, err: "is in the export twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := model.MergePartial(model.PartialBase{Version: 7, Intents: all(t, base...)}, model.Partial{
				DesiredState: model.DesiredState{Intents: all(t, tt.given...)}, RemovedSets: tt.removed,
			})
			if tt.err != "" {
				if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("MergePartial() = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, shown(got.Intents)); d != "" {
				t.Errorf("the result (-want +got):\n%s", d)
			}
			if string(got.Metadata[model.MetadataPartialBase]) != "7" || got.Digest != model.StateDigest(got.Intents) {
				t.Errorf("base is %s, digest %s", got.Metadata[model.MetadataPartialBase], got.Digest)
			}
		})
	}
}

// Rules: part-base-2, part-unk-1, part-code-1.
func TestMergePartialRest(t *testing.T) {
	t.Parallel()
	base := model.PartialBase{
		Version: 3, Intents: all(t, "a/a1=1", "b/b1=1"),
		Unknowns: []model.UnknownParameter{{Name: "x", Resource: string(named("a1"))}, {Name: "y", Resource: string(named("b1"))}},
		Code:     []model.ModuleCode{{Module: "m", Digest: "1", Agents: []model.AgentName{"a"}}, {Module: "n", Digest: "1"}},
		Pip:      &model.PipConfig{IndexURL: "https://pypi.example.com/simple"},
	}
	p := model.Partial{DesiredState: model.DesiredState{
		Intents: all(t, "a/a1=2"), Unknowns: []model.UnknownParameter{{Name: "z", Resource: string(named("a1"))}},
		Code: []model.ModuleCode{{Module: "m", Digest: "1", Agents: []model.AgentName{"b"}}, {Module: "o", Digest: "1"}},
	}}
	got, err := model.MergePartial(base, p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]model.UnknownParameter{{Name: "z", Resource: string(named("a1"))}, {Name: "y", Resource: string(named("b1"))}}, got.Unknowns); d != "" {
		t.Errorf("unknowns (-want +got):\n%s", d)
	}
	want := []model.ModuleCode{{Module: "m", Digest: "1", Agents: []model.AgentName{"b", "a"}}, {Module: "n", Digest: "1"}, {Module: "o", Digest: "1"}}
	if d := cmp.Diff(want, got.Code); d != "" {
		t.Errorf("code (-want +got):\n%s", d)
	}
	if got.Pip != base.Pip {
		t.Errorf("pip is %v, want that of the base", got.Pip)
	}
	p.Code[0].Digest = "2"
	if _, err := model.MergePartial(base, p); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "the code of module m differs") {
		t.Errorf("other code gives %v", err)
	}
	p.AllowCodeUpdate = true
	if _, err := model.MergePartial(base, p); err != nil {
		t.Errorf("other code that is allowed gives %v", err)
	}
	base.Intents = all(t, "a/a1=1 > b1", "b/b1=1")
	if _, err := model.MergePartial(base, p); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "can not be the base") {
		t.Errorf("a base with a dependency across sets gives %v", err)
	}
}

// Rules: part-base-2.
func TestMetadataWithCrossSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given []string
		want  string
	}{
		{name: "none", given: []string{"a/a1=1 > y", "/y=1 > a1", "a/a2=1 > a1"}},
		{name: "one", given: []string{"a/a1=1 > b1", "b/b1=1"}, want: `"test::R[a,name=a1] requires test::R[a,name=b1]"`},
	} {
		s := model.DesiredState{Intents: all(t, tt.given...), Metadata: map[string]json.RawMessage{"message": []byte(`"m"`)}}
		got := model.MetadataWithCrossSet(s)
		if string(got[model.MetadataCrossSet]) != tt.want || string(got["message"]) != `"m"` || len(s.Metadata) != 1 {
			t.Errorf("%s: metadata is %s, want %s; the given one is now %s", tt.name, got, tt.want, s.Metadata)
		}
	}
}
