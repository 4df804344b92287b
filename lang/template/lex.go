package template

import (
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lazyregexp"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokName
	tokString
	tokInteger
	tokFloat
	tokOperator
	tokBlockBegin
	tokBlockEnd
	tokVariableBegin
	tokVariableEnd
)

// token is a piece of a template. text is the name, the operator or the data; value the constant.
type token struct {
	kind  tokenKind
	text  string
	value any
	line  int
	// start and end are its place in the source.
	start, end int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokVariableBegin:
		return "begin of print statement"
	case tokVariableEnd:
		return "end of print statement"
	case tokData:
		return "template data / text"
	}
	return t.text
}

// normalized gives source with newlines as \n and without the one at its end.
func normalized(source string) string {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	return strings.TrimSuffix(source, "\n")
}

var (
	floatPattern = lazyregexp.New(`^(?i:(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+\-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))`)
	intPattern   = lazyregexp.New(`^(?i:0b(?:_?[0-1])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
	operators    = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

	rawBegin = lazyregexp.New(`^\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})`)
	rawEnd   = lazyregexp.New(`\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\})`)
)

type lexer struct {
	source string
	pos    int
	line   int
	tokens []token
}

// lex splits a template into tokens.
func lex(source string) []token {
	l := &lexer{source: normalized(source), line: 1}
	for l.pos < len(l.source) {
		l.data()
	}
	l.emit(tokEOF, "", nil, l.pos)
	return l.tokens
}

// emit adds a token that started at start.
func (l *lexer) emit(kind tokenKind, text string, v any, start int) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, value: v, line: l.line, start: start, end: l.pos})
}

// advance moves on by n bytes and counts lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.source[l.pos:l.pos+n], "\n")
	l.pos += n
}

// skipSpace moves over white space.
func (l *lexer) skipSpace() {
	rest := l.source[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, value.IsSpace)))
}

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.source[l.pos:]
	begin := nextTag(rest)
	if begin < 0 {
		start := l.pos
		line := l.line
		l.advance(len(rest))
		l.tokens = append(l.tokens, token{kind: tokData, text: rest, line: line, start: start, end: l.pos})
		return
	}
	text, tag := rest[:begin], rest[begin:]
	if len(tag) > 2 && tag[2] == '-' {
		text = strings.TrimRightFunc(text, value.IsSpace)
	}
	if text != "" {
		l.tokens = append(l.tokens, token{kind: tokData, text: text, line: l.line, start: l.pos, end: l.pos + begin})
	}
	l.advance(begin)
	switch tag[1] {
	case '#':
		l.comment(tag)
	case '%':
		if m := rawBegin().FindString(tag); m != "" {
			l.raw(m)
			return
		}
		l.tag(tokBlockBegin, tokBlockEnd, "%}")
	default:
		l.tag(tokVariableBegin, tokVariableEnd, "}}")
	}
}

// nextTag is the place of the next tag in s, or -1.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

func (l *lexer) comment(tag string) {
	end := strings.Index(tag[2:], "#}")
	if end < 0 && tag == "{#" {
		l.advance(2) // nothing follows, which Jinja2 lets pass
		return
	}
	if end < 0 {
		syntaxError(l.line, "Missing end of comment tag")
	}
	l.advance(2 + end + 2)
	if end > 0 && tag[2+end-1] == '-' {
		l.skipSpace()
	}
}

func (l *lexer) raw(begin string) {
	line := l.line
	l.advance(len(begin))
	rest := l.source[l.pos:]
	m := rawEnd().FindStringSubmatchIndex(rest)
	if rest == "" {
		return // nothing follows, which Jinja2 lets pass
	}
	if m == nil {
		syntaxError(line, "Missing end of raw directive")
	}
	text := rest[:m[0]]
	if rest[m[2]:m[3]] == "-" {
		text = strings.TrimRightFunc(text, value.IsSpace)
	}
	if text != "" {
		l.tokens = append(l.tokens, token{kind: tokData, text: text, line: l.line, start: l.pos, end: l.pos + m[0]})
	}
	l.advance(m[1])
	if strings.HasSuffix(strings.TrimRightFunc(rest[m[0]:m[1]], value.IsSpace), "-%}") {
		l.skipSpace()
	}
}

// tag reads the tokens of a tag up to its end.
func (l *lexer) tag(begin, end tokenKind, closing string) {
	start := l.pos
	l.advance(2)
	if l.pos < len(l.source) && (l.source[l.pos] == '-' || l.source[l.pos] == '+' && begin == tokBlockBegin) {
		l.advance(1)
	}
	l.emit(begin, l.source[start:l.pos], nil, start)
	var open []byte
	for {
		l.skipSpace()
		rest := l.source[l.pos:]
		start = l.pos
		if rest == "" {
			if len(open) > 0 {
				syntaxError(l.line, "unexpected end of template: %q is not closed", string(open[len(open)-1]))
			}
			return // the parser misses the end
		}
		if len(open) == 0 {
			sign := rest[0] == '-' || rest[0] == '+' && end == tokBlockEnd
			if sign && strings.HasPrefix(rest[1:], closing) {
				l.advance(1 + len(closing))
				l.emit(end, closing, nil, start)
				if rest[0] == '-' {
					l.skipSpace()
				}
				return
			}
			if strings.HasPrefix(rest, closing) {
				l.advance(len(closing))
				l.emit(end, closing, nil, start)
				return
			}
		}
		open = l.inner(rest, open)
	}
}

// inner reads one token inside a tag. open are the brackets that are open.
func (l *lexer) inner(rest string, open []byte) []byte {
	start := l.pos
	if m := floatPattern().FindString(rest); m != "" && (l.pos == 0 || l.source[l.pos-1] != '.') {
		l.advance(len(m))
		f, _ := value.ParseFloat(strings.ReplaceAll(m, "_", ""))
		l.emit(tokFloat, m, f, start)
		return open
	}
	if m := intPattern().FindString(rest); m != "" {
		l.advance(len(m))
		n, ok := new(big.Int).SetString(strings.ReplaceAll(strings.ToLower(m), "_", ""), base(m))
		if !ok || len(m) > 4300 {
			syntaxError(l.line, "invalid number %.40s", m)
		}
		l.emit(tokInteger, m, value.NewInt(n), start)
		return open
	}
	if n := nameLength(rest); n > 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		if !unicode.IsLetter(r) && r != '_' {
			syntaxError(l.line, "Invalid character in identifier")
		}
		l.advance(n)
		l.emit(tokName, rest[:n], nil, start)
		return open
	}
	if rest[0] == '\'' || rest[0] == '"' {
		if n := stringLength(rest); n > 0 {
			line := l.line
			l.advance(n)
			s, _, err := value.Unescape(rest[1 : n-1])
			if err != nil {
				syntaxError(line, "%s", err)
			}
			l.emit(tokString, rest[:n], value.String(s), start)
			return open
		}
	}
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if len(open) == 0 {
				syntaxError(l.line, "unexpected '%s'", op)
			}
			if want := open[len(open)-1]; want != op[0] {
				syntaxError(l.line, "unexpected '%s', expected '%c'", op, want)
			}
			open = open[:len(open)-1]
		}
		l.advance(len(op))
		l.emit(tokOperator, op, nil, start)
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	syntaxError(l.line, "unexpected char %s at %d", value.StringRepr(string(r)), l.pos)
	return nil
}

func base(number string) int {
	if len(number) > 1 && number[0] == '0' {
		switch number[1] {
		case 'b', 'B', 'o', 'O', 'x', 'X':
			return 0
		}
	}
	return 10
}

// nameLength is the length of the word at the start of s.
func nameLength(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && (i == 0 || !unicode.Is(unicode.M, r)) {
			return i
		}
	}
	return len(s)
}

// stringLength is the length of the string literal at the start of s, or 0.
func stringLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 0
}
