package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
)

// pythonHandlers lets an agent run the handlers that versions ship.
func pythonHandlers(c *config.Config, cfg agents.Config, a *agents.Agent, address func(model.AgentName) string) (*executor.Manager, error) {
	memory := int64(c.Int("agent", "executor-memory-limit"))
	if memory == 0 {
		memory = -1 // the setting says none, not the default
	}
	m, err := executor.New(executor.Config{
		Environment: cfg.Environment,
		Dir:         filepath.Join(cfg.StateDir, "executors"),
		Python:      c.String("agent", "python"),
		Files:       a.Files(),
		Upload:      a.Upload,
		Call: func(ctx context.Context, r executor.Request) (executor.Response, error) {
			status, body, err := a.Call(ctx, r.Method, r.Path, r.Header, r.Body)
			return executor.Response{Status: status, Body: body}, err
		},
		Current:       a.Code,
		URI:           address,
		Pip:           model.PipConfig{IndexURL: c.String("agent", "pip-index-url"), UseSystemConfig: c.Bool("agent", "pip-use-system-config")},
		FindLinks:     filepath.SplitList(c.String("agent", "pip-find-links")),
		Cap:           c.Int("agent", "executor-cap"),
		Processes:     c.Int("agent", "executor-processes"),
		Retention:     c.Duration("agent", "executor-retention-time"),
		VenvRetention: c.Duration("agent", "executor-venv-retention-time"),
		MemoryLimit:   memory,
		Grace:         c.Duration("agent", "executor-grace"),
		SSH: executor.SSHConfig{
			KeyFiles: filepath.SplitList(c.String("agent", "ssh-key")), KnownHosts: filepath.SplitList(c.String("agent", "ssh-known-hosts")),
			HostKeys: c.String("agent", "ssh-host-keys"),
		},
		Logger: cfg.Logger.With("part", "executor"),
	})
	if err != nil {
		return nil, err
	}
	m.Register(cfg.Registry)
	return m, nil
}

// agentMap reads the machines that agents work on: name=address,….
func agentMap(text string) (map[model.AgentName]string, error) {
	addresses := map[model.AgentName]string{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, address, ok := strings.Cut(entry, "=")
		if name, address = strings.TrimSpace(name), strings.TrimSpace(address); !ok || name == "" {
			return nil, fmt.Errorf("%q is not of the form name=address", entry)
		}
		if err := model.CheckAgentAddress(address); err != nil {
			return nil, err
		}
		addresses[model.AgentName(name)] = address
	}
	return addresses, nil
}

// agentMapPath is the environment's setting with the addresses of agents.
const agentMapPath = "/api/v2/environment_settings/" + model.SettingAgentMap

// editAgentMap changes the environment's setting with the addresses of agents. call calls the server as the agent.
func editAgentMap(
	ctx context.Context, call func(ctx context.Context, method, path string, header http.Header, body []byte) (int, []byte, error),
	edit func(map[model.AgentName]string) bool,
) error {
	status, body, err := call(ctx, http.MethodGet, agentMapPath, nil, nil)
	if err == nil {
		err = settingError(status, body)
	}
	if err != nil {
		return fmt.Errorf("reading the setting %s: %w", model.SettingAgentMap, err)
	}
	var answer struct {
		Data struct {
			Settings map[string]map[model.AgentName]string `json:"settings"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the setting %s: %w", model.SettingAgentMap, err)
	}
	all := answer.Data.Settings[model.SettingAgentMap]
	if all == nil {
		all = map[model.AgentName]string{}
	}
	if !edit(all) {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"value": all})
	if err != nil {
		return fmt.Errorf("writing the setting %s: %w", model.SettingAgentMap, err)
	}
	status, body, err = call(ctx, http.MethodPost, agentMapPath, http.Header{"Content-Type": {"application/json"}}, raw)
	if err == nil {
		err = settingError(status, body)
	}
	if err != nil {
		return fmt.Errorf("writing the setting %s: %w", model.SettingAgentMap, err)
	}
	return nil
}

func settingError(status int, body []byte) error {
	if status == http.StatusOK {
		return nil
	}
	var answer struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &answer) // an answer without a message is told by its status
	err := fmt.Errorf("the server answers %d %s", status, answer.Message)
	if status == http.StatusNotFound {
		return fmt.Errorf("%w: %w", model.ErrNotFound, err)
	}
	return err
}
