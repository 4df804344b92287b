package lang_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/langtest"
)

// benchmarkCompile compiles a project and reports what an instance costs: time, memory, and steps.
func benchmarkCompile(b *testing.B, files fstest.MapFS) {
	b.ReportAllocs()
	var res *lang.Result
	for b.Loop() {
		var err error
		if res, err = compiled(lang.Compile, files); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(res.Stats.Instances)
	b.ReportMetric(n, "instances")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instance")
	b.ReportMetric(float64(res.Stats.Steps)/n, "steps/instance")
}

// compiled is the result of a project without faults.
func compiled(c compiler, files fstest.MapFS) (*lang.Result, error) {
	res, ds, err := c(context.Background(), lang.Project{FS: files}, lang.Options{})
	switch {
	case err != nil:
		return nil, err
	case ds.HasErrors():
		return nil, fmt.Errorf("refused:\n%s", ds)
	}
	return res, nil
}

func BenchmarkCompile(b *testing.B) {
	for _, s := range langtest.Shapes() {
		for _, n := range []int{100, 1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", s.Name, n), func(b *testing.B) { benchmarkCompile(b, s.Project(n)) })
		}
	}
}

// library is a project of 100 modules, and little made of them: much of a compile is to read and to bind them.
var library = langtest.Library{Modules: 100, Entities: 20, Instances: 2}

// BenchmarkLibrary compiles a project of 100 modules: afresh, and in a session in which one file changes each time.
func BenchmarkLibrary(b *testing.B) {
	b.Run("fresh", func(b *testing.B) { benchmarkCompile(b, library.Project()) })
	main := library.Project()["main.cf"].Data
	for _, c := range []struct {
		name string
		edit func(files fstest.MapFS, n int)
	}{
		{"nothing", func(fstest.MapFS, int) {}},
		{"main", func(files fstest.MapFS, n int) {
			text := fmt.Sprintf("%sextra = lib7::Type1(name=\"extra %d\")\n", main, n)
			files["main.cf"] = &fstest.MapFile{Data: []byte(text)}
		}},
		{"statement", func(files fstest.MapFS, n int) {
			text := fmt.Sprintf("%sstd::print(\"%d\")\n", library.Module(50), n)
			files["libs/lib50/model/_init.cf"] = &fstest.MapFile{Data: []byte(text)}
		}},
		{"declaration", func(files fstest.MapFS, n int) { // a line more or less before all that is declared
			text := strings.Repeat("#\n", n%2) + library.Module(50)
			files["libs/lib50/model/_init.cf"] = &fstest.MapFile{Data: []byte(text)}
		}},
	} {
		b.Run("changed/"+c.name, func(b *testing.B) {
			files, s := library.Project(), lang.NewSession()
			if _, err := compiled(s.Compile, files); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var stats lang.Stats
			n := 0
			for b.Loop() {
				n++
				c.edit(files, n)
				res, err := compiled(s.Compile, files)
				if err != nil {
					b.Fatal(err)
				}
				stats = res.Stats
			}
			b.ReportMetric(float64(stats.Load.Microseconds())/1000, "load-ms")
			b.ReportMetric(float64(stats.Check.Microseconds())/1000, "check-ms")
			b.ReportMetric(float64(stats.Eval.Microseconds())/1000, "eval-ms")
		})
	}
}
