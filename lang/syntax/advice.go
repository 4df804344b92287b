package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/intendant/intendant/lazyregexp"
)

// foreign are the words that other languages begin a statement with, and what to write instead.
var foreign = map[string]string{
	"class":    "an entity is what other languages call a class: write entity Name:",
	"def":      "functions are plugins, which are written in Python; what an entity is made of is an implementation",
	"fn":       "functions are plugins, which are written in Python; what an entity is made of is an implementation",
	"function": "functions are plugins, which are written in Python; what an entity is made of is an implementation",
	"elseif":   "write elif",
	"elsif":    "write elif",
	"enum":     "write typedef name as string matching self in [...]",
	"while":    "there are only loops over lists: for x in list:",
}

// literals are the constants of Python, and what the language calls them.
var literals = map[string]string{"True": "true", "False": "false", "None": "null"}

var (
	// annotated matches an attribute that is declared as in Python.
	annotated = lazyregexp.New(`^\s*([a-z_]\w*)\s*:\s*(\w[\w:]*)`)
	// walrus matches an assignment of other languages.
	walrus = lazyregexp.New(`^\s*[\w.:]+\s*:=`)
	// lowerEntity matches a statement up to a name that would have to be an entity's.
	lowerEntity = lazyregexp.New(`^(?:implement|index|implementation\s+[\w-]+\s+for|entity\s+\w+\s+extends(?:\s+[\w:]+\s*,)*)\s+(?:\w+::)*([a-z_]\w*)$`)
	// dangling matches a dot at the end of a line, and the start of the next.
	dangling = lazyregexp.New(`\.[ \t]*(?:#[^\n]*)?\r?\n\s*[\w-]+$`)
)

// maxBehind bounds how far in front of a fault advice looks for its reason, in bytes.
const maxBehind = 200

// lineAt is the text of the line that an offset is in.
func (p *parser) lineAt(offset int) string {
	start := strings.LastIndexByte(p.src[:offset], '\n') + 1
	rest := p.src[start:]
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		rest = rest[:n]
	}
	return rest
}

// advice says what beginners, and people who come from other languages, mean by what can not be read at the token at hand. It is
// empty when that is not known.
func (p *parser) advice() string {
	begun := p.src[min(p.begin, p.tok.start):p.tok.start]
	line := p.lineAt(p.tok.start)
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if hint, ok := literals[p.textOf(p.tok)]; ok {
		return "write " + hint
	}
	if hint, ok := literals[p.textOf(p.prev)]; ok && !strings.Contains(p.src[p.prev.end:p.tok.start], "\n") {
		return "write " + hint
	}
	if hint, ok := foreign[first]; ok {
		return hint
	}
	switch p.tok.kind {
	case tIf:
		if p.prev.kind == tElse {
			return "write elif"
		}
	case tElse:
		if strings.Contains(line, " if ") {
			return "a value that depends on a condition is written condition ? value : other"
		}
	case tSlash:
		if strings.HasPrefix(p.src[p.tok.start:], "//") || strings.HasPrefix(p.src[p.tok.start:], "/*") {
			return "comments begin with #"
		}
	case tRel:
		if p.prev.end == p.tok.start && p.textOf(p.tok) == "<-" {
			return "<- is one sign: write a space to compare with a negative number"
		}
		if p.wanted != tLbrack {
			break
		}
		return "each end of a relation that has a name needs a multiplicity, as in Host.files [0:] -- File.host [1]"
	case tWhen:
		if p.wanted == tUsing {
			return "the condition comes last: implement Entity using implementation when condition"
		}
	case tID:
		if p.prev.kind == tLbrace {
			return fmt.Sprintf("the keys of a dict are texts: write \"%s\"", p.textOf(p.tok))
		}
	case tString, tMLS:
		if p.prev.kind == tImport {
			return "write the name without quotes"
		}
	case tComma:
		if first == "import" {
			return "write an import statement for each module"
		}
	case tDot:
		if first == "import" {
			return "the parts of a module's name are separated by ::"
		}
	case tColon:
		if m := annotated().FindStringSubmatch(line); m != nil && p.within(tEntity) {
			return fmt.Sprintf("the type comes first: %s %s", m[2], m[1])
		}
		if walrus().MatchString(line) {
			return "assign with ="
		}
	case tRparen, tRbrack, tRbrace:
		if p.tok.start == p.begin {
			return "there is no opening bracket for this one"
		}
	case tAssign:
		if p.prev.kind == tCID && strings.TrimSpace(begun) == p.textOf(p.prev) {
			return "the name of a variable begins with a small letter"
		}
		if dangling().MatchString(p.src[max(0, p.prev.end-maxBehind):p.prev.end]) {
			return "a name is missing behind the dot"
		}
	}
	if m := lowerEntity().FindStringSubmatch(strings.TrimSpace(begun)); m != nil {
		return "the name of an entity begins with a capital: " + capital(m[1])
	}
	return ""
}

// incomplete says what may be missing at the end of a query.
func (p *parser) incomplete() string {
	if !p.query || p.prev.kind != tCID {
		return ""
	}
	name := p.textOf(p.prev)
	return fmt.Sprintf("%s is an entity: look an instance up by an index, as in %s[name=\"...\"], or list them all with --instances %s", name, name, name)
}

// quoteInText is the advice for a text that ends where its author did not want it to.
const quoteInText = `a quote within a text needs a backslash in front of it, or other quotes around the text`

// within reports whether the innermost open block begins with a keyword.
func (p *parser) within(k kind) bool {
	if len(p.blocks) == 0 {
		return false
	}
	b := p.blocks[len(p.blocks)-1]
	return keyword(p.src[b.Start.Offset():b.End.Offset()]) == k
}

// misplaced says what is wrong with a keyword that begins a definition and stands inside of a block; it is empty when the block may
// as well not be closed.
func (p *parser) misplaced(t token) string {
	word := p.textOf(t)
	switch {
	case !p.firstOnLine(t.start):
		return word + " is a keyword: choose another name"
	case len(p.blocks) > 0 && p.file.Position(Pos(t.start+1)).Column > p.file.Position(p.blocks[len(p.blocks)-1].Start).Column:
		return word + " can not stand inside of a block: move it to the top level of the file"
	}
	return ""
}

// illegalQuote says what is wrong with a quote that starts no string.
func (p *parser) illegalQuote(quote rune) string {
	line := p.lineAt(p.tok.start)
	switch {
	case p.tok.start >= 2 && p.src[p.tok.start-2:p.tok.start] == strings.Repeat(string(quote), 2):
		return "the text that begins here with three quotes does not end"
	case p.prev.end > p.prev.start && strings.Count(line, string(quote)) > 2 && p.prev.kind != tAssign:
		return quoteInText
	}
	return "a string must end on the line on which it starts; only strings in three double quotes may have several lines"
}

// illegalSpace says which character only looks like a space, or is not seen at all.
func illegalSpace(r rune) string {
	if unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc) {
		return fmt.Sprintf("this is the character U+%04X, which only looks like a space or is not seen at all: replace it", r)
	}
	return ""
}

// restOfText reports whether an illegal quote closes a string that was complained about on an earlier line.
func (p *parser) restOfText(quote rune) bool {
	line, _, _ := strings.Cut(p.src[p.tok.start+utf8.RuneLen(quote):], "\n")
	return quote != 0 && p.openQuote == quote && strings.Trim(strings.TrimSpace(line), "),]}") == ""
}
