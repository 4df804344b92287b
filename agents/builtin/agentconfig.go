package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// agentConfigHandler handles std::AgentConfig: the machine that an agent of the server's own process works on, which is an entry
// of the environment's setting (server reference, section 10.9).
type agentConfigHandler struct {
	edit func(ctx context.Context, edit func(map[model.AgentName]string) bool) error
	// mu keeps two resources from changing the map at once: it is read and written as a whole.
	mu sync.Mutex
}

// addressOf checks what the resource says.
func addressOf(r *sdk.Resource) (name model.AgentName, address string, err error) {
	name, address = model.AgentName(r.String("agentname")), r.String("uri")
	if name == model.InternalAgent {
		return "", "", sdk.Permanent(fmt.Errorf("the agent %s is always there and works on the server's machine: %w", name, model.ErrInvalid))
	}
	if address == "" {
		address = "local:"
	}
	if err := model.CheckAgentAddress(address); err != nil {
		return "", "", sdk.Permanent(err)
	}
	return name, address, nil
}

// Read implements [sdk.Handler].
func (h *agentConfigHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	name, address, err := addressOf(r)
	if err != nil {
		return sdk.Observed{}, err
	}
	var known map[model.AgentName]string
	err = h.change(c, func(m map[model.AgentName]string) bool {
		known = maps.Clone(m)
		return false
	})
	if errors.Is(err, model.ErrNotFound) {
		// Nobody keeps addresses: what is local needs none, and what is to be removed is not there.
		if r.Purged() {
			return sdk.Observed{}, nil
		}
		if model.IsLocalAddress(address) {
			return sdk.Observed{Exists: true}, nil
		}
		return sdk.Observed{}, sdk.Unavailable(fmt.Sprintf("agent %s is to work on another machine, which takes a server that starts it: "+
			"run an agent process on that machine instead, or use the uri local:", name))
	}
	if err != nil {
		return sdk.Observed{}, err
	}
	present, exists := known[name]
	if exists && model.IsLocalAddress(present) && model.IsLocalAddress(address) {
		present = r.String("uri") // other words for the same
	}
	return sdk.Observed{Exists: exists, Attributes: map[string]any{"uri": present}}, nil
}

// Change implements [sdk.Handler].
func (h *agentConfigHandler) Change(c *sdk.Context, r *sdk.Resource, action model.Change, _ sdk.Observed, _ model.Diff) error {
	name, address, err := addressOf(r)
	if err != nil {
		return err
	}
	return h.change(c, func(m map[model.AgentName]string) bool {
		if action == model.ChangePurged {
			delete(m, name)
		} else {
			m[name] = address
		}
		return true
	})
}

func (h *agentConfigHandler) change(ctx context.Context, edit func(map[model.AgentName]string) bool) error {
	if h.edit == nil {
		return fmt.Errorf("the agent has no server: %w", model.ErrNotFound)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.edit(ctx, edit); err != nil {
		return fmt.Errorf("the server's addresses of agents: %w", err)
	}
	return nil
}

// onOwnMachine carries out tasks of handlers that know the machine of the agent's process alone.
type onOwnMachine struct {
	sdk.HandlerExecutor

	address func(model.AgentName) string
}

// Execute implements [sdk.Executor].
func (e onOwnMachine) Execute(c *sdk.Context, r *sdk.Resource) error {
	agent := c.Task().Agent
	if address := e.address(agent); !model.IsLocalAddress(address) {
		return sdk.Unavailable(fmt.Sprintf("agent %s works on %s, and the built-in handler for %s works on the machine of the agent's process only: "+
			"run an agent process on that machine, or use a module whose handler for %s reaches it", agent, address, r.Parts.Type, r.Parts.Type))
	}
	return e.HandlerExecutor.Execute(c, r)
}

var (
	_ sdk.Handler  = (*agentConfigHandler)(nil)
	_ sdk.Executor = onOwnMachine{}
)
