package builtin_test

import (
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/exectest"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// registry has the built-in handlers.
func registry(t testing.TB, cfg builtin.Config) *sdk.Registry {
	t.Helper()
	r := sdk.NewRegistry()
	if err := builtin.Register(r, cfg); err != nil {
		t.Fatalf("Register() = %v", err)
	}
	return r
}

func id(typ, attribute, value string) model.ResourceID {
	return model.ResourceIDParts{Type: typ, Agent: "host", Attribute: attribute, Value: value}.ID()
}

// describe tells all about what is in a directory.
func describe(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %s", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x %d", sha1.Sum(content), info.ModTime().UnixNano())
		case info.Mode()&fs.ModeSymlink != 0:
			link, _ := os.Readlink(path)
			b.WriteString(" -> " + link)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func owner() (uid, gid string) {
	return fmt.Sprint(os.Getuid()), fmt.Sprint(os.Getgid())
}

func TestConformanceFile(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"std::File", "std::ConfigFile", "fs::File"} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			sdktest.Conformance(t, func(t testing.TB, s *sdktest.Server) sdktest.Fixture {
				dir := t.TempDir()
				path := filepath.Join(dir, "motd")
				uid, gid := owner()
				attributes := func(content string, mode int) map[string]any {
					return map[string]any{
						"path": path, "hash": s.AddFile([]byte(content)), "mode": mode, "owner": uid, "group": gid, "purged": false,
					}
				}
				return sdktest.Fixture{
					Registry: registry(t, builtin.Config{}), Resource: id(typ, "path", path), Create: attributes("one\n", 644),
					Update: attributes("two\n", 600), State: func() string { return describe(t, dir) }, Purgeable: true,
				}
			})
		})
	}
}

func TestConformanceDirectory(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		dir := t.TempDir()
		path := filepath.Join(dir, "sub")
		uid, gid := owner()
		attributes := func(mode int) map[string]any {
			return map[string]any{"path": path, "mode": mode, "owner": uid, "group": gid, "purged": false}
		}
		return sdktest.Fixture{
			Registry: registry(t, builtin.Config{}), Resource: id("std::Directory", "path", path), Create: attributes(755),
			Update: attributes(2750), State: func() string { return describe(t, dir) }, Purgeable: true,
		}
	})
}

func TestConformanceSymlink(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		dir := t.TempDir()
		path := filepath.Join(dir, "link")
		attributes := func(source string) map[string]any {
			return map[string]any{"source": source, "target": path, "purged": false}
		}
		return sdktest.Fixture{
			Registry: registry(t, builtin.Config{}), Resource: id("std::Symlink", "target", path), Create: attributes("/etc/hosts"),
			Update: attributes("../elsewhere"), State: func() string { return describe(t, dir) }, Purgeable: true,
		}
	})
}

func TestConformanceRun(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		dir := t.TempDir()
		marker, reloads := filepath.Join(dir, "marker"), filepath.Join(t.TempDir(), "reloads")
		attributes := func(content string) map[string]any {
			return map[string]any{
				"command": "sh -c 'echo " + content + " > " + marker + "'", "creates": "", "cwd": dir,
				"environment": map[string]any{"LC_ALL": "C"}, "onlyif": "", "path": "",
				"unless": "grep -q '^" + content + "$' " + marker, "reload": "sh -c 'echo again >> " + reloads + "'",
				"reload_only": false, "returns": []int{0}, "timeout": 30, "skip_on_fail": false,
			}
		}
		return sdktest.Fixture{
			Registry: registry(t, builtin.Config{}), Resource: id("exec::Run", "command", "make"), Create: attributes("one"),
			Update: attributes("two"), State: func() string { return describe(t, dir) }, Created: model.ChangeUpdated,
			Reloads: func() int {
				content, _ := os.ReadFile(reloads)
				return strings.Count(string(content), "again")
			},
		}
	})
}

// fakeProgram writes a shell script into a directory that is to be on the PATH.
func fakeProgram(t testing.TB, dir, name, script string) {
	t.Helper()
	exectest.Script(t, dir, name, "#!/bin/sh\n"+script)
}

// fakeSystemd makes a systemctl that keeps the state of services as files in a directory.
const fakeSystemctl = `
state=$FAKE_STATE
echo "$@" >> "$state.calls"
verb=$1
for last; do :; done
case $verb in
show)
	if [ ! -e "$state/exists.$last" ]; then echo LoadState=not-found; echo ActiveState=inactive; echo UnitFileState=; exit 0; fi
	echo LoadState=$(cat "$state/exists.$last")
	if [ -e "$state/running.$last" ]; then echo ActiveState=active; else echo ActiveState=inactive; fi
	if [ -e "$state/static.$last" ]; then echo UnitFileState=static
	elif [ -e "$state/enabled.$last" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi ;;
start) touch "$state/running.$last" ;;
stop) rm -f "$state/running.$last" ;;
enable) touch "$state/enabled.$last" ;;
disable) rm -f "$state/enabled.$last" ;;
reload-or-restart) echo reload >> "$state.reloads" ;;
*) exit 64 ;;
esac
`

// systemd makes a fake systemd with services that exist, and returns the configuration and the directory of its state.
func systemd(t testing.TB, services ...string) (builtin.Config, string) {
	t.Helper()
	root := t.TempDir()
	bin, state := filepath.Join(root, "bin"), filepath.Join(root, "state")
	for _, dir := range []string{bin, state} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fakeProgram(t, bin, "systemctl", fakeSystemctl)
	for _, s := range services {
		if err := os.WriteFile(filepath.Join(state, "exists."+s), []byte("loaded\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return builtin.Config{Path: bin + ":/usr/bin:/bin", Env: []string{"FAKE_STATE=" + state}, SystemdDir: state}, state
}

func TestConformanceService(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		cfg, state := systemd(t, "web")
		return sdktest.Fixture{
			Registry: registry(t, cfg), Resource: id("std::Service", "name", "web"),
			Create:  map[string]any{"name": "web", "state": "running", "onboot": true},
			Update:  map[string]any{"name": "web", "state": "stopped", "onboot": false},
			State:   func() string { return describe(t, state) },
			Created: model.ChangeUpdated,
			Reloads: func() int {
				content, _ := os.ReadFile(state + ".reloads")
				return strings.Count(string(content), "reload")
			},
		}
	})
}

// fakeApt keeps installed packages as files that hold versions; the repository has version 2 of everything once its lists are read.
const fakeDpkgQuery = `
for last; do :; done
if [ -e "$FAKE_STATE/pkg.$last" ]; then echo "installed $(cat "$FAKE_STATE/pkg.$last")"; exit 0; fi
if [ "$last" = leftover ]; then echo "config-files 1"; exit 0; fi
echo "dpkg-query: no packages found matching $last" >&2
exit 1
`

const fakeAptGet = `
echo "$@" >> "$FAKE_STATE.calls"
[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 65
for last; do :; done
case " $* " in
*" update "*) touch "$FAKE_STATE.lists" ;;
*" install "*)
	if [ ! -e "$FAKE_STATE.lists" ]; then echo "E: Unable to locate package $last" >&2; exit 100; fi
	echo 2 > "$FAKE_STATE/pkg.$last" ;;
*" remove "*) rm -f "$FAKE_STATE/pkg.$last" ;;
*) exit 64 ;;
esac
`

const fakeAptCache = `
for last; do :; done
printf '%s:\n  Installed: 1\n  Candidate: 2\n' "$last"
`

// debian makes a fake Debian, and returns the configuration and the directory of its state.
func debian(t testing.TB) (builtin.Config, string) {
	t.Helper()
	root := t.TempDir()
	bin, state := filepath.Join(root, "bin"), filepath.Join(root, "state")
	for _, dir := range []string{bin, state} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fakeProgram(t, bin, "dpkg-query", fakeDpkgQuery)
	fakeProgram(t, bin, "apt-get", fakeAptGet)
	fakeProgram(t, bin, "apt-cache", fakeAptCache)
	return builtin.Config{Path: bin + ":/usr/bin:/bin", Env: []string{"FAKE_STATE=" + state}}, state
}

func TestConformancePackage(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		cfg, state := debian(t)
		return sdktest.Fixture{
			Registry: registry(t, cfg), Resource: id("std::Package", "name", "tree"),
			Create:  map[string]any{"name": "tree", "state": "installed"},
			Update:  map[string]any{"name": "tree", "state": "removed"},
			State:   func() string { return describe(t, state) },
			Created: model.ChangeUpdated,
		}
	})
}

// fakeRPM and fakeDnf are the same for Red Hat.
const fakeRPM = `
for last; do :; done
if [ -e "$FAKE_STATE/pkg.$last" ]; then cat "$FAKE_STATE/pkg.$last"; exit 0; fi
echo "package $last is not installed"
exit 1
`

const fakeDnf = `
for last; do :; done
case " $* " in
*" check-update "*)
	if [ "$(cat "$FAKE_STATE/pkg.$last")" = 2 ]; then exit 0; fi
	printf '\n%s.x86_64   2   updates\n' "$last"; exit 100 ;;
*" install "*|*" upgrade "*) echo 2 > "$FAKE_STATE/pkg.$last" ;;
*" remove "*) rm -f "$FAKE_STATE/pkg.$last" ;;
*) exit 64 ;;
esac
`

// redHat makes a fake Red Hat, and returns the configuration and the directory of its state.
func redHat(t testing.TB) (builtin.Config, string) {
	t.Helper()
	root := t.TempDir()
	bin, state := filepath.Join(root, "bin"), filepath.Join(root, "state")
	for _, dir := range []string{bin, state} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fakeProgram(t, bin, "rpm", fakeRPM)
	fakeProgram(t, bin, "dnf", fakeDnf)
	for _, program := range []string{"cat", "rm"} {
		if err := os.Symlink("/bin/"+program, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	return builtin.Config{Path: bin, Env: []string{"FAKE_STATE=" + state}}, state
}

func TestConformanceRPM(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		cfg, state := redHat(t)
		return sdktest.Fixture{
			Registry: registry(t, cfg), Resource: id("std::Package", "name", "tree"),
			Create:  map[string]any{"name": "tree", "state": "installed"},
			Update:  map[string]any{"name": "tree", "state": "removed"},
			State:   func() string { return describe(t, state) },
			Created: model.ChangeUpdated,
		}
	})
}
