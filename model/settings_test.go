package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

func fiveFields(s string) error {
	if len(strings.Fields(s)) != 5 {
		return errors.New("expected five fields")
	}
	return nil
}

func TestDefaultSettings(t *testing.T) {
	t.Parallel()
	want := model.Settings{
		AutoDeploy: true, DeployInterval: "600", RepairInterval: "86400", AutostartAgents: true, ServerCompile: true,
		RecompileBackoff: 0.1, ResourceActionLogsRetention: 7, AvailableVersionsToKeep: 100, NotificationRetention: 365,
		EnvironmentMetricsRetention: 336, AgentMap: `{"internal":"local:"}`,
	}
	if diff := cmp.Diff(want, model.DefaultSettings()); diff != "" {
		t.Errorf("DefaultSettings() differs (-want +got):\n%s", diff)
	}
}

func TestSettingDefinitionsAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range model.SettingDefinitions() {
		if seen[d.Name] {
			t.Errorf("%s is defined twice", d.Name)
		}
		seen[d.Name] = true
		if d.Doc == "" || d.Section == "" || d.Type == "" {
			t.Errorf("%s lacks its documentation, section or type", d.Name)
		}
		got, err := model.ConvertSetting(d.Name, d.Default, fiveFields)
		if err != nil {
			t.Errorf("the default of %s does not convert: %v", d.Name, err)
		} else if string(got) != string(d.Default) {
			t.Errorf("ConvertSetting(%s, %s) = %s, want the default unchanged", d.Name, d.Default, got)
		}
	}
}

func TestConvertSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value, want string
		err               error
	}{
		{"auto_deploy", `"Yes"`, `true`, nil},
		{"auto_deploy", `"off"`, `false`, nil},
		{"auto_deploy", `0`, `false`, nil},
		{"auto_deploy", `2`, ``, model.ErrInvalid},
		{"auto_deploy", `"maybe"`, ``, model.ErrInvalid},
		{"auto_deploy", `null`, ``, model.ErrInvalid},
		{"auto_deploy", `tru`, ``, model.ErrInvalid},
		{"auto_deploy", `true false`, ``, model.ErrInvalid},
		{"available_versions_to_keep", `"12"`, `12`, nil},
		{"available_versions_to_keep", `12.0`, `12`, nil},
		{"available_versions_to_keep", `12.5`, ``, model.ErrInvalid},
		{"available_versions_to_keep", `-1`, ``, model.ErrInvalid},
		{"available_versions_to_keep", `99999999999999999999`, ``, model.ErrInvalid},
		{"available_versions_to_keep", `[]`, ``, model.ErrInvalid},
		{"recompile_backoff", `"0.5"`, `0.5`, nil},
		{"recompile_backoff", `3`, `3`, nil},
		{"recompile_backoff", `-0.1`, ``, model.ErrInvalid},
		{"recompile_backoff", `"Inf"`, ``, model.ErrInvalid},
		{"autostart_agent_deploy_interval", `60`, `"60"`, nil},
		{"autostart_agent_deploy_interval", `"* * * * *"`, `"* * * * *"`, nil},
		{"autostart_agent_deploy_interval", `"soon"`, ``, model.ErrInvalid},
		{"autostart_agent_deploy_interval", `""`, ``, model.ErrInvalid},
		{"autostart_agent_repair_interval", `-5`, ``, model.ErrInvalid},
		{"auto_full_compile", `""`, `""`, nil},
		{"auto_full_compile", `" 1 2 3 4 5 "`, `"1 2 3 4 5"`, nil},
		{"auto_full_compile", `"12"`, ``, model.ErrInvalid},
		{"auto_full_compile", `true`, ``, model.ErrInvalid},
		{"auto_full_compile", `"` + strings.Repeat("x", 2000) + `"`, ``, model.ErrInvalid},
		{"no_such_setting", `1`, ``, model.ErrNotFound},
	} {
		t.Run(c.name+"="+c.value[:min(len(c.value), 40)], func(t *testing.T) {
			t.Parallel()
			got, err := model.ConvertSetting(c.name, json.RawMessage(c.value), fiveFields)
			if !errors.Is(err, c.err) {
				t.Fatalf("ConvertSetting(%s, %s) error = %v, want %v", c.name, c.value, err, c.err)
			}
			if string(got) != c.want {
				t.Errorf("ConvertSetting(%s, %s) = %s, want %s", c.name, c.value, got, c.want)
			}
		})
	}
}

func TestParseSettings(t *testing.T) {
	t.Parallel()
	got := model.ParseSettings(map[string]json.RawMessage{
		"auto_deploy":                     json.RawMessage(`"no"`),
		"autostart_on_start":              json.RawMessage(`false`),
		"autostart_agent_repair_interval": json.RawMessage(`30`),
		"recompile_backoff":               json.RawMessage(`"broken"`),
		"forgotten":                       json.RawMessage(`1`),
	})
	want := model.DefaultSettings()
	want.AutoDeploy = false
	want.AutostartAgents = false
	want.RepairInterval = "30"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ParseSettings differs (-want +got):\n%s", diff)
	}
}
