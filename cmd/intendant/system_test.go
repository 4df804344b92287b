package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/store/storetest"
)

// binary builds the real program, once for the whole package.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "intendant-bin")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "intendant")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// TestMain removes the program that the tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// system is a running server of the real program with a git repository to push to.
type system struct {
	t    testing.TB
	dir  string
	port string
	bin  string
	cmd  *exec.Cmd
	// env has further variables for the server's environment, as NAME=value.
	env []string
	log *bytes.Buffer
	api *api.Client
}

// newSystem starts a server with a repository. Variables are added to its environment, as NAME=value.
func newSystem(t testing.TB, variables ...string) *system {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "intendant-system") //nolint:usetesting // what is above t.TempDir is closed to PostgreSQL's account
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's account must pass through
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port for a moment
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	s := &system{t: t, dir: dir, port: port, bin: bin, env: variables}
	if s.api, err = api.NewClient(api.ClientConfig{BaseURL: "http://127.0.0.1:" + port}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server said:\n%s", s.log)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.git(dir, "init", "--quiet", "--bare", "--initial-branch=main", "infra.git")
	s.git(dir, "clone", "--quiet", "infra.git", "work")
	s.start()
	return s
}

func (s *system) start() {
	s.t.Helper()
	s.log = &bytes.Buffer{}
	s.cmd = exec.Command(s.bin, "server", "--state-dir", filepath.Join(s.dir, "state"), "--port", s.port, "--log-format", "json")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.log, s.log
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}, s.env...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.intendant("status", "--wait", "90s")
}

func (s *system) stop(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// intendant runs a command of the program against the server.
func (s *system) intendant(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("intendant %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *system) try(args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), s.bin, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "INTENDANT_CMDLINE_REST_TRANSPORT_HOST=127.0.0.1", "INTENDANT_CMDLINE_REST_TRANSPORT_PORT=" + s.port}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *system) git(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@localhost"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// push commits a model and pushes it; it returns what git and the repository's hooks said.
func (s *system) push(message, model string) string {
	s.t.Helper()
	work := filepath.Join(s.dir, "work")
	for name, text := range map[string]string{"project.yml": "name: infra\nmodulepath: libs\n", "main.cf": model} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git(work, "add", "-A")
	s.git(work, "commit", "--quiet", "-m", message)
	return s.git(work, "push", "origin", "HEAD:main")
}

// watch makes an environment that hears of pushes by a signed webhook.
func (s *system) watch() {
	s.t.Helper()
	secret := filepath.Join(s.dir, "hook.secret")
	if err := os.WriteFile(secret, []byte("a secret for tests\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	hook := fmt.Sprintf("#!/bin/sh\nexec %q hook --server http://127.0.0.1:%s --repository infra --secret-file %q\n", s.bin, s.port, secret)
	if err := os.WriteFile(filepath.Join(s.dir, "infra.git", "hooks", "post-receive"), []byte(hook), 0o700); err != nil { // git executes it
		s.t.Fatal(err)
	}
	s.intendant("repository", "create", "infra", "--url", "file://"+filepath.Join(s.dir, "infra.git"), "--provider", "generic", "--webhook-secret-file", secret, "--poll", "0")
	s.intendant("project", "create", "-n", "shop")
	s.intendant("environment", "create", "-n", "prod", "-p", "shop", "--repository", "infra", "-b", "main")
	all, err := s.api.Environments(s.t.Context(), false)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("environments: %v, %v", all, err)
	}
	s.api = s.api.In(all[0].ID)
}

// await follows the newest journey until it is as wanted.
func (s *system) await(what string, ok func(api.Journey) bool) api.Journey {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	var last api.Journey
	j, err := api.Await(ctx, s.api, []string{api.EventCompile, api.EventVersion, api.EventResource}, func(ctx context.Context) (api.Journey, bool, error) {
		list, err := s.api.Journeys(ctx, 1)
		if err != nil || len(list) == 0 {
			return api.Journey{}, false, err
		}
		last = list[0]
		return last, ok(last), nil
	})
	if err != nil {
		s.t.Fatalf("waiting for %s: %v; the newest journey is %+v", what, err, last)
	}
	return j
}

func (s *system) converged(message string) api.Journey {
	s.t.Helper()
	return s.await(message+" to converge", func(j api.Journey) bool {
		return j.Revision != nil && strings.HasPrefix(j.Revision.Message, message) && j.Phase == "converged"
	})
}

func (s *system) target(name string) string { return filepath.Join(s.dir, "target", name) }

func (s *system) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.target(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// files is a model that keeps some files with a greeting.
func (s *system) files(greeting string, names ...string) string {
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	group, err := user.LookupGroupId(me.Gid)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf(`host = std::Host(name="here", os=std::linux)
dir = std::Directory(host=host, path=%[1]q, mode=755, owner=%[2]q, group=%[3]q)
for name in ["%[5]s"]:
    std::File(host=host, path="%[1]s/{{name}}.txt", mode=640, owner=%[2]q, group=%[3]q, content="%[4]s from {{name}}\n", requires=dir)
end
`, filepath.Join(s.dir, "target"), me.Username, group.Name, greeting, strings.Join(names, `", "`))
}

func TestPushIsDeployed(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.watch()

	if out := s.push("first", s.files("hello", "one", "two")); !strings.Contains(out, "the server knows of refs/heads/main") {
		t.Errorf("the hook said %q", out)
	}
	s.converged("first")
	if got := s.read("one.txt"); got != "hello from one\n" {
		t.Errorf("one.txt = %q", got)
	}

	s.push("second", s.files("good morning", "one", "two"))
	j := s.converged("second")
	if got := s.read("two.txt"); got != "good morning from two\n" {
		t.Errorf("two.txt = %q", got)
	}
	if j.Version != 2 || j.Deployed != 3 || j.Total != 3 {
		t.Errorf("journey = %+v, want version 2 with 3 of 3 deployed", j)
	}
	diff, err := s.api.DiffVersions(t.Context(), 1, 2)
	if err != nil || len(diff) != 2 {
		t.Errorf("the versions differ in %d resources (%v), want the 2 files", len(diff), err)
	}
	steps, err := s.api.TraceSteps(t.Context(), j.Trace)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, step := range steps {
		kinds[step.Kind] = true
	}
	for _, kind := range []string{"delivery", "compile", "version", "action"} {
		if !kinds[kind] {
			t.Errorf("nothing of kind %s carries the push's trace id", kind)
		}
	}

	t.Run("a broken model names its place and changes nothing", func(t *testing.T) {
		s.push("broken", s.files("lost", "one", "two")+"oops = std::Fiel(host=host)\n")
		s.await("the failure", func(j api.Journey) bool {
			return j.Phase == "failed" && strings.HasPrefix(j.Revision.Message, "broken")
		})
		report := s.intendant("report", "show", "last", "-e", "prod")
		for _, want := range []string{"main.cf:6:8: error: could not find type std::Fiel in namespace std [TypeNotFoundException]", ">    6 | oops = std::Fiel(host=host)"} {
			if !strings.Contains(report, want) {
				t.Errorf("the report lacks %q:\n%s", want, report)
			}
		}
		if got := s.read("one.txt"); got != "good morning from one\n" {
			t.Errorf("one.txt = %q after a failed compile", got)
		}
		if out, err := s.try("environment", "wait", "prod"); err == nil || !strings.Contains(out, "failed") {
			t.Errorf("environment wait says %q, %v", out, err)
		}
	})

	t.Run("a repair mends what was changed by hand", func(t *testing.T) {
		if err := os.WriteFile(s.target("one.txt"), []byte("by hand\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		id := "std::File[here,path=" + s.target("one.txt") + "]"
		s.intendant("agent", "repair", "-e", "prod")
		_, err := api.Await(t.Context(), s.api, []string{api.EventResource}, func(ctx context.Context) (api.ResourceAction, bool, error) {
			actions, err := s.api.ResourceActions(ctx, id, 1)
			if err != nil || len(actions) == 0 || actions[0].Finished == nil {
				return api.ResourceAction{}, false, err
			}
			a := actions[0]
			return a, a.Change != nil && *a.Change == "updated" && a.Reason != "version 2 was released", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.read("one.txt"); got != "good morning from one\n" {
			t.Errorf("one.txt = %q after the repair", got)
		}
		if info, err := os.Stat(s.target("one.txt")); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the mode is %v, %v", info.Mode(), err)
		}
		list, err := s.api.Journeys(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, later := range list {
			if later.Version == 2 && !later.ConvergedAt.Equal(j.ConvergedAt.Time) {
				t.Errorf("the version converged at %s, and after the repair at %s: a repair is not part of the journey", j.ConvergedAt, later.ConvergedAt)
			}
		}
	})

	t.Run("a dry run changes nothing", func(t *testing.T) {
		before := s.read("one.txt")
		out := s.intendant("dryrun", "start", "1", "-e", "prod")
		if !strings.Contains(out, "modified std::File[here,path="+s.target("one.txt")+"]") {
			t.Errorf("the dry run says\n%s", out)
		}
		if got := s.read("one.txt"); got != before {
			t.Errorf("one.txt = %q after a dry run, was %q", got, before)
		}
	})

	t.Run("a forged webhook is refused", func(t *testing.T) {
		wrong := filepath.Join(s.dir, "wrong.secret")
		if err := os.WriteFile(wrong, []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), s.bin, "hook", "--server", "http://127.0.0.1:"+s.port, "--repository", "infra", "--secret-file", wrong)
		cmd.Stdin = strings.NewReader("0 1 refs/heads/main\n")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "could not tell the server") {
			t.Errorf("the hook said %q, %v", out, err)
		}
	})
}

// slow is a model of commands that take a while, one after the other.
// Two servers share a database. The one that does not have an environment sends its agents away, and takes it over when the other dies.
func TestSecondServerTakesOver(t *testing.T) {
	t.Parallel()
	database := "INTENDANT_DATABASE_URL=" + storetest.URL(t)
	one := newSystem(t, database)
	one.intendant("project", "create", "-n", "shop")
	one.intendant("environment", "create", "-n", "prod", "-p", "shop")
	all, err := one.api.Environments(t.Context(), false)
	if err != nil || len(all) != 1 {
		t.Fatalf("environments: %v, %v", all, err)
	}
	env := all[0].ID
	deploy := func(s *system, greeting string) {
		t.Helper()
		work := filepath.Join(one.dir, "work")
		for name, text := range map[string]string{"project.yml": "name: infra\n", "main.cf": one.files(greeting, "a")} {
			if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.intendant("export", work, "-e", "prod", "-d")
		s.api = s.api.In(env)
		s.eventually("the file is there", func() (bool, error) {
			text, err := os.ReadFile(one.target("a.txt"))
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return strings.HasPrefix(string(text), greeting), err
		})
	}
	deploy(one, "hello")
	two := newSystem(t, database)
	token, err := one.api.IssueAgentToken(t.Context(), "test", false)
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(t.Context(), two.bin, "agent", "--environment", env, "--server", "http://127.0.0.1:"+two.port, "--name", "elsewhere", "--state-dir", filepath.Join(two.dir, "agent"))
	agent.Env = []string{"HOME=" + two.dir, "PATH=" + os.Getenv("PATH"), "INTENDANT_AGENT_REST_TRANSPORT_TOKEN=" + token.Token}
	said, err := agent.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	refused := false
	for !refused && lines.Scan() {
		// It may be let in before the server has looked who owns the environment.
		refused = strings.Contains(lines.Text(), "another server owns the environment")
	}
	if !refused {
		t.Errorf("the agent was not sent away: %v", lines.Err())
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	one.stop(syscall.SIGKILL)
	deploy(two, "goodbye")
}

// A dry run comes before the first release: nothing is scheduled for the environment yet, and its agents are not up.
func TestDryRunBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.intendant("project", "create", "-n", "shop")
	s.intendant("environment", "create", "-n", "prod", "-p", "shop")
	s.intendant("environment", "setting", "set", "-e", "prod", "-k", "auto_deploy", "-o", "false")
	work := filepath.Join(s.dir, "work")
	for name, text := range map[string]string{"project.yml": "name: infra\n", "main.cf": s.files("hello", "a")} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.intendant("export", work, "-e", "prod")
	out := s.intendant("dryrun", "start", "-e", "prod", "1")
	if !strings.Contains(out, "a.txt") || strings.Contains(out, "agent_down") {
		t.Errorf("the dry run says:\n%s", out)
	}
	if _, err := os.Stat(s.target("a.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dry run has changed something: %v", err)
	}
}

func (s *system) slow(n int) string {
	var b strings.Builder
	b.WriteString("import exec\nhost = std::Host(name=\"here\", os=std::linux)\n")
	for i := range n {
		fmt.Fprintf(&b, "r%d = exec::Run(host=host, command=\"/bin/sh -c 'echo %d >> %s; sleep 0.2'\"", i, i, filepath.Join(s.dir, "ran"))
		if i > 0 {
			fmt.Fprintf(&b, ", requires=r%d", i-1)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

func TestKilledServerConverges(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.watch()
	const n = 15
	s.push("slow", s.slow(n))
	s.await("some resources", func(j api.Journey) bool { return j.Deployed >= 3 })
	s.stop(syscall.SIGKILL)
	s.start()
	s.converged("slow")

	text, err := os.ReadFile(filepath.Join(s.dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.FieldsSeq(string(text)) {
		count[line]++
	}
	repeats := 0
	for i := range n {
		switch c := count[strconv.Itoa(i)]; {
		case c == 0:
			t.Errorf("command %d never ran", i)
		case c > 2:
			t.Errorf("command %d ran %d times", i, c)
		case c == 2:
			repeats++
		}
	}
	if repeats > 1 {
		t.Errorf("%d commands ran twice: at most the one that was interrupted may", repeats)
	}
}

func TestSecondServerOnTheStateIsRefused(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	out, err := s.try("server", "--state-dir", filepath.Join(s.dir, "state"), "--port", "0")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(out, "another server is running") {
		t.Errorf("a second server said %q, %v", out, err)
	}
}
