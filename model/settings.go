package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

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
	// AgentMap are the machines that agents of that process work on: JSON, for [ParseAgentMap]. Default {"internal":"local:"}.
	AgentMap string
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

// MaxSettingText is the greatest length of a text setting in bytes.
const MaxSettingText = 1024

// CronValidator reports what is wrong with a cron expression in UTC: five fields with minutes first, six with a year at the end or
// seconds first, or seven with both. Package model parses none itself.
type CronValidator func(expression string) error

// The names of the settings.
const (
	SettingAutoDeploy                  = "auto_deploy"
	SettingDeployInterval              = "autostart_agent_deploy_interval"
	SettingRepairInterval              = "autostart_agent_repair_interval"
	SettingResetDeployProgressOnStart  = "reset_deploy_progress_on_start"
	SettingAutostartOnStart            = "autostart_on_start"
	SettingAgentMap                    = "autostart_agent_map"
	SettingServerCompile               = "server_compile"
	SettingAutoFullCompile             = "auto_full_compile"
	SettingRecompileBackoff            = "recompile_backoff"
	SettingResourceActionLogsRetention = "resource_action_logs_retention"
	SettingAvailableVersionsToKeep     = "available_versions_to_keep"
	SettingNotificationRetention       = "notification_retention"
	SettingEnvironmentMetricsRetention = "environment_metrics_retention"
	SettingProtectedEnvironment        = "protected_environment"
)

// The types of settings (API reference, EnvironmentSettingDefinition).
const (
	SettingBool          = "bool"
	SettingInt           = "int"
	SettingString        = "str"
	SettingPositiveFloat = "positive_float"
	SettingDict          = "dict"
)

// SettingDefinitions lists all settings with their defaults, ordered by section and name.
func SettingDefinitions() []SettingDefinition {
	return []SettingDefinition{
		{
			Name: SettingAutoFullCompile, Type: SettingString, Default: json.RawMessage(`""`), Section: "compiler",
			Doc: "A cron expression, evaluated in UTC, at which the model is compiled in full and exported. Empty: never.",
		},
		{
			Name: SettingRecompileBackoff, Type: SettingPositiveFloat, Default: json.RawMessage(`0.1`), Section: "compiler",
			Doc: "The least number of seconds between two compiles of the environment; requests that come meanwhile are merged.",
		},
		{
			Name: SettingServerCompile, Type: SettingBool, Default: json.RawMessage(`true`), Section: "compiler",
			Doc: "Allow the server to compile the model. When false every request for a compile is refused with a warning.",
		},
		{
			Name: SettingAutoDeploy, Type: SettingBool, Default: json.RawMessage(`true`), Section: "deploy",
			Doc: "Release every new version by itself, so that it is deployed without somebody approving it.",
		},
		{
			Name: SettingDeployInterval, Type: SettingString, Default: json.RawMessage(`"600"`), Section: "deploy",
			Doc: "A number of seconds after which a resource whose deployment did not succeed is tried again, or a cron expression in UTC " +
				"at which everything that does not match is deployed. 0: never.",
		},
		{
			Name: SettingRepairInterval, Type: SettingString, Default: json.RawMessage(`"86400"`), Section: "deploy",
			Doc: "A number of seconds after which a resource that was deployed is checked again, or a cron expression in UTC at which " +
				"everything is checked. 0: never.",
		},
		{
			Name: SettingProtectedEnvironment, Type: SettingBool, Default: json.RawMessage(`false`), Section: "environment",
			Doc: "Refuse to clear or delete this environment.",
		},
		{
			Name: SettingAgentMap, Type: SettingDict, Default: json.RawMessage(`{"internal":"local:"}`), Section: "scheduler",
			Doc: "The machines that agents of the server's own process work on: names with local: or ssh://[user@]host[:port]. An agent " +
				"that is not named works on the server's machine. std::AgentConfig resources write it.",
		},
		{
			Name: SettingAutostartOnStart, Type: SettingBool, Default: json.RawMessage(`true`), Section: "scheduler", AgentRestart: true,
			Doc: "Let the server run the environment's scheduler and an agent process of its own for it.",
		},
		{
			Name: SettingResetDeployProgressOnStart, Type: SettingBool, Default: json.RawMessage(`false`), Section: "scheduler",
			Doc: "Forget at every start of the scheduler what was deployed before, and check every resource anew.",
		},
		{
			Name: SettingAvailableVersionsToKeep, Type: SettingInt, Default: json.RawMessage(`100`), Section: "storage",
			Doc: "How many versions are kept; the newest released one always is.",
		},
		{
			Name: SettingEnvironmentMetricsRetention, Type: SettingInt, Default: json.RawMessage(`336`), Section: "storage",
			Doc: "How many hours the metrics of the environment are kept. 0: for ever.",
		},
		{
			Name: SettingNotificationRetention, Type: SettingInt, Default: json.RawMessage(`365`), Section: "storage",
			Doc: "How many days notifications are kept.",
		},
		{
			Name: SettingResourceActionLogsRetention, Type: SettingInt, Default: json.RawMessage(`7`), Section: "storage",
			Doc: "How many days the actions on resources and their log lines are kept.",
		},
	}
}

// FindSetting returns the definition of a setting, or [ErrNotFound] with the names there are.
func FindSetting(name string) (SettingDefinition, error) {
	definitions := SettingDefinitions()
	for _, d := range definitions {
		if d.Name == name {
			return d, nil
		}
	}
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = d.Name
	}
	return SettingDefinition{}, fmt.Errorf("setting %q: there is no such setting (known are %s): %w", name, strings.Join(names, ", "), ErrNotFound)
}

// ConvertSetting checks a value for a setting and brings it into the form that is stored: texts such as "yes" or "12" become the
// setting's type, numbers given for a text become text. It fails with [ErrNotFound] for an unknown name and [ErrInvalid] for a
// value that does not fit. Cron expressions are checked by validate, unless that is nil.
func ConvertSetting(name string, value json.RawMessage, validate CronValidator) (json.RawMessage, error) {
	d, err := FindSetting(name)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("setting %s: the value is not JSON: %w", name, ErrInvalid)
	}
	if dec.More() {
		return nil, fmt.Errorf("setting %s: more than one JSON value: %w", name, ErrInvalid)
	}
	switch d.Type {
	case SettingBool:
		b, ok := settingBool(v)
		if !ok {
			return nil, settingMismatch(d, value, "true, false, on, off, yes, no, 1 or 0")
		}
		return json.Marshal(b)
	case SettingInt:
		n, ok := settingInt(v)
		if !ok || n < 0 {
			return nil, settingMismatch(d, value, "a whole number that is not negative")
		}
		return json.Marshal(n)
	case SettingPositiveFloat:
		f, ok := settingFloat(v)
		if !ok || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, settingMismatch(d, value, "a number that is not negative")
		}
		return json.Marshal(f)
	case SettingDict:
		return convertAgentMap(d, v, value)
	}
	s, ok := settingText(v)
	if !ok || len(s) > MaxSettingText {
		return nil, settingMismatch(d, value, fmt.Sprintf("a text of at most %d bytes", MaxSettingText))
	}
	s = strings.TrimSpace(s)
	switch name {
	case SettingAutoFullCompile:
		if s != "" && validate != nil {
			if err := validate(s); err != nil {
				return nil, fmt.Errorf("setting %s: %q is not a cron expression: %w: %w", name, s, err, ErrInvalid)
			}
		}
	case SettingDeployInterval, SettingRepairInterval:
		n, err := strconv.Atoi(s)
		switch {
		case err == nil && n < 0:
			return nil, settingMismatch(d, value, "a number of seconds that is not negative, or a cron expression")
		case err != nil && s == "":
			return nil, settingMismatch(d, value, "a number of seconds or a cron expression")
		case err != nil && validate != nil:
			if err := validate(s); err != nil {
				return nil, fmt.Errorf("setting %s: %q is neither a number of seconds nor a cron expression: %w: %w", name, s, err, ErrInvalid)
			}
		}
	}
	return json.Marshal(s)
}

// DefaultSettings are the settings of an environment in which nothing was set.
func DefaultSettings() Settings { return ParseSettings(nil) }

// ParseSettings puts stored values over the defaults. A stored value that does not fit its setting, and an unknown name, count as
// not set: what is stored was checked when it was written, so that this only happens after a change of the definitions.
func ParseSettings(stored map[string]json.RawMessage) Settings {
	value := func(name string, into any) {
		for _, d := range SettingDefinitions() {
			if d.Name != name {
				continue
			}
			if raw, ok := stored[name]; ok {
				if converted, err := ConvertSetting(name, raw, nil); err == nil && json.Unmarshal(converted, into) == nil {
					return
				}
			}
			_ = json.Unmarshal(d.Default, into) // a definition's default fits its type: a test holds it
		}
	}
	var s Settings
	value(SettingAutoDeploy, &s.AutoDeploy)
	value(SettingDeployInterval, &s.DeployInterval)
	value(SettingRepairInterval, &s.RepairInterval)
	value(SettingResetDeployProgressOnStart, &s.ResetDeployProgressOnStart)
	value(SettingAutostartOnStart, &s.AutostartAgents)
	var agentMap json.RawMessage
	value(SettingAgentMap, &agentMap)
	s.AgentMap = string(agentMap)
	value(SettingServerCompile, &s.ServerCompile)
	value(SettingAutoFullCompile, &s.AutoFullCompile)
	value(SettingRecompileBackoff, &s.RecompileBackoff)
	value(SettingResourceActionLogsRetention, &s.ResourceActionLogsRetention)
	value(SettingAvailableVersionsToKeep, &s.AvailableVersionsToKeep)
	value(SettingNotificationRetention, &s.NotificationRetention)
	value(SettingEnvironmentMetricsRetention, &s.EnvironmentMetricsRetention)
	value(SettingProtectedEnvironment, &s.ProtectedEnvironment)
	return s
}

func settingMismatch(d SettingDefinition, value json.RawMessage, want string) error {
	return fmt.Errorf("setting %s: the value %s is not %s: %w", d.Name, value, want, ErrInvalid)
}

func settingBool(v any) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case json.Number:
		return v == "1", v == "0" || v == "1"
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "on", "yes", "1":
			return true, true
		case "false", "off", "no", "0":
			return false, true
		}
	}
	return false, false
}

func settingInt(v any) (int, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = string(v)
	case string:
		text = strings.TrimSpace(v)
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil {
		return int(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

func settingFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil
	}
	return 0, false
}

func settingText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	}
	return "", false
}
