package server

import (
	"context"
	"encoding/json"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type settingArgs struct {
	ID string `arg:"id"`
}

type settingSetArgs struct {
	ID    string          `arg:"id"`
	Value json.RawMessage `arg:"value"`
}

func definitions() map[string]api.EnvironmentSettingDefinition {
	all := model.SettingDefinitions()
	out := make(map[string]api.EnvironmentSettingDefinition, len(all))
	for _, d := range all {
		out[d.Name] = api.EnvironmentSettingDefinition{
			Name: d.Name, Type: d.Type, Default: d.Default, Doc: d.Doc, Recompile: d.Recompile, UpdateModel: d.UpdateModel,
			AgentRestart: d.AgentRestart, AllowedValues: d.AllowedValues, Section: d.Section,
		}
	}
	return out
}

func (s *Server) settingsList(_ context.Context, c *call, _ struct{}) (api.EnvironmentSettings, error) {
	return api.EnvironmentSettings{Settings: settingsOf(c.environment), Definition: definitions()}, nil
}

func (s *Server) settingGet(_ context.Context, c *call, a settingArgs) (api.EnvironmentSettings, error) {
	value, err := settingOf(c.environment, a.ID)
	return api.EnvironmentSettings{Settings: map[string]json.RawMessage{a.ID: value}, Definition: definitions()}, err
}

// settingOf is the value in force.
func settingOf(e model.Environment, name string) (json.RawMessage, error) {
	d, err := model.FindSetting(name)
	if err != nil {
		return nil, err
	}
	if value, ok := e.Settings[name]; ok {
		return value, nil
	}
	return d.Default, nil
}

func (s *Server) settingSet(ctx context.Context, c *call, a settingSetArgs) (none, error) {
	value, err := model.ConvertSetting(a.ID, a.Value, s.config.ValidateCron)
	if err != nil {
		return none{}, err
	}
	return none{}, s.storeSetting(ctx, c.env(), a.ID, value)
}

// storeSetting stores a value that was checked, and has whoever needs it at once read it.
func (s *Server) storeSetting(ctx context.Context, env model.EnvironmentID, name string, value json.RawMessage) error {
	if err := s.store.SetSetting(ctx, env, name, value); err != nil {
		return err
	}
	if s.config.SettingChanged != nil {
		s.config.SettingChanged(ctx, env, name)
	}
	return nil
}

func (s *Server) settingDelete(ctx context.Context, c *call, a settingArgs) (none, error) {
	if _, err := model.FindSetting(a.ID); err != nil {
		return none{}, err
	}
	return none{}, s.storeSetting(ctx, c.env(), a.ID, nil)
}

func (s *Server) settingsListV1(_ context.Context, c *call, _ struct{}) (api.EnvironmentSettingsV1, error) {
	return api.EnvironmentSettingsV1{Settings: settingsOf(c.environment), Metadata: definitions()}, nil
}

func (s *Server) settingGetV1(_ context.Context, c *call, a settingArgs) (api.EnvironmentSettingV1, error) {
	value, err := settingOf(c.environment, a.ID)
	return api.EnvironmentSettingV1{Value: value, Metadata: definitions()}, err
}
