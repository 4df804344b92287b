package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/config"
)

var options = []config.Option{
	{Section: "server", Name: "bind-port", Default: "8888", Check: config.CheckPort},
	{Section: "server", Name: "bind-address", Default: "127.0.0.1"},
	{Section: "server", Name: "auth", Default: "false", Check: config.CheckBool},
	{Section: "database", Name: "password", Secret: true, Check: func(s string) error {
		if strings.Contains(s, " ") {
			return os.ErrInvalid
		}
		return nil
	}},
	{Section: "git", Name: "poll-interval", Default: "60", Check: config.CheckDuration},
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	base := write(t, filepath.Join(dir, "base.cfg"), "[server]\nbind_port = 1\nbind-address: 10.0.0.1\nAUTH = Yes\n")
	write(t, filepath.Join(dir, "d", "20.cfg"), "[server]\nbind-port = 3\n")
	write(t, filepath.Join(dir, "d", "10.cfg"), "# first\n[server]\nbind-port = 2\n")
	local := write(t, filepath.Join(dir, ".intendant"), "[git]\npoll-interval = 5m\n[nobody]\nknows = this\n")
	explicit := write(t, filepath.Join(dir, "mine.cfg"), "[server]\nbind-address = 10.0.0.2\n  , 10.0.0.3\n")
	from := config.Sources{Files: []string{base, filepath.Join(dir, "missing"), local}, Dirs: []string{filepath.Join(dir, "d")}, DirsAfter: 1, Explicit: explicit}

	c, err := config.Load(options, from)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Int("server", "bind_port"); got != 3 {
		t.Errorf("bind-port = %d, want that of the last file of the directory", got)
	}
	if got := c.Get("server", "bind-port").Origin; got != filepath.Join(dir, "d", "20.cfg")+":2" {
		t.Errorf("origin = %s", got)
	}
	if diff := cmp.Diff([]string{"10.0.0.2", "10.0.0.3"}, c.List("server", "bind-address")); diff != "" {
		t.Errorf("bind-address:\n%s", diff)
	}
	if !c.Bool("server", "auth") {
		t.Error("auth = false, want true")
	}
	if got := c.Duration("git", "poll-interval"); got != 5*time.Minute {
		t.Errorf("poll-interval = %s", got)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "unknown option nobody.knows") {
		t.Errorf("warnings = %q", c.Warnings)
	}

	from.Environ = []string{"INMANTA_SERVER_BIND_PORT=4", "INTENDANT_SERVER_BIND_PORT=5", "INMANTA_SERVER_BIND_ADDRESS=::1"}
	if c, err = config.Load(options, from); err != nil {
		t.Fatal(err)
	}
	if got := c.Int("server", "bind-port"); got != 5 {
		t.Errorf("bind-port = %d, want that of our variable", got)
	}
	if got := c.Get("server", "bind-address"); got.Text != "::1" || got.Origin != "environment variable INMANTA_SERVER_BIND_ADDRESS" {
		t.Errorf("bind-address = %+v", got)
	}

	from.Flags = map[string]string{"server.bind-port": "6"}
	if c, err = config.Load(options, from); err != nil {
		t.Fatal(err)
	}
	if got := c.Get("server", "bind-port"); got.Text != "6" || got.Origin != "flag" {
		t.Errorf("bind-port = %+v", got)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"value":          {"[server]\nbind-port = many\n", `option server.bind-port (FILE:2): "many": must be a port number`},
		"secret":         {"[database]\npassword = two words\n", "option database.password (FILE:2): the given value: invalid argument"},
		"section":        {"[server\n", "line 1: a section is written [name]"},
		"option":         {"[server]\nbind-port\n", "line 2: an option is written name = value"},
		"before section": {"bind-port = 1\n", "line 1: the option stands before the first [section]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := write(t, filepath.Join(t.TempDir(), "x.cfg"), c.text)
			_, err := config.Load(options, config.Sources{Explicit: f})
			if want := strings.ReplaceAll(c.want, "FILE", f); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load said %v, want %q in it", err, want)
			}
			if err != nil && strings.Contains(err.Error(), "two words") {
				t.Error("the error shows a secret")
			}
		})
	}
	if _, err := config.Load(options, config.Sources{Explicit: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("a missing explicit file is accepted")
	}
	if _, err := config.Load(options, config.Sources{Flags: map[string]string{"no.such": "x"}}); err == nil {
		t.Error("an unknown flag is accepted")
	}
}
