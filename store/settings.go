package store

import (
	"encoding/json"
	"strconv"

	"github.com/intendant/intendant/model"
)

// SettingsOf fills in the defaults of the settings that an environment has not set. Values were checked when they were
// written; one that does not fit its setting all the same counts as not set. A number may be given as text and the reverse.
func SettingsOf(stored map[string]json.RawMessage) model.Settings {
	return model.Settings{
		AutoDeploy:                  boolSetting(stored, "auto_deploy", true),
		DeployInterval:              textSetting(stored, "autostart_agent_deploy_interval", "600"),
		RepairInterval:              textSetting(stored, "autostart_agent_repair_interval", "86400"),
		ResetDeployProgressOnStart:  boolSetting(stored, "reset_deploy_progress_on_start", false),
		AutostartAgents:             boolSetting(stored, "autostart_on_start", true),
		ServerCompile:               boolSetting(stored, "server_compile", true),
		AutoFullCompile:             textSetting(stored, "auto_full_compile", ""),
		RecompileBackoff:            numberSetting(stored, "recompile_backoff", 0.1),
		ResourceActionLogsRetention: int(numberSetting(stored, "resource_action_logs_retention", 7)),
		AvailableVersionsToKeep:     int(numberSetting(stored, "available_versions_to_keep", 100)),
		NotificationRetention:       int(numberSetting(stored, "notification_retention", 365)),
		EnvironmentMetricsRetention: int(numberSetting(stored, "environment_metrics_retention", 336)),
		ProtectedEnvironment:        boolSetting(stored, "protected_environment", false),
	}
}

func boolSetting(stored map[string]json.RawMessage, name string, otherwise bool) bool {
	v, err := strconv.ParseBool(textSetting(stored, name, ""))
	if err != nil {
		return otherwise
	}
	return v
}

func numberSetting(stored map[string]json.RawMessage, name string, otherwise float64) float64 {
	v, err := strconv.ParseFloat(textSetting(stored, name, ""), 64)
	if err != nil || v < 0 {
		return otherwise
	}
	return v
}

// textSetting is the text of a JSON string, number or boolean.
func textSetting(stored map[string]json.RawMessage, name, otherwise string) string {
	raw, ok := stored[name]
	if !ok {
		return otherwise
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return otherwise
	}
	switch v := v.(type) {
	case string:
		return v
	case bool, float64:
		return string(raw)
	}
	return otherwise
}
