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

// Actions and their logs are carried over to where they are now, and back.
func TestActionsAreCarriedOver(t *testing.T) {
	t.Parallel()
	conn := connect(t, storetest.EmptyURL(t))
	up(t, conn, len(migrations.Steps()))
	down := func() {
		t.Helper()
		if _, err := migrations.Down(t.Context(), conn, 7); err != nil {
			t.Fatal(err)
		}
	}
	down()
	if _, err := conn.Exec(t.Context(), `
INSERT INTO project VALUES ('00000000-0000-0000-0000-000000000001', 'p');
INSERT INTO environment (id, project, name, description, icon, repo_url, repo_branch, repo_path)
VALUES ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'e', '', '', '', '', '');
INSERT INTO action (id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code) VALUES
('00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000002', 1, 'r', 'deploy', 'why', '2026-01-01Z', '2026-01-02Z', 'deployed', 'created', '{}', 't', ''),
('00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-000000000002', 1, 'r', 'deploy', 'why', '2026-01-03Z', NULL, '', '', '{}', 't', '');
INSERT INTO action_log (action, level, message, kwargs, logged_at) VALUES
('00000000-0000-0000-0000-00000000000a', 'INFO', E'first\nline', '{"n": 1.50, "s": "\u0000"}', '2026-01-01 00:00:00.25Z'),
('00000000-0000-0000-0000-00000000000b', 'INFO', 'begun', '{}', '2026-01-03Z'),
('00000000-0000-0000-0000-00000000000a', 'ERROR', 'second', '{}', '2026-01-01 00:00:01Z')`); err != nil {
		t.Fatal(err)
	}
	table := func(query string) []string {
		t.Helper()
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const logs = "SELECT concat_ws('|', right(action::text, 1), level, message, kwargs, logged_at AT TIME ZONE 'UTC') FROM action_log ORDER BY action, seq"
	before := table(logs)
	up(t, conn, len(migrations.Steps())-7)
	if d := cmp.Diff([]string{"a|2|2026-01-02 00:00:00|deployed", "b|1|"}, table(`SELECT concat_ws('|', right(id::text, 1),
		cardinality(string_to_array(log, E'\n')), finished_at AT TIME ZONE 'UTC', outcome) FROM any_action ORDER BY id`)); d != "" {
		t.Errorf("actions: %s", d)
	}
	down()
	if d := cmp.Diff(before, table(logs)); d != "" {
		t.Errorf("log lines up and down: %s", d)
	}
	if d := cmp.Diff([]string{"a|t", "b|f"}, table("SELECT concat_ws('|', right(id::text, 1), finished_at IS NOT NULL) FROM action ORDER BY id")); d != "" {
		t.Errorf("actions up and down: %s", d)
	}
}
