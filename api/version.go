package api

import "encoding/json"

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

// PartialVersion is a desired state of some resource sets, which the server merges into the newest version.
type PartialVersion struct {
	// UploadedVersion has the resources, with the version 0. Its own Version is 0.
	UploadedVersion

	// RemovedResourceSets are the sets that the result has no more.
	RemovedResourceSets []string `json:"removed_resource_sets,omitempty"`
	// AllowHandlerCodeUpdate lets the code of modules differ from that of the newest version.
	AllowHandlerCodeUpdate bool `json:"allow_handler_code_update,omitempty"`
}

// UploadedVersion is the body of an upload of a desired state.
type UploadedVersion struct {
	Version           int                          `json:"version,omitempty"`
	Resources         []map[string]json.RawMessage `json:"resources"`
	ModuleVersionInfo map[string]json.RawMessage   `json:"module_version_info"`
	// ResourceState maps resource ids to available or undefined.
	ResourceState map[string]string            `json:"resource_state,omitempty"`
	Unknowns      []map[string]json.RawMessage `json:"unknowns,omitempty"`
	VersionInfo   map[string]json.RawMessage   `json:"version_info,omitempty"`
	ResourceSets  map[string]*string           `json:"resource_sets,omitempty"`
	// PipConfig and ProjectConstraints say where agents get the packages that the modules require, and in which versions.
	PipConfig          *PipConfig `json:"pip_config,omitempty"`
	ProjectConstraints *string    `json:"project_constraints,omitempty"`
}
