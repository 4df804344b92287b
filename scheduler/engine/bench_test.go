package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

// large makes a version of n resources on a number of agents; each but the first of its agent requires the one before it
// and one of another agent.
func large(b testing.TB, n, agents int) []model.Intent {
	b.Helper()
	name := func(i int) string { return fmt.Sprintf("agent%d/%d", i%agents, i) }
	xs := make([]model.Intent, n)
	for i := range n {
		var req []string
		if i%10 != 0 {
			req = append(req, name(i-1))
		}
		if i%7 == 3 && i > agents {
			req = append(req, name(i-agents))
		}
		xs[i] = in(b, name(i), fmt.Sprintf(`{"content":"some text of ordinary length %d","mode":644,"owner":"root","send_event":false}`, i), req...)
	}
	return xs
}

// deployed is a snapshot of a version that is in place.
func deployed(xs []model.Intent) model.Snapshot {
	snap := model.Snapshot{Version: 1, Processed: 1, Intents: xs, Settings: settings("600", "86400")}
	for _, x := range xs {
		snap.States = append(snap.States, model.ResourceState{
			Resource: x.Resource, Compliance: model.Compliant, LastRun: model.RunSuccessful, LastOutcome: model.OutcomeDeployed, Blocked: model.NotBlocked,
			IntentHash: x.AttributeHash, DeployedHash: x.AttributeHash, DeployedVersion: 1, LastRunAt: epoch, LastSuccess: epoch,
		})
	}
	return snap
}

// BenchmarkFold is the cost of a new version with 100 changes among 100,000 resources.
func BenchmarkFold(b *testing.B) {
	const n, agents = 100_000, 100
	xs := large(b, n, agents)
	s := engine.New(engine.Config{}, deployed(xs))
	s.Step(epoch, engine.Started{})
	b.ReportAllocs()
	v := 1
	for b.Loop() {
		b.StopTimer()
		v++
		changed := make([]model.Intent, 100)
		for k := range changed {
			x := xs[(k*997+v)%n]
			y, err := model.NewIntent(x.Resource, fmt.Appendf(nil, `{"content":"version %d"}`, v), x.Requires, "", false)
			if err != nil {
				b.Fatal(err)
			}
			changed[k] = y
		}
		b.StartTimer()
		s.Step(epoch, engine.VersionReleased{Version: v, Changed: changed})
	}
}

// BenchmarkLoad is the cost of taking over an environment of 100,000 resources.
func BenchmarkLoad(b *testing.B) {
	snap := deployed(large(b, 100_000, 100))
	b.ReportAllocs()
	for b.Loop() {
		s := engine.New(engine.Config{}, snap)
		s.Step(epoch, engine.Started{})
	}
}

// BenchmarkDeploy is the cost of a task, from its result to the start of the next, while 100,000 resources are deployed.
func BenchmarkDeploy(b *testing.B) {
	const n, agents = 100_000, 100
	xs := large(b, n, agents)
	fresh := func() (*engine.State, []model.Task) {
		s := engine.New(engine.Config{}, model.Snapshot{Version: 1, Intents: xs, Settings: settings("600", "86400")})
		s.Step(epoch, engine.Started{})
		var flight []model.Task
		for a := range agents {
			flight = starts(flight, s.Step(epoch, engine.AgentUp{Agent: model.AgentName(fmt.Sprintf("agent%d", a))}))
		}
		return s, flight
	}
	s, flight := fresh()
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		if len(flight) == 0 {
			b.StopTimer()
			s, flight = fresh()
			b.StartTimer()
		}
		task := flight[len(flight)-1]
		now = now.Add(time.Millisecond)
		flight = starts(flight[:len(flight)-1], s.Step(now, engine.TaskFinished{Result: model.Result{
			Task: task.ID, Resource: task.Intent.Resource, Kind: task.Kind, AttributeHash: task.Intent.AttributeHash,
			Outcome: model.OutcomeDeployed, Change: model.ChangeCreated, StartedAt: now, FinishedAt: now,
		}}))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "resources/s")
}

func starts(flight []model.Task, effects []engine.Effect) []model.Task {
	for _, f := range effects {
		if t, ok := f.(engine.StartTask); ok {
			flight = append(flight, t.Task)
		}
	}
	return flight
}
