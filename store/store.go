package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/intendant/intendant/migrations"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// The defaults of [Config].
const (
	DefaultMaxConnections = 20
	DefaultConnectTimeout = 10 * time.Second
)

// maxTries is how often a transaction is begun that fails by a deadlock or a serialisation conflict.
const maxTries = 6

// Config is what a store needs.
type Config struct {
	// Logger takes lost connections and retried transactions. Defaults to discarding them.
	Logger *slog.Logger
	// MasterKey, at least 16 bytes of secret, seals the credentials of repositories. Without one they can not be stored:
	// writes of secrets fail with model.ErrInvalid, and reads of sealed ones with model.ErrUnavailable.
	MasterKey []byte
	// MaxConnections bounds the pool; one more connection listens for hints. Defaults to DefaultMaxConnections.
	MaxConnections int
	// ConnectTimeout bounds the first connection. Defaults to DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Migrate brings the schema up to date before anything else. Defaults to false: the schema must be there.
	Migrate bool
	// Now is the clock for the few times that no caller passes. Defaults to time.Now.
	Now func() time.Time
	// URL is the database: postgres://user@host/name?…, or key=value pairs. Required.
	URL string
}

// Store is a pool of connections to one database. Its methods may be called by any number of goroutines.
type Store struct {
	log      *slog.Logger
	now      func() time.Time
	pool     *pgxpool.Pool
	seal     *sealer
	hub      *hub
	contents contentCache

	mu     sync.Mutex
	server string // guarded by mu: who holds the sessions saved from here; see ExpireSessions
}

// Open connects to the database, migrates it if asked, and begins to listen for hints. It fails with [model.ErrUnavailable]
// when the database can not be reached, [model.ErrInvalid] when the configuration makes no sense.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = DefaultMaxConnections
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = DefaultConnectTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	seal, err := newSealer(cfg.MasterKey)
	if err != nil {
		return nil, err
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w: %w", err, model.ErrInvalid)
	}
	pc.MaxConns = int32(min(cfg.MaxConnections, 10_000))
	pc.ConnConfig.RuntimeParams["application_name"] = "intendant"
	pc.ConnConfig.RuntimeParams["timezone"] = "UTC"
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	if cfg.Migrate {
		if err := migrate(ctx, pc.ConnConfig); err != nil {
			return nil, err
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w: %w", err, model.ErrUnavailable)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connecting to the database: %w: %w", err, model.ErrUnavailable)
	}
	s := &Store{log: cfg.Logger, now: cfg.Now, pool: pool, seal: seal}
	s.hub = newHub(cfg.Logger, pc.ConnConfig.Copy())
	select {
	case <-s.hub.ready:
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("listening for changes in the database: %w: %w", ctx.Err(), model.ErrUnavailable)
	}
	return s, nil
}

func migrate(ctx context.Context, cfg *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w: %w", err, model.ErrUnavailable)
	}
	_, err = migrations.Up(ctx, conn)
	if e := conn.Close(context.WithoutCancel(ctx)); err == nil && e != nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

// Close ends all subscriptions and waits until every connection has been given back and closed.
func (s *Store) Close() {
	s.hub.close()
	s.pool.Close()
}

// Tx is a transaction in the making. It belongs to one goroutine.
type Tx struct {
	*sqlgen.Queries
	pgx.Tx
	hints []string
	// onCommit runs after the commit, in order.
	onCommit []func()
}

// notify sends hints on the channel.
const notify = "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p"

// hint tells subscribers, once the transaction has been committed, that something changed.
func (tx *Tx) hint(topic model.Topic, env model.EnvironmentID, id string) {
	tx.hints = append(tx.hints, encodeHint(model.Hint{Topic: topic, Environment: env, ID: id}))
}

// pipeline queues statements whose results nobody waits for, so that they reach the database together.
type pipeline struct {
	*sqlgen.Queries
	batch pgx.Batch
	// check, when set, judges what the next statement did.
	check func(pgconn.CommandTag) error
}

// errPipeline tells of a statement with an answer where none can be had.
var errPipeline = errors.New("a pipeline has no answers")

// Exec queues a statement.
func (q *pipeline) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	queued := q.batch.Queue(sql, args...)
	if q.check != nil {
		queued.Exec(q.check)
		q.check = nil
	}
	return pgconn.CommandTag{}, nil
}

// Query fails: the statement would have an answer.
func (q *pipeline) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errPipeline }

// QueryRow fails: the statement would have an answer.
func (q *pipeline) QueryRow(context.Context, string, ...any) pgx.Row { return noRow{} }

type noRow struct{}

func (noRow) Scan(...any) error { return errPipeline }

// fence makes the pipeline fail with model.ErrFenced when the lease is not the current one, and keeps it current until the transaction
// ends. What was queued behind it is then taken back with the transaction.
func (q *pipeline) fence(ctx context.Context, lease model.Lease) error {
	q.check = func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("environment %s, lease %d of %s: %w", lease.Environment, lease.Token, lease.Owner, model.ErrFenced)
		}
		return nil
	}
	return q.HoldLease(ctx, lease.Environment.UUID, lease.Token)
}

// pipe runs the statements that work queues, with the hints given so far, in one round trip.
func (tx *Tx) pipe(ctx context.Context, work func(*pipeline) error) error {
	p := &pipeline{}
	p.Queries = sqlgen.New(p)
	if err := work(p); err != nil {
		return err
	}
	if len(tx.hints) > 0 {
		p.batch.Queue(notify, channel, tx.hints)
		tx.hints = nil
	}
	return tx.SendBatch(ctx, &p.batch).Close()
}

// InTx runs work in a transaction and commits it if work returns nil. When the database reports a deadlock or a
// serialisation conflict, work is run again from the start in a new transaction: it must have no other effects, or ones
// that may be repeated. Errors of the database come back as the sentinels of package model where one fits.
func (s *Store) InTx(ctx context.Context, work func(tx *Tx) error) error {
	return s.inTx(ctx, pgx.TxOptions{}, work)
}

// inSnapshot runs reads that must see one state of the database.
func (s *Store) inSnapshot(ctx context.Context, work func(tx *Tx) error) error {
	return s.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, work)
}

func (s *Store) inTx(ctx context.Context, opts pgx.TxOptions, work func(tx *Tx) error) error {
	for try := 1; ; try++ {
		err := s.tryTx(ctx, opts, work)
		if err == nil || !isConflict(err) || try == maxTries || ctx.Err() != nil {
			return classify(err)
		}
		s.log.Debug("transaction repeated", "try", try, "error", err)
		t := time.NewTimer(time.Duration(rand.IntN(1<<try)) * time.Millisecond) //nolint:gosec // jitter, no secret
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func (s *Store) tryTx(ctx context.Context, opts pgx.TxOptions, work func(tx *Tx) error) (err error) {
	t, err := s.pool.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	tx := &Tx{Queries: sqlgen.New(t), Tx: t}
	defer func() {
		// Without effect after a commit. The context may have ended, the rollback must not.
		_ = t.Rollback(context.WithoutCancel(ctx))
	}()
	if err := work(tx); err != nil {
		return err
	}
	if len(tx.hints) > 0 {
		if _, err := t.Exec(ctx, notify, channel, tx.hints); err != nil {
			return err
		}
	}
	if err := t.Commit(ctx); err != nil {
		return err
	}
	for _, f := range tx.onCommit {
		f()
	}
	return nil
}

// read returns the queries outside of a transaction.
func (s *Store) read() *sqlgen.Queries { return sqlgen.New(s.pool) }

// isConflict reports whether a transaction may succeed when it is simply run again.
func isConflict(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pe.Code == "40001" || pe.Code == "40P01")
}

// violates reports whether an error is the violation of a named constraint or unique index.
func violates(err error, constraint string) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pe.Code, "23") && pe.ConstraintName == constraint
}

// classify adds the sentinel of package model that fits an error of the database. An error that has one already keeps it.
func classify(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{model.ErrNotFound, model.ErrConflict, model.ErrInvalid, model.ErrForbidden, model.ErrUnavailable, model.ErrFenced} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %w", err, model.ErrNotFound)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pe.Code[:2] {
		case "23": // integrity: unique and exclusion are conflicts, a broken reference or check is a bad value
			switch pe.Code {
			case "23505", "23P01":
				return fmt.Errorf("%w: %w", err, model.ErrConflict)
			case "23503":
				return fmt.Errorf("%w: %w", err, model.ErrConflict)
			}
			return fmt.Errorf("%w: %w", err, model.ErrInvalid)
		case "22": // data the column can not hold
			return fmt.Errorf("%w: %w", err, model.ErrInvalid)
		case "08", "53", "57": // connection, resources, shutdown
			return fmt.Errorf("%w: %w", err, model.ErrUnavailable)
		}
		return err
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", err, model.ErrUnavailable)
	}
	return err
}

// notFound replaces "no rows" by a sentence that names what was looked for.
func notFound(err error, format string, args ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf(format+": %w", append(args, model.ErrNotFound)...)
	}
	return classify(err)
}

func noEnvironment(id model.EnvironmentID) error {
	return fmt.Errorf("environment %s: %w", id, model.ErrNotFound)
}

// mustExist fails with model.ErrNotFound when the environment is not there.
func mustExist(ctx context.Context, q *sqlgen.Queries, env model.EnvironmentID) error {
	ok, err := q.EnvironmentExists(ctx, env.UUID)
	if err != nil {
		return classify(err)
	}
	if !ok {
		return noEnvironment(env)
	}
	return nil
}

// newID returns an id that sorts by time, so that new rows land at the end of their indexes.
func newID() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.New()
	}
	return id
}
