package builtin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

// host starts a server and an agent with the built-in handlers.
func host(t testing.TB, cfg builtin.Config) *sdktest.Server {
	t.Helper()
	s := sdktest.NewServer(t)
	s.StartAgent(t, registry(t, cfg), []model.AgentName{"host"})
	s.AwaitUp(t, "host", 1)
	return s
}

func deploy(t testing.TB, s *sdktest.Server, r model.ResourceID, attributes map[string]any) model.Result {
	t.Helper()
	return s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, r, attributes)))
}

func messages(r model.Result) string {
	var b strings.Builder
	for _, l := range r.Log {
		fmt.Fprintf(&b, "%s %s\n", l.Level, l.Message)
	}
	return b.String()
}

func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestFileNeverFollowsLinks(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "path")
	write(t, victim, "precious\n", 0o600)
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]any{"path": path, "hash": s.AddFile([]byte("new\n")), "mode": 644}
	r := deploy(t, s, id("std::File", "path", path), attributes)
	if r.Outcome != model.OutcomeDeployed || r.Change != model.ChangeUpdated {
		t.Fatalf("deploy is %s, %s; %s", r.Outcome, r.Change, messages(r))
	}
	if got := read(t, victim); got != "precious\n" {
		t.Errorf("the link's target became %q", got)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || read(t, path) != "new\n" {
		t.Errorf("the path is %v, %v, want a file with the new content", info, err)
	}
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the link's target has mode %v, %v, want 0600", info.Mode(), err)
	}

	// Purging a link removes the link.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	r = deploy(t, s, id("std::File", "path", link), map[string]any{"path": link, "purged": true})
	if r.Outcome != model.OutcomeDeployed || read(t, victim) != "precious\n" {
		t.Errorf("purging the link is %s; %s", r.Outcome, messages(r))
	}
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
}

func TestFileFaults(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	dir := t.TempDir()
	hash := s.AddFile([]byte("x"))
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	write(t, plain, "x", 0o644)
	tests := map[string]struct {
		attributes map[string]any
		code       string
		retry      model.RetryHint
		message    string
	}{
		"parent missing":     {map[string]any{"path": filepath.Join(dir, "no/such"), "hash": hash}, "parent-missing", "", "does not exist"},
		"parent is a file":   {map[string]any{"path": filepath.Join(plain, "sub"), "hash": hash}, "parent-missing", "", "is not a directory"},
		"is a directory":     {map[string]any{"path": dir, "hash": hash}, "handler-error", model.RetryPerson, "a directory; remove it first"},
		"is a pipe":          {map[string]any{"path": pipe, "hash": hash}, "handler-error", model.RetryPerson, "a pipe"},
		"relative":           {map[string]any{"path": "etc/motd", "hash": hash}, "invalid-resource", model.RetryPerson, "absolute"},
		"no content":         {map[string]any{"path": filepath.Join(dir, "n")}, "invalid-resource", model.RetryPerson, "neither a hash"},
		"bad mode":           {map[string]any{"path": filepath.Join(dir, "m"), "hash": hash, "mode": 648}, "invalid-resource", model.RetryPerson, "mode 648"},
		"mode too large":     {map[string]any{"path": filepath.Join(dir, "m"), "hash": hash, "mode": 17777}, "invalid-resource", model.RetryPerson, "mode 17777"},
		"unknown owner":      {map[string]any{"path": filepath.Join(dir, "o"), "hash": hash, "owner": "no-such-user"}, "handler-error", "", "no such user"},
		"unknown group":      {map[string]any{"path": filepath.Join(dir, "g"), "hash": hash, "group": "no-such-group"}, "handler-error", "", "no such group"},
		"content is unknown": {map[string]any{"path": filepath.Join(dir, "c"), "hash": strings.Repeat("0", 40)}, "handler-error", "", "does not have it"},
		"hash is no hash":    {map[string]any{"path": filepath.Join(dir, "h"), "hash": "../../etc/passwd"}, "invalid-resource", model.RetryPerson, "SHA-1"},
	}
	for name, test := range tests {
		path, _ := test.attributes["path"].(string)
		r := deploy(t, s, id("std::File", "path", path), test.attributes)
		if r.Outcome != model.OutcomeFailed || r.Code != test.code || r.Retry != test.retry {
			t.Errorf("%s: %s (%s, %q), want failed (%s, %q); %s", name, r.Outcome, r.Code, r.Retry, test.code, test.retry, messages(r))
		}
		if !strings.Contains(messages(r), test.message) {
			t.Errorf("%s: log is %q, want %q in it", name, messages(r), test.message)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".intendant-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestFileKeepsWhatIsNotSaid(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old", 0o640)
	r := deploy(t, s, id("fs::File", "path", path), map[string]any{"path": path, "hash": s.AddFile([]byte("new")), "mode": nil, "owner": nil})
	if r.Outcome != model.OutcomeDeployed || read(t, path) != "new" {
		t.Fatalf("deploy is %s; %s", r.Outcome, messages(r))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, want 0640 as before", info.Mode())
	}
}

func TestFileContents(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty": {}, "binary": {0, 1, 2, 0xff, 0xfe}, "large": bytes.Repeat([]byte("0123456789abcdef"), 1<<18),
	} {
		path := filepath.Join(dir, name)
		r := deploy(t, s, id("std::File", "path", path), map[string]any{"path": path, "hash": s.AddFile(content), "permissions": 600})
		if r.Outcome != model.OutcomeDeployed || read(t, path) != string(content) {
			t.Errorf("%s: %s; %s", name, r.Outcome, messages(r))
		}
	}
	path := filepath.Join(dir, "inline")
	if r := deploy(t, s, id("std::File", "path", path), map[string]any{"path": path, "content": "text"}); read(t, path) != "text" {
		t.Errorf("inline content: %s; %s", r.Outcome, messages(r))
	}
}

func TestFileDryRunShowsTheText(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	dir := t.TempDir()
	dry := func(name, current, desired string, mode int) model.Result {
		path := filepath.Join(dir, name)
		write(t, path, current, 0o644)
		return s.Run(t, s.NewTask(model.TaskDryRun, sdktest.NewIntent(t, id("std::File", "path", path), map[string]any{
			"path": path, "hash": s.AddFile([]byte(desired)), "mode": mode,
		})))
	}
	r := dry("open", "a\nb\nc\n", "a\nB\nc\n", 644)
	if !strings.Contains(messages(r), "\n-b\n+B\n") {
		t.Errorf("log is %q, want the difference in it", messages(r))
	}
	if string(r.Changes["hash"].Current) == "null" || len(r.Changes) != 1 {
		t.Errorf("difference is %v, want that of the hash alone", r.Changes)
	}
	r = dry("secret", "password: old\n", "password: new\n", 600)
	if log := messages(r); strings.Contains(log, "password") {
		t.Errorf("log is %q: the content of a private file is shown", log)
	}
	r = dry("binary", "a\n", "\x00\x01", 644)
	if log := messages(r); !strings.Contains(log, "not a small text") {
		t.Errorf("log is %q, want a note", log)
	}
}

func TestModeAndOwnersInTheDiff(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "x", 0o600)
	r := s.Run(t, s.NewTask(model.TaskDryRun, sdktest.NewIntent(t, id("std::File", "path", path), map[string]any{
		"path": path, "hash": s.AddFile([]byte("x")), "mode": 644, "owner": "nobody-here", "group": fmt.Sprint(os.Getgid()),
	})))
	want := map[string]string{"mode": "600 644", "owner": ""}
	if len(r.Changes) != len(want) {
		t.Errorf("difference is %v, want mode and owner", r.Changes)
	}
	if got := string(r.Changes["mode"].Current) + " " + string(r.Changes["mode"].Desired); got != want["mode"] {
		t.Errorf("mode is %s, want %s", got, want["mode"])
	}
	var name string
	if err := json.Unmarshal(r.Changes["owner"].Desired, &name); err != nil || name != "nobody-here" {
		t.Errorf("owner is %s", r.Changes["owner"].Desired)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(full, "file"), "x", 0o644)
	r := deploy(t, s, id("std::Directory", "path", full), map[string]any{"path": full, "purged": true})
	if r.Outcome != model.OutcomeFailed || r.Code != "not-empty" {
		t.Errorf("purging a directory with files is %s (%s), want failed (not-empty)", r.Outcome, r.Code)
	}
	if read(t, filepath.Join(full, "file")) != "x" {
		t.Errorf("what is in the directory is gone")
	}
	file := filepath.Join(full, "file")
	r = deploy(t, s, id("std::Directory", "path", file), map[string]any{"path": file, "mode": 755})
	if r.Outcome != model.OutcomeFailed || !strings.Contains(messages(r), "no directory but a file") {
		t.Errorf("a file in the way: %s; %s", r.Outcome, messages(r))
	}
	deep := filepath.Join(dir, "a/b")
	r = deploy(t, s, id("std::Directory", "path", deep), map[string]any{"path": deep, "mode": 755})
	if r.Outcome != model.OutcomeFailed || r.Code != "parent-missing" {
		t.Errorf("without a parent: %s (%s)", r.Outcome, r.Code)
	}
}

func TestSymlinkDoesNotReplaceOtherThings(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "x", 0o644)
	for _, purged := range []bool{false, true} {
		r := deploy(t, s, id("std::Symlink", "target", path), map[string]any{"source": "/etc", "target": path, "purged": purged})
		if r.Outcome != model.OutcomeFailed || read(t, path) != "x" {
			t.Errorf("purged %v: %s; %s", purged, r.Outcome, messages(r))
		}
	}
}
