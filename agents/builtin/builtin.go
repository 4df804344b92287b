package builtin

import (
	"context"
	"fmt"
	"os"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Config configures the handlers.
type Config struct {
	// Path is where programs are looked for, as in the variable PATH. Defaults to the agent's own, with the system's
	// directories after it.
	Path string
	// Env is the environment of commands. Defaults to the agent's own without the variables that configure it.
	Env []string
	// LookupEnv finds the variables that std::Environment references name. Defaults to those of the agent's process, but for
	// the ones that configure it.
	LookupEnv func(name string) (string, bool)
	// SystemdDir is there when systemd runs the machine. Defaults to /run/systemd/system.
	SystemdDir string
	// Address returns the machine that an agent works on, as [model.CheckAgentAddress] has it. Nil is the agent's own for all.
	Address func(model.AgentName) string
	// EditAgentMap changes the addresses of agents that the server keeps for the environment: edit gets all of them, changes them
	// and says whether it did. It fails with [model.ErrNotFound] when the server has none. Nil is for agents without a server.
	EditAgentMap func(ctx context.Context, edit func(map[model.AgentName]string) (changed bool)) error
}

// Register registers all handlers of the package. It fails with [model.ErrConflict] when a type has one already.
func Register(r *sdk.Registry, cfg Config) error {
	if cfg.Path == "" {
		cfg.Path = os.Getenv("PATH") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	if cfg.Env == nil {
		cfg.Env = commandEnvironment(os.Environ())
	}
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = func(name string) (string, bool) {
			if isOwnVariable(name) {
				return "", false
			}
			return os.LookupEnv(name)
		}
	}
	if cfg.SystemdDir == "" {
		cfg.SystemdDir = "/run/systemd/system"
	}
	commands := &commands{path: cfg.Path, env: cfg.Env}
	packages := &packageHandler{commands: commands}
	if cfg.Address == nil {
		cfg.Address = func(model.AgentName) string { return "" }
	}
	own := []struct {
		types   []string
		handler sdk.Handler
	}{
		{[]string{"std::File", "std::ConfigFile", "fs::File"}, fileHandler{}},
		{[]string{"std::Directory", "std::DefaultDirectory", "fs::Directory"}, directoryHandler{}},
		{[]string{"std::Symlink", "fs::Symlink"}, symlinkHandler{}},
		{[]string{"exec::Run"}, &runHandler{commands: commands}},
		{[]string{"std::Service"}, &serviceHandler{commands: commands, systemd: cfg.SystemdDir}},
		{[]string{"std::Package"}, packages},
	}
	for _, h := range own {
		for _, t := range h.types {
			if err := r.Execute(t, onOwnMachine{HandlerExecutor: sdk.HandlerExecutor{Handler: h.handler}, address: cfg.Address}); err != nil {
				return fmt.Errorf("registering the built-in handlers: %w", err)
			}
		}
	}
	anywhere := []struct {
		types   []string
		handler sdk.Handler
	}{
		{[]string{"std::testing::NullResource"}, nullHandler{}},
		{[]string{"std::AgentConfig"}, &agentConfigHandler{edit: cfg.EditAgentMap}},
	}
	for _, h := range anywhere {
		for _, t := range h.types {
			if err := r.Handle(t, h.handler); err != nil {
				return fmt.Errorf("registering the built-in handlers: %w", err)
			}
		}
	}
	for referenceType, resolver := range map[string]sdk.Resolver{
		"std::Environment":         environmentReference(cfg.LookupEnv),
		"std::IntReference":        intReference,
		"std::FactReference":       factReference,
		"core::AttributeReference": attributeReference,
	} {
		if err := r.Resolve(referenceType, resolver); err != nil {
			return fmt.Errorf("registering the built-in references: %w", err)
		}
	}
	return nil
}
