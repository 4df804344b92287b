package model

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ParameterID identifies a stored parameter or fact.
type ParameterID struct{ uuid.UUID }

// NotificationID identifies a notification.
type NotificationID struct{ uuid.UUID }

// TokenID identifies a token that was issued to agents.
type TokenID struct{ uuid.UUID }

// Page asks for a part of an ordered list. The order is by the Sort column and then by the list's id column, both in the
// same direction; nulls are the smallest values. Items come in the requested order also when Upper (ascending) or Lower
// (descending) asks for the rows nearest before a bound.
type Page struct {
	// Sort is one of the columns that the method names; Descending turns the order round.
	Sort       string
	Descending bool
	// Limit is the greatest number of items; 0 means all.
	Limit int
	// Lower and Upper are exclusive bounds on (sort column, id column) by value, whatever the direction; at most one is set.
	Lower *Bound
	Upper *Bound
}

// Bound is one end of a [Page]. Value is the sort column's value as text (times in RFC 3339 with fractions, numbers in decimal,
// true and false for booleans, "" for null). ID is that of the id column; when empty only the sort column is compared.
type Bound struct {
	Value string
	ID    string
}

// List is one page of a list and where it stands: Total counts every row that passes the filter, Before and After those
// ahead of and behind the page in the requested order.
type List[T any] struct {
	Items  []T
	Total  int
	Before int
	After  int
}

// TimeRange bounds a time column; a zero field does not bound. All that are set must hold.
type TimeRange struct {
	// After and Before are exclusive, From and Until inclusive.
	After  time.Time
	From   time.Time
	Before time.Time
	Until  time.Time
}

// IntRange bounds an integer column; a nil field does not bound. All that are set must hold.
type IntRange struct {
	// Above and Below are exclusive, AtLeast and AtMost inclusive.
	Above   *int
	AtLeast *int
	Below   *int
	AtMost  *int
}

// ResourceFilter narrows lists of resources. Types, Agents and Values are case-insensitive substrings, any of which suffices.
type ResourceFilter struct {
	Types  []string
	Agents []string
	Values []string
	// Statuses, when not empty, lists the statuses wanted; ExcludeStatuses those not wanted.
	Statuses        []Status
	ExcludeStatuses []Status
}

// ResourceRow is a resource as lists of the current desired state show it. Orphans are part of that list.
type ResourceRow struct {
	// Version is the newest released version, for an orphan the last one that had it.
	Version  int
	Requires []ResourceID
	State    ResourceState
}

// ResourceDetails is everything that is known of one resource, in its current intent.
type ResourceDetails struct {
	ResourceRow
	Attributes json.RawMessage
	// FirstGenerated is the date of the first version that had the resource and is still kept.
	FirstGenerated time.Time
	// RequiresStatus has the present status of each requirement; ProvidesStatus that of each resource that requires this one.
	RequiresStatus map[ResourceID]Status
	ProvidesStatus map[ResourceID]Status
}

// DeploySummary counts the managed resources of an environment by status; orphans are not counted.
type DeploySummary struct {
	Total    int
	ByStatus map[Status]int
}

// HistoryEntry is one intent that a resource had, from the version that introduced it on.
type HistoryEntry struct {
	Resource      ResourceID
	Version       int
	Date          time.Time
	Attributes    json.RawMessage
	AttributeHash string
	Requires      []ResourceID
}

// LogFilter narrows the log of a resource.
type LogFilter struct {
	// MinLevel keeps lines of this level and above; empty keeps all.
	MinLevel LogLevel
	// Messages are case-insensitive substrings, any of which suffices; Actions are exact.
	Messages []string
	Actions  []ActionKind
	Time     TimeRange
}

// LogRow is one log line of a resource with the action it belongs to.
type LogRow struct {
	LogLine
	Action  TaskID
	Kind    ActionKind
	Version int
	Trace   TraceID
}

// ActionFilter narrows lists of actions; zero fields do not.
type ActionFilter struct {
	Resource ResourceID
	// Version is the version an action was for.
	Version int
	Type    string
	Agent   AgentName
	// Attribute and AttributeValue keep actions of resources whose attribute, as text, begins with the value, in the version acted on.
	Attribute      string
	AttributeValue string
	// Level keeps actions with at least one message of exactly this level.
	Level          LogLevel
	Kind           ActionKind
	ExcludeChanges []Change
	Trace          TraceID
	// After and Before bound the start, exclusively; with ID the bound is the pair (start, ID).
	After  time.Time
	Before time.Time
	ID     TaskID
	// Limit is the greatest number of actions, 0 for all.
	Limit int
}

// VersionRow is a version with its standing.
type VersionRow struct {
	Version
	Status VersionStatus
}

// VersionFilter narrows lists of versions.
type VersionFilter struct {
	Number   IntRange
	Date     TimeRange
	Statuses []VersionStatus
	Released *bool
}

// CompileFilter narrows lists of compile reports. Started and Completed ask whether the time is set.
type CompileFilter struct {
	Requested TimeRange
	// StartedAt bounds the time of the start; clients of the first API version use it.
	StartedAt TimeRange
	Success   *bool
	Started   *bool
	Completed *bool
}

// AgentFilter narrows lists of agents. Names and Processes are substrings; Statuses are up, down or paused.
type AgentFilter struct {
	Names     []string
	Processes []string
	Statuses  []string
}

// AgentToken is the record of a token issued to agents; the token's text is not kept.
type AgentToken struct {
	ID          TokenID
	Environment EnvironmentID
	Description string
	// OneTime tokens enrol one process, once.
	OneTime   bool
	CreatedAt time.Time
	CreatedBy string
	// UsedAt is when it last opened a session; zero when it never did.
	UsedAt    time.Time
	RevokedAt time.Time
}

// ParameterSource says who set a parameter.
type ParameterSource string

// The sources of parameters (API reference, section 5.7).
const (
	SourceFact   ParameterSource = "fact"
	SourcePlugin ParameterSource = "plugin"
	SourceUser   ParameterSource = "user"
	SourceReport ParameterSource = "report"
)

// Parameter is an input of compiles: a parameter of the environment, or a fact of a resource when Resource is not empty.
type Parameter struct {
	ID          ParameterID
	Environment EnvironmentID
	Name        string
	Value       string
	Source      ParameterSource
	Resource    ResourceID
	Updated     time.Time
	Metadata    map[string]json.RawMessage
	Expires     bool
}

// ParameterFilter narrows lists of parameters and facts. Names, Sources and Resources are case-insensitive substrings.
type ParameterFilter struct {
	Names     []string
	Sources   []string
	Resources []string
	Updated   TimeRange
	Expires   *bool
	// Metadata must all be contained in the parameter's metadata.
	Metadata map[string]json.RawMessage
}

// Severity is how much a notification matters.
type Severity string

// The severities (API reference, section 5.7).
const (
	SeverityMessage Severity = "message"
	SeverityInfo    Severity = "info"
	SeveritySuccess Severity = "success"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Notification tells the users of an environment that something happened.
type Notification struct {
	ID          NotificationID
	Environment EnvironmentID
	CreatedAt   time.Time
	Title       string
	Message     string
	Severity    Severity
	// URI is the API address of what it is about.
	URI     string
	Job     JobID
	Read    bool
	Cleared bool
}

// NotificationFilter narrows lists of notifications. Titles and Messages are case-insensitive substrings.
type NotificationFilter struct {
	Titles     []string
	Messages   []string
	Read       *bool
	Cleared    *bool
	Severities []Severity
}

// DeliveryFilter narrows lists of webhook deliveries.
type DeliveryFilter struct {
	// Repository is exact; empty means all.
	Repository RepositoryName
	Statuses   []DeliveryStatus
}

// EnvironmentPatch changes the fields of an environment that are not nil.
type EnvironmentPatch struct {
	Project     *ProjectID
	Name        *string
	Description *string
	Icon        *string
	RepoURL     *string
	RepoBranch  *string
	RepoPath    *string
	// Repository is the name a new repository record gets when RepoURL has none yet; see the store's CreateEnvironment.
	Repository *RepositoryName
}

// RepositoryPatch changes the fields of a repository that are not nil; secrets that are nil stay as they are.
type RepositoryPatch struct {
	URL              *string
	Provider         *Provider
	WebhookSecrets   *[]Secret
	Username         *string
	Password         *Secret
	SSHKey           *Secret
	SSHKeyPassphrase *Secret
	KnownHosts       *string
	Poll             *string
}

// JourneyPhase is how far a commit has come.
type JourneyPhase string

// The phases of a journey, in order; failed and superseded end it early.
const (
	JourneyPushed     JourneyPhase = "pushed"
	JourneyCompiling  JourneyPhase = "compiling"
	JourneyCandidate  JourneyPhase = "candidate"
	JourneyDeploying  JourneyPhase = "deploying"
	JourneyConverged  JourneyPhase = "converged"
	JourneyFailed     JourneyPhase = "failed"
	JourneySuperseded JourneyPhase = "superseded"
)

// Journey follows one request for a compile, with its commit, until the environment has converged on the version it made.
type Journey struct {
	Environment EnvironmentID
	Revision    Revision
	Trace       TraceID
	Phase       JourneyPhase
	Reason      string
	// ReceivedAt is when the webhook came (or else the request was made), RequestedAt when the compile was queued.
	ReceivedAt  time.Time
	RequestedAt time.Time
	Job         JobID
	Compile     CompileStatus
	StartedAt   time.Time
	FinishedAt  time.Time
	// Version is 0 until one is stored; StoredAt and ReleasedAt are its times.
	Version    int
	StoredAt   time.Time
	ReleasedAt time.Time
	// Total is the number of resources of the version; Deployed have reached their intent, Failed have not in their last
	// run, Waiting are still to be run, Blocked will not be. All are 0 while the version is not the newest released one.
	Total    int
	Deployed int
	Failed   int
	Waiting  int
	Blocked  int
	// FirstDeployAt and LastDeployAt bound the deploys that ran for the version.
	FirstDeployAt time.Time
	LastDeployAt  time.Time
	// ConvergedAt is when the last resource reached its intent; zero while some have not.
	ConvergedAt time.Time
	// Error is the cause when the compile failed.
	Error string
}

// TraceStep is one thing that carries a trace id.
type TraceStep struct {
	// Kind is delivery, compile, version, command or action.
	Kind        string
	Environment EnvironmentID
	// ID is what it is: <repository>/<key>, a job id, a version number, a command id, a task id.
	ID       string
	Resource ResourceID
	Text     string
	Status   string
	At       time.Time
	// EndedAt is zero while it goes on or when it has no extent.
	EndedAt time.Time
}

// Explanation says why a resource is not (yet) what it should be, for people and for programs.
type Explanation struct {
	Resource ResourceID
	// Summary is one sentence.
	Summary string
	Reasons []ExplainReason
}

// ExplainReason is one cause in an [Explanation].
type ExplainReason struct {
	// Code is stable: halted, agent-paused, agent-down, waiting-for-requirement, blocked, undefined, backoff, failed, …
	Code string
	Text string
	// Resource and Agent are what is waited for, when that is one thing; Until is when it ends by itself, if it does.
	Resource ResourceID
	Agent    AgentName
	Until    time.Time
}

// DatabaseStatus is what the status page shows of the database.
type DatabaseStatus struct {
	Connected bool
	Version   string
	Database  string
	Host      string
	// MaxPool, OpenPool and FreePool are numbers of connections.
	MaxPool  int
	OpenPool int
	FreePool int
}

// DiscoveredResource is a resource that a handler found to exist.
type DiscoveredResource struct {
	Resource ResourceID
	// Values is what the handler said of it, a JSON object.
	Values json.RawMessage
	// Discovery is the resource whose handler found it.
	Discovery ResourceID
	At        time.Time
	// Managed is true when the newest released version has the resource.
	Managed bool
}

// DiscoveryFilter narrows lists of discovered resources; texts are case-insensitive substrings, any of which suffices.
type DiscoveryFilter struct {
	Types   []string
	Agents  []string
	Values  []string
	Managed *bool
}
