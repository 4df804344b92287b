package scheduler

import (
	"context"
	"time"

	"github.com/intendant/intendant/model"
)

// Store is what the scheduler keeps. Every write carries the lease; a stale one is refused with model.ErrFenced.
type Store interface {
	// AcquireLeases takes or prolongs the ownership of environments and returns the leases that the owner holds afterwards;
	// environments owned by others, or gone, are left out.
	AcquireLeases(ctx context.Context, envs []model.EnvironmentID, owner string, now time.Time, ttl time.Duration) ([]model.Lease, error)
	// ReleaseLease gives an environment up at once, for a clean stop.
	ReleaseLease(ctx context.Context, lease model.Lease) error
	// SchedulableEnvironments lists the environments that have a version, released or not, and are not halted.
	SchedulableEnvironments(ctx context.Context) ([]model.EnvironmentID, error)
	// SchedulerNews reads what may have changed in environments; those that are gone are left out.
	SchedulerNews(ctx context.Context, envs []model.EnvironmentID) ([]model.SchedulerNews, error)
	// Snapshot reads everything that a scheduler starts from, in one consistent transaction.
	Snapshot(ctx context.Context, env model.EnvironmentID) (model.Snapshot, error)
	// ChangesSince reads the newest released version and what differs from version from: intents added or changed, ids removed.
	// version equals from when there is nothing new.
	ChangesSince(ctx context.Context, env model.EnvironmentID, from int) (version int, changed []model.Intent, removed []model.ResourceID, err error)
	// IntentsOf reads the intents of a stored version, released or not: for dry runs.
	IntentsOf(ctx context.Context, env model.EnvironmentID, version int) ([]model.Intent, error)
	// VersionResource reads the intent of one resource of a stored version, released or not: for facts.
	VersionResource(ctx context.Context, env model.EnvironmentID, version int, resource model.ResourceID) (model.Intent, error)
	// AgentCode returns, for a version, the SHA-1 of the code manifest of each agent that needs code.
	AgentCode(ctx context.Context, env model.EnvironmentID, version int) (map[model.AgentName]string, error)
	// SaveProgress stores states, the processed version (0 leaves it), started actions and finished ones with their logs and
	// facts, in one transaction under the lease.
	SaveProgress(ctx context.Context, lease model.Lease, p model.Progress) error
	// PendingCommands lists commands that were not finished, oldest first.
	PendingCommands(ctx context.Context, env model.EnvironmentID) ([]model.Command, error)
	// SaveDryRunResults stores what a dry run found; a resource counts once.
	SaveDryRunResults(ctx context.Context, lease model.Lease, dryRun model.DryRunID, results []model.DryRunResult) error
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}

// Dispatcher hands tasks to agents. The hub implements it.
type Dispatcher interface {
	// Dispatch gives a task to the primary session of its agent. It returns model.ErrUnavailable when the agent has none;
	// the scheduler then waits for AgentUp. Delivery is not success: the result comes by Report, or AgentDown tells that
	// the session, and with it the task, was lost.
	Dispatch(ctx context.Context, task model.Task) error
	// Cancel withdraws tasks that have not begun. A task that has begun finishes and reports.
	Cancel(ctx context.Context, env model.EnvironmentID, tasks []model.TaskID) error
	// Agents lists the agents of an environment that have a primary session now.
	Agents(env model.EnvironmentID) []model.AgentName
	// EnsureAgents starts the environment's own agent process for these names if they are to be autostarted and are not up.
	EnsureAgents(ctx context.Context, env model.EnvironmentID, names []model.AgentName) error
	// StopAgents stops the environment's own agent process, if there is one, and waits until it has ended. EnsureAgents starts it
	// again.
	StopAgents(ctx context.Context, env model.EnvironmentID) error
}
