package lang_test

import (
	"context"
	"testing"

	"github.com/intendant/intendant/lang"
)

// FuzzCompile holds that no text makes the compiler break, and that the same text always gives the same result.
func FuzzCompile(f *testing.F) {
	for _, c := range readChunks(f, "testdata/tricky.txt") {
		f.Add(string(c.files["main.cf"].Data))
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
