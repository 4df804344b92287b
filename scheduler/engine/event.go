package engine

import (
	"time"

	"github.com/intendant/intendant/model"
)

// Event is something that happened. The shell feeds events to [State.Step] in the order in which it learns of them.
type Event interface{ event() }

// Started is the first event of every state: it queues what is dirty and recovers what a predecessor left behind.
type Started struct{}

// VersionReleased tells that a version is now the newest released one. Changed are the intents that are new or differ from
// the version processed before, Removed the resources that are in that one alone.
type VersionReleased struct {
	Version int
	Changed []model.Intent
	Removed []model.ResourceID
	// Trace is of the change that made the version, if known.
	Trace model.TraceID
}

// TaskFinished brings the result of a task, of this state or of a predecessor.
type TaskFinished struct{ Result model.Result }

// DispatchFailed tells that a task could not be handed to its agent, which has no session. The agent counts as down until an
// AgentUp.
type DispatchFailed struct{ Task model.TaskID }

// AgentUp tells that an agent has a session.
type AgentUp struct{ Agent model.AgentName }

// AgentDown tells that an agent has lost its session, and which tasks went with it. Tasks that are not named are still to be
// reported, as is known of the process that has them. A lost one may be reported all the same.
type AgentDown struct {
	Agent model.AgentName
	Lost  []model.TaskID
}

// AgentPaused tells that agents must not be given tasks until an AgentResumed.
type AgentPaused struct{ Agents []model.AgentName }

// AgentResumed ends AgentPaused.
type AgentResumed struct{ Agents []model.AgentName }

// CommandReceived brings a user's request: a deploy or a repair. It may come more than once.
type CommandReceived struct{ Command model.Command }

// DryRunVersion brings a user's request for a dry run with the intents of the version. It may come more than once.
type DryRunVersion struct {
	Command model.Command
	Intents []model.Intent
}

// FactsRequested brings a request for the facts of resources of a version that is not released, with their intents. Resources
// that the version absorbed last has are asked as they are in that one.
type FactsRequested struct {
	Command model.Command
	Intents []model.Intent
}

// GlobalDeploy asks, by a cron expression, for a deploy of everything dirty.
type GlobalDeploy struct{}

// GlobalRepair asks, by a cron expression, for a repair of everything that was last run before Since.
type GlobalRepair struct{ Since time.Time }

// SettingsChanged brings the settings in force.
type SettingsChanged struct{ Settings model.Settings }

// TimerFired tells that the time of the last SetTimer has come. Firing early or twice does no harm.
type TimerFired struct{}

// Halted stops everything that has not begun.
type Halted struct{}

// Resumed ends Halted and queues what is dirty.
type Resumed struct{}

func (Started) event()         {}
func (VersionReleased) event() {}
func (TaskFinished) event()    {}
func (DispatchFailed) event()  {}
func (AgentUp) event()         {}
func (AgentDown) event()       {}
func (AgentPaused) event()     {}
func (AgentResumed) event()    {}
func (CommandReceived) event() {}
func (DryRunVersion) event()   {}
func (FactsRequested) event()  {}
func (GlobalDeploy) event()    {}
func (GlobalRepair) event()    {}
func (SettingsChanged) event() {}
func (TimerFired) event()      {}
func (Halted) event()          {}
func (Resumed) event()         {}

// Effect is something that the shell must do. Effects are carried out in their order: a step's SaveState and SaveDryRun come
// before its StartTask, since what a task relies on must survive a crash.
type Effect interface{ effect() }

// SaveState asks for states and history to be stored in one transaction. A step has at most one.
type SaveState struct {
	States []model.ResourceState
	// Processed is the version absorbed, 0 when that has not changed.
	Processed int
	Started   []model.Action
	Finished  []model.Result
	Abandoned []model.TaskID
}

// SaveDryRun asks for results of a dry run to be stored.
type SaveDryRun struct {
	DryRun  model.DryRunID
	Results []model.DryRunResult
}

// DoneCommand tells that a command was carried out in full and need not be seen again.
type DoneCommand struct{ Command model.CommandID }

// CancelTask asks for tasks to be withdrawn if they have not begun.
type CancelTask struct{ Tasks []model.TaskID }

// StartTask asks for a task to be handed to its agent.
type StartTask struct{ Task model.Task }

// EnsureAgent asks for agents to be started if the server may do so: there is work for them.
type EnsureAgent struct{ Agents []model.AgentName }

// SetTimer asks for a TimerFired at a time. It replaces the SetTimer before it; a zero time cancels it.
type SetTimer struct{ At time.Time }

// Announce tells people something worth knowing; nothing depends on it.
type Announce struct{ Kind Announcement }

// Announcement is a kind of news in an Announce.
type Announcement string

// The announcements: Busy when work begins after a pause, Settled when nothing is in flight, queued or waiting any more.
const (
	Busy    Announcement = "busy"
	Settled Announcement = "settled"
)

func (SaveState) effect()   {}
func (SaveDryRun) effect()  {}
func (DoneCommand) effect() {}
func (CancelTask) effect()  {}
func (StartTask) effect()   {}
func (EnsureAgent) effect() {}
func (SetTimer) effect()    {}
func (Announce) effect()    {}
