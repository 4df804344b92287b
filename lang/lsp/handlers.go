package lsp

import (
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
)

// handlers are the requests that are answered, but for those of the conversation itself.
var handlers = map[string]handler{
	"textDocument/hover":               hoverAt,
	"textDocument/definition":          definition,
	"textDocument/typeDefinition":      typeDefinition,
	"textDocument/implementation":      implementations,
	"textDocument/references":          references,
	"textDocument/documentHighlight":   highlights,
	"textDocument/documentSymbol":      documentSymbols,
	"workspace/symbol":                 workspaceSymbols,
	"textDocument/formatting":          formatting,
	"textDocument/foldingRange":        folding,
	"textDocument/codeAction":          codeActions,
	"textDocument/completion":          completion,
	"textDocument/signatureHelp":       signature,
	"textDocument/prepareRename":       prepareRename,
	"textDocument/rename":              rename,
	"textDocument/semanticTokens/full": semanticTokens,
}

// cursor is a place in a file of an index.
type cursor struct {
	index *xref.Index
	snap  *snapshot
	file  *xref.File
	at    syntax.Pos
	use   *xref.Use // nil when nothing is named there
}

// cursor finds what is at the position that the request names; nil when the document is in no project.
func (r *request) cursor() (*cursor, error) {
	var p positionParams
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	c := r.source()
	if c == nil {
		return nil, nil //nolint:nilnil // nothing is known about the document, and that is no fault
	}
	c.at = r.enc.place(c.file.Tree, p.Position)
	c.use = c.index.At(c.file, c.at)
	return c, nil
}

// source is the file of the document in the index of its project; nil when there is none. A file of a built-in module belongs to
// every project.
func (r *request) source() *cursor {
	if r.doc == nil {
		return nil
	}
	snaps := r.all
	if r.snap != nil {
		snaps = []*snapshot{r.snap}
	}
	for _, s := range snaps {
		x := s.xref()
		if f := x.File(r.doc.name); f != nil {
			return &cursor{index: x, snap: s, file: f}
		}
	}
	return nil
}

// location is a stretch of a file of the project; ok is false when the editor can not show the file.
func (r *request) location(s *snapshot, f *xref.File, span syntax.Span) (location, bool) {
	uri := r.uri(s, f)
	return location{uri, r.enc.span(f.Tree, span)}, uri != ""
}

// uri is the URI of a file; empty when the editor can not show it.
func (r *request) uri(s *snapshot, f *xref.File) string {
	name := f.Tree.Name
	if d := s.docs[name]; d != nil {
		return d.uri
	}
	if file := s.project.path(name); file != "" {
		return uriOf(file)
	}
	return r.server.show(name, f.Tree.Src)
}

// show makes a built-in file one of the machine and gives its URI; empty when that is not possible.
func (s *Server) show(name string, text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file, ok := s.builtins[name]; ok {
		return uriOf(file)
	}
	if s.cfg.Builtin == nil {
		return ""
	}
	file, err := s.cfg.Builtin(name, text)
	if err != nil {
		s.log.Warn("a built-in module can not be shown", "file", name, "error", err)
		return ""
	}
	s.builtins[name] = file
	return uriOf(file)
}
