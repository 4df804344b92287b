package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
)

// setsModel has a file in each of some resource sets, and a shared directory.
func (s *system) setsModel(values map[string]string, empty ...string) string {
	var model strings.Builder
	model.WriteString(s.files("shared", "shared"))
	for _, set := range []string{"blue", "green"} {
		if value, ok := values[set]; ok {
			fmt.Fprintf(&model, `%[1]s = std::File(host=host, path="%[2]s/%[1]s.txt", mode=640, owner=dir.owner, group=dir.group, content="%[3]s", requires=dir)
std::ResourceSet(name="%[1]s", resources=[%[1]s])
`, set, filepath.Join(s.dir, "target"), value)
		}
	}
	for _, set := range empty {
		fmt.Fprintf(&model, "std::ResourceSet(name=%q, resources=[])\n", set)
	}
	return model.String()
}

// Rules: part-base-1, part-set-1, part-set-2, part-set-3, part-full-1.
func TestPartialExport(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.intendant("project", "create", "-n", "shop")
	s.intendant("environment", "create", "-n", "prod", "-p", "shop")
	list, err := s.api.Environments(t.Context(), false)
	if err != nil || len(list) != 1 {
		t.Fatalf("environments: %v, %v", list, err)
	}
	s.api = s.api.In(list[0].ID)
	work := filepath.Join(s.dir, "work")
	export := func(model string, args ...string) (string, error) {
		t.Helper()
		for name, text := range map[string]string{"project.yml": "name: infra\n", "main.cf": model} {
			if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return s.try(append([]string{"export", work, "-e", "prod", "-d"}, args...)...)
	}
	must := func(model string, args ...string) {
		t.Helper()
		if out, err := export(model, args...); err != nil {
			t.Fatalf("export %v: %v\n%s", args, err, out)
		}
	}
	deployed := func(what string, ok func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := api.Await(ctx, s.api, []string{api.EventResource, api.EventVersion}, func(context.Context) (bool, bool, error) { return true, ok(), nil })
		if err != nil {
			t.Fatalf("waiting until %s: %v", what, err)
		}
	}
	holds := func(name, text string) func() bool {
		return func() bool {
			b, err := os.ReadFile(s.target(name))
			return err == nil && string(b) == text
		}
	}
	refused := func(want, model string, args ...string) {
		t.Helper()
		if out, err := export(model, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("export %v says %q, %v; want %q", args, out, err, want)
		}
	}
	both := map[string]string{"blue": "1", "green": "1"}
	refused("export the whole model first", s.setsModel(both), "--partial")
	must(s.setsModel(both))
	deployed("both sets are there", func() bool { return holds("blue.txt", "1")() && holds("green.txt", "1")() })
	must(s.setsModel(map[string]string{"blue": "2"}), "--partial")
	deployed("blue is 2", holds("blue.txt", "2"))
	if blue, green := s.read("blue.txt"), s.read("green.txt"); blue != "2" || green != "1" {
		t.Errorf("blue is %q and green %q after a partial export of blue, want 2 and 1", blue, green)
	}
	refused("add --partial", s.setsModel(both), "--delete-resource-set", "green")
	refused("add --partial", s.setsModel(both), "--soft-delete")
	refused("resource set blue is to be removed and has resources", s.setsModel(map[string]string{"blue": "3"}), "--partial", "--delete-resource-set", "blue")
	must(s.setsModel(map[string]string{"blue": "4"}), "--partial", "--delete-resource-set", "blue", "--delete-resource-set", "green", "--soft-delete")
	deployed("blue is 4", holds("blue.txt", "4"))
	if out := s.intendant("resource", "list", "-e", "prod", "-o", "json"); strings.Contains(out, "green.txt") && !strings.Contains(out, "orphaned") {
		t.Errorf("green is still managed:\n%s", out)
	}
	must(s.setsModel(nil, "blue"), "--partial") // a set that the model empties goes
	if got := s.read("blue.txt"); got != "4" {
		t.Errorf("blue is %q, want 4", got)
	}
	out := s.intendant("version", "list", "-e", "prod", "-o", "json")
	if !strings.Contains(out, `"intendant:partial_base"`) && !strings.Contains(out, "Exported on the command line") {
		t.Errorf("the versions are %s", out)
	}
}
