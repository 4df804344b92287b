package eval

import (
	"context"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// maxQuerySteps bounds the work of one query.
const maxQuerySteps = 1_000_000

// Program is the program that the model is of.
func (m *Model) Program() *check.Program { return m.prog }

// Query evaluates an expression in a model that was completed without faults. Lookups find what is there; nothing is made or
// changed. The error says that the context was done. One query runs at a time.
func (m *Model) Query(ctx context.Context, q *check.Query) (value.Value, []*check.Fault, error) {
	return m.m.query(ctx, q)
}

func (m *machine) query(ctx context.Context, q *check.Query) (value.Value, []*check.Fault, error) {
	defer m.forget()
	result := &variable{}
	u := m.unit(opAssign, q.Layout, nil)
	u.x, u.by, u.target = q.X, q.X.Where(), result
	if f := m.prepare(q.X, nil, u); f != nil {
		return nil, []*check.Fault{f.By(u.by, false)}, nil
	}
	m.start(u)
	for steps := 0; m.runq.len() > 0; steps++ {
		if err := ctx.Err(); err != nil && steps&(checkEvery-1) == 0 {
			return nil, nil, err
		}
		t := m.runq.pop()
		if steps >= maxQuerySteps {
			return nil, []*check.Fault{check.New("CompilerException", u.by, "the query takes more than %d steps", maxQuerySteps)}, nil
		}
		if f := m.perform(t); f != nil {
			return nil, []*check.Fault{f}, nil
		}
	}
	if result.done {
		return result.val, nil, nil
	}
	var fs []*check.Fault
	for _, e := range m.prog.Entities {
		fs = append(fs, m.unmatched(e)...)
	}
	if len(fs) == 0 {
		fs = append(fs, m.stuck())
	}
	return nil, fs, nil
}

// forget drops what a query that failed has left behind.
func (m *machine) forget() {
	for m.runq.len() > 0 {
		m.runq.pop()
	}
	if m.units > 0 {
		for u := range m.unfinished {
			u.started = 0
		}
	}
	m.units, m.faults = 0, faults{}
	for i := range m.indexes {
		m.indexes[i].waiting, m.indexes[i].order = nil, nil
	}
}
