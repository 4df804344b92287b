package syntax

// kind is the kind of a token.
type kind uint8

const (
	tEOF     kind = iota
	tIllegal      // a character that starts no token
	tID
	tCID
	tInt
	tFloat
	tString
	tMLS
	tFString
	tRString
	tRegex
	tSep    // ::
	tRel    // -- -> <-
	tEq     // ==
	tNe     // !=
	tLt     // <
	tLe     // <=
	tGt     // >
	tGe     // >=
	tPlusEq // +=
	tPlus
	tMinus
	tStar
	tPow // **
	tSlash
	tPercent
	tColon
	tComma
	tDot
	tQuestion
	tAssign
	tLparen
	tRparen
	tLbrack
	tRbrack
	tLbrace
	tRbrace

	// The keywords.
	tAnd
	tAs
	tDefined
	tDict
	tElif
	tElse
	tEnd
	tEntity
	tExtends
	tFalse
	tFor
	tIf
	tImplement
	tImplementation
	tImport
	tIn
	tIndex
	tIs
	tMatching
	tNot
	tNull
	tOr
	tParents
	tTrue
	tTypedef
	tUndef
	tUsing
	tWhen
)

func (k kind) keyword() bool { return k >= tAnd }

// keyword is the kind of an identifier: that of a keyword, tCID or tID.
func keyword(s string) kind {
	switch len(s) {
	case 2:
		switch s {
		case "as":
			return tAs
		case "if":
			return tIf
		case "in":
			return tIn
		case "is":
			return tIs
		case "or":
			return tOr
		}
	case 3:
		switch s {
		case "and":
			return tAnd
		case "end":
			return tEnd
		case "for":
			return tFor
		case "not":
			return tNot
		}
	case 4:
		switch s {
		case "dict":
			return tDict
		case "elif":
			return tElif
		case "else":
			return tElse
		case "null":
			return tNull
		case "true":
			return tTrue
		case "when":
			return tWhen
		}
	case 5:
		switch s {
		case "false":
			return tFalse
		case "index":
			return tIndex
		case "undef":
			return tUndef
		case "using":
			return tUsing
		}
	case 6:
		switch s {
		case "entity":
			return tEntity
		case "import":
			return tImport
		}
	case 7:
		switch s {
		case "defined":
			return tDefined
		case "extends":
			return tExtends
		case "parents":
			return tParents
		case "typedef":
			return tTypedef
		}
	case 8:
		if s == "matching" {
			return tMatching
		}
	case 9:
		if s == "implement" {
			return tImplement
		}
	case 14:
		if s == "implementation" {
			return tImplementation
		}
	}
	if s[0] >= 'A' && s[0] <= 'Z' {
		return tCID
	}
	return tID
}

// Keywords are the words that can not be names, sorted.
func Keywords() []string {
	return []string{
		"and", "as", "defined", "dict", "elif", "else", "end", "entity", "extends", "false", "for", "if", "implement",
		"implementation", "import", "in", "index", "is", "matching", "not", "null", "or", "parents", "true", "typedef", "undef",
		"using", "when",
	}
}

// NameKind is what the text of a name may be used for.
type NameKind uint8

// The kinds of names: none at all, that of an entity, and that of anything else.
const (
	NoName NameKind = iota
	EntityName
	OtherName
)

// KindOfName says what a definition may use a text as a name for. Keywords are no names, nor are texts with a hyphen.
func KindOfName(s string) NameKind {
	if s == "" || class[s[0]]&cStart == 0 {
		return NoName
	}
	for i := range len(s) {
		if class[s[i]]&cIdent == 0 || s[i] == '-' {
			return NoName
		}
	}
	switch k := keyword(s); {
	case k.keyword():
		return NoName
	case k == tCID:
		return EntityName
	default:
		return OtherName
	}
}

// token is a piece of source: src[start:end].
type token struct {
	kind       kind
	start, end int
}
