package intendant_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const house = "github.com/intendant/intendant/"

// everything lets a package import the whole house.
const everything = "*"

// mayImport is the import table of docs/adr/0008-import-table.md. Packages below a listed one that have no row of their own, and
// external test packages, follow testMayImport.
var mayImport = map[string][]string{
	"cmd/intendant":           {everything},
	"config":                  {},
	"diag":                    {},
	"lazyregexp":              {},
	"slab":                    {},
	"exectest":                {},
	"model":                   {"diag"},
	"lang/value":              {},
	"lang/pyre":               {"lang/value"},
	"lang/syntax":             {"diag", "lang/value", "lang/pyre"},
	"lang/module":             {"diag", "lang/syntax"},
	"lang/check":              {"diag", "lang/syntax", "lang/module", "lang/value", "lang/pyre"},
	"lang/eval":               {"diag", "lang/syntax", "lang/check", "lang/value"},
	"lang":                    {"diag", "model", "lang/syntax", "lang/module", "lang/check", "lang/eval", "lang/value", "lang/std", "lang/template"},
	"lang/langtest":           {},
	"lang/langtest/versus":    {"lang/langtest"},
	"lang/differential":       {"diag", "lang"},
	"lang/draw":               {"diag"},
	"lang/template":           {"diag", "lang/value"},
	"lang/xref":               {"lang/syntax", "lang/value"},
	"lang/lsp":                {"diag", "lang", "lang/module", "lang/std", "lang/syntax", "lang/value", "lang/xref"},
	"lang/std":                {"diag", "lang/value", "lang/pyre", "lang/template", "lang/module"},
	"sdk":                     {"model"},
	"sdk/sdktest":             {"model", "sdk", "agents", "agents/hub", "agents/wire"},
	"sdk/pipe":                {},
	"sdk/program":             {"model", "sdk", "sdk/pipe"},
	"api":                     {},
	"confine":                 {},
	"python":                  {"model", "sdk", "sdk/pipe", "confine"},
	"python/executor":         {"model", "sdk", "python", "python/venv", "confine"},
	"python/venv":             {"model"},
	"python/compilehost":      {"diag", "model", "lang", "lang/value", "lang/module", "python"},
	"gitsync":                 {"model"},
	"modules":                 {"model", "diag", "lang/module", "python/venv"},
	"compilerd":               {"model", "lang", "diag", "python", "confine"},
	"scheduler/engine":        {"model"},
	"scheduler":               {"model", "scheduler/engine"},
	"agents/wire":             {"model"},
	"agents/hub":              {"model", "agents/wire"},
	"agents":                  {"model", "sdk", "python", "agents/wire"},
	"agents/builtin":          {"model", "sdk"},
	"agents/programs":         {"model", "sdk", "sdk/pipe", "sdk/program"},
	"store":                   {"model", "diag", "migrations", "store/sqlgen"},
	"store/sqlgen":            {},
	"store/embedded":          {},
	"store/embedded/mkbundle": {},
	"store/storetest":         {"model", "store", "store/embedded", "migrations"},
	"server":                  {"model", "api", "web", "diag"},
	"migrations":              {},
	"web":                     {},
	"examples":                {},
	"examples/shop/handler":   {"model", "sdk", "sdk/program"},
}

// leaves import nothing of the house, and every package may import them.
var leaves = []string{"lazyregexp", "slab"}

// pure packages think and do not act: besides the house's table they must not see these standard packages.
var pure = map[string][]string{
	"scheduler/engine": {"context", "sync", "log/slog", "math/rand", "math/rand/v2", "os", "net", "net/http"},
	"lang/eval":        {"os", "net", "net/http", "math/rand", "math/rand/v2", "log/slog"},
	"lang/check":       {"os", "net", "net/http", "math/rand", "math/rand/v2", "log/slog"},
	"lang/syntax":      {"os", "net", "net/http", "math/rand", "math/rand/v2", "log/slog"},
	"lang":             {"os", "net", "net/http", "log/slog"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportTable(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(p.ImportPath, house)
		if !ok {
			continue // the root package itself
		}
		seen++
		allowed, ok := mayImport[name]
		if !ok {
			t.Errorf("%s has no row in the import table: give it one, with an ADR", name)
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains(pure[name], i) {
				t.Errorf("%s is pure and must not import %s", name, i)
			}
			dep, ok := strings.CutPrefix(i, house)
			if !ok || slices.Contains(allowed, everything) || slices.Contains(allowed, dep) || slices.Contains(leaves, dep) {
				continue
			}
			t.Errorf("%s must not import %s", name, dep)
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were looked at", seen)
	}
}
