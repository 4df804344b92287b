package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/model"
)

// stateArgs are what a whole and a partial desired state have in common.
type stateArgs struct {
	Resources         []map[string]json.RawMessage `arg:"resources"`
	ModuleVersionInfo map[string]json.RawMessage   `arg:"module_version_info,optional"`
	ResourceState     map[string]string            `arg:"resource_state,optional" doc:"available or undefined, by resource id."`
	Unknowns          []map[string]json.RawMessage `arg:"unknowns,optional"`
	VersionInfo       map[string]json.RawMessage   `arg:"version_info,optional"`
	ResourceSets      map[string]*string           `arg:"resource_sets,optional" doc:"The name of the set of each resource that is in one."`
}

type uploadArgs struct {
	Version int `arg:"version" doc:"A number that was reserved before."`
	stateArgs
	PipConfig   json.RawMessage `arg:"pip_config,optional"`
	Constraints *string         `arg:"project_constraints"`
}

// upload stores a desired state that a client has compiled.
func (s *Server) upload(ctx context.Context, c *call, a uploadArgs) (none, error) {
	state, err := stateOf(a)
	if err != nil {
		return none{}, err
	}
	state.Environment = c.env()
	state.Trace = c.trace
	release := model.ParseSettings(c.environment.Settings).AutoDeploy
	_, err = s.store.StoreVersion(ctx, state, release, c.now)
	return none{}, err
}

type partialArgs struct {
	stateArgs
	RemovedSets     []string        `arg:"removed_resource_sets,optional" doc:"Sets that the result has no more."`
	PipConfig       json.RawMessage `arg:"pip_config,optional" doc:"Taken and not used: that of the base stands."`
	AllowCodeUpdate bool            `arg:"allow_handler_code_update,optional" doc:"Let the code of modules differ from that of the base."`
}

// uploadPartial merges a partial desired state that a client has compiled into the newest version, and returns the new version.
func (s *Server) uploadPartial(ctx context.Context, c *call, a partialArgs) (int, error) {
	state, _, err := readState(uploadArgs{stateArgs: a.stateArgs})
	if err != nil {
		return 0, err
	}
	if slices.Contains(a.RemovedSets, "") {
		return 0, invalidArgument("removed_resource_sets", "value_error", "the name of a resource set is empty")
	}
	state.Environment = c.env()
	state.Trace = c.trace
	release := model.ParseSettings(c.environment.Settings).AutoDeploy
	return s.store.StorePartial(ctx, model.Partial{DesiredState: state, RemovedSets: a.RemovedSets, AllowCodeUpdate: a.AllowCodeUpdate}, release, c.now)
}

// stateOf checks an upload and turns it into a desired state.
func stateOf(a uploadArgs) (model.DesiredState, error) {
	if a.Version <= 0 {
		return model.DesiredState{}, invalidArgument("version", "value_error", "the version number (%d) is not positive", a.Version)
	}
	state, known, err := readState(a)
	if err != nil {
		return state, err
	}
	var missing []string
	for _, i := range state.Intents {
		for _, r := range i.Requires {
			if !known[r] && !slices.Contains(missing, string(r)) {
				missing = append(missing, string(r))
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return state, invalidArgument("resources", "value_error", "resources are required that are not in the version: %s", strings.Join(missing, ", "))
	}
	markBlocked(state.Intents)
	return state, nil
}

// readState checks the resources of an upload, all but where their requirements lead, and returns which there are.
func readState(a uploadArgs) (model.DesiredState, map[model.ResourceID]bool, error) {
	state := model.DesiredState{Number: a.Version, Intents: make([]model.Intent, 0, len(a.Resources))}
	sets, err := setsOf(a.ResourceSets)
	if err != nil {
		return state, nil, err
	}
	undefined := make(map[model.ResourceID]bool)
	for text, status := range a.ResourceState {
		id, _, err := resourceID(text)
		if err != nil {
			return state, nil, err
		}
		undefined[id] = status == string(model.StatusUndefined)
	}
	known := make(map[model.ResourceID]bool, len(a.Resources))
	for _, r := range a.Resources {
		id, intent, err := uploadedIntent(a.Version, r, sets, undefined)
		if err != nil {
			return state, nil, err
		}
		if known[id] {
			return state, nil, invalidArgument("resources", "value_error", "resource %s is in the version twice", id)
		}
		known[id] = true
		state.Intents = append(state.Intents, intent)
	}
	for id := range sets {
		if !known[id] {
			return state, nil, invalidArgument("resource_sets", "value_error", "resource %s is in a resource set and not in the version", id)
		}
	}
	for _, set := range sets {
		if !slices.Contains(state.ResourceSets, set) {
			state.ResourceSets = append(state.ResourceSets, set)
		}
	}
	slices.Sort(state.ResourceSets)
	for _, u := range a.Unknowns {
		state.Unknowns = append(state.Unknowns, model.UnknownParameter{
			Name: textOf(u, "parameter"), Resource: textOf(u, "resource"), Source: textOf(u, "source"),
		})
	}
	if raw, ok := a.VersionInfo["export_metadata"]; ok {
		if err := json.Unmarshal(raw, &state.Metadata); err != nil {
			return state, nil, invalidArgument("version_info", "type_error", "export_metadata is not an object: %v", err)
		}
	}
	if state.Code, state.Pip, err = uploadedCode(a.ModuleVersionInfo, a.PipConfig, a.Constraints); err != nil {
		return state, nil, err
	}
	state.Digest = model.StateDigest(state.Intents)
	return state, known, nil
}

func setsOf(given map[string]*string) (map[model.ResourceID]string, error) {
	sets := make(map[model.ResourceID]string, len(given))
	for text, set := range given {
		id, _, err := resourceID(text)
		if err != nil {
			return nil, err
		}
		if set == nil {
			continue
		}
		if *set == "" {
			return nil, invalidArgument("resource_sets", "value_error", "the name of the resource set of %s is empty", id)
		}
		sets[id] = *set
	}
	return sets, nil
}

// uploadedIntent reads one resource: id, requires and version are taken out of its attributes.
func uploadedIntent(version int, r map[string]json.RawMessage, sets map[model.ResourceID]string, undefined map[model.ResourceID]bool) (model.ResourceID, model.Intent, error) {
	text := textOf(r, "id")
	id, given, err := resourceID(text)
	if err != nil {
		return "", model.Intent{}, err
	}
	if given != version {
		return "", model.Intent{}, invalidArgument("resources", "value_error", "resource %s does not carry the version %d that is stored", text, version)
	}
	var requires []model.ResourceID
	if raw, ok := r["requires"]; ok && string(raw) != "null" {
		var texts []string
		if err := json.Unmarshal(raw, &texts); err != nil {
			return "", model.Intent{}, invalidArgument("resources", "type_error", "resource %s: requires is not a list of ids: %v", id, err)
		}
		for _, t := range texts {
			required, _, err := resourceID(t)
			if err != nil {
				return "", model.Intent{}, fmt.Errorf("resource %s: requires: %w", id, err)
			}
			requires = append(requires, required)
		}
	}
	attributes := make(map[string]json.RawMessage, len(r))
	for name, value := range r {
		switch name {
		case "id", "requires", "version", "provides":
		default:
			attributes[name] = value
		}
	}
	raw, err := marshal(attributes)
	if err != nil {
		return "", model.Intent{}, fmt.Errorf("resource %s: %w", id, err)
	}
	intent, err := model.NewIntent(id, raw, requires, sets[id], undefined[id])
	if err != nil {
		return "", model.Intent{}, invalidArgument("resources", "value_error", "%v", err)
	}
	return id, intent, nil
}

// markBlocked marks what requires an undefined resource, directly or not.
func markBlocked(intents []model.Intent) {
	dependants := make(map[model.ResourceID][]int, len(intents))
	var queue []model.ResourceID
	for i, intent := range intents {
		for _, r := range intent.Requires {
			dependants[r] = append(dependants[r], i)
		}
		if intent.Undefined {
			queue = append(queue, intent.Resource)
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, i := range dependants[id] {
			if !intents[i].Undefined && !intents[i].Blocked {
				intents[i].Blocked = true
				queue = append(queue, intents[i].Resource)
			}
		}
	}
}
