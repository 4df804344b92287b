package diag_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/diag"
)

func at(file string, line, col, endLine, endCol int) diag.Range {
	return diag.Range{File: file, Start: diag.Position{Line: line, Column: col}, End: diag.Position{Line: endLine, Column: endCol}}
}

func TestListHelpers(t *testing.T) {
	t.Parallel()
	var l diag.List
	if l.HasErrors() || l.Summary() != "" || l.Errors() != nil {
		t.Error("an empty list has something in it")
	}
	l.Warnf("W", at("b.cf", 1, 1, 1, 2), "warning %d", 1)
	if l.HasErrors() {
		t.Error("a warning counts as an error")
	}
	l.Errorf("E", at("b.cf", 3, 0, 3, 0), "error %d", 1)
	l.Errorf("E", at("a.cf", 9, 2, 9, 3), "error %d", 2)
	l.Add(diag.Diagnostic{Severity: diag.Info, Message: "note", Range: at("b.cf", 3, 0, 3, 0)}, l[1])
	if got, want := l.Summary(), "3 errors, 1 warning, 1 note"; got != want {
		t.Errorf("Summary = %q, want %q", got, want)
	}
	l = l.Dedupe()
	l.Sort()
	want := "a.cf:9:2: error: error 2 [E]\nb.cf:1:1: warning: warning 1 [W]\nb.cf:3: error: error 1 [E]\nb.cf:3: info: note\n"
	if d := cmp.Diff(want, l.String()); d != "" {
		t.Errorf("String (-want +got):\n%s", d)
	}
	if len(l.Errors()) != 2 || len(l.Warnings()) != 1 || l.Escalate().Count(diag.Error) != 3 || l.Count(diag.Error) != 2 {
		t.Errorf("Errors = %d, Warnings = %d", len(l.Errors()), len(l.Warnings()))
	}
}

func TestDiagnostic(t *testing.T) {
	t.Parallel()
	base := diag.Errorf("C", diag.Range{}, "two\n\tlines")
	if got, want := base.String(), "error: two lines [C]"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	one := base.WithRelated(at("a", 1, 1, 1, 1), "first").WithHint("do %s", "this")
	two := one.WithRelated(at("b", 1, 1, 1, 1), "second")
	three := one.WithRelated(at("c", 1, 1, 1, 1), "third")
	if len(base.Related) != 0 || two.Related[1].Message != "second" || three.Related[1].Message != "third" || one.Hint != "do this" {
		t.Errorf("related: %v %v", two.Related, three.Related)
	}
	if !base.Range.IsZero() || at("a", 3, 4, 5, 6).LineOnly() != at("a", 3, 0, 3, 0) {
		t.Error("Range helpers are wrong")
	}
}

func TestPrinter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200) + "HERE" + strings.Repeat("y", 200)
	source := func(file string) ([]byte, bool) {
		return []byte("first\n\té = Fóo()\r\nlast\x1b[0m\n" + long + "\n"), file == "main.cf"
	}
	tests := []struct {
		name string
		d    diag.Diagnostic
		want string
	}{{
		"a place with tabs and letters of several bytes",
		diag.Errorf("TypeNotFoundException", at("main.cf", 2, 6, 2, 9), "could not find type Fóo").
			WithRelated(at("main.cf", 1, 1, 1, 6), "other").WithRelated(at("main.cf", 1, 1, 1, 6), "same place").
			WithRelated(at("gone.cf", 7, 0, 7, 0), "no source").WithHint("did you mean Foo?"),
		`error[TypeNotFoundException]: could not find type Fóo
  --> main.cf:2:6
  |
2 |     é = Fóo()
  |         ^^^
note: other
  --> main.cf:1:1
  |
1 | first
  | -----
note: same place
note: no source
  --> gone.cf:7
hint: did you mean Foo?
`,
	}, {
		"a whole line, and text that would control the terminal",
		diag.Diagnostic{Severity: diag.Warning, Message: "one\x1b[31m\ntwo\n", Range: at("main.cf", 3, 0, 3, 0)},
		"warning: one\\u001b[31m\n  two\n  --> main.cf:3\n  |\n3 | last�[0m\n  | ^^^^^^^^\n",
	}, {
		"more than one line",
		diag.Diagnostic{Severity: diag.Info, Message: "m", Range: at("main.cf", 1, 3, 2, 3)},
		"info: m\n  --> main.cf:1:3\n  |\n1 | first\n  |   ^^^\n",
	}, {
		"nothing to underline",
		diag.Errorf("", at("main.cf", 1, 6, 1, 6), "m"),
		"error: m\n  --> main.cf:1:6\n  |\n1 | first\n  |      ^\n",
	}, {
		"a long line",
		diag.Errorf("", at("main.cf", 4, 201, 4, 205), "m"),
		"error: m\n  --> main.cf:4:201\n  |\n4 | … " + strings.Repeat("x", 40) + "HERE" + strings.Repeat("y", 116) + " …\n  |   " +
			strings.Repeat(" ", 40) + "^^^^\n",
	}, {
		"a line that is not there",
		diag.Errorf("", at("main.cf", 40, 1, 40, 2), "m"),
		"error: m\n  --> main.cf:40:1\n",
	}, {
		"no place",
		diag.Errorf("", diag.Range{}, "m"),
		"error: m\n",
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := (diag.Printer{Source: source}).Print(&b, diag.List{test.d}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, b.String()); d != "" {
				t.Errorf("Print (-want +got):\n%s", d)
			}
		})
	}
	t.Run("characters of different widths", func(t *testing.T) {
		t.Parallel()
		source := func(string) ([]byte, bool) {
			return []byte("日本\tx = bad\ne\u0301\u200bx = bad\n" + strings.Repeat("日", 100) + "bad" + strings.Repeat("本", 100) + "\n"), true
		}
		l := diag.List{
			diag.Errorf("", at("f", 1, 8, 1, 11), "behind wide characters and a tab"),
			diag.Errorf("", at("f", 2, 8, 2, 11), "behind a combining accent and a space without a width"),
			diag.Errorf("", at("f", 1, 1, 1, 3), "wide characters"),
			diag.Errorf("", at("f", 3, 101, 3, 104), "between wide characters, on a narrow terminal"),
			diag.Errorf("", at("f", 3, 1, 3, 204), "more than the terminal is wide"),
		}
		var b bytes.Buffer
		if err := (diag.Printer{Source: source, Width: 48}).Print(&b, l); err != nil {
			t.Fatal(err)
		}
		want := `error: behind wide characters and a tab
 --> f:1:8
  |
1 | 日本    x = bad
  |             ^^^

error: behind a combining accent and a space without a width
 --> f:2:8
  |
2 | e\u0301\u200bx = bad
  |      ^^^

error: wide characters
 --> f:1:1
  |
1 | 日本    x = bad
  | ^^^^

error: between wide characters, on a narrow terminal
 --> f:3:101
  |
3 | … 日日日日日bad本本本本本本本本本本本本本 …
  |             ^^^

error: more than the terminal is wide
 --> f:3:1
  |
3 | 日日日日日日日日日日日日日日日日日日日日 …
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

5 errors
`
		want = strings.NewReplacer(" -->", "  -->", `\u0301`, "\u0301", `\u200b`, "\u200b").Replace(want)
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Errorf("Print (-want +got):\n%s", d)
		}
	})
	t.Run("colour and summary", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		d := diag.Errorf("C", diag.Range{}, "m")
		if err := (diag.Printer{Color: true}).Print(&b, diag.List{d, d}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, "\x1b[1;31merror[C]\x1b[0m: ") || !strings.HasSuffix(got, "\n2 errors\n") {
			t.Errorf("Print = %q", got)
		}
	})
	t.Run("more than are wanted", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		d := diag.Errorf("C", diag.Range{}, "m")
		if err := (diag.Printer{Max: 2}).Print(&b, diag.List{d, d, d}); err != nil {
			t.Fatal(err)
		}
		if want := "error[C]: m\n\nerror[C]: m\n\n3 errors; the first 2 are shown\n"; b.String() != want {
			t.Errorf("Print = %q, want %q", b.String(), want)
		}
	})
	t.Run("a writer that fails", func(t *testing.T) {
		t.Parallel()
		if err := (diag.Printer{}).Print(brokenWriter{}, diag.List{{}}); !errors.Is(err, errBroken) {
			t.Errorf("Print = %v, want %v", err, errBroken)
		}
		if err := diag.WriteSARIF(brokenWriter{}, nil, diag.Tool{}); !errors.Is(err, errBroken) {
			t.Errorf("WriteSARIF = %v, want %v", err, errBroken)
		}
	})
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestJSON(t *testing.T) {
	t.Parallel()
	l := diag.List{diag.Errorf("C", at("f", 1, 2, 3, 4), "m").WithRelated(at("g", 5, 0, 5, 0), "r").WithHint("h"), {Severity: diag.Info}}
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"severity":"error","code":"C","message":"m","file":"f","line":1,"column":2,"end_line":3,"end_column":4,` +
		`"related":[{"file":"g","line":5,"column":0,"end_line":5,"end_column":0,"message":"r"}],"hint":"h"},` +
		`{"severity":"info","code":"","message":"","file":"","line":0,"column":0,"end_line":0,"end_column":0,"related":[]}]`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("Marshal (-want +got):\n%s", d)
	}
	var back diag.List
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l, back); d != "" {
		t.Errorf("Unmarshal (-want +got):\n%s", d)
	}
	if got, err := json.Marshal(diag.List(nil)); err != nil || string(got) != "[]" {
		t.Errorf("Marshal(nil) = %s, %v, want []", got, err)
	}
	for _, bad := range []string{`{"severity":"fatal"}`, `{"line":"x"}`} {
		if err := json.Unmarshal([]byte(bad), new(diag.Diagnostic)); err == nil || !strings.HasPrefix(err.Error(), "reading a diagnostic: ") {
			t.Errorf("Unmarshal(%s) = %v, want an error that says what was read", bad, err)
		}
	}
}

func TestWriteSARIF(t *testing.T) {
	t.Parallel()
	l := diag.List{
		diag.Errorf("Zed", at("a dir/f.cf", 1, 2, 1, 4), "m").WithHint("h").WithRelated(at("g", 5, 0, 5, 0), "r").WithRelated(diag.Range{}, "nowhere"),
		{Severity: diag.Info, Code: "Alpha", Message: "i", Range: at("f", 3, 0, 3, 0)},
		{Severity: diag.Warning, Message: "w"},
	}
	var b bytes.Buffer
	if err := diag.WriteSARIF(&b, l, diag.Tool{Name: "intendant", Version: "1", Explain: func(code string) (string, string) {
		if code == "Zed" {
			return "what it means", "how to mend it"
		}
		return "", ""
	}}); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": [{
			"tool": {"driver": {"name": "intendant", "version": "1", "rules": [{"id": "Alpha"}, {"id": "Zed", "fullDescription": {"text": "what it means"}, "help": {"text": "how to mend it"}}]}},
			"columnKind": "unicodeCodePoints",
			"results": [
				{"ruleId": "Zed", "ruleIndex": 1, "level": "error", "message": {"text": "m\nhint: h\nnote: nowhere"},
				 "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a%20dir/f.cf"}, "region": {"startLine": 1, "startColumn": 2, "endLine": 1, "endColumn": 4}}}],
				 "relatedLocations": [{"physicalLocation": {"artifactLocation": {"uri": "g"}, "region": {"startLine": 5}}, "message": {"text": "r"}}]},
				{"ruleId": "Alpha", "ruleIndex": 0, "level": "note", "message": {"text": "i"},
				 "locations": [{"physicalLocation": {"artifactLocation": {"uri": "f"}, "region": {"startLine": 3}}}]},
				{"level": "warning", "message": {"text": "w"}}
			]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("WriteSARIF (-want +got):\n%s", d)
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	names := []string{"entity", "extends", "implement", "implementation", "import", "import", "Réseau", "a", "b"}
	tests := []struct{ name, want string }{
		{"entiy", "entity"},
		{"etnity", "entity"},
		{"imprt", "import"},
		{"implmeent", "implement"},
		{"Reseau", "Réseau"},
		{"entity", ""},
		{"something", ""},
		{"c", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got := diag.Closest(test.name, names); got != test.want {
			t.Errorf("Closest(%q) = %q, want %q", test.name, got, test.want)
		}
	}
	if d := cmp.Diff([]string{"import"}, diag.Suggest("imports", names, 5)); d != "" {
		t.Errorf("Suggest (-want +got):\n%s", d)
	}
}
