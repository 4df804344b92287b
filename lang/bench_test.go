package lang_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang"
)

// benchModel is a model of about n instances with indexes, relations in both directions, implementations and interpolation.
func benchModel(n int) string {
	var b strings.Builder
	b.WriteString(`
entity Node:
    string name
    int idx
    bool enabled = true
end
index Node(name)
entity Service:
    string name
    string url
end
Node.services [0:] -- Service.node [1]
index Service(node, name)
Node.peer [0:1] -- Node.peer_of [0:]
implementation node for Node:
    self.services += Service(name="http", url="http://{{name}}")
    if enabled:
        self.services += Service(name="ssh", url=f"ssh://{name}:{idx}")
    end
end
implement Node using node
implement Service using std::none
`)
	fmt.Fprintf(&b, "for i in std::sequence(%d):\n    Node(name=\"n{{i}}\", idx=i)\nend\n", n/6)
	for i := range n / 6 {
		fmt.Fprintf(&b, "m%d = Node(name=\"m%d\", idx=%d, peer=Node[name=\"n%d\"])\n", i, i, i, i)
	}
	return b.String()
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := project("main.cf", benchModel(n))
			b.ReportAllocs()
			for b.Loop() {
				res, ds, err := lang.Compile(context.Background(), lang.Project{FS: p}, lang.Options{})
				if err != nil || ds.HasErrors() {
					b.Fatal(err, ds)
				}
				b.ReportMetric(float64(res.Stats.Instances), "instances")
			}
		})
	}
}
