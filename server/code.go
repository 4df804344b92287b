package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type codeArgs struct {
	Version int    `arg:"version"`
	Type    string `arg:"resource_type" doc:"The type of the resources whose code is asked for."`
}

// codeOf returns the modules of a version that have a type.
func (s *Server) codeOf(ctx context.Context, c *call, version int, resourceType string) ([]model.ModuleCode, error) {
	if _, err := s.store.Version(ctx, c.env(), version); err != nil {
		return nil, err
	}
	plan, err := s.store.VersionCode(ctx, c.env(), version)
	return slices.DeleteFunc(plan.Modules, func(m model.ModuleCode) bool { return !slices.Contains(m.Types, resourceType) }), err
}

// requirementsOf are a module's, as a list that is there also when it is empty.
func requirementsOf(m model.ModuleCode) []string { return append([]string{}, m.Requirements...) }

// codeGet lists the sources that a type of resource needs, as agents of older generations ask for them.
func (s *Server) codeGet(ctx context.Context, c *call, a codeArgs) ([]api.CodeSource, error) {
	modules, err := s.codeOf(ctx, c, a.Version, a.Type)
	if err != nil {
		return nil, err
	}
	sources := []api.CodeSource{}
	for _, m := range modules {
		for _, f := range m.Files {
			sources = append(sources, api.CodeSource{Hash: f.Hash, ModuleName: f.Name, Requirements: requirementsOf(m)})
		}
	}
	return sources, nil
}

type codeArgsV1 struct {
	ID       int    `arg:"id" doc:"The version."`
	Resource string `arg:"resource" doc:"The type of the resources whose code is asked for."`
}

// codeGetV1 lists the sources that a type of resource needs, in the form of the first generation: by hash, with the file, the module
// of Python and the requirements of each.
func (s *Server) codeGetV1(ctx context.Context, c *call, a codeArgsV1) (api.CodeV1, error) {
	modules, err := s.codeOf(ctx, c, a.ID, a.Resource)
	if err != nil {
		return api.CodeV1{}, err
	}
	if len(modules) == 0 {
		return api.CodeV1{}, fmt.Errorf("version %d ships no code for %s: %w", a.ID, a.Resource, model.ErrNotFound)
	}
	out := api.CodeV1{Version: a.ID, Environment: c.env().String(), Resource: a.Resource, Sources: map[string]api.CodeSourceV1{}}
	for _, m := range modules {
		for _, f := range m.Files {
			file := strings.ReplaceAll(f.Name, ".", "/")
			if f.Package || slices.ContainsFunc(m.Files, func(o model.CodeFile) bool { return strings.HasPrefix(o.Name, f.Name+".") }) {
				file += "/__init__"
			}
			out.Sources[f.Hash] = api.CodeSourceV1{file + ".py", f.Name, requirementsOf(m)}
		}
	}
	return out, nil
}

type codeUploadArgs struct {
	ID        int                                     `arg:"id" doc:"The version, whose number was reserved before and that is not stored yet."`
	Resources map[string]map[string][]json.RawMessage `arg:"resources" doc:"By type of resource and SHA-1 of a source that is stored: its file, its module of Python, and a list of requirements."`
}

// codeUploadV1 takes code ahead of the version that it is for, as exporters of the first generation send it.
func (s *Server) codeUploadV1(ctx context.Context, c *call, a codeUploadArgs) (none, error) {
	var modules []model.ModuleCode
	for _, resourceType := range slices.Sorted(maps.Keys(a.Resources)) {
		sources := a.Resources[resourceType]
		for _, hash := range slices.Sorted(maps.Keys(sources)) {
			m, err := batchedSource(resourceType, hash, sources[hash])
			if err != nil {
				return none{}, err
			}
			modules = append(modules, m)
		}
	}
	modules = model.MergeCode(nil, modules)
	for _, m := range modules {
		if err := m.Validate(); err != nil {
			return none{}, invalidArgument("resources", "value_error", "%v", err)
		}
	}
	return none{}, s.store.UploadCode(ctx, c.env(), a.ID, modules, c.now)
}

// batchedSource reads one source of a batch: [file, module of Python, requirements].
func batchedSource(resourceType, hash string, source []json.RawMessage) (model.ModuleCode, error) {
	var m model.ModuleCode
	bad := func(format string, args ...any) error {
		return invalidArgument("resources", "value_error", "the source %s of %s: %s", hash, resourceType, fmt.Sprintf(format, args...))
	}
	const parts = 3
	if len(source) != parts {
		return m, bad("it has %d parts; a file, a module of Python and a list of requirements are expected", len(source))
	}
	var file, name string
	for i, into := range []any{&file, &name, &m.Requirements} {
		if err := json.Unmarshal(source[i], into); err != nil {
			return m, bad("part %d: %v", i+1, err)
		}
	}
	space := strings.Split(name, ".")
	if len(space) < 2 || space[0] != "inmanta_plugins" {
		return m, bad("%q is not a module of Python below inmanta_plugins", name)
	}
	m.Module, m.Types = space[1], []string{resourceType}
	m.Files = []model.CodeFile{{Name: name, Hash: hash, Package: path.Base(file) == "__init__.py"}}
	return m, nil
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
