package lang_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	specFile        = "../docs/language/spec.md"
	differencesFile = "../docs/language/differences.md"
)

// specCases are the cases written from the specification.
func specCases(t *testing.T) map[string][]chunk {
	t.Helper()
	files, err := filepath.Glob("testdata/spec/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]chunk, len(files))
	for _, f := range files {
		out[f] = readChunks(t, f)
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goRules finds the rules that a comment of a Go test names as its own: "Rules: part-set-1, part-set-2." in front of it.
var goRules = regexp.MustCompile(`(?m)^// Rules: ([a-z0-9, \n/-]+)\.\nfunc Test`)

// testedInGo lists tests of rules that no model can show, since they are about what becomes of one on a server.
var testedInGo = []string{"../model/partial_test.go", "../store/partial_test.go", "../cmd/intendant/partial_test.go"}

// TestRulesHaveCases holds that every rule of the specification and every chosen difference names at least one case, and that
// every case names rules that exist. A case is a model in testdata/spec or a test of the files in testedInGo.
func TestRulesHaveCases(t *testing.T) {
	t.Parallel()
	rules := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^- \[([a-z]+(?:-[a-z]+)*-\d+)\] `).FindAllStringSubmatch(read(t, specFile), -1) {
		if _, twice := rules[m[1]]; twice {
			t.Errorf("the rule %s stands twice in %s", m[1], specFile)
		}
		rules[m[1]] = 0
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(read(t, differencesFile), -1) {
		rules["diff-"+m[1]] = 0
	}
	if len(rules) < 250 {
		t.Fatalf("only %d rules found", len(rules))
	}
	cases := 0
	for file, chunks := range specCases(t) {
		names := map[string]bool{}
		for _, c := range chunks {
			cases++
			if c.name == "" || len(c.rules) == 0 {
				t.Errorf("%s: the case %q needs a name and a rule", file, c.name)
			}
			if names[c.name] {
				t.Errorf("%s: two cases are called %q", file, c.name)
			}
			names[c.name] = true
			for _, r := range c.rules {
				if _, ok := rules[r]; !ok {
					t.Errorf("%s: the case %q names the rule %s, which is not in the specification", file, c.name, r)
				}
				rules[r]++
			}
		}
	}
	for _, file := range testedInGo {
		found := goRules.FindAllStringSubmatch(read(t, file), -1)
		if len(found) == 0 {
			t.Errorf("%s: no test names its rules", file)
		}
		for _, m := range found {
			for _, r := range strings.FieldsFunc(m[1], func(c rune) bool { return strings.ContainsRune(", \n/", c) }) {
				if _, ok := rules[r]; !ok {
					t.Errorf("%s: a test names the rule %s, which is not in the specification", file, r)
				}
				rules[r]++
			}
		}
	}
	for r, n := range rules {
		if n == 0 {
			t.Errorf("the rule %s has no case in testdata/spec and no test in Go", r)
		}
	}
	if cases < 1000 {
		t.Errorf("there are %d cases, fewer than 1,000", cases)
	}
}

// TestSpecExamples compiles the examples of the specification: fenced blocks of the language inmanta, which say like cases what
// is expected of them.
func TestSpecExamples(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)\n```inmanta\n(.*?)\n```").FindAllStringSubmatchIndex(read(t, specFile), -1)
	if len(blocks) < 20 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	text := read(t, specFile)
	for _, b := range blocks {
		rule := text[:b[0]]
		rule = rule[strings.LastIndex(rule, "- [")+3:]
		rule, _, _ = strings.Cut(rule, "]")
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := parseChunk(t, text[b[2]:b[3]])
			c.run(t)
		})
	}
}

// TestGrammarEmbedded holds that the specification shows the grammar that the parser's package carries.
func TestGrammarEmbedded(t *testing.T) {
	t.Parallel()
	grammar := strings.TrimSpace(read(t, "syntax/grammar.txt"))
	block := regexp.MustCompile("(?s)\n```ebnf\n(.*?)\n```\n").FindAllStringSubmatch(read(t, specFile), -1)
	if !slices.ContainsFunc(block, func(m []string) bool { return strings.TrimSpace(m[1]) == grammar }) {
		t.Errorf("%s does not embed lang/syntax/grammar.txt: copy it into its ebnf block", specFile)
	}
}
