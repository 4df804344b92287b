package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/confine"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/sdk"
)

// Stable codes of failures besides those of package sdk.
const (
	// CodeDied: the process ended while the handler ran.
	CodeDied = "executor-died"
	// CodeMemory: the handler used more memory than its process may.
	CodeMemory = "executor-memory"
	// CodeCode: the code, or its packages, can not be had or not be imported.
	CodeCode = "code-unavailable"
)

// memoryHint says what to do about a limit of memory.
const memoryHint = "have it hold less at once, or raise executor-memory-limit in the section [agent] of the configuration"

// noProvider is the host's answer for a type that the code declares and has no handler for, when the agent has one.
const noProvider = "no-provider"

// preferred finds the code that a version ships for a resource's type; it comes before handlers of the agent's own.
func (m *Manager) preferred(ctx context.Context, task model.Task) (sdk.Executor, error) {
	if task.Code == "" {
		return nil, fmt.Errorf("version %d ships no code for agent %s: %w", task.Version, task.Agent, model.ErrNotFound)
	}
	manifest, err := m.manifest(ctx, task.Code)
	if err != nil {
		return nil, withoutNotFound(err)
	}
	if !manifest.Provides(task.Intent.Resource.Parts().Type) {
		return nil, fmt.Errorf("version %d ships no code for %s: %w", task.Version, task.Intent.Resource.Parts().Type, model.ErrNotFound)
	}
	return &execution{m: m, manifest: manifest}, nil
}

// fallback finds the code of an agent for types that no other handler is for: modules do not always say which types they have.
func (m *Manager) fallback(ctx context.Context, task model.Task) (sdk.Executor, error) {
	if task.Code == "" {
		return nil, fmt.Errorf("version %d ships no code for agent %s: %w", task.Version, task.Agent, model.ErrNotFound)
	}
	manifest, err := m.manifest(ctx, task.Code)
	if err != nil {
		return nil, withoutNotFound(err)
	}
	return &execution{m: m, manifest: manifest}, nil
}

// withoutNotFound makes an error that a registry does not take for "nobody handles this".
func withoutNotFound(err error) error {
	if errors.Is(err, model.ErrNotFound) {
		return errors.New(err.Error())
	}
	return err
}

// execution runs the tasks of a manifest.
type execution struct {
	m        *Manager
	manifest *model.CodeManifest
}

// ResolvesReferences implements [sdk.ReferenceExecutor]: the code does it.
func (*execution) ResolvesReferences() {}

// blueprintOf returns the blueprint of all modules of a manifest, or, if narrow is not nil, of those alone.
func (m *Manager) blueprintOf(ctx context.Context, code string, manifest *model.CodeManifest, narrow []model.ModuleCode) (*blueprint, error) {
	needed, key := manifest.Modules, code
	if narrow != nil {
		needed = narrow
		key = strings.Join(append([]string{code}, moduleNames(narrow)...), " ")
	}
	m.mu.Lock()
	b := m.blueprints[key]
	m.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, err := m.plan(ctx, needed, slices.Concat(manifest.Others, manifest.Modules), manifest.Pip)
	if err != nil {
		return nil, &UnavailableError{Retry: true, Err: err}
	}
	m.mu.Lock()
	m.blueprints[key] = b
	m.mu.Unlock()
	return b, nil
}

// modulesFor are the modules of a manifest that have one of some types.
func modulesFor(manifest *model.CodeManifest, types []string) []model.ModuleCode {
	var out []model.ModuleCode
	for _, c := range manifest.Modules {
		if slices.ContainsFunc(types, func(t string) bool { return slices.Contains(c.Types, t) }) {
			out = append(out, c)
		}
	}
	return out
}

// with calls f with a process that has the code for some types, while nothing else of the agent runs in it.
//
// All modules of an agent share a process. Modules that can not be installed together are the exception: then a process has only
// those that the types need.
func (m *Manager) with(ctx context.Context, task model.Task, manifest *model.CodeManifest, types []string, say func(string), f func(*worker, *python.Process) error) error {
	b, err := m.blueprintOf(ctx, task.Code, manifest, nil)
	if err != nil {
		return err
	}
	err = m.use(ctx, task.Agent, b, say, f)
	unavailable, ok := errors.AsType[*UnavailableError](err)
	narrow := modulesFor(manifest, types)
	if !ok || unavailable.Retry || len(narrow) == 0 || len(narrow) == len(manifest.Modules) {
		return err
	}
	together := err
	if b, err = m.blueprintOf(ctx, task.Code, manifest, narrow); err != nil {
		return err
	}
	m.log.DebugContext(ctx, "the agent's modules do not go together; using those of the resource alone", "agent", task.Agent, "error", together)
	return m.use(ctx, task.Agent, b, say, f)
}

func (m *Manager) use(ctx context.Context, agent model.AgentName, b *blueprint, say func(string), f func(*worker, *python.Process) error) error {
	w, err := m.worker(agent, b)
	if err != nil {
		return err
	}
	defer m.release(w)
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.give()
	p, err := w.ensure(ctx, say)
	if err != nil {
		return err
	}
	return f(w, p)
}

// outcome is how an operation ended.
type outcome struct {
	Outcome   model.Outcome `json:"outcome"`
	Code      string        `json:"code"`
	Message   string        `json:"message"`
	Traceback string        `json:"traceback"`
	// Exhausted says that the operation failed for want of memory.
	Exhausted bool         `json:"exhausted"`
	Change    model.Change `json:"change"`
	Changes   model.Diff   `json:"changes"`
	Facts     []struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		Expires bool   `json:"expires"`
	} `json:"facts"`
}

// Execute implements [sdk.Executor].
func (e *execution) Execute(c *sdk.Context, r *sdk.Resource) error {
	task := c.Task()
	types := append([]string{r.Parts.Type}, referenceTypes(r)...)
	say := func(text string) { c.Log(model.LevelInfo, text, nil) }
	own := e.m.registry != nil && e.m.registry.HasOwn(r.Parts.Type)
	var out outcome
	err := e.m.with(c, task, e.manifest, types, say, func(w *worker, p *python.Process) error {
		w.begin(c)
		defer w.finish()
		err := w.call(c, p, "run", task, map[string]any{
			"task": task.ID, "kind": task.Kind, "resource": r.ID, "version": r.Version, "attributes": r.Raw(),
			"requirements": orEmpty(task.Intent.Requires), "requires": orNone(task.Requires), "reload": task.Reload, "reason": task.Reason, "own": own,
		}, &out)
		if err == nil {
			w.awaitOutput()
		}
		if err == nil && out.Exhausted {
			w.discard() // what it holds may be what the next one lacks
			out.Code, out.Message = CodeMemory, "The handler could not get the memory that it asked for"
			if limit := e.m.cfg.MemoryLimit; limit > 0 {
				out.Message += fmt.Sprintf("; its process may use %s: %s", confine.Size(limit), memoryHint)
			}
		}
		return err
	})
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		// It is tried again by itself: the code comes with versions, and another one may mend it without touching the resource.
		hint := model.RetryDefault
		if unavailable.Retry {
			hint = model.RetryLater
		}
		return &sdk.Instruction{Outcome: model.OutcomeUnavailable, Code: CodeCode, Retry: hint, Err: unavailable.Err}
	}
	if err != nil {
		return err
	}
	if own && out.Code == noProvider {
		return e.m.registry.Own(c, r)
	}
	return out.tell(c)
}

// tell gives an outcome to a task's context.
func (o *outcome) tell(c *sdk.Context) error {
	c.AddDiff(o.Changes)
	if o.Change != "" {
		c.SetChange(o.Change)
	}
	for _, f := range o.Facts {
		c.AddFact(model.Fact{Name: f.Name, Value: f.Value, Expires: f.Expires})
	}
	switch o.Outcome {
	case model.OutcomeUnavailable, model.OutcomeFailed:
		if o.Traceback != "" {
			c.Log(model.LevelDebug, o.Traceback, nil)
		}
		if o.Message != "" {
			return &sdk.Instruction{Outcome: o.Outcome, Code: o.Code, Err: errors.New(o.Message)}
		}
	case model.OutcomeDeployed, model.OutcomeSkipped, model.OutcomeSkippedForDependency, model.OutcomeNonCompliant, model.OutcomeDryRun:
	case model.OutcomeCancelled:
		return fmt.Errorf("the executor reports the outcome %q, which it can not", o.Outcome)
	default:
		return fmt.Errorf("the executor reports the unknown outcome %q", o.Outcome)
	}
	c.SetOutcome(o.Outcome)
	return nil
}

func orEmpty(ids []model.ResourceID) []model.ResourceID {
	if ids == nil {
		return []model.ResourceID{}
	}
	return ids
}

func orNone(m map[model.ResourceID]model.Status) map[model.ResourceID]model.Status {
	if m == nil {
		return map[model.ResourceID]model.Status{}
	}
	return m
}

// referenceTypes lists the types of a resource's references and mutators.
func referenceTypes(r *sdk.Resource) []string {
	var out []string
	for _, name := range []string{"references", "mutators"} {
		var list []struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(r.Attributes[name], &list) != nil {
			continue
		}
		for _, x := range list {
			out = append(out, x.Type)
		}
	}
	return out
}

// call calls the process for a task. At the end of ctx the handler is interrupted, and its process killed if it does not end.
func (w *worker) call(ctx context.Context, p *python.Process, method string, task model.Task, args map[string]any, result any) error {
	// The call itself outlives ctx by the grace, so that the handler can clean up.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Call(inner, method, args, result) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		how := "the handler was interrupted"
		if !w.interrupt(inner, p, task, ended) {
			how += fmt.Sprintf(" and did not end within %s; its process was killed", w.m.cfg.Grace)
		}
		w.discard() // where the interrupt hit is not known: the process is not used again
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return errors.New(how + ". If it needs more time, raise task-timeout in the section [agent] of the configuration")
		}
		return fmt.Errorf("%w: %s", context.Cause(ctx), how)
	}
	if exit, ok := errors.AsType[*python.ExitError](err); ok {
		w.discard()
		if exit.Memory > 0 {
			return sdk.Coded(CodeMemory, fmt.Errorf("the handler and the processes that it started used more memory than the limit of %s and were killed: %s",
				confine.Size(exit.Memory), memoryHint))
		}
		return sdk.Coded(CodeDied, fmt.Errorf("the process of the handler ended while it ran: %w", exit))
	}
	if errors.Is(err, python.ErrClosed) {
		return sdk.Coded(CodeDied, errors.New("the process of the handler was stopped while it ran"))
	}
	if remote, ok := errors.AsType[*python.Error](err); ok {
		return fmt.Errorf("%s: %w", strings.TrimSpace(remote.Message), err)
	}
	return err
}

// interrupt asks a handler to end, and kills its process when it does not within the grace. It returns when the call has ended, with
// whether that was not needed.
func (w *worker) interrupt(ctx context.Context, p *python.Process, task model.Task, ended <-chan error) bool {
	bounded, cancel := context.WithTimeout(ctx, w.m.cfg.Grace)
	defer cancel()
	go func() { _ = p.Call(bounded, "interrupt", map[string]any{"task": task.ID}, nil) }() // a process that hangs does not answer
	select {
	case err := <-ended:
		w.log.Debug("a handler ended when it was interrupted", "error", err)
		return true
	case <-bounded.Done():
	}
	w.log.Warn("a handler does not end at its deadline; its process is killed", "task", task.ID, "resource", task.Intent.Resource)
	w.discard()
	return <-ended == nil // it may have ended just now
}

// resolve finds the value of a reference in an attribute of a resource that a handler of the agent's own handles.
func (m *Manager) resolve(c *sdk.Context, referenceType string, args []sdk.ReferenceArgument) (any, error) {
	task := c.Task()
	if task.Code == "" {
		return nil, fmt.Errorf("version %d ships no code for agent %s: %w", task.Version, task.Agent, model.ErrNotFound)
	}
	manifest, err := m.manifest(c, task.Code)
	if err != nil {
		return nil, withoutNotFound(err)
	}
	if !manifest.Provides(referenceType) {
		return nil, fmt.Errorf("version %d ships no code for references of type %s: %w", task.Version, referenceType, model.ErrNotFound)
	}
	say := func(text string) { c.Log(model.LevelInfo, text, nil) }
	var value json.RawMessage
	err = m.with(c, task, manifest, []string{referenceType}, say, func(w *worker, p *python.Process) error {
		return w.call(c, p, "resolve", task, map[string]any{"task": task.ID, "type": referenceType, "args": args}, &value)
	})
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		return nil, &sdk.Instruction{Outcome: model.OutcomeUnavailable, Code: CodeCode, Err: unavailable.Err}
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}
