package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const compileModel = `
import std::testing
r = std::testing::NullResource(name="r", value=std::get_env("SURELY_NOT_SET"))
h = std::Host(name="h", os=std::linux)
std::ConfigFile(host=h, path="/etc/motd", content="hello")
std::print("printed")
`

// writeProject lays out a project and returns its directory.
func writeProject(t *testing.T, model string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"project.yml": "name: test\nmodulepath: libs\n", "main.cf": model} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runCompile runs the command and returns what it wrote and its exit status.
func runCompile(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := newCompileCommand(&globals{})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	var status1 *exitError
	switch {
	case err == nil:
	case errors.As(err, &status1):
		status = status1.code
		if status1.err != nil {
			errs.WriteString(status1.err.Error())
		}
	default:
		t.Fatal(err)
	}
	return out.String(), errs.String(), status
}

func TestCompileResult(t *testing.T) {
	t.Parallel()
	dir := writeProject(t, compileModel)
	result, files := filepath.Join(t.TempDir(), "result.json"), filepath.Join(t.TempDir(), "files")
	stdout, stderr, status := runCompile(t, dir, "--result", result, "--instances", "--files", files)
	if status != 0 || stdout != "printed\n" || !strings.Contains(stderr, "2 resources") {
		t.Fatalf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		OK          bool
		Diagnostics []any
		Resources   []struct {
			ID         string
			Attributes map[string]any
			Requires   []string
			State      string
		}
		Instances []struct {
			ID, Type, File string
			Line           int
			Attributes     map[string]any
		}
		Files  []string
		Digest string
		Inputs []struct{ Kind, Name string }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !r.OK || len(r.Diagnostics) != 0 || len(r.Resources) != 2 || r.Digest == "" || len(r.Inputs) != 1 {
		t.Fatalf("result %s", text)
	}
	for _, res := range r.Resources {
		switch {
		case strings.HasPrefix(res.ID, "std::testing::NullResource[internal,name=r]"):
			if res.State != "undefined" || res.Attributes["value"] != "<<undefined>>" || res.Requires == nil {
				t.Errorf("resource %+v", res)
			}
		case res.ID == "std::File[h,path=/etc/motd]":
			if res.State != "available" || res.Attributes["hash"] != r.Files[0] {
				t.Errorf("resource %+v", res)
			}
		default:
			t.Errorf("resource %+v", res)
		}
	}
	content, err := os.ReadFile(filepath.Join(files, r.Files[0]))
	if err != nil || string(content) != "hello" {
		t.Errorf("file %q, %v", content, err)
	}
	if r.Instances[len(r.Instances)-1].File == "" || r.Instances[len(r.Instances)-1].Line == 0 {
		t.Errorf("instance %+v", r.Instances[len(r.Instances)-1])
	}
	// The same again gives the same bytes, but for the durations.
	again := filepath.Join(t.TempDir(), "result.json")
	if _, _, status := runCompile(t, dir, "--result", again, "--files", files); status != 0 {
		t.Fatalf("status %d", status)
	}
	text2, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text2), `"digest":"`+r.Digest+`"`) {
		t.Errorf("digest %s is not in %s", r.Digest, text2)
	}
}

func TestCompileFaults(t *testing.T) {
	t.Parallel()
	dir := writeProject(t, "x = 1\nx = 2\n")
	result := filepath.Join(t.TempDir(), "result.json")
	_, stderr, status := runCompile(t, dir, "--result", result)
	if status != exitFailed || !strings.Contains(stderr, "main.cf:2") || !strings.Contains(stderr, "x = 2") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	text, err := os.ReadFile(result)
	if err != nil || !strings.Contains(string(text), `"ok":false`) || !strings.Contains(string(text), `"code":"DoubleSetException"`) {
		t.Errorf("result %s, %v", text, err)
	}
	for format, want := range map[string]string{"json": `"code":"DoubleSetException"`, "sarif": `"$schema"`} {
		if _, stderr, _ := runCompile(t, dir, "--format", format); !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", format, stderr)
		}
	}
}

func TestCompileUsage(t *testing.T) {
	t.Parallel()
	dir := writeProject(t, "")
	bad := filepath.Join(t.TempDir(), "inputs.json")
	if err := os.WriteFile(bad, []byte(`{"fact": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{filepath.Join(dir, "missing")},
		{dir, "--format", "xml"},
		{dir, "--inputs", filepath.Join(dir, "missing.json")},
		{dir, "--inputs", bad},
	} {
		if _, _, status := runCompile(t, args...); status != exitUsage {
			t.Errorf("%v: status %d", args, status)
		}
	}
	if _, _, status := runCompile(t, dir, "--result", filepath.Join(dir, "no", "such", "directory")); status != exitInternal {
		t.Errorf("status %d", status)
	}
}

func TestCompileInputs(t *testing.T) {
	t.Parallel()
	dir := writeProject(t, `
import std::testing
r = std::testing::NullResource(name="r")
std::print(std::getfact(r, "ip"))
std::print(std::environment())
std::print(std::timestamp())
`)
	inputs := filepath.Join(t.TempDir(), "inputs.json")
	text := `{"environment": {"id": "e1", "name": "n"}, "settings": {"now": "2001-09-09T01:46:40Z"}, "facts": {"std::testing::NullResource[internal,name=r]/ip": "10.0.0.1"}, "seed": "s"}`
	if err := os.WriteFile(inputs, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := runCompile(t, dir, "--inputs", inputs, "-e", "e2")
	if status != 0 || !strings.Contains(stdout, "10.0.0.1\n") || !strings.Contains(stdout, "e2\n") || !strings.Contains(stdout, "1000000000\n") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm"}, true},
		{nil, true},
		{map[string]string{"NO_COLOR": "1", "TERM": "xterm"}, false},
		{map[string]string{"TERM": "dumb"}, false},
	} {
		if got := colours(func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("colours(%v) = %v, want %v", test.env, got, test.want)
		}
	}
}
