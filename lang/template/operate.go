package template

import (
	"errors"
	"math"
	"math/big"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// operate applies a binary operator.
func operate(op string, a, b any) any {
	if u, ok := a.(*undefined); ok {
		u.fail()
	}
	if u, ok := b.(*undefined); ok {
		if _, isText := asString(a); op != "%" || !isText {
			u.fail()
		}
	}
	x, numA := number(a)
	y, numB := number(b)
	if numA && numB {
		return calculate(op, x, y)
	}
	switch op {
	case "+":
		if v, ok := add(a, b); ok {
			return v
		}
	case "*":
		if numA {
			a, b, numB, y = b, a, true, x
		}
		if numB {
			if v, ok := multiply(a, y); ok {
				return v
			}
		}
	case "%":
		if s, ok := asString(a); ok {
			return percent(a, s, b)
		}
	}
	shown := op
	if op == "**" {
		shown = "** or pow()"
	}
	if _, ok := asString(a); ok && op == "+" {
		if _, safe := a.(markup); !safe {
			typeError("can only concatenate str (not \"%s\") to str", typeName(b))
		}
	}
	if _, kind, ok := sequence(a); ok && op == "+" {
		typeError("can only concatenate %s (not \"%s\") to %s", kind, typeName(b), kind)
	}
	typeError("unsupported operand type(s) for %s: '%s' and '%s'", shown, typeName(a), typeName(b))
	return nil
}

// calculate works on two numbers.
func calculate(op string, x, y value.Value) any {
	if op == "//" {
		return floorDivide(x, y)
	}
	v, err := value.Arith(op, x, y)
	if fault, ok := errors.AsType[*value.ArithmeticError](err); ok {
		fail(fault.Class, "%s", fault.Message)
	}
	check(err)
	return v
}

func floorDivide(x, y value.Value) any {
	a, aInt := bigOf(x)
	b, bInt := bigOf(y)
	if aInt && bInt {
		if b.Sign() == 0 {
			fail("ZeroDivisionError", "integer division or modulo by zero")
		}
		q, _ := value.IntDivMod(a, b)
		return value.NewInt(q)
	}
	fx, err := value.Cast("float", x)
	check(err)
	fy, err := value.Cast("float", y)
	check(err)
	if fy == value.Float(0) {
		fail("ZeroDivisionError", "float floor division by zero")
	}
	q, _ := value.FloatDivMod(float64(fx.(value.Float)), float64(fy.(value.Float)))
	return value.Float(q)
}

// bigOf gives an integer or boolean as a big integer.
func bigOf(v any) (*big.Int, bool) {
	switch x := v.(type) {
	case value.Int:
		return big.NewInt(int64(x)), true
	case *value.BigInt:
		return x.V, true
	case value.Bool:
		if x {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	}
	return nil, false
}

func add(a, b any) (any, bool) {
	x, textA := asString(a)
	y, textB := asString(b)
	_, safeA := a.(markup)
	_, safeB := b.(markup)
	switch {
	case textA && textB:
		if len(x)+len(y) > maxText {
			fail("MemoryError", "the text is too long")
		}
		if safeA || safeB {
			return markup(string(escape(a)) + string(escape(b))), true
		}
		return value.String(x + y), true
	case textA || textB:
		return nil, false
	}
	p, kind, ok := sequence(a)
	q, other, ok2 := sequence(b)
	if !ok || !ok2 || kind != other {
		return nil, false
	}
	if len(p)+len(q) > maxItems {
		fail("MemoryError", "the sequence is too long")
	}
	joined := append(append(make([]any, 0, len(p)+len(q)), p...), q...)
	if kind == "tuple" {
		return &tuple{joined}, true
	}
	return &list{joined}, true
}

func multiply(a any, count value.Value) (any, bool) {
	if _, float := count.(value.Float); float {
		if _, ok := asString(a); ok {
			typeError("can't multiply sequence by non-int of type 'float'")
		}
		if _, _, ok := sequence(a); ok {
			typeError("can't multiply sequence by non-int of type 'float'")
		}
		return nil, false
	}
	if s, ok := asString(a); ok {
		n := max(integer(count), 0)
		if s != "" && n > maxText/len(s) {
			fail("MemoryError", "the text is too long")
		}
		s = strings.Repeat(s, n)
		if _, safe := a.(markup); safe {
			return markup(s), true
		}
		return value.String(s), true
	}
	items, kind, ok := sequence(a)
	if !ok {
		return nil, false
	}
	n := max(integer(count), 0)
	if len(items) > 0 && n > maxItems/len(items) {
		fail("MemoryError", "the sequence is too long")
	}
	out := make([]any, 0, n*len(items))
	for range n {
		out = append(out, items...)
	}
	if kind == "tuple" {
		return &tuple{out}, true
	}
	return &list{out}, true
}

// percent is Python's a % b for a text a, whose text is s.
func percent(a any, s string, b any) any {
	_, safe := a.(markup)
	items, isTuple := []any{b}, false
	if t, ok := b.(*tuple); ok {
		items, isTuple = t.items, true
	}
	conv := func(v any) value.Value {
		if safe {
			if _, num := number(v); !num {
				return value.String(escape(v))
			}
		}
		return printable(v)
	}
	var args value.Value
	switch {
	case isTuple:
		l := &value.List{}
		for _, item := range items {
			l.Items = append(l.Items, conv(item))
		}
		args = l
	case isDict(b):
		d := value.NewDict(0)
		keys, vals, _ := entries(b)
		for i, k := range keys {
			d.Set(text(k), conv(vals[i]))
		}
		if args = d; !strings.Contains(s, "%(") && strings.Contains(s, "%") {
			args = conv(b)
		}
	default:
		args = conv(b)
	}
	out, err := value.Percent(s, args, isTuple)
	var fault *value.FormatError
	if errors.As(err, &fault) && strings.HasPrefix(fault.Message, "not all arguments") && !isTuple && indexable(b) {
		// Python takes what can be indexed for a mapping, of which nothing need be used.
		out, err = value.Percent(s, &value.List{}, true)
	}
	if errors.As(err, &fault) {
		fail(fault.Class, "%s", fault.Message)
	}
	check(err)
	if safe {
		return markup(out)
	}
	return value.String(out)
}

// indexable reports whether an object other than a text has items.
func indexable(v any) bool {
	switch v.(type) {
	case *list, *dict, *rangeObject, *undefined, *value.List, *value.Dict:
		return true
	}
	return false
}

// printable turns an object into a value that formats as the object would.
func printable(v any) value.Value {
	switch x := v.(type) {
	case value.Null:
		return value.String("None")
	case value.Int, value.Float, value.Bool, *value.BigInt, value.String:
		return x.(value.Value)
	}
	return value.String(text(v))
}

// compare applies one comparison operator.
func compare(op string, a, b any) bool {
	switch op {
	case "==":
		return equal(a, b)
	case "!=":
		return !equal(a, b)
	case "<":
		return less(a, b, op)
	case ">":
		return lessOf(b, a, a, b, op)
	case "<=", ">=":
		if isNaN(a) || isNaN(b) {
			return false
		}
		if op == "<=" {
			return !lessOf(b, a, a, b, op)
		}
		return !less(a, b, op)
	case "in":
		return contains(b, a)
	}
	return !contains(b, a)
}

// lessOf is x < y; a fault names a and b, the operands as the template has them.
func lessOf(x, y, a, b any, op string) bool {
	defer func() {
		if r := recover(); r != nil {
			t, ok := r.(thrown)
			var e *Error
			if ok && errors.As(t.err, &e) && e.Class == "TypeError" && strings.HasPrefix(e.Message, "'"+op+"'") {
				e.Message = "'" + op + "' not supported between instances of '" + typeName(a) + "' and '" + typeName(b) + "'"
			}
			panic(r)
		}
	}()
	return less(x, y, op)
}

func isNaN(v any) bool {
	f, ok := v.(value.Float)
	return ok && math.IsNaN(float64(f))
}

// negate is -v or +v.
func negate(op string, v any) any {
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	x, ok := number(v)
	if !ok {
		typeError("bad operand type for unary %s: '%s'", op, typeName(v))
	}
	if f, ok := x.(value.Float); ok {
		if op == "-" {
			return -f
		}
		return f
	}
	if op == "-" {
		return calculate("-", value.Int(0), x)
	}
	return calculate("+", value.Int(0), x)
}
