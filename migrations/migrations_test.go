package migrations_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/migrations"
	"github.com/intendant/intendant/store/storetest"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// schema lists every column, index and constraint.
func schema(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func up(t *testing.T, conn *pgx.Conn, want int) {
	t.Helper()
	n, err := migrations.Up(t.Context(), conn)
	if err != nil || n != want {
		t.Fatalf("Up = %d, %v, want %d", n, err, want)
	}
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.EmptyURL(t))
	steps := len(migrations.Steps())
	up(t, conn, steps)
	first := schema(t, conn)
	up(t, conn, 0)
	// One step at a time, so that each way down is tried on a schema that has only what came before it.
	for n := steps - 1; n >= 0; n-- {
		if done, err := migrations.Down(t.Context(), conn, n); err != nil || done != 1 {
			t.Fatalf("Down(%d) = %d, %v, want 1", n, done, err)
		}
	}
	left := schema(t, conn)
	for _, l := range left {
		if !strings.Contains(l, "schema_migration") {
			t.Errorf("after the way down there is still %s", l)
		}
	}
	up(t, conn, steps)
	if d := cmp.Diff(first, schema(t, conn)); d != "" {
		t.Errorf("up, down, up changes the schema: %s", d)
	}
}

func TestUpRefusesAnEditedStep(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.URL(t))
	if _, err := conn.Exec(t.Context(), "UPDATE schema_migration SET checksum = 'other' WHERE number = 2"); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), conn); !errors.Is(err, migrations.ErrChanged) {
		t.Errorf("Up = %v, want %v", err, migrations.ErrChanged)
	}
}

func TestUpLeavesNewerStepsAlone(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.URL(t))
	if _, err := conn.Exec(t.Context(), "INSERT INTO schema_migration VALUES (9999, 'from the future', 'x', now())"); err != nil {
		t.Fatal(err)
	}
	up(t, conn, 0)
}

func TestUpByManyAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		total int
	)
	for range 4 {
		conn := connect(t, url)
		wait.Go(func() {
			n, err := migrations.Up(t.Context(), conn)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				t.Errorf("Up: %v", err)
			}
		})
	}
	wait.Wait()
	if total != len(migrations.Steps()) {
		t.Errorf("%d steps were applied, want each of %d once", total, len(migrations.Steps()))
	}
}

func TestUpIsCancelled(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.EmptyURL(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := migrations.Up(ctx, conn); !errors.Is(err, context.Canceled) {
		t.Errorf("Up = %v, want %v", err, context.Canceled)
	}
}
