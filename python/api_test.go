package python_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/intendant/intendant/python"
)

const apiFile = "../docs/python-api.md"

var (
	apiRule    = regexp.MustCompile(`(?ms)^- \[([a-z]+(?:-[a-z]+)*-\d+)\] (.*?)(?:\n\n|\n- |\z)`)
	apiSection = regexp.MustCompile(`(?m)^## (\d+) .*$`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	presentRow = regexp.MustCompile("(?m)^\\| `(inmanta[\\w.]*)` \\| (.*) \\|$")
)

// testDirs are the places of Go tests by how the document names them.
var testDirs = map[string]string{
	"python": ".", "compilehost": "compilehost", "executor": "executor", "venv": "venv", "intendant": "../cmd/intendant",
}

// publicNames lists what the modules of the package define without an underscore, by reading their sources.
const publicNames = `
import ast, json, os, sys
names = {}
def tool(value):  # type variables and loggers are nobody's business
    name = getattr(value, "func", None)
    return getattr(name, "id", getattr(name, "attr", "")) in ("TypeVar", "getLogger")
def collect(body, out):
    for n in body:
        if isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            out.append(n.name)
        elif isinstance(n, ast.Assign) and not tool(n.value):
            out.extend(t.id for t in n.targets if isinstance(t, ast.Name))
        elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
            out.append(n.target.id)
        elif isinstance(n, (ast.If, ast.Try)):
            collect(n.body, out)
            collect(n.orelse, out)
            for handler in getattr(n, "handlers", ()):
                collect(handler.body, out)
for where, dirs, files in os.walk("inmanta"):
    dirs[:] = [d for d in dirs if d != "__pycache__"]
    for file in files:
        if file.endswith(".py"):
            path = os.path.join(where, file)
            module = path[:-3].replace(os.sep, ".")
            if module.endswith(".__init__"):
                module = module[:-9]
            out = []
            with open(path, encoding="utf-8") as f:
                collect(ast.parse(f.read()).body, out)
            names[module] = sorted({n for n in out if not n.startswith("_")})
print(json.dumps(names))
`

// TestPythonAPI holds docs/python-api.md: each rule names tests that exist, each surface case is named by a rule, and each public
// name of the package is mentioned by a rule of the section of its module or listed as no part of the contract.
func TestPythonAPI(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	body, present, ok := strings.Cut(text, "\n## 17 ")
	if !ok {
		t.Fatalf("%s has no section 17 with the other names", apiFile)
	}
	rules, mentioned := apiRules(t, body)
	if rules < 150 {
		t.Errorf("only %d rules found", rules)
	}
	listed := map[string][]string{}
	for _, m := range presentRow.FindAllStringSubmatch(present, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			listed[m[1]] = append(listed[m[1]], span[1])
		}
	}
	for module, names := range publicNamesOf(t) {
		for _, name := range names {
			inRule, inList := mentioned[module][name], slices.Contains(listed[module], name)
			switch {
			case !inRule && !inList:
				t.Errorf("%s.%s is neither mentioned by a rule of a section about %s nor listed in section 17 of %s", module, name, module, apiFile)
			case inRule && inList:
				t.Errorf("%s.%s is mentioned by a rule and listed in section 17 of %s", module, name, apiFile)
			}
		}
		for _, name := range listed[module] {
			if !slices.Contains(names, name) {
				t.Errorf("section 17 of %s lists %s.%s, which the package does not have", apiFile, module, name)
			}
		}
		delete(listed, module)
	}
	for module := range listed {
		t.Errorf("section 17 of %s lists the module %s, which the package does not have", apiFile, module)
	}
}

// apiRules checks the rules and returns how many there are, and the identifiers in code that they have, by module.
func apiRules(t *testing.T, body string) (int, map[string]map[string]bool) {
	t.Helper()
	exists := apiTests(t)
	named := map[string]bool{}
	seen := map[string]bool{}
	mentioned := map[string]map[string]bool{}
	heads := apiSection.FindAllStringIndex(body, -1)
	for i, h := range heads {
		end := len(body)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		var modules []string
		for _, span := range codeSpan.FindAllStringSubmatch(body[h[0]:h[1]], -1) {
			modules = append(modules, span[1])
		}
		section := body[h[1]:end]
		for {
			m := apiRule.FindStringSubmatchIndex(section)
			if m == nil {
				break
			}
			id, rule := section[m[2]:m[3]], section[m[4]:m[5]]
			section = section[m[5]:]
			if seen[id] {
				t.Errorf("the rule %s stands twice in %s", id, apiFile)
			}
			seen[id] = true
			at := strings.LastIndex(rule, "→")
			if at < 0 {
				t.Errorf("the rule %s names no test", id)
				continue
			}
			tests := codeSpan.FindAllStringSubmatch(rule[at:], -1)
			if len(tests) == 0 {
				t.Errorf("the rule %s names no test", id)
			}
			for _, test := range tests {
				named[test[1]] = true
				if !exists[test[1]] {
					t.Errorf("the rule %s names the test %s, which does not exist", id, test[1])
				}
			}
			for _, span := range codeSpan.FindAllStringSubmatch(rule[:at], -1) {
				for _, name := range identifier.FindAllString(span[1], -1) {
					for _, module := range modules {
						if mentioned[module] == nil {
							mentioned[module] = map[string]bool{}
						}
						mentioned[module][name] = true
					}
				}
			}
		}
	}
	for test := range exists {
		if strings.Contains(test, "/") && !named[test] {
			t.Errorf("no rule of %s names the case %s", apiFile, test)
		}
	}
	return len(seen), mentioned
}

// apiTests are the tests that a rule can name: cases, tests in Go, and tests of test_package.
func apiTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for kind, dir := range map[string]string{"compile": "compilehost", "agent": "executor"} {
		files, err := filepath.Glob(dir + "/testdata/surface/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("no cases in %s: %v", dir, err)
		}
		for _, f := range files {
			tests[kind+"/"+strings.TrimSuffix(filepath.Base(f), ".txtar")] = true
		}
	}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for name, dir := range testDirs {
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", dir, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range function.FindAllStringSubmatch(string(text), -1) {
				tests[name+"."+m[1]] = true
			}
		}
	}
	text, err := os.ReadFile("tests/test_package.py")
	if err != nil {
		t.Fatal(err)
	}
	class := ""
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "class "); ok {
			class = identifier.FindString(rest)
		}
		if rest, ok := strings.CutPrefix(line, "    def test_"); ok {
			tests["test_package."+class+".test_"+identifier.FindString(rest)] = true
		}
	}
	return tests
}

func publicNamesOf(t *testing.T) map[string][]string {
	t.Helper()
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.CommandContext(t.Context(), interpreter, "-I", "-c", publicNames).Output()
	if err != nil {
		t.Fatal(err)
	}
	var names map[string][]string
	if err := json.Unmarshal(out, &names); err != nil {
		t.Fatal(err)
	}
	if len(names) < 30 {
		t.Fatalf("only %d modules found", len(names))
	}
	return names
}
