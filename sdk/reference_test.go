package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// ref is the JSON of a reference, mutator is that of its place.
func ref(id, typ string, args ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"args":[%s]}`, id, typ, strings.Join(args, ","))
}

func literal(name, value string) string {
	return fmt.Sprintf(`{"type":"literal","name":%q,"value":%q}`, name, value)
}

func to(name, id string) string {
	return fmt.Sprintf(`{"type":"reference","name":%q,"id":%q}`, name, id)
}

func replaceBy(id, destination string) string {
	return fmt.Sprintf(`{"type":"core::Replace","args":[{"type":"resource","name":"resource","id":"x"},%s,%s]}`,
		to("value", id), literal("destination", destination))
}

func resolve(t *testing.T, attributes string) (*sdk.Resource, error) {
	t.Helper()
	r := sdk.NewRegistry()
	upper := func(_ *sdk.Context, args map[string]json.RawMessage) (any, error) {
		var s string
		if err := json.Unmarshal(args["text"], &s); err != nil {
			return nil, err
		}
		if s == "fail" {
			return nil, errors.New("can not be resolved")
		}
		return strings.ToUpper(s), nil
	}
	if err := r.Resolve("test::Upper", upper); err != nil {
		t.Fatal(err)
	}
	if err := r.Resolve("test::Upper", upper); !errors.Is(err, model.ErrConflict) {
		t.Errorf("Resolve() again = %v, want ErrConflict", err)
	}
	res, err := sdk.NewResource(intent(t, attributes), 1)
	if err != nil {
		t.Fatal(err)
	}
	return r.WithReferences(sdk.NewContext(t.Context(), sdk.ContextConfig{}), res)
}

func TestReferences(t *testing.T) {
	t.Parallel()
	attributes := `{"name":null,"list":["a",null],"map":{"it's":{"x":[null]}},"plain":1,"references":[` + strings.Join([]string{
		ref("r1", "test::Upper", literal("text", "secret")), ref("r2", "test::Upper", to("text", "r1")),
	}, ",") + `],"mutators":[` + strings.Join([]string{
		replaceBy("r1", "name"), replaceBy("r2", "list[1]"), replaceBy("r1", `map.'it\'s'.'x'[0]`),
	}, ",") + `]}`
	r, err := resolve(t, attributes)
	if err != nil {
		t.Fatalf("WithReferences() = %v", err)
	}
	got, err := model.Canonical(r.Raw())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"list":["a","SECRET"],"map":{"it's":{"x":["SECRET"]}},"name":"SECRET","plain":1}`, string(got)); diff != "" {
		t.Errorf("attributes differ:\n%s", diff)
	}
	if !r.Resolved("name") || !r.Resolved("map") || r.Resolved("plain") || r.String("name") != "SECRET" {
		t.Errorf("what was resolved is wrong: %+v", r)
	}
	if r, err := resolve(t, `{"name":"a","references":[],"mutators":[]}`); err != nil || r.String("name") != "a" {
		t.Errorf("without references: %v, %v", r, err)
	}
}

func TestReferenceFaults(t *testing.T) {
	t.Parallel()
	good := ref("r1", "test::Upper", literal("text", "x"))
	with := func(references, mutators string) string {
		return `{"name":null,"list":[1],"references":[` + references + `],"mutators":[` + mutators + `]}`
	}
	for name, test := range map[string]struct {
		attributes  string
		unavailable bool
	}{
		"unknown reference type": {with(ref("r1", "test::Lower"), replaceBy("r1", "name")), true},
		"unknown mutator":        {with(good, ref("m", "test::Mutator")), true},
		"missing reference":      {with(good, replaceBy("r2", "name")), false},
		"cycle":                  {with(ref("r1", "test::Upper", to("text", "r1")), replaceBy("r1", "name")), false},
		"resolver fails":         {with(ref("r1", "test::Upper", literal("text", "fail")), replaceBy("r1", "name")), false},
		"unknown argument":       {with(ref("r1", "test::Upper", `{"type":"magic","name":"text"}`), replaceBy("r1", "name")), false},
		"empty destination":      {with(good, replaceBy("r1", "")), false},
		"bad index":              {with(good, replaceBy("r1", "list[x]")), false},
		"index out of range":     {with(good, replaceBy("r1", "list[1]")), false},
		"key of a list":          {with(good, replaceBy("r1", "list.'a'")), false},
		"quote not closed":       {with(good, replaceBy("r1", "list.'a")), false},
		"rubbish after a name":   {with(good, replaceBy("r1", "list.a")), false},
	} {
		_, err := resolve(t, test.attributes)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		var instruction *sdk.Instruction
		if got := errors.As(err, &instruction) && instruction.Outcome == model.OutcomeUnavailable; got != test.unavailable {
			t.Errorf("%s: %v, unavailable %v, want %v", name, err, got, test.unavailable)
		}
	}
}
