package syntax

import (
	"slices"
	"strings"
)

// path reads name, ns::name or ns::Name. class reports whether the last identifier starts with a capital, which is a
// fault unless classOK.
func (p *parser) path(classOK bool) (q QName, class bool) {
	first := p.tok
	if first.kind != tID && (first.kind != tCID || !classOK) {
		p.unexpected()
	}
	p.next()
	last, tight := first, true
	space := ""
	for last.kind == tID && p.tok.kind == tSep {
		tight = tight && p.tok.start == last.end
		p.link()
		sep := p.tok
		p.next()
		if p.tok.kind != tID && (p.tok.kind != tCID || !classOK) {
			p.unexpected()
		}
		tight = tight && p.tok.start == sep.end
		if tight {
			space = p.src[first.start:sep.start]
		} else {
			if space != "" {
				space += "::"
			}
			space += p.textOf(last)
		}
		last = p.tok
		p.next()
	}
	q = QName{Space: space, Base: p.textOf(last), Pos: Pos(first.start + 1), BasePos: Pos(last.start + 1)}
	if tight {
		q.Text = p.src[first.start:last.end]
	} else {
		q.Text = space + "::" + q.Base
	}
	return q, last.kind == tCID
}

// nsRef reads name or ns::name.
func (p *parser) nsRef() QName {
	q, _ := p.path(false)
	return q
}

// classRef reads Name or ns::Name. A namespace separated with dots is a fault of its own.
func (p *parser) classRef() QName {
	q, class := p.path(true)
	if class {
		return q
	}
	if p.tok.kind == tDot {
		var ref Ref = p.varRef(q)
		p.attrs(ref)
	}
	p.unexpected()
	return q
}

// parents reads the names of entities behind extends, up to the colon. Those that start with a small letter are faults once all
// is read; of several the reference has the last one.
func (p *parser) parents() []QName {
	var out []QName
	var lower []Span
	for {
		q, class := p.path(true)
		if !class {
			lower = append(lower, p.attrs(p.varRef(q)).Span())
		}
		out = append(out, q)
		if !p.accept(tComma) {
			break
		}
	}
	if p.tok.kind != tColon {
		p.wanted = tColon
		p.unexpected()
	}
	for _, at := range slices.Backward(lower) {
		p.report("ParserException", at, "Syntax error: Invalid identifier: Entity names must start with a capital").
			Hint = "the name of an entity begins with a capital: " + capital(lastName(p.src[at.Start.Offset():at.End.Offset()]))
	}
	return out
}

// attrs reads the attributes behind a reference: .name.name. A name with a capital is a fault: a namespace separated with
// a dot.
func (p *parser) attrs(ref Ref) Ref {
	for p.tok.kind == tDot {
		dot := p.pos()
		p.link()
		p.next()
		switch p.tok.kind {
		case tID:
			ref = p.attrRef(ref, dot, p.nameOf(p.tok))
			p.next()
		case tCID:
			text, at := ref.Text()+"."+p.textOf(p.tok), Span{ref.Span().Start, p.spanOf(p.tok).End}
			p.next()
			if !followsClass(p.tok.kind) {
				p.unexpected()
			}
			p.badNamespace(text, at)
		default:
			p.unexpected()
		}
	}
	return ref
}

// followsClass reports whether a token may follow the name of an entity anywhere in the language. If not, it is what the
// reference complains about, rather than the name.
func followsClass(k kind) bool {
	switch k {
	case tAssign, tPlusEq, tEq, tNe, tLt, tLe, tGt, tGe, tPlus, tMinus, tStar, tSlash, tPercent, tPow, tQuestion, tSep, tRel,
		tRparen, tRbrack, tRbrace, tAnd, tOr, tIn, tIs, tAs, tWhen, tExtends, tMatching, tDefined, tParents, tUndef, tEnd, tElse, tElif:
		return false
	default:
		return true
	}
}

// followsExpr reports whether a token may follow an expression anywhere in the language.
func followsExpr(k kind) bool {
	switch k {
	case tDot, tSep, tAssign, tPlusEq, tRel, tAs, tDefined, tDict, tExtends, tIs, tMatching, tParents, tUndef, tUsing, tWhen:
		return false
	default:
		return true
	}
}

// followsStmt reports whether a token may follow a statement: it starts another one or ends a block.
func followsStmt(k kind) bool {
	switch k {
	case tRparen, tRbrack, tRbrace, tComma, tColon, tQuestion, tStar, tSlash, tPercent, tPow, tPlus, tMinus, tEq, tNe, tLt, tLe, tGt, tGe,
		tAnd, tOr, tIn:
		return false
	default:
		return followsExpr(k)
	}
}

// badNamespace complains about a namespace that is separated with dots, and stops the statement.
func (p *parser) badNamespace(text string, at Span) {
	right := strings.ReplaceAll(text, ".", "::")
	p.fail("InvalidNamespaceAccess", at, "Syntax error: invalid namespace access `%s`. Namespaces should be accessed with '::' "+
		"rather than '.'. The '.' separator is reserved for attribute and relation access. Did you mean: `%s`", text, right)
}

// lastName is a qualified name without its namespace.
func lastName(text string) string {
	if i := strings.LastIndex(text, "::"); i >= 0 {
		return text[i+len("::"):]
	}
	return text
}
