package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/value"
)

// evalFlags are the flags of intendant eval.
type evalFlags struct {
	compileFlags
	dir       string
	namespace string
	instances string
	output    string
}

// maxQuery bounds a line of input, in bytes.
const maxQuery = 1 << 20

// newEvalCommand evaluates expressions against the model of a project.
func newEvalCommand(g *globals) *cobra.Command {
	f := &evalFlags{}
	f.g = g
	cmd := &cobra.Command{
		Use:   "eval [EXPRESSION]",
		Short: "Evaluate expressions against the model of a project",
		Long: `Compile the project in the current directory (or --dir) and evaluate an expression of the language in it, with the variables
and imports of the main file. An attribute may follow any operand:

    intendant eval 'Host[name="web1"].files'
    intendant eval '[h.name for h in site.hosts if h.managed]'
    intendant eval --instances Host

Without an expression each line of standard input is one; on a terminal an answer follows each line, until Ctrl-D. Lines that
are empty or start with # are passed over. Nothing is made or changed: constructors are refused.

The exit status is 0 when all expressions have a value, and 1 when the model or an expression has faults.`,
		Example: `  intendant eval --in web::server 'default_port'
  echo 'std::count(hosts)' | intendant eval -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", ".", "directory of the project")
	fl.StringVar(&f.namespace, "in", "", "evaluate as a file of this namespace would (default: the main file)")
	fl.StringVar(&f.instances, "instances", "", "list the instances of this entity and of those that descend from it")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	fl.StringVar(&f.inputs, "inputs", "", "read facts, parameters and settings from this JSON file")
	fl.StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	fl.StringVarP(&f.environment, "environment", "e", "", "compile for this environment")
	f.pythonFlags(fl)
	fl.Int64Var(&f.maxSteps, "max-steps", eval.DefaultMaxSteps, "give up on a model that takes more steps than this")
	f.format = "text"
	return cmd
}

// muted passes on what is written to it once it is told to.
type muted struct {
	w  io.Writer
	on bool
}

func (m *muted) Write(p []byte) (int, error) {
	if !m.on {
		return len(p), nil
	}
	return m.w.Write(p)
}

func (f *evalFlags) run(cmd *cobra.Command, args []string) error {
	switch f.output {
	case "text", "json", "yaml":
	default:
		return &exitError{code: exitUsage, err: fmt.Errorf("-o %s: must be text, json or yaml", f.output)}
	}
	if f.instances != "" && len(args) > 0 {
		return &exitError{code: exitUsage, err: errors.New("--instances takes the place of an expression: leave one of them out")}
	}
	opts, err := f.options()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	q := &queries{f: f, out: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), printed: &muted{w: cmd.OutOrStdout()}}
	opts.Stdout = q.printed
	err = f.project(cmd.Context(), f.dir, opts, func(res *lang.Result, ds diag.List) error {
		if ds.HasErrors() {
			return f.report(q.stderr, res, ds.Errors())
		}
		q.res, q.printed.on = res, true
		switch {
		case f.instances != "":
			return q.list()
		case len(args) > 0:
			return q.one(cmd.Context(), args[0])
		}
		return q.lines(cmd.Context(), cmd.InOrStdin())
	})
	if err == nil && q.failed {
		err = &exitError{code: exitFailed}
	}
	return err
}

// queries answers expressions about one model.
type queries struct {
	f           *evalFlags
	res         *lang.Result
	out, stderr io.Writer
	printed     *muted // takes what the model prints
	failed      bool   // a query had faults
	several     bool   // there may be more than one query
}

// lines answers each line of input.
func (q *queries) lines(ctx context.Context, in io.Reader) error {
	q.several = true
	file, ok := in.(*os.File)
	prompt := ok && term.IsTerminal(int(file.Fd()))
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxQuery)
	for {
		if prompt {
			if _, err := io.WriteString(q.out, "> "); err != nil {
				return fmt.Errorf("writing the prompt: %w", err)
			}
		}
		if !s.Scan() {
			if prompt {
				_, _ = io.WriteString(q.out, "\n") // behind the last prompt
			}
			break
		}
		text := strings.TrimSpace(s.Text())
		if prompt && (text == "exit" || text == "quit") {
			break
		}
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := q.one(ctx, text); err != nil {
			return err
		}
	}
	q.failed = q.failed && !prompt // in a conversation a fault is no failure
	if err := s.Err(); err != nil {
		return fmt.Errorf("reading expressions: %w", err)
	}
	return nil
}

// one answers an expression.
func (q *queries) one(ctx context.Context, text string) error {
	v, ds, err := q.res.Query(ctx, q.f.namespace, text)
	if err != nil {
		return fmt.Errorf("evaluating an expression: %w", err)
	}
	if err := q.faults(ds, text); err != nil || v == nil {
		return err
	}
	return q.answer(v)
}

// list answers with the instances of an entity.
func (q *queries) list() error {
	is, ds := q.res.Instances(q.f.namespace, q.f.instances)
	if err := q.faults(ds, ""); err != nil || ds.HasErrors() {
		return err
	}
	all := &value.List{}
	for _, i := range is {
		all.Items = append(all.Items, i)
	}
	return q.answer(all)
}

// faults reports what is wrong with an expression.
func (q *queries) faults(ds diag.List, text string) error {
	if len(ds) == 0 {
		return nil
	}
	q.failed = q.failed || ds.HasErrors()
	return printDiagnostics(q.stderr, func(file string) ([]byte, bool) {
		if file == lang.QueryFile {
			return []byte(text), true
		}
		return q.res.Source(file)
	}, ds)
}

func (q *queries) answer(v value.Value) error {
	if q.f.output == "yaml" && q.several { // documents of a stream
		if _, err := io.WriteString(q.out, "---\n"); err != nil {
			return fmt.Errorf("writing the value: %w", err)
		}
	}
	if q.f.output != "text" {
		p := &printer{out: q.out, format: q.f.output}
		_, err := p.value(lang.ExportValue(v))
		return err
	}
	var b strings.Builder
	writeAnswer(&b, v)
	text := b.String()
	if file, ok := q.out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		text = strings.Map(harmless, text)
	}
	if _, err := io.WriteString(q.out, text); err != nil {
		return fmt.Errorf("writing the value: %w", err)
	}
	return nil
}

// harmless replaces a character that could control a terminal.
func harmless(r rune) rune {
	if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return unicode.ReplacementChar
	}
	return r
}

// writeAnswer writes a value for people. Instances have their attributes below them, where they are asked for; further in they
// are named only.
func writeAnswer(w *strings.Builder, v value.Value) {
	switch x := v.(type) {
	case *eval.Instance:
		writeInstance(w, x)
	case *value.List:
		if len(x.Items) == 0 {
			w.WriteString("[]\n")
		}
		for _, e := range x.Items {
			if i, ok := e.(*eval.Instance); ok {
				writeInstance(w, i)
				continue
			}
			w.WriteString(notation(e))
			w.WriteByte('\n')
		}
	case value.String: // as it is, so that a text of several lines can be read
		w.WriteString(string(x))
		w.WriteByte('\n')
	default:
		w.WriteString(notation(v))
		w.WriteByte('\n')
	}
}

func writeInstance(w *strings.Builder, i *eval.Instance) {
	fmt.Fprintf(w, "%s  %s\n", instanceName(i), i.At().FileLine())
	width := 0
	for _, name := range i.AttributeNames() {
		width = max(width, len(name))
	}
	for _, name := range i.AttributeNames() {
		v, _, err := i.Attribute(name)
		if l, empty := v.(*value.List); err != nil || empty && len(l.Items) == 0 && (name == "requires" || name == "provides") {
			continue // nothing to tell
		}
		fmt.Fprintf(w, "    %-*s = %s\n", width, name, notation(v))
	}
}

func instanceName(i value.Instance) string { return fmt.Sprintf("%s#%d", i.TypeName(), i.Serial()) }

// notation is a value as the language writes it; instances have their type and number.
func notation(v value.Value) string {
	switch x := v.(type) {
	case nil, value.Null:
		return "null"
	case value.Bool:
		if x {
			return "true"
		}
		return "false"
	case value.String:
		text, err := readableJSON(string(x), "")
		if err != nil {
			return value.Repr(x)
		}
		return string(text)
	case value.Instance:
		return instanceName(x)
	case *value.Unknown:
		return strings.TrimSpace("unknown " + x.Source)
	case *value.List:
		parts := make([]string, len(x.Items))
		for n, e := range x.Items {
			parts[n] = notation(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *value.Dict:
		parts := make([]string, x.Len())
		for n := range parts {
			k, e := x.At(n)
			parts[n] = notation(value.String(k)) + ": " + notation(e)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return value.Repr(v)
}
