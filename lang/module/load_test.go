package module_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/module"
)

// tree makes a file system of path and content pairs.
func tree(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

var std = map[string]fs.FS{"std": tree("model/_init.cf", "", "model/testing.cf", "")}

const manifest = "name: test\nmodulepath: [libs, more]\n"

func v1(name string) string { return "name: " + name + "\nversion: 1.0.0\nlicense: EUPL-1.2\n" }

func load(t *testing.T, project fs.FS, opts module.Options) (*module.Program, diag.List) {
	t.Helper()
	if opts.Builtin == nil {
		opts.Builtin = std
	}
	prog, ds, err := module.Load(t.Context(), project, opts)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return prog, ds
}

func namespaces(p *module.Program) []string {
	var out []string
	for _, f := range p.Files {
		out = append(out, f.Namespace+" "+f.Tree.Name)
	}
	return out
}

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	prog, ds := load(t, tree(
		"project.yml", manifest,
		"main.cf", "import a::x\nimport b\nimport c\n",
		"libs/a/module.yml", v1("a"),
		"libs/a/model/_init.cf", "import b::sub",
		"libs/a/model/x.cf", "",
		"libs/b/module.yml", v1("b"),
		"libs/b/model/_init.cf", "",
		"libs/b/model/sub/_init.cf", "",
		"libs/b/model/sub.cf", "this file is not read",
		"more/c/module.yml", v1("c"),
		"more/c/model/_init.cf", "import a\nimport c::deep::er",
		"more/c/model/deep.cf", "",
		"more/c/model/deep/er.cf", "",
		"more/c/model/deep/_init.cf", "",
		"more/a/module.yml", "not: read",
	), module.Options{})
	if len(ds) != 0 {
		t.Fatalf("Load = %s, want nothing wrong", ds)
	}
	want := []string{
		"__config__ main.cf",
		"c more/c/model/_init.cf",
		"c::deep more/c/model/deep/_init.cf",
		"c::deep::er more/c/model/deep/er.cf",
		"std {std}/model/_init.cf",
		"a libs/a/model/_init.cf",
		"a::x libs/a/model/x.cf",
		"b libs/b/model/_init.cf",
		"b::sub libs/b/model/sub/_init.cf",
	}
	if d := cmp.Diff(want, namespaces(prog)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	var modules []string
	for _, m := range prog.Modules {
		modules = append(modules, m.Name+" "+string(m.Layout)+" "+m.Dir+" "+m.Plugins)
	}
	wantModules := []string{"__config__ project . ", "c v1 more/c plugins", "std builtin {std} ", "a v1 libs/a plugins", "b v1 libs/b plugins"}
	if d := cmp.Diff(wantModules, modules); d != "" {
		t.Errorf("modules (-want +got):\n%s", d)
	}
	if f := prog.File("c::deep::er"); f == nil || f.Module != prog.Module("c") {
		t.Errorf("File(c::deep::er) = %v, want a file of the module c", f)
	}
	if prog.File("nope") != nil || prog.Module("nope") != nil {
		t.Error("File and Module found what is not there")
	}
	if n := len(prog.File("c").Imports); n != 2 {
		t.Errorf("c has %d imports, want 2", n)
	}
}

func TestLoadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		files   fstest.MapFS
		opts    module.Options
		want    string // the first diagnostic in the plain form
		related []string
		hint    string
	}{{
		name:  "no project",
		files: tree("main.cf", ""),
		want:  "error: Unable to find an inmanta project (project.yml expected) [ProjectNotFoundException]",
		hint:  "directory with a project.yml",
	}, {
		name:  "no main file",
		files: tree("project.yml", manifest),
		want:  "main.cf: error: Could not open the main file main.cf of the project [CompilerException]",
		hint:  "create the file",
	}, {
		name:  "manifest without a name",
		files: tree("project.yml", "description: x", "main.cf", ""),
		want:  "project.yml:1:1: error: Metadata defined in project.yml is invalid: name: the key is missing [InvalidMetadata]",
	}, {
		name:  "manifest that is no YAML",
		files: tree("project.yml", "name: [", "main.cf", ""),
		want:  "[InvalidMetadata]",
	}, {
		name:  "manifest that is no mapping",
		files: tree("project.yml", "- name", "main.cf", ""),
		want:  "project.yml:1: error: Metadata defined in project.yml is invalid: the file must hold a mapping of keys to values [InvalidMetadata]",
	}, {
		name:  "manifest of two documents",
		files: tree("project.yml", "name: a\n---\nname: b\n", "main.cf", ""),
		want:  "Metadata defined in project.yml is invalid: the file must hold a single document [InvalidMetadata]",
	}, {
		name:  "manifest whose second document is no YAML",
		files: tree("project.yml", "name: a\n---\nname: [\n", "main.cf", ""),
		want:  "[InvalidMetadata]",
	}, {
		name:  "boolean for a text",
		files: tree("project.yml", "name: yes\n", "main.cf", ""),
		want:  "project.yml:1:7: error: Metadata defined in project.yml is invalid: name: expected text, and yes is a boolean: put it in quotes [InvalidMetadata]",
	}, {
		name:  "date for a text",
		files: tree("project.yml", "name: a\nmodulepath: [2020-01-01]\n", "main.cf", ""),
		want:  "modulepath: expected text, and 2020-01-01 is a date: put it in quotes [InvalidMetadata]",
	}, {
		name:  "sign of YAML for a text",
		files: tree("project.yml", "name: a\nlicense: =\n", "main.cf", ""),
		want:  "license: expected text, and = has a meaning of its own in YAML: put it in quotes [InvalidMetadata]",
	}, {
		name:  "requirement that is none",
		files: tree("project.yml", "name: a\nrequires: [\"m ~ 1\"]\n", "main.cf", ""),
		want: "project.yml:2:11: error: Metadata defined in project.yml is invalid: requires: requirement \"m ~ 1\": \"~ 1\" is no version constraint: " +
			"write an operator (==, ~=, >=, <=, >, <, !=) and a version [InvalidMetadata]",
	}, {
		name:    "module with an operator that is none",
		files:   tree("project.yml", manifest, "main.cf", "import m", "libs/m/module.yml", v1("m")+"freeze_operator: x\n", "libs/m/model/_init.cf", ""),
		want:    "Failed to load module m [ModuleLoadingException]",
		related: []string{"The module found at libs/m is not a valid V1 module", "freeze_operator: expected one of"},
	}, {
		name:  "empty manifest",
		files: tree("project.yml", "", "main.cf", ""),
		want:  "project.yml:1: error: Metadata defined in project.yml is invalid: the file is empty [InvalidMetadata]",
	}, {
		name:    "no such module",
		files:   tree("project.yml", manifest, "main.cf", "\nimport nope", "libs/nopf/module.yml", v1("nopf")),
		want:    "main.cf:2:1: error: Failed to load module nope [ModuleLoadingException]",
		related: []string{"Could not find module nope: it is neither installed nor"},
		hint:    "did you mean nopf?",
	}, {
		name:    "the main file as a module",
		files:   tree("project.yml", manifest, "main.cf", "import __config__"),
		want:    "main.cf:1:1: error: Failed to load module __config__ [ModuleLoadingException]",
		related: []string{"the main file is not a module"},
	}, {
		name:    "no such module and none like it",
		files:   tree("project.yml", manifest, "main.cf", "import nope"),
		want:    "main.cf:1:1: error: Failed to load module nope [ModuleLoadingException]",
		related: []string{"Could not find module nope"},
		hint:    "put the module into a directory of the modulepath (libs, more)",
	}, {
		name:    "no such namespace",
		files:   tree("project.yml", manifest, "main.cf", "import a::other", "libs/a/module.yml", v1("a"), "libs/a/model/_init.cf", "", "libs/a/model/othr.cf", ""),
		want:    "main.cf:1:1: error: Failed to load module a::other [ModuleLoadingException]",
		related: []string{"could not locate module with name: a::other", "there is no file libs/a/model/other.cf"},
		hint:    "did you mean a::othr?",
	}, {
		name:    "a module without a model",
		files:   tree("project.yml", manifest, "main.cf", "import a", "libs/a/module.yml", v1("a")),
		want:    "main.cf:1:1: error: Failed to load module a [ModuleLoadingException]",
		related: []string{"could not locate module with name: a", "there is no file libs/a/model/_init.cf"},
		hint:    "create the file libs/a/model/_init.cf",
	}, {
		name:    "a module without metadata",
		files:   tree("project.yml", manifest, "main.cf", "import a", "libs/a/model/_init.cf", ""),
		want:    "main.cf:1:1: error: Failed to load module a [ModuleLoadingException]",
		related: []string{"The module found at libs/a is not a valid V1 module", "Metadata file libs/a/module.yml does not exist"},
	}, {
		name:    "a module with a bad version",
		files:   tree("project.yml", manifest, "main.cf", "import a", "libs/a/module.yml", "name: a\nversion: one\nlicense: x\n"),
		want:    "main.cf:1:1: error: Failed to load module a [ModuleLoadingException]",
		related: []string{"The module found at libs/a is not a valid V1 module", "version: Version one is not PEP440 compliant"},
		hint:    "correct libs/a/module.yml",
	}, {
		name:    "an installable module on the module path",
		files:   tree("project.yml", manifest, "main.cf", "import a", "libs/a/setup.cfg", "[metadata]\nname = inmanta-module-a", "libs/a/model/_init.cf", ""),
		want:    "main.cf:1:1: error: Failed to load module a [ModuleLoadingException]",
		related: []string{"Module at libs/a looks like a V2 module"},
		hint:    "run intendant project install",
	}, {
		name:    "no std",
		files:   tree("project.yml", manifest, "main.cf", ""),
		opts:    module.Options{Builtin: map[string]fs.FS{"other": tree()}},
		want:    "main.cf:1: error: Failed to load module std [ModuleLoadingException]",
		related: []string{"Could not find module std"},
	}, {
		name:  "an error in a module",
		files: tree("project.yml", manifest, "main.cf", "import a", "libs/a/module.yml", v1("a"), "libs/a/model/_init.cf", "x = )"),
		want:  "libs/a/model/_init.cf:1:5: error: Syntax error at token ) [ParserException]",
	}, {
		name:  "an error in the main file goes first",
		files: tree("project.yml", manifest, "main.cf", "import nope\nx = )"),
		want:  "main.cf:2:5: error: Syntax error at token ) [ParserException]",
	}, {
		name:  "a module path that leads out",
		files: tree("project.yml", "name: x\nmodulepath: ../libs\n", "main.cf", ""),
		want:  "project.yml:2:13: warning: modulepath: ../libs lies outside of the project and is ignored [ProjectConfigurationWarning]",
	}, {
		name:  "a download path of its own",
		files: tree("project.yml", "name: x\ndownloadpath: down\n", "main.cf", ""),
		want:  "project.yml:2:15: warning: The downloadpath down is not in the modulepath: modules stored there are not found [ProjectConfigurationWarning]",
	}, {
		name:  "a rule that makes no sense",
		files: tree("project.yml", "name: x\nrelation_precedence_policy:\n  - A.b after A.c\n", "main.cf", ""),
		want:  "project.yml:3:5: error: Metadata defined in project.yml is invalid: relation_precedence_policy: expected <type>.<relation> before <type>.<relation> [InvalidMetadata]",
	}, {
		name:  "a key of pip that nobody knows",
		files: tree("project.yml", "name: x\npip:\n  index_uri: y\n", "main.cf", ""),
		want:  "project.yml:3:3: warning: Found unexpected configuration value 'pip.index_uri' in project.yml [ProjectConfigurationWarning]",
	}, {
		name:  "a misspelt key",
		files: tree("project.yml", "name: x\nmodulpath: libs\nx-tool: 1\n", "main.cf", ""),
		want:  "project.yml:2:1: warning: Found unexpected configuration value 'modulpath' in project.yml [ProjectConfigurationWarning]",
	}, {
		name:  "a deprecated module",
		files: tree("project.yml", manifest, "main.cf", "import a", "libs/a/module.yml", v1("a")+"deprecated: true\n", "libs/a/model/_init.cf", ""),
		want:  "libs/a/module.yml: warning: Module a has been deprecated [ModuleDeprecationWarning]",
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, ds := load(t, test.files, test.opts)
			if len(ds) == 0 {
				t.Fatalf("Load = nothing wrong, want %s", test.want)
			}
			if got := ds[0].String(); !strings.HasSuffix(got, test.want) {
				t.Errorf("Load = %s\nwant %s", got, test.want)
			}
			for i, want := range test.related {
				if i >= len(ds[0].Related) || !strings.Contains(ds[0].Related[i].Message, want) {
					t.Errorf("related = %+v, want [%d] to contain %q", ds[0].Related, i, want)
				}
			}
			if !strings.Contains(ds[0].Hint, test.hint) {
				t.Errorf("hint = %q, want it to contain %q", ds[0].Hint, test.hint)
			}
		})
	}
}

func TestLoadSites(t *testing.T) {
	t.Parallel()
	project := tree("project.yml", manifest, "main.cf", "import inst\nimport edit::sub",
		"libs/inst/module.yml", v1("inst"), "libs/inst/model/_init.cf", "")
	sites := []module.Site{
		{Name: "venv", FS: tree(
			"inmanta_plugins/inst/model/_init.cf", "",
			"inmanta_plugins/inst/setup.cfg", "[metadata]\nname = inmanta-module-inst\nversion = 1.2.3\nlicense = MIT\n[egg_info]\ntag_build = dev\n"+
				"[options]\ninstall_requires =\n  inmanta-module-std\n  # comment\n  jinja2\n",
		)},
		{Name: "src/edit", FS: tree(
			"inmanta_plugins/edit/__init__.py", "",
			"model/_init.cf", "", "model/sub.cf", "",
			"pyproject.toml", "[project]\nname = \"inmanta-module-edit\"\nversion = \"0.1\"\n",
		)},
	}
	prog, ds := load(t, project, module.Options{Sites: sites})
	if len(ds) != 1 || ds[0].Severity != diag.Warning || !strings.Contains(ds[0].Message, "the V1 module will be ignored") {
		t.Errorf("Load = %s, want a warning about the V1 module", ds)
	}
	inst, edit := prog.Module("inst"), prog.Module("edit")
	if inst == nil || edit == nil {
		t.Fatalf("modules = %v", namespaces(prog))
	}
	want := module.Metadata{Name: "inst", Version: "1.2.3.dev", License: "MIT", Requires: []string{"inmanta-module-std", "jinja2"}}
	if d := cmp.Diff(want, inst.Metadata); d != "" || inst.Plugins != "." || inst.Dir != "venv/inmanta_plugins/inst" {
		t.Errorf("inst = %+v (-want +got):\n%s", inst, d)
	}
	if edit.Metadata.Version != "0.1" || edit.Plugins != "inmanta_plugins/edit" || edit.Files[1].Tree.Name != "src/edit/model/sub.cf" {
		t.Errorf("edit = %+v", edit)
	}
}

func TestReadManifest(t *testing.T) {
	t.Parallel()
	m, ds := module.ReadManifest(tree("project.yml", `
name: 5
description: d
author: a
author_email: e
license: l
copyright: c
modulepath: libs/
downloadpath: libs
repo:
  - https://host/{}.git
  - {url: "https://host/simple", type: package}
install_mode: master
requires: [std>=8, "a~=1.0"]
freeze_recursive: true
freeze_operator: "=="
relation_precedence_policy:
  - m::A.b before B.c
agent_install_dependency_modules: false
pip:
  index-url: https://i
  extra_index_url: [https://x]
  pre: true
  use_system_config: true
environment_settings: {auto_deploy: true}
unheard_of: 1
`))
	if len(ds) != 1 || ds[0].Severity != diag.Warning {
		t.Errorf("ReadManifest = %s, want one warning", ds)
	}
	pre := true
	want := &module.Manifest{
		Name: "5", Description: "d", Author: "a", AuthorEmail: "e", License: "l", Copyright: "c",
		ModulePath: []string{"libs"}, DownloadPath: "libs",
		Repos:       []module.Repo{{URL: "https://host/{}.git", Type: "git"}, {URL: "https://host/simple", Type: "package"}},
		InstallMode: "master", Requires: []string{"std>=8", "a~=1.0"}, FreezeRecursive: true, FreezeOperator: "==",
		Precedence: []module.Precedence{{
			First: module.RelationName{Entity: "m::A", Relation: "b"}, Then: module.RelationName{Entity: "B", Relation: "c"},
			Text:  "m::A.b before B.c",
			Range: diag.Range{File: "project.yml", Start: diag.Position{Line: 18, Column: 5}, End: diag.Position{Line: 18, Column: 22}},
		}},
		Pip:      module.Pip{IndexURL: "https://i", ExtraIndexURL: []string{"https://x"}, Pre: &pre, UseSystemConfig: true},
		Settings: map[string]any{"auto_deploy": true},
		Range:    diag.Range{File: "project.yml"},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Errorf("manifest (-want +got):\n%s", d)
	}
	if s := m.Precedence[0].First.String(); s != "m::A.b" {
		t.Errorf("First = %s", s)
	}
	for _, bad := range []string{
		"name: {}", "name: x\nrequires: {}", "name: x\nrequires: [[]]", "name: x\nfreeze_operator: '<'", "name: x\nfreeze_recursive: maybe",
		"name: x\npip: no", "name: x\nenvironment_settings: no", "name: x\nrelation_precedence_policy: no", "name: x\nrepo: [[]]", "name: x\nrepo: [{type: git}]",
	} {
		if _, ds := module.ReadManifest(tree("project.yml", bad)); !ds.HasErrors() || ds[0].Code != "InvalidMetadata" {
			t.Errorf("ReadManifest(%q) = %s, want InvalidMetadata", bad, ds)
		}
	}
}

type mapCache struct {
	mu   sync.Mutex
	m    map[module.CacheKey]module.CacheEntry
	hits int
}

func (c *mapCache) Get(k module.CacheKey) (module.CacheEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[k]
	if ok {
		c.hits++
	}
	return e, ok
}

func (c *mapCache) Put(k module.CacheKey, e module.CacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m[k] = e
}

func TestLoadCache(t *testing.T) {
	t.Parallel()
	cache := &mapCache{m: map[module.CacheKey]module.CacheEntry{}}
	project := tree("project.yml", manifest, "main.cf", "import std::testing\nx = \"\\.\"")
	first, warnings := load(t, project, module.Options{Cache: cache})
	second, again := load(t, project, module.Options{Cache: cache})
	if cache.hits != 3 || len(cache.m) != 3 {
		t.Errorf("hits = %d, entries = %d, want 3 and 3", cache.hits, len(cache.m))
	}
	if len(warnings) != 1 || !slices.Equal(namespaces(first), namespaces(second)) || cmp.Diff(warnings, again) != "" {
		t.Errorf("the cached load differs: %s, %s", warnings, again)
	}
	project["main.cf"] = &fstest.MapFile{Data: []byte("import std::testing")}
	if _, ds := load(t, project, module.Options{Cache: cache}); len(ds) != 0 || len(cache.m) != 4 {
		t.Errorf("a changed file came from the cache: %s", ds)
	}
}

func TestLoadCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := module.Load(ctx, tree("project.yml", manifest, "main.cf", ""), module.Options{Builtin: std})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Load = %v, want %v", err, context.Canceled)
	}
}

func TestLoadMain(t *testing.T) {
	t.Parallel()
	prog, ds := load(t, tree("project.yml", manifest, "other.cf", "x = 1"), module.Options{Main: "./other.cf"})
	if len(ds) != 0 || prog.Files[0].Tree.Name != "other.cf" || len(prog.Files) != 2 {
		t.Errorf("Load = %v %s", namespaces(prog), ds)
	}
}
