// Package storetest gives tests a PostgreSQL of their own: a fresh, migrated database per test, cloned from a template.
//
// The server is the one of INTENDANT_TEST_DATABASE_URL (a postgres:// URL whose user may create databases), or else one that
// the first test of a process starts, on a private socket, in memory where the machine has /dev/shm, without durability. It ends
// with the process; a watcher then removes its files.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/migrations"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/embedded"
)

// MasterKey seals the secrets of test stores.
const MasterKey = "a master key for tests, not a secret"

// startTimeout bounds the start of the test server, on a busy machine.
const startTimeout = 2 * time.Minute

// server is the PostgreSQL of this process; it is started once.
//
//nolint:gochecknoglobals // one server for all tests of a process
var server = sync.OnceValues(start)

type instance struct {
	// admin is the URL of a database to create others from.
	admin *url.URL
	// template is the name of the migrated database.
	template string
	// strategy is how databases are copied: the fast way for a server without durability, none for a foreign one.
	strategy string
}

func start() (*instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	in := &instance{}
	address := os.Getenv("INTENDANT_TEST_DATABASE_URL")
	if address == "" {
		srv, err := startOwn(ctx)
		if err != nil {
			return nil, err
		}
		address, in.strategy = srv.URL("postgres"), " STRATEGY file_copy"
	}
	var err error
	if in.admin, err = url.Parse(address); err != nil || !strings.HasPrefix(in.admin.Scheme, "postgres") {
		return nil, fmt.Errorf("INTENDANT_TEST_DATABASE_URL must be a postgres:// URL: %w", err)
	}
	if err := in.makeTemplate(ctx); err != nil {
		return nil, err
	}
	return in, nil
}

// startOwn starts a server that ends with this process.
func startOwn(ctx context.Context) (*embedded.Server, error) {
	parent := "/dev/shm"
	if i, err := os.Stat(parent); err != nil || !i.IsDir() {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "intendant-test-")
	if errors.Is(err, fs.ErrPermission) {
		dir, err = os.MkdirTemp("", "intendant-test-")
	}
	if err != nil {
		return nil, fmt.Errorf("making a directory for the test database: %w", err)
	}
	if err := watch(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	srv, err := embedded.Start(ctx, embedded.Config{Dir: dir, Fast: true, MaxConnections: 200})
	if err != nil {
		return nil, fmt.Errorf("starting a database for tests: %w", err)
	}
	return srv, nil
}

// watch starts a small process that removes dir once this one has ended, however it ended, and PostgreSQL with it.
func watch(dir string) error {
	const script = `read -r _; n=0; while [ -e "$1/pgdata/postmaster.pid" ] && [ $n -lt 150 ]; do sleep 0.1; n=$((n+1)); done; rm -rf "$1"`
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("watching the test database: %w", err)
	}
	cmd := exec.Command("sh", "-c", script, "sh", filepath.Clean(dir))
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is not for it
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watching the test database: %w", err)
	}
	keepOpen = writer
	return reader.Close()
}

// keepOpen is the end of the watcher's pipe that closes with this process.
//
//nolint:unused // it must live as long as the process
var keepOpen *os.File

// url returns the address of another database of the server.
func (in *instance) url(database string) string {
	u := *in.admin
	u.Path = "/" + database
	return u.String()
}

// exec runs statements outside of a transaction.
func (in *instance) exec(ctx context.Context, statements ...string) (err error) {
	conn, err := pgx.Connect(ctx, in.admin.String())
	if err != nil {
		return fmt.Errorf("connecting to the test server: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, st := range statements {
		if _, err := conn.Exec(ctx, st); err != nil {
			return fmt.Errorf("%s: %w", st, err)
		}
	}
	return nil
}

// templateLock is the advisory lock under which test processes that share a server make the template.
const templateLock = 0x7e57e4da

// makeTemplate creates the migrated database that tests clone, unless some process has done so.
func (in *instance) makeTemplate(ctx context.Context) (err error) {
	in.template = "intendant_template_" + migrations.Digest()[:16]
	conn, err := pgx.Connect(ctx, in.admin.String())
	if err != nil {
		return fmt.Errorf("connecting to the test server: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	// The lock ends with the connection.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return fmt.Errorf("locking the template: %w", err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", in.template).Scan(&exists); err != nil {
		return fmt.Errorf("looking for the template: %w", err)
	}
	if exists {
		return nil
	}
	// Under another name until it is complete: a killed process leaves no half template.
	building := in.template + "_building"
	for _, st := range []string{"DROP DATABASE IF EXISTS " + building, "CREATE DATABASE " + building} {
		if _, err := conn.Exec(ctx, st); err != nil {
			return fmt.Errorf("%s: %w", st, err)
		}
	}
	if err := migrate(ctx, in.url(building)); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+building+" RENAME TO "+in.template); err != nil {
		return fmt.Errorf("naming the template: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, address string) (err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connecting to the template: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := migrations.Up(ctx, conn); err != nil {
		return fmt.Errorf("migrating the template: %w", err)
	}
	return nil
}

// URL creates a migrated database for the test and returns its address. It is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, true)
}

// EmptyURL creates a database without any tables for the test and returns its address.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return database(t, false)
}

func database(t testing.TB, migrated bool) string {
	t.Helper()
	in, err := server()
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	name := "intendant_test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	create := "CREATE DATABASE " + name
	if migrated {
		create += " TEMPLATE " + in.template + in.strategy
	}
	if err := in.exec(t.Context(), create); err != nil {
		t.Fatalf("storetest: %v", err)
	}
	t.Cleanup(func() {
		if err := in.exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("storetest: %v", err)
		}
	})
	return in.url(name)
}

// New returns a store on a fresh database. Both go when the test ends.
func New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, URL(t))
}

// Open returns a store on a database of [URL], as another server on the same database would have. It is closed when the test
// ends. Options change its configuration.
func Open(t testing.TB, address string, options ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{URL: address, MasterKey: []byte(MasterKey), MaxConnections: 12, ConnectTimeout: time.Minute}
	for _, o := range options {
		o(&cfg)
	}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}
