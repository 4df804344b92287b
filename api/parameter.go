package api

import "encoding/json"

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
