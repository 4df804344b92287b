package value

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFormatWidth bounds the width and the precision of a format specification.
const maxFormatWidth = 1 << 20

// FormatField is the replacement field of an f-string: v, the conversion after ! (0, 'r', 's' or 'a') and the specification
// after the colon. As with {{v}}, a float without a fraction counts as an integer, and an unknown v makes the text unknown.
// Errors are [*ReferenceError] and [*FormatError].
func FormatField(v Value, conv byte, spec string) (text string, unknown bool, err error) {
	switch x := v.(type) {
	case *Unknown:
		return "", true, nil
	case *Reference:
		return "", false, &ReferenceError{Reference: x}
	}
	text, err = FormatSpec(withoutFraction(v), conv, spec)
	return text, false, err
}

// FormatSpec is Python's format(v, spec) after the conversion conv: 'r' and 'a' for the notation of repr() and ascii(), 's' for
// str(), 0 for none. Errors are [*FormatError] with Python's text.
func FormatSpec(v Value, conv byte, spec string) (string, error) {
	switch conv {
	case 0:
	case 'r':
		v = String(Repr(v))
	case 's':
		v = String(Str(v))
	case 'a':
		v = String(escapeNonASCII(Repr(v)))
	default:
		return "", &FormatError{Message: fmt.Sprintf("Unknown conversion specifier %c", conv), Class: "ValueError"}
	}
	if spec == "" {
		return Str(v), nil
	}
	switch x := v.(type) {
	case String:
		return formatString(string(x), spec)
	case Bool, Int, *BigInt:
		n, _ := numberOf(x)
		return formatInt(n, spec, TypeName(v))
	case Float:
		return formatFloat(float64(x), spec)
	}
	return "", &FormatError{Message: "unsupported format string passed to " + TypeName(v) + ".__format__", Class: "TypeError"}
}

// escapeNonASCII turns the notation of repr() into that of ascii().
func escapeNonASCII(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		case r <= 0xff:
			b = appendHex(append(b, `\x`...), uint32(r), 2)
		case r <= 0xffff:
			b = appendHex(append(b, `\u`...), uint32(r), 4)
		default:
			b = appendHex(append(b, `\U`...), uint32(r), 8)
		}
		i += n
	}
	return string(b)
}

// formatSpec is a parsed specification: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type formatSpec struct {
	fill     rune
	align    byte // < > = ^
	sign     byte // 0, '+', '-' or ' '
	noNegZ   bool
	alt      bool
	width    int // -1 for none
	grouping byte
	prec     int  // -1 for none
	code     rune // 0 for none
}

func formatFault(format string, args ...any) error {
	return &FormatError{Message: fmt.Sprintf(format, args...), Class: "ValueError"}
}

func isAlign(c byte) bool { return c == '<' || c == '>' || c == '=' || c == '^' }

func parseSpec(text string, defaultAlign byte, typeName string) (formatSpec, error) {
	s := formatSpec{fill: ' ', align: defaultAlign, width: -1, prec: -1}
	rest := text
	fillGiven, alignGiven := false, false
	if r, n := utf8.DecodeRuneInString(rest); n < len(rest) && isAlign(rest[n]) {
		s.fill, s.align, fillGiven, alignGiven = r, rest[n], true, true
		rest = rest[n+1:]
	} else if rest != "" && isAlign(rest[0]) {
		s.align, alignGiven = rest[0], true
		rest = rest[1:]
	}
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		s.sign, rest = rest[0], rest[1:]
	}
	if strings.HasPrefix(rest, "z") {
		s.noNegZ, rest = true, rest[1:]
	}
	if strings.HasPrefix(rest, "#") {
		s.alt, rest = true, rest[1:]
	}
	if !fillGiven && strings.HasPrefix(rest, "0") {
		s.fill, rest = '0', rest[1:]
		if !alignGiven && defaultAlign == '>' {
			s.align = '='
		}
	}
	var err error
	if s.width, rest, err = specNumber(rest); err != nil {
		return s, err
	}
	if strings.HasPrefix(rest, ",") {
		s.grouping, rest = ',', rest[1:]
	}
	if strings.HasPrefix(rest, "_") {
		if s.grouping != 0 {
			return s, formatFault("Cannot specify both ',' and '_'.")
		}
		s.grouping, rest = '_', rest[1:]
	}
	if strings.HasPrefix(rest, ",") && s.grouping == '_' {
		return s, formatFault("Cannot specify both ',' and '_'.")
	}
	if strings.HasPrefix(rest, ".") {
		if s.prec, rest, err = specNumber(rest[1:]); err != nil {
			return s, err
		}
		if s.prec < 0 {
			return s, formatFault("Format specifier missing precision")
		}
	}
	r, n := utf8.DecodeRuneInString(rest)
	if n < len(rest) {
		return s, formatFault("Invalid format specifier '%s' for object of type '%s'", text, typeName)
	}
	switch {
	case n > 0:
		s.code = r
	case typeName == "str":
		s.code = 's'
	}
	if s.grouping != 0 {
		switch s.code {
		case 0, 'd', 'e', 'f', 'g', 'E', 'G', 'F', '%':
		case 'b', 'o', 'x', 'X':
			if s.grouping == '_' {
				break
			}
			fallthrough
		default:
			return s, formatFault("Cannot specify '%c' with %s.", s.grouping, quotedCode(s.code))
		}
	}
	return s, nil
}

// specNumber reads a decimal number at the start of s; -1 when there is none.
func specNumber(s string) (n int, rest string, err error) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
		if n > maxFormatWidth {
			return 0, s, formatFault("Too many decimal digits in format string")
		}
	}
	if i == 0 {
		return -1, s, nil
	}
	return n, s[i:], nil
}

func quotedCode(code rune) string {
	if code > ' ' && code < 0x80 {
		return "'" + string(code) + "'"
	}
	return fmt.Sprintf(`'\x%x'`, code)
}

func unknownCode(code rune, typeName string) error {
	return formatFault("Unknown format code %s for object of type '%s'", quotedCode(code), typeName)
}

// pad puts text, of n characters, into the width of the specification.
func (s formatSpec) pad(text string, n int) string {
	missing := s.width - n
	if missing <= 0 {
		return text
	}
	left := 0
	switch s.align {
	case '>', '=':
		left = missing
	case '^':
		left = missing / 2
	}
	fill := string(s.fill)
	return strings.Repeat(fill, left) + text + strings.Repeat(fill, missing-left)
}

func formatString(text, spec string) (string, error) {
	s, err := parseSpec(spec, '<', "str")
	if err != nil {
		return "", err
	}
	switch {
	case s.code != 0 && s.code != 's':
		return "", unknownCode(s.code, "str")
	case s.sign == ' ':
		return "", formatFault("Space not allowed in string format specifier")
	case s.sign != 0:
		return "", formatFault("Sign not allowed in string format specifier")
	case s.noNegZ:
		return "", formatFault("Negative zero coercion (z) not allowed in string format specifier")
	case s.alt:
		return "", formatFault("Alternate form (#) not allowed in string format specifier")
	case s.align == '=':
		return "", formatFault("'=' alignment not allowed in string format specifier")
	}
	n := utf8.RuneCountInString(text)
	if s.prec >= 0 && n > s.prec {
		text, n = firstRunes(text, s.prec), s.prec
	}
	return s.pad(text, n), nil
}

// firstRunes is the first n characters of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func formatInt(n number, spec, typeName string) (string, error) {
	s, err := parseSpec(spec, '>', typeName)
	if err != nil {
		return "", err
	}
	base, prefix := 10, ""
	switch s.code {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	case 'c':
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		f, err := n.toFloat()
		if err != nil {
			return "", &FormatError{Message: err.Error(), Class: "OverflowError"}
		}
		return s.float(f, typeName)
	default:
		return "", unknownCode(s.code, typeName)
	}
	switch {
	case s.prec >= 0:
		return "", formatFault("Precision not allowed in integer format specifier")
	case s.noNegZ:
		return "", formatFault("Negative zero coercion (z) not allowed in integer format specifier")
	}
	if s.code == 'c' {
		switch {
		case s.sign != 0:
			return "", formatFault("Sign not allowed with integer format specifier 'c'")
		case s.alt:
			return "", formatFault("Alternate form (#) not allowed with integer format specifier 'c'")
		case n.big != nil || n.small < 0 || n.small > utf8.MaxRune:
			return "", &FormatError{Message: "%c arg not in range(0x110000)", Class: "OverflowError"}
		}
		return s.pad(string(rune(n.small)), 1), nil
	}
	if !s.alt {
		prefix = ""
	}
	var digits string
	if n.big == nil {
		digits = strconv.FormatInt(n.small, base)
	} else {
		digits = n.big.Text(base)
	}
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	if s.code == 'X' {
		digits = strings.ToUpper(digits)
	}
	return s.number(negative, prefix, digits, ""), nil
}

func formatFloat(f float64, spec string) (string, error) {
	s, err := parseSpec(spec, '>', "float")
	if err != nil {
		return "", err
	}
	switch s.code {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
		return s.float(f, "float")
	}
	return "", unknownCode(s.code, "float")
}

func (s formatSpec) float(f float64, _ string) (string, error) {
	code, prec, dot := s.code, s.prec, false
	percent, upper := false, false
	switch code {
	case 0:
		dot = true
		code = 'g'
		if prec < 0 {
			code, prec = 'r', 0
		}
	case 'n':
		code = 'g'
	case 'E', 'F', 'G':
		code, upper = code-'A'+'a', true
	case '%':
		code, percent = 'f', true
		f *= 100
	}
	if prec < 0 {
		prec = 6
	}
	text := floatText(f, byte(code), prec, dot, s.alt)
	if upper {
		text = strings.ToUpper(text)
	}
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	if s.noNegZ && negative && !strings.ContainsAny(text[:mantissaEnd(text)], "123456789naifNAIF") {
		negative = false
	}
	if percent {
		text += "%"
	}
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return s.number(negative, "", text[:i], text[i:]), nil
}

// mantissaEnd is where the exponent of a number starts, or its length.
func mantissaEnd(text string) int {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return i
	}
	return len(text)
}

// number lays out a number: sign, prefix, grouped whole digits and the rest, within the width.
func (s formatSpec) number(negative bool, prefix, digits, rest string) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case s.sign == '+' || s.sign == ' ':
		sign = string(s.sign)
	}
	if s.grouping != 0 && digits != "" {
		size := 3
		switch s.code {
		case 'b', 'o', 'x', 'X':
			size = 4
		}
		least := 0
		if s.fill == '0' && s.align == '=' {
			least = s.width - len(sign) - len(prefix) - len(rest)
		}
		digits = group(digits, s.grouping, size, least)
	}
	body := digits + rest
	n := len(sign) + len(prefix) + len(body)
	if s.align == '=' {
		if missing := s.width - n; missing > 0 {
			return sign + prefix + strings.Repeat(string(s.fill), missing) + body
		}
	}
	return s.pad(sign+prefix+body, n)
}

// group puts sep between groups of size digits, with zeros in front until least characters are there.
func group(digits string, sep byte, size, least int) string {
	var parts []string
	for remaining := len(digits); ; {
		n := min(size, max(remaining, least, 1))
		have := min(n, remaining)
		parts = append(parts, strings.Repeat("0", n-have)+digits[remaining-have:remaining])
		remaining -= have
		least -= n
		if remaining <= 0 && least <= 0 {
			break
		}
		least--
	}
	var b strings.Builder
	for i, part := range slices.Backward(parts) {
		b.WriteString(part)
		if i > 0 {
			b.WriteByte(sep)
		}
	}
	return b.String()
}

// Percent is Python's text % args: printf formatting. args is a *List for several values (a tuple in Python), a *Dict for
// %(name)s, or a single value. Errors are [*FormatError] with Python's text.
func Percent(text string, args Value, tuple bool) (string, error) {
	p := percentFormatter{args: args, single: !tuple}
	if list, ok := args.(*List); ok && tuple {
		p.items = list.Items
	}
	return p.run(text)
}

type percentFormatter struct {
	args   Value
	items  []Value
	single bool
	used   int
	out    strings.Builder
}

func typeFault(format string, args ...any) error {
	return &FormatError{Message: fmt.Sprintf(format, args...), Class: "TypeError"}
}

func (p *percentFormatter) next() (Value, error) {
	if p.single {
		if p.used > 0 {
			return nil, typeFault("not enough arguments for format string")
		}
		p.used++
		return p.args, nil
	}
	if p.used >= len(p.items) {
		return nil, typeFault("not enough arguments for format string")
	}
	p.used++
	return p.items[p.used-1], nil
}

func (p *percentFormatter) run(text string) (string, error) {
	dict, isDict := p.args.(*Dict)
	for i := 0; i < len(text); {
		j := strings.IndexByte(text[i:], '%')
		if j < 0 {
			p.out.WriteString(text[i:])
			break
		}
		p.out.WriteString(text[i : i+j])
		i += j + 1
		start := i
		var v Value
		if i < len(text) && text[i] == '(' {
			if !isDict {
				return "", typeFault("format requires a mapping")
			}
			depth, from := 1, i+1
			for i++; i < len(text) && depth > 0; i++ {
				switch text[i] {
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			if depth > 0 {
				return "", formatFault("incomplete format key")
			}
			key := text[from : i-1]
			found, ok := dict.Get(key)
			if !ok {
				return "", &FormatError{Message: StringRepr(key), Class: "KeyError"}
			}
			v = found
			p.used++
		}
		var flags strings.Builder
		for i < len(text) && strings.IndexByte("-+ #0", text[i]) >= 0 {
			flags.WriteByte(text[i])
			i++
		}
		prec := -1
		width, behind, err := p.size(text, i)
		if err != nil {
			return "", err
		}
		i = behind
		if width < -1 {
			width = -width
			flags.WriteByte('-')
		}
		if i < len(text) && text[i] == '.' {
			if prec, i, err = p.size(text, i+1); err != nil {
				return "", err
			}
			prec = max(prec, 0)
		}
		if i < len(text) && strings.IndexByte("hlL", text[i]) >= 0 {
			i++
		}
		if i >= len(text) {
			return "", formatFault("incomplete format")
		}
		code, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if code == '%' && i-n == start {
			p.out.WriteByte('%')
			continue
		}
		if v == nil {
			if v, err = p.next(); err != nil {
				return "", err
			}
		}
		one, err := percentOne(v, code, flags.String(), width, prec)
		if errors.Is(err, errUnsupportedCode) {
			r := "'" + string(code) + "' (0x" + strconv.FormatInt(int64(code), 16) + ")"
			at := utf8.RuneCountInString(text[:i-n])
			return "", formatFault("unsupported format character %s at index %d", r, at)
		}
		if err != nil {
			return "", err
		}
		p.out.WriteString(one)
		if p.out.Len() > 1<<26 {
			return "", formatFault("the formatted text is too long")
		}
	}
	if p.single {
		_, isList := p.args.(*List)
		if p.used == 0 && !isDict && !isList {
			return "", typeFault("not all arguments converted during string formatting")
		}
	} else if p.used < len(p.items) {
		return "", typeFault("not all arguments converted during string formatting")
	}
	return p.out.String(), nil
}

// size reads a width or precision: digits, or * for the next argument. -1 when there is none.
func (p *percentFormatter) size(text string, i int) (n, after int, err error) {
	if i < len(text) && text[i] == '*' {
		v, err := p.next()
		if err != nil {
			return 0, i, err
		}
		k, ok := v.(Int)
		if !ok {
			return 0, i, typeFault("* wants int")
		}
		if k > maxFormatWidth || k < -maxFormatWidth {
			return 0, i, formatFault("width too big")
		}
		return int(k), i + 1, nil
	}
	n, rest, err := specNumber(text[i:])
	if err != nil {
		return 0, i, formatFault("width too big")
	}
	return n, len(text) - len(rest), nil
}

var errUnsupportedCode = formatFault("unsupported format character")

func percentOne(v Value, code rune, flags string, width, prec int) (string, error) {
	left, zero := strings.Contains(flags, "-"), strings.Contains(flags, "0")
	s := formatSpec{fill: ' ', align: '>', width: width, prec: prec, code: code, alt: strings.Contains(flags, "#")}
	switch {
	case strings.Contains(flags, "+"):
		s.sign = '+'
	case strings.Contains(flags, " "):
		s.sign = ' '
	}
	numeric := strings.ContainsRune("diuoxXeEfFgG", code)
	switch {
	case left:
		s.align = '<'
	case zero && numeric:
		s.align, s.fill = '=', '0'
	}
	switch code {
	case 's', 'r', 'a':
		text := Str(v)
		switch code {
		case 'r':
			text = Repr(v)
		case 'a':
			text = escapeNonASCII(Repr(v))
		}
		n := utf8.RuneCountInString(text)
		if prec >= 0 && n > prec {
			text, n = firstRunes(text, prec), prec
		}
		return s.pad(text, n), nil
	case 'c':
		switch x := v.(type) {
		case String:
			if utf8.RuneCountInString(string(x)) == 1 {
				return s.pad(string(x), 1), nil
			}
		case Int, Bool:
			n, _ := numberOf(v)
			if n.small < 0 || n.small > utf8.MaxRune {
				return "", &FormatError{Message: "%c arg not in range(0x110000)", Class: "OverflowError"}
			}
			return s.pad(string(rune(n.small)), 1), nil
		case *BigInt:
			return "", &FormatError{Message: "%c arg not in range(0x110000)", Class: "OverflowError"}
		}
		return "", typeFault("%%c requires int or char")
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return percentInt(v, s)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		n, ok := numberOf(v)
		if !ok {
			return "", typeFault("must be real number, not %s", TypeName(v))
		}
		f, err := n.toFloat()
		if err != nil {
			return "", &FormatError{Message: err.Error(), Class: "OverflowError"}
		}
		return s.float(f, "float")
	}
	return "", errUnsupportedCode
}

func percentInt(v Value, s formatSpec) (string, error) {
	n, ok := numberOf(v)
	code := s.code
	switch {
	case ok && n.isFlt && strings.ContainsRune("oxX", code):
		ok = false
	case ok && n.isFlt:
		if math.IsNaN(n.float) || math.IsInf(n.float, 0) {
			text, kind := "cannot convert float NaN to integer", "ValueError"
			if math.IsInf(n.float, 0) {
				text, kind = "cannot convert float infinity to integer", "OverflowError"
			}
			return "", &FormatError{Message: text, Class: kind}
		}
		whole, _ := big.NewFloat(n.float).Int(nil)
		n = number{big: whole}
	}
	if !ok {
		if strings.ContainsRune("oxX", code) {
			return "", typeFault("%%%c format: an integer is required, not %s", code, TypeName(v))
		}
		return "", typeFault("%%%c format: a real number is required, not %s", code, TypeName(v))
	}
	base, prefix := 10, ""
	switch code {
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	}
	if !s.alt {
		prefix = ""
	}
	var digits string
	if n.big == nil {
		digits = strconv.FormatInt(n.small, base)
	} else {
		digits = n.big.Text(base)
	}
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	if code == 'X' {
		digits = strings.ToUpper(digits)
	}
	if missing := s.prec - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return s.number(negative, prefix, digits, ""), nil
}
