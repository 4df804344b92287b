package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/intendant/intendant/model"
)

// Store is everything that the API reads and writes. The store implements it; every method may be called by many goroutines.
//
// Rules for all methods: an unknown environment, or an object that is not in the given environment, is model.ErrNotFound with
// a message that names it; methods that only list return an empty list for an unknown environment. Times are UTC. A method
// that changes something does it in one transaction and hints about it (model.Topic…) when that transaction commits.
type Store interface {
	Projects
	Environments
	Compiles
	Versions
	Files
	Resources
	Actions
	Agents
	Tokens
	Commands
	DryRuns
	Parameters
	Code
	Discovery
	Notifications
	Repositories
	Deliveries
	Journeys
	Hints
}

// Projects keeps projects.
type Projects interface {
	// CreateProject stores a project with the id given. model.ErrConflict: the id or the name is taken.
	CreateProject(ctx context.Context, p model.Project) error
	// RenameProject changes the name. model.ErrNotFound; model.ErrConflict: the name is taken.
	RenameProject(ctx context.Context, id model.ProjectID, name string) error
	// DeleteProject removes an empty project. model.ErrNotFound; model.ErrConflict: it still has environments.
	DeleteProject(ctx context.Context, id model.ProjectID) error
	// Project returns one project or model.ErrNotFound.
	Project(ctx context.Context, id model.ProjectID) (model.Project, error)
	// Projects lists all projects by name.
	Projects(ctx context.Context) ([]model.Project, error)
}

// Environments keeps environments and their settings.
type Environments interface {
	// CreateEnvironment stores an environment with the id given. model.ErrNotFound: no such project; model.ErrConflict: the id,
	// or the name within the project, is taken.
	//
	// When RepoURL is set, the environment is linked to the repository record of exactly this URL. If there is none, one is
	// made (provider unconfigured, Poll "60") under the name in Repository, or when another URL has that name under the name
	// with -2, -3, … added.
	CreateEnvironment(ctx context.Context, e model.Environment) error
	// UpdateEnvironment changes the fields set in the patch and returns the result; a new RepoURL links as CreateEnvironment
	// does and forgets Revision, an empty one unlinks. model.ErrNotFound: no such environment or project; model.ErrConflict:
	// the name is taken in the project.
	UpdateEnvironment(ctx context.Context, id model.EnvironmentID, patch model.EnvironmentPatch) (model.Environment, error)
	// DeleteEnvironment removes an environment and all that belongs to it. Protection is the caller's affair. model.ErrNotFound.
	DeleteEnvironment(ctx context.Context, id model.EnvironmentID) error
	// ClearEnvironment removes all that belongs to an environment but itself, its settings, tokens and version counter.
	ClearEnvironment(ctx context.Context, id model.EnvironmentID) error
	// Environment returns one environment or model.ErrNotFound.
	Environment(ctx context.Context, id model.EnvironmentID) (model.Environment, error)
	// Environments lists all environments by project name, name and id. A project other than nil keeps only its own.
	Environments(ctx context.Context, project *model.ProjectID) ([]model.Environment, error)
	// SetHalted halts or resumes (server reference, section 8.9): halting notes per agent whether it was running in
	// UnpauseOnResume (where that is nil) and pauses all; resuming unpauses those with UnpauseOnResume and clears the notes. A
	// refresh command is stored and TopicEnvironment hinted. Nothing happens when it already is so.
	SetHalted(ctx context.Context, id model.EnvironmentID, halted bool, actor string, now time.Time) error
	// SetSetting stores a value that was checked and converted before; a nil value removes what is stored, so that the default
	// applies. A refresh command is stored and TopicEnvironment hinted.
	SetSetting(ctx context.Context, id model.EnvironmentID, name string, value json.RawMessage) error
}

// Compiles keeps compile jobs and their reports.
type Compiles interface {
	// RequestCompile queues a job with the id given and hints TopicCompileQueued. A job of that id that is already there is
	// left as it is, without an error. model.ErrNotFound: no such environment.
	RequestCompile(ctx context.Context, job model.CompileJob) error
	// CancelCompile ends a queued job at once and asks the worker of a running one to stop (TopicCompileCancel).
	// model.ErrNotFound; model.ErrConflict: it has already ended.
	CancelCompile(ctx context.Context, env model.EnvironmentID, id model.JobID, now time.Time) error
	// CompileReports lists reports without stages, diagnostics and excerpts. Sort: requested, started; id column id.
	CompileReports(ctx context.Context, env model.EnvironmentID, f model.CompileFilter, p model.Page) (model.List[model.CompileReport], error)
	// CompileReport returns one report with everything, or model.ErrNotFound. The environment may be the zero id: any.
	CompileReport(ctx context.Context, env model.EnvironmentID, id model.JobID) (model.CompileReport, error)
	// CompileQueue lists the running and queued jobs of an environment, running first, then by the time of the request.
	CompileQueue(ctx context.Context, env model.EnvironmentID) ([]model.CompileReport, error)
	// Compiling lists the environments that have a running job.
	Compiling(ctx context.Context) ([]model.EnvironmentID, error)
}

// Versions keeps desired states.
type Versions interface {
	// ReserveVersion increments the version counter and returns it.
	ReserveVersion(ctx context.Context, env model.EnvironmentID) (int, error)
	// StoreVersion stores an uploaded desired state under its Number (0: the next one) with its files, and releases it if
	// release is set. It returns the number. model.ErrConflict: the number is in use; model.ErrInvalid: the number was never
	// reserved, a requirement is not in the state, a resource comes twice, or a file is neither stored nor given.
	StoreVersion(ctx context.Context, s model.DesiredState, release bool, now time.Time) (int, error)
	// StorePartial merges a partial desired state into the newest version and stores the result as the next one. It returns the
	// number. model.ErrInvalid: there is no version, or a rule of merging is broken.
	StorePartial(ctx context.Context, p model.Partial, release bool, now time.Time) (int, error)
	// Versions lists versions with their standing. Sort: version, alone.
	Versions(ctx context.Context, env model.EnvironmentID, f model.VersionFilter, p model.Page) (model.List[model.VersionRow], error)
	// Version returns one version with its lists of undeployable and blocked resources, or model.ErrNotFound.
	Version(ctx context.Context, env model.EnvironmentID, number int) (model.VersionRow, error)
	// ReleaseVersion releases a version and hints TopicVersionReleased. model.ErrNotFound; model.ErrConflict: it is released
	// already, or a newer one is.
	ReleaseVersion(ctx context.Context, env model.EnvironmentID, number int, now time.Time) error
	// DeleteVersion removes a version. model.ErrNotFound; model.ErrInvalid: it is the newest released one.
	DeleteVersion(ctx context.Context, env model.EnvironmentID, number int) error
	// VersionResources lists the intents of a version; statuses of the filter are ignored. model.ErrNotFound: no such version.
	// Sort: resource_type, agent, resource_id_value; id column resource_id.
	VersionResources(ctx context.Context, env model.EnvironmentID, number int, f model.ResourceFilter, p model.Page) (model.List[model.Intent], error)
	// VersionResource returns one resource of a version or model.ErrNotFound.
	VersionResource(ctx context.Context, env model.EnvironmentID, number int, id model.ResourceID) (model.Intent, error)
	// VersionUnknowns lists the unknown inputs of a version by resource and name.
	VersionUnknowns(ctx context.Context, env model.EnvironmentID, number int) ([]model.UnknownParameter, error)
	// DiffVersions lists what differs between two versions by resource id; unmodified resources are left out.
	// model.ErrNotFound: one of them is not there.
	DiffVersions(ctx context.Context, env model.EnvironmentID, from, to int) ([]model.ResourceDiff, error)
}

// Files keeps contents by the SHA-1 of their bytes, for all environments.
type Files interface {
	// MissingFiles returns those of the hashes that are not stored, in the order given.
	MissingFiles(ctx context.Context, hashes []string) ([]string, error)
	// SaveFile stores a content whose hash was verified; storing it again changes nothing.
	SaveFile(ctx context.Context, f model.File) error
	// File returns a content or model.ErrNotFound.
	File(ctx context.Context, hash string) ([]byte, error)
}

// Code keeps the Python code that versions ship.
type Code interface {
	// UploadCode keeps code for a version that was reserved and is not stored yet, besides what came for it before; storing the
	// version takes it. model.ErrInvalid: the number was never reserved, or a source is not stored; model.ErrConflict: the version
	// is or was in use.
	UploadCode(ctx context.Context, env model.EnvironmentID, version int, modules []model.ModuleCode, now time.Time) error
	// VersionCode returns the code of a version; the plan is empty when it ships none.
	VersionCode(ctx context.Context, env model.EnvironmentID, version int) (model.CodePlan, error)
}

// Discovery keeps resources that handlers found to exist.
type Discovery interface {
	// SaveDiscovered inserts or replaces; of two of one id the later counts. model.ErrNotFound: no such environment.
	SaveDiscovered(ctx context.Context, env model.EnvironmentID, found []model.DiscoveredResource, now time.Time) error
	// Discovered returns one or model.ErrNotFound.
	Discovered(ctx context.Context, env model.EnvironmentID, id model.ResourceID) (model.DiscoveredResource, error)
	// DiscoveredResources lists them. Sort: discovered_resource_id, resource_type, agent, resource_id_value; id column
	// discovered_resource_id.
	DiscoveredResources(ctx context.Context, env model.EnvironmentID, f model.DiscoveryFilter, p model.Page) (model.List[model.DiscoveredResource], error)
	// DeleteDiscovered removes some and returns how many there were; unknown ids are passed over.
	DeleteDiscovered(ctx context.Context, env model.EnvironmentID, ids []model.ResourceID) (int, error)
}

// Resources reads the current desired state and what became of it.
type Resources interface {
	// Resources lists the resources of the newest released version, and orphans, with their states. Sort: resource_type,
	// agent, resource_id_value, resource_id, status; id column resource_id.
	Resources(ctx context.Context, env model.EnvironmentID, f model.ResourceFilter, p model.Page) (model.List[model.ResourceRow], error)
	// DeploySummary counts the resources of the newest released version by status.
	DeploySummary(ctx context.Context, env model.EnvironmentID) (model.DeploySummary, error)
	// Resource returns one resource, orphans included, or model.ErrNotFound.
	Resource(ctx context.Context, env model.EnvironmentID, id model.ResourceID) (model.ResourceDetails, error)
	// ResourceHistory lists the distinct intents a resource had in released versions, one per run of equal hashes. Sort: date;
	// id column attribute_hash.
	ResourceHistory(ctx context.Context, env model.EnvironmentID, id model.ResourceID, p model.Page) (model.List[model.HistoryEntry], error)
	// ResourceLogs lists the log lines of all actions on a resource. Sort: timestamp, alone (ties in the order of writing).
	ResourceLogs(ctx context.Context, env model.EnvironmentID, id model.ResourceID, f model.LogFilter, p model.Page) (model.List[model.LogRow], error)
}

// Actions reads what was done.
type Actions interface {
	// Actions lists actions with their messages and changes, newest start first, then by id descending.
	Actions(ctx context.Context, env model.EnvironmentID, f model.ActionFilter) ([]model.Action, error)
	// Trace lists everything that carries a trace id, oldest first; empty when nothing does.
	Trace(ctx context.Context, trace model.TraceID) ([]model.TraceStep, error)
}

// Agents keeps the agents of environments.
type Agents interface {
	// Agents lists agents. Sort: name, process_name, status (paused, up or down), paused; id column name.
	Agents(ctx context.Context, env model.EnvironmentID, f model.AgentFilter, p model.Page) (model.List[model.AgentStatus], error)
	// SetAgentsPaused pauses or unpauses agents, all of them when names is empty; unknown names are passed over. A refresh command is
	// stored and TopicAgentChanged hinted. model.ErrForbidden: the environment is halted.
	SetAgentsPaused(ctx context.Context, env model.EnvironmentID, names []model.AgentName, paused bool, actor string, now time.Time) error
	// SetUnpauseOnResume notes what resume does to agents, all of them when names is empty. model.ErrForbidden: the environment
	// is not halted.
	SetUnpauseOnResume(ctx context.Context, env model.EnvironmentID, names []model.AgentName, unpause bool) error
	// AgentSessions lists sessions of agent processes, of one environment or of all when it is the zero id; expired ones only
	// if asked for. Newest first.
	AgentSessions(ctx context.Context, env model.EnvironmentID, expired bool, limit int) ([]model.AgentSession, error)
	// AgentSession returns one session or model.ErrNotFound.
	AgentSession(ctx context.Context, id string) (model.AgentSession, error)
}

// Tokens keeps the tokens of agents. It shares IssueAgentToken's promise with the hub: only a digest is kept.
type Tokens interface {
	// IssueAgentToken makes a token for an environment's agents and returns its text, which can not be had again.
	IssueAgentToken(ctx context.Context, env model.EnvironmentID, description string, oneTime bool) (model.Secret, error)
	// AgentTokens lists the tokens of an environment, newest first.
	AgentTokens(ctx context.Context, env model.EnvironmentID) ([]model.AgentToken, error)
	// RevokeAgentToken makes a token useless. model.ErrNotFound. Revoking twice changes nothing.
	RevokeAgentToken(ctx context.Context, env model.EnvironmentID, id model.TokenID, now time.Time) error
}

// Commands keeps requests to schedulers.
type Commands interface {
	// EnqueueCommand stores a command with the id given and hints TopicCommand. A command of that id that is already there is
	// left as it is, without an error. model.ErrNotFound: no such environment.
	EnqueueCommand(ctx context.Context, c model.Command) error
	// ReleasedVersion returns the newest released version of an environment, 0 when there is none.
	ReleasedVersion(ctx context.Context, env model.EnvironmentID) (int, error)
	// AgentsOfVersion lists the names of the agents that the resources of a version belong to, sorted.
	AgentsOfVersion(ctx context.Context, env model.EnvironmentID, version int) ([]model.AgentName, error)
	// DatabaseStatus tells how the database is. It fails with model.ErrUnavailable when it does not answer.
	DatabaseStatus(ctx context.Context) (model.DatabaseStatus, error)
}

// DryRuns keeps dry runs.
type DryRuns interface {
	// CreateDryRun stores a dry run of a version (command.Version, command.DryRun) and its command in one transaction; Total and Todo
	// are the version's number of resources. model.ErrNotFound: no such version; model.ErrConflict: the environment is halted.
	CreateDryRun(ctx context.Context, command model.Command) (model.DryRun, error)
	// DryRuns lists dry runs, newest first; of all versions when version is 0.
	DryRuns(ctx context.Context, env model.EnvironmentID, version int) ([]model.DryRun, error)
	// DryRunReport returns a dry run and what it has found so far, by resource id, or model.ErrNotFound.
	DryRunReport(ctx context.Context, env model.EnvironmentID, id model.DryRunID) (model.DryRun, []model.DryRunResult, error)
}

// Parameters keeps parameters and facts: a fact is a parameter of a resource.
type Parameters interface {
	// Parameters lists parameters without a resource. Sort: name, source, updated; id column id.
	Parameters(ctx context.Context, env model.EnvironmentID, f model.ParameterFilter, p model.Page) (model.List[model.Parameter], error)
	// Facts lists parameters with a resource. Sort: name, resource_id; id column id.
	Facts(ctx context.Context, env model.EnvironmentID, f model.ParameterFilter, p model.Page) (model.List[model.Parameter], error)
	// FactVersion tells in which version a resource is asked for its facts: 0 for the newest released one, if that has it, else the
	// newest of those stored since. model.ErrNotFound: none of them has it.
	FactVersion(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) (int, error)
	// ResourceFacts lists the facts of one resource by name.
	ResourceFacts(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) ([]model.Parameter, error)
	// Parameter returns a parameter (resource empty) or a fact, or model.ErrNotFound.
	Parameter(ctx context.Context, env model.EnvironmentID, name string, resource model.ResourceID) (model.Parameter, error)
	// SetParameters inserts or replaces by (name, resource) and returns what is stored, in the order given; an ID already
	// stored is kept. Unknown inputs of those names and resources are marked resolved. In the same transaction job is queued
	// when a value is new or changed and recompile is set, or when an unresolved unknown was resolved.
	SetParameters(ctx context.Context, env model.EnvironmentID, params []model.Parameter, recompile bool, job model.CompileJob) (stored []model.Parameter, queued bool, err error)
	// DeleteParameter removes a parameter or fact and queues job in the same transaction. model.ErrNotFound.
	DeleteParameter(ctx context.Context, env model.EnvironmentID, name string, resource model.ResourceID, job model.CompileJob) error
}

// Notifications keeps notifications.
type Notifications interface {
	// Notifications lists notifications. Sort: created; id column id.
	Notifications(ctx context.Context, env model.EnvironmentID, f model.NotificationFilter, p model.Page) (model.List[model.Notification], error)
	// Notification returns one notification or model.ErrNotFound.
	Notification(ctx context.Context, env model.EnvironmentID, id model.NotificationID) (model.Notification, error)
	// UpdateNotification sets the flags that are not nil and returns the result. model.ErrNotFound.
	UpdateNotification(ctx context.Context, env model.EnvironmentID, id model.NotificationID, read, cleared *bool) (model.Notification, error)
}

// Repositories keeps git repositories. What it returns has secrets in it: the caller shows none of them.
type Repositories interface {
	// CreateRepository stores a repository and hints TopicRepository. model.ErrConflict: the name or the URL is taken.
	CreateRepository(ctx context.Context, r model.Repository) error
	// UpdateRepository changes the fields set in the patch and hints TopicRepository. A new URL is carried to the environments
	// that use the repository. model.ErrNotFound; model.ErrConflict: the URL is taken.
	UpdateRepository(ctx context.Context, name model.RepositoryName, patch model.RepositoryPatch) (model.Repository, error)
	// DeleteRepository removes a repository with its deliveries. model.ErrNotFound; model.ErrConflict: environments use it.
	DeleteRepository(ctx context.Context, name model.RepositoryName) error
	// Repository returns one repository or model.ErrNotFound.
	Repository(ctx context.Context, name model.RepositoryName) (model.Repository, error)
	// Repositories lists all repositories by name.
	Repositories(ctx context.Context) ([]model.Repository, error)
	// RequestSync stores the wish that a repository be fetched now and hints TopicRepository with its name. model.ErrNotFound.
	RequestSync(ctx context.Context, name model.RepositoryName, now time.Time) error
}

// Deliveries keeps webhook deliveries.
type Deliveries interface {
	// Deliveries lists deliveries without bodies. Sort: received; id column key.
	Deliveries(ctx context.Context, f model.DeliveryFilter, p model.Page) (model.List[model.Delivery], error)
	// Delivery returns one delivery with its body, or model.ErrNotFound.
	Delivery(ctx context.Context, repository model.RepositoryName, key string) (model.Delivery, error)
	// ReplayDelivery marks a delivery as received again, so that it is worked on, and hints TopicDelivery with
	// "<repository>/<key>". model.ErrNotFound; model.ErrConflict: it has not been finished yet.
	ReplayDelivery(ctx context.Context, repository model.RepositoryName, key string, now time.Time) error
}

// Journeys follows changes from push to reality.
type Journeys interface {
	// Journeys lists the compile requests of an environment with what became of them, newest request first; merged jobs are
	// left out. before, when not zero, keeps older requests only.
	Journeys(ctx context.Context, env model.EnvironmentID, before time.Time, limit int) ([]model.Journey, error)
}

// Hints delivers news.
type Hints interface {
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}
