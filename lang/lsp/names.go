package lsp

import (
	"context"
	"path"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
)

// definition is where a name is declared.
func definition(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	return r.declarations(c, c.use.Symbol), nil
}

// declarations are the places at which a symbol is declared, as the editor shows them.
func (r *request) declarations(c *cursor, s *xref.Symbol) []location {
	switch {
	case s.Kind == xref.PluginFunc:
		return r.pluginPlace(c, s.Plugin)
	case s.Kind == xref.Self:
		if e := c.index.Type(s).Symbol; e != nil {
			return r.declarations(c, e)
		}
		return nil
	case s.Kind == xref.Alias && s.Owner != nil && s.Decl.Start == c.use.Span.Start && c.use.Symbol == s:
		s = s.Owner
	}
	if s.File == nil {
		return nil
	}
	if l, ok := r.location(c.snap, s.File, s.Decl); ok {
		return []location{l}
	}
	return nil
}

// pluginPlace is where the Python function of a plugin is.
func (r *request) pluginPlace(c *cursor, p *xref.Plugin) []location {
	if p.File == "" {
		return nil
	}
	file := c.snap.project.path(p.File)
	if file == "" {
		return nil
	}
	_, name := cutName(p.Name)
	start := position{p.Line - 1, p.Column - 1}
	return []location{{uriOf(path.Clean(file)), lspRange{start, position{start.Line, start.Character + len(name)}}}}
}

// typeDefinition is where the type of what a name stands for is declared.
func typeDefinition(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	t := c.index.Type(c.use.Symbol)
	if t.Symbol == nil {
		return nil, nil
	}
	return r.declarations(c, t.Symbol), nil
}

// implementations are the entities below an entity and the implementations for it; of an attribute those of one name below.
func implementations(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	out := []location{}
	add := func(f *xref.File, at syntax.Span) {
		if l, ok := r.location(c.snap, f, at); ok {
			out = append(out, l)
		}
	}
	target := c.use.Symbol
	if target.Kind != xref.Entity {
		for _, s := range c.index.Family(target) {
			if s != target && s.File != nil {
				add(s.File, s.Decl)
			}
		}
		return out, nil
	}
	for _, f := range c.index.Files() {
		for _, s := range f.Symbols() {
			switch n := s.Node().(type) {
			case *syntax.Entity:
				if s != target && s.IsA(target) {
					add(f, s.Decl)
				}
			case *syntax.Implementation:
				if f.Lookup(n.For.Text) == target {
					add(f, s.Decl)
				}
			}
		}
	}
	return out, nil
}

// references are all uses of what a name stands for.
func references(ctx context.Context, r *request) (any, error) {
	var p struct {
		Context struct {
			IncludeDeclaration bool `json:"includeDeclaration"`
		} `json:"context"`
	}
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	refs, err := c.index.References(ctx, c.use.Symbol)
	if err != nil {
		return nil, err
	}
	out := []location{}
	for _, ref := range refs {
		if ref.Use.Role == xref.Declaration && !p.Context.IncludeDeclaration {
			continue
		}
		if l, ok := r.location(c.snap, ref.File, ref.Use.Span); ok {
			out = append(out, l)
		}
	}
	return out, nil
}

// The kinds of highlights.
const (
	highlightRead  = 2
	highlightWrite = 3
)

// highlights are the uses in the same file.
func highlights(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	family := map[*xref.Symbol]bool{}
	for _, s := range c.index.Family(c.use.Symbol) {
		family[s] = true
	}
	out := []documentHighlight{}
	for _, u := range c.index.Uses(c.file) {
		if !family[u.Symbol] || u.Hidden {
			continue
		}
		h := documentHighlight{r.enc.span(c.file.Tree, u.Span), highlightRead}
		if u.Role != xref.Read {
			h.Kind = highlightWrite
		}
		out = append(out, h)
	}
	return out, nil
}

// symbolKinds are the kinds of symbols in outlines.
var symbolKinds = map[xref.Kind]int{
	xref.Namespace: symbolNamespace, xref.Alias: symbolNamespace, xref.Entity: symbolClass, xref.Attribute: symbolField,
	xref.Relation: symbolProperty, xref.Typedef: symbolStruct, xref.Implementation: symbolFunction, xref.Variable: symbolVariable,
}

// documentSymbols is the outline of a document.
func documentSymbols(_ context.Context, r *request) (any, error) {
	c := r.source()
	if c == nil {
		return nil, nil
	}
	var out []documentSymbol
	entities := map[*xref.Symbol]int{}
	for _, s := range c.file.Symbols() {
		d := documentSymbol{
			Name: s.Name, Kind: symbolKinds[s.Kind], Range: r.enc.span(c.file.Tree, s.Whole), SelectionRange: r.enc.span(c.file.Tree, s.Decl),
		}
		switch s.Kind {
		case xref.Attribute, xref.Relation:
			d.Detail = c.index.Type(s).String()
			if s.Kind == xref.Relation {
				d.Detail += " " + s.Multiplicity()
			}
			if i, ok := entities[s.Owner]; ok && s.Kind == xref.Attribute {
				out[i].Children = append(out[i].Children, d)
				continue
			}
			d.Name = s.Owner.Name + "." + s.Name
		case xref.Entity:
			entities[s] = len(out)
			var parents []string
			for _, p := range s.Parents() {
				if p.File != nil {
					parents = append(parents, p.FullName())
				}
			}
			if len(parents) > 0 {
				d.Detail = "extends " + strings.Join(parents, ", ")
			}
		case xref.Variable:
			d.Detail = c.index.Type(s).String()
		case xref.Implementation:
			if n, ok := s.Node().(*syntax.Implementation); ok {
				d.Detail = "for " + n.For.Text
			}
		default:
		}
		out = append(out, d)
	}
	r.server.mu.Lock()
	outline := r.server.outline
	r.server.mu.Unlock()
	if outline {
		if out == nil {
			out = []documentSymbol{}
		}
		return out, nil
	}
	flat := []symbolInformation{}
	for _, d := range out {
		flat = append(flat, symbolInformation{Name: d.Name, Kind: d.Kind, Location: location{r.doc.uri, d.Range}})
		for _, a := range d.Children {
			flat = append(flat, symbolInformation{Name: a.Name, Kind: a.Kind, Location: location{r.doc.uri, a.Range}, ContainerName: d.Name})
		}
	}
	return flat, nil
}

// maxSymbols bounds the answer to a search for symbols.
const maxSymbols = 500

// workspaceSymbols finds symbols of all projects by parts of their names.
func workspaceSymbols(ctx context.Context, r *request) (any, error) {
	var p struct {
		Query string `json:"query"`
	}
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	query := strings.ToLower(p.Query)
	out := []symbolInformation{}
	for _, snap := range r.all {
		for _, f := range snap.xref().Files() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if strings.HasPrefix(f.Tree.Name, "{") && query == "" {
				continue
			}
			for _, s := range f.Symbols() {
				if len(out) >= maxSymbols {
					return out, nil
				}
				if !matches(strings.ToLower(s.FullName()), query) {
					continue
				}
				l, ok := r.location(snap, f, s.Decl)
				if !ok {
					continue
				}
				info := symbolInformation{Name: s.Name, Kind: symbolKinds[s.Kind], Location: l, ContainerName: f.Namespace}
				if s.Owner != nil {
					info.ContainerName = s.Owner.FullName()
				}
				out = append(out, info)
			}
		}
	}
	return out, nil
}

// matches reports whether the characters of a query occur in a name, in their order.
func matches(name, query string) bool {
	for _, c := range query {
		i := strings.IndexRune(name, c)
		if i < 0 {
			return false
		}
		name = name[i+len(string(c)):]
	}
	return true
}
