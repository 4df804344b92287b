package check

import (
	"strings"

	"github.com/intendant/intendant/diag"
)

// signature resolves the types in the signature of a plugin. Faults are shown where the plugin is defined.
func (c *checker) signature(p *Plugin) *Fault {
	f := resolveSignature(p)
	if f != nil && p.File != "" {
		at := diag.Position{Line: p.Line}
		f.Outside = diag.Range{File: p.File, Start: at, End: at}
	}
	return f
}

func resolveSignature(p *Plugin) *Fault {
	p.Params = make([]Param, len(p.Plugin.Params))
	for i, prm := range p.Plugin.Params {
		t, f := p.NS.SignatureType(prm.Type)
		if f != nil {
			f.Hint = "correct the type of the parameter " + prm.Name + " in the signature of the plugin " + p.Name
			return f
		}
		p.Params[i] = Param{Param: prm, Typ: t}
	}
	var f *Fault
	if p.Returns, f = p.NS.SignatureType(p.Plugin.Returns); f != nil {
		f.Hint = "correct what the plugin " + p.Name + " returns according to its signature"
	}
	return f
}

// SignatureType resolves a type in the notation of a plugin's signature, where any, null, dict[string, T] and unions with |
// are types too.
func (ns *Namespace) SignatureType(text string) (Type, *Fault) {
	text = strings.TrimSpace(text)
	if alts := splitTop(text, '|'); len(alts) > 1 {
		u := &Union{}
		var ref *RefTo
		nullable := false
		for _, a := range alts {
			t, f := ns.SignatureType(a)
			if f != nil {
				return nil, f
			}
			if t == NullPrim {
				nullable = true
				continue
			}
			if r, ok := t.(*RefTo); ok && ref == nil {
				ref = r
				continue
			}
			u.Alts = append(u.Alts, t)
		}
		if len(u.Alts) == 0 && ref != nil {
			u.Alts, ref = []Type{ref}, nil
		}
		var t Type = u
		if len(u.Alts) == 1 {
			t = u.Alts[0]
		}
		if nullable {
			t = &Nullable{t}
		}
		if ref != nil {
			t = &OrReference{Elem: t, Ref: ref}
		}
		return t, nil
	}
	switch text {
	case "", "any", "expression":
		return Any, nil
	case "null", "None":
		return NullPrim, nil
	case "list":
		return AnyList, nil
	case "dict":
		return AnyDict, nil
	}
	if inner, ok := strings.CutSuffix(text, "?"); ok {
		t, f := ns.SignatureType(inner)
		if f != nil {
			return nil, f
		}
		return &Nullable{t}, nil
	}
	if inner, ok := strings.CutSuffix(text, "[]"); ok {
		t, f := ns.SignatureType(inner)
		if f != nil {
			return nil, f
		}
		return &ListOf{t}, nil
	}
	if inner, ok := strings.CutPrefix(text, "dict[string,"); ok && strings.HasSuffix(inner, "]") {
		t, f := ns.SignatureType(strings.TrimSuffix(inner, "]"))
		if f != nil {
			return nil, f
		}
		return &DictOf{t}, nil
	}
	if inner, ok := strings.CutPrefix(text, "Reference["); ok && strings.HasSuffix(inner, "]") {
		t, f := ns.SignatureType(strings.TrimSuffix(inner, "]"))
		if f != nil {
			return nil, f
		}
		return &RefTo{t}, nil
	}
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		return ns.SignatureType(text[1 : len(text)-1])
	}
	t, _, f := ns.LookupType(text, nil)
	if f != nil {
		return nil, f
	}
	if t == nil {
		return nil, New("InvalidTypeAnnotation", nil, "%s is not a type", text)
	}
	return t, nil
}

// splitTop splits at sep outside brackets.
func splitTop(s string, sep rune) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range s {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case sep:
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}
