package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestLanguageServer drives the program as an editor does. Each archive in testdata/lsp holds a project, whose files may have
// places named «1», and in its comment the commands; the file want holds what they print. UPDATE_SCRIPTS=1 writes it anew.
func TestLanguageServer(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/lsp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newLSPScript(t, a)
			for line := range strings.Lines(string(a.Comment)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					s.run(line)
				}
			}
			if status := s.leave(); status != 0 {
				t.Errorf("the exit status is %d", status)
			}
			if os.Getenv("UPDATE_SCRIPTS") != "" {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(s.out.String())})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(s.want, s.out.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// lspScript runs the commands of an archive.
type lspScript struct {
	*editor
	dir      string
	want     string
	texts    map[string]string // of files, without markers
	versions map[string]int
	marks    map[string]mark
	out      strings.Builder
}

// mark is a named place: the offset in a file.
type mark struct {
	file   string
	offset int
}

var marker = regexp.MustCompile(`«(\w+)»`)

func newLSPScript(t *testing.T, a *txtar.Archive) *lspScript {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &lspScript{dir: dir, texts: map[string]string{}, versions: map[string]int{}, marks: map[string]mark{}}
	for _, f := range a.Files {
		if f.Name == "want" {
			s.want = string(f.Data)
			continue
		}
		text := string(f.Data)
		for {
			m := marker.FindStringSubmatchIndex(text)
			if m == nil {
				break
			}
			s.marks[text[m[2]:m[3]]] = mark{f.Name, m[0]}
			text = text[:m[0]] + text[m[1]:]
		}
		s.texts[f.Name] = text
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	if _, err := os.Stat(filepath.Join(dir, "site")); err == nil {
		args = []string{"--site", filepath.Join(dir, "site")}
	}
	s.editor = newEditor(t, args...)
	s.initialize([]string{dir})
	return s
}

type lspPosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type lspSpan struct {
	Start lspPosition `json:"start"`
	End   lspPosition `json:"end"`
}

type lspLocation struct {
	URI   string  `json:"uri"`
	Range lspSpan `json:"range"`
}

type lspEdit struct {
	Range   lspSpan `json:"range"`
	NewText string  `json:"newText"`
}

func (s *lspScript) uri(file string) string { return "file://" + filepath.Join(s.dir, file) }

// position is a place in UTF-16, which is what an editor uses that asks for nothing else.
func (s *lspScript) position(file string, offset int) lspPosition {
	before := s.texts[file][:offset]
	line := strings.Count(before, "\n")
	last := before[strings.LastIndexByte(before, '\n')+1:]
	return lspPosition{line, len(utf16.Encode([]rune(last)))}
}

// offset is the place of a position in the text that the editor has.
func (s *lspScript) offset(file string, p lspPosition) int {
	text := s.texts[file]
	off := 0
	for range p.Line {
		i := strings.IndexByte(text[off:], '\n')
		if i < 0 {
			return len(text)
		}
		off += i + 1
	}
	units := 0
	for i, r := range text[off:] {
		if units >= p.Character || r == '\n' {
			return off + i
		}
		units += utf16.RuneLen(r)
	}
	return len(text)
}

func (s *lspScript) at(name string) map[string]any {
	m, ok := s.marks[name]
	if !ok {
		s.t.Fatalf("there is no place «%s»", name)
	}
	return map[string]any{"textDocument": map[string]any{"uri": s.uri(m.file)}, "position": s.position(m.file, m.offset)}
}

func (s *lspScript) doc(file string) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": s.uri(file)}}
}

func (s *lspScript) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

// show is a range with the text in it.
func (s *lspScript) show(uri string, r lspSpan) string {
	file, ok := strings.CutPrefix(uri, "file://"+s.dir+"/")
	if !ok {
		if i := strings.Index(uri, "/modules/"); i >= 0 {
			parts := strings.SplitN(uri[i+1:], "/", 3)
			return "built-in " + parts[2]
		}
		return uri
	}
	text := s.texts[file]
	if text == "" {
		src, _ := os.ReadFile(filepath.Join(s.dir, file))
		text = string(src)
		s.texts[file] = text
	}
	part := text[s.offset(file, r.Start):max(s.offset(file, r.Start), s.offset(file, r.End))]
	if i := strings.IndexByte(part, '\n'); i >= 0 {
		part = part[:i] + "…"
	}
	return fmt.Sprintf("%s:%d:%d %q", file, r.Start.Line+1, r.Start.Character+1, part)
}

func (s *lspScript) run(line string) {
	s.t.Helper()
	words := strings.Fields(line)
	s.printf("> %s\n", line)
	arg := func(i int) string {
		if i >= len(words) {
			s.t.Fatalf("%s: arguments are missing", line)
		}
		return words[i]
	}
	switch words[0] {
	case "open":
		s.versions[arg(1)] = 1
		s.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
			"uri": s.uri(arg(1)), "languageId": "inmanta", "version": 1, "text": s.texts[arg(1)],
		}})
	case "close":
		s.notify("textDocument/didClose", s.doc(arg(1)))
	case "insert":
		s.insert(arg(1), strings.ReplaceAll(strings.Join(words[2:], " "), `\n`, "\n"))
	case "diagnostics":
		s.diagnostics(arg(1))
	case "await":
		s.awaitFault(arg(1), strings.Join(words[2:], " "))
	case "hover":
		var h *struct {
			Contents struct{ Value string } `json:"contents"`
		}
		s.result("textDocument/hover", s.at(arg(1)), &h, func() {
			if h == nil {
				s.printf("nothing\n")
				return
			}
			s.printf("%s\n", h.Contents.Value)
		})
	case "definition", "typeDefinition", "implementation":
		s.locations("textDocument/"+words[0], s.at(arg(1)))
	case "references":
		p := s.at(arg(1))
		p["context"] = map[string]any{"includeDeclaration": len(words) > 2}
		s.locations("textDocument/references", p)
	case "highlight":
		var hs []struct {
			Range lspSpan
			Kind  int
		}
		s.result("textDocument/documentHighlight", s.at(arg(1)), &hs, func() {
			for _, h := range hs {
				s.printf("%s %s\n", map[int]string{2: "read", 3: "write"}[h.Kind], s.show(s.uri(s.marks[arg(1)].file), h.Range))
			}
		})
	case "complete":
		s.complete(arg(1), words[2:])
	case "signature":
		s.signature(arg(1))
	case "symbols":
		var ds []lspSymbol
		s.result("textDocument/documentSymbol", s.doc(arg(1)), &ds, func() { s.outline(arg(1), ds, "") })
	case "search":
		var is []struct {
			Name, ContainerName string
			Location            lspLocation
		}
		s.result("workspace/symbol", map[string]any{"query": arg(1)}, &is, func() {
			for _, i := range is {
				s.printf("%s in %s: %s\n", i.Name, i.ContainerName, s.show(i.Location.URI, i.Location.Range))
			}
		})
	case "prepare":
		var p struct {
			Range       lspSpan
			Placeholder string
		}
		s.result("textDocument/prepareRename", s.at(arg(1)), &p, func() {
			s.printf("%s %s\n", p.Placeholder, s.show(s.uri(s.marks[arg(1)].file), p.Range))
		})
	case "rename":
		p := s.at(arg(1))
		p["newName"] = arg(2)
		s.edits("textDocument/rename", p)
	case "format":
		p := s.doc(arg(1))
		p["options"] = map[string]any{"tabSize": 4, "insertSpaces": true}
		var es []lspEdit
		s.result("textDocument/formatting", p, &es, func() { s.printf("%s", s.edited(arg(1), es)) })
	case "folding":
		var fs []struct {
			StartLine, EndLine int
			Kind               string
		}
		s.result("textDocument/foldingRange", s.doc(arg(1)), &fs, func() {
			for _, f := range fs {
				s.printf("%d-%d %s\n", f.StartLine+1, f.EndLine+1, f.Kind)
			}
		})
	case "actions":
		s.actions(arg(1))
	case "messages":
		s.mu.Lock()
		for _, m := range s.shown {
			s.printf("%s\n", m)
		}
		s.mu.Unlock()
	case "tokens":
		s.tokens(arg(1))
	default:
		s.t.Fatalf("unknown command %s", line)
	}
}

// result makes a call and prints what came of it.
func (s *lspScript) result(method string, params, out any, show func()) {
	s.t.Helper()
	if err := s.call(method, params, out); err != nil {
		s.printf("%s\n", strings.ReplaceAll(err.Error(), s.dir, "$DIR"))
		return
	}
	show()
}

// insert puts a text at a place, with an incremental change, and moves the places behind it.
func (s *lspScript) insert(place, text string) {
	m := s.marks[place]
	p := s.position(m.file, m.offset)
	old := s.texts[m.file]
	s.texts[m.file] = old[:m.offset] + text + old[m.offset:]
	for name, o := range s.marks {
		if o.file == m.file && o.offset >= m.offset {
			s.marks[name] = mark{o.file, o.offset + len(text)}
		}
	}
	s.versions[m.file]++
	s.notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": s.uri(m.file), "version": s.versions[m.file]},
		"contentChanges": []any{map[string]any{"range": lspSpan{p, p}, "text": text}},
	})
}

type lspDiagnostic struct {
	Range              lspSpan
	Severity           int
	Code               string
	Message            string
	RelatedInformation []struct {
		Location lspLocation
		Message  string
	}
}

// faultsOf waits for the diagnostics of the file as it is now.
func (s *lspScript) faultsOf(file string) json.RawMessage {
	s.t.Helper()
	var raw json.RawMessage
	s.await("diagnostics of "+file, func() bool {
		p, ok := s.faults[s.uri(file)]
		raw = p.Diagnostics
		if s.versions[file] == 0 {
			return ok
		}
		return ok && p.Version != nil && *p.Version == s.versions[file]
	})
	return raw
}

func (s *lspScript) diagnostics(file string) {
	var ds []lspDiagnostic
	if err := json.Unmarshal(s.faultsOf(file), &ds); err != nil {
		s.t.Fatal(err)
	}
	for _, d := range ds {
		s.printf("%s %s %s: %s\n", map[int]string{1: "error", 2: "warning", 3: "info"}[d.Severity], s.show(s.uri(file), d.Range), d.Code, d.Message)
		for _, r := range d.RelatedInformation {
			s.printf("  %s: %s\n", s.show(r.Location.URI, r.Location.Range), r.Message)
		}
	}
}

// awaitFault waits until a fault of a file has a text in its message, and prints that fault.
func (s *lspScript) awaitFault(file, text string) {
	s.t.Helper()
	var found lspDiagnostic
	s.await(text+" in "+file, func() bool {
		var ds []lspDiagnostic
		if err := json.Unmarshal(s.faults[s.uri(file)].Diagnostics, &ds); err != nil {
			return false
		}
		i := slices.IndexFunc(ds, func(d lspDiagnostic) bool { return strings.Contains(d.Message, text) })
		if i >= 0 {
			found = ds[i]
		}
		return i >= 0
	})
	s.printf("%s %s: %s\n", s.show(s.uri(file), found.Range), found.Code, found.Message)
}

func (s *lspScript) locations(method string, params any) {
	var ls []lspLocation
	s.result(method, params, &ls, func() {
		for _, l := range ls {
			s.printf("%s\n", s.show(l.URI, l.Range))
		}
		if len(ls) == 0 {
			s.printf("nothing\n")
		}
	})
}

// complete prints the labels of a completion: all of them, or those that start with one of the words.
func (s *lspScript) complete(place string, words []string) {
	var out struct {
		Items []struct {
			Label, Detail, SortText string
			TextEdit                lspEdit
			AdditionalTextEdits     []lspEdit
		}
	}
	s.result("textDocument/completion", s.at(place), &out, func() {
		slices.SortFunc(out.Items, func(a, b struct {
			Label, Detail, SortText string
			TextEdit                lspEdit
			AdditionalTextEdits     []lspEdit
		},
		) int {
			return strings.Compare(a.SortText, b.SortText)
		})
		for _, i := range out.Items {
			if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(i.Label, w) }) {
				continue
			}
			s.printf("%s | %s | %s %q", i.Label, i.Detail, s.show(s.uri(s.marks[place].file), i.TextEdit.Range), i.TextEdit.NewText)
			for _, e := range i.AdditionalTextEdits {
				s.printf(" + %d %q", e.Range.Start.Line+1, e.NewText)
			}
			s.printf("\n")
		}
	})
}

func (s *lspScript) signature(place string) {
	var out *struct {
		Signatures []struct {
			Label      string
			Parameters []struct{ Label [2]int }
		}
		ActiveParameter *int
	}
	s.result("textDocument/signatureHelp", s.at(place), &out, func() {
		if out == nil {
			s.printf("nothing\n")
			return
		}
		sig := out.Signatures[0]
		s.printf("%s\n", sig.Label)
		if out.ActiveParameter != nil {
			l := sig.Parameters[*out.ActiveParameter].Label
			s.printf("now: %s\n", sig.Label[l[0]:l[1]])
		}
	})
}

type lspSymbol struct {
	Name, Detail          string
	Kind                  int
	Range, SelectionRange lspSpan
	Children              []lspSymbol
}

func (s *lspScript) outline(file string, ds []lspSymbol, indent string) {
	for _, d := range ds {
		s.printf("%s%s (%d) %s: %s\n", indent, d.Name, d.Kind, d.Detail, s.show(s.uri(file), d.SelectionRange))
		s.outline(file, d.Children, indent+"  ")
	}
}

// edited is a file with edits applied.
func (s *lspScript) edited(file string, es []lspEdit) string {
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b lspEdit) int { return s.offset(file, b.Range.Start) - s.offset(file, a.Range.Start) })
	text := s.texts[file]
	last := len(text)
	for _, e := range es {
		start, end := s.offset(file, e.Range.Start), s.offset(file, e.Range.End)
		if end > last {
			s.t.Fatalf("edits of %s overlap", file)
		}
		text = text[:start] + e.NewText + text[end:]
		last = start
	}
	return text
}

// edits prints the lines that a workspace edit changes.
func (s *lspScript) edits(method string, params any) {
	var out struct{ Changes map[string][]lspEdit }
	s.result(method, params, &out, func() { s.changes(out.Changes) })
}

func (s *lspScript) changes(changes map[string][]lspEdit) {
	for _, uri := range slices.Sorted(maps.Keys(changes)) {
		file := strings.TrimPrefix(uri, s.uri("")+"/")
		s.show(uri, lspSpan{}) // reads the file
		old, now := strings.Split(s.texts[file], "\n"), strings.Split(s.edited(file, changes[uri]), "\n")
		if len(old) != len(now) {
			s.printf("%s:\n%s", file, strings.Join(now, "\n"))
			continue
		}
		for i := range old {
			if old[i] != now[i] {
				s.printf("%s:%d: %s\n", file, i+1, now[i])
			}
		}
	}
}

func (s *lspScript) actions(file string) {
	raw := s.faultsOf(file)
	p := s.doc(file)
	p["range"] = lspSpan{}
	p["context"] = map[string]any{"diagnostics": raw}
	var as []struct {
		Title string
		Edit  struct{ Changes map[string][]lspEdit }
	}
	s.result("textDocument/codeAction", p, &as, func() {
		for _, a := range as {
			s.printf("%s\n", a.Title)
			s.changes(a.Edit.Changes)
		}
		if len(as) == 0 {
			s.printf("nothing\n")
		}
	})
}

func (s *lspScript) tokens(file string) {
	var out struct{ Data []int }
	names := []string{
		"namespace", "type", "class", "property", "function", "method", "variable", "parameter", "keyword", "comment", "string",
		"number", "regexp", "operator",
	}
	s.result("textDocument/semanticTokens/full", s.doc(file), &out, func() {
		at := lspPosition{}
		for i := 0; i+4 < len(out.Data); i += 5 {
			if out.Data[i] > 0 {
				at.Character = 0
			}
			at.Line += out.Data[i]
			at.Character += out.Data[i+1]
			s.printf("%s %s %d\n", s.show(s.uri(file), lspSpan{at, lspPosition{at.Line, at.Character + out.Data[i+2]}}), names[out.Data[i+3]], out.Data[i+4])
		}
	})
}

// TestLanguageServerEnds holds the exit statuses that the protocol asks for.
func TestLanguageServerEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end    func(e *editor)
		status int
	}{
		"exit without shutdown": {func(e *editor) { e.notify("exit", nil) }, 1},
		"a closed pipe":         {func(e *editor) { _ = e.in.Close() }, 1},
		"a broken stream":       {func(e *editor) { _ = e.raw("nonsense\r\n\r\n") }, 1},
		"a signal":              {func(e *editor) { _ = e.cmd.Process.Signal(os.Interrupt) }, 0},
		"shutdown and exit": {func(e *editor) {
			if err := e.call("shutdown", nil, nil); err != nil {
				e.t.Error(err)
			}
			e.notify("exit", nil)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEditor(t)
			e.initialize(nil)
			tc.end(e)
			if got := e.status(); got != tc.status {
				t.Errorf("the exit status is %d, want %d", got, tc.status)
			}
		})
	}
}

// TestLanguageServerSurvives holds that messages which make no sense are answered, and the next ones too.
func TestLanguageServerSurvives(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	caps := e.initialize([]string{t.TempDir()}, "utf-8", "utf-16")
	if caps["positionEncoding"] != "utf-8" {
		t.Errorf("the encoding is %v", caps["positionEncoding"])
	}
	for _, body := range []string{"{", "[]", `{"jsonrpc":"2.0","id":900,"method":5}`, `{}`} {
		if err := e.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.call("textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": "file:///no/such.cf"}}, nil); err != nil {
		t.Errorf("a question about a document that is not open: %v", err)
	}
	if err := e.call("textDocument/unknown", nil, nil); err == nil {
		t.Error("an unknown method is answered")
	}
	if status := e.leave(); status != 0 {
		t.Errorf("the exit status is %d", status)
	}
}
