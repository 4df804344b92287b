package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

// markStale asks for the desired states of all agents of an environment to be compared again.
func (h *Hub) markStale(env model.EnvironmentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.envs[env]; e != nil {
		e.staleAll = true
		h.wakeDesired()
	}
}

// wakeDesired wakes the goroutine that sends desired states.
func (h *Hub) wakeDesired() {
	select {
	case h.desired <- struct{}{}:
	default:
	}
}

// sendDesired keeps agents' copies of their desired states up to date.
func (h *Hub) sendDesired(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.desired:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.cfg.DesiredDelay):
		}
		for env, names := range h.staleAgents() {
			if err := h.sendDesiredOf(ctx, env, names); err != nil && ctx.Err() == nil {
				h.log.WarnContext(ctx, "sending the desired state to agents", "environment", env, "error", err)
			}
		}
	}
}

// staleAgents takes the agents whose desired states are to be compared, as far as they are up.
func (h *Hub) staleAgents() map[model.EnvironmentID][]model.AgentName {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[model.EnvironmentID][]model.AgentName{}
	for id, e := range h.envs {
		for name, a := range e.agents {
			if a.primary != nil && (e.staleAll || e.stale[name]) {
				out[id] = append(out[id], name)
			}
		}
		slices.Sort(out[id])
		e.staleAll = false
		clear(e.stale)
	}
	return out
}

func (h *Hub) sendDesiredOf(ctx context.Context, env model.EnvironmentID, names []model.AgentName) error {
	version, intents, err := h.cfg.Registry.AgentIntents(ctx, env, names)
	if err != nil {
		return err
	}
	repair := DefaultRepairInterval
	if h.cfg.RepairInterval != nil {
		if repair, err = h.cfg.RepairInterval(ctx, env); err != nil {
			return err
		}
	}
	var code map[model.AgentName]string
	if r, ok := h.cfg.Registry.(CodeRegistry); ok && version > 0 {
		if code, err = r.AgentCode(ctx, env, version); err != nil {
			return err
		}
	}
	byAgent := make(map[model.AgentName][]model.Intent, len(names))
	for _, i := range intents {
		name := i.Resource.Parts().Agent
		byAgent[name] = append(byAgent[name], i)
	}
	for _, name := range names {
		h.sendDesiredTo(env, wire.Desired{Agent: name, Version: version, Repair: repair, Code: code[name]}, byAgent[name])
	}
	return nil
}

func (h *Hub) sendDesiredTo(env model.EnvironmentID, head wire.Desired, intents []model.Intent) {
	name := head.Agent
	head.Digest = strings.TrimSuffix(head.Repair+" "+model.StateDigest(intents)+" "+head.Code, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.envs[env]
	a := e.agent(name)
	s := a.primary
	if s == nil || s.desired[name] == head.Digest {
		return
	}
	s.desired[name] = head.Digest
	if len(intents) == 0 {
		head.First, head.Last = true, true
		s.control = append(s.control, &head)
	}
	for first := true; len(intents) > 0; first = false {
		part := head
		n, size := 0, 0
		for n < len(intents) && n < wire.MaxBatch && (n == 0 || size+len(intents[n].Attributes) < wire.SoftFrame) {
			size += len(intents[n].Attributes) + 256
			part.Intents = append(part.Intents, wire.FromIntent(intents[n]))
			n++
		}
		intents = slices.Clip(intents[n:])
		part.First, part.Last = first, len(intents) == 0
		s.control = append(s.control, &part)
	}
	s.signal()
}
