package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/value"
)

// graphFlags are the flags of intendant graph.
type graphFlags struct {
	compileFlags
	types     bool
	instances bool
	output    string
	all       bool
}

// newGraphCommand draws the types or the instances of a project.
func newGraphCommand(g *globals) *cobra.Command {
	f := &graphFlags{}
	f.g = g
	cmd := &cobra.Command{
		Use:   "graph [DIR]",
		Short: "Draw the types or the instances of a project, as DOT or Mermaid text",
		Long: `Compile the project in DIR (default: the current directory) and write a graph of its entities with their attributes, parents
and relations, or of its instances and the relations between them. What belongs to the built-in modules is left out where
nothing of the project refers to it directly; --all shows it.`,
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
	fl.BoolVar(&f.types, "types", false, "draw the entities (default)")
	fl.BoolVar(&f.instances, "instances", false, "draw the instances")
	fl.StringVarP(&f.output, "output", "o", "dot", "form of the graph: dot or mermaid")
	fl.BoolVar(&f.all, "all", false, "draw also what belongs to the built-in modules")
	fl.StringVar(&f.inputs, "inputs", "", "read facts, parameters and settings from this JSON file")
	fl.StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	f.pythonFlags(fl)
	fl.Int64Var(&f.maxSteps, "max-steps", eval.DefaultMaxSteps, "give up on a model that takes more steps than this")
	f.format = "text"
	return cmd
}

func (f *graphFlags) run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	if f.output != "dot" && f.output != "mermaid" {
		return &exitError{code: exitUsage, err: fmt.Errorf("--output must be dot or mermaid, not %q", f.output)}
	}
	if f.types && f.instances {
		return &exitError{code: exitUsage, err: errors.New("--types and --instances exclude each other: run the command twice")}
	}
	opts, err := f.options()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	return f.project(ctx, dir, opts, func(res *lang.Result, ds diag.List) error {
		if ds.HasErrors() {
			return f.report(stderr, res, ds)
		}
		g := typeGraph(res.Model, f.all)
		if f.instances {
			g = instanceGraph(res.Model, f.all)
		}
		w := bufio.NewWriter(stdout)
		if f.output == "mermaid" {
			g.mermaid(w)
		} else {
			g.dot(w)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("writing the graph: %w", err)
		}
		return nil
	})
}

// graph is what is drawn. Edges refer to nodes by their place.
type graph struct {
	nodes []graphNode
	edges []graphEdge
}

// graphNode is a box: a title and lines of text.
type graphNode struct {
	title string
	lines []string
}

// graphEdge is a line between two boxes. A parent edge leads from an entity to its parent; one without a direction stands for
// a relation with two ends.
type graphEdge struct {
	from, to int
	label    string
	parent   bool
	directed bool
}

func builtIn(at *check.Loc) bool {
	return at == nil || at.File == nil || strings.HasPrefix(at.File.Name, "{")
}

// entities lists all entities in the order of their definition. All of them descend from std::Entity, which has instances in
// every model since the standard module makes some.
func entities(m *eval.Model) []*check.Entity {
	seen := map[*check.Entity]bool{}
	var out []*check.Entity
	var visit func(e *check.Entity)
	visit = func(e *check.Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		out = append(out, e)
		for _, p := range e.Parents {
			visit(p)
		}
		for _, c := range e.Children {
			visit(c)
		}
	}
	for _, i := range m.Instances {
		visit(i.Entity())
	}
	slices.SortFunc(out, func(a, b *check.Entity) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// typeGraph is the graph of the entities. Of the built-in ones only those are in it that one of the project's own extends or has
// a relation with, unless all are wanted.
func typeGraph(m *eval.Model, all bool) *graph {
	known := entities(m)
	shown := map[*check.Entity]bool{}
	for _, e := range known {
		if !all && builtIn(&e.At) {
			continue
		}
		shown[e] = true
		for _, p := range e.Parents {
			shown[p] = shown[p] || all || p.FullName() != "std::Entity"
		}
		for _, a := range e.Own {
			if target, ok := a.Type.(*check.Entity); ok && a.Relation {
				shown[target] = true
			}
		}
	}
	g := &graph{}
	place := map[*check.Entity]int{}
	for _, e := range known {
		if !shown[e] {
			continue
		}
		n := graphNode{title: e.FullName()}
		for _, a := range e.Own {
			if !a.Relation {
				n.lines = append(n.lines, fmt.Sprintf("%s %s", a.Type, a.Name))
			}
		}
		place[e] = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	for _, e := range known {
		if !shown[e] {
			continue
		}
		for _, p := range e.Parents {
			if shown[p] {
				g.edges = append(g.edges, graphEdge{from: place[e], to: place[p], parent: true, directed: true})
			}
		}
		for _, a := range e.Own {
			target, ok := a.Type.(*check.Entity)
			if !ok || !a.Relation || !shown[target] || !leads(a) {
				continue
			}
			edge := graphEdge{from: place[e], to: place[target], label: relationEnd(a), directed: a.End == nil}
			if a.End != nil {
				edge.label = relationEnd(a) + " -- " + relationEnd(a.End)
			}
			g.edges = append(g.edges, edge)
		}
	}
	return g
}

// leads reports whether a relation is drawn from this end: each is drawn once.
func leads(a *check.Attribute) bool {
	if a.End == nil {
		return true
	}
	return cmp.Or(cmp.Compare(a.Entity.ID, a.End.Entity.ID), cmp.Compare(a.Name, a.End.Name)) <= 0
}

// relationEnd is a relation with its multiplicity, as the language writes it.
func relationEnd(a *check.Attribute) string {
	switch {
	case a.Low == a.High:
		return fmt.Sprintf("%s [%d]", a.Name, a.Low)
	case a.High < 0:
		return fmt.Sprintf("%s [%d:]", a.Name, a.Low)
	}
	return fmt.Sprintf("%s [%d:%d]", a.Name, a.Low, a.High)
}

// instanceGraph is the graph of the instances, without those that the built-in modules make unless all are wanted.
func instanceGraph(m *eval.Model, all bool) *graph {
	g := &graph{}
	place := map[value.Instance]int{}
	for _, i := range m.Instances {
		if all || !builtIn(i.At()) {
			place[i] = len(g.nodes)
			g.nodes = append(g.nodes, instanceNode(i))
		}
	}
	for _, i := range m.Instances {
		from, ok := place[i]
		if !ok {
			continue
		}
		for _, a := range i.Entity().All {
			if !a.Relation || !leads(a) {
				continue
			}
			for _, other := range related(i, a.Name) {
				to, ok := place[other]
				if !ok || a.End == a && to < from { // a relation that is its own inverse is seen from both sides
					continue
				}
				g.edges = append(g.edges, graphEdge{from: from, to: to, label: a.Name, directed: a.End == nil})
			}
		}
	}
	return g
}

// instanceNode shows an instance with the attributes that identify it: those of its indexes.
func instanceNode(i *eval.Instance) graphNode {
	n := graphNode{title: i.TypeName() + "#" + strconv.Itoa(i.Serial())}
	names := map[string]bool{}
	for _, e := range i.Entity().Indexed {
		for _, index := range e.Indexes {
			for _, name := range index.Names {
				names[name] = true
			}
		}
	}
	for _, a := range i.Entity().All {
		if a.Relation || !names[a.Name] {
			continue
		}
		if v, _, err := i.Attribute(a.Name); err == nil {
			n.lines = append(n.lines, a.Name+" = "+value.Repr(v))
		}
	}
	return n
}

// related lists the members of a relation; a relation without a value has none.
func related(i *eval.Instance, name string) []value.Instance {
	v, _, err := i.Attribute(name)
	if err != nil {
		return nil
	}
	switch x := v.(type) {
	case value.Instance:
		return []value.Instance{x}
	case *value.List:
		var out []value.Instance
		for _, e := range x.Items {
			if o, ok := e.(value.Instance); ok {
				out = append(out, o)
			}
		}
		return out
	}
	return nil
}

// dot writes the graph in the language of Graphviz. Failures of w are kept by it.
func (g *graph) dot(w *bufio.Writer) {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "")
	_, _ = w.WriteString("digraph model {\n    rankdir=LR;\n    node [shape=box];\n")
	for i, n := range g.nodes {
		label := quote.Replace(n.title)
		for _, line := range n.lines {
			label += `\n` + quote.Replace(line)
		}
		_, _ = fmt.Fprintf(w, "    n%d [label=\"%s\"];\n", i, label)
	}
	for _, e := range g.edges {
		style := ""
		switch {
		case e.parent:
			style = "arrowhead=empty"
		case e.directed:
			style = fmt.Sprintf("label=\"%s\"", quote.Replace(e.label))
		default:
			style = fmt.Sprintf("label=\"%s\", dir=none", quote.Replace(e.label))
		}
		_, _ = fmt.Fprintf(w, "    n%d -> n%d [%s];\n", e.from, e.to, style)
	}
	_, _ = w.WriteString("}\n")
}

// mermaid writes the graph as a flowchart of Mermaid. Failures of w are kept by it.
func (g *graph) mermaid(w *bufio.Writer) {
	quote := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;", "\n", "<br/>", "\r", "")
	_, _ = w.WriteString("flowchart LR\n")
	for i, n := range g.nodes {
		label := quote.Replace(n.title)
		for _, line := range n.lines {
			label += "<br/>" + quote.Replace(line)
		}
		_, _ = fmt.Fprintf(w, "    n%d[\"%s\"]\n", i, label)
	}
	for _, e := range g.edges {
		switch {
		case e.parent:
			_, _ = fmt.Fprintf(w, "    n%d -.->|\"extends\"| n%d\n", e.from, e.to)
		case e.directed:
			_, _ = fmt.Fprintf(w, "    n%d -->|\"%s\"| n%d\n", e.from, quote.Replace(e.label), e.to)
		default:
			_, _ = fmt.Fprintf(w, "    n%d ---|\"%s\"| n%d\n", e.from, quote.Replace(e.label), e.to)
		}
	}
}
