package program

import (
	"encoding/json"
	"errors"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Protocol is the version of the messages. A program of another version is refused.
const Protocol = 1

// Variable is set to 1 in the environment of a program that the agent has started.
const Variable = "INTENDANT_HANDLER_PROGRAM"

// The descriptors of a program's streams.
const (
	FromAgent = 3
	ToAgent   = 4
)

// Methods and events.
const (
	EventHello  = "hello"
	EventCancel = "cancel"
	EventLog    = "log"
	CallExecute = "execute"
	CallFile    = "file"
)

// Hello says what a program handles.
type Hello struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	// Types are the types of resources, such as shop::Shelf.
	Types []string `json:"types"`
}

// Task is one task. ID is the agent's number for this run, which [Cancel] and [Line] refer to.
type Task struct {
	ID         uint64                            `json:"id"`
	Kind       model.TaskKind                    `json:"kind"`
	Resource   model.ResourceID                  `json:"resource"`
	Version    int                               `json:"version"`
	Attributes json.RawMessage                   `json:"attributes"`
	Reason     string                            `json:"reason,omitempty"`
	Requires   map[model.ResourceID]model.Status `json:"requires,omitempty"`
	Reload     bool                              `json:"reload,omitempty"`
	ReportOnly bool                              `json:"report_only,omitempty"`
	// Timeout is the time that is left, in milliseconds; 0 is no limit.
	Timeout int64 `json:"timeout_ms,omitempty"`
}

// Cancel ends the context of a task.
type Cancel struct {
	ID uint64 `json:"id"`
}

// Line is a line of a task's log.
type Line struct {
	ID      uint64          `json:"id"`
	Level   model.LogLevel  `json:"level"`
	Message string          `json:"message"`
	Kwargs  json.RawMessage `json:"kwargs,omitempty"`
}

// FileRequest asks for a content of the file storage by its SHA-1 in hex.
type FileRequest struct {
	ID   uint64 `json:"id"`
	Hash string `json:"hash"`
}

// File is where the content is. The program removes the file when it has read it.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Report is what a run did.
type Report struct {
	Outcome model.Outcome `json:"outcome,omitempty"`
	Change  model.Change  `json:"change"`
	Changes model.Diff    `json:"changes,omitempty"`
	Facts   []Fact        `json:"facts,omitempty"`
	// Failure is set when the handler returned an error.
	Failure *Failure `json:"failure,omitempty"`
}

// Fact is a [model.Fact].
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Expires bool   `json:"expires,omitempty"`
}

// Failure is a handler's error. With an outcome it is an [sdk.Instruction].
type Failure struct {
	Message string          `json:"message"`
	Outcome model.Outcome   `json:"outcome,omitempty"`
	Code    string          `json:"code,omitempty"`
	Retry   model.RetryHint `json:"retry,omitempty"`
	// Invalid says that the resource's attributes do not fit.
	Invalid bool `json:"invalid,omitempty"`
}

// failureOf makes the message of an error.
func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Message: err.Error(), Invalid: errors.Is(err, model.ErrInvalid)}
	if i, ok := errors.AsType[*sdk.Instruction](err); ok {
		f.Outcome, f.Code, f.Retry = i.Outcome, i.Code, i.Retry
	}
	return f
}

// outcomes are those that a handler may end with.
var outcomes = map[model.Outcome]bool{
	model.OutcomeDeployed: true, model.OutcomeFailed: true, model.OutcomeSkipped: true, model.OutcomeSkippedForDependency: true,
	model.OutcomeUnavailable: true, model.OutcomeNonCompliant: true, model.OutcomeDryRun: true,
}

// Err is the error that the message stands for.
func (f *Failure) Err() error {
	switch {
	case f == nil:
		return nil
	case outcomes[f.Outcome]:
		return &sdk.Instruction{Outcome: f.Outcome, Code: f.Code, Retry: f.Retry, Err: errors.New(f.Message)}
	case f.Invalid:
		return &invalidError{message: f.Message}
	}
	return errors.New(f.Message)
}

// invalidError is [model.ErrInvalid] with a text that has its words already.
type invalidError struct{ message string }

func (e *invalidError) Error() string        { return e.message }
func (e *invalidError) Is(target error) bool { return target == model.ErrInvalid }

// Apply hands what a run reported to the context of the agent's side and returns the handler's error.
func (r *Report) Apply(c *sdk.Context) error {
	c.AddDiff(r.Changes)
	switch r.Change {
	case model.ChangeCreated, model.ChangeUpdated, model.ChangePurged:
		c.SetChange(r.Change)
	case model.ChangeNone:
	}
	for _, f := range r.Facts {
		c.AddFact(model.Fact(f))
	}
	if outcomes[r.Outcome] {
		c.SetOutcome(r.Outcome)
	}
	return r.Failure.Err()
}
