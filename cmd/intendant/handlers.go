package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
)

// pythonHandlers lets an agent run the handlers that versions ship.
func pythonHandlers(c *config.Config, cfg agents.Config, a *agents.Agent) (*executor.Manager, error) {
	addresses, err := agentMap(c.String("agent", "map"))
	if err != nil {
		return nil, agentUsage("the setting map in [agent]: %w", err)
	}
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
		URI:           func(name model.AgentName) string { return addresses[name] },
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
		addresses[model.AgentName(name)] = address
	}
	return addresses, nil
}
