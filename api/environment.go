package api

import "encoding/json"

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
