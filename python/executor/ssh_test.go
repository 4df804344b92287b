package executor_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
)

// machine is an SSH server on this one.
type machine struct {
	dir, port, user string
	key             string
	log             *bytes.Buffer
}

// newMachine starts an SSH server that ends with the test. It takes one key.
func newMachine(t testing.TB) *machine {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		if sshd, err = exec.LookPath("/usr/sbin/sshd"); err != nil {
			t.Fatalf("the test needs an SSH server: install openssh-server (%v)", err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "intendant-ssh") //nolint:usetesting // sshd is particular about who owns what is above its files
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &machine{dir: dir, user: me.Username, key: filepath.Join(dir, "key"), log: &bytes.Buffer{}}
	for _, name := range []string{"key", "other", "hostkey"} {
		out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	public, err := os.ReadFile(m.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "authorized"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	config := strings.Join([]string{
		"ListenAddress 127.0.0.1:" + m.port, "HostKey " + filepath.Join(dir, "hostkey"), "AuthorizedKeysFile " + filepath.Join(dir, "authorized"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes", "",
	}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.Stderr = m.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	await(t, "the SSH server", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+m.port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return m
}

func (m *machine) uri() string {
	return "ssh://" + m.user + "@127.0.0.1:" + m.port + "?retries=2&retry_wait=0.1"
}

// known writes a file of known hosts with this machine's key, or another one's.
func (m *machine) known(t testing.TB, key string) string {
	t.Helper()
	public, err := os.ReadFile(filepath.Join(m.dir, key+".pub"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(name, []byte("[127.0.0.1]:"+m.port+" "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// remote is a handler that works on a machine with everything that IO has.
const remote = `
    def read_resource(self, ctx, resource):
        io, base = self._io, resource.value
        ctx.info("remote: %(r)s", r=io.is_remote())
        path = base + "/a file with 'quotes' and $signs"
        assert not io.file_exists(path)
        io.put(path, b"text\x00\xff\n")
        assert io.file_exists(path) and io.read_binary(path) == b"text\x00\xff\n"
        io.chmod(path, "604")
        stat = io.file_stat(path)
        assert stat["permissions"] == 604 and stat["owner"] and stat["group"], stat
        io.chown(path, stat["owner"], stat["group"])
        import hashlib
        assert io.hash_file(path) == hashlib.sha1(b"text\x00\xff\n").hexdigest()
        io.symlink(path, base + "/link")
        assert io.is_symlink(base + "/link") and not io.is_symlink(path) and io.readlink(base + "/link") == path
        io.remove(base + "/link")
        io.mkdir(base + "/dir")
        io.put(base + "/dir/x", b"")
        assert io.read(base + "/dir/x") == ""
        assert io.run("pwd", cwd=base + "/dir")[0].endswith("/dir")
        io.rmdir(base + "/dir")
        assert not io.file_exists(base + "/dir")
        out = io.run("sh", ["-c", "echo \"out $1\"; echo $X >&2; exit 7", "sh", "a  b"], env={"X": "err 'x'"})
        assert out == ("out a  b", "err 'x'", 7), out
        try:
            io.read(base + "/none")
            raise AssertionError("a file that is not there was read")
        except FileNotFoundError as e:
            ctx.info("not found: %(e)s", e=str(e))
        try:
            io.run("sleep", ["60"], timeout=0.2)
            raise AssertionError("the timeout has no effect")
        except TimeoutError:
            pass
        assert self._io is io
        resource.value = None
`

func TestOtherMachines(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatalf("the test needs ssh-keygen: install openssh-client (%v)", err)
	}
	m := newMachine(t)
	mod := source("m", handlerOf("m", remote))
	run := func(t *testing.T, ssh executor.SSHConfig, uri string) model.Result {
		t.Helper()
		b := start(t, func(c *executor.Config) {
			c.SSH, c.URI = ssh, func(model.AgentName) string { return uri }
		})
		b.code = codeOf(t, b.Server, nil, mod)
		return b.deploy(t, "m::Thing", "a", map[string]any{"value": t.TempDir()})
	}
	if m.user == "root" {
		t.Run("works", func(t *testing.T) {
			t.Parallel()
			r := run(t, executor.SSHConfig{KeyFiles: []string{m.key}, KnownHosts: []string{m.known(t, "hostkey")}}, m.uri())
			want(t, r, model.OutcomeDeployed, "remote: True", "not found: ")
		})
		t.Run("notes a new machine", func(t *testing.T) {
			t.Parallel()
			known := filepath.Join(t.TempDir(), "ssh", "known_hosts")
			r := run(t, executor.SSHConfig{KeyFiles: []string{m.key}, KnownHosts: []string{known}, HostKeys: executor.HostKeysAcceptNew}, m.uri())
			want(t, r, model.OutcomeDeployed, "remote: True")
			if text, err := os.ReadFile(known); err != nil || !strings.Contains(string(text), "[127.0.0.1]:"+m.port+" ssh-ed25519") {
				t.Errorf("the machine was not noted: %q, %v", text, err)
			}
		})
	}
	for name, tc := range map[string]struct {
		ssh  executor.SSHConfig
		uri  string
		text string
	}{
		"unknown machine": {executor.SSHConfig{KeyFiles: []string{m.key}, KnownHosts: []string{filepath.Join(m.dir, "none")}}, m.uri(), "is not known; add it to"},
		"changed key":     {executor.SSHConfig{KeyFiles: []string{m.key}, KnownHosts: []string{m.known(t, "other")}, HostKeys: executor.HostKeysAcceptNew}, m.uri(), "has changed"},
		"wrong login":     {executor.SSHConfig{KeyFiles: []string{filepath.Join(m.dir, "other")}, KnownHosts: []string{m.known(t, "hostkey")}}, m.uri(), "login refused"},
		"no key":          {executor.SSHConfig{KeyFiles: []string{filepath.Join(m.dir, "none")}, KnownHosts: []string{m.known(t, "hostkey")}}, m.uri(), "login"},
		"nobody there":    {executor.SSHConfig{KeyFiles: []string{m.key}, KnownHosts: []string{m.known(t, "hostkey")}}, "ssh://root@127.0.0.1:1?retries=2&retry_wait=0.1", "connecting to 127.0.0.1:1"},
		"bad address":     {executor.SSHConfig{}, "telnet://host", "is neither local: nor ssh://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, run(t, tc.ssh, tc.uri), model.OutcomeFailed, tc.text)
		})
	}
}
