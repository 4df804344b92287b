package value

import (
	"math"
	"math/big"
	"math/bits"
)

// MaxIntBits is the size beyond which an integer is refused, so that a model can not use up the memory by repeated powers.
const MaxIntBits = 1 << 20

// operatorNames are the words that stand for the operators in messages.
var operatorNames = map[string]string{
	"+": "plus", "-": "minus", "*": "multiplication", "/": "division", "%": "modulo", "**": "exponentiation",
}

// Arith applies one of +, -, *, /, % and ** as Python does: integers are unbounded, / gives a float, % follows the sign of the
// right side, a negative exponent gives a float, booleans count as 1 and 0; + also joins two strings. Operands of other kinds
// are an [*OperandError]; a calculation without a result is an [*ArithmeticError].
func Arith(op string, a, b Value) (Value, error) {
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			if v, ok := smallArith(op, int64(x), int64(y)); ok {
				return v, nil
			}
		}
	}
	if x, ok := a.(String); ok && op == "+" {
		y, ok := b.(String)
		if !ok {
			return nil, &OperandError{Message: "Can only concatenate str (not '" + TypeName(b) + "' (" + operandText(b) + ")) to str"}
		}
		return x + y, nil
	}
	m, ok1 := numberOf(a)
	n, ok2 := numberOf(b)
	name, known := operatorNames[op]
	if !ok1 || !ok2 || !known {
		return nil, &OperandError{Message: "Unsupported operand type(s) for " + name + ": '" + TypeName(a) + "' (" + operandText(a) +
			") and '" + TypeName(b) + "' (" + operandText(b) + ")"}
	}
	if m.isFlt || n.isFlt || op == "/" && m.big == nil && n.big == nil {
		return floatArith(op, m, n)
	}
	return bigArith(op, m.bigInt(), n.bigInt())
}

// operandText shows an operand in a message: in the notation of repr(), an instance with its places.
func operandText(v Value) string {
	if i, ok := v.(Instance); ok {
		return Str(i)
	}
	return Repr(v)
}

// smallArith calculates with integers of 64 bits. ok is false when the result does not fit or is not an integer.
func smallArith(op string, a, b int64) (v Value, ok bool) {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return Int(c), true
		}
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return Int(c), true
		}
	case "*":
		if a == 0 || b == 0 {
			return Int(0), true
		}
		hi, lo := bits.Mul64(magnitude(a), magnitude(b))
		if hi != 0 || lo > math.MaxInt64 {
			return nil, false
		}
		if (a < 0) != (b < 0) {
			return Int(-int64(lo)), true
		}
		return Int(int64(lo)), true
	case "%":
		if b == 0 {
			return nil, false
		}
		if b == -1 {
			return Int(0), true
		}
		c := a % b
		if c != 0 && (c < 0) != (b < 0) {
			c += b
		}
		return Int(c), true
	}
	return nil, false
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func zeroDivision(text string) error {
	return &ArithmeticError{Message: text, Class: "ZeroDivisionError"}
}

// float gives n as a double, rounded to the nearest.
func (n number) toFloat() (float64, error) {
	switch {
	case n.isFlt:
		return n.float, nil
	case n.big == nil:
		return float64(n.small), nil
	}
	f, _ := new(big.Float).SetInt(n.big).Float64()
	if math.IsInf(f, 0) {
		return 0, &ArithmeticError{Message: "int too large to convert to float", Class: "OverflowError"}
	}
	return f, nil
}

func floatArith(op string, m, n number) (Value, error) {
	if op == "/" && !m.isFlt && !n.isFlt {
		if n.small == 0 {
			return nil, zeroDivision("division by zero")
		}
		if magnitude(m.small) < exactInt && magnitude(n.small) < exactInt {
			return Float(float64(m.small) / float64(n.small)), nil
		}
		return divideBig(m.bigInt(), n.bigInt())
	}
	a, err := m.toFloat()
	if err != nil {
		return nil, err
	}
	b, err := n.toFloat()
	if err != nil {
		return nil, err
	}
	switch op {
	case "+":
		return Float(a + b), nil
	case "-":
		return Float(a - b), nil
	case "*":
		return Float(a * b), nil
	case "/":
		if b == 0 {
			return nil, zeroDivision("float division by zero")
		}
		return Float(a / b), nil
	case "%":
		if b == 0 {
			return nil, zeroDivision("float modulo")
		}
		_, mod := FloatDivMod(a, b)
		return Float(mod), nil
	}
	return floatPow(a, b)
}

// FloatDivMod gives Python's a // b and a % b of doubles; b must not be zero.
func FloatDivMod(a, b float64) (quotient, remainder float64) {
	mod := math.Mod(a, b)
	div := (a - mod) / b
	if mod != 0 {
		if (b < 0) != (mod < 0) {
			mod += b
			div--
		}
	} else {
		mod = math.Copysign(0, b)
	}
	if div == 0 {
		return math.Copysign(0, a/b), mod
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, mod
}

func bigArith(op string, a, b *big.Int) (Value, error) {
	switch op {
	case "+":
		return checkedInt(new(big.Int).Add(a, b))
	case "-":
		return checkedInt(new(big.Int).Sub(a, b))
	case "*":
		if a.BitLen()+b.BitLen() > MaxIntBits+1 {
			return nil, tooLarge()
		}
		return checkedInt(new(big.Int).Mul(a, b))
	case "/":
		if b.Sign() == 0 {
			return nil, zeroDivision("division by zero")
		}
		return divideBig(a, b)
	case "%":
		if b.Sign() == 0 {
			return nil, zeroDivision("integer modulo by zero")
		}
		_, mod := IntDivMod(a, b)
		return NewInt(mod), nil
	}
	return powInt(a, b)
}

// IntDivMod gives Python's a // b and a % b: the quotient rounded down, the remainder with the sign of b. b must not be zero.
func IntDivMod(a, b *big.Int) (quotient, remainder *big.Int) {
	quotient, remainder = new(big.Int).QuoRem(a, b, new(big.Int))
	if remainder.Sign() != 0 && remainder.Sign() != b.Sign() {
		quotient.Sub(quotient, big.NewInt(1))
		remainder.Add(remainder, b)
	}
	return quotient, remainder
}

func tooLarge() error {
	return &ArithmeticError{Message: "the result is an integer of more than a million binary digits", Class: "OverflowError"}
}

func checkedInt(v *big.Int) (Value, error) {
	if v.BitLen() > MaxIntBits {
		return nil, tooLarge()
	}
	return NewInt(v), nil
}

func divideBig(a, b *big.Int) (Value, error) {
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	if f == 0 && b.Sign() < 0 && a.Sign() >= 0 {
		f = math.Copysign(0, -1)
	}
	if math.IsInf(f, 0) {
		return nil, &ArithmeticError{Message: "integer division result too large for a float", Class: "OverflowError"}
	}
	return Float(f), nil
}

func powInt(a, b *big.Int) (Value, error) {
	if b.Sign() < 0 {
		x, err := number{big: a}.toFloat()
		if err != nil {
			return nil, err
		}
		y, err := number{big: b}.toFloat()
		if err != nil {
			return nil, err
		}
		return floatPow(x, y)
	}
	if a.IsInt64() {
		switch a.Int64() {
		case 0:
			if b.Sign() == 0 {
				return Int(1), nil
			}
			return Int(0), nil
		case 1:
			return Int(1), nil
		case -1:
			return Int(1 - 2*int64(b.Bit(0))), nil
		}
	}
	if !b.IsInt64() || b.Int64() > MaxIntBits || int64(a.BitLen()-1)*b.Int64() > MaxIntBits {
		return nil, tooLarge()
	}
	return checkedInt(new(big.Int).Exp(a, b, nil))
}

// floatPow is Python's power of doubles. The result is calculated with more digits than a double has and then rounded, so
// that it does not depend on the machine.
func floatPow(a, b float64) (Value, error) {
	switch {
	case b == 0 || a == 1:
		return Float(1), nil
	case a == 0 && b < 0:
		return nil, zeroDivision("0.0 cannot be raised to a negative power")
	case a == 0 || math.IsNaN(a) || math.IsNaN(b) || math.IsInf(a, 0) || math.IsInf(b, 0):
		return Float(math.Pow(a, b)), nil
	case a < 0 && math.Trunc(b) != b:
		return nil, &ArithmeticError{Message: "negative number cannot be raised to a fractional power", Class: "ValueError"}
	}
	overflow := &ArithmeticError{Message: "(34, 'Numerical result out of range')", Class: "OverflowError"}
	rough := math.Pow(a, b)
	if math.IsInf(rough, 0) && math.Abs(b)*math.Abs(math.Log2(math.Abs(a))) > 1100 {
		return nil, overflow
	}
	if math.Abs(b)*math.Abs(math.Log2(math.Abs(a))) > 1200 {
		return Float(rough), nil // far below the smallest double
	}
	r := precisePow(math.Abs(a), b)
	if a < 0 && math.Mod(b, 2) != 0 {
		r = -r
	}
	if math.IsInf(r, 0) {
		return nil, overflow
	}
	return Float(r), nil
}

// powPrec is the number of binary digits of intermediate results in precisePow.
const powPrec = 240

// precisePow is a**b for a > 0, rounded once at the end.
func precisePow(a, b float64) float64 {
	if math.Trunc(b) == b && math.Abs(b) <= 1<<20 {
		n := uint64(math.Abs(b))
		result, base := newPrec(1), newPrec(a)
		for ; n > 0; n >>= 1 {
			if n&1 == 1 {
				result.Mul(result, base)
			}
			base.Mul(base, base)
		}
		if b < 0 {
			result.Quo(newPrec(1), result)
		}
		f, _ := result.Float64()
		return f
	}
	f, _ := preciseExp(new(big.Float).SetPrec(powPrec).Mul(preciseLog(a), newPrec(b))).Float64()
	return f
}

func newPrec(f float64) *big.Float { return new(big.Float).SetPrec(powPrec).SetFloat64(f) }

// preciseLog is the natural logarithm of a > 0, from the series of the inverse hyperbolic tangent.
func preciseLog(a float64) *big.Float {
	mantissa, exp := math.Frexp(a)
	if mantissa < math.Sqrt2/2 {
		mantissa *= 2
		exp--
	}
	m := newPrec(mantissa)
	sum := atanhTwice(new(big.Float).SetPrec(powPrec).Quo(
		new(big.Float).SetPrec(powPrec).Sub(m, newPrec(1)), new(big.Float).SetPrec(powPrec).Add(m, newPrec(1))))
	return sum.Add(sum, new(big.Float).SetPrec(powPrec).Mul(logTwo(), newPrec(float64(exp))))
}

// logTwo is the natural logarithm of two.
func logTwo() *big.Float {
	return atanhTwice(new(big.Float).SetPrec(powPrec).Quo(newPrec(1), newPrec(3)))
}

// atanhTwice is 2·atanh(z) for |z| ≤ 1/3.
func atanhTwice(z *big.Float) *big.Float {
	square := new(big.Float).SetPrec(powPrec).Mul(z, z)
	power := new(big.Float).SetPrec(powPrec).Set(z)
	sum := new(big.Float).SetPrec(powPrec)
	for k := 1; k < 160; k += 2 {
		term := new(big.Float).SetPrec(powPrec).Quo(power, newPrec(float64(k)))
		sum.Add(sum, term)
		power.Mul(power, square)
	}
	return sum.Mul(sum, newPrec(2))
}

// preciseExp is the exponential function.
func preciseExp(x *big.Float) *big.Float {
	ratio, _ := new(big.Float).Quo(x, logTwo()).Float64()
	k := math.Round(ratio)
	r := new(big.Float).SetPrec(powPrec).Sub(x, new(big.Float).SetPrec(powPrec).Mul(logTwo(), newPrec(k)))
	const halvings = 16
	r.SetMantExp(r, -halvings)
	sum, term := newPrec(1), newPrec(1)
	for i := 1; i < 20; i++ {
		term.Mul(term, r)
		term.Quo(term, newPrec(float64(i)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return new(big.Float).SetPrec(powPrec).SetMantExp(sum, int(k))
}
