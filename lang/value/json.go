package value

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONStyle says how [AppendJSON] lays out its text. The zero style is compact.
type JSONStyle struct {
	// SortKeys orders the keys of objects by bytes instead of by insertion.
	SortKeys bool
	// ASCII escapes everything outside ASCII.
	ASCII bool
	// NonFinite writes NaN, Infinity and -Infinity, as Python does; otherwise they are errors.
	NonFinite bool
	// ItemSeparator and KeySeparator stand between entries and after keys; empty means "," and ":".
	ItemSeparator, KeySeparator string
	// Indent, when not negative and Pretty is set, puts each entry on a line of its own, indented by that many spaces.
	Indent int
	Pretty bool
}

// PythonJSON is the style of json.dumps without options.
var PythonJSON = JSONStyle{ASCII: true, NonFinite: true, ItemSeparator: ", ", KeySeparator: ": "}

// CanonicalJSON gives equal bytes for equal content: sorted keys, no white space, text in UTF-8, floats in the shortest notation
// that reads back. It fails for values that have no JSON: unknown values, references, instances, NaN and infinities.
func CanonicalJSON(v Value) ([]byte, error) {
	return AppendJSON(nil, v, JSONStyle{SortKeys: true})
}

// AppendJSON appends v as JSON to b. It fails with [*UnknownError] for unknown values, [*ReferenceError] for references, and a
// plain error for instances.
func AppendJSON(b []byte, v Value, style JSONStyle) ([]byte, error) {
	if style.ItemSeparator == "" {
		style.ItemSeparator = ","
	}
	if style.KeySeparator == "" {
		style.KeySeparator = ":"
	}
	e := jsonEncoder{style: style, b: b}
	if err := e.value(v, 0); err != nil {
		return nil, err
	}
	return e.b, nil
}

type jsonEncoder struct {
	style JSONStyle
	b     []byte
}

func (e *jsonEncoder) value(v Value, depth int) error {
	switch x := v.(type) {
	case Null:
		e.b = append(e.b, "null"...)
	case Bool:
		e.b = strconv.AppendBool(e.b, bool(x))
	case Int:
		e.b = strconv.AppendInt(e.b, int64(x), 10)
	case *BigInt:
		e.b = x.V.Append(e.b, 10)
	case Float:
		return e.float(float64(x))
	case String:
		e.string(string(x))
	case *List:
		if len(x.Items) == 0 {
			e.b = append(e.b, "[]"...)
			return nil
		}
		e.b = append(e.b, '[')
		for i, item := range x.Items {
			e.separate(i, depth+1)
			if err := e.value(item, depth+1); err != nil {
				return err
			}
		}
		e.newline(depth)
		e.b = append(e.b, ']')
	case *Dict:
		return e.dict(x, depth)
	case *Unknown:
		return &UnknownError{Value: x}
	case *Reference:
		return &ReferenceError{Reference: x}
	default:
		return fmt.Errorf("%s is not JSON serializable", Str(v))
	}
	return nil
}

func (e *jsonEncoder) dict(x *Dict, depth int) error {
	if x.Len() == 0 {
		e.b = append(e.b, "{}"...)
		return nil
	}
	keys := x.keys
	if e.style.SortKeys {
		keys = slices.Clone(keys)
		slices.Sort(keys)
	}
	e.b = append(e.b, '{')
	for i, k := range keys {
		e.separate(i, depth+1)
		e.string(k)
		e.b = append(e.b, e.style.KeySeparator...)
		v, _ := x.Get(k)
		if err := e.value(v, depth+1); err != nil {
			return err
		}
	}
	e.newline(depth)
	e.b = append(e.b, '}')
	return nil
}

func (e *jsonEncoder) separate(i, depth int) {
	if i > 0 {
		sep := e.style.ItemSeparator
		if e.style.Pretty {
			sep = strings.TrimRight(sep, " ")
		}
		e.b = append(e.b, sep...)
	}
	e.newline(depth)
}

func (e *jsonEncoder) newline(depth int) {
	if !e.style.Pretty {
		return
	}
	e.b = append(e.b, '\n')
	for range depth * e.style.Indent {
		e.b = append(e.b, ' ')
	}
}

func (e *jsonEncoder) float(f float64) error {
	switch {
	case !math.IsNaN(f) && !math.IsInf(f, 0):
		e.b = append(e.b, FloatRepr(f)...)
	case !e.style.NonFinite:
		return fmt.Errorf("%s is not JSON serializable", FloatRepr(f))
	case math.IsNaN(f):
		e.b = append(e.b, "NaN"...)
	case f > 0:
		e.b = append(e.b, "Infinity"...)
	default:
		e.b = append(e.b, "-Infinity"...)
	}
	return nil
}

func (e *jsonEncoder) string(s string) {
	e.b = append(e.b, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			e.b = append(e.b, '\\', byte(r))
		case r == '\n':
			e.b = append(e.b, `\n`...)
		case r == '\r':
			e.b = append(e.b, `\r`...)
		case r == '\t':
			e.b = append(e.b, `\t`...)
		case r == '\b':
			e.b = append(e.b, `\b`...)
		case r == '\f':
			e.b = append(e.b, `\f`...)
		case r < ' ':
			e.b = appendHex(append(e.b, `\u`...), uint32(r), 4)
		case r < utf8.RuneSelf && (r != 0x7f || !e.style.ASCII):
			e.b = append(e.b, byte(r))
		case !e.style.ASCII:
			e.b = utf8.AppendRune(e.b, r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			e.b = appendHex(append(e.b, `\u`...), uint32(hi), 4)
			e.b = appendHex(append(e.b, `\u`...), uint32(lo), 4)
		default:
			e.b = appendHex(append(e.b, `\u`...), uint32(r), 4)
		}
		i += n
	}
	e.b = append(e.b, '"')
}

// JSONError says that a text is not JSON; its text is that of Python's JSONDecodeError.
type JSONError struct {
	// Reason is what is wrong, Line, Column (from 1) and Offset (from 0, in characters) where.
	Reason               string
	Line, Column, Offset int
}

func (e *JSONError) Error() string {
	return fmt.Sprintf("%s: line %d column %d (char %d)", e.Reason, e.Line, e.Column, e.Offset)
}

// maxJSONDepth bounds the nesting of a JSON text.
const maxJSONDepth = 500

// ParseJSON reads a JSON text as Python's json.loads does: objects keep their order, integers their size; NaN, Infinity and
// -Infinity are floats; of equal keys the last one counts. Errors are [*JSONError].
func ParseJSON(text string) (Value, error) {
	d := jsonDecoder{s: text}
	if strings.HasPrefix(text, "\uFEFF") {
		return nil, d.fault("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)
	}
	d.space()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	d.space()
	if d.i < len(text) {
		return nil, d.fault("Extra data", d.i)
	}
	return v, nil
}

type jsonDecoder struct {
	s string
	i int
}

func (d *jsonDecoder) fault(reason string, at int) error {
	at = min(at, len(d.s))
	before := d.s[:at]
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &JSONError{Reason: reason, Line: strings.Count(before, "\n") + 1, Column: column, Offset: utf8.RuneCountInString(before)}
}

func (d *jsonDecoder) space() {
	for d.i < len(d.s) && strings.IndexByte(" \t\n\r", d.s[d.i]) >= 0 {
		d.i++
	}
}

func (d *jsonDecoder) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, d.fault("Nested too deeply", d.i)
	}
	rest := d.s[d.i:]
	for _, word := range []struct {
		text string
		v    Value
	}{
		{"null", Null{}},
		{"true", Bool(true)},
		{"false", Bool(false)},
		{"NaN", Float(math.NaN())},
		{"Infinity", Float(math.Inf(1))},
		{"-Infinity", Float(math.Inf(-1))},
	} {
		if strings.HasPrefix(rest, word.text) {
			d.i += len(word.text)
			return word.v, nil
		}
	}
	if rest != "" {
		switch rest[0] {
		case '"':
			s, err := d.string()
			return String(s), err
		case '[':
			return d.array(depth)
		case '{':
			return d.object(depth)
		}
	}
	return d.number()
}

func (d *jsonDecoder) number() (Value, error) {
	start := d.i
	i := d.i
	s := d.s
	if i < len(s) && s[i] == '-' {
		i++
	}
	digits := func() int {
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		return i - from
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if digits() == 0 {
		return nil, d.fault("Expecting value", start)
	}
	end, float := i, false
	if i < len(s) && s[i] == '.' {
		i++
		if digits() > 0 {
			end, float = i, true
		}
		i = end
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if digits() > 0 {
			end, float = i, true
		}
	}
	d.i = end
	text := s[start:end]
	if float {
		f, _ := strconv.ParseFloat(text, 64)
		return Float(f), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(n), nil
	}
	if len(text) > maxIntDigits {
		return nil, d.fault("Exceeds the limit (4300 digits) for integer string conversion", start)
	}
	n, _ := new(big.Int).SetString(text, 10)
	return NewInt(n), nil
}

func (d *jsonDecoder) string() (string, error) {
	start := d.i
	d.i++
	var b []byte
	for d.i < len(d.s) {
		c := d.s[d.i]
		switch {
		case c == '"':
			d.i++
			return string(b), nil
		case c < ' ':
			return "", d.fault("Invalid control character at", d.i)
		case c != '\\':
			b = append(b, c)
			d.i++
			continue
		}
		at := d.i
		d.i++
		if d.i >= len(d.s) {
			break
		}
		c = d.s[d.i]
		d.i++
		if k := strings.IndexByte(`"\/bfnrt`, c); k >= 0 {
			b = append(b, "\"\\/\b\f\n\r\t"[k])
			continue
		}
		if c != 'u' {
			return "", d.fault(`Invalid \escape`, at)
		}
		r, ok := d.unit()
		if !ok {
			return "", d.fault(`Invalid \uXXXX escape`, at+1)
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(d.s[d.i:], `\u`) {
			back := d.i
			d.i += 2
			if low, ok := d.unit(); ok && utf16.DecodeRune(r, low) != unicodeReplacement {
				r = utf16.DecodeRune(r, low)
			} else {
				d.i = back
			}
		}
		b = utf8.AppendRune(b, r)
	}
	return "", d.fault("Unterminated string starting at", start)
}

const unicodeReplacement = '\uFFFD'

func (d *jsonDecoder) unit() (rune, bool) {
	n, end := hexDigits(d.s, d.i, 4)
	if end-d.i < 4 {
		return 0, false
	}
	d.i = end
	return rune(n), true
}

func (d *jsonDecoder) array(depth int) (Value, error) {
	d.i++
	list := &List{}
	d.space()
	if d.i < len(d.s) && d.s[d.i] == ']' {
		d.i++
		return list, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, v)
		d.space()
		if d.i >= len(d.s) || d.s[d.i] != ',' && d.s[d.i] != ']' {
			return nil, d.fault("Expecting ',' delimiter", d.i)
		}
		d.i++
		if d.s[d.i-1] == ']' {
			return list, nil
		}
		d.space()
	}
}

func (d *jsonDecoder) object(depth int) (Value, error) {
	d.i++
	dict := NewDict(0)
	d.space()
	if d.i < len(d.s) && d.s[d.i] == '}' {
		d.i++
		return dict, nil
	}
	for {
		if d.i >= len(d.s) || d.s[d.i] != '"' {
			return nil, d.fault("Expecting property name enclosed in double quotes", d.i)
		}
		k, err := d.string()
		if err != nil {
			return nil, err
		}
		d.space()
		if d.i >= len(d.s) || d.s[d.i] != ':' {
			return nil, d.fault("Expecting ':' delimiter", d.i)
		}
		d.i++
		d.space()
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		dict.Set(k, v)
		d.space()
		if d.i >= len(d.s) || d.s[d.i] != ',' && d.s[d.i] != '}' {
			return nil, d.fault("Expecting ',' delimiter", d.i)
		}
		d.i++
		if d.s[d.i-1] == '}' {
			return dict, nil
		}
		d.space()
	}
}
