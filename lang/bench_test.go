package lang_test

import (
	"context"
	"fmt"
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

var library = langtest.Library{Modules: 100, Entities: 20, Instances: 20}

func BenchmarkLibrary(b *testing.B) { benchmarkCompile(b, library.Project()) }
