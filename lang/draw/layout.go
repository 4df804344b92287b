package draw

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/intendant/intendant/diag"
)

// sweeps is how often the order within columns and the heights are improved.
const sweeps = 16

// layPart places a connected part of a graph, from (0, 0) on.
func layPart(g *Graph, nodes []int) *picture {
	p := &picture{g: g, loops: map[int][]int{}}
	place := make(map[int]int, len(nodes))
	for k, n := range nodes {
		place[n] = k
		p.boxes = append(p.boxes, box{node: n})
	}
	type link struct{ from, to, edge int }
	var links []link
	for i, e := range g.Edges {
		from, ok := place[e.From]
		if !ok {
			continue
		}
		to := place[e.To]
		if from == to {
			p.loops[e.From] = append(p.loops[e.From], i)
			continue
		}
		if e.Kind == Parent {
			from, to = to, from
		}
		links = append(links, link{from, to, i})
	}
	next := make([][]int, len(p.boxes))
	for _, l := range links {
		next[l.from] = append(next[l.from], l.to)
	}
	rank := order(next)
	for i := range links { // what leads back is turned round
		if l := &links[i]; rank[l.from] > rank[l.to] {
			l.from, l.to = l.to, l.from
		}
	}
	pairs := make([][2]int, len(links))
	for i, l := range links {
		pairs[i] = [2]int{l.from, l.to}
	}
	for k, layer := range layers(rank, pairs) {
		p.boxes[k].layer = layer
	}
	for _, l := range links {
		from := l.from
		r := route{edge: l.edge}
		e := g.Edges[l.edge]
		r.flipped = place[e.From] != l.from
		for p.boxes[from].layer+1 < p.boxes[l.to].layer {
			p.boxes = append(p.boxes, box{node: -1, layer: p.boxes[from].layer + 1, h: labelGap})
			r.segments = append(r.segments, p.connect(from, len(p.boxes)-1))
			from = len(p.boxes) - 1
		}
		r.segments = append(r.segments, p.connect(from, l.to))
		p.routes = append(p.routes, r)
	}
	p.measure()
	columns := p.columns()
	p.improve(columns)
	p.across(columns)
	p.down(columns)
	p.ends()
	p.labels(columns)
	return p
}

func (p *picture) connect(from, to int) int {
	p.segments = append(p.segments, segment{from: from, to: to})
	s := len(p.segments) - 1
	p.boxes[from].right = append(p.boxes[from].right, s)
	p.boxes[to].left = append(p.boxes[to].left, s)
	return s
}

// order numbers nodes so that few links lead backwards: those that close a circle, seen from the first node.
func order(next [][]int) []int {
	rank := make([]int, len(next))
	state := make([]byte, len(next)) // 0 new, 1 open, 2 done
	n := len(next)
	type frame struct{ node, at int }
	for start := range next {
		if state[start] != 0 {
			continue
		}
		state[start] = 1
		stack := []frame{{node: start}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.at < len(next[top.node]) {
				to := next[top.node][top.at]
				top.at++
				if state[to] == 0 {
					state[to] = 1
					stack = append(stack, frame{node: to})
				}
				continue
			}
			n--
			rank[top.node] = n
			state[top.node] = 2
			stack = stack[:len(stack)-1]
		}
	}
	return rank
}

// layers gives each node a column to the right of those that lead to it, and as near to what it leads to as that allows.
func layers(rank []int, links [][2]int) []int {
	byRank := make([]int, len(rank))
	for n, r := range rank {
		byRank[r] = n
	}
	in, out := make([][]int, len(rank)), make([][]int, len(rank))
	for _, l := range links {
		out[l[0]] = append(out[l[0]], l[1])
		in[l[1]] = append(in[l[1]], l[0])
	}
	layer := make([]int, len(rank))
	for _, n := range byRank {
		for _, before := range in[n] {
			layer[n] = max(layer[n], layer[before]+1)
		}
	}
	for _, n := range slices.Backward(byRank) {
		if len(out[n]) == 0 || len(in[n]) > len(out[n]) {
			continue
		}
		nearest := math.MaxInt
		for _, after := range out[n] {
			nearest = min(nearest, layer[after])
		}
		layer[n] = nearest - 1
	}
	return layer
}

// measure sets the sizes of the boxes of nodes.
func (p *picture) measure() {
	for i := range p.boxes {
		b := &p.boxes[i]
		if b.node < 0 {
			continue
		}
		n := &p.g.Nodes[b.node]
		width := textWidth(cut(n.Name, maxChars), textSize)
		width = max(width, textWidth(cut(n.Above, maxChars), smallSize))
		b.h = titleHeight
		if n.Above != "" {
			b.h += aboveHeight
		}
		for _, line := range n.Lines {
			width = max(width, textWidth(cut(line, maxChars), textSize))
		}
		if len(n.Lines) > 0 {
			b.h += float64(len(n.Lines))*lineHeight + padding
		}
		b.w = max(minWidth, math.Ceil(width+2*padding))
		ends := max(len(b.left), len(b.right)+len(p.loops[b.node]))
		b.h = max(b.h, float64(ends+1)*portGap)
	}
}

// textWidth is the width of a text in the font of fixed width.
func textWidth(s string, size float64) float64 { return float64(diag.Width(s)) * size * charWidth }

// cut shortens a text to a number of columns.
func cut(s string, columns int) string {
	if diag.Width(s) <= columns {
		return s
	}
	for diag.Width(s) >= columns {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s + "…"
}

// columns lists the boxes of each column in their first order.
func (p *picture) columns() [][]int {
	var out [][]int
	for i := range p.boxes {
		for len(out) <= p.boxes[i].layer {
			out = append(out, nil)
		}
		out[p.boxes[i].layer] = append(out[p.boxes[i].layer], i)
	}
	return out
}

// improve orders the boxes of each column by the mean place of their neighbours, to and fro, and keeps the best order.
func (p *picture) improve(columns [][]int) {
	at := make([]float64, len(p.boxes))
	number := func() {
		for _, c := range columns {
			for k, b := range c {
				at[b] = float64(k)
			}
		}
	}
	number()
	best, fewest := clone(columns), p.crossings(columns, at)
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		each := func(c []int) {
			mean := make(map[int]float64, len(c))
			for _, b := range c {
				mean[b] = p.mean(b, at, sweep%2 == 0)
			}
			slices.SortStableFunc(c, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
			for k, b := range c {
				at[b] = float64(k)
			}
		}
		if sweep%2 == 0 {
			for _, c := range columns {
				each(c)
			}
		} else {
			for _, c := range slices.Backward(columns) {
				each(c)
			}
		}
		if n := p.crossings(columns, at); n < fewest {
			best, fewest = clone(columns), n
		}
	}
	for k := range columns {
		copy(columns[k], best[k])
	}
	number()
	if len(p.boxes) <= maxExchange {
		p.exchange(columns, at, fewest)
	}
}

// maxExchange is up to how many boxes neighbours are exchanged one by one, which takes time.
const maxExchange = 500

// exchange swaps neighbours in columns as long as that takes crossings away.
func (p *picture) exchange(columns [][]int, at []float64, fewest int) {
	for better := true; better && fewest > 0; {
		better = false
		for _, c := range columns {
			for k := 1; k < len(c); k++ {
				swap := func() {
					c[k-1], c[k] = c[k], c[k-1]
					at[c[k-1]], at[c[k]] = float64(k-1), float64(k)
				}
				swap()
				if n := p.crossings(columns, at); n < fewest {
					fewest, better = n, true
				} else {
					swap()
				}
			}
		}
	}
}

func clone(columns [][]int) [][]int {
	out := make([][]int, len(columns))
	for k, c := range columns {
		out[k] = slices.Clone(c)
	}
	return out
}

// mean is the mean place of the neighbours of a box to the left or to the right; its own when it has none there.
func (p *picture) mean(b int, at []float64, left bool) float64 {
	sum, n := 0.0, 0
	segments := p.boxes[b].right
	if left {
		segments = p.boxes[b].left
	}
	for _, s := range segments {
		other := p.segments[s].to
		if left {
			other = p.segments[s].from
		}
		sum += at[other]
		n++
	}
	if n == 0 {
		return at[b]
	}
	return sum / float64(n)
}

// crossings counts the pairs of lines that cross.
func (p *picture) crossings(columns [][]int, at []float64) int {
	total := 0
	for _, c := range columns {
		var ends []int // of the segments to the right, from the top
		for _, b := range c {
			from := len(ends)
			for _, s := range p.boxes[b].right {
				ends = append(ends, int(at[p.segments[s].to]))
			}
			slices.Sort(ends[from:])
		}
		// Inversions, by a tree of counts.
		size := 1
		for _, e := range ends {
			size = max(size, e+1)
		}
		tree := make([]int, size+1)
		for k, e := range ends {
			before := 0
			for i := e + 1; i > 0; i -= i & -i {
				before += tree[i]
			}
			total += k - before
			for i := e + 1; i <= size; i += i & -i {
				tree[i]++
			}
		}
	}
	return total
}

// across gives each column its place from left to right. A gap is as wide as the labels in it.
func (p *picture) across(columns [][]int) {
	x := 0.0
	label := make([]float64, len(columns))
	for _, r := range p.routes {
		layer := p.boxes[p.segments[r.segments[0]].from].layer
		label[layer] = max(label[layer], textWidth(cut(p.g.Edges[r.edge].Label, maxLabel), smallSize))
	}
	for k, c := range columns {
		width := 0.0
		for _, b := range c {
			width = max(width, p.boxes[b].w)
			if n := p.boxes[b].node; n >= 0 {
				for _, e := range p.loops[n] {
					label[k] = max(label[k], loopWidth+textWidth(cut(p.g.Edges[e].Label, maxLabel), smallSize))
				}
			}
		}
		for _, b := range c {
			p.boxes[b].x, p.boxes[b].side = x, x+width
			if p.boxes[b].node < 0 {
				p.boxes[b].w = width
			}
		}
		x += width
		p.width = x
		if label[k] > 0 && k+1 == len(columns) { // lines from the last column to itself
			p.width += label[k] + loopWidth
		}
		x += columnGap + label[k]
	}
}

// down chooses heights within the columns: boxes come as near to the mean of their neighbours as the others let them.
func (p *picture) down(columns [][]int) {
	for _, c := range columns {
		y := 0.0
		for _, b := range c {
			p.boxes[b].y = y
			y += p.boxes[b].h + boxGap
		}
	}
	middles := make([]float64, len(p.boxes))
	set := func() {
		for i := range p.boxes {
			middles[i] = p.boxes[i].middle()
		}
	}
	for sweep := range sweeps {
		each := func(c []int) {
			set()
			want := make([]float64, len(c))
			weight := make([]float64, len(c))
			for k, b := range c {
				l, r := p.mean(b, middles, true), p.mean(b, middles, false)
				m := (l*float64(len(p.boxes[b].left)) + r*float64(len(p.boxes[b].right))) / float64(max(1, len(p.boxes[b].left)+len(p.boxes[b].right)))
				if len(p.boxes[b].left)+len(p.boxes[b].right) == 0 {
					m = middles[b]
				}
				want[k], weight[k] = m-p.boxes[b].h/2, 1
				if p.boxes[b].node < 0 {
					weight[k] = 4 // bends are ugly
				}
			}
			sizes := make([]float64, len(c))
			for k, b := range c {
				sizes[k] = p.boxes[b].h + boxGap
			}
			for k, y := range spread(want, sizes, weight) {
				p.boxes[c[k]].y = y
			}
		}
		if sweep%2 == 0 {
			for _, c := range columns {
				each(c)
			}
		} else {
			for _, c := range slices.Backward(columns) {
				each(c)
			}
		}
	}
	top := math.Inf(1)
	for i := range p.boxes {
		top = min(top, p.boxes[i].y)
	}
	for i := range p.boxes {
		p.boxes[i].y -= top
		p.height = max(p.height, p.boxes[i].y+p.boxes[i].h)
	}
}

// spread moves things along a line as little as possible so that each begins where the one before it ends or later: the least sum
// of weighted squares, found by joining those that would overlap.
func spread(want, sizes, weight []float64) []float64 {
	type block struct {
		first, last   int
		place, weight float64 // of its first thing, as wanted by all
	}
	var blocks []block
	offset := make([]float64, len(want)) // of a thing in its block
	for i := range want {
		blocks = append(blocks, block{i, i, want[i], weight[i]})
		for len(blocks) > 1 {
			a, b := &blocks[len(blocks)-2], blocks[len(blocks)-1]
			length := offset[a.last] + sizes[a.last]
			if a.place+length <= b.place {
				break
			}
			for k := b.first; k <= b.last; k++ {
				offset[k] += length
			}
			a.place = (a.place*a.weight + (b.place-length)*b.weight) / (a.weight + b.weight)
			a.weight += b.weight
			a.last = b.last
			blocks = blocks[:len(blocks)-1]
		}
	}
	out := make([]float64, len(want))
	for _, b := range blocks {
		for k := b.first; k <= b.last; k++ {
			out[k] = b.place + offset[k]
		}
	}
	return out
}

// ends spreads the ends of lines over the sides of the boxes, in the order of the other ends.
func (p *picture) ends() {
	for i := range p.boxes {
		b := &p.boxes[i]
		slices.SortStableFunc(b.left, func(s, t int) int {
			return cmp.Compare(p.boxes[p.segments[s].from].middle(), p.boxes[p.segments[t].from].middle())
		})
		slices.SortStableFunc(b.right, func(s, t int) int {
			return cmp.Compare(p.boxes[p.segments[s].to].middle(), p.boxes[p.segments[t].to].middle())
		})
		for k, s := range b.left {
			p.segments[s].y1 = b.y + b.h*float64(k+1)/float64(len(b.left)+1)
		}
		n := len(b.right)
		if b.node >= 0 {
			n += len(p.loops[b.node]) // which are below
		}
		for k, s := range b.right {
			p.segments[s].y0 = b.y + b.h*float64(k+1)/float64(n+1)
		}
	}
}

// labels places the text of each line in the gap to the right of where it starts, so that none covers another.
func (p *picture) labels(columns [][]int) {
	byGap := make([][]*route, len(columns))
	for i := range p.routes {
		r := &p.routes[i]
		s := p.segments[r.segments[0]]
		k := p.boxes[s.from].layer
		r.labelX = (p.boxes[s.from].side + p.boxes[s.to].x) / 2
		r.labelY = (s.y0 + s.y1) / 2
		if p.g.Edges[r.edge].Label != "" {
			byGap[k] = append(byGap[k], r)
		}
	}
	for _, rs := range byGap {
		slices.SortStableFunc(rs, func(a, b *route) int { return cmp.Compare(a.labelY, b.labelY) })
		want, sizes, weight := make([]float64, len(rs)), make([]float64, len(rs)), make([]float64, len(rs))
		for k, r := range rs {
			want[k], sizes[k], weight[k] = r.labelY, labelGap, 1
		}
		for k, y := range spread(want, sizes, weight) {
			rs[k].labelY = y
		}
	}
}

// pack puts parts into rows that make up a picture somewhat wider than high, the large ones first.
func (p *picture) pack(parts []*picture) {
	area, widest := 0.0, 0.0
	for _, q := range parts {
		area += (q.width + 2*boxGap) * (q.height + 2*boxGap)
		widest = max(widest, q.width)
	}
	slices.SortStableFunc(parts, func(a, b *picture) int { return cmp.Compare(b.height, a.height) })
	limit := max(widest, math.Sqrt(area*1.7))
	x, y, row := margin, margin, 0.0
	for _, q := range parts {
		if x > margin && x+q.width > limit+margin {
			x, y, row = margin, y+row+2*boxGap, 0
		}
		p.add(q, x, y)
		x += q.width + 2*boxGap
		row = max(row, q.height)
		p.width = max(p.width, x-2*boxGap+margin)
		p.height = max(p.height, y+row+margin)
	}
}

// add puts a part at a place.
func (p *picture) add(q *picture, x, y float64) {
	boxes, segments := len(p.boxes), len(p.segments)
	for _, b := range q.boxes {
		b.x, b.y, b.side = b.x+x, b.y+y, b.side+x
		p.boxes = append(p.boxes, b)
	}
	for _, s := range q.segments {
		s.from, s.to, s.y0, s.y1 = s.from+boxes, s.to+boxes, s.y0+y, s.y1+y
		p.segments = append(p.segments, s)
	}
	for _, r := range q.routes {
		r.labelX, r.labelY = r.labelX+x, r.labelY+y
		for k := range r.segments {
			r.segments[k] += segments
		}
		p.routes = append(p.routes, r)
	}
	maps.Copy(p.loops, q.loops)
}
