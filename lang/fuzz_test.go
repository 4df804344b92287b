package lang_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
)

// FuzzCompile holds that no text makes the compiler break, and that the same text always gives the same result.
func FuzzCompile(f *testing.F) {
	const longest = 64 << 10 // cases about sizes are no seeds
	for _, glob := range []string{"testdata/*.txt", "testdata/spec/*.txt"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			for _, c := range readChunks(f, file) {
				if main := c.files["main.cf"].Data; len(main) < longest {
					f.Add(string(main))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		opts := lang.Options{MaxSteps: 20_000}
		res, ds, err := lang.Compile(context.Background(), lang.Project{FS: project("main.cf", text)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		again, ds2, err := lang.Compile(context.Background(), lang.Project{FS: project("main.cf", text)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if res.State.Digest != again.State.Digest || ds.String() != ds2.String() {
			t.Errorf("two compiles differ:\n%s\n%s", ds, ds2)
		}
	})
}

// FuzzQuery holds that no expression makes the evaluation break, or changes what the next one gives.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		`Host[name="b"].peers`, `[h.name for h in Host[name="b"].peers if h.peers is defined]`, `/x/`, `self`, `f"{a.name:>{b.name}}"`, `a.peers[name="b"]`,
		`{"k": a}["k"].name`, `"{{ a.nmae }}"`, `Host[**{"name": "c"}]`, `std::count(b.peers) + 1 in [2] ? a : b.x`, `m::none(1, x=2)`,
	} {
		f.Add(s)
	}
	exts := extension{ext: lang.Extension{Plugins: []*value.Plugin{plugin("m::none", func(value.Context, []value.Value) (value.Value, error) {
		return value.Int(1), nil
	})}}}
	p := project("main.cf", queryModel, "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", "")
	res, ds, err := lang.Compile(context.Background(), lang.Project{FS: p}, lang.Options{Plugins: exts})
	if err != nil || ds.HasErrors() {
		f.Fatal(err, ds)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ds, err := res.Query(context.Background(), "", text)
		if err != nil || (v == nil) != ds.HasErrors() {
			t.Fatalf("%v, %s, %v", v, ds, err)
		}
		if v, ds, _ := res.Query(context.Background(), "", `Host[name="b"].peers`); v == nil || value.Repr(v) != "[__config__::Host 1]" {
			t.Fatalf("%v, %s", v, ds)
		}
	})
}
