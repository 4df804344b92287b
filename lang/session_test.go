package lang_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/module"
)

// TestSessionKeepsTrees looks at which files are the same values after one of them has changed.
func TestSessionKeepsTrees(t *testing.T) {
	t.Parallel()
	s := lang.NewSession()
	files := project("main.cf", "import m\n", "libs/m/module.yml", "name: m\nversion: 1\nlicense: none\n", "libs/m/model/_init.cf", "x = 1\n")
	load := func() map[string]*module.File {
		t.Helper()
		out, ds, err := s.Check(t.Context(), lang.Project{FS: files}, lang.Options{})
		if err != nil || ds.HasErrors() {
			t.Fatal(err, ds)
		}
		byName := map[string]*module.File{}
		for _, f := range out.Modules.Files {
			byName[f.Namespace] = f
		}
		return byName
	}
	first := load()
	files["main.cf"] = &fstest.MapFile{Data: []byte("import m\ny = m::x\n")}
	second := load()
	for ns, f := range first {
		if same, want := f.Tree == second[ns].Tree, ns != module.Main; same != want {
			t.Errorf("the tree of %s is kept: %t, want %t", ns, same, want)
		}
	}
}

// TestSessionMoves moves what is declared, and changes what refers to it.
func TestSessionMoves(t *testing.T) {
	t.Parallel()
	const entity = "entity A:\n    string x\nend\nimplement A using std::none\n"
	s := lang.NewSession()
	var last *check.Entity
	for _, c := range []struct {
		name, main string
		kept       bool
	}{
		{"at first", entity + "A(x=\"1\")\n", false},
		{"another statement", entity + "A(x=\"2\")\n", true},
		{"a fault when it runs, at a place that is declared", entity + "A()\n", true},
		{"a line before", "#\n" + entity + "A()\n", false},
		{"the same line, elsewhere", "# \n" + entity + "A()\n", false},
		{"a type", "# \n" + strings.Replace(entity, "string x", "int x", 1) + "A()\n", false},
		{"a fault of a name", "# \n" + strings.Replace(entity, "string x", "int x", 1) + "B()\n", false},
		{"the fault is mended", "# \n" + strings.Replace(entity, "string x", "int x", 1) + "A(x=1)\n", true},
		{"a variable of a file that declares something", "# \n" + strings.Replace(entity, "string x", "int x", 1) + "a = A(x=1)\n", false},
	} {
		files := project("main.cf", c.main)
		var printed bytes.Buffer
		if d := cmp.Diff(outcomeOf(t, lang.Compile, files, &printed), outcomeOf(t, s.Compile, files, &printed)); d != "" {
			t.Errorf("%s: the session differs from a fresh compile:\n%s", c.name, d)
		}
		out, _, err := s.Check(t.Context(), lang.Project{FS: files}, lang.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.name == "a fault of a name" {
			continue
		}
		if kept := out.Program.Base == last; kept != c.kept {
			t.Errorf("%s: what is declared was kept: %t, want %t", c.name, kept, c.kept)
		}
		last = out.Program.Base
	}
}

// TestSessionMain changes the variables of a main file that declares nothing: everything else is kept.
func TestSessionMain(t *testing.T) {
	t.Parallel()
	s := lang.NewSession()
	var first *lang.Checked
	for _, text := range []string{"import m\nx = m::y\n", "import m\nz = 1\nx = m::y\nstd::print(z)\n"} {
		files := project("main.cf", text, "libs/m/module.yml", "name: m\nversion: 1\nlicense: none\n", "libs/m/model/_init.cf", "y = 1\n")
		out, ds, err := s.Check(t.Context(), lang.Project{FS: files}, lang.Options{})
		if err != nil || ds.HasErrors() {
			t.Fatal(err, ds)
		}
		if first == nil {
			first = out
			continue
		}
		ours, theirs := out.Program, first.Program
		if ours.Base != theirs.Base || ours.Body(ours.Root.Find("m")) != theirs.Body(theirs.Root.Find("m")) {
			t.Error("the module was bound again")
		}
		if n := len(theirs.Body(theirs.Root.Find(module.Main)).Names); n != 1 {
			t.Errorf("the program before has %d variables by now, want 1", n)
		}
		var printed bytes.Buffer
		outcomeOf(t, s.Compile, files, &printed)
		if printed.String() != "1\n" {
			t.Errorf("printed %q, want 1", &printed)
		}
	}
}

// TestSessionCheck stops before the model runs, and reports what is known by then.
func TestSessionCheck(t *testing.T) {
	t.Parallel()
	s := lang.NewSession()
	for _, c := range []struct {
		name, text string
		codes      []string
		bound      bool
	}{
		{"fine", "x = 1\n", nil, true},
		{"fails when it runs", "x = 1\nx = 2\n", nil, true},
		{"unbound name", "x = Missing()\n", []string{"TypeNotFoundException"}, true},
		{"syntax", "x = = 1\n", []string{"ParserException"}, false},
		{"missing module", "import nowhere\n", []string{"ModuleLoadingException"}, false},
	} {
		out, ds, err := s.Check(t.Context(), lang.Project{FS: project("main.cf", c.text)}, lang.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, d := range ds {
			codes = append(codes, d.Code)
		}
		if d := cmp.Diff(c.codes, codes); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if (out.Program != nil) != c.bound || out.Modules == nil {
			t.Errorf("%s: Check = %+v", c.name, out)
		}
		if text, ok := out.Source("main.cf"); c.bound && (!ok || string(text) != c.text) {
			t.Errorf("%s: Source = %q, %t", c.name, text, ok)
		}
	}
}

// TestSessionCancelled ends a wait for the session, and the work in it, by the context.
func TestSessionCancelled(t *testing.T) {
	t.Parallel()
	s := lang.NewSession()
	p := lang.Project{FS: project("main.cf", "std::print(\"x\")\n")}
	started, finish := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, _, err := s.Compile(t.Context(), p, lang.Options{Stdout: writerFunc(func(b []byte) (int, error) {
			close(started)
			<-finish
			return len(b), nil
		})})
		done <- err
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Check(ctx, p, lang.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Check while another compile runs = %v, want %v", err, context.Canceled)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Errorf("Compile = %v", err)
	}
	if _, _, err := s.Compile(ctx, p, lang.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Compile = %v, want %v", err, context.Canceled)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

var _ io.Writer = writerFunc(nil)

// outcome is all of a compile that must not depend on how it was done.
type outcome struct {
	Diagnostics diag.List
	Digest      string
	Instances   []lang.ExportedInstance
	Inputs      []lang.InputUse
	Steps       int64
}

// compiler is [lang.Compile] or a method that does the same.
type compiler func(context.Context, lang.Project, lang.Options) (*lang.Result, diag.List, error)

func outcomeOf(t rapid.TB, c compiler, files fs.FS, stdout io.Writer) outcome {
	t.Helper()
	res, ds, err := c(context.Background(), lang.Project{FS: files}, lang.Options{Stdout: stdout})
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{Diagnostics: ds, Digest: res.State.Digest, Inputs: res.Inputs, Steps: res.Stats.Steps}
	if !ds.HasErrors() {
		out.Instances = lang.ExportInstances(res.Model)
	}
	return out
}
