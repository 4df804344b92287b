package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/intendant/intendant/api"
)

// write puts a file below the working copy, to be pushed.
func (s *system) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "work", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// refused waits until the compile of a push has failed and returns its report.
func (s *system) refused(message string) string {
	s.t.Helper()
	s.await(message+" to fail", func(j api.Journey) bool {
		return j.Phase == "failed" && j.Revision != nil && strings.HasPrefix(j.Revision.Message, message)
	})
	return s.intendant("report", "show", "last", "-e", "prod")
}

// repaired changes a file by hand, has the agent repair it, and returns what it has then.
func (s *system) repaired(id, name, hand string) string {
	s.t.Helper()
	if err := os.WriteFile(s.target(name), []byte(hand), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.intendant("agent", "repair", "-e", "prod")
	s.action(id, "the repair of "+hand, func(a api.ResourceAction) bool {
		changes, err := json.Marshal(a.Changes)
		return err == nil && a.Change != nil && *a.Change == "updated" && strings.Contains(string(changes), hand)
	})
	return s.read(name)
}

// Pushed code is used by the next task; code that is broken is told with its place, and what was there stays in force.
func TestPushedCodeReplacesTheOlder(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(python(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := newSystem(t)
	s.watch()
	for name, text := range moduleFiles {
		s.write("libs/keep/"+name, text)
	}
	const id = "keep::Text[here,name=one.txt]"
	model := fmt.Sprintf("import keep\nkeep::Text(agent=\"here\", name=\"one.txt\", path=%q, text=keep::shout(\"hello\"))\n", s.target("one.txt"))
	s.push("first", model)
	s.converged("first")

	handlers, plugins := moduleFiles["plugins/handlers.py"], moduleFiles["plugins/__init__.py"]
	s.write("libs/keep/plugins/handlers.py", strings.Replace(handlers, "f.write(resource.text)", "f.write(resource.text)\n        os.chmod(resource.path, 0o604)", 1))
	s.push("second", model)
	s.converged("second")
	if got := s.repaired(id, "one.txt", "by hand"); got != "HELLO" {
		t.Errorf("after the repair the file has %q", got)
	}
	if info, err := os.Stat(s.target("one.txt")); err != nil || info.Mode().Perm() != 0o604 {
		t.Errorf("the file's mode is not what the pushed code makes it: %v, %v", info.Mode(), err)
	}

	s.write("libs/keep/plugins/handlers.py", "\ndef broken(:\n    pass\n")
	s.push("syntax error", model)
	if report := s.refused("syntax error"); !strings.Contains(report, "libs/keep/plugins/handlers.py:2") || !strings.Contains(report, "SyntaxError") {
		t.Errorf("the report does not name the line of the syntax error:\n%s", report)
	}

	s.write("libs/keep/plugins/handlers.py", handlers)
	s.write("libs/keep/plugins/__init__.py", strings.Replace(plugins, "return text.upper()", "return text.upper()[99]", 1))
	s.push("failing plugin", model)
	report := s.refused("failing plugin")
	for _, want := range []string{"main.cf:2", "IndexError: string index out of range", "Traceback", "libs/keep/plugins/__init__.py", "return text.upper()[99]"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report of the failing plugin lacks %q:\n%s", want, report)
		}
	}
	if got := s.repaired(id, "one.txt", "once more by hand"); got != "HELLO" {
		t.Errorf("after two refused pushes a repair makes the file %q", got)
	}
}

// The agent that the server starts runs the handler programs of the server's settings.
func TestHandlerProgramOfTheServer(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(python(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := newSystem(t)
	s.stop(syscall.SIGTERM)
	handlers := filepath.Join(t.TempDir(), "handlers")
	if err := os.Mkdir(handlers, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(handlers, "shop"), "../../examples/shop/handler").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s.env = []string{"INTENDANT_AGENT_HANDLER_PROGRAMS=" + handlers}
	s.start()
	s.watch()
	if err := os.CopyFS(filepath.Join(s.dir, "work", "libs"), os.DirFS("../../examples/shop/libs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.target(""), 0o700); err != nil {
		t.Fatal(err)
	}
	model := func(purged bool) string {
		return fmt.Sprintf("import shop\ncorner = shop::Shop(name=\"corner\", stock=%q)\nshop::Shelf(shop=corner, name=\"bread\", width=80, purged=%v)\n", s.target("stock.json"), purged)
	}
	s.push("open", model(false))
	s.converged("open")
	if got := s.read("stock.json"); !strings.Contains(got, `"width": 80`) {
		t.Errorf("the stock is %s", got)
	}
	s.push("close", model(true))
	s.converged("close")
	if got := s.read("stock.json"); got != "{}\n" {
		t.Errorf("after purging the stock is %s", got)
	}
}
