package lsp

import (
	"path"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
)

// publishAlone sends the syntax errors of a document outside of any project.
func (s *Server) publishAlone(d *document) error {
	if !d.model() {
		return nil
	}
	p := publishParams{URI: d.uri, Version: &d.version, Diagnostics: []diagnostic{}}
	_, ds := d.tree()
	for _, x := range ds {
		p.Diagnostics = append(p.Diagnostics, s.diagnostic(x, d.text, func(string) (string, []byte) { return d.uri, d.text }))
	}
	return s.conn.notify("textDocument/publishDiagnostics", p)
}

// publish sends what is wrong with a project, file by file, and takes back what no longer is.
func (s *Server) publish(p *project, docs map[string]*document, state *checked, ds diag.List) error {
	texts := map[string][]byte{}
	source := func(name string) (uri string, text []byte) {
		file := p.path(name)
		if file == "" {
			return "", nil
		}
		if d := docs[name]; d != nil {
			return d.uri, d.text
		}
		if text, ok := texts[name]; ok {
			return uriOf(file), text
		}
		for _, f := range state.program.Files {
			if f.Tree.Name == name {
				text = f.Tree.Src
			}
		}
		if text == nil {
			text = p.read(name)
		}
		texts[name] = text
		return uriOf(file), text
	}
	byURI := map[string][]diagnostic{}
	for _, d := range ds {
		d = placed(p, d)
		uri, text := source(d.Range.File)
		if uri == "" {
			continue
		}
		byURI[uri] = append(byURI[uri], s.diagnostic(d, text, source))
	}
	for _, d := range docs {
		if byURI[d.uri] == nil {
			byURI[d.uri] = []diagnostic{}
		}
	}
	s.mu.Lock()
	for uri := range p.published {
		if byURI[uri] == nil {
			byURI[uri] = []diagnostic{}
			delete(p.published, uri)
		}
	}
	for uri := range byURI {
		p.published[uri] = true
	}
	s.mu.Unlock()
	versions := map[string]*int{}
	for _, d := range docs {
		versions[d.uri] = &d.version
	}
	uris := make([]string, 0, len(byURI))
	for uri := range byURI {
		uris = append(uris, uri)
	}
	slices.Sort(uris)
	for _, uri := range uris {
		if err := s.conn.notify("textDocument/publishDiagnostics", publishParams{URI: uri, Version: versions[uri], Diagnostics: byURI[uri]}); err != nil {
			return err
		}
	}
	return nil
}

// placed moves a fault that is in no file of the project to one that has to do with it: another place that it names, or
// the file that describes the project.
func placed(p *project, d diag.Diagnostic) diag.Diagnostic {
	if p.path(d.Range.File) != "" && d.Range.File != "" {
		return d
	}
	for _, r := range d.Related {
		if r.Range.File != "" && p.path(r.Range.File) != "" {
			d.Range = r.Range
			return d
		}
	}
	manifest := map[projectKind]string{
		wholeProject: "project.yml", moduleV1: path.Join(v1Mount, p.module, "module.yml"), moduleV2: path.Join(p.root, "pyproject.toml"),
	}
	d.Range = diag.Range{File: manifest[p.kind], Start: diag.Position{Line: 1}, End: diag.Position{Line: 1}}
	return d
}

// diagnostic is a fault in the words of the protocol. source gives the URI and the text of a file.
func (s *Server) diagnostic(d diag.Diagnostic, text []byte, source func(string) (string, []byte)) diagnostic {
	out := diagnostic{
		Range: s.enc.diagRange(text, d.Range), Code: d.Code, Source: "intendant", Message: d.Message, Severity: severityInformation,
	}
	switch d.Severity {
	case diag.Error:
		out.Severity = severityError
	case diag.Warning:
		out.Severity = severityWarning
	case diag.Info:
	}
	if strings.Contains(d.Code, "Deprecat") {
		out.Tags = []int{tagDeprecated}
	}
	if d.Hint != "" {
		out.Message += "\n" + d.Hint
		out.Data = &diagnosticData{Hint: d.Hint}
	}
	for _, r := range d.Related {
		uri, text := source(r.Range.File)
		if uri == "" || r.Range.File == "" {
			out.Message += "\n" + r.Message
			continue
		}
		out.Related = append(out.Related, relatedInformation{location{uri, s.enc.diagRange(text, r.Range)}, r.Message})
	}
	return out
}

// undeclared finds what the language only finds when the model runs: names of variables that nothing declares and, as far as
// the types of values are known, attributes that entities do not have. Files with other faults are left out, since names may
// be missing for want of the statement that declares them.
func undeclared(s *snapshot, known diag.List) diag.List {
	faulty := map[string]bool{}
	for _, d := range known {
		if d.Severity == diag.Error {
			faulty[d.Range.File] = true
		}
	}
	if !s.state.bound {
		return nil // so much is missing that nothing can be said
	}
	x := s.xref()
	var out diag.List
	for _, f := range x.Files() {
		if faulty[f.Tree.Name] || s.fixed(f) != "" {
			continue
		}
		for _, m := range x.Missing(f) {
			if m.Asked {
				continue
			}
			at := f.Tree.Range(m.Span)
			switch {
			case m.Variable != nil:
				d := diag.Errorf("NotFoundException", at, "variable %s not found", m.Name)
				if !m.Always {
					d.Severity = diag.Warning // it is a fault when the block runs
				}
				var names []string
				for _, n := range m.Variable.Names() {
					names = append(names, n.Name)
				}
				out = append(out, suggest(d, m.Name, names))
			case m.Of != nil:
				d := diag.Diagnostic{
					Severity: diag.Warning, Code: "NotFoundException", Range: at,
					Message: "could not find attribute " + m.Name + " in type " + m.Of.FullName(),
				}
				var names []string
				for _, a := range m.Of.Attrs() {
					names = append(names, a.Name)
				}
				out = append(out, suggest(d, m.Name, names))
			}
		}
	}
	return out
}

func suggest(d diag.Diagnostic, name string, names []string) diag.Diagnostic {
	if best := diag.Closest(name, names); best != "" && len(name) > 2 {
		d.Hint = "did you mean " + best + "?"
	}
	return d
}
