package syntax

import "strings"

// scanner cuts source text into tokens. The patterns of the language are tried in a fixed order and the first that matches
// wins, which is not always the longest (language specification, section 2); the order of the cases below follows from it.
type scanner struct {
	src      string
	off      int
	comments []Comment
}

// Classes of bytes.
const (
	cIdent uint8 = 1 << iota // may continue an identifier
	cStart                   // may start an identifier
	cDigit
	cSpace // white space to regular expressions
)

var class = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c] = cIdent | cStart
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = cIdent | cStart
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = cIdent | cDigit
	}
	t['_'] = cIdent | cStart
	t['-'] = cIdent
	for _, c := range " \t\n\r\f\v" {
		t[c] = cSpace
	}
	return t
}()

// next returns the token at the offset and moves behind it. White space and comments before it are skipped.
func (s *scanner) next() token {
	src := s.src
	off := s.off
	for off < len(src) {
		switch src[off] {
		case ' ', '\t', '\n':
			off++
			continue
		case '#':
			end := strings.IndexByte(src[off:], '\n')
			if end < 0 {
				end = len(src) - off
			}
			s.comments = append(s.comments, Comment{Pos: Pos(off + 1), Text: src[off : off+end]})
			off += end
			continue
		}
		break
	}
	if off >= len(src) {
		s.off = len(src)
		return token{tEOF, len(src), len(src)}
	}
	k, end := s.scan(off)
	s.off = end
	return token{k, off, end}
}

// scan finds the token that starts at off.
func (s *scanner) scan(off int) (kind, int) {
	src := s.src
	c := src[off]
	if class[c]&cStart != 0 {
		return s.word(off)
	}
	if class[c]&cDigit != 0 {
		return s.number(off, off)
	}
	var c1 byte
	if off+1 < len(src) {
		c1 = src[off+1]
	}
	switch c {
	case '"', '\'':
		if c == '"' && c1 == '"' && off+2 < len(src) && src[off+2] == '"' {
			if end := multiEnd(src, off); end > 0 {
				return tMLS, end
			}
		}
		if end := stringEnd(src, off); end > 0 {
			return tString, end
		}
		return tIllegal, off + 1
	case ':':
		if c1 == ':' {
			return tSep, off + 2
		}
		return tColon, off + 1
	case '-':
		if c1 == '-' || c1 == '>' {
			return tRel, off + 2
		}
		if class[c1]&cDigit != 0 || c1 == '.' {
			if k, end := s.number(off, off+1); k != tIllegal {
				return k, end
			}
		}
		return tMinus, off + 1
	case '<':
		if c1 == '-' {
			return tRel, off + 2
		}
		if c1 == '=' {
			return tLe, off + 2
		}
		return tLt, off + 1
	case '>':
		if c1 == '=' {
			return tGe, off + 2
		}
		return tGt, off + 1
	case '!':
		if c1 == '=' {
			return tNe, off + 2
		}
	case '=':
		if c1 == '=' {
			return tEq, off + 2
		}
		return tAssign, off + 1
	case '+':
		if c1 == '=' {
			return tPlusEq, off + 2
		}
		return tPlus, off + 1
	case '.':
		if class[c1]&cDigit != 0 {
			return s.number(off, off)
		}
		return tDot, off + 1
	case '*':
		if c1 == '*' {
			return tPow, off + 2
		}
		return tStar, off + 1
	case '/':
		return tSlash, off + 1
	case '%':
		return tPercent, off + 1
	case ',':
		return tComma, off + 1
	case '?':
		return tQuestion, off + 1
	case '(':
		return tLparen, off + 1
	case ')':
		return tRparen, off + 1
	case '[':
		return tLbrack, off + 1
	case ']':
		return tRbrack, off + 1
	case '{':
		return tLbrace, off + 1
	case '}':
		return tRbrace, off + 1
	}
	return tIllegal, off + 1
}

// word finds the token that starts with a letter: a regular expression, a prefixed string, a keyword or an identifier.
func (s *scanner) word(off int) (kind, int) {
	src := s.src
	end := off + 1
	for end < len(src) && class[src[end]]&cIdent != 0 {
		end++
	}
	if end == off+1 && end < len(src) && (src[end] == '"' || src[end] == '\'') {
		switch src[off] {
		case 'f':
			if e := stringEnd(src, end); e > 0 {
				return tFString, e
			}
		case 'r':
			if e := stringEnd(src, end); e > 0 {
				return tRString, e
			}
		}
		return keyword(src[off:end]), end
	}
	k := keyword(src[off:end])
	if k == tMatching {
		if e := regexEnd(src, end); e > 0 {
			return tRegex, e
		}
	}
	return k, end
}

// number finds the number at off whose digits start at digits (behind a sign). The kind is tIllegal when there is none.
func (s *scanner) number(off, digits int) (kind, int) {
	src := s.src
	end := digits
	for end < len(src) && class[src[end]]&cDigit != 0 {
		end++
	}
	if end+1 < len(src) && src[end] == '.' && class[src[end+1]]&cDigit != 0 {
		end += 2
		for end < len(src) && class[src[end]]&cDigit != 0 {
			end++
		}
		return tFloat, end
	}
	if end == digits {
		return tIllegal, off + 1
	}
	return tInt, end
}

// stringEnd is the offset behind the single-line string whose quote is at off, 0 when it does not end on its line.
func stringEnd(src string, off int) int {
	quote := src[off]
	for i := off + 1; i < len(src); i++ {
		switch src[i] {
		case quote:
			return i + 1
		case '\n':
			return 0
		case '\\':
			i++
			if i >= len(src) || src[i] == '\n' {
				return 0
			}
		}
	}
	return 0
}

// multiEnd is the offset behind the multi-line string that starts at off, 0 when it has no end. As many as five quotes
// open it if it ends at all that way, else four, else three; the first three in a row close it, with up to two more.
func multiEnd(src string, off int) int {
	run := quotes(src, off)
	for open := min(run, 5); open >= 3; open-- {
		if i := strings.Index(src[off+open:], `"""`); i >= 0 {
			start := off + open + i
			return start + min(quotes(src, start), 5)
		}
	}
	return 0
}

// quotes counts the double quotes at off, up to five.
func quotes(src string, off int) int {
	n := 0
	for n < 5 && off+n < len(src) && src[off+n] == '"' {
		n++
	}
	return n
}

// regexEnd is the offset behind the regular expression that follows the keyword matching, which ends at off; 0 when none
// follows.
func regexEnd(src string, off int) int {
	i := regexStart(src, off)
	if i == off || i >= len(src) || src[i] != '/' {
		return 0
	}
	start := i + 1
	for i = start; i < len(src); i++ {
		switch src[i] {
		case '/':
			if i == start {
				return 0
			}
			return i + 1
		case '\n':
			return 0
		case '\\':
			i++
			if i >= len(src) || src[i] == '\n' {
				return 0
			}
		}
	}
	return 0
}

// regexStart is the offset of the first character behind off that is not white space.
func regexStart(src string, off int) int {
	for off < len(src) && class[src[off]]&cSpace != 0 {
		off++
	}
	return off
}
