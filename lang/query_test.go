package lang_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
)

const queryModel = `
import m
entity Host:
    string name
end
Host.peers [0:] -- Host
index Host(name)
implement Host using std::none
a = Host(name="a")
b = Host(name="b", peers=a)
none = m::none()
`

func queried(t *testing.T) *lang.Result {
	t.Helper()
	exts := extension{ext: lang.Extension{Plugins: []*value.Plugin{plugin("m::none", func(value.Context, []value.Value) (value.Value, error) {
		return value.Int(1), nil
	})}}}
	return mustCompile(t, project("main.cf", queryModel, "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", ""), lang.Options{Plugins: exts})
}

// TestQuery evaluates expressions, one after the other, in the same model: those that fail leave nothing behind.
func TestQuery(t *testing.T) {
	t.Parallel()
	res := queried(t)
	instances := len(res.Model.Instances)
	for _, test := range []struct{ text, want, fault string }{
		{text: `Host[name="b"].peers`, want: "[__config__::Host 1]"},
		{text: `Host[name="c"]`, fault: "No match in index on type __config__::Host with key name='c'"},
		{text: `[h.name for h in Host[name="b"].peers]`, want: "['a']"},
		{text: `Host[name="c"].name + "x"`, fault: "No match in index"},
		{text: `Host[name="b"].peers is defined ? "yes" : "no"`, want: "'yes'"},
		{text: `(a.name + b.name) == "ab" and not (a.peers is defined)`, want: "True"},
		{text: `m::none()`, fault: "a query can not call m::none"},
		{text: `none`, want: "1"},
		{text: `[x.name for x in [Host(name="z")]]`, fault: "a query can not make an instance of Host"},
		{text: `a.name = "b"`, fault: "it can not assign"},
		{text: `std::sequence(3000)`, want: ""},
		{text: `[[x * y for x in std::sequence(1200)] for y in std::sequence(1200)]`, fault: "takes more than 1000000 steps"},
		{text: `1 + 1`, want: "2"},
		{text: `a.name +`, fault: "Unexpected end of file"},
		{text: "a.name\n+ 1", fault: "Can only concatenate"},
		{text: `nowhere::x`, fault: "Namespace nowhere not found"},
	} {
		v, ds, err := res.Query(t.Context(), "", test.text)
		switch {
		case err != nil:
			t.Fatal(err)
		case test.fault == "" && (v == nil || test.want != "" && value.Repr(v) != test.want):
			t.Errorf("%s: got %v, want %s; %s", test.text, v, test.want, ds)
		case test.fault != "" && (v != nil || !strings.Contains(ds.String(), test.fault)):
			t.Errorf("%s: got %v and %s, want %s", test.text, v, ds, test.fault)
		}
	}
	if n := len(res.Model.Instances); n != instances {
		t.Errorf("queries made %d instances", n-instances)
	}
}

func TestQueryStops(t *testing.T) {
	t.Parallel()
	res := queried(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := res.Query(ctx, "", "1 + 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Query = %v, want %v", err, context.Canceled)
	}
	if _, ds, err := res.Query(t.Context(), "", "1 + 1"); err != nil || ds.HasErrors() {
		t.Errorf("Query = %v, %v", ds, err)
	}
}

func TestInstancesOf(t *testing.T) {
	t.Parallel()
	res := queried(t)
	for entity, want := range map[string]int{"Host": 2, "__config__::Host": 2, "std::Entity": len(res.Model.Instances)} {
		if is, ds := res.Instances("", entity); len(is) != want || len(ds) > 0 {
			t.Errorf("Instances(%s) = %d, %v, want %d", entity, len(is), ds, want)
		}
	}
	for entity, want := range map[string]string{"Hots": "could not find type Hots", "std::port": "is not an entity"} {
		if _, ds := res.Instances("", entity); !strings.Contains(ds.String(), want) {
			t.Errorf("Instances(%s): %v, want %s", entity, ds, want)
		}
	}
}
