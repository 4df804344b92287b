package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

// patience bounds waiting for what must happen.
const patience = 30 * time.Second

// hear waits for a hint that fits.
func hear(t *testing.T, hints <-chan model.Hint, fits func(model.Hint) bool) model.Hint {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case h, ok := <-hints:
			if !ok {
				t.Fatal("the subscription ended")
			}
			if fits(h) {
				return h
			}
		case <-timeout:
			t.Fatal("the hint does not come")
		}
	}
}

func TestHintsCrossServers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	speaker, listener := storetest.Open(t, url), storetest.Open(t, url)
	env := storetest.Environment(t, speaker).ID
	hints := listener.Subscribe(t.Context(), model.TopicVersionStored, model.TopicVersionReleased)
	// What is rolled back is not spoken of: the next hint is that of the version that was stored.
	bad := storetest.State(env, storetest.Intents(t, "a > b")...)
	if _, err := speaker.StoreVersion(t.Context(), bad, true, storetest.Now()); err == nil {
		t.Fatal("a broken state was stored")
	}
	if err := speaker.EnqueueCommand(t.Context(), model.Command{ID: model.CommandID{UUID: uuid.New()}, Environment: env, Kind: model.CommandDeploy, CreatedAt: storetest.Now()}); err != nil {
		t.Fatal(err)
	}
	n := storetest.Version(t, speaker, env, true, storetest.Intents(t, "a")...)
	for _, topic := range []model.Topic{model.TopicVersionStored, model.TopicVersionReleased} {
		want := model.Hint{Topic: topic, Environment: env, ID: fmt.Sprint(n)}
		if got := hear(t, hints, func(model.Hint) bool { return true }); got != want {
			t.Errorf("hint = %+v, want %+v", got, want)
		}
	}
}

func TestHintsAreMerged(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	slow := s.Subscribe(t.Context(), model.TopicCommand)
	quick := s.Subscribe(t.Context(), model.TopicEnvironment)
	const n = 50
	for i := range n {
		if err := s.SetSetting(t.Context(), env, "x", []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetSetting(t.Context(), env, "last", []byte("1")); err != nil {
		t.Fatal(err)
	}
	heard := 0
	hear(t, quick, func(h model.Hint) bool { heard++; return h.ID == "last" })
	if heard > n/2 {
		t.Errorf("%d hints for %d changes of one thing: equal ones that wait are not merged", heard, n)
	}
	hear(t, slow, func(h model.Hint) bool { return h.Environment == env })
}

func TestSubscriptionEnds(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	byContext, byStore := s.Subscribe(ctx, model.TopicCommand), s.Subscribe(t.Context(), model.TopicCommand)
	ended := func(c <-chan model.Hint) {
		t.Helper()
		select {
		case _, ok := <-c:
			if ok {
				t.Error("a hint comes from nowhere")
			}
		case <-time.After(patience):
			t.Error("the channel is not closed")
		}
	}
	cancel()
	ended(byContext)
	s.Close()
	ended(byStore)
	ended(s.Subscribe(t.Context(), model.TopicCommand))
}

// When the listening connection breaks, it is made anew, and subscribers are told that they may have missed something.
func TestListeningReconnects(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	env := storetest.Environment(t, s).ID
	hints := s.Subscribe(t.Context(), model.TopicCommand)
	conn := connect(t, url)
	for range 2 {
		var cut int
		err := conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query = 'LISTEN intendant_hint'`).Scan(&cut)
		if err != nil || cut != 1 {
			t.Fatalf("%d listeners cut, %v, want one", cut, err)
		}
		hear(t, hints, func(h model.Hint) bool { return h == model.Hint{Topic: model.TopicCommand} })
	}
	command := model.Command{ID: model.CommandID{UUID: uuid.New()}, Environment: env, Kind: model.CommandDeploy, CreatedAt: storetest.Now()}
	if err := s.EnqueueCommand(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	hear(t, hints, func(h model.Hint) bool { return h.ID == command.ID.String() })
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	if _, err := store.Open(t.Context(), store.Config{URL: "postgres://%"}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a URL that is none: %v, want invalid", err)
	}
	nowhere := "postgres:///x?host=" + t.TempDir()
	if _, err := store.Open(t.Context(), store.Config{URL: nowhere}); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("no server: %v, want unavailable", err)
	}
	if _, err := store.Open(t.Context(), store.Config{URL: nowhere, Migrate: true}); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("no server to migrate: %v, want unavailable", err)
	}
	s, err := store.Open(t.Context(), store.Config{URL: storetest.EmptyURL(t), Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Projects(t.Context()); err != nil {
		t.Errorf("after migrating: %v", err)
	}
	status, err := s.DatabaseStatus(t.Context())
	if err != nil || !status.Connected || status.Version == "" || status.MaxPool != store.DefaultMaxConnections {
		t.Errorf("DatabaseStatus = %+v, %v", status, err)
	}
}

// Transactions that wait for each other crosswise both get through.
func TestInTxRepeatsDeadlocks(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a, b := storetest.Project(t, s), storetest.Project(t, s)
	var (
		wait  sync.WaitGroup
		tries atomic.Int32
		met   sync.WaitGroup
		once  [2]sync.Once
	)
	met.Add(2)
	for i, order := range [][]model.Project{{a, b}, {b, a}} {
		wait.Go(func() {
			err := s.InTx(t.Context(), func(tx *store.Tx) error {
				tries.Add(1)
				if _, err := tx.Exec(t.Context(), "UPDATE project SET name = name WHERE id = $1", order[0].ID.UUID); err != nil {
					return err
				}
				once[i].Do(func() { // both have their first row before either goes on
					met.Done()
					met.Wait()
				})
				_, err := tx.Exec(t.Context(), "UPDATE project SET name = name WHERE id = $1", order[1].ID.UUID)
				return err
			})
			if err != nil {
				t.Errorf("InTx: %v", err)
			}
		})
	}
	wait.Wait()
	if tries.Load() < 3 {
		t.Errorf("%d tries, want a third: the two did not meet", tries.Load())
	}
}

// A worker that dies at any moment of finishing leaves all or nothing, and the job can be finished after it.
func TestFinishIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Setting("recompile_backoff", "0.000001")).ID
	intents := storetest.Many(t, 100, nil)
	interrupted, whole := 0, 0
	for limit := 200 * time.Microsecond; interrupted == 0 || whole == 0; limit = limit * 3 / 2 {
		id := request(t, s, env, now)
		now = now.Add(time.Hour)
		mustClaim(t, s, "w", now)
		before, err := s.Environment(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		state := storetest.State(env, intents...)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, failed := s.FinishCompileJob(ctx, "w", outcome(id, &state), now)
		cancel()
		r := report(t, s, id)
		switch {
		case r.Status == model.CompileRunning && r.Version == 0:
			interrupted++
			if after, err := s.Environment(t.Context(), env); err != nil || after.LastVersion != before.LastVersion {
				t.Fatalf("an unfinished job leaves version %d, %v, want %d", after.LastVersion, err, before.LastVersion)
			}
		case r.Status == model.CompileSucceeded && r.Version == before.LastVersion+1:
			whole++
		default:
			t.Fatalf("after %v (%v) the job is %s with version %d", limit, failed, r.Status, r.Version)
		}
		n := finish(t, s, "w", id, &state, now)
		if n != before.LastVersion+1 {
			t.Fatalf("finished as version %d, want %d", n, before.LastVersion+1)
		}
		if got, err := s.IntentsOf(t.Context(), env, n); err != nil || len(got) != len(intents) {
			t.Fatalf("version %d has %d resources, %v, want %d", n, len(got), err, len(intents))
		}
		if limit > patience {
			t.Fatal("no time limit interrupts, or none lets through")
		}
	}
}

func TestHousekeep(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Setting("available_versions_to_keep", "2"), storetest.Watching("https://git.example.org/r", "r")).ID
	halted := storetest.Environment(t, s, storetest.Setting("available_versions_to_keep", "1")).ID
	for i := range 5 {
		for _, e := range []model.EnvironmentID{env, halted} {
			storetest.Version(t, s, e, i < 2, storetest.Intents(t, fmt.Sprint("a=", i), fmt.Sprint("host", i, "/b"))...)
		}
	}
	lease, _ := acquire(t, s, env, "x", now)
	if err := s.SaveProgress(t.Context(), lease, progress(env, storetest.Intents(t, "a=0"))); err != nil {
		t.Fatal(err)
	}
	if err := s.SetHalted(t.Context(), halted, true, "me", now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordDelivery(t.Context(), model.Delivery{Repository: "r", Key: "k", Status: model.DeliveryIgnored, ReceivedAt: now}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSession(t.Context(), model.AgentSession{ID: "s", Environment: env, ConnectedAt: now, LostAt: now}); err != nil {
		t.Fatal(err)
	}
	purged, err := s.Housekeep(t.Context(), now.Add(time.Hour))
	if err != nil || purged.Versions != 1 || purged.Actions != 0 || purged.Deliveries != 0 {
		t.Errorf("Housekeep = %+v, %v, want version 3 alone: 1 is absorbed, 2 is released, 4 and 5 are the newest", purged, err)
	}
	l, err := s.Versions(t.Context(), halted, model.VersionFilter{}, model.Page{})
	if err != nil || l.Total != 5 {
		t.Errorf("the halted environment has %d versions, %v, want 5", l.Total, err)
	}
	purged, err = s.Housekeep(t.Context(), now.Add(40*24*time.Hour))
	if err != nil || purged.Actions == 0 || purged.Deliveries != 1 || purged.Sessions != 1 {
		t.Errorf("much later Housekeep = %+v, %v", purged, err)
	}
}

// A subscriber that does not listen costs a bounded amount of memory: what waits for it becomes coarser, and nothing is lost.
func TestHintsBecomeCoarser(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	hints := s.Subscribe(t.Context(), model.TopicCommand, model.TopicDelivery)
	last := s.Subscribe(t.Context(), model.TopicNotification)
	const n = 5000
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		for _, payload := range []string{"'nonsense'", "'command nonsense x'", "'command'", "'command " + env.String() + " ' || n", "'delivery_changed - ' || n", "'notification - '"} {
			if _, err := tx.Exec(t.Context(), "SELECT pg_notify('intendant_hint', "+payload+") FROM generate_series(1, $1) n", n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	hear(t, last, func(model.Hint) bool { return true }) // all that was said before waits now
	heard := 0
	hear(t, hints, func(h model.Hint) bool {
		heard++
		return h == model.Hint{Topic: model.TopicCommand, Environment: env}
	})
	if heard > 2*n/3 {
		t.Errorf("%d hints came one by one before the one that covers the others", heard)
	}
	hear(t, hints, func(h model.Hint) bool { return h == model.Hint{Topic: model.TopicDelivery} })
}
