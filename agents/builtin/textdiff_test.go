package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestUnifiedDiff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ from, to, want string }{
		"change": {
			"a\nb\nc\n", "a\nB\nc\n",
			"--- f (current)\n+++ f (desired)\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		},
		"from nothing": {"", "a\nb\n", "--- f (current)\n+++ f (desired)\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"to nothing":   {"a\n", "", "--- f (current)\n+++ f (desired)\n@@ -1,1 +0,0 @@\n-a\n"},
		"no newline at the end": {
			"a\n", "a",
			"--- f (current)\n+++ f (desired)\n@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n",
		},
		"two hunks": {
			"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ntwelve\n",
			"--- f (current)\n+++ f (desired)\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+twelve\n",
		},
		"the same": {"a\n", "a\n", "--- f (current)\n+++ f (desired)\n"},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, unifiedDiff("f", test.from, test.to)); diff != "" {
			t.Errorf("%s: differs:\n%s", name, diff)
		}
	}
	long := strings.Repeat("x\n", maxDiffLines+1)
	if got := unifiedDiff("f", long, "x\n"); got != "4001 lines become 1\n" {
		t.Errorf("diff of a long text is %q", got)
	}
}

func TestCompareLinesKeepsBothTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n"}), 0, 40)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var from, to []string
		for _, l := range compareLines(a, b) {
			if l.op != '+' {
				from = append(from, l.text)
				if l.from != len(from) {
					t.Fatalf("line %q is at %d of the first text, said to be at %d", l.text, len(from), l.from)
				}
			}
			if l.op != '-' {
				to = append(to, l.text)
				if l.to != len(to) {
					t.Fatalf("line %q is at %d of the second text, said to be at %d", l.text, len(to), l.to)
				}
			}
		}
		if strings.Join(from, "") != strings.Join(a, "") || strings.Join(to, "") != strings.Join(b, "") {
			t.Fatalf("the comparison of %q and %q is of %q and %q", a, b, from, to)
		}
	})
}

func TestCompareLinesGivesUp(t *testing.T) {
	t.Parallel()
	var a, b []string
	for range maxEdits {
		a, b = append(a, "a\n"), append(b, "b\n")
	}
	if got := len(compareLines(a, b)); got != 2*maxEdits {
		t.Errorf("%d lines, want %d", got, 2*maxEdits)
	}
}
