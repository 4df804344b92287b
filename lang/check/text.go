package check

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// The language decodes escape sequences byte by byte, in all strings but raw ones: a character outside ASCII becomes one
// character for each of its bytes (language specification, section 2.1). Models in the wild depend on the result, through the
// contents and the hashes of what they export, so this is kept. Raw strings are intact.

// texts gives the values of string literals in one file.
type texts struct{ file *syntax.File }

// literal is the value of a literal.
func (x texts) literal(l *syntax.Literal) value.Value {
	s, ok := l.Value.(value.String)
	if !ok || isASCII(string(s)) {
		return l.Value
	}
	switch l.Kind {
	case syntax.StringLiteral, syntax.MultiLiteral, syntax.FormatLiteral:
		return value.String(x.decoded(string(s), l.Pos, l.EndPos))
	}
	return l.Value
}

// decoded is the text of a string between two positions, given with its characters intact.
func (x texts) decoded(text string, from, to syntax.Pos) string {
	if isASCII(text) || x.file == nil || to.Offset() > len(x.file.Src) {
		return text
	}
	raw := x.file.Src[from.Offset():to.Offset()]
	if isASCII(string(raw)) {
		return text // the characters come from escape sequences
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return bytewise(text)
	}
	body := unquoted(string(raw))
	intact, _, err := value.Unescape(body)
	if err != nil || intact != text {
		return bytewise(text)
	}
	out, _, err := value.Unescape(bytewise(body))
	if err != nil {
		return bytewise(text)
	}
	return out
}

// unquoted is a string token without its quotes.
func unquoted(raw string) string {
	if strings.HasPrefix(raw, `"""`) && len(raw) >= 6 {
		return raw[3 : len(raw)-3]
	}
	if len(raw) < 2 {
		return raw
	}
	return raw[1 : len(raw)-1]
}

// bytewise makes a character of every byte of a text.
func bytewise(s string) string {
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = utf8.AppendRune(b, rune(s[i]))
	}
	return string(b)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// constant is the value of an expression that is one.
func (x texts) constant(e syntax.Expr) (value.Value, bool) {
	switch e := e.(type) {
	case *syntax.Literal:
		return x.literal(e), true
	case *syntax.List:
		items := make([]value.Value, 0, len(e.Items))
		for _, it := range e.Items {
			v, ok := x.constant(it)
			if !ok {
				return nil, false
			}
			if l, ok := v.(*value.List); ok {
				items = append(items, l.Items...)
				continue
			}
			items = append(items, v)
		}
		return &value.List{Items: items}, true
	case *syntax.Dict:
		d := value.NewDict(len(e.Entries))
		for _, en := range e.Entries {
			v, ok := x.constant(en.Value)
			if !ok {
				return nil, false
			}
			d.Set(x.key(en.Key), v)
		}
		return d, true
	}
	return nil, false
}

// key is the text of a dictionary's key.
func (x texts) key(l *syntax.Literal) string {
	s, _ := x.literal(l).(value.String)
	return string(s)
}
