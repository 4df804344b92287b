package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/compilehost"
)

// compileFlags are the flags of intendant compile.
type compileFlags struct {
	result      string
	instances   bool
	files       string
	inputs      string
	format      string
	main        string
	environment string
	maxSteps    int64
	python      pythonFlags
	// g finds the settings; nil without any.
	g *globals
	// modules is a file that says where modules are; empty to go by the project's lock.
	modules string
	// session is what a command that compiles again and again keeps; nil for one that compiles once.
	session *lang.Session
}

// newCompileCommand compiles a project and reports what came out.
func newCompileCommand(g *globals) *cobra.Command {
	f := &compileFlags{g: g}
	cmd := &cobra.Command{
		Use:   "compile [DIR]",
		Short: "Compile a project and report its faults, without storing anything",
		Long: `Compile the project in DIR (default: the current directory).

What the model prints goes to standard output, diagnostics go to standard error. The exit status is 0 when the model
compiles, 1 when it has faults, 2 when the command line makes no sense, 3 when the compiler itself failed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return f.run(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.result, "result", "", "write the result as JSON to this file (- for standard output)")
	fl.BoolVar(&f.instances, "instances", false, "list all instances in the result")
	fl.StringVar(&f.files, "files", "", "write the files of the export to this directory, each under its hash")
	fl.StringVar(&f.inputs, "inputs", "", "read facts, parameters and settings from this JSON file")
	fl.StringVar(&f.modules, "modules", "", "read where modules are from this JSON file instead of the project's lock")
	fl.StringVar(&f.format, "format", "text", "form of the diagnostics: text, json or sarif")
	fl.StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	fl.StringVarP(&f.environment, "environment", "e", "", "compile for this environment")
	fl.Bool("no-cache", false, "compile without what earlier compiles have kept")
	_ = fl.MarkDeprecated("no-cache", "nothing is kept between compiles")
	f.pythonFlags(fl)
	fl.Int64Var(&f.maxSteps, "max-steps", eval.DefaultMaxSteps, "give up on a model that takes more steps than this")
	return cmd
}

// compileResult is the JSON object that --result writes.
type compileResult struct {
	OK          bool                    `json:"ok"`
	Diagnostics diag.List               `json:"diagnostics"`
	Resources   []compiledResource      `json:"resources"`
	Sets        []string                `json:"resource_sets"`
	Unknowns    []compiledUnknown       `json:"unknowns"`
	Files       []string                `json:"files"`
	Code        []model.ModuleCode      `json:"code,omitempty"`
	Pip         *model.PipConfig        `json:"pip,omitempty"`
	Inputs      []lang.InputUse         `json:"inputs"`
	Digest      string                  `json:"digest"`
	Stats       lang.Stats              `json:"stats"`
	Instances   []lang.ExportedInstance `json:"instances,omitempty"`
}

type compiledResource struct {
	ID         model.ResourceID   `json:"id"`
	Attributes json.RawMessage    `json:"attributes"`
	Requires   []model.ResourceID `json:"requires"`
	Set        string             `json:"resource_set,omitempty"`
	State      string             `json:"state"`
}

type compiledUnknown struct {
	Resource  string `json:"resource"`
	Parameter string `json:"parameter"`
	Source    string `json:"source"`
}

func (f *compileFlags) run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	collectLate()
	opts, err := f.options()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	out := bufio.NewWriter(stdout)
	defer func() { _ = out.Flush() }() // what was printed before a fault of ours
	opts.Stdout = out
	return f.project(ctx, dir, opts, func(res *lang.Result, ds diag.List) error {
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing what the model prints: %w", err)
		}
		if err := errors.Join(f.report(stderr, res, ds), f.summary(stderr, res, ds)); err != nil {
			return err
		}
		return f.write(stdout, res, ds)
	})
}

// project compiles the project in dir and hands the result to use, while its sources can still be read for excerpts. The error
// carries the exit status: that of a wrong command line when there is no project, of our fault when the compiler or use fails,
// and of a faulty model, which use has reported.
func (f *compileFlags) project(ctx context.Context, dir string, opts lang.Options, use func(*lang.Result, diag.List) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("opening the project: %w", err)}
	}
	defer func() { _ = root.Close() }()
	opened, warnings, faults := f.place(root, dir, &opts)
	defer opened.Close()
	if faults.HasErrors() {
		none := &lang.Result{Source: func(string) ([]byte, bool) { return nil, false }}
		if err := use(none, faults); err != nil {
			return &exitError{code: exitInternal, err: err}
		}
		return &exitError{code: exitFailed}
	}
	compile := lang.Compile
	if f.session != nil {
		compile = f.session.Compile
	}
	host, err := f.pythonHost(dir, opts, opened.Python)
	if err != nil {
		return err
	}
	opts.Plugins = host
	res, ds, err := compile(ctx, lang.Project{FS: root.FS(), Main: f.main}, opts)
	if err == nil {
		ds = append(ds, warnings...)
		err = use(res, ds)
	}
	if err == nil && len(f.python.attach) == 2 {
		err = f.hold(ctx, host, res, ds)
	}
	if err = errors.Join(err, host.Close()); err != nil {
		return &exitError{code: exitInternal, err: err}
	}
	if ds.HasErrors() {
		return &exitError{code: exitFailed}
	}
	return nil
}

// hold lends the model to the Python process that the compile is attached to.
func (f *compileFlags) hold(ctx context.Context, host *compilehost.Host, res *lang.Result, ds diag.List) error {
	text, err := json.Marshal(f.compose(res, ds))
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return host.Hold(ctx, text)
}

// options turns the flags into options of the compiler.
func (f *compileFlags) options() (lang.Options, error) {
	switch f.format {
	case "text", "json", "sarif":
	default:
		return lang.Options{}, fmt.Errorf("--format must be text, json or sarif, not %q", f.format)
	}
	opts := lang.Options{MaxSteps: f.maxSteps}
	if f.inputs != "" {
		text, err := os.ReadFile(f.inputs)
		if err != nil {
			return lang.Options{}, fmt.Errorf("reading inputs: %w", err)
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&opts.Inputs); err != nil {
			return lang.Options{}, fmt.Errorf("reading inputs: %s: %w", f.inputs, err)
		}
	}
	if f.environment != "" {
		opts.Inputs.Environment.ID = f.environment
	}
	if _, ok := opts.Inputs.Settings["now"]; !ok {
		if opts.Inputs.Settings == nil {
			opts.Inputs.Settings = map[string]string{}
		}
		opts.Inputs.Settings["now"] = time.Now().UTC().Format(time.RFC3339)
	}
	opts.Inputs.Env = os.LookupEnv
	return opts, nil
}

// report writes the diagnostics for people or for tools.
func (f *compileFlags) report(w io.Writer, res *lang.Result, ds diag.List) error {
	switch f.format {
	case "json":
		e := json.NewEncoder(w)
		if ds == nil {
			ds = diag.List{}
		}
		return e.Encode(ds)
	case "sarif":
		return diag.WriteSARIF(w, ds, diag.Tool{Name: "intendant", Version: buildVersion(), Explain: explained})
	}
	return printDiagnostics(w, res.Source, ds)
}

// summary says for people what a model came to.
func (f *compileFlags) summary(w io.Writer, res *lang.Result, ds diag.List) error {
	if f.format != "text" || ds.HasErrors() {
		return nil
	}
	s := res.Stats
	_, err := fmt.Fprintf(w, "%d instances, %d resources in %s\n", s.Instances, s.Resources,
		(s.Load + s.Check + s.Eval + s.Export).Round(100*time.Microsecond))
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// maxPrinted is how many diagnostics a person gets to see at once; programs get all of them as JSON.
const maxPrinted = 100

// printDiagnostics writes diagnostics as text. On a terminal they have colours, unless NO_COLOR is set or it has none, lines
// of source are cut to its width, and a last line tells where to read on.
func printDiagnostics(w io.Writer, source func(string) ([]byte, bool), ds diag.List) error {
	p := diag.Printer{Source: source, Max: maxPrinted}
	terminal := false
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		terminal = true
		p.Color = colours(os.Getenv)
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			p.Width = width
		}
	}
	if err := p.Print(w, ds); err != nil {
		return fmt.Errorf("writing diagnostics: %w", err)
	}
	if errs := ds.Errors(); terminal && len(errs) > 0 && errs[0].Code != "" {
		if _, err := fmt.Fprintf(w, "\n'intendant explain %s' says more\n", errs[0].Code); err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

// colours reports whether the environment lets a terminal show colours (https://no-color.org).
func colours(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// write writes the result and the files of the export.
func (f *compileFlags) write(stdout io.Writer, res *lang.Result, ds diag.List) error {
	if f.files != "" && !ds.HasErrors() {
		if err := writeFiles(f.files, res.State.Files); err != nil {
			return err
		}
	}
	if f.result == "" {
		return nil
	}
	r := f.compose(res, ds)
	w := stdout
	if f.result != "-" {
		file, err := os.Create(f.result)
		if err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		defer func() { _ = file.Close() }()
		w = file
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := errors.Join(r.write(b), b.Flush()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func (f *compileFlags) compose(res *lang.Result, ds diag.List) *compileResult {
	r := &compileResult{
		OK: !ds.HasErrors(), Diagnostics: ds, Digest: res.State.Digest, Stats: res.Stats, Sets: res.State.ResourceSets,
		Resources: make([]compiledResource, 0, len(res.State.Intents)), Unknowns: []compiledUnknown{}, Files: []string{},
		Inputs: res.Inputs,
	}
	if r.Diagnostics == nil {
		r.Diagnostics = diag.List{}
	}
	if r.Inputs == nil {
		r.Inputs = []lang.InputUse{}
	}
	if r.Sets == nil {
		r.Sets = []string{}
	}
	for _, in := range res.State.Intents {
		c := compiledResource{ID: in.Resource, Attributes: in.Attributes, Requires: in.Requires, Set: in.Set, State: "available"}
		if c.Requires == nil {
			c.Requires = []model.ResourceID{}
		}
		if in.Undefined {
			c.State = "undefined"
		}
		r.Resources = append(r.Resources, c)
	}
	for _, u := range res.State.Unknowns {
		r.Unknowns = append(r.Unknowns, compiledUnknown{Resource: u.Resource, Parameter: u.Name, Source: u.Source})
	}
	r.Code, r.Pip = res.State.Code, res.State.Pip
	for _, file := range res.State.Files {
		r.Files = append(r.Files, file.Hash)
	}
	if f.instances && r.OK {
		r.Instances = lang.ExportInstances(res.Model)
	}
	return r
}

// writeFiles writes contents under their hashes. A file that is there already has the same content.
func writeFiles(dir string, files []model.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing files: %w", err)
	}
	for _, file := range files {
		name := filepath.Join(dir, file.Hash)
		if _, err := os.Stat(name); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("writing files: %w", err)
		}
		if err := os.WriteFile(name, file.Content, 0o644); err != nil { //nolint:gosec // whoever may read the directory may read what agents are given
			return fmt.Errorf("writing files: %w", err)
		}
	}
	return nil
}
