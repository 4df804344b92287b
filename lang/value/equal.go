package value

import (
	"math"
	"math/big"
)

// Equal reports whether a and b are equal as Python's == sees them: numbers and booleans by amount, lists and dictionaries
// by content (the order of a dictionary does not count), references by class and arguments, instances, unknown values
// and opaque objects by identity.
func Equal(a, b Value) bool {
	switch x := a.(type) {
	case String:
		y, ok := b.(String)
		return ok && x == y
	case Null:
		_, ok := b.(Null)
		return ok
	case *List:
		y, ok := b.(*List)
		return ok && equalLists(x, y)
	case *Dict:
		y, ok := b.(*Dict)
		return ok && equalDicts(x, y)
	case *Reference:
		y, ok := b.(*Reference)
		return ok && (x == y || x.Type == y.Type && equalDicts(argsOf(x), argsOf(y)))
	case *Unknown:
		y, ok := b.(*Unknown)
		return ok && x == y
	case *Opaque:
		y, ok := b.(*Opaque)
		return ok && x == y
	case Instance:
		y, ok := b.(Instance)
		return ok && x == y
	}
	m, ok := numberOf(a)
	if !ok {
		return false
	}
	n, ok := numberOf(b)
	return ok && compareNumbers(m, n) == 0
}

func equalLists(x, y *List) bool {
	if x == y {
		return true
	}
	if len(x.Items) != len(y.Items) {
		return false
	}
	for i, v := range x.Items {
		if !Equal(v, y.Items[i]) {
			return false
		}
	}
	return true
}

func equalDicts(x, y *Dict) bool {
	if x == y {
		return true
	}
	if x.Len() != y.Len() {
		return false
	}
	for i, k := range x.keys {
		v, ok := y.Get(k)
		if !ok || !Equal(x.vals[i], v) {
			return false
		}
	}
	return true
}

// argsOf is the arguments of a reference, which may have none.
func argsOf(r *Reference) *Dict {
	if r.Args == nil {
		return &Dict{}
	}
	return r.Args
}

// number is a numeric value made uniform: a small integer, a big one, or a float.
type number struct {
	big   *big.Int // set for integers that do not fit small
	small int64
	float float64
	isFlt bool
}

// numberOf gives the numeric value of v. ok is false when v is not a number; booleans are numbers.
func numberOf(v Value) (n number, ok bool) {
	switch x := v.(type) {
	case Int:
		return number{small: int64(x)}, true
	case Float:
		return number{float: float64(x), isFlt: true}, true
	case Bool:
		if x {
			return number{small: 1}, true
		}
		return number{}, true
	case *BigInt:
		return number{big: x.V}, true
	}
	return number{}, false
}

// bigInt is the integer n; n must not be a float.
func (n number) bigInt() *big.Int {
	if n.big != nil {
		return n.big
	}
	return big.NewInt(n.small)
}

// value is n as a Value.
func (n number) value() Value {
	switch {
	case n.isFlt:
		return Float(n.float)
	case n.big != nil:
		return NewInt(n.big)
	}
	return Int(n.small)
}

// NewInt makes the integer v a Value: an [Int] when it fits, a [*BigInt] otherwise. v must not be changed afterwards.
func NewInt(v *big.Int) Value {
	if v.IsInt64() {
		return Int(v.Int64())
	}
	return &BigInt{V: v}
}

// unordered is what compareNumbers gives when one side is not a number (NaN).
const unordered = 2

// compareNumbers gives -1, 0 or 1, or unordered. The comparison of an integer with a float is exact.
func compareNumbers(a, b number) int {
	switch {
	case a.isFlt && b.isFlt:
		return compareFloats(a.float, b.float)
	case a.isFlt:
		c := compareIntFloat(b, a.float)
		if c == unordered {
			return c
		}
		return -c
	case b.isFlt:
		return compareIntFloat(a, b.float)
	case a.big == nil && b.big == nil:
		switch {
		case a.small < b.small:
			return -1
		case a.small > b.small:
			return 1
		}
		return 0
	}
	return a.bigInt().Cmp(b.bigInt())
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return unordered
}

// exactInt is the bound below which every integer is a double.
const exactInt = 1 << 53

func compareIntFloat(a number, b float64) int {
	switch {
	case math.IsNaN(b):
		return unordered
	case math.IsInf(b, 1):
		return -1
	case math.IsInf(b, -1):
		return 1
	case a.big == nil && a.small > -exactInt && a.small < exactInt:
		return compareFloats(float64(a.small), b)
	}
	whole, _ := big.NewFloat(b).Int(nil)
	if c := a.bigInt().Cmp(whole); c != 0 {
		return c
	}
	return compareFloats(0, b-math.Trunc(b))
}

// Compare applies one of ==, !=, <, <=, > and >=. The last four work on numbers (and booleans) only; anything else is an
// [*OperandError].
func Compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return Equal(a, b), nil
	case "!=":
		return !Equal(a, b), nil
	}
	m, ok1 := numberOf(a)
	n, ok2 := numberOf(b)
	if !ok1 || !ok2 {
		return false, &OperandError{Message: "Can only compare numbers."}
	}
	c := compareNumbers(m, n)
	if c == unordered {
		return false, nil
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	case ">=":
		return c >= 0, nil
	}
	return false, &OperandError{Message: "Unknown comparison " + op}
}

// In reports whether a is an element of the list b or a key of the dictionary b. unknown is true when the answer depends on
// an unknown value: a or b is one, or a was not found in a list that holds one. Any other b is an [*OperandError].
func In(a, b Value) (found, unknown bool, err error) {
	if _, ok := b.(*Unknown); ok {
		return false, true, nil
	}
	switch c := b.(type) {
	case *List:
		if _, ok := a.(*Unknown); ok {
			return false, true, nil
		}
		for _, v := range c.Items {
			if _, ok := v.(*Unknown); ok {
				unknown = true
				continue
			}
			if Equal(a, v) {
				return true, false, nil
			}
		}
		return false, unknown, nil
	case *Dict:
		if _, ok := a.(*Unknown); ok {
			return false, true, nil
		}
		k, ok := a.(String)
		if !ok {
			return false, false, nil
		}
		_, found = c.Get(string(k))
		return found, false, nil
	}
	return false, false, &OperandError{Message: "Operand two of 'in' can only be a list or dict (" + Str(b) + ")"}
}
