package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type codeArgs struct {
	Version int    `arg:"version"`
	Type    string `arg:"resource_type" doc:"The type of the resources whose code is asked for."`
}

// codeGet lists the sources that a type of resource needs, as agents of older generations ask for them.
func (s *Server) codeGet(ctx context.Context, c *call, a codeArgs) ([]api.CodeSource, error) {
	if _, err := s.store.Version(ctx, c.env(), a.Version); err != nil {
		return nil, err
	}
	plan, err := s.store.VersionCode(ctx, c.env(), a.Version)
	if err != nil {
		return nil, err
	}
	sources := []api.CodeSource{}
	for _, m := range plan.Modules {
		if !slices.Contains(m.Types, a.Type) {
			continue
		}
		for _, f := range m.Files {
			sources = append(sources, api.CodeSource{Hash: f.Hash, ModuleName: f.Name, Requirements: m.Requirements})
		}
	}
	return sources, nil
}

// uploadedCode reads the code of an upload. Clients say which agents need a module; ours say which types it has.
func uploadedCode(info map[string]json.RawMessage, pip json.RawMessage, constraints *string) ([]model.ModuleCode, *model.PipConfig, error) {
	var modules []model.ModuleCode
	for name, raw := range info {
		var in api.ModuleVersion
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, nil, invalidArgument("module_version_info", "type_error", "module %s: %v", name, err)
		}
		if in.Name == "" {
			in.Name = name
		}
		if len(in.Types) == 0 && len(in.ForAgents) == 0 || len(in.Files) == 0 {
			continue // nobody needs it
		}
		m := model.ModuleCode{Module: in.Name, Requirements: in.Requirements, Types: in.Types}
		for _, f := range in.Files {
			if f.IsByteCode {
				return nil, nil, invalidArgument("module_version_info", "value_error",
					"module %s: %s is byte code, which only one version of Python can run; upload its source", name, f.Name)
			}
			m.Files = append(m.Files, model.CodeFile{Name: f.Name, Hash: f.Hash, Package: f.IsPackage})
		}
		for _, agent := range in.ForAgents {
			m.Agents = append(m.Agents, model.AgentName(agent))
		}
		slices.Sort(m.Agents)
		m = m.Canonical()
		if err := m.Validate(); err != nil {
			return nil, nil, invalidArgument("module_version_info", "value_error", "%v", err)
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b model.ModuleCode) int { return strings.Compare(a.Module, b.Module) })
	config, err := uploadedPip(pip, constraints)
	return modules, config, err
}

func uploadedPip(raw json.RawMessage, constraints *string) (*model.PipConfig, error) {
	var config *model.PipConfig
	if len(raw) > 0 && string(raw) != "null" {
		var in struct {
			IndexURL        *string  `json:"index_url"`
			ExtraIndexURL   []string `json:"extra_index_url"`
			FindLinks       []string `json:"find_links"`
			Pre             *bool    `json:"pre"`
			UseSystemConfig bool     `json:"use_system_config"`
		}
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, invalidArgument("pip_config", "type_error", "%v", err)
		}
		config = &model.PipConfig{ExtraIndexURL: in.ExtraIndexURL, FindLinks: in.FindLinks, UseSystemConfig: in.UseSystemConfig}
		if in.IndexURL != nil {
			config.IndexURL = *in.IndexURL
		}
		config.Pre = in.Pre != nil && *in.Pre
	}
	if constraints != nil {
		for line := range strings.Lines(*constraints) {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if config == nil {
				config = &model.PipConfig{}
			}
			config.Constraints = append(config.Constraints, line)
		}
	}
	return config, nil
}
