package lsp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// frame puts a header in front of a message.
func frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     string // the methods of messages, and the errors between
	}{
		{"messages", frame(`{"method":"a"}`) + frame(`{"method":"b"}`), "a b EOF"},
		{"other headers, in any case", "content-type: x\r\nCONTENT-LENGTH:  14\r\n\r\n" + `{"method":"a"}`, "a EOF"},
		{"bare line ends", "Content-Length: 14\n\n" + `{"method":"a"}`, "a EOF"},
		{"a body that is no JSON", frame(`{`) + frame(`{"method":"b"}`), "unfit b EOF"},
		{"a body that is no message", frame(`[1]`) + frame(`{"method":"b"}`), "unfit b EOF"},
		{"a body above the limit", frame(`{"method":"`+strings.Repeat("x", 2000)+`"}`) + frame(`{"method":"b"}`), "unfit b EOF"},
		{"a size that lies", "Content-Length: 100\r\n\r\n{}", "broken"},
		{"a huge size that lies", "Content-Length: 9223372036854775807\r\n\r\n{}", "broken"},
		{"no size", "X: 1\r\n\r\n{}", "broken"},
		{"a negative size", "Content-Length: -1\r\n\r\n{}", "broken"},
		{"no header", "hello\r\n\r\n", "broken"},
		{"an endless line", strings.Repeat("x", 10000), "broken"},
		{"endless headers", strings.Repeat("X: 1\r\n", 100), "broken"},
		{"the end in a header", "Content-Len", "broken"},
		{"nothing", "", "EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newConn(strings.NewReader(tc.in), io.Discard, 1000)
			var got []string
			for {
				m, err := c.read()
				var unfit *rpcError
				switch {
				case errors.As(err, &unfit):
					got = append(got, "unfit")
					continue
				case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && err == io.EOF: //nolint:errorlint // the plain one is the end between messages
					got = append(got, "EOF")
				case err != nil:
					got = append(got, "broken")
				default:
					got = append(got, m.Method)
					continue
				}
				break
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

var testFiles = fstest.MapFS{
	"p/project.yml":                 {Data: []byte("name: p\nmodulepath: libs\n")},
	"p/main.cf":                     {Data: []byte("import m\na = m::A(n=\"x\")\nb = a.n\n")},
	"p/libs/m/module.yml":           {Data: []byte("name: m\nversion: 1.0\nlicense: none\n")},
	"p/libs/m/model/_init.cf":       {Data: []byte("entity A:\n    string n\nend\nimplement A using std::none\n")},
	"p/libs/m/plugins/__init__.py":  {Data: []byte("@plugin\ndef f(a: \"string\") -> \"int\":\n    pass\n")},
	"alone/model/_init.cf":          {Data: []byte("x = 1\n")},
	"alone/module.yml":              {Data: []byte("name: alone\nversion: 1.0\nlicense: none\n")},
	"v2/pyproject.toml":             {Data: []byte("[project]\nname = \"inmanta-module-v2\"\n")},
	"v2/inmanta_plugins/v2/init.py": {Data: []byte("")},
	"v2/model/_init.cf":             {Data: []byte("x = 1\n")},
}

// testConfig serves files from memory.
func testConfig() Config {
	return Config{
		Open: func(dir string) (fs.FS, error) { return fs.Sub(testFiles, strings.TrimPrefix(dir, "/")) },
		Stat: func(name string) (fs.FileInfo, error) {
			if name == "/" {
				return nil, fs.ErrNotExist
			}
			return fs.Stat(testFiles, strings.TrimPrefix(name, "/"))
		},
		MaxMessage: 1 << 20,
	}
}

// FuzzMessages holds that no stream of messages makes the server panic or hang, and that each request is answered once.
func FuzzMessages(f *testing.F) {
	open := `{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///p/main.cf","version":1,"text":"import m\na = m::A(n=\"x\")\nb = a."}}}`
	at := `"textDocument":{"uri":"file:///p/main.cf"},"position":{"line":1,"character":4}`
	for _, seed := range []string{
		`{"id":1,"method":"initialize","params":{"capabilities":{},"workspaceFolders":[{"uri":"file:///p","name":"p"}]}}` + "\n" + `{"method":"initialized","params":{}}`,
		open,
		`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///alone/model/_init.cf","version":1,"text":"x = 2"}}}`,
		`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///v2/model/_init.cf","version":1,"text":"x = 2"}}}`,
		`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"untitled:1","version":1,"text":"x = ("}}}`,
		`{"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///p/main.cf","version":2},"contentChanges":[{"range":{"start":{"line":0,"character":1},"end":{"line":9,"character":0}},"text":"é\r\n"}]}}`,
		`{"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///p/main.cf","version":2},"contentChanges":[{"range":{"start":{"line":-1,"character":-1},"end":{"line":9,"character":0}},"text":"x"}]}}`,
		`{"method":"$/cancelRequest","params":{"id":2}}`,
		`{"id":"x","method":"shutdown"}` + "\n" + `{"method":"exit"}`,
		`{"id":3,"method":"no/such"}`, `{"id":null,"method":"shutdown"}`, `{}`, `{"id":4,"result":null}`,
		open + "\n" + `{"id":5,"method":"textDocument/hover","params":{` + at + `}}`,
		open + "\n" + `{"id":6,"method":"textDocument/rename","params":{` + at + `,"newName":"B"}}`,
		open + "\n" + `{"id":7,"method":"textDocument/completion","params":{` + at + `}}`,
		open + "\n" + `{"id":8,"method":"textDocument/semanticTokens/full","params":{` + at + `}}`,
		open + "\n" + `{"id":9,"method":"textDocument/formatting","params":{` + at + `}}`,
		open + "\n" + `{"id":9,"method":"textDocument/signatureHelp","params":{"textDocument":{"uri":"file:///p/main.cf"},"position":{"line":-5,"character":999999999}}}`,
		open + "\n" + `{"id":10,"method":"textDocument/codeAction","params":{` + at + `,"context":{"diagnostics":[{"range":{"start":{"line":1,"character":0},"end":{"line":0,"character":0}},"message":"x\ndid you mean y?"}]}}}`,
		open + "\n" + `{"id":11,"method":"workspace/symbol","params":{"query":"a"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var in bytes.Buffer
		in.WriteString(frame(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`))
		asked := map[string]int{"0": 1}
		for line := range strings.SplitSeq(lines, "\n") {
			var m message
			if json.Unmarshal([]byte(line), &m) == nil {
				if m.Method == "exit" {
					break
				}
				if m.Method != "" && m.ID != nil {
					var id bytes.Buffer
					if json.Compact(&id, *m.ID) == nil {
						asked[id.String()]++
					}
				}
			}
			in.WriteString(frame(line))
		}
		// The stream ends when all has been answered.
		ended, end := io.Pipe()
		answers, out := io.Pipe()
		failed := make(chan error, 1)
		go func() { failed <- listen(answers, asked, end) }()
		err := New(testConfig()).Run(t.Context(), io.MultiReader(&in, ended), out)
		if err != nil && !errors.Is(err, ErrNoShutdown) {
			t.Fatalf("Run: %v", err)
		}
		if err := errors.Join(out.Close(), <-failed); err != nil {
			t.Errorf("%v for %s", err, lines)
		}
	})
}

// listen counts the answers of a server, and closes end when there is one for each request. It reads until there is no more.
func listen(r io.Reader, asked map[string]int, end io.Closer) error {
	c := newConn(r, io.Discard, 1<<30)
	open := 0
	for _, n := range asked {
		open += n
	}
	for {
		m, err := c.read()
		switch {
		case errors.Is(err, io.EOF) && open == 0:
			return nil
		case err != nil:
			return fmt.Errorf("reading what the server wrote, with %d requests open: %w", open, err)
		case m.Error != nil && strings.Contains(m.Error.Message, "fault of the server"):
			return m.Error
		case m.Method != "" || m.ID == nil || asked[string(*m.ID)] == 0:
			continue
		}
		asked[string(*m.ID)]--
		if open--; open == 0 {
			if err := end.Close(); err != nil {
				return err
			}
		}
	}
}
