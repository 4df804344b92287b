package lsp

import (
	"context"

	"github.com/intendant/intendant/lang/syntax"
)

// folding lists what can be folded: blocks, docstrings and other parts of several lines, runs of imports and of comments.
func folding(_ context.Context, r *request) (any, error) {
	if r.doc == nil {
		return nil, nil
	}
	f, _ := r.doc.tree()
	out := []foldingRange{}
	add := func(from, to int, kind string) {
		if to > from {
			out = append(out, foldingRange{from - 1, to - 1, kind})
		}
	}
	// block leaves the line with the closing keyword or bracket to be seen.
	block := func(s syntax.Span) { add(f.Line(s.Start), f.Line(s.End-1)-1, "region") }
	doc := func(l *syntax.Literal) {
		if l != nil {
			add(f.Line(l.Pos), f.Line(l.EndPos-1), "comment")
		}
	}
	doc(f.Doc)
	imports := [2]int{}
	syntax.WalkStmts(f.Stmts, func(n syntax.Node) bool {
		if i, ok := n.(*syntax.Import); ok {
			line := f.Line(i.Pos)
			if imports[0] == 0 {
				imports[0] = line
			}
			imports[1] = line
		}
		switch n := n.(type) {
		case *syntax.Entity:
			doc(n.Doc)
			block(n.Span())
		case *syntax.Implementation:
			doc(n.Doc)
			block(n.Span())
		case *syntax.If:
			if !n.Elif {
				block(n.Span())
			}
		case *syntax.For, *syntax.List, *syntax.Dict, *syntax.Construct, *syntax.Call:
			block(n.Span())
		case *syntax.Literal:
			if n.Kind == syntax.MultiLiteral {
				add(f.Line(n.Pos), f.Line(n.EndPos-1), "region")
			}
		case *syntax.Interpolation:
			if n.Multi {
				add(f.Line(n.Pos), f.Line(n.EndPos-1), "region")
			}
		}
		return true
	})
	add(imports[0], imports[1], "imports")
	from, last := 0, 0
	for _, c := range f.Comments {
		line := f.Line(c.Pos)
		if line != last+1 {
			add(from, last, "comment")
			from = line
		}
		last = line
	}
	add(from, last, "comment")
	return out, nil
}
