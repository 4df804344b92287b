package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/modules"
)

// moduleFlags are the flags of the commands about a project's modules.
type moduleFlags struct {
	g       *globals
	dir     string
	main    string
	offline bool
	output  *string
}

// newModuleCommand groups what there is to do about the modules of a project.
func newModuleCommand(g *globals) *cobra.Command {
	f := &moduleFlags{g: g}
	cmd := &cobra.Command{
		Use: "module", Aliases: []string{"modules"}, Short: "Modules of a project: list, install, update, add, verify; authors: create, test",
		Long: `The modules of the project in the current directory, or in the one that --project names.

What a project asks for stands in its project.yml (requires, repo, pip), in its requirements.txt, and in the imports of its
models. What that came to is kept in intendant.lock, which is committed with the project.`,
	}
	f.output = outputFlag(cmd)
	f.projectFlags(cmd)
	cmd.PersistentFlags().StringVarP(&f.dir, "project", "p", ".", "directory of the project")

	var strict bool
	verify := &cobra.Command{
		Use: "verify", Short: "Check that intendant.lock says all that the project needs, and that it is on this machine unchanged",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.verify(cmd, strict) },
	}
	verify.Flags().BoolVar(&strict, "strict", false, "fail also when checkouts in the project take the place of modules")

	var v1, v2, override bool
	add := &cobra.Command{
		Use: "add REQUIREMENT", Short: "Add a module to the project and install it", Args: cobra.ExactArgs(1),
		Example: "  intendant module add dns\n  intendant module add 'std~=8.7'\n  intendant module add --v2 ip",
		Long: `Add a module, with or without a constraint on its version. It goes into requires in project.yml, and comes from the first
place that has it: the repositories of project.yml, then the package index. With --v2 it goes into requirements.txt and comes
from the package index. Nothing is changed when it can not be installed.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.add(cmd, args[0], v2, override) },
	}
	add.Flags().BoolVar(&v1, "v1", false, "put it into requires in project.yml (default)")
	add.Flags().BoolVar(&v2, "v2", false, "put it into requirements.txt as a Python package")
	add.Flags().BoolVar(&override, "override", false, "replace a constraint that the project has on the module already")
	add.MarkFlagsMutuallyExclusive("v1", "v2")

	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the modules of the project: versions, sources, and who asks for them",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.list(cmd) },
	}, f.installCommand("Fetch the modules and packages that intendant.lock names, and choose what it does not"),
		f.updateCommand("Choose modules and packages anew, all or those named"), add, verify, newModuleCreateCommand(), newModuleTestCommand(g))
	return cmd
}

// projectFlags gives a command the flags that say how to treat a project.
func (f *moduleFlags) projectFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&f.main, "file", "f", "main.cf", "the main file, whose imports count")
	cmd.PersistentFlags().BoolVar(&f.offline, "offline", false, "use nothing but what is on this machine")
}

func (f *moduleFlags) installCommand(short string) *cobra.Command {
	return &cobra.Command{
		Use: "install", Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.install(cmd, modules.Request{}) },
	}
}

func (f *moduleFlags) updateCommand(short string) *cobra.Command {
	return &cobra.Command{
		Use: "update [MODULE...]", Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.install(cmd, modules.Request{Update: true}, args...)
		},
	}
}

// open opens the project.
func (f *moduleFlags) open(req *modules.Request) (*os.Root, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("opening the project: %w", err)}
	}
	if _, err := root.Stat(module.ManifestFile); err != nil {
		_ = root.Close()
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("%s has no project.yml: run the command in a project, name one with --project, or make one with intendant project init", f.dir)}
	}
	req.Project, req.Main = root.FS(), f.main
	if req.Dir, err = filepath.Abs(f.dir); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("opening the project: %w", err)
	}
	req.Lock, err = module.ReadLock(root.FS())
	if err != nil && !req.Update {
		_ = root.Close()
		return nil, moduleError(err)
	}
	return root, nil
}

// install installs and writes the lock. Those named must be in the lock.
func (f *moduleFlags) install(cmd *cobra.Command, req modules.Request, named ...string) error {
	p, err := newPrinter(cmd, *f.output)
	if err != nil {
		return err
	}
	root, err := f.open(&req)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, n := range named {
		if _, known := req.Lock.Module(n); !known && !locksPackage(req.Lock, n) {
			return moduleError(fmt.Errorf("%s has no module or package %s: intendant module list shows what there is", module.LockFile, n))
		}
	}
	req.Only = append(req.Only, named...)
	res, err := f.run(cmd.Context(), cmd.ErrOrStderr(), req)
	if err != nil {
		return err
	}
	if err := writeLock(f.dir, res.Lock); err != nil {
		return err
	}
	return f.changes(p, req.Lock, res.Lock)
}

func locksPackage(l *module.Lock, name string) bool {
	return l != nil && l.Python != nil && slices.ContainsFunc(l.Python.Packages, func(p module.LockedPackage) bool { return p.Name == name })
}

// run installs.
func (f *moduleFlags) run(ctx context.Context, stderr io.Writer, req modules.Request) (*modules.Result, error) {
	c, err := f.g.load(nil)
	if err != nil {
		return nil, err
	}
	src, err := newModuleSource(c, f.offline)
	if err != nil {
		return nil, err
	}
	defer src.close()
	req.Stage = printStage(ctx, stderr, f.g.verbose > 0)
	res, err := src.Install(ctx, req)
	if err != nil {
		return nil, moduleError(err)
	}
	for _, w := range res.Warnings {
		if _, err := fmt.Fprintln(stderr, "warning:", w); err != nil {
			return nil, fmt.Errorf("writing a warning: %w", err)
		}
	}
	if len(res.Lost) > 0 {
		return nil, moduleError(errors.New(strings.Join(res.Lost, "\n")))
	}
	return res, nil
}

// writeLock writes a lock next to the project.yml, if it says anything, and leaves an equal one alone.
func writeLock(dir string, l *module.Lock) error {
	name := filepath.Join(dir, module.LockFile)
	if l.Trivial() {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing a lock of nothing: %w", err)
		}
		return nil
	}
	text, err := l.Encode()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return putFile(name, text)
}

// putFile writes a file, a new one or in place of another, so that nobody ever sees half of it.
func putFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // a file of the project, for all who read that
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return replaceFile(name, text)
}

// moduleChange is a module before and after.
type moduleChange struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Source string `json:"source,omitempty"`
}

// changes shows what became of the modules and packages.
func (f *moduleFlags) changes(p *printer, before, after *module.Lock) error {
	changes := []moduleChange{}
	if before == nil {
		before = &module.Lock{}
	}
	if after == nil {
		after = &module.Lock{}
	}
	// The commit is told where the version alone does not: on a branch, and when a tag was moved.
	text := func(m, other module.LockedModule) string {
		branch := strings.HasPrefix(m.Ref, "refs/heads/") || m.Ref == "HEAD"
		if m.Commit != "" && (branch || m.Version == other.Version && m.Commit != other.Commit) {
			return m.Version + " (" + m.Commit[:12] + ")"
		}
		return m.Version
	}
	for _, m := range after.Modules {
		old, _ := before.Module(m.Name)
		if m.Commit != old.Commit || m.Version != old.Version || m.Source != old.Source {
			changes = append(changes, moduleChange{m.Name, text(old, m), text(m, old), where(m)})
		}
	}
	for _, m := range before.Modules {
		if _, ok := after.Module(m.Name); !ok {
			changes = append(changes, moduleChange{Name: m.Name, Before: text(m, m)})
		}
	}
	packages := func(l *module.Lock) map[string]string {
		out := map[string]string{}
		if l.Python != nil {
			for _, p := range l.Python.Packages {
				if module.NameOf(p.Name) == "" {
					out[p.Name] = p.Version
				}
			}
		}
		return out
	}
	old, now := packages(before), packages(after)
	names := map[string]bool{}
	for n := range old {
		names[n] = true
	}
	for n := range now {
		names[n] = true
	}
	for _, n := range sortedKeys(names) {
		if old[n] != now[n] {
			changes = append(changes, moduleChange{Name: n, Before: old[n], After: now[n], Source: "package"})
		}
	}
	if done, err := p.value(changes); done {
		return err
	}
	var rows [][]string
	for _, c := range changes {
		after := c.After
		if after == "" {
			after = "removed"
		}
		rows = append(rows, []string{c.Name, c.Before, after, c.Source})
	}
	return p.table([]string{"Module", "Before", "Now", "Source"}, rows, "Everything is installed; nothing has changed.")
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// where says in a word or an address where a module comes from.
func where(m module.LockedModule) string {
	switch m.Source {
	case module.SourceEditable:
		return "checkout " + m.Path
	case module.SourceIndex:
		return "package index"
	case module.SourceBuiltin:
		return "built in"
	}
	return m.Source
}

// listedModule is a line of intendant module list.
type listedModule struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Layout     string   `json:"layout"`
	Source     string   `json:"source"`
	Ref        string   `json:"ref,omitempty"`
	Commit     string   `json:"commit,omitempty"`
	Path       string   `json:"path,omitempty"`
	Changed    bool     `json:"uncommitted_changes,omitempty"`
	RequiredBy []string `json:"required_by"`
}

func (f *moduleFlags) list(cmd *cobra.Command) error {
	p, err := newPrinter(cmd, *f.output)
	if err != nil {
		return err
	}
	var req modules.Request
	root, err := f.open(&req)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	all, err := f.gather(root, req)
	if err != nil {
		return err
	}
	if done, err := p.value(all); done {
		return err
	}
	var rows [][]string
	for _, m := range all {
		source := m.Source
		if m.Changed {
			source += " (uncommitted changes)"
		}
		commit := m.Commit
		if len(commit) > 12 {
			commit = commit[:12]
		}
		rows = append(rows, []string{m.Name, m.Version, m.Layout, source, commit, strings.Join(m.RequiredBy, "; ")})
	}
	return p.table([]string{"Module", "Version", "Layout", "Source", "Commit", "Required by"}, rows, "The project has no modules.")
}

// gather lists locked modules, checkouts, and built-in ones.
func (f *moduleFlags) gather(root *os.Root, req modules.Request) ([]listedModule, error) {
	man, ds := module.ReadManifest(root.FS())
	if man == nil || ds.HasErrors() {
		return nil, moduleError(errors.New(ds.Errors()[0].Message))
	}
	all := []listedModule{}
	checkouts := module.Checkouts(root.FS(), man)
	for name, at := range checkouts {
		m := listedModule{Name: name, Layout: string(module.LayoutV2), Source: "checkout " + at, Path: at, RequiredBy: []string{}, Changed: uncommitted(filepath.Join(f.dir, filepath.FromSlash(at)))}
		sub, err := root.OpenRoot(at)
		if err != nil {
			return nil, moduleError(fmt.Errorf("opening the checkout: %w", err))
		}
		d, err := module.Describe(sub.FS())
		_ = sub.Close()
		if err != nil {
			return nil, moduleError(fmt.Errorf("checkout %s can not be used: %w", at, err))
		}
		m.Version, m.Layout = d.Version, string(d.Layout)
		if l, ok := req.Lock.Module(name); ok {
			m.RequiredBy = l.RequiredBy
			if l.Source != module.SourceEditable {
				m.Source += " instead of " + l.Version + " of " + module.LockFile
			}
		}
		all = append(all, m)
	}
	if req.Lock != nil {
		for _, m := range req.Lock.Modules {
			if checkouts[m.Name] == "" {
				all = append(all, listedModule{Name: m.Name, Version: m.Version, Layout: string(m.Layout), Source: where(m), Ref: m.Ref, Commit: m.Commit, Path: m.Path, RequiredBy: append([]string{}, m.RequiredBy...)})
			}
		}
	}
	for name, fsys := range std.Modules() {
		if slices.ContainsFunc(all, func(m listedModule) bool { return m.Name == name }) {
			continue
		}
		d, err := module.Describe(fsys)
		if err != nil {
			return nil, fmt.Errorf("built-in module %s: %w", name, err)
		}
		all = append(all, listedModule{Name: name, Version: d.Version, Layout: string(module.LayoutBuiltin), Source: "built in", RequiredBy: []string{}})
	}
	slices.SortFunc(all, func(a, b listedModule) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// uncommitted reports whether a checkout has changes that are not committed. A directory without git has none.
func uncommitted(dir string) bool {
	repo, err := git.PlainOpen(dir)
	if err != nil {
		return false
	}
	tree, err := repo.Worktree()
	if err != nil {
		return false
	}
	status, err := tree.Status()
	return err == nil && !status.IsClean()
}

// verify checks without changing anything.
func (f *moduleFlags) verify(cmd *cobra.Command, strict bool) error {
	p, err := newPrinter(cmd, *f.output)
	if err != nil {
		return err
	}
	req := modules.Request{Frozen: true}
	root, err := f.open(&req)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	c, err := f.g.load(nil)
	if err != nil {
		return err
	}
	src, err := newModuleSource(c, true)
	if err != nil {
		return err
	}
	defer src.close()
	var faults, notes []string
	add := func(err error) {
		if err == nil {
			return
		}
		for line := range strings.Lines(plainError(err.Error())) {
			if line = strings.TrimSpace(line); line != "" && !slices.Contains(faults, line) {
				faults = append(faults, line)
			}
		}
	}
	if _, _, err := src.Place(req); err != nil {
		add(err)
	} else {
		req.Stage = printStage(cmd.Context(), cmd.ErrOrStderr(), false)
		res, err := src.Install(cmd.Context(), req)
		add(err)
		if err == nil {
			notes = append(notes, res.Warnings...)
			faults = append(faults, res.Lost...)
		}
	}
	all, err := f.gather(root, req)
	add(err)
	for _, m := range all {
		switch {
		case !strings.HasPrefix(m.Source, "checkout "):
		case m.Changed:
			notes = append(notes, m.Path+" is a checkout with uncommitted changes: what it compiles to can not be repeated elsewhere")
		default:
			notes = append(notes, fmt.Sprintf("%s is a checkout: %s does not say what is in it", m.Path, module.LockFile))
		}
	}
	if strict {
		faults, notes = append(faults, notes...), nil
	}
	out := struct {
		OK     bool     `json:"ok"`
		Faults []string `json:"faults"`
		Notes  []string `json:"notes"`
	}{len(faults) == 0, append([]string{}, faults...), append([]string{}, notes...)}
	if done, err := p.value(out); err != nil {
		return err
	} else if !done {
		for _, n := range notes {
			_, _ = fmt.Fprintln(p.out, "note:", n)
		}
		for _, n := range faults {
			_, _ = fmt.Fprintln(p.out, "fault:", n)
		}
		if out.OK {
			_, _ = fmt.Fprintln(p.out, "The modules of the project are as its lock says.")
		}
	}
	if !out.OK {
		return &exitError{code: exitFailed}
	}
	return nil
}

// add adds a requirement and installs; the files are as before when that fails.
func (f *moduleFlags) add(cmd *cobra.Command, text string, v2, override bool) error {
	r, err := module.ParseRequirement(text)
	if err == nil {
		if name := module.NameOf(r.Name); name != "" {
			r.Name = name
		}
		err = module.CheckModuleName(r.Name)
	}
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	var req modules.Request
	root, err := f.open(&req)
	if err != nil {
		return err
	}
	_ = root.Close()
	name, line := module.ManifestFile, r.Name+r.Constraint.String()
	if v2 {
		name, line = "requirements.txt", module.PackageOf(r.Name)+r.Constraint.String()
	}
	at := filepath.Join(f.dir, name)
	before, err := os.ReadFile(at)
	missing := os.IsNotExist(err)
	if err != nil && (!missing || !v2) {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	edit := addRequires
	if v2 {
		edit = addRequirement
	}
	after, err := edit(before, r.Name, line, override)
	if err != nil {
		return moduleError(fmt.Errorf("%s: %w", name, err))
	}
	if err := putFile(at, after); err != nil {
		return err
	}
	if err := f.install(cmd, modules.Request{Update: req.Lock != nil, Only: []string{r.Name}, Lock: req.Lock}); err != nil {
		if missing {
			return errors.Join(err, os.Remove(at))
		}
		return errors.Join(err, replaceFile(at, before))
	}
	return nil
}

var errAlreadyRequired = errors.New("use --override to replace it")

// sameModule reports whether a line requires a module.
func sameModule(line, name string) bool {
	r, err := module.ParseRequirement(line)
	return err == nil && (r.Name == name || module.NameOf(r.Name) == name)
}

// addRequires adds an item to requires in project.yml, and keeps the comments.
func addRequires(text []byte, name, line string, override bool) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is no mapping of keys to values: %w", model.ErrInvalid)
	}
	top := doc.Content[0]
	var list *yaml.Node
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "requires" {
			list = top.Content[i+1]
		}
	}
	item := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	switch {
	case list == nil:
		list = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		top.Content = append(top.Content, item("requires"), list)
	case list.Kind == yaml.ScalarNode:
		old := *list
		*list = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if old.Tag != "!!null" {
			list.Content = []*yaml.Node{item(old.Value)}
		}
	case list.Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("requires is no list: %w", model.ErrInvalid)
	}
	replaced := false
	for _, n := range list.Content {
		if n.Value == line {
			return text, nil
		}
		if sameModule(n.Value, name) {
			if !override {
				return nil, fmt.Errorf("it requires %s already: %w", n.Value, errAlreadyRequired)
			}
			n.Value, replaced = line, true
		}
	}
	if !replaced {
		list.Content = append(list.Content, item(line))
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	return b.Bytes(), nil
}

// addRequirement adds a line to requirements.txt.
func addRequirement(text []byte, name, line string, override bool) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(text) == 0 {
		lines = nil
	}
	replaced := false
	for i, l := range lines {
		if l == line {
			return text, nil
		}
		if strings.TrimSpace(l) != "" && sameModule(l, name) {
			if !override {
				return nil, fmt.Errorf("it requires %s already: %w", l, errAlreadyRequired)
			}
			lines[i], replaced = line, true
		}
	}
	if !replaced {
		lines = append(lines, line)
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// newProject are the files of a new project.
var newProject = map[string]string{
	"project.yml": `name: NAME
description: What NAME deploys

# Directories with modules of your own.
modulepath: libs

# Where other modules come from: a git repository per module, {} being its name.
#repo:
#  - https://git.example.com/modules/{}.git
#requires:
#  - dns~=1.2

# Where Python packages come from, and modules that are such.
#pip:
#  index_url: https://pypi.example.com/simple
`,
	"main.cf": `"""
    The model of NAME.
"""

std::print("NAME compiles. Describe in main.cf what should be.")
`,
	".gitignore":     "__pycache__/\n.env/\n/data/\n",
	"libs/README.md": "Modules of this project: each directory here with a `module.yml` and a `model/_init.cf` can be imported by its name.\n",
}

// projectInit makes a project.
func projectInit(stdout io.Writer, name, dir string) error {
	if err := module.CheckModuleName(strings.ReplaceAll(name, "-", "_")); err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("%.80q is no name of a project: use letters, digits, dashes and underscores", name)}
	}
	at := filepath.Join(dir, name)
	if entries, err := os.ReadDir(at); err == nil && len(entries) > 0 {
		return &exitError{code: exitFailed, err: fmt.Errorf("%s is there already and not empty: choose another name or directory", at)}
	}
	for file, text := range newProject {
		full := filepath.Join(at, filepath.FromSlash(path.Dir(file)), path.Base(file))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return fmt.Errorf("making the project: %w", err)
		}
		if err := os.WriteFile(full, []byte(strings.ReplaceAll(text, "NAME", name)), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("making the project: %w", err)
		}
	}
	_, err := fmt.Fprintf(stdout, "Made %s. Next: intendant compile %s\n", at, at)
	return err
}

// projectModules adds what concerns a project in a directory, rather than one on a server, to intendant project.
func projectModules(g *globals, cmd *cobra.Command, output *string) {
	f := &moduleFlags{g: g, output: output}
	var name, dir string
	var plain bool
	init := &cobra.Command{
		Use: "init", Short: "Make a new project in a directory",
		RunE: func(cmd *cobra.Command, _ []string) error { return projectInit(cmd.OutOrStdout(), name, dir) },
	}
	init.Flags().StringVarP(&name, "name", "n", "", "name of the project and of its directory")
	init.Flags().StringVarP(&dir, "output-dir", "d", ".", "where the directory is made")
	init.Flags().BoolVar(&plain, "default", false, "ask nothing (which is so anyway)")
	_ = init.MarkFlagRequired("name")
	for _, sub := range []*cobra.Command{
		f.installCommand("Fetch the modules and packages of the project in a directory"),
		f.updateCommand("Choose the modules and packages of the project in a directory anew"),
	} {
		f.projectFlags(sub)
		sub.Flags().StringVarP(&f.dir, "project", "p", ".", "directory of the project")
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(init)
}
