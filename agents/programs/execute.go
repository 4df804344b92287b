package programs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/pipe"
	"github.com/intendant/intendant/sdk/program"
)

// executor hands tasks to a program.
type executor struct{ x *handlerProgram }

// Execute implements [sdk.Executor].
func (e executor) Execute(c *sdk.Context, r *sdk.Resource) error {
	p, err := e.x.running(c)
	if err != nil {
		return &sdk.Instruction{
			Outcome: model.OutcomeUnavailable, Code: sdk.CodeNoHandler, Retry: model.RetryLater,
			Err: fmt.Errorf("starting the handler program %s: %w", e.x.path, err),
		}
	}
	id := p.begin(c)
	defer p.end(id)
	t := c.Task()
	task := program.Task{
		ID: id, Kind: t.Kind, Resource: r.ID, Version: r.Version, Attributes: r.Raw(), Reason: t.Reason, Requires: t.Requires,
		Reload: t.Reload, ReportOnly: c.ReportOnly(),
	}
	if deadline, ok := c.Deadline(); ok {
		task.Timeout = max(1, time.Until(deadline).Milliseconds())
	}
	// The call outlives the task's context by the grace, so that a handler that obeys it can say what it did.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c))
	defer cancel(nil)
	stop := context.AfterFunc(c, func() {
		_ = p.conn.Emit(program.EventCancel, program.Cancel{ID: id}) // when the pipe is broken the call ends by that
		select {
		case <-time.After(e.x.config.Grace):
			cancel(errStuck)
		case <-ctx.Done():
		}
	})
	defer stop()
	var report program.Report
	err = p.conn.Call(ctx, program.CallExecute, task, &report)
	var refused *pipe.Error
	switch {
	case err == nil:
		e.x.worked()
		return report.Apply(c)
	case errors.Is(err, errStuck):
		p.kill()
		<-p.done
		return sdk.Coded(sdk.CodeDeadline, fmt.Errorf("the handler did not return %s after its deadline; its program %s was ended", e.x.config.Grace, p.hello.Name))
	case errors.As(err, &refused):
		return fmt.Errorf("the handler program %s could not run the task: %w", p.hello.Name, err)
	}
	<-p.done
	return &sdk.Instruction{
		Outcome: model.OutcomeFailed, Code: codeProgramEnded, Retry: model.RetryLater,
		Err: fmt.Errorf("the handler program %s ended (%s) before it was done", p.hello.Name, p.state),
	}
}

// errStuck ends the call of a handler that does not return.
var errStuck = errors.New("the handler does not return")

// begin gives a task its number.
func (p *process) begin(c *sdk.Context) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	p.tasks[p.next] = c
	return p.next
}

func (p *process) end(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tasks, id)
}

// worked notes that the program is of use.
func (x *handlerProgram) worked() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fails = 0
}
