package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Str is v as Python's str() shows it: strings as they are, null as "null", booleans as True and False, an instance with the
// places that constructed it, lists and dictionaries as [Repr] shows them.
func Str(v Value) string {
	switch x := v.(type) {
	case String:
		return string(x)
	case *Opaque:
		return x.Text
	case Instance:
		return x.TypeName() + " (instantiated at " + strings.Join(x.Places(), ",") + ")"
	}
	return Repr(v)
}

// Repr is v as Python's repr() shows it, which is also how it appears inside a list or a dictionary and in the key of an
// index. An instance is its type and its serial number in hexadecimal.
func Repr(v Value) string {
	return string(appendRepr(nil, v))
}

func appendRepr(b []byte, v Value) []byte {
	switch x := v.(type) {
	case Null:
		return append(b, "null"...)
	case Bool:
		if x {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case Int:
		return strconv.AppendInt(b, int64(x), 10)
	case *BigInt:
		return x.V.Append(b, 10)
	case Float:
		return append(b, FloatRepr(float64(x))...)
	case String:
		return appendQuoted(b, string(x), false)
	case *List:
		b = append(b, '[')
		for i, item := range x.Items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendRepr(b, item)
		}
		return append(b, ']')
	case *Dict:
		b = append(b, '{')
		for i, k := range x.keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendQuoted(b, k, false)
			b = append(b, ": "...)
			b = appendRepr(b, x.vals[i])
		}
		return append(b, '}')
	case *Opaque:
		return append(b, x.Notation...)
	case *Unknown:
		return append(b, "<unknown>"...)
	case *Reference:
		b = append(b, x.Type...)
		b = append(b, '(')
		args := argsOf(x)
		for i, k := range args.keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(b, k...)
			b = append(b, '=')
			b = appendRepr(b, args.vals[i])
		}
		return append(b, ')')
	case Instance:
		b = append(b, x.TypeName()...)
		b = append(b, ' ')
		return strconv.AppendInt(b, int64(x.Serial()), 16)
	}
	return b
}

// PrintForm is v as std::print shows it: lists, dictionaries and instances carry an @ in front, null is None unless it is
// inside a list or a dictionary.
func PrintForm(v Value) string {
	switch v.(type) {
	case Null:
		return "None"
	case *List, *Dict, *Opaque, Instance:
		return "@" + Repr(v)
	}
	return Str(v)
}

// StringRepr is s in the notation of Python's repr(): single quotes unless s has those and no double ones, escapes for what
// can not be printed.
func StringRepr(s string) string { return string(appendQuoted(nil, s, false)) }

// StringASCII is s in the notation of Python's ascii(): as [StringRepr], with everything outside ASCII escaped.
func StringASCII(s string) string { return string(appendQuoted(nil, s, true)) }

func appendQuoted(b []byte, s string, ascii bool) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b = append(b, quote)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			// A byte that is not UTF-8, shown as Python shows one that it has smuggled through decoding.
			b = append(b, `\udc`...)
			b = appendHex(b, uint32(s[i]), 2)
			i++
			continue
		}
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = append(b, `\x`...)
			b = appendHex(b, uint32(r), 2)
		case r < 0x7f:
			b = append(b, byte(r))
		case !ascii && unicode.IsPrint(r):
			b = append(b, s[i:i+n]...)
		case r <= 0xff:
			b = append(b, `\x`...)
			b = appendHex(b, uint32(r), 2)
		case r <= 0xffff:
			b = append(b, `\u`...)
			b = appendHex(b, uint32(r), 4)
		default:
			b = append(b, `\U`...)
			b = appendHex(b, uint32(r), 8)
		}
		i += n
	}
	return append(b, quote)
}

func appendHex(b []byte, v uint32, digits int) []byte {
	const hex = "0123456789abcdef"
	for i := digits - 1; i >= 0; i-- {
		b = append(b, hex[v>>(4*i)&0xf])
	}
	return b
}

// FloatRepr is f as Python's repr() writes it: the shortest text that reads back as f, with an exponent when the decimal point
// would stand left of the fourth zero or right of the sixteenth digit.
func FloatRepr(f float64) string {
	return floatText(f, 'r', 0, true, false)
}

// floatText writes f in the manner of Python's PyOS_double_to_string. code is r, e, f or g; dot asks for ".0" after a whole
// number, alt keeps the point and trailing zeros.
func floatText(f float64, code byte, prec int, dot, alt bool) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	var digits string // significant digits, no point
	var point int     // position of the decimal point relative to the start of digits
	var useExp bool
	switch code {
	case 'r':
		digits, point = decimalDigits(f, -1)
		useExp = point <= -4 || point > 16
	case 'e':
		digits, point = decimalDigits(f, prec)
		useExp = true
	case 'g':
		if prec == 0 {
			prec = 1
		}
		digits, point = decimalDigits(f, prec-1)
		limit := prec
		if dot {
			limit--
		}
		useExp = point <= -4 || point > limit
		if !alt {
			digits = strings.TrimRight(digits, "0")
			if digits == "" {
				digits = "0"
			}
		}
	default: // f
		text := strconv.FormatFloat(f, 'f', prec, 64)
		if alt && prec == 0 {
			text += "."
		}
		return text
	}
	exp := 0
	if useExp {
		exp = point - 1
		point = 1
	}
	var b strings.Builder
	if math.Signbit(f) {
		b.WriteByte('-')
	}
	switch {
	case point <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -point))
		b.WriteString(digits)
	case point >= len(digits):
		b.WriteString(digits)
		b.WriteString(strings.Repeat("0", point-len(digits)))
		switch {
		case dot && !useExp:
			b.WriteString(".0")
		case alt:
			b.WriteByte('.')
		}
	default:
		b.WriteString(digits[:point])
		b.WriteByte('.')
		b.WriteString(digits[point:])
	}
	if useExp {
		b.WriteByte('e')
		if exp < 0 {
			b.WriteByte('-')
			exp = -exp
		} else {
			b.WriteByte('+')
		}
		if exp < 10 {
			b.WriteByte('0')
		}
		b.WriteString(strconv.Itoa(exp))
	}
	return b.String()
}

// decimalDigits gives the digits of |f| and the place of the decimal point before or after them. prec is the number of
// digits after the first, or -1 for the fewest that identify f.
func decimalDigits(f float64, prec int) (digits string, point int) {
	text := strconv.FormatFloat(math.Abs(f), 'e', prec, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	point, _ = strconv.Atoi(exponent)
	return strings.Replace(mantissa, ".", "", 1), point + 1
}

// Interpolate is v as {{v}} and f-strings show it: as [Str], but a float without a fraction loses its point. unknown is true
// when v is unknown, which makes the whole text unknown; a reference is a [*ReferenceError].
func Interpolate(v Value) (text string, unknown bool, err error) {
	switch x := v.(type) {
	case *Unknown:
		return "", true, nil
	case *Reference:
		return "", false, &ReferenceError{Reference: x}
	}
	return Str(withoutFraction(v)), false, nil
}

// withoutFraction turns a float without a fraction into the integer of the same amount.
func withoutFraction(v Value) Value {
	f, ok := v.(Float)
	if !ok {
		return v
	}
	x := float64(f)
	if math.IsInf(x, 0) || math.Trunc(x) != x {
		return v
	}
	if math.Abs(x) < exactInt {
		return Int(int64(x))
	}
	whole, _ := big.NewFloat(x).Int(nil)
	return NewInt(whole)
}

// IndexKey is one attribute's part of the key of an index: attr=repr(v).
func IndexKey(attr string, v Value) string {
	b := make([]byte, 0, len(attr)+24)
	b = append(b, attr...)
	b = append(b, '=')
	return string(appendRepr(b, v))
}

// TypeName is the name of Python's class for v, as it appears in the texts of errors.
func TypeName(v Value) string {
	switch x := v.(type) {
	case Null:
		return "NoneValue"
	case Bool:
		return "bool"
	case Int, *BigInt:
		return "int"
	case Float:
		return "float"
	case String:
		return "str"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case *Unknown:
		return "Unknown"
	case *Reference:
		return x.Type
	case *Opaque:
		return x.Class
	case Instance:
		return "Instance"
	}
	return "object"
}
