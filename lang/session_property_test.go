package lang_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/check"
)

// snippets are pieces of a module: $M is its number, $O that of another one, $N a small number. The sound ones are accepted as
// long as they meet the right company.
var sound = []string{
	"# a comment on $N\n",
	"\n\n",
	"v$N = Item(name=\"$M-$N\", size=$N)\n",
	"t$N = f\"{n$M:>$N}\"\n",
	"for i in std::sequence($N):\n    Item(name=\"l$M-{{i}}\", size=i)\nend\n",
	"std::print([x for x in [1, 2, $N] if x > 1])\n",
	"implementation more$N for Item:\n    self.text = \"more $N {{self.name}}\"\nend\nimplement Item using more$N when size == $N\n",
	"typedef small$N as int matching self < $N\n",
	"entity Extra$N extends Item:\n    string tag = \"$N\"\n    small$N? little\nend\nimplement Extra$N using parents\n",
	"e$N = Extra$N(name=\"e$M-$N\", size=$N, tag=\"x\", little=0)\n",
	"Item.link$N [0:] -- m$O::Item.back$Mx$N [0:]\n",
	"v$N.link$N += m$O::Item[name=\"$O-$N\"]\n",
	"w$N = m$O::v$N\n",
	"u$N = m$O::Item(name=\"u$M-$N\", size=1, text=\"u\")\n",
	"import std::testing\nr$N = std::testing::NullResource(name=\"$M-$N\", value=n$M)\n",
	"index Item(size, name)\n",
	"h$N = std::Host(name=\"h$M\", os=std::linux)\n",
	"implementation shadow$N for Item:\n    for n$M in [$N]:\n        x = n$M\n    end\nend\nimplement Item using shadow$N\n",
	"std::equals($N, $N)\n",
	"implementation body$O for Item:\n    x = \"$N $N\"\n    if self.size == $N:\n        self.text = x\n    end\nend\nimplement Item using body$O\n",
	"std::print(\"$N\")\n",
}

// mainSnippets are pieces of the main file.
var mainSnippets = []string{
	"x$N = m$O::Item(name=\"main $N\", size=$N)\n",
	"m$O::Item(name=\"main $O $N\", size=1, text=f\"{m$O::n$O}\")\n",
	"y$N = [x.name for x in [x$N]]\n",
	"x$N = 1\n",
	"std::print(m$O::n$O)\n",
	"entity Own$N extends m$O::Item:\nend\nimplement Own$N using parents\nOwn$N(name=\"own\", size=1)\n",
	"for i in [1, $N]:\n    x$N = i\nend\n",
}

var faulty = []string{
	"d$N = std::Directory(host=std::Host(name=\"d$M\", os=std::linux), path=\"/$N\", mode=755, owner=\"o\", group=\"g\")\n",
	"n$M = \"set again\"\n",
	"broken$N = Item(nme=\"x\")\n",
	"missing$N = Nothing(name=\"x\")\n",
	"Item(name=\"$M-$N\", size=\"no number\")\n",
	"Item(name=\"unset $M\")\n",
	"import nowhere$N\n",
	"entity Item:\nend\n",
	"odd$N = = 1\n",
	"implement m$O::Item using nothing\n",
}

// growing is a project whose modules are made of snippets.
type growing struct {
	modules [][]string
	missing []bool // modules whose directory is not there
	main    []string
}

const moduleHead = `entity Item:
    string name
    int size
    string text = "none"
end
index Item(name)
implement Item using base
implementation base for Item:
end
n$M = "module $M"
`

// tree is the project as files.
func (g *growing) tree() fstest.MapFS {
	files := fstest.MapFS{"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")}}
	put := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	var main strings.Builder
	for m, parts := range g.modules {
		if g.missing[m] {
			continue
		}
		fmt.Fprintf(&main, "import m%d\n", m)
		dir := fmt.Sprintf("libs/m%d/", m)
		put(dir+"module.yml", fmt.Sprintf("name: m%d\nversion: 1\nlicense: none\n", m))
		var text strings.Builder
		for o := range g.modules {
			if o != m && slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, fmt.Sprintf("m%d::", o)) }) {
				fmt.Fprintf(&text, "import m%d\n", o)
			}
		}
		text.WriteString(strings.ReplaceAll(moduleHead, "$M", strconv.Itoa(m)))
		for _, p := range parts {
			text.WriteString(p)
		}
		put(dir+"model/_init.cf", text.String())
	}
	put("main.cf", main.String()+strings.Join(g.main, ""))
	return files
}

// edit changes one thing.
func (g *growing) edit(t *rapid.T) {
	m := rapid.IntRange(-1, len(g.modules)-1).Draw(t, "module")
	parts, from := &g.main, mainSnippets
	if m >= 0 {
		parts, from = &g.modules[m], sound
	}
	r := strings.NewReplacer("$M", strconv.Itoa(m), "$O", strconv.Itoa(rapid.IntRange(0, len(g.modules)-1).Draw(t, "other")),
		"$N", strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "number")))
	switch kind := rapid.IntRange(0, 11).Draw(t, "kind"); {
	case kind == 0 && m >= 0:
		g.missing[m] = !g.missing[m]
	case kind <= 3 && len(*parts) > 0:
		k := rapid.IntRange(0, len(*parts)-1).Draw(t, "at")
		*parts = slices.Delete(slices.Clone(*parts), k, k+1)
	case kind <= 5 && len(*parts) > 0: // another number in what is there, which leaves everything at its place
		k := rapid.IntRange(0, len(*parts)-1).Draw(t, "at")
		*parts = slices.Clone(*parts)
		(*parts)[k] = strings.ReplaceAll((*parts)[k], "\""+r.Replace("$N"), "\""+r.Replace("$O"))
	default:
		if kind == 11 {
			from = faulty
		}
		k := rapid.IntRange(0, len(*parts)).Draw(t, "at")
		*parts = slices.Insert(slices.Clone(*parts), k, r.Replace(rapid.SampledFrom(from).Draw(t, "snippet")))
	}
}

// TestSessionEqualsFresh edits projects at random and compares what a session makes of them with fresh compiles.
func TestSessionEqualsFresh(t *testing.T) {
	t.Parallel()
	accepted, reused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "modules")
		g := &growing{modules: make([][]string, n), missing: make([]bool, n)}
		s := lang.NewSession()
		var base *check.Entity
		for range rapid.IntRange(2, 12).Draw(t, "edits") {
			g.edit(t)
			files := g.tree()
			var printed, wantPrinted bytes.Buffer
			if rapid.Bool().Draw(t, "check first") {
				base, reused = checkSame(t, s, files, base, reused)
			}
			got := outcomeOf(t, s.Compile, files, &printed)
			want := outcomeOf(t, lang.Compile, files, &wantPrinted)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("the session differs from a fresh compile:\n%s", d)
			}
			if printed.String() != wantPrinted.String() {
				t.Fatalf("printed %q, want %q", &printed, &wantPrinted)
			}
			if !want.Diagnostics.HasErrors() {
				accepted++
			}
		}
	})
	if accepted < 100 || reused < 20 {
		t.Errorf("only %d of the projects had no faults, and %d kept what they declare: the comparison says little", accepted, reused)
	}
}

// checkSame compares the check of a session with that of a new one. It counts how often what is declared was kept, which shows in
// the entity that the check before gave.
func checkSame(t *rapid.T, s *lang.Session, files fs.FS, base *check.Entity, reused int) (*check.Entity, int) {
	p := lang.Project{FS: files}
	out, got, err := s.Check(t.Context(), p, lang.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := lang.NewSession().Check(t.Context(), p, lang.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the check of the session differs from a fresh one:\n%s", d)
	}
	if out.Program == nil {
		return base, reused
	}
	if out.Program.Base == base {
		reused++
	}
	return out.Program.Base, reused
}
