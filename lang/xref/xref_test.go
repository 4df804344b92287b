package xref_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/langtest"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
)

// projects are the projects in the tests of the language that compile, by name.
func projects(t *testing.T) map[string]fstest.MapFS {
	t.Helper()
	files, err := filepath.Glob("../testdata/spec/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("the tests of the language are not where they were: %v, %v", files, err)
	}
	files = append(files, "../testdata/semantics.txt", "../testdata/tricky.txt")
	out := map[string]fstest.MapFS{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "\n---\n") {
			if strings.Contains(part, "#! ") || strings.Contains(part, "#* ") || strings.Contains(part, "$repeat") || strings.Contains(part, "#~ ") {
				continue
			}
			if strings.Contains(part, "relation_precedence_policy") || strings.Contains(part, "/templates/") {
				continue // names in project.yml and in templates are not renamed
			}
			name, _, _ := strings.Cut(part, "\n")
			out[fmt.Sprintf("%s/%d%s", strings.TrimSuffix(filepath.Base(file), ".txt"), i, strings.TrimPrefix(name, "#"))] = unpack(part)
		}
	}
	return out
}

// unpack makes the project of a chunk: main.cf, and modules that need no description.
func unpack(text string) fstest.MapFS {
	ar := txtar.Parse([]byte(strings.TrimSuffix(text, "\n") + "\n"))
	files := fstest.MapFS{
		"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")},
		"main.cf":     {Data: ar.Comment},
	}
	for _, f := range ar.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
		if name, _, ok := strings.Cut(strings.TrimPrefix(f.Name, "libs/"), "/model/"); ok && strings.HasPrefix(f.Name, "libs/") {
			for file, text := range map[string]string{"module.yml": "name: " + name + "\nversion: 1.0\nlicense: none\n", "model/_init.cf": ""} {
				if file = "libs/" + name + "/" + file; files[file] == nil {
					files[file] = &fstest.MapFile{Data: []byte(text)}
				}
			}
		}
	}
	return files
}

// outcome is what a project does: what it prints and the instances that it makes. ok is false when it has faults.
type outcome struct {
	OK        bool
	Faults    []string
	Printed   []string
	Instances []instance
}

type instance struct {
	Type, Place string
	Attributes  string
}

func compile(t *testing.T, project fs.FS) outcome {
	t.Helper()
	var printed bytes.Buffer
	res, ds, err := lang.Compile(context.WithoutCancel(t.Context()), lang.Project{FS: project}, lang.Options{Stdout: &printed})
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{OK: !ds.HasErrors(), Printed: strings.Split(printed.String(), "\n")}
	for _, d := range ds.Errors() {
		out.Faults = append(out.Faults, d.String())
	}
	if !out.OK {
		return out
	}
	for _, i := range lang.ExportInstances(res.Model) {
		out.Instances = append(out.Instances, instance{i.Type, fmt.Sprint(i.File, i.Line), string(i.Attributes)})
	}
	return out
}

// back puts the old name in place of the new one, and leaves the order of things out, which may follow names.
func (o outcome) back(now, old string) outcome {
	word := regexp.MustCompile(`\b` + now + `\b`)
	out := outcome{OK: o.OK, Faults: o.Faults}
	for _, line := range o.Printed {
		out.Printed = append(out.Printed, word.ReplaceAllString(line, old))
	}
	for _, i := range o.Instances {
		i.Type, i.Attributes = word.ReplaceAllString(i.Type, old), word.ReplaceAllString(i.Attributes, old)
		var v any
		if err := json.Unmarshal([]byte(i.Attributes), &v); err == nil {
			if text, err := json.Marshal(v); err == nil {
				i.Attributes = string(text)
			}
		}
		out.Instances = append(out.Instances, i)
	}
	return out
}

// index builds the index of a project as a language server does.
func index(t *testing.T, project fs.FS) *xref.Index {
	t.Helper()
	out, _, err := lang.NewSession().Check(t.Context(), lang.Project{FS: project}, lang.Options{Syntax: syntax.Options{Resume: true}})
	if err != nil {
		t.Fatal(err)
	}
	var sources []xref.Source
	for _, f := range out.Modules.Files {
		sources = append(sources, xref.Source{Namespace: f.Namespace, Tree: f.Tree})
	}
	var plugins []xref.Plugin
	for _, p := range std.Plugins() {
		plugins = append(plugins, xref.Plugin{Plugin: p})
	}
	return xref.New(sources, plugins)
}

func builtIn(f *xref.File) string {
	if strings.HasPrefix(f.Tree.Name, "{") {
		return "which is part of the program"
	}
	return ""
}

// quoted reports whether a name occurs in a string of the project beyond the places that are renamed: a model may reach
// attributes by text.
func quoted(x *xref.Index, name string, edits map[*xref.File][]syntax.Span) bool {
	word := regexp.MustCompile(`\b` + name + `\b`)
	for _, f := range x.Files() {
		if builtIn(f) != "" {
			continue
		}
		src := f.Tree.Src
		if spans := edits[f]; len(spans) > 0 {
			src = xref.Apply(src, spans, "\x01")
		}
		for _, l := range syntax.Lex(src) {
			if l.Kind == syntax.StringLexeme && word.Match(src[l.Span.Start.Offset():l.Span.End.Offset()]) {
				return true
			}
		}
	}
	return false
}

// TestRenameKeepsMeaning renames what the models in the tests of the language declare, and compiles them again: all must be as before,
// but for the name.
func TestRenameKeepsMeaning(t *testing.T) {
	t.Parallel()
	all := projects(t)
	renamed, refused := 0, 0
	reasons := map[string]int{}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for n, name := range names {
		if testing.Short() && n%10 != 0 {
			continue
		}
		project := all[name]
		before := compile(t, project)
		if !before.OK {
			continue
		}
		x := index(t, project)
		for k, s := range symbols(x) {
			if k > 12 {
				break
			}
			to := s.Name + "_q"
			edits, err := x.Rename(t.Context(), s, to, builtIn)
			if no, ok := errors.AsType[*xref.RenameError](err); ok {
				refused++
				reasons[strings.Join(strings.Fields(no.Message)[1:], " ")]++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if quoted(x, s.Name, edits) {
				continue
			}
			changed := fstest.MapFS{}
			maps.Copy(changed, project)
			for f, spans := range edits {
				changed[f.Tree.Name] = &fstest.MapFile{Data: xref.Apply(f.Tree.Src, spans, to)}
			}
			renamed++
			after := compile(t, changed)
			if d := cmp.Diff(before.back(s.Name, s.Name), after.back(to, s.Name)); d != "" {
				t.Errorf("%s: renaming the %s %s (-before +after):\n%s%s", name, s.Kind, s.FullName(), d, changed["main.cf"].Data)
			}
		}
	}
	t.Logf("%d renamed, %d refused", renamed, refused)
	if !testing.Short() && (renamed < 10*refused || renamed < 100) {
		t.Errorf("%d names were changed and %d refused: %v", renamed, refused, reasons)
	}
}

// symbols are the symbols that can be renamed.
func symbols(x *xref.Index) []*xref.Symbol {
	var out []*xref.Symbol
	seen := map[*xref.Symbol]bool{}
	for _, f := range x.Files() {
		if builtIn(f) != "" {
			continue
		}
		for _, u := range x.Uses(f) {
			if u.Role == xref.Declaration && !seen[u.Symbol] && x.CanRename(u.Symbol, builtIn) == nil {
				seen[u.Symbol] = true
				out = append(out, u.Symbol)
			}
		}
	}
	return out
}

// TestNothingMissing holds that the index finds all names of models that compile: it resolves names as the compiler does.
func TestNothingMissing(t *testing.T) {
	t.Parallel()
	found := 0
	var never []string
	for name, project := range projects(t) {
		if !compile(t, project).OK {
			continue
		}
		x := index(t, project)
		for _, f := range x.Files() {
			found += len(x.Uses(f))
			for _, m := range x.Missing(f) {
				switch {
				case m.Asked || m.Variable == nil && m.Of == nil:
				case m.Variable != nil && !m.Always:
					// It may stand in code that never runs, which some models are about.
					never = append(never, name+": "+m.Name)
				default:
					t.Errorf("%s: %s at %s stands for nothing:\n%s", name, m.Name, f.Place(m.Span.Start), project["main.cf"].Data)
				}
			}
		}
	}
	if found < 1000 || 1000*len(never) > found {
		t.Errorf("%d names were found, and %d in blocks were not: %v", found, len(never), never)
	}
}

// TestGenerated renames in generated models of many modules.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for _, shape := range langtest.Shapes() {
		project := shape.Project(50)
		x := index(t, project)
		n := 0
		for _, s := range symbols(x) {
			edits, err := x.Rename(t.Context(), s, s.Name+"_q", builtIn)
			if err != nil {
				t.Errorf("%s: %s: %v", shape.Name, s.FullName(), err)
			}
			if len(edits) > 0 {
				n++
			}
			if n > 10 {
				break
			}
		}
		if n == 0 {
			t.Errorf("%s: nothing was renamed", shape.Name)
		}
	}
}

// TestRenameToTakenName gives things names that others have: that is refused, or it changes nothing but names.
func TestRenameToTakenName(t *testing.T) {
	t.Parallel()
	all := projects(t)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	accepted, refused := 0, 0
	for n, name := range names {
		if testing.Short() && n%10 != 0 {
			continue
		}
		project := all[name]
		before := compile(t, project)
		if !before.OK {
			continue
		}
		x := index(t, project)
		list := symbols(x)
		for i, s := range list {
			if i > 8 {
				break
			}
			for j := 1; j <= 4; j++ {
				to := list[(i+j*7)%len(list)].Name
				edits, err := x.Rename(t.Context(), s, to, builtIn)
				if err != nil {
					refused++
					continue
				}
				if to == s.Name || quoted(x, s.Name, edits) || quoted(x, to, nil) {
					continue
				}
				accepted++
				changed := fstest.MapFS{}
				maps.Copy(changed, project)
				for f, spans := range edits {
					changed[f.Tree.Name] = &fstest.MapFile{Data: xref.Apply(f.Tree.Src, spans, to)}
				}
				after := compile(t, changed)
				if len(after.Instances) != len(before.Instances) || !cmp.Equal(before.Printed, after.Printed) || len(after.Faults) > 0 {
					t.Errorf("%s: renaming the %s %s to %s: printed %q before and %q after, %v:\n%s", name, s.Kind, s.FullName(), to,
						before.Printed, after.Printed, after.Faults, changed["main.cf"].Data)
				}
			}
		}
	}
	t.Logf("%d renamed, %d refused", accepted, refused)
	if !testing.Short() && (accepted < 50 || refused < 50) {
		t.Errorf("%d names were changed and %d refused", accepted, refused)
	}
}
