package module_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang/module"
)

func TestLockRoundTrip(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 64)
	lock := &module.Lock{
		Asked: digest,
		Modules: []module.LockedModule{
			{Name: "web", Version: "1.0", Layout: module.LayoutV1, Source: "https://host/web.git", Ref: "refs/tags/1.0", Commit: strings.Repeat("b", 40), Digest: digest, RequiredBy: []string{"the project: web~=1.0"}},
			{Name: "dns", Version: "0.1", Layout: module.LayoutV2, Source: module.SourceEditable, Path: "libs/dns"},
		},
		Python: &module.LockedPython{
			Version: "3.12.1", Platform: "linux-x86_64", Requirements: []string{"jinja2"},
			Packages: []module.LockedPackage{{Name: "jinja2", Version: "3.1"}, {Name: "email-validator", Version: "2.0", File: "e-2.0.whl", SHA256: strings.Repeat("c", 64)}},
		},
	}
	text, err := lock.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := module.ReadLock(tree(module.LockFile, string(text)))
	if err != nil {
		t.Fatalf("ReadLock: %v\n%s", err, text)
	}
	lock.Version = 1
	slices.Reverse(lock.Modules)
	slices.Reverse(lock.Python.Packages)
	if d := cmp.Diff(lock, got); d != "" {
		t.Errorf("the lock (-want +got):\n%s", d)
	}
	if again, err := got.Encode(); err != nil || string(again) != string(text) {
		t.Errorf("encoding it again gives another text: %v\n%s", err, again)
	}
	if l, err := module.ReadLock(tree("x", "")); l != nil || err != nil {
		t.Errorf("ReadLock without a lock = %v, %v; want nothing", l, err)
	}
}

func TestLockRefusals(t *testing.T) {
	t.Parallel()
	head := "version: 1\nasked: sha256:" + strings.Repeat("a", 64) + "\n"
	entry := func(pairs string) string {
		return head + "modules:\n  - {name: x, version: '1', layout: v1, " + pairs + "}\n"
	}
	commit, digest := "commit: "+strings.Repeat("b", 40), "digest: 'sha256:"+strings.Repeat("c", 64)+"'"
	if _, err := module.ParseLock([]byte(entry("source: 'https://h/x', " + commit + ", " + digest))); err != nil {
		t.Fatalf("ParseLock of a good lock: %v", err)
	}
	for name, tc := range map[string][2]string{
		"empty":         {"", "empty"},
		"no YAML":       {"[", "line"},
		"unknown key":   {head + "modles: []\n", "modles"},
		"other version": {strings.Replace(head, "1", "2", 1), "version 2"},
		"no digest":     {"version: 1\n", "asked"},
		"odd name":      {head + "modules: [{name: ../x}]\n", "no name"},
		"odd layout":    {head + "modules: [{name: x, layout: v3}]\n", "layout"},
		"no source":     {entry("path: x"), "no source"},
		"short commit":  {entry("source: 'https://h/x', commit: abc, " + digest), "commit"},
		"no tree":       {entry("source: 'https://h/x', " + commit), "digest"},
		"path upwards":  {entry("source: editable, path: ../x"), "checkout"},
		"path absolute": {entry("source: editable, path: /x"), "checkout"},
		"other path":    {entry("source: editable, path: libs/y"), "checkout"},
		"twice":         {entry("source: builtin") + "  - {name: x, version: '1', layout: v1, source: builtin}\n", "twice"},
		"package":       {head + "python: {version: '3', platform: p, requirements: [], packages: [{name: '-r x', version: '1'}]}\n", "package"},
		"package hash":  {head + "python: {version: '3', platform: p, requirements: [], packages: [{name: x, version: '1', sha256: zz}]}\n", "package"},
	} {
		if l, err := module.ParseLock([]byte(tc[0])); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: ParseLock = %+v, %v; want an error that says %q", name, l, err, tc[1])
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	show := func(d module.Description) string {
		var out []string
		for _, r := range d.Modules {
			out = append(out, "module "+r.Name+" "+r.Constraint.String())
		}
		for _, r := range d.Packages {
			out = append(out, "package "+r.Name+" "+r.Constraint.String())
		}
		return strings.Join(append([]string{d.Name, d.Version, string(d.Layout)}, out...), "|")
	}
	for name, tc := range map[string]struct {
		tree fs.FS
		want string
	}{
		"v1": {
			tree("module.yml", "name: web\nversion: 1.2\nlicense: x\nrequires:\n  - std>=1\n  - dns\n", "requirements.txt", "jinja2>=3 # for pages\n\n# no\ndns\n", "model/_init.cf", ""),
			"web|1.2|v1|module std >=1|module dns |package jinja2 >=3|package dns ",
		},
		"setup.cfg": {
			tree("setup.cfg", "[metadata]\nname = inmanta-module-my-web\nversion = 2.0\nlicense = x\n[egg_info]\ntag_build = dev7\n[options]\ninstall_requires =\n  inmanta-module-std>=8\n  requests\n", "model/_init.cf", ""),
			"my_web|2.0.dev7|v2|module std >=8|package requests ",
		},
		"pyproject": {
			tree("pyproject.toml", "[project]\nname = \"inmanta-module-web\"\nversion = \"3.0\"\ndependencies = [\n  \"inmanta-module-dns~=1.0\", # names\n  'x; python_version < \"3\"',\n]\n", "inmanta_plugins/web/model/_init.cf", ""),
			"web|3.0|v2|module dns ~=1.0|package x ",
		},
	} {
		d, err := module.Describe(tc.tree)
		if err != nil || show(d) != tc.want {
			t.Errorf("%s: Describe = %s, %v; want %s", name, show(d), err, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		tree fs.FS
		says string
	}{
		"nothing":        {tree("README", ""), "neither module.yml"},
		"no model":       {tree("module.yml", v1("web")), "no model/_init.cf"},
		"bad module.yml": {tree("module.yml", "name: web"), "version"},
		"bad name":       {tree("module.yml", "name: ../web\nversion: 1\nlicense: x\n", "model/_init.cf", ""), "no name"},
		"bad requires":   {tree("module.yml", v1("web")+"requires: ['std 8']\n", "model/_init.cf", ""), "operator"},
		"pip options":    {tree("module.yml", v1("web"), "requirements.txt", "jinja2\n-r more.txt\n", "model/_init.cf", ""), "line 2"},
	} {
		if d, err := module.Describe(tc.tree); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: Describe = %+v, %v; want an error that says %q", name, d, err, tc.says)
		}
	}
}

func TestFetchedAndMissing(t *testing.T) {
	t.Parallel()
	project := tree(
		"project.yml", manifest, "main.cf", "import a\nimport b\nimport c\nimport d::x\nimport gone::deep\n",
		"libs/a/module.yml", v1("a"), "libs/a/model/_init.cf", "import lost\n",
	)
	opts := module.Options{
		Builtin: std, Sites: []module.Site{{Name: "c@2", FS: tree("inmanta_plugins/c/__init__.py", "", "model/_init.cf", "", "setup.cfg", "[metadata]\nname = inmanta-module-c\n")}},
		Fetched: []module.Place{
			{Name: "a", Dir: "a@1", FS: tree("module.yml", v1("a"), "model/_init.cf", "import wrong\n")},
			{Name: "b", Dir: "b@1", FS: tree("module.yml", v1("b"), "model/_init.cf", "import a\n")},
			{Name: "d", Dir: "d@1", FS: tree("module.yml", v1("d"), "model/_init.cf", "")},
		},
	}
	missing, ds, err := module.Missing(t.Context(), project, opts)
	if err != nil || len(ds) > 0 {
		t.Fatalf("Missing: %v, %v", ds, err)
	}
	// The checkout in the project goes before the fetched module of the same name; d::x is missing in a module that is there.
	if d := cmp.Diff([]string{"gone", "lost"}, missing); d != "" {
		t.Errorf("missing modules (-want +got):\n%s", d)
	}
	if missing, _, err = module.Missing(t.Context(), tree("project.yml", manifest, "main.cf", ""), opts, "a", "none"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"none", "wrong"}, missing); d != "" {
		t.Errorf("missing modules of named ones (-want +got):\n%s", d)
	}
	project["main.cf"].Data = []byte("import b\nimport c\n")
	project["libs/a/model/_init.cf"].Data = nil
	prog, ds := load(t, project, opts)
	if len(ds) > 0 {
		t.Fatalf("Load: %s", ds)
	}
	want := []string{"__config__ main.cf", "c c@2/model/_init.cf", "std {std}/model/_init.cf", "b b@1/model/_init.cf", "a libs/a/model/_init.cf"}
	if d := cmp.Diff(want, namespaces(prog)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}
