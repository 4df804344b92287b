package syntax

// LexemeKind is the kind of a [Lexeme].
type LexemeKind uint8

// The kinds of lexemes.
const (
	NameLexeme LexemeKind = iota
	KeywordLexeme
	NumberLexeme
	StringLexeme
	RegexLexeme // with the keyword matching in front
	OperatorLexeme
	CommentLexeme
	OtherLexeme // a character that starts no token
)

// Lexeme is a token of a text, for tools that work without a tree.
type Lexeme struct {
	Kind LexemeKind
	Span Span
}

// Lex cuts a text into tokens and comments, in order. The text is that of a [File].
func Lex(src []byte) []Lexeme {
	s := scanner{src: string(src)}
	var out []Lexeme
	for {
		t := s.next()
		for _, c := range s.comments {
			out = append(out, Lexeme{CommentLexeme, Span{c.Pos, c.Pos + Pos(len(c.Text))}})
		}
		s.comments = s.comments[:0]
		if t.kind == tEOF {
			return out
		}
		out = append(out, Lexeme{t.kind.lexeme(), Span{Pos(t.start + 1), Pos(t.end + 1)}})
	}
}

func (k kind) lexeme() LexemeKind {
	switch k {
	case tID, tCID:
		return NameLexeme
	case tInt, tFloat:
		return NumberLexeme
	case tString, tMLS, tFString, tRString:
		return StringLexeme
	case tRegex:
		return RegexLexeme
	case tIllegal:
		return OtherLexeme
	default:
	}
	if k.keyword() {
		return KeywordLexeme
	}
	return OperatorLexeme
}
