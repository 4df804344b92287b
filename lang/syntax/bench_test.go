package syntax_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang/syntax"
)

// sample is source of the kind that models are made of: definitions, and many constructors.
func sample(instances int) []byte {
	var b strings.Builder
	b.WriteString(`import net::lan
"""A sample."""
typedef port as int matching self > 0 and self < 65536

entity Host extends net::lan::Node:
    """
    A machine.

    :attr name: how people call it
    """
    string name # unique
    port ssh = 22
    dict labels = {"managed": true}
    string[] aliases = []
end
Host.services [0:] -- Service.host [1]

implementation defaults for Host:
    self.url = "ssh://{{ self.name }}:{{ self.ssh }}/"
    for s in self.services:
        if s.port > 1024 and not (s.name in ["ssh", "dns"]):
            s.label = f"{s.name!r:>20} on {self.name}"
        else:
            s.label = s.name is defined ? s.name : "none"
        end
    end
end
implement Host using defaults when self.ssh != 22
implement Host using parents
index Host(name)
`)
	for i := range instances {
		fmt.Fprintf(&b, "h%d = Host(name=\"host-%d\", ssh=%d, labels={\"rack\": \"r%d\", \"n\": %d}, aliases=[\"a%d\", \"b\"])\n", i, i, i%100+22, i/40, i, i)
		fmt.Fprintf(&b, "h%d.services += net::lan::Service(name=\"web\", url=\"http://{{h%d.name}}:80/\", peer=Host[name=\"host-%d\"])\n", i, i, i/2)
	}
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	src := sample(2000)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ds := syntax.Parse("main.cf", src, syntax.Options{}); len(ds) > 0 {
			b.Fatal(ds)
		}
	}
}
