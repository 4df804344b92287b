package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/store/embedded"
)

// childDir tells the test binary to be a server on that directory, for tests that kill servers.
const childDir = "INTENDANT_TEST_EMBEDDED_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

// child runs an instance until it is told to stop, announcing its URL.
func child(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("url:", s.URL("postgres"))
	<-ctx.Done()
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// spawn runs [child] as a process of its own and returns it with the URL of its instance.
func spawn(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "url: ")
	if !ok {
		t.Fatalf("the child said %q", line)
	}
	return cmd, url
}

// shortDir is a directory that other accounts may reach: t.TempDir is closed to them.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var s string
	if err := conn.QueryRow(t.Context(), sql).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestStartKeepsDataOverRestarts(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := start(t, dir)
	if err := s.EnsureDatabase(t.Context(), "intendant"); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureDatabase(t.Context(), "intendant"); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	execute(t, s.URL("intendant"), "CREATE TABLE kept AS SELECT 'here' AS v")
	if got := query(t, s.URL("intendant"), "SHOW listen_addresses"); got != "" {
		t.Errorf("listen_addresses = %q, want none", got)
	}
	stop(t, s)
	s = start(t, dir)
	defer stop(t, s)
	if got := query(t, s.URL("intendant"), "SELECT v FROM kept"); got != "here" {
		t.Errorf("the row reads %q after a restart", got)
	}
}

func TestStartRefusesASecondOneOnTheDirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := start(t, dir)
	defer stop(t, s)
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Fatalf("a second Start said %v", err)
	}
}

func TestRecoversFromAKilledServer(t *testing.T) {
	t.Parallel()
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("postmaster too %v", both), func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			cmd, url := spawn(t, dir)
			execute(t, url, "CREATE TABLE kept AS SELECT 'here' AS v")
			pid, _, _ := strings.Cut(string(read(t, filepath.Join(dir, "pgdata", "postmaster.pid"))), "\n")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if both {
				var n int
				if _, err := fmt.Sscan(pid, &n); err != nil {
					t.Fatal(err)
				}
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have gone already
			}
			_ = cmd.Wait()
			s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer stop(t, s)
			if got := query(t, s.URL("postgres"), "SELECT v FROM kept"); got != "here" {
				t.Errorf("the row reads %q after the kill", got)
			}
		})
	}
}

func TestPostgresDiesWithItsServer(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	cmd, _ := spawn(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if _, err := os.Stat(filepath.Join(dir, "pgdata", "postmaster.pid")); os.IsNotExist(err) {
			tick.Stop()
			return
		}
		select {
		case <-deadline.Done():
			t.Fatal("the postmaster outlives its server")
		case <-tick.C:
		}
	}
}

func TestStartRedoesAHalfMadeDirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "pgdata", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pgdata", "PG_VERSION"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir)
	defer stop(t, s)
	if got := query(t, s.URL("postgres"), "SELECT 'works'"); got != "works" {
		t.Errorf("got %q", got)
	}
}

func TestStartOnALongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), strings.Repeat("long/", 30))
	s := start(t, dir)
	defer stop(t, s)
	if got := query(t, s.URL("postgres"), "SELECT 'works'"); got != "works" {
		t.Errorf("got %q", got)
	}
}

func TestStartBelowAClosedDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root starts PostgreSQL under another account
	}
	closed := shortDir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "db")
	s := start(t, dir)
	far, err := os.Readlink(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop(t, s)
		if err := os.RemoveAll(far); err != nil {
			t.Error(err)
		}
	}()
	if got := query(t, s.URL("postgres"), "SELECT 'works'"); got != "works" {
		t.Errorf("got %q", got)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	other := shortDir(t)
	if err := os.MkdirAll(filepath.Join(other, "pgdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"pgdata/PG_VERSION": "9\n", "ready": ""} {
		if err := os.WriteFile(filepath.Join(other, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		cfg  embedded.Config
		want string
	}{
		"no directory":        {embedded.Config{}, "Config.Dir is empty"},
		"wrong binaries":      {embedded.Config{Dir: dir, BinDir: "/nowhere"}, "database.bin_dir: /nowhere has no PostgreSQL"},
		"another major":       {embedded.Config{Dir: other}, "made by PostgreSQL 9"},
		"directory is a file": {embedded.Config{Dir: os.Args[0]}, "creating the database's directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := embedded.Start(t.Context(), c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Start said %v, want %q in it", err, c.want)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
