package lang

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// Project is what is compiled.
type Project struct {
	// FS is the project's tree; project.yml is at its root.
	FS fs.FS
	// Main is the path of the main file; empty means main.cf.
	Main string
}

// Options say how to compile. The zero value compiles without inputs and prints nowhere.
type Options struct {
	// Inputs are the inputs of the model.
	Inputs Inputs
	// Stdout takes what plugins print; nil discards it.
	Stdout io.Writer
	// MaxSteps bounds the work; 0 means [eval.DefaultMaxSteps].
	MaxSteps int64
	// Plugins supplies plugins and resource types that are not built in; nil for none.
	Plugins Plugins
	// Sites are where installed modules are looked for.
	Sites []module.Site
	// Fetched are modules in the layout V1 that lie outside of the project.
	Fetched []module.Place
	// Cache keeps parsed files between compiles; nil for none.
	Cache module.Cache
	// Syntax is handed to the parser. It must be the same for all users of a cache.
	Syntax syntax.Options
}

// Plugins supplies what modules define outside the language, such as in Python.
type Plugins interface {
	// Load is called once the files of a project are known and before its types are. It returns the plugins of the modules
	// and the resource types that they register. Faults of the modules are diagnostics.
	Load(ctx context.Context, p *module.Program) (Extension, diag.List, error)
}

// Extension is what [Plugins] adds to a compile.
type Extension struct {
	// Plugins replace built-in ones of the same name.
	Plugins []*value.Plugin
	// Resources are resource types; they replace built-in ones for the same entity.
	Resources []ResourceType
	// Code is the code of modules that agents need, with its contents in CodeFiles.
	Code      []model.ModuleCode
	CodeFiles []model.File
	// Declared, if not nil, is called before the model runs, with its dataclasses in the order of their declaration.
	Declared func(ctx context.Context, entities []Dataclass) diag.List
	// Evaluated, if not nil, is called once the model has run, also when it has faults.
	Evaluated func(c value.ModelContext) diag.List
	// Adjust, if not nil, is called once all resources are made.
	Adjust func(c value.ModelContext, made []AdjustedResource) (Adjustment, diag.List, error)
}

// Dataclass is an entity that descends from std::Dataclass: a class of Python stands for it as well.
type Dataclass struct {
	value.TypeInfo
	// At is where it is declared.
	At diag.Range
	// Relations are the places of its relations by name, except for those that every entity has.
	Relations map[string]diag.Range
	// Implement is the first statement that selects another implementation than std::none, Index the first index; nil when there is
	// none.
	Implement, Index *diag.Range
}

// Adjustment is what differs from what the model says.
type Adjustment struct {
	// Requires is what resources require where that is something else.
	Requires map[model.ResourceID][]model.ResourceID
	// Added are resources that no instance stands for.
	Added []AddedResource
}

// AddedResource is a resource that no instance stands for.
type AddedResource struct {
	Made
	Requires []model.ResourceID
}

// AdjustedResource is a resource before its requirements are final.
type AdjustedResource struct {
	ID         model.ResourceID
	Instance   value.Instance
	Requires   []model.ResourceID
	Attributes []byte // JSON
}

// Stats says how much a compile did and how long it took. It is not part of the result's digest.
type Stats struct {
	Files     int           `json:"files"`
	Instances int           `json:"instances"`
	Resources int           `json:"resources"`
	Steps     int64         `json:"steps"`
	Freezes   int64         `json:"freezes"`
	Load      time.Duration `json:"load_ns"`
	Check     time.Duration `json:"check_ns"`
	Eval      time.Duration `json:"eval_ns"`
	Export    time.Duration `json:"export_ns"`
}

// Result is the outcome of a compile.
type Result struct {
	// State is the desired state; empty when there were errors.
	State model.DesiredState
	// Model holds the instances; nil when the project did not get that far.
	Model *eval.Model
	// Inputs lists the inputs that the model read, sorted.
	Inputs []InputUse
	Stats  Stats
	// Source returns the text of a source file by the name that diagnostics use.
	Source func(file string) ([]byte, bool)

	c *compilation // for queries
}

// Compile compiles a project. The diagnostics hold all faults and warnings; the result is never nil when err is nil. err is
// set when the context is done or when the compiler itself is at fault. Who compiles a project more than once uses a [Session].
func Compile(ctx context.Context, p Project, opts Options) (*Result, diag.List, error) {
	return newCompilation(opts, time.Now).compile(ctx, p)
}

// ours reports a warning about an embedded module: its users can do nothing about it.
func ours(d diag.Diagnostic) bool {
	return d.Severity == diag.Warning && strings.HasPrefix(d.Range.File, "{")
}

func newCompilation(opts Options, now func() time.Time) *compilation {
	c := &compilation{opts: opts, now: now, start: now(), ours: std.Plugins(), res: &Result{}}
	c.res.c, c.res.Source = c, func(string) ([]byte, bool) { return nil, false }
	return c
}

// compile goes through all phases.
func (c *compilation) compile(ctx context.Context, p Project) (*Result, diag.List, error) {
	err := c.phases(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return c.res, slices.DeleteFunc(c.diags, ours), nil
}

func (c *compilation) phases(ctx context.Context, p Project) error {
	if err := c.front(ctx, p); err != nil || c.diags.HasErrors() {
		return err
	}
	m, faults, err := eval.Run(ctx, c.bound, eval.Config{Host: c.host, MaxSteps: c.opts.MaxSteps})
	c.lap(&c.res.Stats.Eval)
	if err == nil {
		err = ctx.Err() // plugins that were cut off make faults that are none of the model
	}
	if err != nil {
		return fmt.Errorf("running the model: %w", err)
	}
	c.res.Model = m
	c.res.Stats.Instances, c.res.Stats.Steps, c.res.Stats.Freezes = len(m.Instances), m.Steps, m.Freezes
	failed := c.faults(faults)
	if c.ext.Evaluated != nil {
		c.diags.Add(c.ext.Evaluated(exportContext{h: c.host})...)
	}
	if failed || c.diags.HasErrors() {
		c.res.Inputs = c.host.used()
		return nil
	}
	err = c.export(c.bound, m)
	c.res.Inputs = c.host.used()
	if err != nil {
		return fmt.Errorf("exporting: %w", err)
	}
	c.lap(&c.res.Stats.Export)
	return nil
}

// front goes through the phases before the model runs: it loads and binds the program, which is not to be run when there are
// errors.
func (c *compilation) front(ctx context.Context, p Project) error {
	c.project, c.loaded, c.res.Source = p.FS, &module.Program{}, c.source
	prog, ds, err := module.Load(ctx, p.FS, module.Options{
		Main: p.Main, Builtin: std.Modules(standardNames(p.FS, c.opts.Sites, c.opts.Fetched)), Sites: c.opts.Sites, Fetched: c.opts.Fetched, Cache: c.opts.Cache,
		Syntax: c.opts.Syntax,
	})
	c.lap(&c.res.Stats.Load)
	if err != nil {
		return fmt.Errorf("loading the project: %w", err)
	}
	c.diags = ds
	c.loaded = prog
	c.res.Stats.Files = len(prog.Files)
	if ds.HasErrors() {
		return nil
	}
	ext, err := c.extensions(ctx)
	if err != nil || c.diags.HasErrors() {
		return err
	}
	c.ext, c.host = ext, newHost(c, ext)
	c.check()
	if c.sound && ext.Declared != nil {
		if found := dataclasses(c.bound); len(found) > 0 {
			c.diags.Add(ext.Declared(ctx, found)...)
		}
	}
	c.lap(&c.res.Stats.Check)
	return nil
}

// compilation is the state of one compile.
type compilation struct {
	opts    Options
	project fs.FS
	// previous is the program of an earlier check, or nil.
	previous *check.Program
	// now measures how long phases take, and nothing else; start is when the current one began.
	now    func() time.Time
	start  time.Time
	loaded *module.Program // nil until the files are read
	bound  *check.Program  // nil until names are bound; incomplete when that gave errors
	sound  bool            // the names are bound without errors
	ext    Extension
	ours   []*value.Plugin // the plugins that are part of the compiler
	host   *host
	diags  diag.List
	res    *Result
}

// lap notes how long a phase took.
func (c *compilation) lap(d *time.Duration) {
	t := c.now()
	*d, c.start = t.Sub(c.start), t
}

func (c *compilation) faults(fs []*check.Fault) bool {
	for _, f := range fs {
		c.diags = append(c.diags, f.Diagnostic())
	}
	return len(fs) > 0
}

// extensions gathers built-in and supplied plugins and resource types.
func (c *compilation) extensions(ctx context.Context) (Extension, error) {
	ext := Extension{Plugins: slices.Clone(c.ours), Resources: builtinResources()}
	if c.opts.Plugins == nil {
		return ext, nil
	}
	more, ds, err := c.opts.Plugins.Load(ctx, c.loaded)
	if err != nil {
		return ext, fmt.Errorf("loading plugins: %w", err)
	}
	c.diags.Add(ds...)
	ext.Code, ext.CodeFiles = more.Code, more.CodeFiles
	ext.Declared, ext.Evaluated, ext.Adjust = more.Declared, more.Evaluated, more.Adjust
	for _, p := range more.Plugins {
		if i := slices.IndexFunc(ext.Plugins, func(q *value.Plugin) bool { return q.Name == p.Name }); i >= 0 {
			ext.Plugins[i] = p
			continue
		}
		ext.Plugins = append(ext.Plugins, p)
	}
	for _, r := range more.Resources {
		if i := slices.IndexFunc(ext.Resources, func(q ResourceType) bool { return q.Entity == r.Entity }); i >= 0 {
			ext.Resources[i] = r
			continue
		}
		ext.Resources = append(ext.Resources, r)
	}
	return ext, nil
}

func (c *compilation) check() {
	in := check.Input{Plugins: c.plugins(), Validate: eval.NewValidator(c.host).Validate, Previous: c.previous}
	for _, f := range c.loaded.Files {
		in.Sources = append(in.Sources, check.Source{Namespace: f.Namespace, File: f.Tree})
	}
	for _, p := range c.loaded.Manifest.Precedence {
		in.Policy = append(in.Policy, check.Rule{
			FirstType: p.First.Entity, First: p.First.Relation, ThenType: p.Then.Entity, Then: p.Then.Relation,
			Range: p.Range,
		})
	}
	for _, m := range c.loaded.Modules {
		if m.Name == "std" && m.Layout == module.LayoutBuiltin {
			in.Besides = map[string][]string{"std": std.ClassicNames()}
		}
	}
	prog, faults, warnings := check.Check(in)
	c.bound = prog
	c.diags.Add(warnings...)
	c.sound = !c.faults(faults)
}

// plugins lists the plugins of the modules that the project uses: those of a built-in module that the project replaces by one
// of its own are left out, those of std only if the project's has plugins.
func (c *compilation) plugins() []*value.Plugin {
	own, theirs := map[string]bool{}, map[string]bool{}
	for _, m := range c.loaded.Modules {
		if m.Layout != module.LayoutBuiltin {
			own[m.Name] = true
		}
	}
	for _, p := range c.host.plugins {
		if top, _, _ := strings.Cut(p.Name, "::"); !c.host.builtin[p] {
			theirs[top] = true
		}
	}
	var out []*value.Plugin
	for _, p := range c.host.plugins {
		top, _, _ := strings.Cut(p.Name, "::")
		if own[top] && c.host.builtin[p] && (top != module.Std || theirs[top]) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// source is the text of a file of the project or of a module.
func (c *compilation) source(file string) ([]byte, bool) {
	for _, f := range c.loaded.Files {
		if f.Tree != nil && f.Tree.Name == file {
			return f.Tree.Src, true
		}
	}
	return c.described(file)
}

// maxDescription bounds the files about a project or a module of which excerpts are shown.
const maxDescription = 1 << 20

// described is the text of a file that describes the project or one of its modules.
func (c *compilation) described(file string) ([]byte, bool) {
	if base := path.Base(file); base != "project.yml" && base != "module.yml" || !fs.ValidPath(file) || c.project == nil {
		return nil, false
	}
	info, err := fs.Stat(c.project, file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDescription {
		return nil, false
	}
	text, err := fs.ReadFile(c.project, file)
	return text, err == nil
}

// The limits of the search for names of the classic resources.
const (
	maxModels   = 10_000
	maxModelLen = 16 << 20
)

// standardNames gathers the names of the module std that the models of a project and of installed modules mention: which
// extent of that module the project needs depends on them. The result is a text with each of them once.
func standardNames(project fs.FS, sites []module.Site, fetched []module.Place) []byte {
	seen := names{}
	namesIn(project, ".", seen)
	for _, s := range sites {
		namesIn(s.FS, "inmanta_plugins", seen)
		namesIn(s.FS, "model", seen) // the repository of a module
	}
	for _, p := range fetched {
		namesIn(p.FS, "model", seen)
	}
	found := make([]string, 0, len(seen))
	for name := range seen {
		found = append(found, "std::"+name)
	}
	slices.Sort(found)
	return []byte(strings.Join(found, " "))
}

// namesIn gathers names from the models in a tree.
func namesIn(fsys fs.FS, root string, seen names) {
	n := 0
	buffer := make([]byte, 0, readAtOnce)
	_ = fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil // what can not be read is reported when it is loaded
		case d.IsDir() && name != root && skipped(name):
			return fs.SkipDir
		case n > maxModels:
			return fs.SkipAll
		case d.Type().IsRegular() && path.Ext(name) == ".cf":
			n++
			if info, err := d.Info(); err == nil && info.Size() <= maxModelLen {
				if f, err := fsys.Open(name); err == nil {
					seen.read(f, buffer)
					_ = f.Close()
				}
			}
		}
		return nil
	})
}

// names are identifiers behind std:: in the texts of models.
type names map[string]bool

// How many bytes of a text are looked at together, and how long a name may be that goes from one such piece into the next.
const (
	readAtOnce = 1 << 14
	maxCutName = 1 << 10
)

// read adds the names in a text, by way of an empty buffer.
func (n names) read(r io.Reader, buffer []byte) {
	for {
		got, err := r.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+got]
		if err == nil && len(buffer) < cap(buffer) {
			continue
		}
		rest := n.collect(buffer, err != nil)
		if err != nil {
			return
		}
		buffer = append(buffer[:0], rest[max(0, len(rest)-maxCutName):]...)
	}
}

// collect adds the names in a piece of a text. Unless it is the last one, a name that may go on behind it is not counted: the rest
// of the text from there on is returned.
func (n names) collect(text []byte, last bool) []byte {
	prefix := []byte("std::")
	for {
		i := bytes.Index(text, prefix)
		if i < 0 {
			return text[max(0, len(text)-len(prefix)+1):]
		}
		end := i + len(prefix)
		for end < len(text) && (text[end] == '_' || text[end] == '-' || text[end] >= '0' && text[end] <= '9' ||
			text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z') {
			end++
		}
		if end == len(text) && !last {
			return text[i:]
		}
		if name := text[i+len(prefix) : end]; !n[string(name)] {
			n[string(name)] = true
		}
		text = text[end:]
	}
}

// skipped reports whether a directory holds no models: version control, virtual environments, caches, the state of deployments.
func skipped(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") || base == "node_modules" || base == "__pycache__" || name == "data"
}
