package compilehost

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/python"
)

// handlers answer what Python asks while the compiler waits for it.
func (h *Host) handlers() map[string]python.Handler {
	methods := map[string]func(c value.ModelContext, args json.RawMessage) (json.RawMessage, error){
		"attr":     h.attribute,
		"lookup":   h.lookup,
		"type":     h.typeOf,
		"describe": h.describe,
		"types": func(c value.ModelContext, _ json.RawMessage) (json.RawMessage, error) {
			return names(c.TypeNames()), nil
		},
		"plugins": func(c value.ModelContext, _ json.RawMessage) (json.RawMessage, error) {
			return names(c.PluginNames()), nil
		},
		"instances": h.instances,
		"places":    h.places,
		"validate":  h.validate,
		"resource":  h.resource,
		"file":      h.file,
		"here":      h.here,
		"read":      h.readFile,
		"input":     h.input,
		"call":      h.call,
	}
	out := make(map[string]python.Handler, len(methods))
	for name, m := range methods {
		out[name] = func(_ context.Context, args json.RawMessage) (any, error) {
			if len(h.calls) == 0 {
				return nil, errors.New("the model can be read by plugins and while resources are made, not while modules are imported")
			}
			return m(h.calls[len(h.calls)-1], args)
		}
	}
	return out
}

func names(list []string) json.RawMessage {
	return append(appendStrings([]byte(`{"v":`), list), '}')
}

// read is the answer that has a value, or says why there is none.
func (h *Host) read(c value.ModelContext, v value.Value, err error) (json.RawMessage, error) {
	e := newEncoder(h.t, c)
	if err != nil {
		if unset, ok := errors.AsType[*value.UnsetError](err); ok {
			h.wait++
			h.waits[h.wait] = unset
			return append(strconv.AppendInt([]byte(`{"unset":`), int64(h.wait), 10), '}'), nil
		}
		if _, ok := errors.AsType[*value.OptionalError](err); ok {
			return json.RawMessage(`{"optional":1}`), nil
		}
		if pe, ok := errors.AsType[*value.PluginError](err); ok {
			return nil, &python.Error{Class: "PluginException", Message: pe.Message}
		}
		un, ok := errors.AsType[*value.UnknownError](err)
		if !ok || un.Value == nil {
			return nil, err
		}
		v = un.Value
	}
	return e.rest(e.value([]byte(`{"v":`), v)), nil
}

func (h *Host) instance(serial int) (value.Instance, error) {
	i := h.t.instances[serial]
	if i == nil {
		return nil, fmt.Errorf("there is no instance %d", serial)
	}
	return i, nil
}

func (h *Host) attribute(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var parts []json.RawMessage
	var serial int
	var name string
	if err := json.Unmarshal(args, &parts); err != nil || len(parts) != 2 {
		return nil, errForm
	}
	if err := errors.Join(json.Unmarshal(parts[0], &serial), json.Unmarshal(parts[1], &name)); err != nil {
		return nil, errForm
	}
	i, err := h.instance(serial)
	if err != nil {
		return nil, err
	}
	v, ok, err := i.Attribute(name)
	if !ok {
		return json.RawMessage(`{"missing":1}`), nil
	}
	// What else of the instance has got a value comes along.
	e := newEncoder(h.t, c)
	e.note(i)
	if err != nil {
		return h.read(c, v, err)
	}
	b := e.value([]byte(`{"v":`), v)
	return e.rest(b), nil
}

func (h *Host) lookup(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var name string
	if err := json.Unmarshal(args, &name); err != nil {
		return nil, errForm
	}
	v, ok, err := c.Lookup(name)
	if !ok {
		return json.RawMessage(`{"missing":1}`), nil
	}
	return h.read(c, v, err)
}

// typeOf makes an entity known, or says what a typedef narrows.
func (h *Host) typeOf(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var name string
	if err := json.Unmarshal(args, &name); err != nil {
		return nil, errForm
	}
	info, ok := c.Type(name)
	switch {
	case !ok:
		return json.RawMessage(`{"kind":""}`), nil
	case !info.Entity:
		b := appendString([]byte(`{"kind":"typedef","base":`), info.Base)
		return append(b, '}'), nil
	}
	e := newEncoder(h.t, c)
	e.typeNamed(name)
	return e.rest([]byte(`{"kind":"entity"`)), nil
}

// described is an entity in full.
type described struct {
	Parents    []string             `json:"parents"`
	Children   []string             `json:"children"`
	Attributes []describedAttribute `json:"attributes"`
	Indexes    [][]string           `json:"indexes"`
	// Implements are the implement statements: each the names of implementations, whether there is a condition, file and line.
	Implements [][]any `json:"implements"`
	Doc        string  `json:"comment,omitempty"`
	File       string  `json:"file,omitempty"`
	Line       int     `json:"line,omitempty"`
}

type describedAttribute struct {
	Name     string   `json:"name"`
	Entity   string   `json:"entity"`
	Type     string   `json:"type"`
	Relation bool     `json:"relation,omitempty"`
	Low      int      `json:"low"`
	High     *int     `json:"high,omitempty"`
	End      []string `json:"end,omitempty"`
	Doc      string   `json:"comment,omitempty"`
	// Source and Target are annotations: those of the end on the left of the statement are its source's.
	Source json.RawMessage `json:"source,omitempty"`
	Target json.RawMessage `json:"target,omitempty"`
}

func (h *Host) describe(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var name string
	if err := json.Unmarshal(args, &name); err != nil {
		return nil, errForm
	}
	info, ok := c.Type(name)
	if !ok || !info.Entity {
		return nil, fmt.Errorf("there is no entity %s", name)
	}
	d := described{Parents: list(info.Parents), Children: list(info.Children), Attributes: []describedAttribute{}, Indexes: info.Indexes, Doc: info.Doc, File: info.File, Line: info.Line}
	d.Implements = make([][]any, len(info.Implements))
	for i, im := range info.Implements {
		d.Implements[i] = []any{list(im.Implementations), im.Conditional, im.File, im.Line}
	}
	e := newEncoder(h.t, c)
	for _, a := range info.Attributes {
		x := describedAttribute{Name: a.Name, Entity: a.Owner, Type: a.Type, Relation: a.Relation, Low: a.Low, Doc: a.Doc}
		if a.High >= 0 {
			x.High = &a.High
		}
		if a.EndName != "" {
			x.End = []string{a.EndEntity, a.EndName}
		}
		if len(a.Annotations) > 0 {
			text := h.annotations(e, a.Annotations)
			if x.Source = text; a.Right {
				x.Source, x.Target = nil, text
			}
		}
		d.Attributes = append(d.Attributes, x)
	}
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", name, err)
	}
	return e.rest(b[:len(b)-1]), nil
}

// annotations are annotations of a relation: each {"v": value}, or {"unset": n} while there is no value.
func (h *Host) annotations(e *encoder, all []value.AnnotationInfo) json.RawMessage {
	b := []byte{'['}
	for i, a := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if a.Unset != nil {
			h.wait++
			h.waits[h.wait] = a.Unset
			b = strconv.AppendInt(append(b, `{"unset":`...), int64(h.wait), 10)
		} else {
			b = e.value(append(b, `{"v":`...), a.Value)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// list is never null in JSON.
func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func (h *Host) instances(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var name string
	if err := json.Unmarshal(args, &name); err != nil {
		return nil, errForm
	}
	e := newEncoder(h.t, c)
	b := []byte(`{"v":[`)
	for n, i := range c.Instances(name) {
		if n > 0 {
			b = append(b, ',')
		}
		b = e.value(b, i)
	}
	return e.rest(append(b, ']')), nil
}

func (h *Host) places(_ value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var serial int
	if err := json.Unmarshal(args, &serial); err != nil {
		return nil, errForm
	}
	i, err := h.instance(serial)
	if err != nil {
		return nil, err
	}
	return names(i.Places()), nil
}

func (h *Host) validate(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	d := &decoder{t: h.t, c: c}
	v, err := d.parse(args)
	if err != nil {
		return nil, err
	}
	l, ok := v.(*value.List)
	if !ok || len(l.Items) != 2 {
		return nil, errForm
	}
	name, _ := l.Items[0].(value.String)
	found, err := c.Validate(string(name), l.Items[1])
	switch {
	case !found:
		return nil, fmt.Errorf("could not find type %s", string(name))
	case err != nil:
		return append(appendString([]byte(`{"fault":`), err.Error()), '}'), nil
	}
	return json.RawMessage(`{}`), nil
}

func (h *Host) resource(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	d := &decoder{t: h.t, c: c}
	v, err := d.parse(args)
	if err != nil {
		return nil, err
	}
	i, ok := v.(value.Instance)
	if !ok {
		return nil, errForm
	}
	id, ok, err := c.Resource(i)
	switch {
	case err != nil:
		return h.read(c, nil, err)
	case !ok:
		return json.RawMessage(`{"v":null}`), nil
	}
	return append(appendString([]byte(`{"v":`), id), '}'), nil
}

func (h *Host) file(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var text string
	if err := json.Unmarshal(args, &text); err != nil {
		return nil, errForm
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errForm
	}
	return append(appendString([]byte(`{"v":`), c.AddFile(content)), '}'), nil
}

// input reads an input of the compile: [kind, name].
func (h *Host) input(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var parts [2]string
	if err := json.Unmarshal(args, &parts); err != nil {
		return nil, errForm
	}
	v, ok := c.Input(value.InputKind(parts[0]), parts[1])
	if !ok {
		return json.RawMessage(`{"v":null}`), nil
	}
	return append(appendString([]byte(`{"v":`), v), '}'), nil
}

// readFile reads a file of a module: [directory, path].
func (h *Host) readFile(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var parts [2]string
	if err := json.Unmarshal(args, &parts); err != nil {
		return nil, errForm
	}
	text, err := c.ReadFile(parts[0], parts[1])
	if err != nil {
		return nil, &python.Error{Class: "PluginException", Message: err.Error()}
	}
	return append(appendString([]byte(`{"v":`), string(text)), '}'), nil
}

func (h *Host) here(c value.ModelContext, _ json.RawMessage) (json.RawMessage, error) {
	b := appendString([]byte(`{"namespace":`), c.Namespace())
	b = appendString(append(b, `,"location":`...), c.Location())
	return append(b, '}'), nil
}

// call calls another plugin, one of the compiler's own or one of another module.
func (h *Host) call(c value.ModelContext, args json.RawMessage) (json.RawMessage, error) {
	var req struct {
		Name string          `json:"n"`
		Args json.RawMessage `json:"a"`
		// Kwargs has a value for each name.
		Kwargs json.RawMessage `json:"k"`
	}
	if err := json.Unmarshal(args, &req); err != nil {
		return nil, errForm
	}
	d := &decoder{t: h.t, c: c}
	v, err := d.parse(req.Args)
	if err != nil {
		return nil, err
	}
	positional, ok := v.(*value.List)
	if !ok {
		return nil, errForm
	}
	raw, err := value.ParseJSON(string(req.Kwargs))
	if err != nil {
		return nil, errForm
	}
	named, ok := raw.(*value.Dict)
	if !ok {
		return nil, errForm
	}
	kwargs := value.NewDict(named.Len())
	for _, k := range slices.Clone(named.Keys()) {
		x, _ := named.Get(k)
		x, err := d.value(x)
		if err != nil {
			return nil, err
		}
		kwargs.Set(k, x)
	}
	out, err := c.Invoke(req.Name, positional.Items, kwargs)
	return h.read(c, out, err)
}
