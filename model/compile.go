package model

import (
	"encoding/json"
	"time"

	"github.com/intendant/intendant/diag"
)

// CompileJob is a request to compile an environment's model; a row of the queue.
type CompileJob struct {
	ID          JobID
	Environment EnvironmentID
	// Revision is the commit to compile; a zero Commit means the newest of the environment's branch.
	Revision Revision
	// Reason is why it was asked for, in words for people: "push to refs/heads/main", "requested by API".
	Reason string
	Actor  string
	Trace  TraceID
	// Export stores the result as a version; otherwise the compile only checks.
	Export bool
	// Update fetches the repository and updates modules first.
	Update bool
	// RemoteID correlates the request with the caller's records; Metadata and EnvironmentVariables are handed on.
	RemoteID             string
	Metadata             map[string]json.RawMessage
	EnvironmentVariables map[string]string
	ExporterPlugin       string
	RequestedAt          time.Time
	StartedAt            time.Time
	// Attempt counts claims, from 1: a job whose worker died is claimed again.
	Attempt int
}

// CompileStatus is where a job stands.
type CompileStatus string

// The states of a compile job.
const (
	CompileQueued    CompileStatus = "queued"
	CompileRunning   CompileStatus = "running"
	CompileSucceeded CompileStatus = "succeeded"
	CompileFailed    CompileStatus = "failed"
	CompileCancelled CompileStatus = "cancelled"
	// CompileMerged means that another job did the work: see CompileReport.SubstituteID.
	CompileMerged CompileStatus = "merged"
)

// CompileStage is one stage of a compile: fetch, modules, python environment, compile, export.
type CompileStage struct {
	// Ordinal is the stage's place in its job, from 0; Name is what it does.
	Ordinal    int
	Name       string
	Command    string
	StartedAt  time.Time
	FinishedAt time.Time
	Stdout     string
	Stderr     string
	// ExitCode is nil while the stage runs; anything but 0 ends the job.
	ExitCode *int
}

// SourceExcerpt is the text around a diagnostic, kept with the report since the checkout will go.
type SourceExcerpt struct {
	File string
	// FirstLine is the number of Lines[0].
	FirstLine int
	Lines     []string
}

// CompileReport is everything that is known of a compile job.
type CompileReport struct {
	Job          CompileJob
	Status       CompileStatus
	SubstituteID JobID
	FinishedAt   time.Time
	Stages       []CompileStage
	Diagnostics  []diag.Diagnostic
	// Excerpts holds the source around each diagnostic, by the diagnostic's index.
	Excerpts map[int]SourceExcerpt
	// Version is the version made, 0 if none. Digest is the digest of the compile's inputs and result.
	Version int
	Digest  string
	// Error is the one-line cause when the job failed for another reason than the model.
	Error string
	// PeakMemory is the largest resident size of the compiler process, in bytes; CPUTime its processor time.
	PeakMemory int64
	CPUTime    time.Duration
}

// CompileOutcome is what a worker hands to the store when a job ends: the report, and the desired state if it may become a version.
type CompileOutcome struct {
	Report CompileReport
	// State is nil when the compile failed or was not to be exported.
	State *DesiredState
}

// CompileInputs are the inputs of a compile besides its source; they are recorded, so that it can be repeated.
type CompileInputs struct {
	// Facts are by "<resource id>/<name>", Parameters by name.
	Facts      map[string]string
	Parameters map[string]string
	Settings   map[string]string
	// Seed makes generated passwords and the like the same in every compile of the environment.
	Seed string
}
