package lang_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

// A file of testdata holds many small projects, divided by lines of three dashes. The text of a chunk up to the first
// file header is main.cf. Comments say what is expected:
//
//	#! Class: part of the message   an error of that class on this line
//	#* Class: part of the message   an error of that class, on any line
//	#? Class                        a warning of that class on this line
//	#> text                         a line of output
//
// A project without expected errors must compile. Output may come in any order unless the chunk is about the order, which
// these files say in the order of their comments.
type chunk struct {
	name   string
	files  fstest.MapFS
	errors []expectation
	warns  []expectation
	stdout []string
}

type expectation struct {
	file  string
	line  int
	class string
	text  string
}

func readChunks(t testing.TB, file string) []chunk {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []chunk
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		ar := txtar.Parse([]byte(part + "\n"))
		ar.Files = append(ar.Files, txtar.File{Name: "main.cf", Data: ar.Comment})
		c := chunk{files: fstest.MapFS{"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")}}}
		first, _, _ := strings.Cut(part, "\n")
		c.name = strings.TrimSpace(strings.TrimPrefix(first, "#"))
		for _, f := range ar.Files {
			c.files[f.Name] = &fstest.MapFile{Data: f.Data}
			for n, line := range strings.Split(string(f.Data), "\n") {
				c.expect(f.Name, n+1, line)
			}
		}
		out = append(out, c)
	}
	return out
}

func (c *chunk) expect(file string, n int, line string) {
	split := func(mark string) (expectation, bool) {
		_, rest, ok := strings.Cut(line, mark)
		if !ok {
			return expectation{}, false
		}
		class, text, _ := strings.Cut(rest, ":")
		return expectation{file, n, strings.TrimSpace(class), strings.TrimSpace(text)}, true
	}
	if e, ok := split("#! "); ok {
		c.errors = append(c.errors, e)
	}
	if e, ok := split("#* "); ok {
		e.line = 0
		c.errors = append(c.errors, e)
	}
	if e, ok := split("#? "); ok {
		c.warns = append(c.warns, e)
	}
	if text, ok := strings.CutPrefix(line, "#> "); ok {
		c.stdout = append(c.stdout, text)
	}
}

func (e expectation) met(ds diag.List) bool {
	return slices.ContainsFunc(ds, func(d diag.Diagnostic) bool {
		if e.line > 0 && (d.Range.File != e.file || d.Range.Start.Line != e.line) {
			return false
		}
		return (d.Code == e.class || strings.Contains(d.Message, e.class)) && strings.Contains(d.Message, e.text)
	})
}

func TestChunks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no test data")
	}
	for _, file := range files {
		for _, c := range readChunks(t, file) {
			t.Run(filepath.Base(file)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

func (c *chunk) run(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	_, ds, err := lang.Compile(context.Background(), lang.Project{FS: c.files}, lang.Options{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	errs := ds.Errors()
	if len(c.errors) == 0 && len(errs) > 0 {
		t.Fatalf("refused:\n%s", errs)
	}
	for _, e := range c.errors {
		if !e.met(errs) {
			t.Errorf("no error %s %q in %s:%d; got\n%s", e.class, e.text, e.file, e.line, errs)
		}
	}
	for _, e := range c.warns {
		if !e.met(ds.Warnings()) {
			t.Errorf("no warning %s on line %d; got\n%s", e.class, e.line, ds.Warnings())
		}
	}
	if len(c.errors) > 0 {
		return
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if out.Len() == 0 {
		got = nil
	}
	if !slices.Equal(got, c.stdout) {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.stdout, "\n"))
	}
}
