package store_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

// The sizes of the promises: a large environment of which little changes.
const (
	benchResources = 100_000
	benchChanges   = 100
)

// benchStates are two states that differ in benchChanges resources.
func benchStates(b *testing.B, env model.EnvironmentID) [2]model.DesiredState {
	b.Helper()
	changed := func(i int) bool { return i%(benchResources/benchChanges) == 0 }
	return [2]model.DesiredState{
		storetest.State(env, storetest.Many(b, benchResources, nil)...),
		storetest.State(env, storetest.Many(b, benchResources, changed)...),
	}
}

// BenchmarkStoreVersion stores version N+1 with 100 changes among 100,000 resources.
func BenchmarkStoreVersion(b *testing.B) {
	for _, release := range []bool{false, true} {
		b.Run(fmt.Sprintf("release=%t", release), func(b *testing.B) {
			s := storetest.New(b)
			env := storetest.Environment(b, s).ID
			states := benchStates(b, env)
			if _, err := s.StoreVersion(b.Context(), states[0], true, storetest.Now()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.StoreVersion(b.Context(), states[(i+1)%2], release, storetest.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStoreVersionCold is the same in a server that has just started and remembers nothing.
func BenchmarkStoreVersionCold(b *testing.B) {
	url := storetest.URL(b)
	s := storetest.Open(b, url)
	env := storetest.Environment(b, s).ID
	states := benchStates(b, env)
	if _, err := s.StoreVersion(b.Context(), states[0], true, storetest.Now()); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		cold := storetest.Open(b, url)
		b.StartTimer()
		if _, err := cold.StoreVersion(b.Context(), states[(i+1)%2], false, storetest.Now()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cold.Close()
		b.StartTimer()
	}
}

// BenchmarkStoreFirstVersion stores a whole model at once.
func BenchmarkStoreFirstVersion(b *testing.B) {
	s := storetest.New(b)
	states := benchStates(b, model.EnvironmentID{})
	for b.Loop() {
		b.StopTimer()
		env := storetest.Environment(b, s).ID
		states[0].Environment = env
		b.StartTimer()
		if _, err := s.StoreVersion(b.Context(), states[0], true, storetest.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiff compares two versions of 100,000 resources that differ in 100.
func BenchmarkDiff(b *testing.B) {
	s := storetest.New(b)
	env := storetest.Environment(b, s).ID
	for _, state := range benchStates(b, env) {
		if _, err := s.StoreVersion(b.Context(), state, true, storetest.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("DiffVersions", func(b *testing.B) {
		for b.Loop() {
			d, err := s.DiffVersions(b.Context(), env, 1, 2)
			if err != nil || len(d) != benchChanges {
				b.Fatalf("DiffVersions = %d changes, %v", len(d), err)
			}
		}
	})
	b.Run("ChangesSince", func(b *testing.B) {
		for b.Loop() {
			_, changed, _, err := s.ChangesSince(b.Context(), env, 1)
			if err != nil || len(changed) != benchChanges {
				b.Fatalf("ChangesSince = %d changes, %v", len(changed), err)
			}
		}
	})
	b.Run("Snapshot", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Snapshot(b.Context(), env); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSaveProgress saves batches of results with their states and two log lines each.
func BenchmarkSaveProgress(b *testing.B) {
	for _, size := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := storetest.New(b)
			env := storetest.Environment(b, s).ID
			intents := storetest.Many(b, size, nil)
			storetest.Version(b, s, env, true, intents...)
			lease := storetest.Lease(b, s, env)
			rows := 0
			for b.Loop() {
				b.StopTimer()
				p := progress(env, intents)
				b.StartTimer()
				if err := s.SaveProgress(b.Context(), lease, p); err != nil {
					b.Fatal(err)
				}
				rows += len(p.States) + len(p.Finished)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkDeployCycle stores what the deploys of 1,000 resources store: their starts, then their ends with two log lines each.
func BenchmarkDeployCycle(b *testing.B) {
	s := storetest.New(b)
	env := storetest.Environment(b, s).ID
	intents := storetest.Many(b, 1000, nil)
	storetest.Version(b, s, env, true, intents...)
	lease := storetest.Lease(b, s, env)
	for b.Loop() {
		b.StopTimer()
		end := progress(env, intents)
		begin := model.Progress{Now: end.Now}
		for i, r := range end.Finished {
			begin.Started = append(begin.Started, model.Action{
				ID: r.Task, Environment: env, Version: 1, Resource: r.Resource, Kind: model.ActionDeploy, Reason: "new version", StartedAt: r.StartedAt,
			})
			state := end.States[i]
			state.Deploying = true
			begin.States = append(begin.States, state)
		}
		b.StartTimer()
		for _, p := range []model.Progress{begin, end} {
			if err := s.SaveProgress(b.Context(), lease, p); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(intents))/b.Elapsed().Seconds(), "resources/s")
}

// progress is a successful deploy of all intents.
func progress(env model.EnvironmentID, intents []model.Intent) model.Progress {
	now := storetest.Now()
	p := model.Progress{Now: now, Processed: 1}
	for _, in := range intents {
		p.States = append(p.States, model.ResourceState{
			Resource: in.Resource, Compliance: model.Compliant, LastRun: model.RunSuccessful, Blocked: model.NotBlocked,
			IntentHash: in.AttributeHash, DeployedHash: in.AttributeHash, DeployedVersion: 1, LastOutcome: model.OutcomeDeployed,
			LastRunAt: now, LastSuccess: now, LastProducedEvents: now,
		})
		p.Finished = append(p.Finished, model.Result{
			Task: model.TaskID{UUID: uuid.New()}, Environment: env, Resource: in.Resource, Version: 1, Kind: model.TaskDeploy,
			AttributeHash: in.AttributeHash, Outcome: model.OutcomeDeployed, Change: model.ChangeUpdated, StartedAt: now, FinishedAt: now,
			Changes: model.Diff{"content": {Current: []byte(`"old"`), Desired: []byte(`"new"`)}},
			Log: []model.LogLine{
				{Level: model.LevelInfo, Message: "Start run for resource", Time: now},
				{Level: model.LevelInfo, Message: "End run for resource", Time: now},
			},
		})
	}
	return p
}
