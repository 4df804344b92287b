package eval

import (
	"fmt"
	"strings"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// suits checks a value for an attribute, and says of one that does not suit where the attribute is declared.
func (m *machine) suits(a *check.Attribute, v value.Value) *check.Fault {
	f := m.validateAttr(a, v)
	if f == nil || f.FromType { // a typedef says where it is defined
		return f
	}
	_, null := v.(value.Null)
	_, list := v.(*value.List)
	_, wantsList := a.Type.(*check.ListOf)
	hint := ""
	if a.Relation {
		f.Note(&a.At, "the relation to %s is defined here", a.Type)
		if list && !a.Multi() {
			hint = "the relation has at most one member: give an instance instead of a list"
		}
	} else {
		f.Note(&a.At, "the attribute is defined here, with the type %s", a.Type)
		switch {
		case null:
			hint = fmt.Sprintf("only an attribute that is declared with a question mark can be null: %s? %s", a.Type, a.Name)
		case wantsList && !list:
			hint = fmt.Sprintf("put it into a list: [%s]", short(v))
		}
	}
	if f.Hint == "" {
		f.Hint = hint
	}
	return f
}

// validateAttr checks a value for an attribute. Plain attributes take references as well.
func (m *machine) validateAttr(a *check.Attribute, v value.Value) *check.Fault {
	if a.Relation {
		return m.validate(a.Type, v)
	}
	switch a.Type {
	case check.String:
		if _, ok := v.(value.String); ok {
			return nil
		}
	case check.Int:
		if _, ok := v.(value.Int); ok {
			return nil
		}
	case check.Bool:
		if _, ok := v.(value.Bool); ok {
			return nil
		}
	}
	if r, ok := v.(*value.Reference); ok {
		return referenceFits(a.Type, r)
	}
	if l, ok := v.(*value.List); ok {
		t := a.Type
		if n, ok := t.(*check.Nullable); ok {
			t = n.Elem
		}
		if lt, ok := t.(*check.ListOf); ok {
			for _, x := range l.Items {
				var f *check.Fault
				if r, ok := x.(*value.Reference); ok {
					f = referenceFits(lt.Elem, r)
				} else {
					f = m.validate(lt.Elem, x)
				}
				if f != nil {
					return f
				}
			}
			return nil
		}
	}
	return m.validate(a.Type, v)
}

// referenceFits checks that what a reference resolves to suits a type.
func referenceFits(t check.Type, r *value.Reference) *check.Fault {
	for u := t; ; {
		if u.String() == r.Model || r.Model == "" || u == check.Any {
			return nil
		}
		switch x := u.(type) {
		case *check.Nullable:
			u = x.Elem
			continue
		case check.Prim:
			if x == check.Number && (r.Model == "int" || r.Model == "float") {
				return nil
			}
		}
		return check.New("TypingException", nil, "Invalid value: %s is not a subtype of Reference[%s]", value.Str(r), t)
	}
}

func expected(t check.Type, v value.Value) *check.Fault {
	f := check.New("RuntimeException", nil, "Invalid value '%s', expected %s", brief(value.Str(v)), t)
	f.Hint = conversion(t, v)
	return f
}

// conversion says how to make a value of a primitive type out of one of another; empty when that can not be done.
func conversion(t check.Type, v value.Value) string {
	switch t {
	case check.Int, check.Float, check.Bool:
		if s, ok := v.(value.String); ok {
			if _, err := value.Cast(t.String(), s); err != nil {
				return ""
			}
			return fmt.Sprintf("write it without quotes, or convert it: %s(%s)", t, value.Repr(v))
		}
	case check.String:
		switch v.(type) {
		case value.Int, value.Float, *value.BigInt:
			return fmt.Sprintf("write it in quotes, or convert it: string(%s)", value.Repr(v))
		}
	}
	return ""
}

// validate checks a value against a type. Unknown suits every type.
func (m *machine) validate(t check.Type, v value.Value) *check.Fault {
	if _, unknown := v.(*value.Unknown); unknown {
		return nil
	}
	switch x := t.(type) {
	case check.Prim:
		return m.validatePrim(x, v)
	case *check.Nullable:
		if _, null := v.(value.Null); null {
			return nil
		}
		return m.validate(x.Elem, v)
	case *check.ListOf:
		l, ok := v.(*value.List)
		if !ok {
			f := expected(check.AnyList, v)
			f.Class, f.Imp = "TypingException", 10
			f.Msg = fmt.Sprintf("Invalid value '%s', expected %s", brief(value.Str(v)), t)
			return f
		}
		for _, e := range l.Items {
			if f := m.validate(x.Elem, e); f != nil {
				return f
			}
		}
		return nil
	case *check.DictOf:
		d, ok := v.(*value.Dict)
		if !ok {
			return expected(t, v)
		}
		for i := range d.Len() {
			_, e := d.At(i)
			if f := m.validate(x.Elem, e); f != nil {
				return f
			}
		}
		return nil
	case *check.Union:
		for _, a := range x.Alts {
			if m.validate(a, v) == nil {
				return nil
			}
		}
		return check.New("TypingException", nil, "Invalid value '%s', expected %s", brief(value.Str(v)), t)
	case *check.OrReference:
		if _, ok := v.(*value.Reference); ok {
			return m.validate(x.Ref, v)
		}
		return m.validate(x.Elem, v)
	case *check.RefTo:
		r, ok := v.(*value.Reference)
		if !ok {
			return check.New("TypingException", nil, "Invalid value: %s is not a subtype of %s", brief(value.Str(v)), t)
		}
		return referenceFits(x.Elem, r)
	case *check.Typedef:
		return m.validateTypedef(x, v)
	case *check.Entity:
		i, ok := v.(*Instance)
		if !ok {
			return check.New("RuntimeException", nil, "Invalid type for value '%s', should be type %s", brief(value.Str(v)), x)
		}
		if !i.typ.IsA(x) {
			return check.New("RuntimeException", nil, "Invalid class type for %s, should be %s", brief(value.Str(v)), x)
		}
		return nil
	}
	return nil
}

func (m *machine) validatePrim(t check.Prim, v value.Value) *check.Fault {
	if _, ok := v.(*value.Reference); ok && t != check.AnyList {
		return check.New("UnexpectedReference", nil,
			"References are not allowed for values of type `%s`. To work with references, explicitly declare support with a `... | Reference[...]` annotation.", t)
	}
	ok := false
	switch t {
	case check.String:
		_, ok = v.(value.String)
	case check.Int:
		ok = isInt(v)
	case check.Float:
		_, ok = v.(value.Float)
	case check.Number:
		_, ok = v.(value.Float)
		ok = ok || isInt(v)
	case check.Bool:
		_, ok = v.(value.Bool)
	case check.Any:
		ok = true
	case check.NullPrim:
		_, ok = v.(value.Null)
	case check.AnyList:
		_, ok = v.(*value.List)
	case check.AnyDict:
		_, ok = v.(*value.Dict)
	case check.ListPrim:
		l, isList := v.(*value.List)
		if isList {
			for _, e := range l.Items {
				if !literal(e) {
					return check.New("TypingException", nil, "Invalid value '%s', expected Literal", value.Str(e))
				}
			}
		}
		ok = isList
	case check.DictPrim:
		d, isDict := v.(*value.Dict)
		if isDict {
			for i := range d.Len() {
				if _, e := d.At(i); !literal(e) {
					return check.New("TypingException", nil, "Invalid value '%s', expected Literal", value.Str(e))
				}
			}
		}
		ok = isDict
	}
	if ok {
		return nil
	}
	f := expected(t, v)
	if t == check.ListPrim || t == check.AnyList {
		f.Class, f.Imp = "TypingException", 10
	}
	return f
}

func isInt(v value.Value) bool {
	switch v.(type) {
	case value.Int, *value.BigInt, value.Bool:
		return true
	}
	return false
}

// literal reports whether a value holds no instances.
func literal(v value.Value) bool {
	switch x := v.(type) {
	case *Instance:
		return false
	case *value.List:
		for _, e := range x.Items {
			if !literal(e) {
				return false
			}
		}
	case *value.Dict:
		for i := range x.Len() {
			if _, e := x.At(i); !literal(e) {
				return false
			}
		}
	}
	return true
}

func (m *machine) validateTypedef(t *check.Typedef, v value.Value) *check.Fault {
	// A regular expression says the same about the same text each time.
	if text, ok := v.(value.String); ok {
		if last, ok := t.Matched.(value.String); ok && last == text {
			return nil
		}
		if _, pure := t.Constraint.(*check.Match); pure && t.Base == check.String {
			f := m.checkTypedef(t, v)
			if f == nil {
				t.Matched = v
			}
			return f
		}
	}
	return m.checkTypedef(t, v)
}

func (m *machine) checkTypedef(t *check.Typedef, v value.Value) *check.Fault {
	if t.Endless {
		return check.New("TypingException", &t.At, "type %s is defined by itself", t)
	}
	if f := m.validate(t.Base, v); f != nil {
		return f
	}
	ok, f := m.constraint(t, v)
	if f != nil {
		return f
	}
	if ok {
		return nil
	}
	f = check.New("RuntimeException", &t.At, "Invalid value %s, does not match constraint `%s`", brief(value.Repr(v)), t.Pretty)
	f.FromType = true
	if text, ok := v.(value.String); ok {
		f.Hint = check.DidYouMean("", string(text), alternatives(t.Constraint))
	}
	return f
}

// alternatives are the texts that a constraint made of comparisons with self allows, such as self == "a" or self in ["b", "c"].
func alternatives(x check.Expr) []string {
	switch e := x.(type) {
	case *check.Lazy:
		if e.Or {
			return append(alternatives(e.X), alternatives(e.Y)...)
		}
	case *check.Binary:
		r, ok := e.X.(*check.Ref)
		lit, constant := e.Y.(*check.Literal)
		if !ok || !constant || r.Name != "self" || e.Op != check.Eq && e.Op != check.In {
			return nil
		}
		var out []string
		values := []value.Value{lit.Val}
		if l, ok := lit.Val.(*value.List); ok {
			values = l.Items
		}
		for _, v := range values {
			if s, ok := v.(value.String); ok {
				out = append(out, string(s))
			}
		}
		return out
	}
	return nil
}

// maxBrief bounds how much of a value the text of a fault shows, in bytes.
const maxBrief = 16 << 10

// brief is the text of a value in that of a fault.
func brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	return strings.ToValidUTF8(text[:maxBrief], "") + "[...]"
}
