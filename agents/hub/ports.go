package hub

import (
	"context"

	"github.com/intendant/intendant/model"
)

// Sink takes what agents report. The scheduler implements it. Calls for one environment may come from several goroutines.
type Sink interface {
	// Report hands over the end of a task and returns once it is stored: only then is it acknowledged to the agent, which
	// sends it again otherwise. Reports are idempotent by task id. model.ErrUnavailable: this server does not own the environment.
	Report(ctx context.Context, r model.Result) error
	// AgentUp and AgentDown tell that an agent has got, or lost, its primary session. lost are the tasks that went with it;
	// an agent that comes back may still report them.
	AgentUp(env model.EnvironmentID, agent model.AgentName)
	AgentDown(env model.EnvironmentID, agent model.AgentName, lost []model.TaskID)
}

// Registry is what the hub keeps. The store implements it.
type Registry interface {
	// AuthenticateAgent checks an agent's token and returns the environment it belongs to, or model.ErrForbidden.
	AuthenticateAgent(ctx context.Context, env model.EnvironmentID, token model.Secret) error
	// SaveSession stores a session that began or ended, SaveAgents the state of its agents.
	SaveSession(ctx context.Context, s model.AgentSession) error
	SaveAgents(ctx context.Context, agents []model.AgentStatus) error
	// ExpireSessions marks every session and agent of a server that is starting as lost.
	ExpireSessions(ctx context.Context, server string) error
	// File returns a content of the file storage by its SHA-1, or model.ErrNotFound.
	File(ctx context.Context, hash string) ([]byte, error)
	// AgentIntents returns the current released intents of some agents, for the agent to keep and repair by while the server is away.
	AgentIntents(ctx context.Context, env model.EnvironmentID, agents []model.AgentName) (version int, intents []model.Intent, err error)
	// PausedAgents tells which agents are paused; a halted environment's all are.
	PausedAgents(ctx context.Context, env model.EnvironmentID) (map[model.AgentName]bool, error)
	// IssueAgentToken makes a token for an environment's agents. The store keeps only a digest of it.
	IssueAgentToken(ctx context.Context, env model.EnvironmentID, description string, oneTime bool) (model.Secret, error)
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}

// SessionLister is implemented by a [Registry] that can tell which processes have offered agents before. The hub then never
// takes a name for the server's own process that was offered by another one, also not after a restart.
type SessionLister interface {
	// AgentSessions lists sessions of an environment, newest first; expired includes those that have ended.
	AgentSessions(ctx context.Context, env model.EnvironmentID, expired bool, limit int) ([]model.AgentSession, error)
}

// CodeRegistry is implemented by a [Registry] whose versions ship Python code. Without it agents get none.
type CodeRegistry interface {
	// AgentCode returns, for a version, the SHA-1 of the code manifest of each agent that needs code.
	AgentCode(ctx context.Context, env model.EnvironmentID, version int) (map[model.AgentName]string, error)
}

// FileKeeper is implemented by a [Registry] to which agents may add contents.
type FileKeeper interface {
	// SaveFile stores a content whose hash was verified; storing it again changes nothing.
	SaveFile(ctx context.Context, f model.File) error
}
