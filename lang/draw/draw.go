// Package draw lays out graphs of boxes and lines in columns and draws them as SVG.
//
// The layout is that of Sugiyama and others: circles are opened, each box gets a column to the right of those that lead to it,
// the order within columns is improved by sweeps that look at the neighbours, and heights are chosen so that lines become
// straight. Everything depends on the graph alone, so that the same graph gives the same picture.
package draw

// Graph is what is drawn. Edges refer to nodes by their place.
type Graph struct {
	// Title names the picture for those who can not see it.
	Title string
	Nodes []Node
	Edges []Edge
}

// Node is a box.
type Node struct {
	// Name is the title, Above a smaller line over it; Above may be empty.
	Name, Above string
	// Lines are the text of the box. Long ones are cut.
	Lines []string
	// Tip is shown when the pointer rests on the box.
	Tip string
	// Group decides the colour of the title.
	Group string
}

// Edge is a line between two boxes, which may be the same.
type Edge struct {
	From, To int
	Label    string
	Kind     Kind
}

// Kind is the meaning of an edge.
type Kind uint8

// The kinds of edges.
const (
	// Line has no direction.
	Line Kind = iota
	// Arrow leads from a box to another.
	Arrow
	// Parent leads from a box to one that it is a special case of, which is drawn to the left.
	Parent
)

// Sizes, in pixels. The font has a fixed width, so that texts can be measured without it.
const (
	textSize    = 13.0
	smallSize   = 11.0
	charWidth   = 0.602 // of the size
	padding     = 11.0
	lineHeight  = 17.0
	titleHeight = 27.0
	aboveHeight = 13.0
	minWidth    = 96.0
	boxGap      = 22.0 // between boxes of a column
	columnGap   = 58.0 // between columns, besides labels
	portGap     = 15.0 // between the ends of lines at a box
	margin      = 20.0
	maxChars    = 44
	maxLabel    = 36
	labelGap    = 14.0
)

// box is a node in the layout, or a place where a line passes a column.
type box struct {
	node       int // -1 for a place where a line passes
	layer      int
	x, y, w, h float64
	side       float64 // where the column ends
	// left and right are the segments that end at the box, by their place.
	left, right []int
}

func (b *box) middle() float64 { return b.y + b.h/2 }

// segment is the part of a line between two neighbouring columns.
type segment struct {
	from, to int     // boxes; from is in the column to the left
	y0, y1   float64 // where it leaves and arrives
}

// route is an edge in the layout.
type route struct {
	edge     int
	flipped  bool  // drawn from the box that it leads to
	segments []int // from left to right; empty for a line from a box to itself
	labelX   float64
	labelY   float64
}

// picture is a layout.
type picture struct {
	g             *Graph
	boxes         []box
	segments      []segment
	routes        []route
	loops         map[int][]int // edges from a node to itself
	width, height float64
}

// lay places the whole graph: each connected part by itself, and the parts in rows.
func lay(g *Graph) *picture {
	all := &picture{g: g, loops: map[int][]int{}}
	var parts []*picture
	for _, nodes := range components(g) {
		parts = append(parts, layPart(g, nodes))
	}
	all.pack(parts)
	return all
}

// components lists the connected parts of a graph, each as its nodes in order.
func components(g *Graph) [][]int {
	root := make([]int, len(g.Nodes))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, e := range g.Edges {
		a, b := find(e.From), find(e.To)
		root[max(a, b)] = min(a, b)
	}
	place := map[int]int{}
	var out [][]int
	for i := range g.Nodes {
		r := find(i)
		k, ok := place[r]
		if !ok {
			k = len(out)
			place[r] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}
