package api

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
