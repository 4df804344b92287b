package model

import "encoding/json"

// Settings are the settings of an environment in force, defaults filled in (server reference, section 5.1).
type Settings struct {
	// AutoDeploy releases every stored version by itself. Default true.
	AutoDeploy bool
	// DeployInterval is the delay in seconds before a resource that did not deploy is tried again, or a cron expression for
	// deploys of everything that is not compliant; "0" is off. Default "600".
	DeployInterval string
	// RepairInterval is the delay in seconds before a compliant resource is checked again, or a cron expression for repairs
	// of everything; "0" is off. Default "86400".
	RepairInterval string
	// ResetDeployProgressOnStart forgets what was deployed when a scheduler starts. Default false.
	ResetDeployProgressOnStart bool
	// AutostartAgents lets the server run an agent process for the environment. Default true.
	AutostartAgents bool
	// ServerCompile allows compiles by the server. Default true.
	ServerCompile bool
	// AutoFullCompile is a cron expression, in UTC, for full compiles; empty is off.
	AutoFullCompile string
	// RecompileBackoff is the least pause between compiles in seconds. Default 0.1.
	RecompileBackoff float64
	// ResourceActionLogsRetention is in days, default 7; NotificationRetention in days, default 365;
	// EnvironmentMetricsRetention in hours, default 336.
	ResourceActionLogsRetention int
	AvailableVersionsToKeep     int
	NotificationRetention       int
	EnvironmentMetricsRetention int
	// ProtectedEnvironment refuses clear and delete. Default false.
	ProtectedEnvironment bool
}

// SettingDefinition describes one setting for clients (API reference, EnvironmentSettingDefinition).
type SettingDefinition struct {
	Name          string
	Type          string
	Default       json.RawMessage
	Doc           string
	Section       string
	Recompile     bool
	UpdateModel   bool
	AgentRestart  bool
	AllowedValues []string
}
