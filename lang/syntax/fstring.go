package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/value"
)

// maxSpecs is how deep fields may stand in the format specifications of others, as in Python.
const maxSpecs = 2

// formatReader cuts format strings into pieces, by the grammar of Python's string.Formatter and in the words of its errors.
type formatReader struct {
	p      *parser
	tok    token
	cursor int // the offset in the source behind the last field's name; the end of the token once one was not found
}

// parts cuts a decoded format string or format specification. fault is empty when nothing is wrong.
func (r *formatReader) parts(text string, depth int) (parts []FormatPart, fault string) {
	if depth > maxSpecs {
		return nil, "Max string recursion exceeded"
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, FormatPart{Text: lit.String()})
			lit.Reset()
		}
	}
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			lit.WriteString(text)
			break
		}
		lit.WriteString(text[:i])
		brace := text[i]
		text = text[i+1:]
		switch {
		case text != "" && text[0] == brace:
			lit.WriteByte(brace)
			text = text[1:]
		case brace == '}':
			return nil, "Single '}' encountered in format string"
		case text == "":
			return nil, "Single '{' encountered in format string"
		default:
			flush()
			var part FormatPart
			part, text, fault = r.field(text, depth)
			if fault != "" {
				return nil, fault
			}
			parts = append(parts, part)
		}
	}
	flush()
	return parts, ""
}

// field reads a field up to its closing brace and returns what follows.
func (r *formatReader) field(text string, depth int) (part FormatPart, rest, fault string) {
	end := 0
name:
	for ; ; end++ {
		if end >= len(text) {
			return part, "", "expected '}' before end of string"
		}
		switch text[end] {
		case '{':
			return part, "", "unexpected '{' in field name"
		case '[':
			i := strings.IndexByte(text[end:], ']')
			if i < 0 {
				return part, "", "expected '}' before end of string"
			}
			end += i
		case '}', ':', '!':
			break name
		}
	}
	r.name(&part, text[:end])
	ending := text[end]
	text = text[end+1:]
	if ending == '!' {
		if text == "" {
			return part, "", "end of string while looking for conversion specifier"
		}
		conv, n := utf8.DecodeRuneInString(text)
		part.Conversion = conv
		text = text[n:]
		if text == "" {
			return part, "", "unmatched '{' in format spec"
		}
		ending = text[0]
		text = text[1:]
		if ending != '}' && ending != ':' {
			return part, "", "expected ':' after conversion specifier"
		}
	}
	if ending == '}' {
		return part, text, ""
	}
	open := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			open--
			if open == 0 {
				if part.Spec, fault = r.parts(text[:i], depth+1); fault != "" {
					return part, "", fault
				}
				return part, text[i+1:], ""
			}
		}
	}
	return part, "", "unmatched '{' in format spec"
}

// name sets the reference of a field.
func (r *formatReader) name(part *FormatPart, source string) {
	if source == "" {
		part.Positional = true
		return
	}
	path := strings.TrimFunc(source, value.IsSpace) // of spaces alone, a variable without a name: there is none
	at := -1
	if i := strings.Index(r.p.src[r.cursor:r.tok.end], "{"+source); i >= 0 {
		at = r.cursor + i + 1 + strings.Index(source, path)
		r.cursor = at + len(path)
	} else {
		r.cursor = r.tok.end
	}
	part.Ref = r.p.refOf(path, at, r.tok)
}
