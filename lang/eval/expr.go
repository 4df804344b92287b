package eval

import (
	"errors"
	"strconv"
	"strings"
	"unsafe"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// eval is the value of an expression whose requirements are in the frame of u.
func (m *machine) eval(u *unit, x check.Expr) (value.Value, *check.Fault) {
	switch e := x.(type) {
	case *check.Literal:
		return e.Val, nil
	case *check.Ref:
		return u.val(e.Slot), nil
	case *check.AttrRef:
		return u.val(e.Slot), nil
	case *check.Call:
		return u.val(e.Slot), nil
	case *check.Lookup:
		return u.val(e.Slot), nil
	case *check.Lazy:
		return u.val(e.Slot), nil
	case *check.IsDefined:
		return u.val(e.Slot), nil
	case *check.Cond:
		return u.val(e.Slot), nil
	case *check.Comp:
		return u.val(e.Slot), nil
	case *check.Filtered:
		return filtered{}, nil
	case *check.Construct:
		return m.construct(u, e)
	case *check.Binary:
		a, f := m.eval(u, e.X)
		if f != nil {
			return nil, f
		}
		b, f := m.eval(u, e.Y)
		if f != nil {
			return nil, f
		}
		return operate(e, a, b)
	case *check.Not:
		a, f := m.eval(u, e.X)
		if f != nil {
			return nil, f
		}
		return not(e, a)
	case *check.Match:
		a, f := m.eval(u, e.X)
		if f != nil {
			return nil, f
		}
		return match(e, a)
	case *check.List:
		return m.evalList(u, e)
	case *check.Dict:
		d := value.NewDict(len(e.Keys))
		for i, k := range e.Keys {
			v, f := m.eval(u, e.Vals[i])
			if f != nil {
				return nil, f
			}
			d.Set(k, v)
		}
		return d, nil
	case *check.MapLookup:
		return m.evalEntry(u, e)
	case *check.Format:
		return m.evalFormat(u, e)
	case *check.FFormat:
		text, unknown, f := m.evalParts(u, e, e.Parts, 0)
		if f != nil {
			return nil, f
		}
		if unknown {
			return &value.Unknown{}, nil
		}
		return value.String(text), nil
	}
	return nil, check.New("CompilerException", x.Where(), "unexpected expression")
}

func (m *machine) evalList(u *unit, e *check.List) (value.Value, *check.Fault) {
	if v := u.val(e.Slot); v != nil {
		return v, nil
	}
	items := make([]value.Value, 0, len(e.Items))
	for _, x := range e.Items {
		v, f := m.eval(u, x)
		if f != nil {
			return nil, f
		}
		if l, ok := v.(*value.List); ok {
			if len(items)+len(l.Items) > maxItems {
				return nil, tooMany(e.Where())
			}
			items = append(items, l.Items...)
			continue
		}
		items = append(items, v)
	}
	return &value.List{Items: items}, nil
}

// The largest list and the longest text, in bytes, that expressions may make. Each statement can double what the one before it
// made, so that a few lines could otherwise use up the memory.
const (
	maxItems = 1 << 22
	maxText  = 1 << 26
)

func tooMany(at *check.Loc) *check.Fault {
	return check.New("CompilerException", at, "the list would have more than %d elements", maxItems)
}

func tooLong(at *check.Loc) *check.Fault {
	return check.New("CompilerException", at, "the text would be longer than %d bytes", maxText)
}

var opText = [...]string{"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "**"}

func operate(e *check.Binary, a, b value.Value) (value.Value, *check.Fault) {
	if e.Op == check.In {
		return in(e, a, b)
	}
	if _, unknown := a.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	if _, unknown := b.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	if e.Op <= check.Ge {
		ok, err := value.Compare(opText[e.Op], a, b)
		if err != nil {
			return nil, operandFault(e.Where(), err)
		}
		return value.Bool(ok), nil
	}
	if x, ok := a.(value.String); ok {
		if y, ok := b.(value.String); ok && len(x)+len(y) > maxText {
			return nil, tooLong(e.Where())
		}
	}
	v, err := value.Arith(opText[e.Op], a, b)
	if err != nil {
		return nil, operandFault(e.Where(), err)
	}
	return v, nil
}

func in(e *check.Binary, a, b value.Value) (value.Value, *check.Fault) {
	if _, unknown := a.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	if _, isUnknown := b.(*value.Unknown); isUnknown {
		return nil, check.New("TypingException", e.Where(), "Operand two of 'in' can only be a list or dict (%s)", value.Str(b))
	}
	if _, isDict := b.(*value.Dict); isDict {
		switch a.(type) {
		case *value.List, *value.Dict:
			return nil, check.New("TypeError", e.Where(), "unhashable type: '%s'", value.TypeName(a))
		}
	}
	found, unknown, err := value.In(a, b)
	switch {
	case err != nil:
		return nil, operandFault(e.Where(), err)
	case unknown:
		return &value.Unknown{}, nil
	}
	return value.Bool(found), nil
}

// operandFault is the fault for an operator that does not work on its operands.
func operandFault(at *check.Loc, err error) *check.Fault {
	if ae, ok := errors.AsType[*value.ArithmeticError](err); ok {
		return check.New(ae.Class, at, "%s", ae.Message)
	}
	return check.New("TypingException", at, "%s", err.Error())
}

func not(e *check.Not, a value.Value) (value.Value, *check.Fault) {
	switch b := a.(type) {
	case *value.Unknown:
		return &value.Unknown{}, nil
	case value.Bool:
		return !b, nil
	}
	return nil, check.New(notBool(a), e.Where(), "Invalid value `%s`: `not` expects a boolean", value.Str(a))
}

func (m *machine) evalEntry(u *unit, e *check.MapLookup) (value.Value, *check.Fault) {
	d, f := m.eval(u, e.X)
	if f != nil {
		return nil, f
	}
	if _, unknown := d.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	dict, ok := d.(*value.Dict)
	if !ok {
		f := check.New("TypingException", e.Where(), "dict lookup is only possible on dicts, %s is not an object", value.Str(d))
		if _, list := d.(*value.List); list {
			f.Hint = "an element of a list is std::at(list, index)"
		}
		return nil, f
	}
	k, f := m.eval(u, e.Key)
	if f != nil {
		return nil, f
	}
	if _, unknown := k.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	key, ok := k.(value.String)
	if !ok {
		return nil, check.New("TypingException", e.Where(), "dict keys must be string, %s is not a string", value.Str(k))
	}
	v, ok := dict.Get(string(key))
	if !ok {
		f := check.New("KeyException", e.Where(), "key %s not found in dict, options are [%s]", string(key), strings.Join(dict.Keys(), ","))
		f.Hint = check.DidYouMean("", string(key), dict.Keys())
		return nil, f
	}
	return v, nil
}

func (m *machine) evalFormat(u *unit, e *check.Format) (value.Value, *check.Fault) {
	var few [4]string
	texts := few[:0]
	plain := e.Cuts != nil
	m.digits = m.digits[:0]
	for _, r := range e.Refs {
		v, f := m.eval(u, r)
		if f != nil {
			return nil, f
		}
		if n, ok := v.(value.Int); ok {
			texts = append(texts, m.decimal(int64(n)))
			continue
		}
		s, unknown, err := value.Interpolate(v)
		switch {
		case err != nil:
			return nil, formatFault(e.Where(), err, refText(r))
		case unknown:
			return &value.Unknown{}, nil
		}
		plain = plain && strings.IndexByte(s, '{') < 0 && strings.IndexByte(s, '}') < 0
		texts = append(texts, s)
	}
	var text string
	var ok bool
	if plain {
		text, ok = m.join(e, texts)
	} else {
		text, ok = substitute(e, texts)
	}
	if !ok {
		return nil, tooLong(e.Where())
	}
	return value.String(text), nil
}

// decimal is a number as text, which holds as long as the digits of numbers are only appended to m.digits.
func (m *machine) decimal(n int64) string {
	from := len(m.digits)
	m.digits = strconv.AppendInt(m.digits, n, 10)
	return view(m.digits[from:])
}

// view is a text over bytes that nobody changes as long as it is used.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // see above
}

// join puts texts between the pieces of a format; false when the result would be too long.
func (m *machine) join(e *check.Format, texts []string) (string, bool) {
	size := len(e.Tail)
	for i := range e.Cuts {
		size += len(e.Cuts[i].Before) + len(texts[e.Cuts[i].Ref])
		if size > maxText {
			return "", false
		}
	}
	b := m.slabs.text.Take(size)[:0]
	for i := range e.Cuts {
		b = append(append(b, e.Cuts[i].Before...), texts[e.Cuts[i].Ref]...)
	}
	return view(append(b, e.Tail...)), true
}

// substitute replaces the references one after the other, those too that a value before them has brought into the text, as the
// language does; false when the result would be too long.
func substitute(e *check.Format, texts []string) (string, bool) {
	text := e.Text
	for i, s := range texts {
		if len(text)+strings.Count(text, e.Sources[i])*len(s) > maxText {
			return "", false
		}
		text = strings.ReplaceAll(text, e.Sources[i], s)
	}
	return text, true
}

func formatFault(at *check.Loc, err error, name string) *check.Fault {
	if _, ok := errors.AsType[*value.ReferenceError](err); ok {
		return check.New("UnexpectedReference", at, "Encountered reference in string format for variable `%s`. This is not supported.", name)
	}
	if fe, ok := errors.AsType[*value.FormatError](err); ok {
		if fe.Class == "ValueError" {
			return check.New("RuntimeException", at, "Invalid f-string: %s", fe.Message)
		}
		return check.New(fe.Class, at, "%s", fe.Message)
	}
	return check.New("RuntimeException", at, "%s", err.Error())
}

// anyUnknown reports whether a field is unknown, up to one that has no name: the text is unknown then, and a field that can not be
// formatted goes unnoticed.
func (m *machine) anyUnknown(u *unit, parts []check.FPart) bool {
	for i := range parts {
		p := &parts[i]
		if p.Positional {
			return false
		}
		if p.Ref == nil {
			continue
		}
		v, f := m.eval(u, p.Ref)
		if _, unknown := v.(*value.Unknown); f == nil && unknown || m.anyUnknown(u, p.Spec) {
			return true
		}
	}
	return false
}

// maxFieldDepth is how deep fields may stand in the format specifications of others, as in Python.
const maxFieldDepth = 1

func (m *machine) evalParts(u *unit, e *check.FFormat, parts []check.FPart, depth int) (text string, unknown bool, f *check.Fault) {
	switch {
	case len(parts) == 0:
		return "", false, nil
	case len(parts) == 1 && parts[0].Ref == nil && !parts[0].Positional:
		return parts[0].Text, false, nil
	}
	from := len(m.text) // what is put together around this
	defer func() { m.text = m.text[:from] }()
	for i := range parts {
		p := &parts[i]
		if p.Positional {
			if unknown {
				return "", true, nil
			}
			return "", false, check.New("RuntimeException", e.Where(),
				"f-strings do not support positional substitutions via '{}', use variable or attribute keys instead")
		}
		if p.Ref == nil {
			m.text = append(m.text, p.Text...)
			continue
		}
		v, f := m.eval(u, p.Ref)
		if f != nil {
			return "", false, f
		}
		spec, un, f := m.evalParts(u, e, p.Spec, depth+1)
		if f != nil {
			return "", false, f
		}
		s, un2, err := value.FormatField(v, p.Conversion, spec)
		if depth > maxFieldDepth {
			err = &value.FormatError{Message: "Max string recursion exceeded", Class: "ValueError"}
		}
		if err != nil {
			if unknown || un || m.anyUnknown(u, parts[i+1:]) {
				return "", true, nil
			}
			return "", false, formatFault(e.Where(), err, refText(p.Ref))
		}
		unknown = unknown || un || un2
		if len(m.text)-from+len(s) > maxText {
			return "", false, tooLong(e.Where())
		}
		m.text = append(m.text, s...)
	}
	b := m.slabs.text.Take(len(m.text) - from)
	copy(b, m.text[from:])
	return view(b), unknown, nil
}
