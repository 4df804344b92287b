package lsp

import (
	"context"
	"strings"

	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lang/xref"
)

// signature says what the call or constructor around the cursor takes.
func signature(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil {
		return nil, err
	}
	w := before(c.file.Tree, c.at)
	b := w.bracket()
	if b == nil || b.callee == "" || w.text && !strings.HasPrefix(b.open, "(") {
		return nil, nil
	}
	s := callee(c.index, c.file, c.index.Scope(c.file, c.at), b)
	if s == nil {
		return nil, nil
	}
	info := signatureInformation{}
	active := -1
	switch {
	case s.Kind == xref.PluginFunc && b.open == "(":
		text, params := pluginSignature(s.Plugin)
		info.Label = text
		for i, at := range params {
			info.Parameters = append(info.Parameters, parameterInformation{Label: at})
			p := s.Plugin.Params[i]
			switch {
			case b.named != "" && p.Name == b.named:
				active = i
			case b.named == "" && (i == b.index && p.Kind == value.PositionalOrKeyword || i <= b.index && p.Kind == value.VarPositional):
				active = i
			}
		}
	case s.Kind == xref.Entity:
		info.Label = s.FullName() + b.open
		attrs := s.Attrs()
		for _, mandatory := range []bool{true, false} {
			for _, a := range attrs {
				if a.Mandatory() != mandatory || a.File == nil {
					continue
				}
				if len(info.Parameters) > 0 {
					info.Label += ", "
				}
				if a.Name == b.named {
					active = len(info.Parameters)
				}
				start := len(info.Label)
				info.Label += a.Name + ": " + c.index.Type(a).String()
				p := parameterInformation{Label: [2]int{start, len(info.Label)}}
				if doc := a.Doc(); doc != "" {
					p.Documentation = &markup{"markdown", doc}
				}
				info.Parameters = append(info.Parameters, p)
			}
		}
		info.Label += map[string]string{"(": ")", "[": "]"}[b.open]
	default:
		return nil, nil
	}
	if doc := s.Doc(); doc != "" {
		info.Documentation = &markup{"markdown", doc}
	}
	if info.Parameters == nil {
		info.Parameters = []parameterInformation{}
	}
	out := signatureHelp{Signatures: []signatureInformation{info}}
	if active >= 0 {
		out.ActiveParameter = &active
	}
	return out, nil
}
