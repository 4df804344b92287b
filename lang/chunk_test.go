package lang_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/syntax"
)

// A file of testdata holds many small projects, divided by lines of three dashes. The text of a chunk up to the first
// file header is main.cf. Its first line is a comment: what the chunk shows and, in the files of testdata/spec, the rules of
// docs/language/spec.md that it is about, in brackets. A module without a module.yml gets one. Comments say what is expected:
//
//	#! Class: part of the message   an error of that class on this line
//	#* Class: part of the message   an error of that class, on any line
//	#? Class                        a warning of that class on this line
//	#> text                         a line of output
//	#= Type name=value …            an instance; all instances of a type that is named so must be
//	#@ id [name=value …] [in set] [after id …]   a resource; all of them must be, if there is one such line
//	#~ any order                    the top-level statements may stand in any order: several are tried
//	#~ crlf                         main.cf has the line ends of Windows
//	#~ steps N                      the step limit
//
// A project without expected errors must compile. Output comes in the order of its comments, unless any order will do. The
// text "$repeat(N,text)$" stands for N times that text. The attributes of an instance stand in alphabetical order without requires and provides, values as JSON, an instance as its type,
// lists of instances sorted.
type chunk struct {
	name      string
	rules     []string
	files     fstest.MapFS
	errors    []expectation
	warns     []expectation
	stdout    []string
	instances []string
	resources []string
	anyOrder  bool
	steps     int64
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
		out = append(out, parseChunk(t, part))
	}
	return out
}

var repeated = regexp.MustCompile(`\$repeat\((\d+),(.*?)\)\$`)

func parseChunk(t testing.TB, text string) chunk {
	t.Helper()
	ar := txtar.Parse([]byte(strings.TrimSuffix(text, "\n") + "\n"))
	ar.Files = append(ar.Files, txtar.File{Name: "main.cf", Data: ar.Comment})
	c := chunk{files: fstest.MapFS{"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")}}}
	first, _, _ := strings.Cut(text, "\n")
	for word := range strings.FieldsSeq(strings.TrimPrefix(first, "#")) {
		if strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]") && strings.Contains(word, "-") {
			c.rules = append(c.rules, strings.Trim(word, "[]"))
			continue
		}
		c.name += " " + word
	}
	c.name = strings.TrimSpace(c.name)
	for _, f := range ar.Files {
		f.Data = repeated.ReplaceAllFunc(f.Data, func(b []byte) []byte {
			m := repeated.FindSubmatch(b)
			n, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Repeat(m[2], n)
		})
		c.files[f.Name] = &fstest.MapFile{Data: f.Data}
		if name, _, ok := strings.Cut(strings.TrimPrefix(f.Name, "libs/"), "/model/"); ok && strings.HasPrefix(f.Name, "libs/") {
			for file, text := range map[string]string{"module.yml": "name: " + name + "\nversion: 1.0\nlicense: none\n", "model/_init.cf": ""} {
				if file = "libs/" + name + "/" + file; c.files[file] == nil {
					c.files[file] = &fstest.MapFile{Data: []byte(text)}
				}
			}
		}
		for n, line := range strings.Split(string(f.Data), "\n") {
			c.expect(t, f.Name, n+1, line)
		}
	}
	return c
}

func (c *chunk) expect(t testing.TB, file string, n int, line string) {
	t.Helper()
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
	if text, ok := strings.CutPrefix(line, "#>"); ok {
		c.stdout = append(c.stdout, strings.TrimPrefix(text, " "))
	}
	if text, ok := strings.CutPrefix(line, "#= "); ok {
		c.instances = append(c.instances, text)
	}
	if text, ok := strings.CutPrefix(line, "#@ "); ok {
		c.resources = append(c.resources, text)
	}
	if text, ok := strings.CutPrefix(line, "#~ "); ok {
		steps, number := strings.CutPrefix(text, "steps ")
		n, err := strconv.ParseInt(steps, 10, 64)
		switch {
		case number && err == nil:
			c.steps = n
		case text == "any order":
			c.anyOrder = true
		case text == "crlf":
			c.files[file].Data = bytes.ReplaceAll(c.files[file].Data, []byte("\n"), []byte("\r\n"))
		default:
			t.Fatalf("%s: no such directive: %s", c.name, line)
		}
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
	var files []string
	for _, glob := range []string{"testdata/*.txt", "testdata/spec/*.txt"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("nothing in %s", glob)
		}
		files = append(files, found...)
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
	c.runOnce(t)
	if !c.anyOrder || t.Failed() {
		return
	}
	main := c.files["main.cf"]
	for n, text := range permutations(t, main.Data) {
		c.files["main.cf"] = &fstest.MapFile{Data: text}
		if c.runOnce(t); t.Failed() {
			t.Fatalf("permutation %d:\n%s", n, text)
		}
	}
	c.files["main.cf"] = main
}

func (c *chunk) runOnce(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	res, ds, err := lang.Compile(context.Background(), lang.Project{FS: c.files}, lang.Options{Stdout: &out, MaxSteps: c.steps})
	if err != nil {
		t.Fatal(err)
	}
	errs := ds.Errors()
	if len(c.errors) == 0 && len(errs) > 0 {
		t.Fatalf("refused:\n%s", errs)
	}
	for _, e := range c.errors {
		if c.anyOrder {
			e.line = 0
		}
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
	c.same(t, "printed", got, c.stdout, c.anyOrder)
	c.same(t, "instances", shownInstances(t, res, c.instances), c.instances, true)
	if len(c.resources) > 0 {
		c.same(t, "resources", shownResources(t, res, c.resources), c.resources, true)
	}
}

func (c *chunk) same(t *testing.T, what string, got, want []string, sorted bool) {
	t.Helper()
	if sorted {
		got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// shownInstances describes the instances of the types that the expectations name.
func shownInstances(t *testing.T, res *lang.Result, want []string) []string {
	t.Helper()
	types := map[string]bool{}
	for _, w := range want {
		name, _, _ := strings.Cut(w, " ")
		types[name] = true
	}
	if len(types) == 0 {
		return nil
	}
	var out []string
	for _, i := range lang.ExportInstances(res.Model) {
		name := strings.TrimPrefix(i.Type, "__config__::")
		if !types[name] {
			continue
		}
		var attrs map[string]any
		d := json.NewDecoder(bytes.NewReader(i.Attributes))
		d.UseNumber()
		if err := d.Decode(&attrs); err != nil {
			t.Fatal(err)
		}
		parts := []string{name}
		for _, a := range slices.Sorted(maps.Keys(attrs)) {
			if a != "requires" && a != "provides" {
				parts = append(parts, a+"="+shown(attrs[a]))
			}
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

// shown is the text of a decoded value in an expectation.
func shown(v any) string {
	switch x := v.(type) {
	case map[string]any:
		if id, ok := x["instance"].(string); ok && len(x) == 1 {
			id, _, _ = strings.Cut(id, "#")
			return strings.TrimPrefix(id, "__config__::")
		}
		if _, ok := x["unknown"]; ok && len(x) == 1 {
			return "unknown"
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, strconv.Quote(k)+":"+shown(x[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(x))
		instances := false
		for i, e := range x {
			parts[i] = shown(e)
			m, ok := e.(map[string]any)
			instances = instances || ok && m["instance"] != nil
		}
		if instances {
			slices.Sort(parts)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return strconv.Quote(x)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// shownResources describes the resources, each with the attributes that its expectation names.
func shownResources(t *testing.T, res *lang.Result, want []string) []string {
	t.Helper()
	named := map[string][]string{}
	for _, w := range want {
		words := strings.Fields(w)
		for _, word := range words[1:] {
			if name, _, ok := strings.Cut(word, "="); ok && !strings.Contains(name, "[") {
				named[words[0]] = append(named[words[0]], name)
			}
		}
	}
	var out []string
	for _, in := range res.State.Intents {
		var attrs map[string]any
		if err := json.Unmarshal(in.Attributes, &attrs); err != nil {
			t.Fatal(err)
		}
		line := string(in.Resource)
		for _, name := range named[line] {
			line += " " + name + "=" + shown(attrs[name])
		}
		if in.Set != "" {
			line += " in " + in.Set
		}
		if len(in.Requires) > 0 {
			ids := make([]string, len(in.Requires))
			for i, r := range in.Requires {
				ids[i] = string(r)
			}
			line += " after " + strings.Join(ids, " ")
		}
		out = append(out, line)
	}
	return out
}

// permutations gives a program with its top-level statements in other orders: backwards, and shuffled from fixed seeds.
func permutations(t *testing.T, src []byte) [][]byte {
	t.Helper()
	f, ds := syntax.Parse("main.cf", src, syntax.Options{})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	stmts := make([]string, len(f.Stmts))
	for i, s := range f.Stmts {
		stmts[i] = string(f.Src[s.Span().Start.Offset():s.Span().End.Offset()])
	}
	var out [][]byte
	add := func() { out = append(out, []byte(strings.Join(stmts, "\n")+"\n")) }
	slices.Reverse(stmts)
	add()
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(stmts), func(i, j int) { stmts[i], stmts[j] = stmts[j], stmts[i] })
		add()
	}
	return out
}
