package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Partial is a desired state of some resource sets and of shared resources, to be merged into a whole one (server reference,
// section 4).
type Partial struct {
	// DesiredState has the intents of the sets, and those shared ones that the model made. Requirements may be outside.
	DesiredState
	// RemovedSets are the sets that the result has no more. One that is not there is none already.
	RemovedSets []string
	// AllowCodeUpdate lets the code of handlers differ from that of the base.
	AllowCodeUpdate bool
}

// PartialBase is the version that a [Partial] is merged into.
type PartialBase struct {
	Version int
	// Intents are all of it, by resource.
	Intents  []Intent
	Unknowns []UnknownParameter
	Code     []ModuleCode
	Pip      *PipConfig
}

// MetadataPartialBase is the metadata of a merged version that names its base.
const MetadataPartialBase = "intendant:partial_base"

// MetadataCrossSet is the metadata of a version that can not be the base of a partial export: it names a dependency from one
// resource set to another. The store writes it.
const MetadataCrossSet = "intendant:cross_set_dependency"

// CrossSetDependency finds a resource of a named set that requires one of another named set: then the sets can not be exported one
// by one. ok is false when there is none.
func CrossSetDependency(intents []Intent) (from, to ResourceID, ok bool) {
	sets := make(map[ResourceID]string, len(intents))
	for _, i := range intents {
		sets[i.Resource] = i.Set
	}
	for _, i := range intents {
		for _, r := range i.Requires {
			if i.Set != "" && sets[r] != "" && sets[r] != i.Set {
				return i.Resource, r, true
			}
		}
	}
	return "", "", false
}

// MetadataWithCrossSet is the metadata of a desired state, with [MetadataCrossSet] where that applies.
func MetadataWithCrossSet(s DesiredState) map[string]json.RawMessage {
	from, to, ok := CrossSetDependency(s.Intents)
	if !ok {
		return s.Metadata
	}
	text, err := json.Marshal(string(from) + " requires " + string(to))
	if err != nil {
		panic(fmt.Sprintf("encoding a text: %v", err)) // any text can be encoded
	}
	out := maps.Clone(s.Metadata)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	out[MetadataCrossSet] = text
	return out
}

// MergePartial makes the whole desired state of a partial one. It fails with [ErrInvalid] when a rule of section 4.2 of the server
// reference is broken, and names the resource or the set.
func MergePartial(base PartialBase, p Partial) (DesiredState, error) {
	m := &merge{base: base, p: p, updated: map[string]bool{}, removed: map[string]bool{}, old: map[ResourceID]*Intent{}, given: map[ResourceID]bool{}}
	if err := m.prepare(); err != nil {
		return DesiredState{}, err
	}
	intents, err := m.intents()
	if err != nil {
		return DesiredState{}, err
	}
	out := p.DesiredState
	out.Intents = intents
	out.ResourceSets = nil
	for _, i := range intents {
		if i.Set != "" && !slices.Contains(out.ResourceSets, i.Set) {
			out.ResourceSets = append(out.ResourceSets, i.Set)
		}
	}
	slices.Sort(out.ResourceSets)
	out.Unknowns = m.unknowns(intents)
	if !p.AllowCodeUpdate {
		if err := sameCode(base.Code, p.Code); err != nil {
			return DesiredState{}, err
		}
	}
	out.Code = mergeCode(base.Code, p.Code)
	out.Pip = base.Pip
	out.Metadata = maps.Clone(p.Metadata)
	if out.Metadata == nil {
		out.Metadata = map[string]json.RawMessage{}
	}
	out.Metadata[MetadataPartialBase] = json.RawMessage(fmt.Sprint(base.Version))
	out.Digest = StateDigest(out.Intents)
	return out, nil
}

// merge is the state of one merge.
type merge struct {
	base PartialBase
	p    Partial
	// updated and removed are sets.
	updated, removed map[string]bool
	old              map[ResourceID]*Intent
	given            map[ResourceID]bool
}

func invalidPartial(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrInvalid)
}

// prepare checks what can be checked resource by resource.
func (m *merge) prepare() error {
	if from, to, ok := CrossSetDependency(m.base.Intents); ok {
		return invalidPartial("version %d can not be the base of a partial export: %s requires %s, which is in another resource set; export the whole model first",
			m.base.Version, from, to)
	}
	for i := range m.base.Intents {
		m.old[m.base.Intents[i].Resource] = &m.base.Intents[i]
	}
	for _, i := range m.p.Intents {
		if i.Set != "" {
			m.updated[i.Set] = true
		}
	}
	for _, set := range m.p.RemovedSets {
		if m.updated[set] {
			return invalidPartial("resource set %s is to be removed and has resources in the export", set)
		}
		m.removed[set] = true
	}
	for _, i := range m.p.Intents {
		m.given[i.Resource] = true
		old := m.old[i.Resource]
		switch {
		case old == nil, old.Set == i.Set && i.Set != "":
		case old.Set == "" && i.Set != "":
			return invalidPartial("resource %s is shared in version %d and can not move to the resource set %s in a partial export", i.Resource, m.base.Version, i.Set)
		case old.Set != i.Set && i.Set != "" && !m.updated[old.Set] && !m.removed[old.Set]:
			return invalidPartial("resource %s moves from the resource set %s to %s, and the export does not have both sets", i.Resource, old.Set, i.Set)
		case i.Set == "" && old.Set != "" && !m.updated[old.Set] && !m.removed[old.Set]:
			return invalidPartial("resource %s is in the resource set %s of version %d and is shared in the export, which does not have that set", i.Resource, old.Set, m.base.Version)
		case i.Set == "" && old.Set == "" && old.AttributeHash != i.AttributeHash:
			return invalidPartial("shared resource %s differs from that of version %d: shared resources change in a full export only", i.Resource, m.base.Version)
		}
	}
	return nil
}

// goes tells whether a resource of the base is replaced or removed together with its set.
func (m *merge) goes(i *Intent) bool { return i.Set != "" && (m.updated[i.Set] || m.removed[i.Set]) }

// intents puts the whole together.
func (m *merge) intents() ([]Intent, error) {
	out := make([]Intent, 0, len(m.base.Intents)+len(m.p.Intents))
	for i := range m.base.Intents {
		old := &m.base.Intents[i]
		if m.goes(old) || m.given[old.Resource] {
			continue
		}
		kept := *old
		kept.Requires = m.keptRequires(old)
		out = append(out, kept)
	}
	for _, i := range m.p.Intents {
		if old := m.old[i.Resource]; old != nil && old.Set == "" && i.Set == "" {
			i.Requires = append(m.keptRequires(old), i.Requires...)
			slices.Sort(i.Requires)
			i.Requires = slices.Compact(i.Requires)
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Intent) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	there := make(map[ResourceID]bool, len(out))
	for k, i := range out {
		if k > 0 && out[k-1].Resource == i.Resource {
			return nil, invalidPartial("resource %s is in the export twice", i.Resource)
		}
		there[i.Resource] = true
	}
	for k := range out {
		for _, r := range out[k].Requires {
			if !there[r] {
				return nil, invalidPartial("resource %s requires %s, which is neither in the export nor in what stays of version %d", out[k].Resource, r, m.base.Version)
			}
		}
		out[k].Blocked = false
	}
	if from, to, ok := CrossSetDependency(out); ok {
		return nil, invalidPartial("%s requires %s, which is in another resource set", from, to)
	}
	return out, nil
}

// keptRequires are the requirements of a resource that stays, without those that lead to what goes: of a shared resource these came
// from the model of a set.
func (m *merge) keptRequires(old *Intent) []ResourceID {
	return slices.DeleteFunc(slices.Clone(old.Requires), func(r ResourceID) bool {
		to := m.old[r]
		return old.Set == "" && to != nil && m.goes(to)
	})
}

// unknowns are those of the export and those of untouched sets.
func (m *merge) unknowns(intents []Intent) []UnknownParameter {
	out := slices.Clone(m.p.Unknowns)
	there := make(map[ResourceID]bool, len(intents))
	for _, i := range intents {
		there[i.Resource] = true
	}
	for _, u := range m.base.Unknowns {
		id := ResourceID(u.Resource)
		if old := m.old[id]; old != nil && !m.goes(old) && !m.given[id] && there[id] && !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

// sameCode checks that modules that both have are the same.
func sameCode(base, given []ModuleCode) error {
	for _, g := range given {
		i := slices.IndexFunc(base, func(b ModuleCode) bool { return b.Module == g.Module })
		if i >= 0 && base[i].Digest != g.Digest {
			return invalidPartial("the code of module %s differs from that of the base: export the whole model, or allow it with --allow-handler-code-update", g.Module)
		}
	}
	return nil
}

// mergeCode takes the given modules and those of the base that are not among them. A module that clients gave agents keeps them.
func mergeCode(base, given []ModuleCode) []ModuleCode {
	out := slices.Clone(given)
	for _, b := range base {
		i := slices.IndexFunc(out, func(g ModuleCode) bool { return g.Module == b.Module })
		if i < 0 {
			out = append(out, b)
			continue
		}
		for _, a := range b.Agents {
			if !slices.Contains(out[i].Agents, a) {
				out[i].Agents = append(slices.Clone(out[i].Agents), a)
			}
		}
	}
	slices.SortFunc(out, func(a, b ModuleCode) int { return strings.Compare(a.Module, b.Module) })
	return out
}
