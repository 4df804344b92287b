// Package migrations holds the database schema as numbered steps, and the small runner that applies them.
//
// A step is a pair of files, NNNN_name.up.sql and NNNN_name.down.sql. Each runs in a transaction of its own and is recorded
// in the table schema_migration with a checksum: a step that has shipped is never edited, and a changed one is refused.
// Several servers may start at once; an advisory lock lets one of them migrate and the others wait.
package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed *.sql
var files embed.FS

// lockKey is the key of the advisory lock that serialises migrations of one database.
const lockKey = 0x1e7e4da47

// ErrChanged says that a step was edited after it had been applied to the database.
var ErrChanged = errors.New("an applied migration has been edited")

// Step is one migration.
type Step struct {
	Number int
	Name   string
	Up     string
	Down   string
}

// checksum covers the step's way up; the way down may be corrected.
func (s Step) checksum() []byte {
	sum := sha256.Sum256([]byte(s.Up))
	return sum[:]
}

// Steps returns all steps by number. It panics when the embedded files are not complete pairs, numbered from 1 on without a gap.
func Steps() []Step {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("reading the embedded migrations: %v", err))
	}
	byNumber := map[int]*Step{}
	for _, e := range entries {
		number, name, ok := strings.Cut(e.Name(), "_")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			panic("migration " + e.Name() + " has no number")
		}
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(fmt.Sprintf("reading the embedded migrations: %v", err))
		}
		s := byNumber[n]
		if s == nil {
			s = &Step{Number: n}
			byNumber[n] = s
		}
		if base, up := strings.CutSuffix(name, ".up.sql"); up {
			s.Name, s.Up = base, string(text)
		} else {
			s.Down = string(text)
		}
	}
	steps := make([]Step, 0, len(byNumber))
	for n := 1; n <= len(byNumber); n++ {
		s := byNumber[n]
		if s == nil || s.Up == "" || s.Down == "" {
			panic(fmt.Sprintf("migration %d is not a pair of .up.sql and .down.sql", n))
		}
		steps = append(steps, *s)
	}
	return steps
}

// Digest identifies the whole schema: it changes when a step is added or edited.
func Digest() string {
	h := sha256.New()
	for _, s := range Steps() {
		h.Write(s.checksum())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Up applies the steps that the database has not had yet, in order, and returns how many. Steps with higher numbers than
// this program knows are left alone: a newer server has been there, and migrations are compatible with the server before.
// It fails with [ErrChanged] before changing anything when an applied step differs from the embedded one.
func Up(ctx context.Context, conn *pgx.Conn) (int, error) {
	return run(ctx, conn, func(applied map[int][]byte) (int, error) {
		done := 0
		for _, s := range Steps() {
			if sum, ok := applied[s.Number]; ok {
				if !bytes.Equal(sum, s.checksum()) {
					return 0, fmt.Errorf("migration %d (%s): %w; restore its text and add a new step", s.Number, s.Name, ErrChanged)
				}
			}
		}
		for _, s := range Steps() {
			if _, ok := applied[s.Number]; ok {
				continue
			}
			if err := apply(ctx, conn, s.Up, "INSERT INTO schema_migration (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
				s.Number, s.Name, s.checksum(), time.Now()); err != nil {
				return done, fmt.Errorf("migration %d (%s) up: %w", s.Number, s.Name, err)
			}
			done++
		}
		return done, nil
	})
}

// Down takes back the steps above a number, highest first, and returns how many. Down to 0 leaves an empty schema.
func Down(ctx context.Context, conn *pgx.Conn, to int) (int, error) {
	return run(ctx, conn, func(applied map[int][]byte) (int, error) {
		done := 0
		for _, s := range slices.Backward(Steps()) {
			if _, ok := applied[s.Number]; !ok || s.Number <= to {
				continue
			}
			if err := apply(ctx, conn, s.Down, "DELETE FROM schema_migration WHERE number = $1", s.Number); err != nil {
				return done, fmt.Errorf("migration %d (%s) down: %w", s.Number, s.Name, err)
			}
			done++
		}
		return done, nil
	})
}

// run holds the lock around work and hands it the checksums of the applied steps.
func run(ctx context.Context, conn *pgx.Conn, work func(map[int][]byte) (int, error)) (n int, err error) {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockKey)); err != nil {
		return 0, fmt.Errorf("locking the schema: %w", err)
	}
	defer func() {
		// The lock ends with the connection at the latest.
		if _, e := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(lockKey)); e != nil && !conn.IsClosed() {
			err = errors.Join(err, fmt.Errorf("unlocking the schema: %w", e))
		}
	}()
	const table = `CREATE TABLE IF NOT EXISTS schema_migration (
		number integer PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL, applied_at timestamptz NOT NULL)`
	if _, err := conn.Exec(ctx, table); err != nil {
		return 0, fmt.Errorf("creating the table of migrations: %w", err)
	}
	rows, err := conn.Query(ctx, "SELECT number, checksum FROM schema_migration")
	if err != nil {
		return 0, fmt.Errorf("reading the applied migrations: %w", err)
	}
	applied := map[int][]byte{}
	var (
		number   int
		checksum []byte
	)
	if _, err := pgx.ForEachRow(rows, []any{&number, &checksum}, func() error {
		applied[number] = bytes.Clone(checksum)
		return nil
	}); err != nil {
		return 0, fmt.Errorf("reading the applied migrations: %w", err)
	}
	return work(applied)
}

// apply runs the text of a step and its record in one transaction.
func apply(ctx context.Context, conn *pgx.Conn, text, record string, args ...any) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// The simple protocol takes several statements in one text.
		if _, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, record, args...)
		return err
	})
}
