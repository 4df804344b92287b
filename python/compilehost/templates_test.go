package compilehost_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/python"
)

// templateCase is a template of the shared case file.
type templateCase struct{ name, arguments, out, fault string }

// templateCases reads the case file: what both compiles of [TestTemplates] have in common, and the cases.
func templateCases(t *testing.T) (files txtar.Archive, main string, cases []templateCase) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "..", "lang", "template", "testdata", "project.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range a.Files {
		texts[f.Name] = string(f.Data)
	}
	for _, f := range a.Files {
		name, kind, _ := strings.Cut(f.Name, ".")
		switch kind {
		case "cf":
			if name == "main" {
				main = "import m\n" + string(f.Data)
				continue
			}
			files.Files = append(files.Files, txtar.File{Name: "libs/m/model/_init.cf", Data: f.Data})
		case "j2":
			c := templateCase{name: name, arguments: strings.TrimSpace(texts[name+".arguments"]), fault: strings.TrimSpace(texts[name+".error"])}
			out, ok := texts[name+".out"]
			if ok == (c.fault != "") {
				t.Fatalf("the case %s needs either a text or a fault", name)
			}
			c.out = strings.TrimSuffix(out, "$\n")
			cases = append(cases, c)
			fallthrough
		case "inc":
			files.Files = append(files.Files, txtar.File{Name: "libs/m/templates/" + f.Name, Data: f.Data})
		}
	}
	return files, main, cases
}

// jinja is a module that renders with Jinja2, in the way in which the module std does where it is written in Python.
const jinja = `
import os
import jinja2
from inmanta.ast import NotFoundException
from inmanta.module import Project
from inmanta.plugins import Context, plugin
from inmanta_plugins.std import EmptyResolver, ResolverContext

def environment(ctx):
    folders = {name: jinja2.FileSystemLoader(os.path.join(m.path, "templates")) for name, m in Project.get().modules.items()}
    env = jinja2.Environment(loader=jinja2.PrefixLoader(folders), undefined=jinja2.StrictUndefined)
    env.context_class = ResolverContext
    env.filters.update({name.replace("::", "."): p for name, p in ctx.get_compiler().get_plugins().items()})
    return env

@plugin
def render(ctx: Context, path: "string", **kwargs: "any") -> "string":
    variables = dict(kwargs)
    variables["{{resolver"] = EmptyResolver() if kwargs else ctx.get_resolver()
    try:
        return environment(ctx).get_template(path).render(variables)
    except jinja2.UndefinedError as e:
        raise NotFoundException(ctx.owner, None, e.message)
`

// The compiler's own engine and Jinja2 in the Python code of a module make the same of the same templates: what reaches Jinja2
// through proxies looks as what the compiler's engine reads.
func TestTemplates(t *testing.T) {
	t.Parallel()
	files, main, cases := templateCases(t)
	for engine, py := range map[string]string{"std::template": "", "m::render": jinja} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if py != "" {
				needJinja(t)
			}
			archive := func(main string) string {
				all := files
				all.Files = append([]txtar.File{{Name: "main.cf", Data: []byte(main)}}, files.Files...)
				if py != "" {
					all.Files = append(all.Files, txtar.File{Name: "libs/m/plugins/__init__.py", Data: []byte(py)})
				}
				return string(txtar.Format(&all))
			}
			call := func(c templateCase) string {
				arguments := ""
				if c.arguments != "" {
					arguments = ", " + c.arguments
				}
				return fmt.Sprintf("%s(\"m/%s.j2\"%s)", engine, c.name, arguments)
			}
			var text strings.Builder
			text.WriteString(main)
			for i, c := range cases {
				if c.fault == "" {
					fmt.Fprintf(&text, "r%d = %s\nstd::print(\"<%d>{{r%d}}</%d>\")\n", i, call(c), i, i, i)
				}
			}
			o := compile(t, archive(text.String()), nil).succeed(t)
			for i, c := range cases {
				if c.fault != "" {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						o := compile(t, archive(main+"r = "+call(c)), nil)
						if !strings.Contains(o.diags.String(), c.fault) {
							t.Errorf("no fault with %q in:\n%s", c.fault, o.diags)
						}
					})
					continue
				}
				_, rest, ok := strings.Cut(o.stdout, fmt.Sprintf("<%d>", i))
				got, _, closed := strings.Cut(rest, fmt.Sprintf("</%d>", i))
				if !ok || !closed || got != c.out {
					t.Errorf("%s gives %q\nwant %q", c.name, got, c.out)
				}
			}
		})
	}
}

// needJinja skips a test where the interpreter has no Jinja2.
func needJinja(t *testing.T) {
	t.Helper()
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), interpreter, "-I", "-c", "import jinja2").CombinedOutput(); err != nil {
		t.Skipf("%s has no jinja2: %s", interpreter, out)
	}
}
