package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// maxIntDigits is the length beyond which Python refuses to read a decimal integer.
const maxIntDigits = 4300

// Cast converts v as the model's call typ(v) does, typ being string, int, float, number or bool. Unknown passes through; what
// can not be converted is a [*CastError], a reference a [*ReferenceError].
func Cast(typ string, v Value) (Value, error) {
	switch x := v.(type) {
	case *Unknown:
		return v, nil
	case *Reference:
		return nil, &ReferenceError{Reference: x}
	}
	var result Value
	ok := false
	switch typ {
	case "string":
		result, ok = castString(v), true
	case "bool":
		result, ok = Bool(Truth(v)), true
	case "int":
		result, ok = castInt(v)
	case "float":
		result, ok = castFloat(v)
	case "number":
		if n, isNumber := numberOf(v); isNumber && !n.isFlt {
			return n.value(), nil
		}
		result, ok = castFloat(v)
	}
	if !ok {
		return nil, &CastError{Value: v, Type: typ}
	}
	return result, nil
}

func castString(v Value) Value {
	if b, ok := v.(Bool); ok {
		return String(strconv.FormatBool(bool(b)))
	}
	return String(Str(v))
}

// Truth is Python's bool(v): null, false, zero and empty things are false.
func Truth(v Value) bool {
	switch x := v.(type) {
	case Null:
		return false
	case Bool:
		return bool(x)
	case Int:
		return x != 0
	case *BigInt:
		return x.V.Sign() != 0
	case Float:
		return x != 0
	case String:
		return x != ""
	case *List:
		return len(x.Items) > 0
	case *Dict:
		return x.Len() > 0
	}
	return true
}

func castInt(v Value) (Value, bool) {
	if s, ok := v.(String); ok {
		return ParseInt(string(s), 10)
	}
	n, ok := numberOf(v)
	switch {
	case !ok:
		return nil, false
	case !n.isFlt:
		return n.value(), true
	case math.IsNaN(n.float) || math.IsInf(n.float, 0):
		return nil, false
	}
	whole, _ := big.NewFloat(n.float).Int(nil)
	return NewInt(whole), true
}

func castFloat(v Value) (Value, bool) {
	if s, ok := v.(String); ok {
		return ParseFloat(string(s))
	}
	n, ok := numberOf(v)
	if !ok {
		return nil, false
	}
	f, err := n.toFloat()
	return Float(f), err == nil
}

// ParseInt reads an integer as Python's int(s, base) does, base being 0 or 2 to 36: white space around it, a sign, single
// underscores between digits, the digits of any script; a prefix such as 0x where the base allows it.
func ParseInt(s string, base int) (Value, bool) {
	s = trimNumber(s)
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	s, ok := asciiDigits(s)
	if !ok {
		return nil, false
	}
	s = strings.ToLower(s)
	prefixed := false
	if len(s) > 1 && s[0] == '0' {
		if b := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]]; b != 0 && (base == b || base == 0) {
			base, s, prefixed = b, s[2:], true
		}
	}
	if base == 0 {
		base = 10
		if strings.HasPrefix(s, "0") && strings.Trim(s, "0_") != "" {
			return nil, false
		}
	}
	if prefixed {
		s = strings.TrimPrefix(s, "_")
	}
	s, ok = withoutUnderscores(s, isAlnum)
	if !ok || s == "" || s[0] == '+' || s[0] == '-' {
		return nil, false
	}
	if base&(base-1) != 0 && len(s) > maxIntDigits {
		return nil, false
	}
	if len(s) < 18 {
		n, err := strconv.ParseInt(s, base, 64)
		if err != nil {
			return nil, false
		}
		if negative {
			n = -n
		}
		return Int(n), true
	}
	n, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	if negative {
		n.Neg(n)
	}
	return NewInt(n), true
}

// ParseFloat reads a float as Python's float(s) does: white space around it, underscores between digits, inf, infinity and
// nan in any case, the digits of any script.
func ParseFloat(s string) (Value, bool) {
	s = trimNumber(s)
	s, ok := asciiDigits(s)
	if !ok {
		return nil, false
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity", "nan":
		if len(s)-len(strings.TrimLeft(s, "+-")) > 1 {
			return nil, false
		}
		f, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-"), 64)
		if err != nil {
			return nil, false
		}
		if strings.HasPrefix(s, "-") {
			f = -f
		}
		return Float(f), true
	}
	s, ok = withoutUnderscores(s, isDigit)
	if !ok {
		return nil, false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && strings.IndexByte("+-.eE", c) < 0 {
			return nil, false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, false
	}
	return Float(f), true
}

// trimNumber removes the white space that Python allows around a number; among ASCII that is less than [IsSpace].
func trimNumber(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strings.TrimFunc(s, IsSpace)
		}
	}
	return strings.Trim(s, " \t\n\v\f\r")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' }

// withoutUnderscores removes underscores that stand between two digits; ok is false for any other.
func withoutUnderscores(s string, digit func(byte) bool) (string, bool) {
	if strings.IndexByte(s, '_') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] != '_' {
			b = append(b, s[i])
			continue
		}
		if i == 0 || i == len(s)-1 || !digit(s[i-1]) || !digit(s[i+1]) {
			return "", false
		}
	}
	return string(b), true
}

// asciiDigits turns the decimal digits of other scripts into ASCII ones; ok is false when other characters remain.
func asciiDigits(s string) (string, bool) {
	plain := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return s, true
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case unicode.Is(unicode.Nd, r):
			b.WriteByte('0' + byte(DigitValue(r)))
		default:
			return "", false
		}
	}
	return b.String(), true
}

// DigitValue is the value of a character of the class Nd (decimal digits), which come in runs of ten.
func DigitValue(r rune) int {
	for _, rg := range unicode.Nd.R16 {
		if r >= rune(rg.Lo) && r <= rune(rg.Hi) {
			return int(r-rune(rg.Lo)) % 10
		}
	}
	for _, rg := range unicode.Nd.R32 {
		if r >= rune(rg.Lo) && r <= rune(rg.Hi) {
			return int(r-rune(rg.Lo)) % 10
		}
	}
	return 0
}

// IsSpace reports whether Python's str.isspace() holds for r.
func IsSpace(r rune) bool {
	return r >= 0x1c && r <= 0x1f || unicode.IsSpace(r)
}
