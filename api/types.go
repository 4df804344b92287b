package api

import "encoding/json"

// EnvironmentHeader carries the environment that a request is about.
const EnvironmentHeader = "X-Inmanta-tid"

// TraceHeader carries the trace id of a request in its answer.
const TraceHeader = "X-Trace-Id"

// Envelope is the body of a successful answer.
type Envelope[T any] struct {
	Data     T         `json:"data"`
	Links    *Links    `json:"links,omitempty"`
	Metadata *Metadata `json:"metadata,omitempty"`
}

// Links lead to the pages around a page of a list. They are relative to the server.
type Links struct {
	Self  string `json:"self,omitempty"`
	Next  string `json:"next,omitempty"`
	Prev  string `json:"prev,omitempty"`
	First string `json:"first,omitempty"`
}

// Metadata says where a page stands in its list, and carries warnings.
type Metadata struct {
	Total         *int           `json:"total,omitempty"`
	Before        *int           `json:"before,omitempty"`
	After         *int           `json:"after,omitempty"`
	PageSize      *int           `json:"page_size,omitempty"`
	DeploySummary *DeploySummary `json:"deploy_summary,omitempty"`
	Warnings      []string       `json:"warnings,omitempty"`
}

// Project is a named group of environments.
type Project struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	Environments []Environment `json:"environments"`
}

// ProjectV1 is a project of the first API version, with the ids of its environments.
type ProjectV1 struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Environments []string `json:"environments"`
}

// Environment is one model's home.
type Environment struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	// RepoURL is empty when models are uploaded by clients; RepoBranch is empty for the repository's default branch.
	RepoURL    string `json:"repo_url"`
	RepoBranch string `json:"repo_branch"`
	// Settings has only the values that were set.
	Settings            map[string]json.RawMessage `json:"settings"`
	Halted              bool                       `json:"halted"`
	IsMarkedForDeletion bool                       `json:"is_marked_for_deletion"`
	Description         *string                    `json:"description"`
	Icon                *string                    `json:"icon"`
}

// EnvironmentV1 is an environment of the first API version.
type EnvironmentV1 struct {
	ID         string                     `json:"id"`
	Name       string                     `json:"name"`
	Project    string                     `json:"project"`
	RepoURL    string                     `json:"repo_url"`
	RepoBranch string                     `json:"repo_branch"`
	Settings   map[string]json.RawMessage `json:"settings"`
	Halted     bool                       `json:"halted"`
}

// EnvironmentDetails is an environment with where its source is and what it has reached.
type EnvironmentDetails struct {
	Environment
	ProjectName string `json:"project_name"`
	// RepoPath is the directory of the project inside the repository; Repository the record of the repository.
	RepoPath   string `json:"repo_path"`
	Repository string `json:"repository"`
	// Revision is the newest commit seen on the branch.
	Revision *Revision `json:"revision"`
	// LastVersion is the version counter, ReleasedVersion the newest released version, 0 when there is none.
	LastVersion     int            `json:"last_version"`
	ReleasedVersion int            `json:"released_version"`
	DeploySummary   *DeploySummary `json:"deploy_summary,omitempty"`
	Compiling       bool           `json:"compiling"`
}

// Revision is a commit.
type Revision struct {
	Repository  string `json:"repository"`
	Ref         string `json:"ref"`
	Commit      string `json:"commit"`
	Author      string `json:"author"`
	Message     string `json:"message"`
	CommittedAt *Time  `json:"committed_at"`
}

// EnvironmentSettings are the values set in an environment and the definitions of all settings.
type EnvironmentSettings struct {
	Settings   map[string]json.RawMessage              `json:"settings"`
	Definition map[string]EnvironmentSettingDefinition `json:"definition"`
}

// EnvironmentSettingsV1 is the list of settings of the first API version.
type EnvironmentSettingsV1 struct {
	Settings map[string]json.RawMessage              `json:"settings"`
	Metadata map[string]EnvironmentSettingDefinition `json:"metadata"`
}

// EnvironmentSettingV1 is one setting of the first API version.
type EnvironmentSettingV1 struct {
	Value    json.RawMessage                         `json:"value"`
	Metadata map[string]EnvironmentSettingDefinition `json:"metadata"`
}

// EnvironmentSettingDefinition describes a setting.
type EnvironmentSettingDefinition struct {
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	Default       json.RawMessage `json:"default"`
	Doc           string          `json:"doc"`
	Recompile     bool            `json:"recompile"`
	UpdateModel   bool            `json:"update_model"`
	AgentRestart  bool            `json:"agent_restart"`
	AllowedValues []string        `json:"allowed_values"`
	Section       string          `json:"section"`
	Protected     bool            `json:"protected"`
	ProtectedBy   *string         `json:"protected_by"`
}

// CompileRun is a compile that waits or runs.
type CompileRun struct {
	ID                            string                     `json:"id"`
	RemoteID                      *string                    `json:"remote_id"`
	Environment                   string                     `json:"environment"`
	Requested                     *Time                      `json:"requested"`
	Started                       *Time                      `json:"started"`
	DoExport                      bool                       `json:"do_export"`
	ForceUpdate                   bool                       `json:"force_update"`
	Metadata                      map[string]json.RawMessage `json:"metadata"`
	EnvironmentVariables          map[string]string          `json:"environment_variables"`
	RequestedEnvironmentVariables map[string]string          `json:"requested_environment_variables"`
	MergeableEnvironmentVariables map[string]string          `json:"mergeable_environment_variables"`
	Partial                       bool                       `json:"partial"`
	RemovedResourceSets           []string                   `json:"removed_resource_sets"`
	ExporterPlugin                *string                    `json:"exporter_plugin"`
	NotifyFailedCompile           *bool                      `json:"notify_failed_compile"`
	FailedCompileMessage          *string                    `json:"failed_compile_message"`
	Links                         map[string][]string        `json:"links"`
	CompileData                   *CompileData               `json:"compile_data"`
}

// CompileReport is a compile with its outcome.
type CompileReport struct {
	CompileRun
	Completed *Time `json:"completed"`
	Success   *bool `json:"success"`
	Version   *int  `json:"version"`
	// Status is queued, running, succeeded, failed, cancelled or merged.
	Status string `json:"status"`
	// Revision is the commit that was compiled.
	Revision *Revision `json:"revision"`
	Reason   string    `json:"reason"`
	Trace    string    `json:"trace_id"`
	Error    string    `json:"error"`
}

// CompileStage is one stage of a compile.
type CompileStage struct {
	ID         string `json:"id"`
	Started    *Time  `json:"started"`
	Completed  *Time  `json:"completed"`
	Command    string `json:"command"`
	Name       string `json:"name"`
	Errstream  string `json:"errstream"`
	Outstream  string `json:"outstream"`
	Returncode *int   `json:"returncode"`
}

// CompileDetails is a compile report with its stages.
type CompileDetails struct {
	CompileReport
	Reports []CompileStage `json:"reports"`
}

// CompileData is what a failed compile says about its causes.
type CompileData struct {
	Errors []CompileError `json:"errors"`
}

// CompileError is one cause of a failed compile.
type CompileError struct {
	Type     string           `json:"type"`
	Message  string           `json:"message"`
	Location *CompileLocation `json:"location"`
	Category string           `json:"category"`
}

// CompileLocation is a place in a source file.
type CompileLocation struct {
	URI   string       `json:"uri"`
	Range *SourceRange `json:"range"`
}

// SourceRange is a stretch of a source file; lines and characters count from 0, as editors do.
type SourceRange struct {
	Start SourcePosition `json:"start"`
	End   SourcePosition `json:"end"`
}

// SourcePosition is a place in a text.
type SourcePosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Diagnostic is a fault that a compile found, with the source around it. Lines and columns count from 1.
type Diagnostic struct {
	Severity  string         `json:"severity"`
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint,omitempty"`
	File      string         `json:"file"`
	Line      int            `json:"line"`
	Column    int            `json:"column"`
	EndLine   int            `json:"end_line"`
	EndColumn int            `json:"end_column"`
	Related   []RelatedPlace `json:"related"`
	Excerpt   *SourceExcerpt `json:"excerpt,omitempty"`
}

// RelatedPlace is another place that contributed to a fault.
type RelatedPlace struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Message   string `json:"message"`
}

// SourceExcerpt is some lines of a source file.
type SourceExcerpt struct {
	File string `json:"file"`
	// FirstLine is the number of the first of Lines.
	FirstLine int      `json:"first_line"`
	Lines     []string `json:"lines"`
}

// CompileAnalysis is a compile report as people want to read it: stages, diagnostics with source, cost.
type CompileAnalysis struct {
	CompileDetails
	Diagnostics []Diagnostic `json:"diagnostics"`
	// SubstituteID is the compile that did the work of this one, when it was merged.
	SubstituteID *string `json:"substitute_id"`
	Digest       string  `json:"digest"`
	Actor        string  `json:"actor"`
	Attempt      int     `json:"attempt"`
	// PeakMemory is in bytes, CPUTime in seconds.
	PeakMemory int64   `json:"peak_memory"`
	CPUTime    float64 `json:"cpu_time"`
}

// CompileRecordV1 is a compile of the first API version.
type CompileRecordV1 struct {
	CompileReport
	Handled                  bool              `json:"handled"`
	UsedEnvironmentVariables map[string]string `json:"used_environment_variables"`
	SubstituteCompileID      *string           `json:"substitute_compile_id"`
	SoftDelete               bool              `json:"soft_delete"`
	ReinstallProjectAndVenv  bool              `json:"reinstall_project_and_venv"`
	Reports                  []CompileStage    `json:"reports,omitempty"`
}

// DesiredStateVersion is a version in lists.
type DesiredStateVersion struct {
	Version  int     `json:"version"`
	Date     *Time   `json:"date"`
	Total    int     `json:"total"`
	Labels   []Label `json:"labels"`
	Status   string  `json:"status"`
	Released bool    `json:"released"`
}

// Label says where a version came from.
type Label struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// VersionDetails is a version with its origin and what it changed.
type VersionDetails struct {
	DesiredStateVersion
	ReleasedAt *Time `json:"released_at"`
	// Added, Changed and Removed count resources against the version before.
	Added        int       `json:"added"`
	Changed      int       `json:"changed"`
	Removed      int       `json:"removed"`
	Digest       string    `json:"digest"`
	Compile      *string   `json:"compile_id"`
	Revision     *Revision `json:"revision"`
	Trace        string    `json:"trace_id"`
	Undeployable []string  `json:"undeployable"`
	Blocked      []string  `json:"skipped_for_undeployable"`
}

// VersionV1 is a version of the first API version.
type VersionV1 struct {
	Version                      int                                   `json:"version"`
	Environment                  string                                `json:"environment"`
	Date                         *Time                                 `json:"date"`
	PartialBase                  *int                                  `json:"partial_base"`
	Released                     bool                                  `json:"released"`
	VersionInfo                  map[string]map[string]json.RawMessage `json:"version_info"`
	IsSuitableForPartialCompiles bool                                  `json:"is_suitable_for_partial_compiles"`
	Total                        int                                   `json:"total"`
	Undeployable                 []string                              `json:"undeployable"`
	SkippedForUndeployable       []string                              `json:"skipped_for_undeployable"`
	Status                       string                                `json:"status"`
}

// VersionListV1 is the list of versions of the first API version.
type VersionListV1 struct {
	Versions []VersionV1 `json:"versions"`
	Start    *int        `json:"start,omitempty"`
	Limit    *int        `json:"limit,omitempty"`
	Count    int         `json:"count"`
}

// VersionReportV1 is a version with its resources.
type VersionReportV1 struct {
	Model     VersionV1    `json:"model"`
	Resources []ResourceV1 `json:"resources"`
	Unknowns  []UnknownV1  `json:"unknowns"`
}

// UnknownV1 is an input that a compile awaited.
type UnknownV1 struct {
	Name        string `json:"name"`
	ResourceID  string `json:"resource_id"`
	Source      string `json:"source"`
	Environment string `json:"environment"`
	Version     int    `json:"version"`
	Resolved    bool   `json:"resolved"`
}

// ResourceV1 is a resource of a version in the first API version.
type ResourceV1 struct {
	Environment       string           `json:"environment"`
	Model             int              `json:"model"`
	ResourceID        string           `json:"resource_id"`
	ResourceVersionID string           `json:"resource_version_id"`
	ResourceType      string           `json:"resource_type"`
	ResourceIDValue   string           `json:"resource_id_value"`
	Agent             string           `json:"agent"`
	Attributes        json.RawMessage  `json:"attributes"`
	AttributeHash     string           `json:"attribute_hash"`
	Status            string           `json:"status,omitempty"`
	LastDeploy        *Time            `json:"last_deploy,omitempty"`
	IsUndefined       bool             `json:"is_undefined"`
	ResourceSet       *string          `json:"resource_set"`
	Actions           []ResourceAction `json:"actions,omitempty"`
}

// ResourceReportV1 is a resource with its log, in the first API version.
type ResourceReportV1 struct {
	Resource ResourceV1       `json:"resource"`
	Logs     []ResourceAction `json:"logs"`
}

// UploadedVersion is the body of an upload of a desired state.
type UploadedVersion struct {
	Version           int                          `json:"version"`
	Resources         []map[string]json.RawMessage `json:"resources"`
	ModuleVersionInfo map[string]json.RawMessage   `json:"module_version_info"`
	// ResourceState maps resource ids to available or undefined.
	ResourceState map[string]string            `json:"resource_state,omitempty"`
	Unknowns      []map[string]json.RawMessage `json:"unknowns,omitempty"`
	VersionInfo   map[string]json.RawMessage   `json:"version_info,omitempty"`
	ResourceSets  map[string]*string           `json:"resource_sets,omitempty"`
}

// ResourceIDDetails are the parts of a resource id.
type ResourceIDDetails struct {
	ResourceType    string `json:"resource_type"`
	Agent           string `json:"agent"`
	Attribute       string `json:"attribute"`
	ResourceIDValue string `json:"resource_id_value"`
}

// VersionedResource is a resource in lists of one version.
type VersionedResource struct {
	ResourceID        string            `json:"resource_id"`
	ResourceVersionID string            `json:"resource_version_id"`
	IDDetails         ResourceIDDetails `json:"id_details"`
	Requires          []string          `json:"requires"`
}

// Resource is a resource in lists of the current desired state.
type Resource struct {
	VersionedResource
	Status string `json:"status"`
}

// ResourceDetails is a resource with its attributes.
type ResourceDetails struct {
	ResourceID       string          `json:"resource_id"`
	ResourceType     string          `json:"resource_type"`
	Agent            string          `json:"agent"`
	IDAttribute      string          `json:"id_attribute"`
	IDAttributeValue string          `json:"id_attribute_value"`
	Attributes       json.RawMessage `json:"attributes"`
}

// VersionedResourceDetails is a resource of one version with its attributes.
type VersionedResourceDetails struct {
	ResourceDetails
	ResourceVersionID string `json:"resource_version_id"`
	Version           int    `json:"version"`
}

// ReleasedResourceDetails is a resource of the current desired state with its attributes and status.
type ReleasedResourceDetails struct {
	ResourceDetails
	LastDeploy         *Time             `json:"last_deploy"`
	FirstGeneratedTime *Time             `json:"first_generated_time"`
	Status             string            `json:"status"`
	RequiresStatus     map[string]string `json:"requires_status"`
}

// ResourceView is everything known of one resource.
type ResourceView struct {
	ReleasedResourceDetails
	Version         int               `json:"version"`
	ProvidesStatus  map[string]string `json:"provides_status"`
	Compliance      string            `json:"compliance"`
	LastHandlerRun  string            `json:"last_handler_run"`
	Blocked         string            `json:"blocked"`
	LastSuccess     *Time             `json:"last_success"`
	DeployedVersion int               `json:"deployed_version"`
	AttributeHash   string            `json:"attribute_hash"`
	FailuresInARow  int               `json:"failures_in_a_row"`
	OrphanedAfter   int               `json:"orphaned_after"`
}

// ResourceHistory is one intent that a resource had.
type ResourceHistory struct {
	ResourceID    string          `json:"resource_id"`
	Date          *Time           `json:"date"`
	Attributes    json.RawMessage `json:"attributes"`
	AttributeHash string          `json:"attribute_hash"`
	Requires      []string        `json:"requires"`
	Version       int             `json:"version"`
}

// LogLine is one message of an action.
type LogLine struct {
	Level     string          `json:"level"`
	Msg       string          `json:"msg"`
	Args      []string        `json:"args"`
	Kwargs    json.RawMessage `json:"kwargs"`
	Timestamp *Time           `json:"timestamp"`
}

// ResourceLog is one message about a resource, with the action it belongs to.
type ResourceLog struct {
	LogLine
	ActionID string `json:"action_id"`
	Action   string `json:"action"`
	Version  int    `json:"version"`
	Trace    string `json:"trace_id"`
}

// AttributeChange is an attribute's value before and after.
type AttributeChange struct {
	Current json.RawMessage `json:"current"`
	Desired json.RawMessage `json:"desired"`
}

// ResourceAction is something that was done with resources.
type ResourceAction struct {
	Environment        string                                `json:"environment"`
	Version            int                                   `json:"version"`
	ResourceVersionIDs []string                              `json:"resource_version_ids"`
	ActionID           string                                `json:"action_id"`
	Action             string                                `json:"action"`
	Started            *Time                                 `json:"started"`
	Finished           *Time                                 `json:"finished"`
	Messages           []LogLine                             `json:"messages"`
	Status             *string                               `json:"status"`
	Changes            map[string]map[string]AttributeChange `json:"changes"`
	Change             *string                               `json:"change"`
	SendEvent          bool                                  `json:"send_event"`
	Reason             string                                `json:"reason"`
	Trace              string                                `json:"trace_id"`
	// Code is a stable reason of a failure.
	Code string `json:"code"`
}

// DeploySummary counts resources by status; every status is there.
type DeploySummary struct {
	Total   int            `json:"total"`
	ByState map[string]int `json:"by_state"`
}

// AttributeDiff is an attribute that differs. The compare fields are texts for a line by line comparison.
type AttributeDiff struct {
	FromValue        json.RawMessage `json:"from_value"`
	ToValue          json.RawMessage `json:"to_value"`
	FromValueCompare string          `json:"from_value_compare"`
	ToValueCompare   string          `json:"to_value_compare"`
}

// ResourceDiff is a resource that differs between two versions, or from reality.
type ResourceDiff struct {
	ResourceID string                   `json:"resource_id"`
	Attributes map[string]AttributeDiff `json:"attributes"`
	// Status is added, modified, deleted or unmodified; in dry runs also agent_down, undefined and skipped_for_undefined.
	Status string `json:"status"`
}

// DryRun is a run of the handlers that changes nothing.
type DryRun struct {
	ID          string `json:"id"`
	Environment string `json:"environment"`
	Model       int    `json:"model"`
	Date        *Time  `json:"date"`
	Total       int    `json:"total"`
	Todo        int    `json:"todo"`
}

// DryRunReport is what a dry run found.
type DryRunReport struct {
	Summary DryRun         `json:"summary"`
	Diff    []ResourceDiff `json:"diff"`
}

// DryRunV1 is a dry run of the first API version.
type DryRunV1 struct {
	ID          string                      `json:"id"`
	Environment string                      `json:"environment"`
	Model       int                         `json:"model"`
	Version     int                         `json:"version"`
	Date        *Time                       `json:"date"`
	Total       int                         `json:"total"`
	Todo        int                         `json:"todo"`
	Resources   map[string]DryRunResourceV1 `json:"resources,omitempty"`
}

// DryRunResourceV1 is what a dry run found for one resource, in the first API version.
type DryRunResourceV1 struct {
	ID         string                     `json:"id"`
	DiffStatus string                     `json:"diff_status,omitempty"`
	Message    string                     `json:"message,omitempty"`
	Changes    map[string]AttributeChange `json:"changes"`
}

// Agent is an agent of an environment.
type Agent struct {
	Environment     string  `json:"environment"`
	Name            string  `json:"name"`
	Paused          bool    `json:"paused"`
	ProcessID       *string `json:"process_id"`
	ProcessName     *string `json:"process_name"`
	UnpauseOnResume *bool   `json:"unpause_on_resume"`
	// Status is up, down or paused.
	Status   string `json:"status"`
	Hostname string `json:"hostname"`
	// Since is when it came up or went down.
	Since *Time `json:"since"`
}

// AgentV1 is an agent of the first API version.
type AgentV1 struct {
	Environment  string `json:"environment"`
	Name         string `json:"name"`
	Paused       bool   `json:"paused"`
	State        string `json:"state"`
	LastFailover string `json:"last_failover"`
	Primary      string `json:"primary"`
}

// AgentListV1 is the list of agents of the first API version.
type AgentListV1 struct {
	Agents     []AgentV1 `json:"agents"`
	Servertime *Time     `json:"servertime"`
}

// AgentProcess is a process that hosts agents.
type AgentProcess struct {
	SID         string   `json:"sid"`
	Hostname    string   `json:"hostname"`
	Environment string   `json:"environment"`
	FirstSeen   *Time    `json:"first_seen"`
	Expired     *Time    `json:"expired"`
	Process     string   `json:"process"`
	Agents      []string `json:"agents"`
	Version     string   `json:"version"`
	Autostarted bool     `json:"autostarted"`
}

// AgentToken is the record of a token that lets agents in.
type AgentToken struct {
	ID          string `json:"id"`
	Environment string `json:"environment"`
	Description string `json:"description"`
	OneTime     bool   `json:"one_time"`
	CreatedAt   *Time  `json:"created_at"`
	UsedAt      *Time  `json:"used_at"`
	RevokedAt   *Time  `json:"revoked_at"`
}

// IssuedToken is a new token; its text is shown this once.
type IssuedToken struct {
	Token       string `json:"token"`
	Environment string `json:"environment"`
	Description string `json:"description"`
	OneTime     bool   `json:"one_time"`
}

// Parameter is an input of compiles.
type Parameter struct {
	ID          string                     `json:"id"`
	Name        string                     `json:"name"`
	Value       string                     `json:"value"`
	Environment string                     `json:"environment"`
	Source      string                     `json:"source"`
	Updated     *Time                      `json:"updated"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
}

// Fact is a value that a handler read from reality.
type Fact struct {
	Parameter
	ResourceID string `json:"resource_id"`
	Expires    bool   `json:"expires"`
}

// ParameterListV1 is the list of parameters of the first API version.
type ParameterListV1 struct {
	Parameters []Fact `json:"parameters"`
	// Expire is the age in seconds at which facts are stale.
	Expire int   `json:"expire"`
	Now    *Time `json:"now"`
}

// ParameterWrite is one item of a bulk write of parameters.
type ParameterWrite struct {
	ID         string                     `json:"id"`
	Source     string                     `json:"source"`
	Value      json.RawMessage            `json:"value"`
	ResourceID *string                    `json:"resource_id,omitempty"`
	Expires    *bool                      `json:"expires,omitempty"`
	Metadata   map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Notification tells that something happened.
type Notification struct {
	ID          string  `json:"id"`
	Environment string  `json:"environment"`
	Created     *Time   `json:"created"`
	Title       string  `json:"title"`
	Message     string  `json:"message"`
	Severity    string  `json:"severity"`
	URI         *string `json:"uri"`
	CompileID   *string `json:"compile_id"`
	Read        bool    `json:"read"`
	Cleared     bool    `json:"cleared"`
}

// ServerStatus is what the server says about itself.
type ServerStatus struct {
	Product           string          `json:"product"`
	Edition           string          `json:"edition"`
	Version           string          `json:"version"`
	License           string          `json:"license"`
	Extensions        []ExtensionInfo `json:"extensions"`
	Slices            []SliceStatus   `json:"slices"`
	Features          []Feature       `json:"features"`
	Status            string          `json:"status"`
	PythonVersion     string          `json:"python_version"`
	PostgresqlVersion *string         `json:"postgresql_version"`
}

// ExtensionInfo names an extension.
type ExtensionInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Package string `json:"package"`
}

// SliceStatus is the status of one part of the server.
type SliceStatus struct {
	Name           string         `json:"name"`
	Status         map[string]any `json:"status"`
	ReportedStatus string         `json:"reported_status"`
	Message        *string        `json:"message"`
}

// Feature is a switch of the server.
type Feature struct {
	Slice string `json:"slice"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Repository is a git repository that environments deploy from. Its secrets are never shown.
type Repository struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Provider string `json:"provider"`
	// WebhookSecrets is the number of secrets that are accepted; WebhookPath is where deliveries go.
	WebhookSecrets int    `json:"webhook_secrets"`
	WebhookPath    string `json:"webhook_path"`
	Username       string `json:"username"`
	HasPassword    bool   `json:"has_password"`
	HasSSHKey      bool   `json:"has_ssh_key"`
	KnownHosts     string `json:"known_hosts"`
	Poll           string `json:"poll"`
	LastSynced     *Time  `json:"last_synced"`
	LastError      string `json:"last_error"`
	// Environments lists the environments that deploy from it.
	Environments []string `json:"environments"`
}

// RepositoryWrite creates or changes a repository; what is nil stays as it is. Secrets go in and never come out.
type RepositoryWrite struct {
	URL              *string   `json:"url,omitempty"`
	Provider         *string   `json:"provider,omitempty"`
	WebhookSecrets   *[]string `json:"webhook_secrets,omitempty"`
	Username         *string   `json:"username,omitempty"`
	Password         *string   `json:"password,omitempty"`
	SSHKey           *string   `json:"ssh_key,omitempty"`
	SSHKeyPassphrase *string   `json:"ssh_key_passphrase,omitempty"`
	KnownHosts       *string   `json:"known_hosts,omitempty"`
	Poll             *string   `json:"poll,omitempty"`
}

// Delivery is a webhook delivery.
type Delivery struct {
	Key        string `json:"key"`
	Repository string `json:"repository"`
	Provider   string `json:"provider"`
	Event      string `json:"event"`
	Ref        string `json:"ref"`
	Before     string `json:"before"`
	After      string `json:"after"`
	Trace      string `json:"trace_id"`
	ReceivedAt *Time  `json:"received_at"`
	// Status is received, ignored, synced or failed; Detail says why.
	Status     string            `json:"status"`
	Detail     string            `json:"detail"`
	FinishedAt *Time             `json:"finished_at"`
	Headers    map[string]string `json:"headers,omitempty"`
	// Body is the text that was received, possibly cut.
	Body string `json:"body,omitempty"`
}

// Journey follows one commit from push to reality.
type Journey struct {
	Environment string    `json:"environment"`
	Revision    *Revision `json:"revision"`
	Trace       string    `json:"trace_id"`
	// Phase is pushed, compiling, candidate, deploying, converged, failed or superseded.
	Phase         string `json:"phase"`
	Reason        string `json:"reason"`
	ReceivedAt    *Time  `json:"received_at"`
	RequestedAt   *Time  `json:"requested_at"`
	CompileID     string `json:"compile_id"`
	CompileStatus string `json:"compile_status"`
	StartedAt     *Time  `json:"started_at"`
	FinishedAt    *Time  `json:"finished_at"`
	Version       int    `json:"version"`
	StoredAt      *Time  `json:"stored_at"`
	ReleasedAt    *Time  `json:"released_at"`
	Total         int    `json:"total"`
	Deployed      int    `json:"deployed"`
	Failed        int    `json:"failed"`
	Waiting       int    `json:"waiting"`
	Blocked       int    `json:"blocked"`
	FirstDeployAt *Time  `json:"first_deploy_at"`
	LastDeployAt  *Time  `json:"last_deploy_at"`
	ConvergedAt   *Time  `json:"converged_at"`
	Error         string `json:"error"`
	// Seconds is how long it took from the push until it converged, or until now.
	Seconds float64 `json:"seconds"`
}

// TraceStep is one thing that carries a trace id.
type TraceStep struct {
	Kind        string `json:"kind"`
	Environment string `json:"environment"`
	ID          string `json:"id"`
	Resource    string `json:"resource,omitempty"`
	Text        string `json:"text"`
	Status      string `json:"status"`
	At          *Time  `json:"at"`
	EndedAt     *Time  `json:"ended_at"`
}

// Explanation says why a resource is not what it should be.
type Explanation struct {
	Resource string          `json:"resource_id"`
	Summary  string          `json:"summary"`
	Reasons  []ExplainReason `json:"reasons"`
}

// ExplainReason is one cause in an [Explanation].
type ExplainReason struct {
	Code     string `json:"code"`
	Text     string `json:"text"`
	Resource string `json:"resource_id,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Until    *Time  `json:"until"`
}

// Event says that something has changed; whoever hears it fetches what it shows again.
type Event struct {
	// Kind is compile, version, resource, agent, environment, repository, delivery, dryrun, notification, parameter, command or
	// resync, the last when events may have been missed.
	Kind        string `json:"kind"`
	Environment string `json:"environment,omitempty"`
	// ID is what changed, when that is one thing.
	ID string `json:"id,omitempty"`
}

// The kinds of events.
const (
	EventCompile      = "compile"
	EventVersion      = "version"
	EventResource     = "resource"
	EventAgent        = "agent"
	EventEnvironment  = "environment"
	EventRepository   = "repository"
	EventDelivery     = "delivery"
	EventDryRun       = "dryrun"
	EventNotification = "notification"
	EventParameter    = "parameter"
	EventCommand      = "command"
	EventResync       = "resync"
)

// DeployRequest is a deploy or repair that was asked for.
type DeployRequest struct {
	ID string `json:"id"`
	// Kind is deploy or repair.
	Kind      string   `json:"kind"`
	Version   int      `json:"version"`
	Agents    []string `json:"agents"`
	Resources []string `json:"resources"`
}
