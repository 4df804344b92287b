package api

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Projects lists all projects by name.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	return value[[]Project](ctx, c, request{method: http.MethodGet, path: "/api/v2/project", query: url.Values{"environment_details": {"true"}}})
}

// Project reads one project.
func (c *Client) Project(ctx context.Context, id string) (Project, error) {
	return value[Project](ctx, c, request{method: http.MethodGet, path: "/api/v2/project" + escape(id)})
}

// CreateProject makes a project; an empty id lets the server choose one.
func (c *Client) CreateProject(ctx context.Context, name, id string) (Project, error) {
	body := map[string]any{"name": name}
	if id != "" {
		body["project_id"] = id
	}
	return value[Project](ctx, c, request{method: http.MethodPut, path: "/api/v2/project", body: body})
}

// RenameProject changes a project's name.
func (c *Client) RenameProject(ctx context.Context, id, name string) (Project, error) {
	return value[Project](ctx, c, request{method: http.MethodPost, path: "/api/v2/project" + escape(id), body: map[string]any{"name": name}})
}

// DeleteProject removes an empty project.
func (c *Client) DeleteProject(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v2/project" + escape(id)})
}

// Environments lists all environments; with summary each has its resources counted by status.
func (c *Client) Environments(ctx context.Context, summary bool) ([]EnvironmentDetails, error) {
	q := url.Values{}
	if summary {
		q.Set("deploy_summary", "true")
	}
	return value[[]EnvironmentDetails](ctx, c, request{method: http.MethodGet, path: "/api/v3/environment", query: q})
}

// EnvironmentDetails reads one environment with its resources counted by status.
func (c *Client) EnvironmentDetails(ctx context.Context, id string) (EnvironmentDetails, error) {
	return value[EnvironmentDetails](ctx, c, request{
		method: http.MethodGet, path: "/api/v3/environment" + escape(id), query: url.Values{"deploy_summary": {"true"}},
	})
}

// EnvironmentWrite creates or changes an environment; what is nil or empty is left out.
type EnvironmentWrite struct {
	// ProjectID or Project (a name, created when there is none) say where to create it.
	ProjectID string `json:"project_id,omitempty"`
	Project   string `json:"project,omitempty"`
	Name      string `json:"name,omitempty"`
	// ID is given to a new environment; the server chooses one when it is empty.
	ID string `json:"environment_id,omitempty"`
	// RepoURL or Repository (the name of a repository) say where the model is.
	RepoURL     *string                    `json:"repo_url,omitempty"`
	Repository  *string                    `json:"repository,omitempty"`
	RepoBranch  *string                    `json:"repo_branch,omitempty"`
	RepoPath    *string                    `json:"repo_path,omitempty"`
	Description *string                    `json:"description,omitempty"`
	Icon        *string                    `json:"icon,omitempty"`
	Settings    map[string]json.RawMessage `json:"settings,omitempty"`
}

// CreateEnvironment makes an environment.
func (c *Client) CreateEnvironment(ctx context.Context, e EnvironmentWrite) (EnvironmentDetails, error) {
	return value[EnvironmentDetails](ctx, c, request{method: http.MethodPost, path: "/api/v3/environment", body: e})
}

// UpdateEnvironment changes the fields that are given.
func (c *Client) UpdateEnvironment(ctx context.Context, id string, e EnvironmentWrite) (EnvironmentDetails, error) {
	return value[EnvironmentDetails](ctx, c, request{method: http.MethodPatch, path: "/api/v3/environment" + escape(id), body: e})
}

// DeleteEnvironment removes an environment and all that belongs to it.
func (c *Client) DeleteEnvironment(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v2/environment" + escape(id)})
}

// ClearEnvironment removes all that belongs to an environment.
func (c *Client) ClearEnvironment(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v2/decommission" + escape(id)})
}

// Halt stops everything in the environment until [Client.Resume].
func (c *Client) Halt(ctx context.Context) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v2/actions/environment/halt"})
}

// Resume ends a halt.
func (c *Client) Resume(ctx context.Context) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v2/actions/environment/resume"})
}

// Settings reads the values that are set and all definitions.
func (c *Client) Settings(ctx context.Context) (EnvironmentSettings, error) {
	return value[EnvironmentSettings](ctx, c, request{method: http.MethodGet, path: "/api/v2/environment_settings"})
}

// Setting reads the value of one setting that is in force.
func (c *Client) Setting(ctx context.Context, name string) (json.RawMessage, error) {
	s, err := value[EnvironmentSettings](ctx, c, request{method: http.MethodGet, path: "/api/v2/environment_settings" + escape(name)})
	return s.Settings[name], err
}

// SetSetting sets a setting; texts such as "yes" and "12" are converted by the server.
func (c *Client) SetSetting(ctx context.Context, name string, v any) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v2/environment_settings" + escape(name), body: map[string]any{"value": v}})
}

// DeleteSetting puts a setting back to its default.
func (c *Client) DeleteSetting(ctx context.Context, name string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v2/environment_settings" + escape(name)})
}

// CompileRequest asks for a compile.
type CompileRequest struct {
	// Update fetches the repository and updates modules first, Export stores the result as a version; both are true when nil.
	Update *bool `json:"update,omitempty"`
	Export *bool `json:"export,omitempty"`
	// Commit is a commit id in full; the newest of the branch when empty.
	Commit               string            `json:"commit,omitempty"`
	Message              string            `json:"message,omitempty"`
	RemoteID             string            `json:"remote_id,omitempty"`
	EnvironmentVariables map[string]string `json:"environment_variables,omitempty"`
	ExporterPlugin       string            `json:"exporter_plugin,omitempty"`
}

// RequestCompile queues a compile and returns its report, to be followed with [Client.WaitCompile].
func (c *Client) RequestCompile(ctx context.Context, r CompileRequest) (CompileReport, error) {
	return value[CompileReport](ctx, c, request{method: http.MethodPost, path: "/api/v3/compile", body: r, key: newKey()})
}

// Compile reads a compile report with its stages, diagnostics and source.
func (c *Client) Compile(ctx context.Context, id string) (CompileAnalysis, error) {
	return value[CompileAnalysis](ctx, c, request{method: http.MethodGet, path: "/api/v3/compile" + escape(id)})
}

// CancelCompile stops a compile.
func (c *Client) CancelCompile(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v3/compile" + escape(id) + "/cancel"})
}

// Compiles lists compile reports, newest request first.
func (c *Client) Compiles(ctx context.Context, o ListOptions) ([]CompileReport, error) {
	items, _, err := list[CompileReport](ctx, c, "/api/v2/compilereport", o)
	return items, err
}

// CompileQueue lists the compiles that wait or run.
func (c *Client) CompileQueue(ctx context.Context) ([]CompileRun, error) {
	out, err := plain[struct {
		Queue []CompileRun `json:"queue"`
	}](ctx, c, request{method: http.MethodGet, path: "/api/v1/compilequeue"})
	return out.Queue, err
}

// ReserveVersion takes a version number for an upload.
func (c *Client) ReserveVersion(ctx context.Context) (int, error) {
	return value[int](ctx, c, request{method: http.MethodPost, path: "/api/v2/reserve_version"})
}

// UploadVersion stores a desired state under a reserved number.
func (c *Client) UploadVersion(ctx context.Context, v UploadedVersion) error {
	if v.ModuleVersionInfo == nil {
		v.ModuleVersionInfo = map[string]json.RawMessage{}
	}
	return c.do(ctx, request{method: http.MethodPut, path: "/api/v1/version", body: v})
}

// UploadPartial has a partial desired state merged into the newest version, and returns the number of the new one.
func (c *Client) UploadPartial(ctx context.Context, v PartialVersion) (int, error) {
	if v.ModuleVersionInfo == nil {
		v.ModuleVersionInfo = map[string]json.RawMessage{}
	}
	e, err := fetch[int](ctx, c, request{method: http.MethodPut, path: "/api/v1/version/partial", body: v})
	return e.Data, err
}

// Versions lists versions, newest first, with their commits and what each changed.
func (c *Client) Versions(ctx context.Context, o ListOptions) ([]VersionDetails, error) {
	items, _, err := list[VersionDetails](ctx, c, "/api/v3/version", o)
	return items, err
}

// Version reads one version.
func (c *Client) Version(ctx context.Context, number int) (VersionDetails, error) {
	return value[VersionDetails](ctx, c, request{method: http.MethodGet, path: "/api/v3/version" + escape(strconv.Itoa(number))})
}

// ReleaseVersion makes a version the desired state.
func (c *Client) ReleaseVersion(ctx context.Context, number int) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v2/desiredstate" + escape(strconv.Itoa(number)) + "/promote"})
}

// DeleteVersion removes a version.
func (c *Client) DeleteVersion(ctx context.Context, number int) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v1/version" + escape(strconv.Itoa(number))})
}

// VersionResources lists the resources of a version.
func (c *Client) VersionResources(ctx context.Context, number int, o ListOptions) ([]VersionedResource, error) {
	items, _, err := list[VersionedResource](ctx, c, "/api/v2/desiredstate"+escape(strconv.Itoa(number)), o)
	return items, err
}

// VersionResource reads one resource of a version.
func (c *Client) VersionResource(ctx context.Context, number int, id string) (VersionedResourceDetails, error) {
	return value[VersionedResourceDetails](ctx, c, request{
		method: http.MethodGet, path: "/api/v2/desiredstate" + escape(strconv.Itoa(number)) + "/resource" + escape(id),
	})
}

// DiffVersions lists what differs between two versions.
func (c *Client) DiffVersions(ctx context.Context, from, to int) ([]ResourceDiff, error) {
	return value[[]ResourceDiff](ctx, c, request{
		method: http.MethodGet, path: "/api/v2/desiredstate/diff" + escape(strconv.Itoa(from), strconv.Itoa(to)),
	})
}

// UploadFiles stores contents that the server does not have, by their SHA-1, and returns how many it sent.
func (c *Client) UploadFiles(ctx context.Context, contents map[string][]byte) (int, error) {
	hashes := make([]string, 0, len(contents))
	for hash, content := range contents {
		sum := sha1.Sum(content)
		if hex.EncodeToString(sum[:]) != hash {
			return 0, fmt.Errorf("file %s: the content has another hash", hash)
		}
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	out, err := plain[struct {
		Files []string `json:"files"`
	}](ctx, c, request{method: http.MethodPost, path: "/api/v1/file", body: map[string]any{"files": hashes}, key: newKey()})
	if err != nil {
		return 0, err
	}
	for i, hash := range out.Files {
		body := map[string]any{"content": base64.StdEncoding.EncodeToString(contents[hash])}
		if err := c.do(ctx, request{method: http.MethodPut, path: "/api/v1/file" + escape(hash), body: body, key: newKey()}); err != nil {
			return i, err
		}
	}
	return len(out.Files), nil
}

// File reads a content by its SHA-1.
func (c *Client) File(ctx context.Context, hash string) ([]byte, error) {
	out, err := plain[struct {
		Content []byte `json:"content"`
	}](ctx, c, request{method: http.MethodGet, path: "/api/v1/file" + escape(hash)})
	return out.Content, err
}

// Resources lists the resources of the newest released version, and orphans, with their statuses.
func (c *Client) Resources(ctx context.Context, o ListOptions) ([]Resource, error) {
	items, _, err := list[Resource](ctx, c, "/api/v2/resource", o)
	return items, err
}

// DeploySummary counts the resources of the environment by status.
func (c *Client) DeploySummary(ctx context.Context) (DeploySummary, error) {
	_, metadata, err := list[Resource](ctx, c, "/api/v2/resource", ListOptions{Limit: 1, Extra: url.Values{"deploy_summary": {"true"}}})
	if err != nil {
		return DeploySummary{}, err
	}
	if metadata == nil || metadata.DeploySummary == nil {
		return DeploySummary{}, errors.New("the server did not send a summary of the deployment")
	}
	return *metadata.DeploySummary, nil
}

// Resource reads everything that is known of one resource.
func (c *Client) Resource(ctx context.Context, id string) (ResourceView, error) {
	return value[ResourceView](ctx, c, request{method: http.MethodGet, path: "/api/v3/resource" + escape(id)})
}

// ResourceHistory lists the intents that a resource had.
func (c *Client) ResourceHistory(ctx context.Context, id string, o ListOptions) ([]ResourceHistory, error) {
	items, _, err := list[ResourceHistory](ctx, c, "/api/v2/resource"+escape(id)+"/history", o)
	return items, err
}

// ResourceLogs lists the log lines of a resource, newest first.
func (c *Client) ResourceLogs(ctx context.Context, id string, o ListOptions) ([]ResourceLog, error) {
	items, _, err := list[ResourceLog](ctx, c, "/api/v2/resource"+escape(id)+"/logs", o)
	return items, err
}

// ResourceActions lists what was done with a resource, newest first.
func (c *Client) ResourceActions(ctx context.Context, id string, limit int) ([]ResourceAction, error) {
	return value[[]ResourceAction](ctx, c, request{
		method: http.MethodGet, path: "/api/v3/resource" + escape(id) + "/actions", query: url.Values{"limit": {strconv.Itoa(limit)}},
	})
}

// Explain says why a resource is not what it should be.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	return value[Explanation](ctx, c, request{method: http.MethodGet, path: "/api/v3/resource" + escape(id) + "/explain"})
}

// Deploy is what to deploy; the zero Deploy deploys everything that does not match.
type Deploy struct {
	Agents    []string `json:"agents,omitempty"`
	Resources []string `json:"resources,omitempty"`
	// Repair checks also what is believed to be fine.
	Repair  bool   `json:"repair,omitempty"`
	Message string `json:"message,omitempty"`
}

// RequestDeploy asks for a deploy or a repair. Warnings name agents that were passed over.
func (c *Client) RequestDeploy(ctx context.Context, d Deploy) (DeployRequest, []string, error) {
	e, err := fetch[DeployRequest](ctx, c, request{method: http.MethodPost, path: "/api/v3/deploy", body: d, key: newKey()})
	if err != nil || e.Metadata == nil {
		return e.Data, nil, err
	}
	return e.Data, e.Metadata.Warnings, nil
}

// RequestDryRun starts a dry run of a version and returns its id.
func (c *Client) RequestDryRun(ctx context.Context, version int) (string, error) {
	return value[string](ctx, c, request{method: http.MethodPost, path: "/api/v2/dryrun" + escape(strconv.Itoa(version)), key: newKey()})
}

// DryRuns lists the dry runs of a version, newest first.
func (c *Client) DryRuns(ctx context.Context, version int) ([]DryRun, error) {
	return value[[]DryRun](ctx, c, request{method: http.MethodGet, path: "/api/v2/dryrun" + escape(strconv.Itoa(version))})
}

// DryRun reads what a dry run has found so far.
func (c *Client) DryRun(ctx context.Context, version int, id string) (DryRunReport, error) {
	return value[DryRunReport](ctx, c, request{method: http.MethodGet, path: "/api/v2/dryrun" + escape(strconv.Itoa(version), id)})
}

// Agents lists the agents of the environment.
func (c *Client) Agents(ctx context.Context, o ListOptions) ([]Agent, error) {
	items, _, err := list[Agent](ctx, c, "/api/v2/agents", o)
	return items, err
}

// AgentProcesses lists the connected processes that host the environment's agents.
func (c *Client) AgentProcesses(ctx context.Context) ([]AgentProcess, error) {
	return value[[]AgentProcess](ctx, c, request{method: http.MethodGet, path: "/api/v3/agent-process"})
}

// AgentAction acts on an agent, or on all when the name is empty: pause, unpause, keep_paused_on_resume, unpause_on_resume.
func (c *Client) AgentAction(ctx context.Context, name, action string) error {
	path := "/api/v2/agents" + escape(action)
	if name != "" {
		path = "/api/v2/agent" + escape(name, action)
	}
	return c.do(ctx, request{method: http.MethodPost, path: path})
}

// IssueAgentToken makes a token that lets an agent in.
func (c *Client) IssueAgentToken(ctx context.Context, description string, oneTime bool) (IssuedToken, error) {
	return value[IssuedToken](ctx, c, request{
		method: http.MethodPost, path: "/api/v3/agent-token", body: map[string]any{"description": description, "one_time": oneTime},
	})
}

// AgentTokens lists the tokens of the environment's agents.
func (c *Client) AgentTokens(ctx context.Context) ([]AgentToken, error) {
	return value[[]AgentToken](ctx, c, request{method: http.MethodGet, path: "/api/v3/agent-token"})
}

// RevokeAgentToken makes a token useless.
func (c *Client) RevokeAgentToken(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v3/agent-token" + escape(id)})
}

// Parameters lists the parameters of the environment.
func (c *Client) Parameters(ctx context.Context, o ListOptions) ([]Parameter, error) {
	items, _, err := list[Parameter](ctx, c, "/api/v2/parameters", o)
	return items, err
}

// Parameter reads one parameter, or a fact when resource is not empty.
func (c *Client) Parameter(ctx context.Context, name, resource string) (Fact, error) {
	q := url.Values{}
	if resource != "" {
		q.Set("resource_id", resource)
	}
	out, err := plain[struct {
		Parameter Fact `json:"parameter"`
	}](ctx, c, request{method: http.MethodGet, path: "/api/v1/parameter" + escape(name), query: q})
	return out.Parameter, err
}

// SetParameter sets a parameter; recompile asks for a compile if the value changes.
func (c *Client) SetParameter(ctx context.Context, name, v string, recompile bool) (Parameter, error) {
	return value[Parameter](ctx, c, request{
		method: http.MethodPut, path: "/api/v2/parameters" + escape(name), key: newKey(),
		body: map[string]any{"source": "user", "value": v, "recompile": recompile},
	})
}

// DeleteParameter removes a parameter.
func (c *Client) DeleteParameter(ctx context.Context, name string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v1/parameter" + escape(name)})
}

// Facts lists the facts of the environment.
func (c *Client) Facts(ctx context.Context, o ListOptions) ([]Fact, error) {
	items, _, err := list[Fact](ctx, c, "/api/v2/facts", o)
	return items, err
}

// Notifications lists the notifications of the environment, newest first.
func (c *Client) Notifications(ctx context.Context, o ListOptions) ([]Notification, error) {
	items, _, err := list[Notification](ctx, c, "/api/v2/notification", o)
	return items, err
}

// UpdateNotification sets the flags that are not nil.
func (c *Client) UpdateNotification(ctx context.Context, id string, read, cleared *bool) (Notification, error) {
	body := map[string]any{}
	if read != nil {
		body["read"] = *read
	}
	if cleared != nil {
		body["cleared"] = *cleared
	}
	return value[Notification](ctx, c, request{method: http.MethodPatch, path: "/api/v2/notification" + escape(id), body: body})
}

// Repositories lists the git repositories.
func (c *Client) Repositories(ctx context.Context) ([]Repository, error) {
	return value[[]Repository](ctx, c, request{method: http.MethodGet, path: "/api/v3/repository"})
}

// Repository reads one repository.
func (c *Client) Repository(ctx context.Context, name string) (Repository, error) {
	return value[Repository](ctx, c, request{method: http.MethodGet, path: "/api/v3/repository" + escape(name)})
}

// CreateRepository adds a repository; the URL must be set.
func (c *Client) CreateRepository(ctx context.Context, name string, r RepositoryWrite) (Repository, error) {
	body := struct {
		Name string `json:"name"`
		RepositoryWrite
	}{name, r}
	return value[Repository](ctx, c, request{method: http.MethodPost, path: "/api/v3/repository", body: body})
}

// UpdateRepository changes the fields that are given.
func (c *Client) UpdateRepository(ctx context.Context, name string, r RepositoryWrite) (Repository, error) {
	return value[Repository](ctx, c, request{method: http.MethodPatch, path: "/api/v3/repository" + escape(name), body: r})
}

// DeleteRepository removes a repository that no environment uses.
func (c *Client) DeleteRepository(ctx context.Context, name string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: "/api/v3/repository" + escape(name)})
}

// SyncRepository fetches a repository now.
func (c *Client) SyncRepository(ctx context.Context, name string) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v3/repository" + escape(name) + "/sync", key: newKey()})
}

// Deliveries lists webhook deliveries, newest first.
func (c *Client) Deliveries(ctx context.Context, o ListOptions) ([]Delivery, error) {
	items, _, err := list[Delivery](ctx, c, "/api/v3/delivery", o)
	return items, err
}

// Delivery reads one webhook delivery with its body.
func (c *Client) Delivery(ctx context.Context, repository, key string) (Delivery, error) {
	return value[Delivery](ctx, c, request{method: http.MethodGet, path: "/api/v3/delivery" + escape(repository, key)})
}

// ReplayDelivery works on a webhook delivery again.
func (c *Client) ReplayDelivery(ctx context.Context, repository, key string) error {
	return c.do(ctx, request{method: http.MethodPost, path: "/api/v3/delivery" + escape(repository, key) + "/replay"})
}

// Journeys follows commits from push to converged, newest first.
func (c *Client) Journeys(ctx context.Context, limit int) ([]Journey, error) {
	return value[[]Journey](ctx, c, request{method: http.MethodGet, path: "/api/v3/journey", query: url.Values{"limit": {strconv.Itoa(limit)}}})
}

// TraceSteps lists everything that a change has left behind, oldest first.
func (c *Client) TraceSteps(ctx context.Context, trace string) ([]TraceStep, error) {
	return value[[]TraceStep](ctx, c, request{method: http.MethodGet, path: "/api/v3/trace" + escape(trace)})
}

// Status tells what the server is and how its parts are.
func (c *Client) Status(ctx context.Context) (ServerStatus, error) {
	return value[ServerStatus](ctx, c, request{method: http.MethodGet, path: "/api/v1/serverstatus"})
}
