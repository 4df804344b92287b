package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/draw"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
)

// graphFlags are the flags of intendant graph.
type graphFlags struct {
	compileFlags
	types      bool
	instances  bool
	form       string
	all        bool
	namespaces []string
	entities   []string
	depth      int
	maxNodes   int
}

// newGraphCommand draws the types or the instances of a project.
func newGraphCommand(g *globals) *cobra.Command {
	f := &graphFlags{}
	f.g = g
	cmd := &cobra.Command{
		Use:   "graph [DIR]",
		Short: "Draw the types or the instances of a project",
		Long: `Compile the project in DIR (default: the current directory) and write a graph of its entities with their attributes, parents
and relations, or of its instances and the relations between them: as an SVG picture, or as text for Graphviz or Mermaid. What
belongs to the built-in modules is left out where nothing of the project refers to it directly; --all shows it.

A large model is drawn in parts: --namespace and --type choose what is shown, --depth adds what that is related to. What is
chosen by both must fit both.`,
		Example: `  intendant graph --format svg >types.svg
  intendant graph --instances --type web::Server --depth 2 --format svg >server.svg`,
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
	fl.StringVarP(&f.form, "format", "o", "dot", "form of the graph: svg, dot or mermaid")
	fl.BoolVar(&f.all, "all", false, "draw also what belongs to the built-in modules")
	fl.StringSliceVar(&f.namespaces, "namespace", nil, "draw what belongs to this namespace or one below it")
	fl.StringSliceVar(&f.entities, "type", nil, "draw this entity and those that descend from it, or their instances")
	fl.IntVar(&f.depth, "depth", 1, "with --namespace or --type: how many steps around what they choose are drawn too")
	fl.IntVar(&f.maxNodes, "max-nodes", defaultMaxNodes, "refuse to draw more boxes than this")
	fl.StringVar(&f.inputs, "inputs", "", "read facts, parameters and settings from this JSON file")
	fl.StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	f.pythonFlags(fl)
	fl.Int64Var(&f.maxSteps, "max-steps", eval.DefaultMaxSteps, "give up on a model that takes more steps than this")
	f.compileFlags.format = "text"
	return cmd
}

// defaultMaxNodes is how many boxes can still be made out in a picture.
const defaultMaxNodes = 400

func (f *graphFlags) run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	switch {
	case f.form != "dot" && f.form != "mermaid" && f.form != "svg":
		return &exitError{code: exitUsage, err: fmt.Errorf("--format must be svg, dot or mermaid, not %q", f.form)}
	case f.types && f.instances:
		return &exitError{code: exitUsage, err: errors.New("--types and --instances exclude each other: run the command twice")}
	case f.depth < 0 || f.maxNodes < 1:
		return &exitError{code: exitUsage, err: errors.New("--depth and --max-nodes are numbers of steps and of boxes, from 0 and from 1")}
	}
	opts, err := f.options()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	collectLate()
	var refused error
	err = f.project(ctx, dir, opts, func(res *lang.Result, ds diag.List) error {
		if ds.HasErrors() {
			return f.report(stderr, res, ds)
		}
		g := typeGraph(res.Model, f.all)
		if f.instances {
			g = instanceGraph(res.Model, f.all)
		}
		if g, refused = f.choose(g, res.Model); refused != nil {
			return nil //nolint:nilerr // told below, with the exit status of a wrong command line
		}
		return g.write(stdout, f.form)
	})
	if err == nil && refused != nil {
		err = &exitError{code: exitUsage, err: refused}
	}
	return err
}

// choose is the part of a graph that the flags ask for. The error says that there is nothing of it, or too much.
func (f *graphFlags) choose(g *graph, m *eval.Model) (*graph, error) {
	if len(f.namespaces)+len(f.entities) > 0 {
		var wanted []*check.Entity
		for _, name := range f.entities {
			found := slices.IndexFunc(entities(m), func(e *check.Entity) bool {
				return e.FullName() == name || e.FullName() == module.Main+"::"+name
			})
			if found < 0 {
				var names []string
				for _, e := range entities(m) {
					names = append(names, strings.TrimPrefix(e.FullName(), module.Main+"::"))
				}
				text := "--type: the model has no entity " + name
				if like := diag.Closest(name, names); like != "" {
					text += "; did you mean " + like + "?"
				}
				return nil, errors.New(text)
			}
			wanted = append(wanted, entities(m)[found])
		}
		g = g.around(f.depth, func(n *graphNode) bool {
			return (len(wanted) == 0 || slices.ContainsFunc(wanted, n.entity.IsA)) &&
				(len(f.namespaces) == 0 || slices.ContainsFunc(f.namespaces, func(ns string) bool { return n.entity.NS.Full == ns || strings.HasPrefix(n.entity.NS.Full, ns+"::") }))
		})
		if len(g.nodes) == 0 {
			return nil, errors.New("nothing in the model is of these namespaces and types")
		}
	}
	if len(g.nodes) > f.maxNodes {
		counts := map[string]int{}
		for i := range g.nodes {
			counts[g.nodes[i].entity.FullName()]++
		}
		names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
		advice := "choose a part of it with --namespace, --type and --depth, or raise --max-nodes"
		if f.instances {
			var most []string
			for _, name := range names[:min(len(names), 3)] {
				most = append(most, fmt.Sprintf("%d of %s", counts[name], name))
			}
			advice += "; most are instances: " + strings.Join(most, ", ")
		}
		return nil, fmt.Errorf("the graph has %d boxes, more than the %d that can be read: %s", len(g.nodes), f.maxNodes, advice)
	}
	return g, nil
}

// around is the part of a graph that holds the chosen nodes and those within a number of steps of them.
func (g *graph) around(steps int, chosen func(*graphNode) bool) *graph {
	near := make([][]int, len(g.nodes))
	for _, e := range g.edges {
		near[e.from] = append(near[e.from], e.to)
		near[e.to] = append(near[e.to], e.from)
	}
	keep := make([]bool, len(g.nodes))
	var rim []int
	for i := range g.nodes {
		if chosen(&g.nodes[i]) {
			keep[i] = true
			rim = append(rim, i)
		}
	}
	for range steps {
		var next []int
		for _, i := range rim {
			for _, k := range near[i] {
				if !keep[k] {
					keep[k] = true
					next = append(next, k)
				}
			}
		}
		rim = next
	}
	out := &graph{title: g.title, instances: g.instances}
	place := make([]int, len(g.nodes))
	for i, n := range g.nodes {
		if keep[i] {
			place[i] = len(out.nodes)
			out.nodes = append(out.nodes, n)
		}
	}
	for _, e := range g.edges {
		if keep[e.from] && keep[e.to] {
			e.from, e.to = place[e.from], place[e.to]
			out.edges = append(out.edges, e)
		}
	}
	return out
}

// write writes the graph in one of its forms.
func (g *graph) write(stdout io.Writer, form string) error {
	w := bufio.NewWriter(stdout)
	switch form {
	case "svg":
		if err := draw.SVG(w, g.picture()); err != nil {
			return fmt.Errorf("drawing the graph: %w", err)
		}
	case "mermaid":
		g.mermaid(w)
	default:
		g.dot(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the graph: %w", err)
	}
	return nil
}

// picture is the graph as it is drawn.
func (g *graph) picture() *draw.Graph {
	out := &draw.Graph{Title: g.title}
	for i := range g.nodes {
		n := &g.nodes[i]
		space, name := "", n.title
		if i := strings.LastIndex(n.title, "::"); i >= 0 {
			space, name = n.title[:i], n.title[i+2:]
		}
		d := draw.Node{Name: name, Above: space, Lines: n.lines, Tip: strings.Join(append([]string{n.title, n.place}, n.lines...), "\n"), Group: n.entity.NS.Full}
		if space == module.Main {
			d.Above = ""
		}
		if g.instances {
			d.Group = n.entity.FullName()
		}
		out.Nodes = append(out.Nodes, d)
	}
	for _, e := range g.edges {
		kind := draw.Line
		switch {
		case e.parent:
			kind = draw.Parent
		case e.directed:
			kind = draw.Arrow
		}
		out.Edges = append(out.Edges, draw.Edge{From: e.from, To: e.to, Label: e.label, Kind: kind})
	}
	return out
}

// graph is what is drawn. Edges refer to nodes by their place.
type graph struct {
	title     string
	instances bool // in place of entities
	nodes     []graphNode
	edges     []graphEdge
}

// graphNode is a box: a title and lines of text.
type graphNode struct {
	title  string
	lines  []string
	entity *check.Entity
	place  string // in the sources
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
	g := &graph{title: "entities"}
	place := map[*check.Entity]int{}
	for _, e := range known {
		if !shown[e] {
			continue
		}
		n := graphNode{title: e.FullName(), entity: e, place: e.At.FileLine()}
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
	g := &graph{title: "instances", instances: true}
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
	n := graphNode{title: instanceName(i), entity: i.Entity(), place: i.At().FileLine()}
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
		var label strings.Builder
		label.WriteString(quote.Replace(n.title))
		for _, line := range n.lines {
			label.WriteString(`\n` + quote.Replace(line))
		}
		_, _ = fmt.Fprintf(w, "    n%d [label=\"%s\"];\n", i, label.String())
	}
	for _, e := range g.edges {
		var style string
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
		var label strings.Builder
		label.WriteString(quote.Replace(n.title))
		for _, line := range n.lines {
			label.WriteString("<br/>" + quote.Replace(line))
		}
		_, _ = fmt.Fprintf(w, "    n%d[\"%s\"]\n", i, label.String())
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
