package model

import (
	"encoding/json"
	"time"
)

// Compliance says whether reality is known to match the intent.
type Compliance string

// The values of Compliance (server reference, section 8.2).
const (
	Compliant    Compliance = "compliant"
	HasUpdate    Compliance = "has_update"
	NonCompliant Compliance = "non_compliant"
	Undefined    Compliance = "undefined"
)

// LastRun is how the last run of the handler ended.
type LastRun string

// The values of LastRun.
const (
	RunNew        LastRun = "new"
	RunSuccessful LastRun = "successful"
	RunFailed     LastRun = "failed"
	RunSkipped    LastRun = "skipped"
)

// Blocked says whether a resource may run at all.
type Blocked string

// The values of Blocked. TemporarilyBlocked waits for a dependency to recover.
const (
	NotBlocked         Blocked = "not_blocked"
	IsBlocked          Blocked = "blocked"
	TemporarilyBlocked Blocked = "temporarily_blocked"
)

// Status is the display status of a resource; see [ResourceState.Status].
type Status string

// The display statuses (server reference, section 2.7).
const (
	StatusAvailable           Status = "available"
	StatusDeploying           Status = "deploying"
	StatusDeployed            Status = "deployed"
	StatusFailed              Status = "failed"
	StatusSkipped             Status = "skipped"
	StatusUnavailable         Status = "unavailable"
	StatusUndefined           Status = "undefined"
	StatusSkippedForUndefined Status = "skipped_for_undefined"
	StatusNonCompliant        Status = "non_compliant"
	StatusOrphaned            Status = "orphaned"
)

// ResourceState is what is known of one resource, whatever the version.
type ResourceState struct {
	Resource   ResourceID
	Compliance Compliance
	LastRun    LastRun
	Blocked    Blocked
	// Deploying is true while a task for the resource is with an agent.
	Deploying bool
	// IntentHash is the attribute hash of the current intent, DeployedHash and DeployedVersion those of the last run.
	IntentHash      string
	DeployedHash    string
	DeployedVersion int
	// LastOutcome is the result of the last finished run; empty when there was none.
	LastOutcome Outcome
	// LastRunAt and LastProducedEvents are end times; LastSuccess is the start of the last successful run.
	LastRunAt          time.Time
	LastSuccess        time.Time
	LastProducedEvents time.Time
	// OrphanedAfter is the last version that had the resource, 0 while it is managed.
	OrphanedAfter int
	// Failures counts runs that failed in a row, for the retry's backoff.
	Failures int
}

// Status derives the one word that is shown for a resource (server reference, section 2.7).
func (s ResourceState) Status() Status {
	switch {
	case s.OrphanedAfter != 0:
		return StatusOrphaned
	case s.Deploying:
		return StatusDeploying
	case s.Compliance == Undefined:
		return StatusUndefined
	case s.Blocked == IsBlocked:
		return StatusSkippedForUndefined
	case s.DeployedHash == "" || s.DeployedHash != s.IntentHash:
		return StatusAvailable
	}
	switch s.LastOutcome {
	case OutcomeDeployed:
		return StatusDeployed
	case OutcomeFailed, OutcomeCancelled:
		return StatusFailed
	case OutcomeSkipped, OutcomeSkippedForDependency:
		return StatusSkipped
	case OutcomeUnavailable:
		return StatusUnavailable
	case OutcomeNonCompliant:
		return StatusNonCompliant
	case OutcomeDryRun: // says nothing of a deployment
	}
	return StatusAvailable
}

// TaskKind says what an agent is to do with a resource.
type TaskKind string

// The kinds of tasks. Deploy and repair run the handler alike; the kind is kept for people.
const (
	TaskDeploy TaskKind = "deploy"
	TaskRepair TaskKind = "repair"
	TaskDryRun TaskKind = "dryrun"
	TaskFacts  TaskKind = "getfact"
)

// Task is one run of a handler.
type Task struct {
	ID          TaskID
	Environment EnvironmentID
	Agent       AgentName
	Kind        TaskKind
	Intent      Intent
	Version     int
	// Reason is why the task runs, for people.
	Reason string
	Trace  TraceID
	// Deadline is when the agent gives up; the scheduler counts the task as lost some time later.
	Deadline time.Time
	DryRun   DryRunID
	// Requires holds the status of each requirement at the time of dispatch: the handler skips when one is not deployed.
	Requires map[ResourceID]Status
	// Code is the [CodeManifest] of the agent in the task's version, as its SHA-1; empty when the version ships none for it.
	Code string
	// Reload is true when a requirement that sends events changed since the last run: the handler reacts with a reload.
	Reload bool
}

// Outcome is what a handler made of a task.
type Outcome string

// The outcomes (server reference, section 9.1). OutcomeCancelled: the task was withdrawn before the handler ran.
const (
	OutcomeDeployed             Outcome = "deployed"
	OutcomeFailed               Outcome = "failed"
	OutcomeSkipped              Outcome = "skipped"
	OutcomeSkippedForDependency Outcome = "skipped_for_dependency"
	OutcomeUnavailable          Outcome = "unavailable"
	OutcomeNonCompliant         Outcome = "non_compliant"
	OutcomeDryRun               Outcome = "dry"
	OutcomeCancelled            Outcome = "cancelled"
)

// Change is what a run did to the resource.
type Change string

// The kinds of change.
const (
	ChangeNone    Change = "nochange"
	ChangeCreated Change = "created"
	ChangePurged  Change = "purged"
	ChangeUpdated Change = "updated"
)

// AttributeChange is one attribute's value before and after, any JSON.
type AttributeChange struct {
	Current json.RawMessage `json:"current"`
	Desired json.RawMessage `json:"desired"`
}

// Diff is the difference between reality and an intent, by attribute.
type Diff map[string]AttributeChange

// LogLevel is the level of a handler's log line.
type LogLevel string

// The levels, as the reference names them.
const (
	LevelCritical LogLevel = "CRITICAL"
	LevelError    LogLevel = "ERROR"
	LevelWarning  LogLevel = "WARNING"
	LevelInfo     LogLevel = "INFO"
	LevelDebug    LogLevel = "DEBUG"
	LevelTrace    LogLevel = "TRACE"
)

// LogLine is one message of a handler about a resource. Message is already formatted.
type LogLine struct {
	Level   LogLevel
	Message string
	Kwargs  json.RawMessage
	Time    time.Time
}

// Fact is a value that a handler read from reality for the model to use.
type Fact struct {
	Name    string
	Value   string
	Expires bool
}

// Result is the end of a task. It is idempotent by Task.
type Result struct {
	Task        TaskID
	Environment EnvironmentID
	Resource    ResourceID
	Version     int
	Kind        TaskKind
	// AttributeHash is of the intent that was run, to tell a stale result.
	AttributeHash string
	Outcome       Outcome
	Change        Change
	Changes       Diff
	Log           []LogLine
	Facts         []Fact
	StartedAt     time.Time
	FinishedAt    time.Time
	Trace         TraceID
	DryRun        DryRunID
	// Code is a stable reason for a failure, such as handler-error, no-handler, deadline, agent-lost; empty on success.
	Code string
	// Retry says what should happen next after a failure: retry, wait, person.
	Retry RetryHint
}

// RetryHint says what should happen after a failure.
type RetryHint string

// The hints. RetryPerson: nothing will change until somebody acts; only repairs and requests run it again.
const (
	RetryDefault RetryHint = ""
	RetryLater   RetryHint = "retry"
	RetryPerson  RetryHint = "person"
)

// Action is a row of a resource's history: a finished or running task, a store, a pull.
type Action struct {
	ID          TaskID
	Environment EnvironmentID
	Version     int
	Resource    ResourceID
	Kind        ActionKind
	Reason      string
	StartedAt   time.Time
	FinishedAt  time.Time
	Outcome     Outcome
	Change      Change
	Changes     Diff
	Log         []LogLine
	Trace       TraceID
	Code        string
}

// ActionKind is the kind of an [Action].
type ActionKind string

// The kinds of actions (server reference, section 2.7).
const (
	ActionStore   ActionKind = "store"
	ActionDeploy  ActionKind = "deploy"
	ActionDryRun  ActionKind = "dryrun"
	ActionGetFact ActionKind = "getfact"
	ActionOther   ActionKind = "other"
)

// AgentStatus is what is known of an agent.
type AgentStatus struct {
	Environment     EnvironmentID
	Name            AgentName
	Paused          bool
	UnpauseOnResume *bool
	// Up is true when a live session is its primary; Process and Hostname say which.
	Up        bool
	Process   string
	Hostname  string
	SessionID string
	Since     time.Time
}

// AgentSession is a connection of an agent process.
type AgentSession struct {
	ID          string
	Environment EnvironmentID
	Hostname    string
	Process     string
	Agents      []AgentName
	Version     string
	Autostarted bool
	ConnectedAt time.Time
	LostAt      time.Time
}

// CommandKind is a kind of request of a user to the scheduler of an environment.
type CommandKind string

// The kinds of commands. They are stored, so that a request survives a crash and reaches whichever server owns the environment.
const (
	CommandDeploy CommandKind = "deploy"
	CommandRepair CommandKind = "repair"
	CommandDryRun CommandKind = "dryrun"
	// CommandRefresh asks the scheduler to read again what it keeps in memory: settings, paused agents, halt.
	CommandRefresh CommandKind = "refresh"
	// CommandFacts asks the handlers of Resources for facts, as Version has them.
	CommandFacts CommandKind = "facts"
)

// Command is a request to the scheduler of an environment.
type Command struct {
	ID          CommandID
	Environment EnvironmentID
	Kind        CommandKind
	// Agents and Resources narrow a deploy or repair; both empty means everything.
	Agents    []AgentName
	Resources []ResourceID
	// Version is that of a dry run, or of the resources whose facts are asked for; 0 means the newest released one.
	Version   int
	DryRun    DryRunID
	Reason    string
	Actor     string
	Trace     TraceID
	CreatedAt time.Time
}

// DryRun is a run of all handlers of a version without changing anything.
type DryRun struct {
	ID          DryRunID
	Environment EnvironmentID
	Version     int
	Date        time.Time
	Total       int
	Todo        int
}

// DryRunResult is what a dry run found for one resource.
type DryRunResult struct {
	DryRun   DryRunID
	Resource ResourceID
	Status   DiffStatus
	Changes  Diff
	Message  string
}

// Snapshot is what a scheduler needs to begin work on an environment.
type Snapshot struct {
	Environment Environment
	Settings    Settings
	// Version is the newest released version, 0 when there is none; Intents are its resources.
	Version int
	Intents []Intent
	// Processed is the version that the scheduler absorbed last.
	Processed int
	States    []ResourceState
	Paused    map[AgentName]bool
	// Running are the actions that were started and have neither a result nor been abandoned. Their agents may still report.
	Running []Action
}

// Lease is the ownership of an environment by one server, with its fencing token.
type Lease struct {
	Environment EnvironmentID
	Owner       string
	// Token grows with every change of owner; a write with an older one is refused with ErrFenced.
	Token     int64
	ExpiresAt time.Time
}

// Topic is a kind of news about stored data.
type Topic string

// The topics of hints.
const (
	TopicCompileQueued   Topic = "compile_queued"
	TopicCompileChanged  Topic = "compile_changed"
	TopicCompileCancel   Topic = "compile_cancel"
	TopicVersionStored   Topic = "version_stored"
	TopicVersionReleased Topic = "version_released"
	TopicCommand         Topic = "command"
	TopicResourceChanged Topic = "resource_changed"
	TopicAgentChanged    Topic = "agent_changed"
	TopicEnvironment     Topic = "environment_changed"
	TopicRepository      Topic = "repository_changed"
	TopicDelivery        Topic = "delivery_changed"
	// TopicReplay names a delivery, as <repository>/<key>, that is to be worked on again.
	TopicReplay       Topic = "delivery_replay"
	TopicDryRun       Topic = "dryrun_changed"
	TopicNotification Topic = "notification"
	TopicParameter    Topic = "parameter_changed"
)

// Hint says that something stored has changed. It is never the truth itself: whoever hears it reads the store, and
// whoever might miss one also polls slowly. Hints of one kind may be merged.
type Hint struct {
	Topic       Topic
	Environment EnvironmentID
	// ID is what changed, when that is one thing: a job id, a version, a repository name.
	ID string
}

// Progress is what a scheduler stores in one transaction.
type Progress struct {
	// States are inserted or replaced by resource.
	States []ResourceState
	// Processed is the version absorbed, 0 to leave it.
	Processed int
	// Started are actions that began; they are shown as running until a Result of the same id ends them.
	Started []Action
	// Finished are results, each stored once however often it comes.
	Finished []Result
	// DoneCommands are commands that need not be seen again.
	DoneCommands []CommandID
	// Abandoned are actions that will never report: their agent or server died. They are closed with a message.
	Abandoned []TaskID
	Now       time.Time
}
