package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// random is a graph with all kinds of edges, circles, and lines from a box to itself.
func random(seed uint64) *Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &Graph{Title: "random"}
	n := 1 + r.IntN(40)
	for i := range n {
		node := Node{Name: fmt.Sprintf("Node%d", i), Group: fmt.Sprint(r.IntN(9)), Tip: "tip"}
		if r.IntN(2) == 0 {
			node.Above = "some::namespace"
		}
		for range r.IntN(8) {
			node.Lines = append(node.Lines, strings.Repeat("x", r.IntN(60)))
		}
		g.Nodes = append(g.Nodes, node)
	}
	for range r.IntN(2 * n) {
		g.Edges = append(g.Edges, Edge{From: r.IntN(n), To: r.IntN(n), Kind: Kind(r.IntN(3)), Label: strings.Repeat("l", r.IntN(20))})
	}
	return g
}

// TestLayout holds of random graphs what makes a picture readable.
func TestLayout(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		g := random(seed)
		p := lay(g)
		shown := map[int]bool{}
		for i := range p.boxes {
			a := &p.boxes[i]
			if a.node >= 0 {
				shown[a.node] = true
			}
			if a.x < 0 || a.y < 0 || a.x+a.w > p.width || a.y+a.h > p.height || math.IsNaN(a.y) {
				t.Fatalf("seed %d: box %d is outside of the picture", seed, i)
			}
			for k := range p.boxes[:i] {
				b := &p.boxes[k]
				if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h-0.01 && b.y < a.y+a.h-0.01 {
					t.Fatalf("seed %d: boxes %d and %d overlap", seed, k, i)
				}
			}
		}
		if len(shown) != len(g.Nodes) {
			t.Fatalf("seed %d: %d of %d nodes are shown", seed, len(shown), len(g.Nodes))
		}
		lines := 0
		for _, es := range p.loops {
			lines += len(es)
		}
		for _, r := range p.routes {
			lines++
			e := g.Edges[r.edge]
			first, last := p.segments[r.segments[0]], p.segments[r.segments[len(r.segments)-1]]
			ends := [2]int{p.boxes[first.from].node, p.boxes[last.to].node}
			if r.flipped {
				slices.Reverse(ends[:])
			}
			if ends != [2]int{e.From, e.To} {
				t.Fatalf("seed %d: edge %d leads from %d to %d, want %d to %d", seed, r.edge, ends[0], ends[1], e.From, e.To)
			}
			for _, s := range r.segments {
				from, to := &p.boxes[p.segments[s].from], &p.boxes[p.segments[s].to]
				if from.layer+1 != to.layer || from.side >= to.x {
					t.Fatalf("seed %d: edge %d does not lead to the right", seed, r.edge)
				}
			}
		}
		if lines != len(g.Edges) {
			t.Fatalf("seed %d: %d of %d edges are drawn", seed, lines, len(g.Edges))
		}
		if again := lay(g); !slices.EqualFunc(p.boxes, again.boxes, func(a, b box) bool { return a.x == b.x && a.y == b.y }) {
			t.Fatalf("seed %d: the same graph gives two pictures", seed)
		}
	}
}

// TestOrderOfParents expects parents to the left of their children, whatever the order of the edges.
func TestOrderOfParents(t *testing.T) {
	t.Parallel()
	g := &Graph{
		Nodes: []Node{{Name: "Child"}, {Name: "Parent"}, {Name: "Part"}},
		Edges: []Edge{{From: 0, To: 1, Kind: Parent}, {From: 0, To: 2}},
	}
	x := map[int]float64{}
	for _, b := range lay(g).boxes {
		x[b.node] = b.x
	}
	if !(x[1] < x[0] && x[0] < x[2]) {
		t.Errorf("parent at %v, child at %v, part at %v", x[1], x[0], x[2])
	}
}

func TestNoNeedlessCrossing(t *testing.T) {
	t.Parallel()
	g := &Graph{Nodes: make([]Node, 6), Edges: []Edge{{From: 0, To: 5}, {From: 1, To: 4}, {From: 2, To: 3}, {From: 0, To: 4}}}
	for _, nodes := range components(g) {
		p := layPart(g, nodes)
		columns := p.columns()
		slices.SortFunc(columns[0], func(a, b int) int { return int(p.boxes[a].y - p.boxes[b].y) })
		slices.SortFunc(columns[1], func(a, b int) int { return int(p.boxes[a].y - p.boxes[b].y) })
		at := make([]float64, len(p.boxes))
		for _, c := range columns {
			for k, b := range c {
				at[b] = float64(k)
			}
		}
		if n := p.crossings(columns, at); n != 0 {
			t.Errorf("%d lines cross", n)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	got := spread([]float64{0, 1, 1, 50}, []float64{10, 10, 10, 10}, []float64{1, 1, 1, 1})
	want := []float64{-9.333, 0.667, 10.667, 50}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.001 {
			t.Fatalf("spread = %v, want %v", got, want)
		}
	}
}

// TestSVG reads pictures as XML and looks for their texts.
func TestSVG(t *testing.T) {
	t.Parallel()
	hostile := &Graph{
		Title: "a <b> & \"c\"",
		Nodes: []Node{{
			Name: "<script>alert(1)</script>", Above: "日本", Lines: []string{"a\x00\x1b[31m]]>", "\xff", strings.Repeat("é", 100)},
			Tip: "one\ntwo & three", Group: "g",
		}},
		Edges: []Edge{{Label: "<&>", Kind: Arrow}},
	}
	for _, g := range []*Graph{{}, hostile, random(7), {Nodes: make([]Node, 1)}} {
		var b bytes.Buffer
		if err := SVG(&b, g); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for d := xml.NewDecoder(&b); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("not well-formed: %v", err)
			}
			if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "script" {
				t.Error("a text became an element")
			}
			if c, ok := tok.(xml.CharData); ok {
				texts = append(texts, string(c))
			}
		}
		for _, n := range g.Nodes {
			if n.Name != "" && !slices.Contains(texts, n.Name) {
				t.Errorf("%q is not in the picture", n.Name)
			}
		}
		if g == hostile && !slices.Contains(texts, "one\ntwo & three") {
			t.Errorf("the tip is not in the picture: %q", texts)
		}
	}
	if err := SVG(broken{}, hostile); !errors.Is(err, errBroken) {
		t.Errorf("SVG = %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func BenchmarkSVG(b *testing.B) {
	g := &Graph{}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1000 {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprintf("Node%d", i), Lines: []string{"a", "b"}})
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: r.IntN(i), To: i})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := SVG(io.Discard, g); err != nil {
			b.Fatal(err)
		}
	}
}
