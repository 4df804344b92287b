package compilehost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/python"
)

// leftOut stands for an argument that was not given: its default is a value of Python that never leaves it.
var leftOut value.Value = &value.Unknown{Source: "the default of a Python plugin"}

// extension makes what the code registered known to the compiler.
func (h *Host) extension(mods []*code, got *loaded) (lang.Extension, diag.List, error) {
	var ext lang.Extension
	var ds diag.List
	for _, w := range got.Warnings {
		if w.Class == "InmantaWarning" || w.Class == "PluginDeprecationWarning" {
			ds.Warnf("InmantaWarning", h.place(w.File, w.Line), "%s", w.Message)
		}
	}
	for _, f := range got.Faults {
		ds.Add(h.loadFault(f.Module, f.Name, &f.Error))
	}
	if ds.HasErrors() {
		return ext, ds, nil
	}
	for n := range got.Plugins {
		p := &got.Plugins[n]
		v := &value.Plugin{Name: p.Name, Returns: p.Returns, AllowUnknown: p.AllowUnknown, Call: h.plugin(n)}
		v.Deprecated = p.Deprecated
		at := h.at(p.At)
		v.File, v.Line = at.File, at.Start.Line
		for _, prm := range p.Params {
			out, err := parameter(prm)
			if err != nil {
				return ext, nil, fmt.Errorf("loading plugin %s: %w", p.Name, err)
			}
			v.Params = append(v.Params, out)
		}
		ext.Plugins = append(ext.Plugins, v)
	}
	types := map[string][]string{}
	define := func(name, pythonModule string) {
		parts := strings.Split(pythonModule, ".")
		if len(parts) > 1 && parts[0] == "inmanta_plugins" {
			types[parts[1]] = append(types[parts[1]], name)
		}
	}
	for _, r := range got.Resources {
		rt, where, err := h.resourceType(r)
		if err != nil {
			return ext, nil, err
		}
		define(rt.Entity, where)
		ext.Resources = append(ext.Resources, rt)
	}
	for _, list := range [][][2]string{got.References, got.Mutators, got.Handlers} {
		for _, x := range list {
			define(x[0], x[1])
		}
	}
	for _, p := range got.Siblings {
		if i := slices.IndexFunc(mods, func(c *code) bool { return c.m.Name == p.Module }); i >= 0 {
			if err := mods[i].addPackage(p.Name, p.Dir); err != nil {
				return ext, nil, err
			}
		}
	}
	for _, b := range got.Besides {
		c := &code{m: &module.Module{
			Name: b.Name, Layout: module.LayoutV2, Metadata: module.Metadata{Name: b.Name, Requires: b.Requires}, Root: os.DirFS(b.Dir), Dir: b.Dir, Plugins: ".",
		}}
		if err := c.find(".", "inmanta_plugins."+b.Name); err != nil {
			return ext, nil, fmt.Errorf("looking for the Python code of module %s: %w", b.Name, err)
		}
		mods = append(mods, c)
		// Who needs a module that imports this one needs this one as well; which that is only Python knows.
		for _, m := range mods {
			types[b.Name] = append(types[b.Name], types[m.m.Name]...)
		}
	}
	var err error
	if ext.Code, ext.CodeFiles, err = ship(mods, types); err != nil {
		return ext, nil, err
	}
	ext.Declared, ext.Evaluated = h.declared, h.evaluated
	h.managers = got.Managers > 0 || len(h.cfg.Exports) > 0
	if h.managers || len(got.Resources) > 0 {
		ext.Adjust = h.adjust
	}
	return ext, ds, nil
}

func parameter(parts []json.RawMessage) (value.Param, error) {
	var p value.Param
	var kind string
	var optional bool
	if len(parts) != 4 {
		return p, errForm
	}
	err := errors.Join(json.Unmarshal(parts[0], &p.Name), json.Unmarshal(parts[1], &p.Type), json.Unmarshal(parts[2], &kind), json.Unmarshal(parts[3], &optional))
	if err != nil {
		return p, err
	}
	switch kind {
	case "keyword":
		p.Kind = value.KeywordOnly
	case "args":
		p.Kind = value.VarPositional
	case "kwargs":
		p.Kind = value.VarKeyword
	}
	if optional {
		p.Default = leftOut
	}
	return p, nil
}

// at is a place as Python sends it: a file and a line, or nothing.
func (h *Host) at(place []json.RawMessage) diag.Range {
	var file string
	var line int
	if len(place) != 2 || json.Unmarshal(place[0], &file) != nil || json.Unmarshal(place[1], &line) != nil {
		return diag.Range{}
	}
	return h.place(file, line)
}

// loadFault is a fault of an author's file.
func (h *Host) loadFault(mod, name string, e *python.Error) diag.Diagnostic {
	data := faultData(e)
	at := h.at(data.At)
	if data.Kind == "compiler" && !strings.HasPrefix(name, "inmanta_plugins") {
		return diag.Errorf(e.Class, at, "%s", e.Message)
	}
	d := diag.Errorf("PluginModuleLoadException", at, "Unable to load all plug-ins for module %s:\n%s while loading plugin module %s: %s%s", mod, e.Class, name, e.Message, h.trace(e))
	switch e.Class {
	case "ModuleNotFoundError", "ImportError":
		return d.WithHint("install the Python packages that the module requires into the project's environment: intendant module install")
	case "SyntaxError":
		return d.WithHint("it was read by Python %s: if the module needs a later one, set compiler.python (--python) to it", h.process.Version())
	}
	return d
}

// trace is the traceback of an exception as part of a message; empty when it says nothing new.
func (h *Host) trace(e *python.Error) string {
	if !strings.HasPrefix(e.Traceback, "Traceback") {
		return ""
	}
	text := strings.TrimRight(e.Traceback, "\n")
	for _, d := range h.dirs {
		text = strings.ReplaceAll(text, `"`+d.dir+string(filepath.Separator), `"`+strings.TrimSuffix(d.as, "/")+"/")
	}
	return "\n" + text
}

// plugin is the function of a plugin.
func (h *Host) plugin(n int) func(value.Context, []value.Value) (value.Value, error) {
	head := `{"p":` + strconv.Itoa(n) + `,"v":[`
	return func(c value.Context, args []value.Value) (value.Value, error) {
		mc, ok := c.(value.ModelContext)
		if !ok {
			return nil, errors.New("this context can not run Python plugins")
		}
		leave := h.enter(mc)
		defer leave()
		e := newEncoder(h.t, mc)
		b := append(make([]byte, 0, 256), head...)
		for i, a := range args {
			if i > 0 {
				b = append(b, ',')
			}
			if a == leftOut {
				b = append(b, `{"$def":1}`...)
				continue
			}
			b = e.value(b, a)
		}
		b = e.rest(append(b, ']'))
		var raw json.RawMessage
		err := h.process.Call(h.ctx, "plugin", json.RawMessage(b), &raw)
		h.flush()
		if err != nil {
			return nil, h.fault(err, mc)
		}
		d := &decoder{t: h.t, c: mc}
		return d.parse(raw)
	}
}

// enter notes a call; what it returns ends it.
func (h *Host) enter(c value.ModelContext) (leave func()) {
	h.calls = append(h.calls, c)
	if len(h.calls) == 1 {
		clear(h.waits)
	}
	return func() { h.calls = h.calls[:len(h.calls)-1] }
}

// faultInfo is what Python says about an exception besides its class and text.
type faultInfo struct {
	// Kind is unset, unknown, optional, plugin, compiler or other.
	Kind    string            `json:"kind"`
	Class   string            `json:"class"`
	Waiters []int             `json:"waiters"`
	Value   json.RawMessage   `json:"value"`
	At      []json.RawMessage `json:"at"`
}

func faultData(e *python.Error) faultInfo {
	var f faultInfo
	_ = json.Unmarshal(e.Data, &f) // an exception that says nothing is of no special kind
	return f
}

// ExternalError is an exception of Python that no author foresaw.
type ExternalError struct {
	// Class is the name of the exception's class.
	Class   string
	Message string
	// Traceback is Python's, with the paths that diagnostics use.
	Traceback string
}

func (e *ExternalError) Error() string {
	text := e.Class
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text + e.Traceback
}

// fault says in the evaluator's terms what a plugin raised.
func (h *Host) fault(err error, c value.ModelContext) error {
	e, ok := errors.AsType[*python.Error](err)
	if !ok {
		return err
	}
	f := faultData(e)
	switch f.Kind {
	case "unset":
		if w := h.waiting(f.Waiters); w != nil {
			return w
		}
		return &ExternalError{Class: e.Class, Message: "an exception about an unset value was kept from another call"}
	case "unknown":
		out := &value.UnknownError{}
		if len(f.Value) > 0 {
			d := &decoder{t: h.t, c: c}
			if v, err := d.parse(f.Value); err == nil {
				out.Value, _ = v.(*value.Unknown)
			}
		}
		return out
	case "plugin":
		return &value.PluginError{Message: e.Message}
	case "type":
		return &value.PluginError{Message: e.Message, Class: "PluginTypeException"}
	case "optional", "compiler":
		return &value.PluginError{Message: "caused by: " + e.Message, Class: "WrappingRuntimeException"}
	}
	return &ExternalError{Class: e.Class, Message: e.Message, Traceback: h.trace(e)}
}

// waiting is what a plugin waits for, by the numbers that Python was given; nil when they mean nothing any more.
func (h *Host) waiting(numbers []int) error {
	var all []*value.UnsetError
	for _, n := range numbers {
		if w := h.waits[n]; w != nil {
			all = append(all, w)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first := *all[0]
	first.More = all[1:]
	return &first
}

// evaluated runs finalizers, and makes what modules await known.
func (h *Host) evaluated(c value.ModelContext) diag.List {
	h.last = c
	leave := h.enter(c)
	defer leave()
	var got struct {
		Faults   []python.Error `json:"faults"`
		Unknowns [][3]string    `json:"unknowns"`
	}
	var ds diag.List
	if err := h.process.Call(h.ctx, "finalize", nil, &got); err != nil {
		if h.ctx.Err() == nil {
			ds.Errorf("ExternalException", diag.Range{}, "The finalizers of the modules can not be run: %s", err)
		}
		return ds
	}
	h.flush()
	for i := range got.Faults {
		e := &got.Faults[i]
		ds.Errorf("ExternalException", diag.Range{}, "Exception in a finalizer\ncaused by: %s: %s%s", e.Class, e.Message, h.trace(e))
	}
	for _, u := range got.Unknowns {
		c.Await(value.InputKind(u[2]), u[1], u[0])
	}
	return ds
}
