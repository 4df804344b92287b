package lang

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// ResourceType says how instances of an entity become resources.
type ResourceType struct {
	// Entity is the qualified name. Instances of entities that descend from it become resources of this type too.
	Entity string
	// ID is the field whose value identifies a resource on its agent.
	ID string
	// Agent is the path from an instance to the name of its agent, such as host.name.
	Agent string
	// Fields are the attributes of the resource.
	Fields []string
	// Computed gives the values of fields that are not plain attributes.
	Computed map[string]func(c value.Context, i value.Instance) (value.Value, error)
	// Ignore reports that an instance makes no resource; nil means that all do.
	Ignore func(i value.Instance) (bool, error)
	// Make, if not nil, makes the resources of several instances at once, one result for each, and Identify gives the id that one
	// of them would have; ok is false when it makes none or the id is not known yet. The other functions and fields are not
	// used then.
	Make     func(c value.ModelContext, all []value.Instance) ([]Made, error)
	Identify func(c value.ModelContext, i value.Instance) (id string, ok bool, err error)
}

// Made is what [ResourceType.Make] makes of an instance.
type Made struct {
	// ID is empty when no resource is made, or with a Fault.
	ID string
	// Attributes are the fields as a JSON object.
	Attributes []byte
	// Unknown says that a field has a value that is not known yet.
	Unknown bool
	// Fault is why no resource can be made; nil when one can. Its place is that of the instance.
	Fault *diag.Diagnostic
}

// Undefined is the value of a field that is not known yet.
const Undefined = "<<undefined>>"

// errUnknownID says that a resource's id depends on an unknown value: it is left out of the version.
var errUnknownID = errors.New("the id of the resource is not known yet")

// Resource gives the id of the resource that the exporter makes of an instance.
func (h *host) Resource(i value.Instance) (string, bool, error) {
	for _, r := range h.order {
		if !i.IsA(r.Entity) {
			continue
		}
		if r.Identify != nil {
			return r.Identify(exportContext{h, i}, i)
		}
		id, err := h.resourceID(r, i)
		switch {
		case errors.Is(err, errUnknownID):
			return "", false, nil
		case err != nil:
			return "", false, err
		}
		return string(id), true, nil
	}
	return "", false, nil
}

// follow reads a dotted path from an instance. A list on the way stands for its first element.
func follow(i value.Instance, path string) (value.Value, error) {
	var v value.Value = i
	for name := range strings.SplitSeq(path, ".") {
		if l, ok := v.(*value.List); ok {
			if len(l.Items) == 0 {
				return nil, errUnknownID
			}
			v = l.Items[0]
		}
		if _, unknown := v.(*value.Unknown); unknown {
			return nil, errUnknownID
		}
		inst, ok := v.(value.Instance)
		if !ok {
			return nil, fmt.Errorf("can not read attribute %s of %s", name, value.Str(v))
		}
		x, ok, err := inst.Attribute(name)
		if !ok {
			return nil, fmt.Errorf("there is no attribute %s on %s", name, inst.TypeName())
		}
		if err != nil {
			if _, unset := errors.AsType[*value.UnsetError](err); unset {
				return nil, err
			}
			if _, optional := errors.AsType[*value.OptionalError](err); optional {
				return nil, errUnknownID
			}
			return nil, err
		}
		v = x
	}
	if _, unknown := v.(*value.Unknown); unknown {
		return nil, errUnknownID
	}
	return v, nil
}

func (h *host) field(r *ResourceType, i value.Instance, name string) (value.Value, error) {
	if f := r.Computed[name]; f != nil {
		return f(exportContext{h, i}, i)
	}
	v, ok, err := i.Attribute(name)
	if !ok {
		return nil, fmt.Errorf("there is no attribute %s on %s", name, i.TypeName())
	}
	if err != nil {
		if _, optional := errors.AsType[*value.OptionalError](err); optional {
			return value.Null{}, nil
		}
		return nil, err
	}
	if _, unknown := v.(*value.Unknown); unknown {
		if known, ok := whenUnknown[name]; ok {
			return known, nil
		}
	}
	return v, nil
}

// whenUnknown are the values of the fields that every resource has and whose unknown values do not make it undefined.
var whenUnknown = map[string]value.Value{"send_event": value.Bool(false), "receive_events": value.Bool(true), "report_only": value.Bool(false)}

// ignores reports whether a resource type makes no resource of an instance that is one otherwise.
func ignores(r *ResourceType, i value.Instance) (bool, error) {
	if r.Ignore == nil {
		return false, nil
	}
	return r.Ignore(i)
}

func (h *host) resourceID(r *ResourceType, i value.Instance) (model.ResourceID, error) {
	agent, err := follow(i, r.Agent)
	if err != nil {
		return "", err
	}
	name, ok := agent.(value.String)
	if !ok {
		return "", fmt.Errorf("the agent attribute should lead to a string, %s is a %s", value.Str(agent), value.TypeName(agent))
	}
	v, err := h.field(r, i, r.ID)
	if err != nil {
		return "", err
	}
	if _, unknown := v.(*value.Unknown); unknown {
		return "", errUnknownID
	}
	id := r.Entity + "[" + string(name) + "," + r.ID + "=" + value.Str(v) + "]"
	switch {
	case name == "" || strings.Contains(string(name), ","):
		return "", fmt.Errorf("the agent name %q of resource %s must not be empty or have a comma", string(name), id)
	case strings.ContainsAny(value.Str(v), "]"):
		return "", fmt.Errorf("the id %s must not have a ] in its value", id)
	}
	return model.ResourceID(id), nil
}

// exported is a resource in the making.
type exported struct {
	id       model.ResourceID
	inst     *eval.Instance // nil for a resource that no instance stands for
	attrs    []byte         // canonical JSON
	requires []model.ResourceID
	set      string
	unknown  bool
	visited  visit // by the search for circles
}

// at is where the resource comes from.
func (r *exported) at() diag.Range {
	if r.inst == nil {
		return diag.Range{}
	}
	return r.inst.At().Range()
}

// visit says how far a search has got with a resource.
type visit uint8

const (
	unseen visit = iota
	open         // what it requires is being looked at
	done
)

// export makes the desired state of a model.
func (c *compilation) export(prog *check.Program, m *eval.Model) error {
	x := &exporter{c: c, byID: map[model.ResourceID]*exported{}, byInst: map[*eval.Instance]*exported{}, ignored: map[*eval.Instance]bool{}}
	for _, r := range c.host.order {
		e, ok := prog.Symbols[r.Entity].(*check.Entity)
		if !ok {
			continue
		}
		if r.Make != nil {
			if err := x.made(r, e, m); err != nil {
				return err
			}
			continue
		}
		for i := range instancesOf(m, e) {
			x.resource(r, i)
		}
	}
	if set, ok := prog.Symbols["std::ResourceSet"].(*check.Entity); ok {
		for i := range instancesOf(m, set) {
			x.resourceSet(i)
		}
	}
	for _, r := range x.all {
		x.requires(r)
	}
	x.implied()
	if err := x.adjust(); err != nil {
		return err
	}
	x.cycles()
	if c.diags.HasErrors() {
		return nil
	}
	if len(x.all) > 0 {
		x.finish()
		return nil
	}
	c.res.State.Digest = model.StateDigest(nil)
	c.res.State.Unknowns = c.host.unknowns
	return nil
}

// instancesOf goes through the instances of an entity and its descendants. Most instances in a row are of the same few entities.
func instancesOf(m *eval.Model, e *check.Entity) iter.Seq[*eval.Instance] {
	return func(yield func(*eval.Instance) bool) {
		var last *check.Entity
		is := false
		for _, i := range m.Instances {
			if t := i.Entity(); t != last {
				last, is = t, t.IsA(e)
			}
			if is && !yield(i) {
				return
			}
		}
	}
}

type exporter struct {
	c       *compilation
	all     []*exported
	byID    map[model.ResourceID]*exported
	byInst  map[*eval.Instance]*exported
	ignored map[*eval.Instance]bool
	sets    []string
	sorted  map[*ResourceType][]exportedField
	buf     []byte
}

func (x *exporter) fail(code string, i *eval.Instance, format string, args ...any) {
	x.c.diags.Errorf(code, i.At().Range(), format, args...)
}

func (x *exporter) resource(r *ResourceType, i *eval.Instance) {
	h := x.c.host
	id, err := h.resourceID(r, i)
	ignored := false
	if err == nil {
		ignored, err = ignores(r, i)
	}
	switch {
	case ignored, errors.Is(err, errUnknownID):
		x.ignored[i] = true
		return
	case err != nil:
		x.fail("CompilerException", i, "no resource %s can be made of %s: %s", r.Entity, value.Str(i), err)
		return
	}
	if x.taken(id, i) {
		return
	}
	res := &exported{id: id, inst: i}
	refs := references{resource: string(id)}
	b := x.buf[:0]
	b = append(b, '{')
	for _, field := range x.fields(r) {
		name := field.name
		b = append(b, field.text...)
		v, err := h.field(r, i, name)
		if err != nil {
			x.fail("CompilerException", i, "field %s of resource %s: %s", name, id, err)
			return
		}
		if _, unknown := v.(*value.Unknown); unknown {
			res.unknown = true
			v = value.String(Undefined)
		} else if v, err = refs.strip(v, name); err != nil {
			x.fail("CompilerException", i, "field %s of resource %s: %s", name, id, err)
			return
		}
		b, err = value.AppendJSON(b, v, value.JSONStyle{SortKeys: true})
		if err != nil {
			x.fail("TypeError", i, "field %s of resource %s can not be exported: %s", name, id, err)
			return
		}
	}
	b = append(b, '}')
	x.buf = b
	res.attrs, err = refs.complete(b)
	if err != nil {
		x.fail("CompilerException", i, "resource %s can not be written: %s", id, err)
		return
	}
	x.add(res)
}

func (x *exporter) add(res *exported) {
	x.byID[res.id] = res
	x.byInst[res.inst] = res
	x.all = append(x.all, res)
}

// exportedField is a field of a resource type: its name, and the text in front of its value.
type exportedField struct {
	name string
	text []byte
}

// fields are the fields of a resource type, sorted.
func (x *exporter) fields(r *ResourceType) []exportedField {
	if x.sorted == nil {
		x.sorted = map[*ResourceType][]exportedField{}
	}
	fields, ok := x.sorted[r]
	if !ok {
		for n, name := range slices.Compact(slices.Sorted(slices.Values(r.Fields))) {
			var text []byte
			if n > 0 {
				text = append(text, ',')
			}
			fields = append(fields, exportedField{name, append(appendString(text, name), ':')})
		}
		x.sorted[r] = fields
	}
	return fields
}

// canonical is an object with sorted keys in the form of [model.Canonical]. Only where texts hold escapes can the two differ,
// and in the line separators that start with the byte 0xE2.
func canonical(b []byte) ([]byte, error) {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, 0xE2) < 0 {
		return bytes.Clone(b), nil
	}
	return model.Canonical(b)
}

func (x *exporter) resourceSet(i *eval.Instance) {
	v, _, err := i.Attribute("name")
	name, ok := v.(value.String)
	if err != nil || !ok {
		x.fail("CompilerException", i, "the name of a resource set must be known and a string")
		return
	}
	v, _, err = i.Attribute("resources")
	members, ok := v.(*value.List)
	if err != nil || !ok {
		return
	}
	if !slices.Contains(x.sets, string(name)) {
		x.sets = append(x.sets, string(name))
	}
	for _, m := range members.Items {
		inst, _ := m.(*eval.Instance)
		res := x.byInst[inst]
		if res == nil {
			x.c.diags.Warnf("ExportWarning", i.At().Range(), "resource %s is part of ResourceSet %s but will not be exported.", value.Str(m), string(name))
			continue
		}
		if res.set != "" && res.set != string(name) {
			x.fail("CompilerException", i, "resource '%s' can not be part of multiple ResourceSets: %s and %s", res.id, res.set, string(name))
			return
		}
		res.set = string(name)
	}
}

// requires fills what a resource requires: the required instances that are resources themselves.
func (x *exporter) requires(r *exported) {
	v, ok, err := r.inst.Attribute("requires")
	l, isList := v.(*value.List)
	if !ok || err != nil || !isList || len(l.Items) == 0 {
		return
	}
	ignored := false
	for _, m := range l.Items {
		inst, _ := m.(*eval.Instance)
		if res := x.byInst[inst]; res != nil {
			r.requires = append(r.requires, res.id)
		}
		ignored = ignored || x.ignored[inst]
	}
	if len(r.requires) == 0 && !ignored {
		x.c.diags.Warnf("ExportWarning", r.inst.At().Range(), "The resource %s had requirements before flattening, but not after flattening. "+
			"Initial set was %s. Perhaps provides relation is not wired through correctly?", r.id, value.Str(l))
	}
	slices.Sort(r.requires)
	r.requires = slices.Compact(r.requires)
}

// implied adds the requirements that no model states: files and directories require the directories above them.
func (x *exporter) implied() {
	made := make([]std.Exported, 0, len(x.all))
	for _, r := range x.all {
		made = append(made, std.Exported{ID: string(r.id), Instance: r.inst})
	}
	for id, above := range std.ImpliedRequires(made) {
		r := x.byID[model.ResourceID(id)]
		for _, a := range above {
			r.requires = append(r.requires, model.ResourceID(a))
		}
		slices.Sort(r.requires)
		r.requires = slices.Compact(r.requires)
	}
}

// maxCycle bounds how many resources of a circle a diagnostic shows besides the first.
const maxCycle = 10

// cycles reports resources that require each other in a circle.
func (x *exporter) cycles() {
	type frame struct {
		r    *exported
		next int
	}
	var stack []frame
	for _, start := range x.all {
		if start.visited != unseen {
			continue
		}
		if len(start.requires) == 0 {
			start.visited = done
			continue
		}
		start.visited = open
		stack = append(stack[:0], frame{r: start})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(top.r.requires) {
				top.r.visited = done
				stack = stack[:len(stack)-1]
				continue
			}
			dep := x.byID[top.r.requires[top.next]]
			top.next++
			if dep == nil { // reported as missing
				continue
			}
			switch dep.visited {
			case open:
				var ids []string
				from := slices.IndexFunc(stack, func(f frame) bool { return f.r == dep })
				for _, f := range stack[from:] {
					ids = append(ids, string(f.r.id))
				}
				d := diag.Errorf("DependencyCycleException", dep.at(), "Cycle in dependencies: [%s]", strings.Join(ids, ", "))
				for i, f := range stack[from:] {
					if i > 0 && i <= maxCycle {
						d = d.WithRelated(f.r.at(), "%s is required by %s", f.r.id, stack[from+i-1].r.id)
					}
				}
				x.c.diags.Add(d.WithHint("take one of these requirements away; it may be written as provides, or come from a relation that implies it"))
				return
			case unseen:
				dep.visited = open
				stack = append(stack, frame{r: dep})
			case done:
			}
		}
	}
}

// finish puts the resources into canonical order and form.
func (x *exporter) finish() {
	slices.SortFunc(x.all, func(a, b *exported) int { return cmp.Compare(a.id, b.id) })
	st := &x.c.res.State
	st.Intents = make([]model.Intent, 0, len(x.all))
	for _, r := range x.all {
		st.Intents = append(st.Intents, model.Intent{
			Resource: r.id, Attributes: r.attrs, AttributeHash: model.AttributeHash(r.id, r.attrs), Requires: r.requires, Set: r.set,
			Undefined: r.unknown,
		})
	}
	x.block(st.Intents)
	slices.Sort(x.sets)
	st.ResourceSets = x.sets
	st.Unknowns = x.c.host.unknowns
	for _, f := range x.c.ext.CodeFiles {
		x.c.host.files[f.Hash] = f.Content
	}
	for hash, content := range x.c.host.files {
		st.Files = append(st.Files, model.File{Hash: hash, Content: content})
	}
	slices.SortFunc(st.Files, func(a, b model.File) int { return cmp.Compare(a.Hash, b.Hash) })
	if st.Code = x.c.ext.Code; len(st.Code) > 0 {
		st.Pip = packages(x.c.loaded)
	}
	st.Digest = model.StateDigest(st.Intents)
	x.c.res.Stats.Resources = len(st.Intents)
}

// block marks what requires an undefined resource, directly or not.
func (x *exporter) block(intents []model.Intent) {
	if !slices.ContainsFunc(intents, func(i model.Intent) bool { return i.Undefined }) {
		return
	}
	needed := make(map[model.ResourceID][]int)
	for i := range intents {
		for _, r := range intents[i].Requires {
			needed[r] = append(needed[r], i)
		}
	}
	var todo []int
	for i := range intents {
		if intents[i].Undefined {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range needed[intents[i].Resource] {
			if !intents[j].Blocked {
				intents[j].Blocked = true
				todo = append(todo, j)
			}
		}
	}
}
