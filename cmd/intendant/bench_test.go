package main_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkWholePath brings a model of 10,000 resources the whole way, from the push to the last result, then one in which a
// single resource is another. The times are those that the server recorded.
func BenchmarkWholePath(b *testing.B) {
	const n = 10_000
	model := func(last string) string {
		return fmt.Sprintf(`import std::testing
for i in std::sequence(%d):
    agent = i %% 8
    std::testing::NullResource(name="r{{i}}", agentname="agent{{agent}}", value=i == 7 ? "%s" : "same")
end
`, n, last)
	}
	for b.Loop() {
		s := newSystem(b)
		s.watch()
		for _, round := range []struct{ name, model string }{{"first", model("a")}, {"one changed", model("b")}} {
			s.push(round.name, round.model)
			j := s.converged(round.name)
			c, err := s.api.Compile(b.Context(), j.CompileID)
			if err != nil {
				b.Fatal(err)
			}
			ms := func(name string, d time.Duration) {
				b.ReportMetric(float64(d.Microseconds())/1000, name+"-"+map[string]string{"first": "all", "one changed": "one"}[round.name]+"-ms")
			}
			for _, st := range c.Reports {
				if st.Started != nil && st.Completed != nil {
					ms(st.Name, st.Completed.Sub(st.Started.Time))
				}
			}
			ms("compile-to-version", j.StoredAt.Sub(j.StartedAt.Time))
			ms("deploy", j.ConvergedAt.Sub(j.ReleasedAt.Time))
			ms("push-to-converged", time.Duration(j.Seconds*float64(time.Second)))
			b.ReportMetric(float64(c.PeakMemory)/(1<<20), "compiler-MB")
		}
		if b.Failed() {
			return
		}
	}
}
