package executor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/intendant/intendant/model"
)

// A surface case is a txtar archive: Python files of the module m (m/__init__.py is its root), and the file tasks, which says what
// an agent is asked to do and what comes of it. docs/python-api.md says which of its rules a case holds. A line of tasks that is not
// empty and no comment is one of
//
//	deploy|repair|dryrun|facts m::Type NAME {"attribute": value...} [requires {"ID": "status"...}] [reload]
//	= OUTCOME [CHANGE]         the outcome of the task before, and what was done
//	~ ATTRIBUTE CURRENT -> DESIRED   a change that it reports, in JSON; without one of these lines it reports none
//	@ NAME VALUE [stays]       a fact that it reports; without one of these lines it reports none
//	> TEXT                     a text that its log has, as "LEVEL message {kwargs}"
//	! TEXT                     a text that its log does not have
//
// A resource has the attribute name NAME, purged false and the defaults of the fields of [inmanta.resources.Resource]. $DIR in a line
// stands for a directory of the case.
const surfaceCases = "testdata/surface/*.txtar"

var (
	typesOfCode = regexp.MustCompile(`(?m)^@(?:resource|reference|mutator)\("([^"]+)"`)
	taskLine    = regexp.MustCompile(`^(deploy|repair|dryrun|facts) (\S+) (\S+) (\{.*?\})(?: requires (\{.*?\}))?( reload)?$`)
)

var taskKinds = map[string]model.TaskKind{
	"deploy": model.TaskDeploy, "repair": model.TaskRepair, "dryrun": model.TaskDryRun, "facts": model.TaskFacts,
}

// TestSurface runs handlers of our own that use each item of the Python surface through a real executor.
func TestSurface(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(surfaceCases)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", surfaceCases, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runSurface(t, txtar.Parse(text).Files)
		})
	}
}

func runSurface(t *testing.T, files []txtar.File) {
	t.Helper()
	mod := module{name: "m", files: map[string]string{}}
	tasks := ""
	for _, f := range files {
		if f.Name == "tasks" {
			tasks = string(f.Data)
			continue
		}
		name, ok := strings.CutPrefix(strings.TrimSuffix(f.Name, ".py"), "m/")
		if !ok {
			t.Fatalf("the file %s is neither one of m nor tasks", f.Name)
		}
		if name == "__init__" {
			name = ""
		}
		mod.files[strings.ReplaceAll(name, "/", ".")] = string(f.Data)
		for _, m := range typesOfCode.FindAllStringSubmatch(string(f.Data), -1) {
			mod.types = append(mod.types, m[1])
		}
	}
	b := start(t)
	b.code = codeOf(t, b.Server, nil, mod)
	done := 0
	var r model.Result
	var title string
	var changes, facts []string
	finish := func() {
		if done == 0 {
			return
		}
		var got []string
		for name, c := range r.Changes {
			got = append(got, fmt.Sprintf("%s %s -> %s", name, orNull(c.Current), orNull(c.Desired)))
		}
		slices.Sort(got)
		slices.Sort(changes)
		if !slices.Equal(got, changes) {
			t.Errorf("%s: the changes are %q, want %q", title, got, changes)
		}
		got = nil
		for _, f := range r.Facts {
			line := f.Name + " " + f.Value
			if !f.Expires {
				line += " stays"
			}
			got = append(got, line)
		}
		slices.Sort(got)
		slices.Sort(facts)
		if !slices.Equal(got, facts) {
			t.Errorf("%s: the facts are %q, want %q", title, got, facts)
		}
		changes, facts = nil, nil
	}
	dir := t.TempDir()
	for n, line := range strings.Split(tasks, "\n") {
		line = strings.ReplaceAll(strings.TrimSpace(line), "$DIR", dir)
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "", "#":
		case "=":
			outcome, change, _ := strings.Cut(rest, " ")
			if string(r.Outcome) != outcome || change != "" && string(r.Change) != change {
				t.Errorf("%s: the outcome is %s %s (%s), want %s; log:\n%s", title, r.Outcome, r.Change, r.Code, rest, logOf(r))
			}
		case "~":
			changes = append(changes, rest)
		case "@":
			facts = append(facts, rest)
		case ">":
			if !strings.Contains(logOf(r), rest) {
				t.Errorf("%s: the log does not have %q:\n%s", title, rest, logOf(r))
			}
		case "!":
			if strings.Contains(logOf(r), rest) {
				t.Errorf("%s: the log has %q:\n%s", title, rest, logOf(r))
			}
		default:
			finish()
			m := taskLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("line %d of tasks can not be read: %s", n+1, line)
			}
			done++
			title = fmt.Sprintf("line %d (%s)", n+1, line)
			r = b.Run(t, surfaceTask(t, b, m))
		}
	}
	finish()
	if done == 0 {
		t.Error("the case has no tasks")
	}
}

func surfaceTask(t *testing.T, b *bench, m []string) model.Task {
	t.Helper()
	var attributes map[string]any
	if err := json.Unmarshal([]byte(m[4]), &attributes); err != nil {
		t.Fatalf("%s: %v", m[4], err)
	}
	task := b.task(t, taskKinds[m[1]], m[2], m[3], attributes)
	if m[5] != "" {
		if err := json.Unmarshal([]byte(m[5]), &task.Requires); err != nil {
			t.Fatalf("%s: %v", m[5], err)
		}
		for id := range task.Requires {
			task.Intent.Requires = append(task.Intent.Requires, id)
		}
		slices.Sort(task.Intent.Requires)
	}
	task.Reload = m[6] != ""
	return task
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}
