package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// loopWidth is how far a line from a box to itself reaches out.
const loopWidth = 26.0

// groups is how many colours the titles have.
const groups = 6

// style has the colours for light and for dark surroundings. The colours of titles are six hues of equal lightness.
const style = `
svg { --paper: #ffffff; --box: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #6e7781; --rim: #c9d1d9; color-scheme: light dark; }
.g0 { --hue: #dbeafe; } .g1 { --hue: #dcfce7; } .g2 { --hue: #fef3c7; } .g3 { --hue: #fce7f3; } .g4 { --hue: #ede9fe; } .g5 { --hue: #e2e8f0; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --box: #161b22; --ink: #e6edf3; --soft: #9198a1; --line: #8b949e; --rim: #3d444d; }
  .g0 { --hue: #1e3a5f; } .g1 { --hue: #17402a; } .g2 { --hue: #4a3a10; } .g3 { --hue: #4d2238; } .g4 { --hue: #352a5c; } .g5 { --hue: #2d333b; }
}
.paper { fill: var(--paper); }
text { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); white-space: pre; }
.small { font-size: 11px; fill: var(--soft); }
.name { font-weight: 600; }
.box { fill: var(--box); stroke: var(--rim); }
.band { fill: var(--hue); }
.rim { fill: none; stroke: var(--rim); }
.edge path { fill: none; stroke: var(--line); stroke-width: 1.3; }
.edge:hover path { stroke: var(--ink); stroke-width: 2.4; }
.edge:hover text { fill: var(--ink); }
.edge text { font-size: 11px; fill: var(--soft); text-anchor: middle; }
.edge text.beside { text-anchor: start; }
.head { fill: none; stroke: var(--line); stroke-width: 1.3; }
.hollow { fill: var(--paper); }
`

// SVG draws a graph. The picture follows the reader's choice of light or dark, and needs nothing from outside.
func SVG(w io.Writer, g *Graph) error {
	p := lay(g)
	b := bufio.NewWriter(w)
	d := &drawing{picture: p, w: b, colours: map[string]int{}}
	for _, n := range g.Nodes { // neighbouring groups get different colours
		if _, ok := d.colours[n.Group]; !ok {
			d.colours[n.Group] = len(d.colours) % groups
		}
	}
	d.draw()
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing the drawing: %w", err)
	}
	return nil
}

// drawing writes a picture. Failures of w are kept by it.
type drawing struct {
	*picture
	w       *bufio.Writer
	colours map[string]int // of groups
}

func (d *drawing) printf(format string, args ...any) { _, _ = fmt.Fprintf(d.w, format, args...) }

// text escapes a text for XML and leaves out what XML does not know.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || r == 0xfffe || r == 0xffff {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return html.EscapeString(s)
}

// tooltip escapes a text of several lines.
func tooltip(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// number is a coordinate with one digit behind the point.
func number(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func (d *drawing) draw() {
	kinds := [3]bool{}
	for _, e := range d.g.Edges {
		kinds[e.Kind] = true
	}
	legend := 0.0
	if len(d.g.Edges) > 0 {
		legend = 24
	}
	width, height := max(d.width, minWidth+2*margin), max(d.height, 2*margin)+legend
	if legend > 0 {
		width = max(width, legendWidth(kinds)+2*margin)
	}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-label="%s">`+"\n",
		number(width), number(height), text(d.g.Title))
	d.printf("<title>%s</title>\n<style>%s</style>\n", text(d.g.Title), style)
	d.printf(`<defs>
<marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="head" d="M1 1 9 5 1 9"/></marker>
<marker id="hollow" viewBox="0 0 14 12" refX="13" refY="6" markerWidth="14" markerHeight="12" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="head hollow" d="M1 1 13 6 1 11z"/></marker>
</defs>
<rect class="paper" width="100%%" height="100%%"/>
`)
	for i := range d.routes {
		d.route(&d.routes[i])
	}
	for i := range d.boxes {
		if d.boxes[i].node >= 0 {
			d.box(&d.boxes[i])
		}
	}
	if legend > 0 {
		d.legend(kinds, height-14)
	}
	d.printf("</svg>\n")
}

func (d *drawing) box(b *box) {
	n := &d.g.Nodes[b.node]
	head := titleHeight
	if n.Above != "" {
		head += aboveHeight
	}
	d.printf(`<g class="g%d"><title>%s</title>`, d.colours[n.Group], tooltip(n.Tip))
	d.printf(`<rect class="box" x="%s" y="%s" width="%s" height="%s" rx="6"/>`, number(b.x), number(b.y), number(b.w), number(b.h))
	// The band under the title has round corners at the top alone, unless it fills the box.
	if len(n.Lines) == 0 {
		d.printf(`<rect class="band" x="%s" y="%s" width="%s" height="%s" rx="6"/>`, number(b.x), number(b.y), number(b.w), number(b.h))
	} else {
		d.printf(`<path class="band" d="M%s %sv%sa6 6 0 0 1 6-6h%sa6 6 0 0 1 6 6v%sz"/>`,
			number(b.x), number(b.y+head), number(6-head), number(b.w-12), number(head-6))
	}
	d.printf(`<rect class="rim" x="%s" y="%s" width="%s" height="%s" rx="6"/>`, number(b.x), number(b.y), number(b.w), number(b.h))
	y := b.y + 18
	if len(n.Lines) == 0 {
		y = b.y + (b.h-head)/2 + 18
	}
	if n.Above != "" {
		d.printf(`<text class="small" x="%s" y="%s">%s</text>`, number(b.x+padding), number(y-2), text(cut(n.Above, maxChars)))
		y += aboveHeight
	}
	d.printf(`<text class="name" x="%s" y="%s">%s</text>`, number(b.x+padding), number(y), text(cut(n.Name, maxChars)))
	y = b.y + head + 4
	for _, line := range n.Lines {
		y += lineHeight
		d.printf(`<text x="%s" y="%s">%s</text>`, number(b.x+padding), number(y-2), text(cut(line, maxChars)))
	}
	d.printf("</g>\n")
	d.loop(b)
}

// loop draws the lines from a box to itself, at its right side below the other lines.
func (d *drawing) loop(b *box) {
	es := d.loops[b.node]
	ends := float64(len(b.right) + len(es) + 1)
	for k, e := range es {
		y := b.y + b.h*float64(len(b.right)+k+1)/ends
		edge := &d.g.Edges[e]
		d.printf(`<g class="edge"><title>%s</title><path d="M%s %sc%s -9 %[4]s 15 0 8"%s/>`,
			text(d.tip(edge)), number(b.x+b.w), number(y-4), number(loopWidth), marker(edge.Kind, false))
		if edge.Label != "" {
			d.label(b.x+b.w+loopWidth-4, y, cut(edge.Label, maxLabel), true)
		}
		d.printf("</g>\n")
	}
}

func marker(k Kind, atStart bool) string {
	end := "end"
	if atStart {
		end = "start"
	}
	switch k {
	case Arrow:
		return ` marker-` + end + `="url(#arrow)"`
	case Parent:
		return ` marker-` + end + `="url(#hollow)"`
	default:
		return ""
	}
}

func (d *drawing) tip(e *Edge) string {
	between := " — "
	switch e.Kind {
	case Arrow:
		between = " → "
	case Parent:
		between = " extends "
	case Line:
	}
	s := d.g.Nodes[e.From].Name + between + d.g.Nodes[e.To].Name
	if e.Label != "" {
		s += ": " + e.Label
	}
	return s
}

func (d *drawing) route(r *route) {
	e := &d.g.Edges[r.edge]
	var path strings.Builder
	for k, i := range r.segments {
		s := d.segments[i]
		from, to := &d.boxes[s.from], &d.boxes[s.to]
		x0, x1 := from.side, to.x
		if k == 0 {
			fmt.Fprintf(&path, "M%s %s", number(from.x+from.w), number(s.y0))
		}
		fmt.Fprintf(&path, "H%s", number(x0)) // straight on, past the other boxes of the column
		bend := (x1 - x0) / 2
		fmt.Fprintf(&path, "C%s %s %s %s %s %s", number(x0+bend), number(s.y0), number(x1-bend), number(s.y1), number(x1), number(s.y1))
	}
	d.printf(`<g class="edge"><title>%s</title><path d="%s"%s/>`, text(d.tip(e)), path.String(), marker(e.Kind, r.flipped))
	if e.Label != "" {
		d.label(r.labelX, r.labelY, cut(e.Label, maxLabel), false)
	}
	d.printf("</g>\n")
}

// label writes the text of a line around a place, or beside it, and hides what is behind the text.
func (d *drawing) label(x, y float64, label string, beside bool) {
	width := textWidth(label, smallSize) + 6
	left, class := x-width/2, ""
	if beside {
		left, class = x, ` class="beside"`
		x += 3
	}
	d.printf(`<rect class="paper" x="%s" y="%s" width="%s" height="%s"/>`, number(left), number(y-labelGap/2), number(width), number(labelGap))
	d.printf(`<text%s x="%s" y="%s">%s</text>`, class, number(x), number(y+3.5), text(label))
}

var legends = [3]string{Line: "relation with two ends", Arrow: "relation", Parent: "extends"}

const legendLine = 34.0

func legendWidth(kinds [3]bool) float64 {
	width := 0.0
	for k, shown := range kinds {
		if shown {
			width += legendLine + textWidth(legends[k], smallSize) + 30
		}
	}
	return width
}

// legend explains the kinds of lines that there are.
func (d *drawing) legend(kinds [3]bool, y float64) {
	x := margin
	for k, shown := range kinds {
		if !shown {
			continue
		}
		d.printf(`<g class="edge"><path d="M%s %sh%s"%s/><text class="beside" x="%s" y="%s">%s</text></g>`+"\n",
			number(x), number(y-4), number(legendLine-6), marker(Kind(k), false), number(x+legendLine), number(y), legends[k])
		x += legendLine + textWidth(legends[k], smallSize) + 30
	}
}
