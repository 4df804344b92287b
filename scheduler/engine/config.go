package engine

import (
	"time"

	"github.com/intendant/intendant/model"
)

// Config tunes an engine. The zero value is ready to use. It is part of what a replay needs.
type Config struct {
	// AgentLostGrace is how long the engine waits for the result of a task whose agent has lost its session before it counts
	// the task as lost. Defaults to DefaultAgentLostGrace.
	AgentLostGrace time.Duration
	// DeadlineGrace is how long after a task's deadline the engine still waits for its result. Defaults to
	// DefaultDeadlineGrace.
	DeadlineGrace time.Duration
	// DryRunGrace is how long a dry run waits for an agent that is down. Defaults to DefaultDryRunGrace.
	DryRunGrace time.Duration
	// EnsureInterval is the pause between two requests for an agent that has work and is down. Defaults to
	// DefaultEnsureInterval.
	EnsureInterval time.Duration
	// FairShare is how often an agent may pass over its oldest request in favour of higher priorities before it serves that
	// one. Defaults to DefaultFairShare.
	FairShare int
	// RetryBase is the delay before the first retry of a failed resource. It doubles with each failure, up to the environment's
	// deploy interval. Defaults to DefaultRetryBase.
	RetryBase time.Duration
	// Seed makes the task ids of one engine different from those of every other. The shell takes it at random.
	Seed uint64
	// TaskDeadline is the time that a run has. A resource with a larger timeout attribute, in seconds, has that and a minute.
	// Defaults to DefaultTaskDeadline.
	TaskDeadline time.Duration
	// TasksPerAgent is the number of tasks that an agent has at once. Defaults to 1, as in the reference.
	TasksPerAgent int
	// TimersPerStep bounds the work of one step when many timers are due at once; the rest follows in steps of their own.
	// Defaults to DefaultTimersPerStep.
	TimersPerStep int
}

// The defaults of Config.
const (
	DefaultAgentLostGrace = 15 * time.Second
	DefaultDeadlineGrace  = 30 * time.Second
	DefaultDryRunGrace    = 30 * time.Second
	DefaultEnsureInterval = 10 * time.Second
	DefaultFairShare      = 16
	DefaultRetryBase      = 10 * time.Second
	DefaultTaskDeadline   = 15 * time.Minute
	DefaultTimersPerStep  = 1000
)

func (c Config) withDefaults() Config {
	duration := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	number := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	duration(&c.AgentLostGrace, DefaultAgentLostGrace)
	duration(&c.DeadlineGrace, DefaultDeadlineGrace)
	duration(&c.DryRunGrace, DefaultDryRunGrace)
	duration(&c.EnsureInterval, DefaultEnsureInterval)
	duration(&c.RetryBase, DefaultRetryBase)
	duration(&c.TaskDeadline, DefaultTaskDeadline)
	number(&c.FairShare, DefaultFairShare)
	number(&c.TasksPerAgent, 1)
	number(&c.TimersPerStep, DefaultTimersPerStep)
	return c
}

// Priority orders the requests of an agent's queue; lower goes first (server reference, section 8.4).
type Priority uint8

// The priorities.
const (
	UserDeploy Priority = iota
	NewVersion
	UserRepair
	DryRun
	IntervalDeploy
	FactRefresh
	IntervalRepair
)

// Priorities is the number of priorities.
const Priorities = int(IntervalRepair) + 1

var priorityNames = [Priorities]string{"user_deploy", "new_version", "user_repair", "dry_run", "interval_deploy", "fact_refresh", "interval_repair"}

// String returns the priority's name in lower case with underscores.
func (p Priority) String() string {
	if int(p) < len(priorityNames) {
		return priorityNames[p]
	}
	return "unknown"
}

// kind is what a task of this priority is called.
func (p Priority) kind() model.TaskKind {
	switch p {
	case UserRepair, IntervalRepair:
		return model.TaskRepair
	case DryRun:
		return model.TaskDryRun
	case FactRefresh:
		return model.TaskFacts
	case UserDeploy, NewVersion, IntervalDeploy:
	}
	return model.TaskDeploy
}
