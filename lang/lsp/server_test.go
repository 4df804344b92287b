package lsp

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/langtest"
	"github.com/intendant/intendant/lang/module"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConversation holds the rules of the protocol about the order of messages.
func TestConversation(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	if got := code(p.call("textDocument/hover", at("/p/main.cf", 0, 0), nil)); got != codeNotInitialized {
		t.Errorf("a request before initialize is answered with %d", got)
	}
	p.notify("textDocument/didOpen", map[string]any{}) // is dropped
	p.initialize(map[string]any{})
	if got := code(p.call("initialize", map[string]any{}, nil)); got != codeInvalidRequest {
		t.Errorf("a second initialize is answered with %d", got)
	}
	if got := code(p.call("no/such", map[string]any{}, nil)); got != codeNoMethod {
		t.Errorf("an unknown method is answered with %d", got)
	}
	p.open("/p/main.cf", "x = 1\n")
	if got := code(p.call("textDocument/hover", map[string]any{"position": "there"}, nil)); got != codeInvalidParams {
		t.Errorf("bad parameters are answered with %d", got)
	}
	if got := code(p.call("textDocument/formatting", at("/p/other.cf", 0, 0), nil)); got != codeInvalidParams {
		t.Errorf("formatting a document that is not open is answered with %d", got)
	}
	for _, bad := range []string{"textDocument/didChange", "textDocument/didClose"} {
		p.notify(bad, map[string]any{"textDocument": map[string]any{"uri": "file:///not/open.cf"}}) // is dropped
		p.notify(bad, 5)
	}
	if err := p.call("shutdown", nil, nil); err != nil {
		t.Error(err)
	}
	if got := code(p.call("textDocument/hover", at("/p/main.cf", 0, 0), nil)); got != codeInvalidRequest {
		t.Errorf("a request after shutdown is answered with %d", got)
	}
	p.notify("exit", nil)
	if err := <-p.done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestExitWithoutShutdown(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{})
	p.notify("exit", nil)
	if err := <-p.done; !errors.Is(err, ErrNoShutdown) {
		t.Errorf("Run: %v", err)
	}
}

func TestEditorGone(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{})
	p.open("/p/main.cf", "x = 1\n")
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; !errors.Is(err, ErrNoShutdown) {
		t.Errorf("Run: %v", err)
	}
}

func TestBrokenStream(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{})
	if _, err := io.WriteString(p.in, "nonsense\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; !errors.Is(err, errFraming) {
		t.Errorf("Run: %v", err)
	}
}

// gate is a tree that can not be read until it is opened.
type gate struct {
	fs.FS
	open chan struct{}
}

func (g gate) Open(name string) (fs.File, error) {
	<-g.open
	return g.FS.Open(name)
}

// TestCancel holds that a request can be taken back while it waits.
func TestCancel(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	held := make(chan struct{})
	open := cfg.Open
	cfg.Open = func(dir string) (fs.FS, error) {
		tree, err := open(dir)
		return gate{tree, held}, err
	}
	p := newPeer(t, cfg)
	p.initialize(map[string]any{})
	p.open("/p/main.cf", "x = 1\n")
	var ids []string
	for range 3 * maxWorkers {
		ids = append(ids, p.send("textDocument/hover", at("/p/main.cf", 0, 0)))
	}
	for _, id := range ids {
		p.notify("$/cancelRequest", map[string]any{"id": json.RawMessage(id)})
	}
	for _, id := range ids {
		if r := p.answer(id); r.Error == nil || r.Error.Code != codeCancelled {
			t.Errorf("the request %s was answered with %s, %v", id, r.Result, r.Error)
		}
	}
	close(held)
	var h *hover
	if err := p.call("textDocument/hover", at("/p/main.cf", 0, 0), &h); err != nil || h == nil {
		t.Errorf("after the project was read: %v, %v", h, err)
	}
}

// TestEncodings holds that positions are counted as the editor wants them.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const line = `x = "é𝄞" + yy`
	for _, tc := range []struct {
		offered []string
		chosen  encoding
		at      int // of yy
	}{
		{nil, utf16Units, 12},
		{[]string{"utf-16"}, utf16Units, 12},
		{[]string{"utf-8", "utf-16"}, utf8Units, 15},
		{[]string{"utf-7", "utf-32"}, utf32Units, 11},
		{[]string{"utf-7"}, utf16Units, 12},
	} {
		p := newPeer(t, testConfig())
		var out struct {
			Capabilities struct{ PositionEncoding encoding }
		}
		err := p.call("initialize", map[string]any{"capabilities": map[string]any{"general": map[string]any{"positionEncodings": tc.offered}}}, &out)
		if err != nil || out.Capabilities.PositionEncoding != tc.chosen {
			t.Errorf("%v: %q was chosen, %v", tc.offered, out.Capabilities.PositionEncoding, err)
		}
		p.notify("initialized", struct{}{})
		p.open("/p/main.cf", "yy = \"\"\n"+line+"\n")
		var found []location
		if err := p.call("textDocument/references", at("/p/main.cf", 0, 0), &found); err != nil || len(found) != 1 {
			t.Fatalf("%v: %v, %v", tc.offered, found, err)
		}
		want := lspRange{position{1, tc.at}, position{1, tc.at + 2}}
		if found[0].Range != want {
			t.Errorf("%v: %v, want %v", tc.offered, found[0].Range, want)
		}
		// The same place the other way around.
		if err := p.call("textDocument/definition", at("/p/main.cf", 1, tc.at+1), &found); err != nil || len(found) != 1 || found[0].Range.Start != (position{0, 0}) {
			t.Errorf("%v: definition: %v, %v", tc.offered, found, err)
		}
	}
}

// TestEdit holds that incremental changes do what the editor did, whatever the line endings.
func TestEdit(t *testing.T) {
	t.Parallel()
	change := func(l1, c1, l2, c2 int, text string) contentChange {
		return contentChange{&lspRange{position{l1, c1}, position{l2, c2}}, text}
	}
	for _, tc := range []struct {
		name, text string
		changes    []contentChange
		want       string
	}{
		{"insert", "ab\ncd", []contentChange{change(1, 1, 1, 1, "x")}, "ab\ncxd"},
		{"delete over lines", "ab\ncd\nef", []contentChange{change(0, 1, 2, 1, "")}, "af"},
		{"several", "ab", []contentChange{change(0, 0, 0, 0, "x"), change(0, 3, 0, 3, "y")}, "xaby"},
		{"the whole text", "ab", []contentChange{{nil, "new"}}, "new"},
		{"line ends of Windows", "ab\r\ncd\r\n", []contentChange{change(0, 2, 1, 0, " ")}, "ab cd\r\n"},
		{"old line ends", "ab\rcd", []contentChange{change(1, 0, 1, 1, "x")}, "ab\rxd"},
		{"behind the end of a line", "ab\ncd", []contentChange{change(0, 99, 0, 99, "x")}, "abx\ncd"},
		{"behind the end of the text", "ab", []contentChange{change(9, 0, 9, 9, "x")}, "abx"},
		{"pairs of units", "a𝄞b", []contentChange{change(0, 3, 0, 4, "x")}, "a𝄞x"},
		{"within a pair", "a𝄞b", []contentChange{change(0, 2, 0, 2, "x")}, "ax𝄞b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d, err := (&document{text: []byte(tc.text)}).edit(2, tc.changes, utf16Units, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(d.text); got != tc.want || d.version != 2 {
				t.Errorf("%q, version %d; want %q", got, d.version, tc.want)
			}
		})
	}
	for name, c := range map[string]contentChange{
		"a negative position":  change(-1, 0, 0, 0, ""),
		"an inverted range":    change(0, 1, 0, 0, ""),
		"a text above a limit": change(0, 0, 0, 0, strings.Repeat("x", 2000)),
	} {
		if _, err := (&document{text: []byte("ab")}).edit(2, []contentChange{c}, utf16Units, 1000); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestLineEdits holds that edits make one text the other, and leave alone what is the same.
func TestLineEdits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, old, want string
		edits           int
	}{
		{"the same", "a\nb\n", "a\nb\n", 0},
		{"a line", "a\n b\nc\n", "a\nb\nc\n", 1},
		{"a line more", "a\nb\n", "a\n\nb\n", 1},
		{"a line less", "a\n\n\nb\n", "a\n\nb\n", 1},
		{"the end is missing", "a", "a\n", 1},
		{"lines too many at the end", "a\n\n\n", "a\n", 1},
		{"all is gone", "a\nb", "", 1},
		{"all is new", "", "a\nb\n", 1},
		{"joined lines", "a\nb c\nd\n", "a b\nc\nd\n", 1},
		{"line ends of Windows", "a\r\n b\r\nc\r\n", "a\nb\nc\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			edits := lineEdits(utf16Units, []byte(tc.old), []byte(tc.want))
			if len(edits) != tc.edits {
				t.Errorf("%d edits: %v", len(edits), edits)
			}
			text := apply(t, []byte(tc.old), edits)
			if got := strings.ReplaceAll(string(text), "\r\n", "\n"); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if strings.Contains(tc.old, "\r\n") && strings.Count(string(text), "\n") != strings.Count(string(text), "\r\n") {
				t.Errorf("line ends are mixed: %q", text)
			}
		})
	}
}

// apply applies edits, which must not overlap.
func apply(t testing.TB, text []byte, edits []textEdit) []byte {
	t.Helper()
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b textEdit) int {
		return utf16Units.textOffset(text, b.Range.Start) - utf16Units.textOffset(text, a.Range.Start)
	})
	out, last := slices.Clone(text), len(text)
	for _, e := range edits {
		start, end := utf16Units.textOffset(text, e.Range.Start), utf16Units.textOffset(text, e.Range.End)
		if end < start || end > last {
			t.Fatalf("edits overlap: %v", edits)
		}
		out = append(slices.Clone(out[:start]), append([]byte(e.NewText), out[end:]...)...)
		last = start
	}
	return out
}

// TestWindowsDocument holds that positions are right in texts with the line ends of Windows, and that formatting keeps those.
func TestWindowsDocument(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{})
	text := "x=1\r\ny  =  x\r\n"
	p.open("/p/main.cf", text)
	var found []location
	if err := p.call("textDocument/definition", at("/p/main.cf", 1, 6), &found); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	var edits []textEdit
	if err := p.call("textDocument/formatting", at("/p/main.cf", 0, 0), &edits); err != nil {
		t.Fatal(err)
	}
	if got := string(apply(t, []byte(text), edits)); got != "x = 1\r\ny = x\r\n" {
		t.Errorf("formatted: %q", got)
	}
}

// TestSeveralRoots holds that documents belong to the project around them, and that projects are watched.
func TestSeveralRoots(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{"workspace": map[string]any{"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}}}, "/p")
	p.await("the request to watch files", func() bool { return slices.Contains(p.asked, "client/registerCapability") })
	p.open("/p/main.cf", "import m\na = m::A(n=\"x\")\n")
	p.open("/alone/model/_init.cf", "q = alone::nothing\n")
	p.open("/v2/model/_init.cf", "r = 1\nr2 = r\n")
	p.notify("workspace/didChangeWorkspaceFolders", map[string]any{"event": map[string]any{
		"added": []workspaceFolder{{"file:///v2", "v2"}, {"untitled:x", "x"}}, "removed": []workspaceFolder{{"file:///p", "p"}},
	}})
	var found []symbolInformation
	if err := p.call("workspace/symbol", map[string]any{"query": "r2"}, &found); err != nil {
		t.Fatal(err)
	}
	p.await("faults of the module alone", func() bool { return len(p.faults["file:///alone/model/_init.cf"].Diagnostics) == 1 })
	var l []location
	if err := p.call("textDocument/definition", at("/v2/model/_init.cf", 1, 5), &l); err != nil || len(l) != 1 || l[0].URI != "file:///v2/model/_init.cf" {
		t.Errorf("%v, %v", l, err)
	}
	if err := p.call("textDocument/definition", at("/p/main.cf", 1, 8), &l); err != nil || len(l) != 1 || l[0].URI != "file:///p/libs/m/model/_init.cf" {
		t.Errorf("%v, %v", l, err)
	}
}

// TestTrigger holds that the colon that opens a block asks for nothing.
func TestTrigger(t *testing.T) {
	t.Parallel()
	p := newPeer(t, testConfig())
	p.initialize(map[string]any{})
	p.open("/p/main.cf", "import m\nif true:\n    x = m::\nend\n")
	for _, tc := range []struct{ line, character, least, most int }{{1, 8, 0, 0}, {2, 11, 1, 5}} {
		params := at("/p/main.cf", tc.line, tc.character)
		params["context"] = map[string]any{"triggerKind": 2, "triggerCharacter": ":"}
		var out completionList
		if err := p.call("textDocument/completion", params, &out); err != nil || len(out.Items) < tc.least || len(out.Items) > tc.most {
			t.Errorf("%v: %v, %v", tc, out.Items, err)
		}
	}
}

// TestOtherDocuments holds that descriptions and plugins count as the editor has them, and that a directory can become a project.
func TestOtherDocuments(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	var made atomic.Bool
	stat := cfg.Stat
	cfg.Stat = func(name string) (fs.FileInfo, error) {
		if name == "/p/project.yml" && !made.Load() {
			return nil, fs.ErrNotExist
		}
		return stat(name)
	}
	p := newPeer(t, cfg)
	p.initialize(map[string]any{})
	p.open("/p/main.cf", "import m\na = m::g()\n")
	p.await("no faults of a file alone", func() bool { f, ok := p.faults["file:///p/main.cf"]; return ok && len(f.Diagnostics) == 0 })
	made.Store(true)
	p.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": "file:///p/project.yml", "type": 1}}})
	p.await("a fault in the project", func() bool {
		f := p.faults["file:///p/main.cf"]
		return len(f.Diagnostics) == 1 && strings.Contains(f.Diagnostics[0].Message, "m::g")
	})
	p.open("/p/libs/m/plugins/__init__.py", "@plugin\ndef g() -> int: ...\n")
	p.await("no faults with the plugin", func() bool { return len(p.faults["file:///p/main.cf"].Diagnostics) == 0 })
	p.open("/p/project.yml", "name: p\nmodulepath: nowhere\n")
	p.await("a fault without the module", func() bool { return len(p.faults["file:///p/main.cf"].Diagnostics) == 1 })
	if err := p.call("textDocument/foldingRange", at("/p/project.yml", 0, 0), nil); err != nil {
		t.Error(err)
	}
	if got := code(p.call("textDocument/formatting", at("/p/project.yml", 0, 0), nil)); got != codeInvalidParams {
		t.Errorf("formatting a description is answered with %d", got)
	}
}

// TestPlaces holds that modules outside of the module path are found: the checkout of one within the project, whose unsaved
// texts count, and one in a cache.
func TestPlaces(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"p/project.yml":                          {Data: []byte("name: p\n")},
		"p/main.cf":                              {Data: []byte("import v\nimport c\na = v::V(n=1)\nb = c::C(m=1)\n")},
		"p/co/pyproject.toml":                    {Data: []byte("[project]\nname = \"inmanta-module-v\"\n")},
		"p/co/inmanta_plugins/v/__init__.py":     {Data: []byte("@plugin\ndef f() -> int: ...\n")},
		"p/co/model/_init.cf":                    {Data: []byte("entity V:\nend\n")},
		"cache/c/module.yml":                     {Data: []byte("name: c\nversion: 1.0\nlicense: none\n")},
		"cache/c/model/_init.cf":                 {Data: []byte("entity C:\n    int m\nend\nimplement C using std::none\n")},
		"sites/inmanta_plugins/s/__init__.py":    {Data: []byte("")},
		"sites/inmanta_plugins/s/model/_init.cf": {Data: []byte("")},
	}
	dir := func(name string) fs.FS {
		sub, err := fs.Sub(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	cfg := testConfig()
	cfg.Open = func(name string) (fs.FS, error) { return dir(name[1:]), nil }
	cfg.Stat = func(name string) (fs.FileInfo, error) { return fs.Stat(tree, strings.TrimPrefix(name, "/")) }
	fail := errors.New("the module x is not there: run intendant module install")
	var failing atomic.Bool
	cfg.Modules = func(root string) ([]module.Site, []module.Place, error) {
		if failing.Load() {
			return nil, nil, fail
		}
		if root != "/p" {
			return nil, nil, nil
		}
		return []module.Site{{Name: "v@1", FS: dir("p/co"), Disk: "/p/co"}, {Name: "site-packages", FS: dir("sites"), Disk: "/sites"}},
			[]module.Place{{Name: "c", Dir: "c@2", FS: dir("cache/c"), Disk: "/cache/c"}}, nil
	}
	p := newPeer(t, cfg)
	p.initialize(map[string]any{})
	p.open("/p/main.cf", string(tree["p/main.cf"].Data))
	p.open("/p/co/model/_init.cf", "entity V:\n    int n\nend\nimplement V using std::none\nx = v::f()\n")
	for line, want := range map[int]string{2: "file:///p/co/model/_init.cf", 3: "file:///cache/c/model/_init.cf"} {
		var l []location
		if err := p.call("textDocument/definition", at("/p/main.cf", line, 7), &l); err != nil || len(l) != 1 || l[0].URI != want {
			t.Errorf("line %d: %v, %v", line, l, err)
		}
	}
	var l []location
	if err := p.call("textDocument/definition", at("/p/co/model/_init.cf", 4, 7), &l); err != nil || len(l) != 1 || l[0].URI != "file:///p/co/inmanta_plugins/v/__init__.py" {
		t.Errorf("the plugin: %v, %v", l, err)
	}
	p.await("no faults, once all documents are known", func() bool {
		for _, uri := range []string{"file:///p/co/model/_init.cf", "file:///p/main.cf"} {
			if f, ok := p.faults[uri]; !ok || len(f.Diagnostics) > 0 {
				return false
			}
		}
		return true
	})
	params := at("/p/main.cf", 2, 7)
	params["newName"] = "W"
	var e workspaceEdit
	if err := p.call("textDocument/rename", params, &e); err != nil || len(e.Changes["file:///p/co/model/_init.cf"]) != 2 || len(e.Changes["file:///p/main.cf"]) != 1 {
		t.Errorf("renaming in a checkout: %v, %v", e, err)
	}
	params = at("/p/main.cf", 3, 7)
	params["newName"] = "W"
	if err := p.call("textDocument/rename", params, &e); code(err) != codeRequestFailed {
		t.Errorf("renaming in a cache: %v", err)
	}
	failing.Store(true)
	p.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": "file:///p/intendant.lock", "type": 2}}})
	p.await("the fault of the lock", func() bool {
		f := p.faults["file:///p/intendant.lock"]
		return len(f.Diagnostics) == 1 && f.Diagnostics[0].Message == fail.Error()
	})
}

// FuzzRequests holds that all requests are answered at any place of any text, without a fault of the server, and that
// edits can be applied.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		"import m\na = m::A(n=\"{{ b }}\")\nb = a.n\n", "entity A extends :\n    string x\nend\nA.b [1:] -- A.c [0:]\n", "implementation i for A:\n  self.", "f\"{a.b:{c}}", "x = [y for y in z if y.",
		"typedef t as string matching /", "a = m::A(n=\"x\",", "\r\n\"\"\"é\r\r\n", "import ", "x = \"{{", "a=1#", "if x: else: end",
	} {
		f.Add(s, 1, 5)
		f.Add(s, 0, 3)
	}
	f.Fuzz(func(t *testing.T, text string, line, character int) {
		p := newPeer(t, testConfig())
		p.initialize(map[string]any{"textDocument": map[string]any{"documentSymbol": map[string]any{"hierarchicalDocumentSymbolSupport": true}}})
		p.open("/p/main.cf", text)
		clean, err := json.Marshal(text)
		if err != nil || json.Unmarshal(clean, &text) != nil {
			t.Skip() // what the editor sends is always valid
		}
		params := at("/p/main.cf", line, character)
		params["newName"] = "zz"
		params["query"] = "a"
		params["context"] = map[string]any{"diagnostics": []diagnostic{{Message: "x\ndid you mean yy?", Range: lspRange{End: position{100, 0}}}}}
		for method := range handlers {
			var out json.RawMessage
			err := p.call(method, params, &out)
			if code(err) == codeInternal {
				t.Errorf("%s: %v", method, err)
			}
			var edits []textEdit
			switch {
			case err != nil:
			case method == "textDocument/formatting":
				err = json.Unmarshal(out, &edits)
			case method == "textDocument/rename":
				var e workspaceEdit
				err = json.Unmarshal(out, &e)
				edits = e.Changes["file:///p/main.cf"]
			}
			if err == nil {
				apply(t, []byte(text), edits)
			}
		}
	})
}

// benchProject is a project of many modules.
func benchProject() fs.FS {
	return langtest.Library{Modules: 100, Entities: 20, Instances: 5}.Project()
}

// BenchmarkRequests measures answers in a project of a hundred modules, right after a change of the file.
func BenchmarkRequests(b *testing.B) {
	tree := benchProject()
	cfg := testConfig()
	cfg.Open = func(string) (fs.FS, error) { return tree, nil }
	cfg.Stat = func(name string) (fs.FileInfo, error) {
		rel, ok := strings.CutPrefix(name, "/p/")
		if !ok {
			return nil, fs.ErrNotExist
		}
		return fs.Stat(tree, rel)
	}
	cfg.Delay = time.Hour // what the background does is measured on its own
	file, line := benchPlace(b, tree)
	text, err := fs.ReadFile(tree, strings.TrimPrefix(file, "/p/"))
	if err != nil {
		b.Fatal(err)
	}
	p := newPeer(b, cfg)
	p.initialize(map[string]any{})
	p.open(file, string(text))
	version := 1
	for _, method := range []string{
		"textDocument/hover", "textDocument/completion", "textDocument/definition", "textDocument/references", "textDocument/documentHighlight",
		"textDocument/signatureHelp", "textDocument/documentSymbol", "textDocument/semanticTokens/full", "textDocument/rename",
	} {
		params := at(file, line, 8)
		params["newName"] = "Renamed"
		b.Run(strings.TrimPrefix(method, "textDocument/"), func(b *testing.B) {
			p.t = b
			b.ReportAllocs()
			for b.Loop() {
				version++
				p.notify("textDocument/didChange", map[string]any{
					"textDocument": map[string]any{"uri": uriOf(file), "version": version}, "contentChanges": []any{contentChange{&lspRange{}, "\n"}, contentChange{&lspRange{End: position{1, 0}}, ""}},
				})
				if err := p.call(method, params, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	p.t = b
}

// benchPlace is a file of a module with the line of an entity in it.
func benchPlace(b *testing.B, tree fs.FS) (file string, line int) {
	b.Helper()
	files, err := fs.Glob(tree, "libs/*/model/_init.cf")
	if err != nil || len(files) < 100 {
		b.Fatalf("%d modules, %v", len(files), err)
	}
	text, err := fs.ReadFile(tree, files[50])
	if err != nil {
		b.Fatal(err)
	}
	for i, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, "entity ") {
			return "/p/" + files[50], i
		}
	}
	b.Fatalf("%s has no entity", files[50])
	return "", 0
}

// BenchmarkCheck measures the check in the background after a change of one file, in a project of a hundred modules.
func BenchmarkCheck(b *testing.B) {
	tree := benchProject()
	file, _ := benchPlace(b, tree)
	name := strings.TrimPrefix(file, "/p/")
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		b.Fatal(err)
	}
	p := &project{kind: wholeProject, root: "/p", tree: tree, session: lang.NewSession()}
	version := 0
	b.ReportAllocs()
	for b.Loop() {
		version++
		docs := map[string]*document{name: {name: name, text: append(slices.Clone(text), strconv.Itoa(version)...)}}
		state, ds, err := p.check(b.Context(), docs)
		if err != nil || ds.HasErrors() || len(state.program.Files) < 100 {
			b.Fatalf("%v, %v", ds, err)
		}
		undeclared(&snapshot{project: p, state: state, docs: docs, enc: utf16Units}, ds)
	}
}
