package api

import "encoding/json"

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

// DeployRequest is a deploy or repair that was asked for.
type DeployRequest struct {
	ID string `json:"id"`
	// Kind is deploy or repair.
	Kind      string   `json:"kind"`
	Version   int      `json:"version"`
	Agents    []string `json:"agents"`
	Resources []string `json:"resources"`
}
