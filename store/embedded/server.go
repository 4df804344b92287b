package embedded

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// DefaultStartTimeout is how long [Start] waits for PostgreSQL to take connections, recovery from a crash included.
const DefaultStartTimeout = 2 * time.Minute

// maxSocketPath is the longest path of a Unix socket that Linux takes, without the closing zero.
const maxSocketPath = 107

// socketName is the file that PostgreSQL makes in the socket directory for port 5432.
const socketName = ".s.PGSQL.5432"

// superuser is the role that owns everything; connections are let in by the socket's directory, not by a password.
const superuser = "intendant"

// Config says where and how the instance runs.
type Config struct {
	// Dir is the directory of the instance; it is created. Required.
	Dir string
	// BinDir holds postgres and initdb; [UseBundle] means those inside this program. Defaults to looking for them, see the
	// package comment.
	BinDir string
	// Fast trades durability for speed (no fsync), for tests. Defaults to false.
	Fast bool
	// MaxConnections defaults to 60.
	MaxConnections int
	// StartTimeout defaults to DefaultStartTimeout.
	StartTimeout time.Duration
	// Logger takes PostgreSQL's own log. Defaults to discarding it.
	Logger *slog.Logger
}

// Server is a running instance.
type Server struct {
	home   string
	data   string
	socket string
	lock   *os.File
	log    *slog.Logger
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // how the postmaster ended; read after exited is closed
}

// Start brings up the instance of a directory, creating it at first use, and returns when it takes connections. A second
// Start on the same directory fails while the first is running, also from another process.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("embedded PostgreSQL: Config.Dir is empty")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 60
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = DefaultStartTimeout
	}
	who, err := account()
	if err != nil {
		return nil, err
	}
	home, err := who.home(cfg.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(home)
	if err != nil {
		return nil, err
	}
	s := &Server{home: home, data: filepath.Join(home, "pgdata"), lock: lock, log: cfg.Logger, exited: make(chan struct{})}
	if err := s.start(ctx, cfg, who); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("starting the built-in PostgreSQL in %s: %w", home, err)
	}
	return s, nil
}

// lockDir takes the directory for this process. The lock goes with the process, however it ends.
func lockDir(home string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the database's lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		return nil, fmt.Errorf("the database in %s is in use by process %s: stop that server first", home, strings.TrimSpace(string(holder)))
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func (s *Server) start(ctx context.Context, cfg Config, who runAs) error {
	var err error
	if s.socket, err = socketDir(s.home); err != nil {
		return err
	}
	if err := ownDir(s.socket, who); err != nil {
		return err
	}
	if err := s.clearLeftOvers(ctx); err != nil {
		return err
	}
	ready := filepath.Join(s.home, "ready")
	if _, err := os.Stat(ready); errors.Is(err, os.ErrNotExist) {
		// Either a first start or one that died in initdb: nothing was ever stored here.
		if err := os.RemoveAll(s.data); err != nil {
			return fmt.Errorf("clearing a half-made data directory: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("looking for the ready marker: %w", err)
	}
	bin, err := find(cfg.BinDir, dataMajor(s.data), bundleUnpacker(s.home))
	if err != nil {
		return err
	}
	if _, err := os.Stat(ready); err != nil {
		if err := s.initialise(ctx, bin, who); err != nil {
			return err
		}
		if err := os.WriteFile(ready, []byte("initialised\n"), 0o600); err != nil {
			return fmt.Errorf("writing the ready marker: %w", err)
		}
	}
	if err := s.configure(cfg, who); err != nil {
		return err
	}
	if err := s.launch(bin, who); err != nil {
		return err
	}
	if err := s.await(ctx, cfg.StartTimeout); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, s.shutdown(stop))
	}
	return nil
}

// socketDir chooses a directory whose socket path is short enough for the kernel.
func socketDir(home string) (string, error) {
	dir := filepath.Join(home, "run")
	if len(dir)+1+len(socketName) <= maxSocketPath {
		return dir, nil
	}
	sum := sha256.Sum256([]byte(home))
	for _, base := range []string{"/run", os.TempDir()} {
		short := filepath.Join(base, "intendant-"+strconv.Itoa(os.Geteuid())+"-"+hex.EncodeToString(sum[:8]))
		if err := os.Mkdir(short, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		info, err := os.Lstat(short)
		if err != nil || !info.IsDir() {
			continue // somebody else's file, or a planted link
		}
		return short, nil
	}
	return "", fmt.Errorf("the path %s is too long for a Unix socket, and no shorter place could be made: set database.dir to a shorter path", dir)
}

// ownDir creates a directory that only the account may enter.
func ownDir(dir string, who runAs) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory, closed to others
		return fmt.Errorf("closing %s: %w", dir, err)
	}
	if who.credential != nil {
		if err := os.Lchown(dir, who.uid, who.gid); err != nil {
			return fmt.Errorf("handing %s to %s: %w", dir, who.name, err)
		}
	}
	return nil
}

// dataMajor reads the major version that made a data directory, 0 when there is none.
func dataMajor(data string) int {
	b, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

func (s *Server) initialise(ctx context.Context, bin binaries, who runAs) error {
	if err := ownDir(s.data, who); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bin.path("initdb"), "-D", s.data, "-U", superuser, "-A", "trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync", "--no-instructions", "--wal-segsize=4", "--data-checksums")
	cmd.Dir = s.data
	cmd.Env = childEnv(s.data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.credential, Setpgid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLines(string(out), 5))
	}
	unix.Sync()
	return nil
}

// configure writes the settings at every start, so that they follow the program and not its first version.
func (s *Server) configure(cfg Config, who runAs) error {
	lines := []string{
		"listen_addresses = ''",
		"unix_socket_directories = '" + strings.ReplaceAll(s.socket, "'", "''") + "'",
		"unix_socket_permissions = 0700",
		"max_connections = " + strconv.Itoa(cfg.MaxConnections),
		"shared_buffers = 64MB",
		"jit = off",
		"huge_pages = off",
		"wal_level = minimal",
		"max_wal_senders = 0",
		"max_wal_size = 256MB",
		"min_wal_size = 64MB",
		"wal_compression = on",
		"max_parallel_workers_per_gather = 0",
		"max_worker_processes = 4",
		"checkpoint_timeout = 15min",
		"timezone = 'UTC'",
		"log_timezone = 'UTC'",
		"log_line_prefix = ''",
		"logging_collector = off",
		"log_destination = 'stderr'",
		// parameters of statements may hold secrets: an error must not carry them into a log
		"log_parameter_max_length = 0",
		"log_parameter_max_length_on_error = 0",
		"log_min_error_statement = panic",
	}
	if cfg.Fast {
		lines = append(lines, "fsync = off", "full_page_writes = off", "synchronous_commit = off", "autovacuum = off")
	}
	path := filepath.Join(s.data, "postgresql.auto.conf")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	if who.credential != nil {
		if err := os.Chown(path, who.uid, who.gid); err != nil {
			return fmt.Errorf("handing the settings to %s: %w", who.name, err)
		}
	}
	return nil
}

// childEnv is all that PostgreSQL inherits: no secret of the server's environment reaches it.
func childEnv(data string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + data, "PGDATA=" + data}
}

// launch starts the postmaster from a thread of its own that lives as long as it: the parent-death signal follows the
// thread that made the child, not the process.
func (s *Server) launch(bin binaries, who runAs) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for PostgreSQL's log: %w", err)
	}
	cmd := exec.Command(bin.path("postgres"), "-D", s.data) //nolint:noctx // stopped by signals, in steps
	cmd.Dir = s.data
	cmd.Env = childEnv(s.data)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, after the child
		err := cmd.Start()
		_ = w.Close()
		started <- err
		if err != nil {
			return
		}
		s.err = cmd.Wait()
		close(s.exited)
	}()
	if err := <-started; err != nil {
		_ = r.Close()
		return fmt.Errorf("executing %s: %w", bin.path("postgres"), err)
	}
	s.cmd = cmd
	go s.forwardLog(r)
	return nil
}

// forwardLog hands PostgreSQL's log lines on until it has ended.
func (s *Server) forwardLog(r *os.File) {
	defer func() { _ = r.Close() }()
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 4096), 1<<20)
	for in.Scan() {
		line := in.Text()
		level, text := slog.LevelDebug, line
		for prefix, l := range map[string]slog.Level{"WARNING:": slog.LevelWarn, "ERROR:": slog.LevelDebug, "FATAL:": slog.LevelError, "PANIC:": slog.LevelError} {
			if after, ok := strings.CutPrefix(line, prefix); ok {
				level, text = l, strings.TrimSpace(after)
			}
		}
		if strings.Contains(text, "the database system is starting up") || strings.Contains(text, "the database system is shutting down") ||
			strings.Contains(text, "terminating connection due to administrator command") || strings.Contains(text, "not yet accepting connections") {
			level = slog.LevelDebug // our own impatience or goodbye
		}
		s.log.Log(context.Background(), level, "postgres", "message", text)
	}
}

// await tries to connect until it works, the postmaster ends, or the time is over.
func (s *Server) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("postgres ended before it took connections: %w", s.err)
		case <-ctx.Done():
			return fmt.Errorf("postgres takes no connections after %s: %w", limit, err)
		case <-tick.C:
		}
	}
}

// URL returns the connection URL of a database of the instance.
func (s *Server) URL(database string) string {
	q := url.Values{"host": {s.socket}, "user": {superuser}, "sslmode": {"disable"}}
	return "postgres:///" + url.PathEscape(database) + "?" + q.Encode()
}

// EnsureDatabase creates a database unless it exists.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connecting to create the database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("looking for the database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("creating the database %s: %w", name, err)
	}
	return nil
}

// Done is closed when PostgreSQL has ended, asked to or not; [Server.Err] then says how.
func (s *Server) Done() <-chan struct{} { return s.exited }

// Err says how PostgreSQL ended; nil before that and after a clean stop.
func (s *Server) Err() error {
	select {
	case <-s.exited:
		return s.err
	default:
		return nil
	}
}

// Stop shuts PostgreSQL down, cutting connections, and returns when it has ended and the directory is free.
func (s *Server) Stop(ctx context.Context) error {
	err := s.shutdown(ctx)
	return errors.Join(err, s.lock.Close())
}

// shutdown asks for a fast shutdown, then an immediate one; the latter is repaired by recovery at the next start.
func (s *Server) shutdown(ctx context.Context) error {
	if s.cmd == nil {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		_ = s.cmd.Process.Signal(sig)
		timer := time.NewTimer(10 * time.Second)
		select {
		case <-s.exited:
			timer.Stop()
			if sig == syscall.SIGINT {
				return nil
			}
			return fmt.Errorf("stopping PostgreSQL took %s: its next start recovers", sig)
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			_ = s.cmd.Process.Signal(syscall.SIGQUIT)
			<-s.exited
			return fmt.Errorf("stopping PostgreSQL: %w", ctx.Err())
		}
	}
	return errors.New("PostgreSQL does not end")
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, " | ")
}
