package model

import (
	"encoding/json"
	"time"
)

// Intent is the desired state of one resource in one version.
type Intent struct {
	Resource ResourceID
	// Attributes is the canonical JSON object of the resource's fields, without id, requires and version.
	Attributes json.RawMessage
	// AttributeHash decides whether two versions ask for the same thing: see [AttributeHash].
	AttributeHash string
	// Requires lists the resources that must be deployed first, sorted, all in the same version.
	Requires []ResourceID
	// Set is the resource set; empty for shared resources.
	Set string
	// Undefined means that some attribute is unknown: the resource can not be deployed.
	Undefined bool
	// Blocked means that the resource requires, transitively, an undefined one.
	Blocked bool
	// SinceVersion is the version that first had exactly this intent; filled when read from the store.
	SinceVersion int
}

// UnknownParameter is an input that a compile awaits.
type UnknownParameter struct {
	Name     string
	Resource string
	Source   string
}

// File is a content addressed by its SHA-1 in hex, as the reference's file storage does.
type File struct {
	Hash    string
	Content []byte
}

// DesiredState is the result of an export: all that a version is made of.
type DesiredState struct {
	Environment EnvironmentID
	Intents     []Intent
	Unknowns    []UnknownParameter
	Files       []File
	// Code is the Python code that the resources need at their agents, by module; its contents are among Files or stored before.
	Code []ModuleCode
	// Pip says where agents get the packages that the code requires; nil leaves it to the agents' own settings.
	Pip *PipConfig
	// ResourceSets lists the sets named by the model, also empty ones.
	ResourceSets []string
	// Digest covers the intents in canonical order; equal models give equal digests.
	Digest string
	// Metadata is what the exporter says about itself, shown with the version.
	Metadata map[string]json.RawMessage
	// Number is the reserved version when a client uploads; 0 lets the store choose the next one.
	Number   int
	Job      JobID
	Revision Revision
	Trace    TraceID
}

// Version is a stored desired state.
type Version struct {
	Environment EnvironmentID
	Number      int
	Date        time.Time
	Released    bool
	ReleasedAt  time.Time
	// Resources is the number of resources, Changed how many differ from the version before, Added and Removed likewise.
	Resources int
	Added     int
	Changed   int
	Removed   int
	Digest    string
	Metadata  map[string]json.RawMessage
	Job       JobID
	Revision  Revision
	Trace     TraceID
	// Undeployable and Blocked list undefined resources and what depends on them.
	Undeployable []ResourceID
	Blocked      []ResourceID
}

// VersionStatus is relative to the version that the scheduler last processed.
type VersionStatus string

// The states of a version (server reference, section 3.3).
const (
	VersionActive           VersionStatus = "active"
	VersionCandidate        VersionStatus = "candidate"
	VersionRetired          VersionStatus = "retired"
	VersionSkippedCandidate VersionStatus = "skipped_candidate"
)

// DiffStatus says how a resource differs between two versions, or from reality in a dry run.
type DiffStatus string

// The kinds of differences (API reference, section 5.3).
const (
	DiffAdded                DiffStatus = "added"
	DiffModified             DiffStatus = "modified"
	DiffDeleted              DiffStatus = "deleted"
	DiffUnmodified           DiffStatus = "unmodified"
	DiffAgentDown            DiffStatus = "agent_down"
	DiffUndefined            DiffStatus = "undefined"
	DiffSkippedForUndefined  DiffStatus = "skipped_for_undefined"
	DiffResourceNotSupported DiffStatus = "unavailable"
)

// ResourceDiff is one resource's difference between two versions. From or To is nil when it is in only one of them.
type ResourceDiff struct {
	Resource ResourceID
	Status   DiffStatus
	From     *Intent
	To       *Intent
}
