package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler"
	"github.com/intendant/intendant/scheduler/engine"
)

// instant is a dispatcher whose agents are done at once.
type instant struct {
	sink  *scheduler.Scheduler
	names []model.AgentName
	tasks chan model.Task
	done  atomic.Int64
}

func (d *instant) Dispatch(_ context.Context, t model.Task) error {
	d.tasks <- t
	return nil
}

func (d *instant) Cancel(context.Context, model.EnvironmentID, []model.TaskID) error { return nil }

func (d *instant) Agents(model.EnvironmentID) []model.AgentName { return d.names }

func (d *instant) EnsureAgents(context.Context, model.EnvironmentID, []model.AgentName) error {
	return nil
}

func (d *instant) StopAgents(context.Context, model.EnvironmentID) error { return nil }

func (d *instant) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-d.tasks:
			now := time.Now()
			err := d.sink.Report(ctx, model.Result{
				Task: t.ID, Environment: t.Environment, Resource: t.Intent.Resource, Kind: t.Kind, AttributeHash: t.Intent.AttributeHash,
				Outcome: model.OutcomeDeployed, Change: model.ChangeCreated, StartedAt: now, FinishedAt: now,
			})
			if err == nil {
				d.done.Add(1)
			}
		}
	}
}

// BenchmarkShell is the throughput of a whole scheduler, with a store in memory whose transactions take two milliseconds and
// agents that are done at once: 10,000 resources on ten agents with 32 tasks each.
func BenchmarkShell(b *testing.B) {
	const n = 10_000
	intents := make([]model.Intent, n)
	d := &instant{tasks: make(chan model.Task, n)}
	for i := range 10 {
		d.names = append(d.names, model.AgentName(fmt.Sprintf("agent%d", i)))
	}
	for i := range intents {
		x, err := model.NewIntent(resource(string(d.names[i%10]), fmt.Sprint(i)), fmt.Appendf(nil, `{"v":%d}`, i), nil, "", false)
		if err != nil {
			b.Fatal(err)
		}
		intents[i] = x
	}
	for b.Loop() {
		m := newMemory()
		m.slow = 2 * time.Millisecond
		m.add(1, intents...)
		s, err := scheduler.New(scheduler.Config{Store: m, Dispatcher: d, Owner: "one", Engine: engine.Config{TasksPerAgent: 32}})
		if err != nil {
			b.Fatal(err)
		}
		d.sink = s
		d.done.Store(0)
		ctx, cancel := context.WithCancel(b.Context())
		end := make(chan struct{})
		for range 320 {
			go d.work(ctx)
		}
		go func() {
			defer close(end)
			if err := s.Run(ctx); err != nil {
				b.Error(err)
			}
		}()
		for d.done.Load() < n {
			time.Sleep(time.Millisecond)
		}
		cancel()
		<-end
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "resources/s")
}
