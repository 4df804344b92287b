package pyre

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// row is a line of testdata/python.jsonl.
type row struct {
	P, F, E string
	T       [][4]json.RawMessage
}

func readRows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var r row
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func flagsOf(s string) (f Flags) {
	for _, c := range s {
		f |= map[rune]Flags{'i': IgnoreCase, 'm': MultiLine, 's': DotAll, 'x': Verbose, 'a': ASCII}[c]
	}
	return f
}

// inRunes gives the spans of a match in characters, as Python counts.
func inRunes(m *Match, text string) [][2]int {
	if m == nil {
		return nil
	}
	var spans [][2]int
	for g := range len(m.at) / 2 {
		from, to := m.Span(g)
		if from < 0 {
			spans = append(spans, [2]int{-1, -1})
			continue
		}
		spans = append(spans, [2]int{utf8.RuneCountInString(text[:from]), utf8.RuneCountInString(text[:to])})
	}
	return spans
}

func TestAgainstPython(t *testing.T) {
	t.Parallel()
	failures, linear, total := 0, 0, 0
	report := func(format string, args ...any) {
		if failures++; failures < 40 {
			t.Errorf(format, args...)
		}
	}
	for _, row := range readRows(t) {
		re, err := CompileFlags(row.P, flagsOf(row.F))
		if row.E != "" {
			if err == nil {
				report("Compile(%q) succeeds, want %q", row.P, row.E)
			} else if err.Error() != row.E {
				report("Compile(%q) gives %q, want %q", row.P, err, row.E)
			}
			continue
		}
		if err != nil {
			report("Compile(%q) gives %v", row.P, err)
			continue
		}
		engines := []*Regexp{re}
		total++
		if re.Linear() {
			linear++
			machine, err := prepare(row.P, flagsOf(row.F))
			if err == nil {
				machine.once.Do(func() { err = machine.compile(machine.root) })
			}
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, machine)
		}
		for _, c := range row.T {
			var text string
			var want [3][][2]int
			for i, target := range []any{&text, &want[0], &want[1], &want[2]} {
				if err := json.Unmarshal(c[i], target); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range engines {
				if ok, err := e.Matches(text); err != nil || ok != (want[0] != nil) {
					report("%q Matches %q = %v, %v", row.P, text, ok, err)
				}
				for i, f := range []func(string) (*Match, error){e.Match, e.Search, e.FullMatch} {
					m, err := f(text)
					if err != nil {
						report("%q on %q: %v", row.P, text, err)
						continue
					}
					if got := inRunes(m, text); !cmp.Equal(got, want[i]) {
						report("%q (%s, linear %v) %s %q = %v, want %v", row.P, row.F, e.Linear(), []string{"match", "search", "fullmatch"}[i], text, got, want[i])
					}
				}
			}
		}
	}
	if failures > 0 {
		t.Errorf("%d differences", failures)
	}
	if linear*3 < total {
		t.Errorf("only %d of %d patterns run in linear time", linear, total)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	re, err := Compile(`(?P<year>\d{4})-(\d\d)(x)?`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := re.Match("2024-05")
	if err != nil || m == nil {
		t.Fatalf("Match = %v, %v", m, err)
	}
	if year, ok := m.Named("year"); !ok || year != "2024" {
		t.Errorf("Named(year) = %q, %v", year, ok)
	}
	if _, ok := m.Named("month"); ok {
		t.Error("found a group that does not exist")
	}
	if _, ok := m.Group(3); ok {
		t.Error("group 3 took no part")
	}
	if _, ok := m.Group(9); ok {
		t.Error("there is no group 9")
	}
	if re.Groups() != 3 || re.String() != `(?P<year>\d{4})-(\d\d)(x)?` {
		t.Errorf("Groups() = %d of %s", re.Groups(), re)
	}
}

func TestTooManySteps(t *testing.T) {
	t.Parallel()
	re, err := Compile(`(?=x*)(a+)+b`)
	if err != nil {
		t.Fatal(err)
	}
	if re.Linear() {
		t.Fatal("look-ahead can not run in linear time")
	}
	if _, err := re.Match(strings.Repeat("a", 60)); !errors.Is(err, ErrSteps) {
		t.Errorf("Match = %v, want %v", err, ErrSteps)
	}
}

func TestLinearInsteadOfExplosion(t *testing.T) {
	t.Parallel()
	re, err := Compile(`^(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := re.Match(strings.Repeat("a", 5000) + "b"); m != nil || err != nil {
		t.Errorf("Match = %v, %v", m, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{strings.Repeat("(", 5000), strings.Repeat("(?:", 300) + "a" + strings.Repeat(")", 300), strings.Repeat("(a)", 2000)} {
		if _, err := Compile(pattern); err == nil {
			t.Errorf("Compile of %d characters should fail", len(pattern))
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`^(a+)+$`, `(?P<n>x)(?P=n)`, `(?<=a)b(?(1)c|d)`, `[^\W\d]{2,3}+?`} {
		f.Add(s, "aab")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := Compile(pattern)
		if err != nil {
			return
		}
		m, err := re.Search(text)
		if err != nil || m == nil {
			return
		}
		if from, to := m.Span(0); from < 0 || to < from || to > len(text) {
			t.Errorf("%q on %q gives %d, %d", pattern, text, from, to)
		}
	})
}
