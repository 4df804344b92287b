package sdk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/model"
)

// Stable codes of failures, as they stand in [model.Result.Code].
const (
	CodeHandlerError = "handler-error"
	CodeNoHandler    = "no-handler"
	CodeDeadline     = "deadline"
	CodePanic        = "handler-panic"
	CodeInvalid      = "invalid-resource"
	CodeUnavailable  = "unavailable"
	CodeSkipped      = "skipped"
	CodeRequirement  = "requirement-not-deployed"
	CodeCancelled    = "cancelled"
)

// Instruction is an error that says how a run ended and what should happen next. It is made by [Skip],
// [SkipForDependency], [Unavailable], [Permanent] and [Coded].
type Instruction struct { //nolint:errname // it stands where an error stands, and says what to do
	// Outcome is how the run counts.
	Outcome model.Outcome
	// Code is the stable reason.
	Code string
	// Retry says what should happen next.
	Retry model.RetryHint
	// Err is the cause.
	Err error
}

// Error implements error.
func (i *Instruction) Error() string { return i.Err.Error() }

// Unwrap returns the cause.
func (i *Instruction) Unwrap() error { return i.Err }

// Skip ends a run as skipped: the resource can not be handled now, and that is not a fault.
func Skip(reason string) error {
	return &Instruction{Outcome: model.OutcomeSkipped, Code: CodeSkipped, Err: errors.New(reason)}
}

// SkipForDependency ends a run as skipped because requirements are not deployed.
func SkipForDependency(missing []model.ResourceID) error {
	missing = slices.Clone(missing)
	slices.Sort(missing)
	names := make([]string, len(missing))
	for i, m := range missing {
		names[i] = string(m)
	}
	return &Instruction{
		Outcome: model.OutcomeSkippedForDependency, Code: CodeRequirement,
		Err: fmt.Errorf("skipped because its requirements are not deployed: %s", strings.Join(names, ", ")),
	}
}

// Unavailable ends a run as unavailable: the agent lacks what the handler needs, such as a program.
func Unavailable(reason string) error {
	return &Instruction{Outcome: model.OutcomeUnavailable, Code: CodeUnavailable, Retry: model.RetryPerson, Err: errors.New(reason)}
}

// Permanent ends a run as failed in a way that no retry can mend: somebody must act first.
func Permanent(err error) error {
	return &Instruction{Outcome: model.OutcomeFailed, Code: CodeHandlerError, Retry: model.RetryPerson, Err: err}
}

// Coded ends a run as failed with a stable reason code of the handler's own.
func Coded(code string, err error) error {
	return &Instruction{Outcome: model.OutcomeFailed, Code: code, Err: err}
}
