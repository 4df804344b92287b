package lsp

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
)

// maxItems bounds the items of a completion; the editor asks again as more is written.
const maxItems = 1000

// completer gathers the items of a completion.
type completer struct {
	*cursor
	r       *request
	w       *written
	scope   *xref.Scope
	replace lspRange
	seen    map[string]bool
	out     completionList
}

// completion says what may stand at the cursor.
func completion(ctx context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil {
		return nil, err
	}
	k := &completer{cursor: c, r: r, w: before(c.file.Tree, c.at), scope: c.index.Scope(c.file, c.at), seen: map[string]bool{}}
	k.out.Items = []completionItem{}
	var p struct {
		Context struct {
			TriggerCharacter string `json:"triggerCharacter"`
		} `json:"context"`
	}
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	if p.Context.TriggerCharacter == ":" && k.w.tok(0) != "::" {
		return k.out, nil // the colon opens a block
	}
	k.replace = r.enc.span(c.file.Tree, syntax.Span{Start: k.w.from, End: c.at})
	k.run()
	return k.out, ctx.Err()
}

func (k *completer) run() {
	w := k.w
	switch {
	case w.hole:
		k.reference()
		return
	case w.text:
		return
	}
	word, behind := w.keyword(k.file.Tree)
	switch {
	case word == "import" && (behind == 0 || w.tok(0) == "::"):
		k.namespaces()
	case w.tok(0) == ".":
		k.attributes()
	case w.tok(0) == "::":
		k.members(word)
	case word == "entity" && behind == 0, word == "implementation" && behind == 0, word == "typedef" && behind == 0, word == "as" && w.tok(2) == "import":
		// A new name.
	case word == "extends", word == "implement" && behind == 0, word == "index" && behind == 0, word == "for" && w.tok(2) == "implementation" && behind == 0:
		k.types(func(s *xref.Symbol) bool { return s.Kind == xref.Entity })
	case word == "using" && (behind == 0 || w.tok(0) == ","):
		k.types(func(s *xref.Symbol) bool { return s.Kind == xref.Implementation })
		k.keywords("parents")
	case k.inEntity():
		k.types(func(s *xref.Symbol) bool { return s.Kind == xref.Typedef })
		k.primitives()
		k.keywords("end")
	case word == "as":
		k.types(func(s *xref.Symbol) bool { return s.Kind == xref.Typedef })
		k.primitives()
	default:
		k.arguments()
		k.expression(word == "" && k.w.bracket() == nil)
	}
}

func (k *completer) add(item completionItem) {
	if k.seen[item.Label] {
		return
	}
	if len(k.out.Items) >= maxItems {
		k.out.IsIncomplete = true
		return
	}
	if p := k.w.partial(); p != "" && !matches(strings.ToLower(item.Label), strings.ToLower(p)) {
		return
	}
	k.seen[item.Label] = true
	if item.TextEdit == nil {
		item.TextEdit = &textEdit{k.replace, item.Label}
	}
	k.out.Items = append(k.out.Items, item)
}

var itemKinds = map[xref.Kind]int{
	xref.Namespace: itemModule, xref.Alias: itemModule, xref.Entity: itemClass, xref.Attribute: itemField, xref.Relation: itemReference,
	xref.Typedef: itemType, xref.Implementation: itemMethod, xref.PluginFunc: itemFunction, xref.Variable: itemVariable,
	xref.LoopVariable: itemVariable, xref.Self: itemVariable, xref.Primitive: itemType,
}

func (k *completer) symbol(s *xref.Symbol, label, rank string) completionItem {
	item := completionItem{Label: label, Kind: itemKinds[s.Kind], SortText: rank + label}
	switch s.Kind {
	case xref.Attribute, xref.Variable, xref.LoopVariable, xref.Self:
		item.Detail = k.index.Type(s).String()
	case xref.Relation:
		item.Detail = k.index.Type(s).String() + " " + s.Multiplicity()
	case xref.PluginFunc:
		item.Detail = pluginText(s.Plugin)
		if s.Plugin.Deprecated != "" {
			item.Tags = []int{1}
		}
	case xref.Entity, xref.Typedef, xref.Implementation:
		item.Detail = s.FullName()
	default:
	}
	if doc := s.Doc(); doc != "" {
		item.Documentation = &markup{"markdown", doc}
	}
	return item
}

// reference completes a name in a string.
func (k *completer) reference() {
	if i := strings.LastIndexByte(k.w.path, '.'); i >= 0 {
		k.attributesOf(k.index.Path(k.scope, k.w.path[:i]))
		return
	}
	for _, s := range k.scope.Names() {
		k.add(k.symbol(s, s.Name, "1"))
	}
}

func (k *completer) attributes() {
	path := k.w.name(1)
	k.attributesOf(k.index.Path(k.scope, path))
}

func (k *completer) attributesOf(t xref.Type) {
	e := t.Symbol
	if e == nil || e.Kind != xref.Entity {
		return
	}
	for _, a := range e.Attrs() {
		rank := "1"
		if a.File == nil {
			rank = "2"
		}
		k.add(k.symbol(a, a.Name, rank))
	}
}

// namespaces completes an import.
func (k *completer) namespaces() {
	prefix := ""
	if k.w.tok(0) == "::" {
		prefix = k.w.name(1)
		prefix += "::"
	}
	names := k.index.Namespaces()
	if s := k.snap.state; s != nil && s.program.Manifest != nil && prefix == "" {
		for _, dir := range s.program.Manifest.ModulePath {
			entries, err := fs.ReadDir(k.snap.project.tree, dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if e.IsDir() && validNamespace(e.Name()) {
					names = append(names, e.Name())
				}
			}
		}
		names = append(names, "std", "exec", "fs")
	}
	slices.Sort(names)
	for _, ns := range slices.Compact(names) {
		rest, ok := strings.CutPrefix(ns, prefix)
		if !ok || ns == module.Main || ns == k.file.Namespace {
			continue
		}
		k.add(completionItem{Label: rest, Kind: itemModule, SortText: "1" + rest})
	}
}

// members completes what a namespace has.
func (k *completer) members(word string) {
	prefix := k.w.name(1)
	target := k.file.Visible()[prefix]
	for p := range k.file.Visible() {
		if rest, ok := strings.CutPrefix(p, prefix+"::"); ok {
			k.add(completionItem{Label: rest, Kind: itemModule, SortText: "3" + rest})
		}
	}
	if target == nil {
		return
	}
	for _, s := range target.Types() {
		switch {
		case word == "extends" || word == "implement" || word == "index":
			if s.Kind != xref.Entity {
				continue
			}
		case word == "using":
			if s.Kind != xref.Implementation {
				continue
			}
		case k.inEntity():
			if s.Kind != xref.Typedef {
				continue
			}
		case s.Kind == xref.Implementation, s.Kind == xref.Typedef && word == "":
			continue
		}
		k.add(k.symbol(s, s.Name, "1"))
	}
	if word == "" && !k.inEntity() {
		for _, s := range target.Symbols() {
			if s.Kind == xref.Variable {
				k.add(k.symbol(s, s.Name, "2"))
			}
		}
	}
}

// inEntity reports whether the cursor is in the body of an entity.
func (k *completer) inEntity() bool {
	for i, t := range slices.Backward(k.w.toks) {
		if t.Kind != syntax.KeywordLexeme {
			continue
		}
		switch k.w.textOf(t) {
		case "end", "implementation", "implement", "typedef", "import", "for", "if":
			return false
		case "entity":
			for _, u := range k.w.toks[i:] {
				if k.w.textOf(u) == ":" {
					last := k.w.tok(0)
					return last != "=" && k.file.Tree.Line(k.w.toks[len(k.w.toks)-1].Span.Start) != k.file.Tree.Line(k.at)
				}
			}
			return false
		}
	}
	return false
}

// types adds the types that may be named: without a prefix, with one, and those of namespaces that would have to be imported.
func (k *completer) types(want func(*xref.Symbol) bool) {
	for _, f := range k.file.Outer() {
		for _, s := range f.Types() {
			if want(s) {
				k.add(k.symbol(s, s.Name, "2"))
			}
		}
	}
	visible := k.file.Visible()
	known := map[*xref.File]bool{k.file: true}
	prefixes := make([]string, 0, len(visible))
	for prefix := range visible {
		prefixes = append(prefixes, prefix)
	}
	slices.Sort(prefixes)
	for _, prefix := range prefixes {
		known[visible[prefix]] = true
		if visible[prefix] == k.file {
			continue
		}
		k.add(completionItem{Label: prefix, Kind: itemModule, SortText: "4" + prefix})
		for _, s := range visible[prefix].Types() {
			if want(s) {
				k.add(k.symbol(s, prefix+"::"+s.Name, "3"))
			}
		}
	}
	if len(k.w.partial()) < 2 {
		k.out.IsIncomplete = true
		return
	}
	for _, ns := range k.index.Namespaces() {
		f := k.index.Space(ns)
		if known[f] || ns == module.Main {
			continue
		}
		for _, s := range f.Types() {
			if want(s) {
				item := k.symbol(s, ns+"::"+s.Name, "5")
				item.Additional = []textEdit{k.r.importEdit(k.file, ns)}
				item.Detail += " (import " + ns + ")"
				k.add(item)
			}
		}
	}
}

// importEdit adds an import behind the last one of a file.
func (r *request) importEdit(f *xref.File, namespace string) textEdit {
	line := 0
	if f.Tree.Doc != nil {
		line = f.Tree.Line(f.Tree.Doc.EndPos)
	}
	for _, s := range f.Tree.Stmts {
		if i, ok := s.(*syntax.Import); ok {
			line = f.Tree.Line(i.Span().End)
		}
	}
	at := r.enc.position(f.Tree, f.Tree.LineStart(line+1))
	text := "import " + namespace + "\n"
	if at.Line < line {
		text = "\n" + text // the last line has no end
	}
	return textEdit{lspRange{at, at}, text}
}

func (k *completer) primitives() {
	for _, name := range xref.Primitives() {
		k.add(completionItem{Label: name, Kind: itemType, SortText: "1" + name})
	}
}

func (k *completer) keywords(words ...string) {
	for _, w := range words {
		k.add(completionItem{Label: w, Kind: itemKeyword, SortText: "6" + w})
	}
}

// arguments adds the names of arguments that may start at the cursor.
func (k *completer) arguments() {
	b := k.w.bracket()
	if b == nil || !b.first || b.callee == "" {
		return
	}
	argument := func(item completionItem) {
		item.TextEdit = &textEdit{k.replace, item.Label + "="}
		k.add(item)
	}
	s := k.callee(b)
	switch {
	case s == nil:
	case s.Kind == xref.PluginFunc && b.open == "(":
		for _, p := range s.Plugin.Params {
			if !b.args[p.Name] && p.Kind <= 1 {
				argument(completionItem{Label: p.Name, Kind: itemProperty, Detail: p.Type, SortText: "0" + p.Name})
			}
		}
	case s.Kind == xref.Entity:
		for _, a := range s.Attrs() {
			if b.args[a.Name] {
				continue
			}
			rank := "01"
			if !a.Mandatory() {
				rank = "02"
			}
			argument(k.symbol(a, a.Name, rank))
		}
	}
}

// callee is what stands in front of a bracket: an entity, a plugin, or the entity that a relation leads to.
func (k *completer) callee(b *bracket) *xref.Symbol { return callee(k.index, k.file, k.scope, b) }

func callee(x *xref.Index, f *xref.File, sc *xref.Scope, b *bracket) *xref.Symbol {
	if strings.Contains(b.callee, ".") {
		if b.open == "[" {
			return x.Path(sc, b.callee).Symbol
		}
		return nil
	}
	return f.Lookup(b.callee)
}

// expression adds what may start an expression or, with statement, a statement.
func (k *completer) expression(statement bool) {
	for _, s := range k.scope.Names() {
		k.add(k.symbol(s, s.Name, "1"))
	}
	k.types(func(s *xref.Symbol) bool { return s.Kind == xref.Entity || s.Kind == xref.PluginFunc })
	k.keywords("true", "false", "null", "not", "and", "or", "in", "is", "defined")
	for _, name := range xref.Primitives() {
		if name != "dict" && name != "list" {
			k.add(completionItem{Label: name, Kind: itemFunction, SortText: "5" + name})
		}
	}
	if statement {
		k.keywords("for", "if", "elif", "else", "end", "entity", "implementation", "implement", "typedef", "import", "index", "using", "when", "extends", "matching")
	}
}
