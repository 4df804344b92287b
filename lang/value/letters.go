package value

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// isASCII reports whether s has only characters of ASCII.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Upper is Python's s.upper().
func Upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

// Lower is Python's s.lower().
func Lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// Capitalize is Python's s.capitalize(): the first character in title case, the others in lower case.
func Capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return titleOf(s[:n]) + lowerTail(s, n)
}

// titleOf puts a text of one character into title case.
func titleOf(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	r, _ := utf8.DecodeRuneInString(s)
	if t := unicode.ToTitle(r); t != r {
		return string(t)
	}
	upper := cases.Upper(language.Und).String(s)
	if upper == s {
		return s
	}
	// A character such as ß, whose title case is several characters.
	_, n := utf8.DecodeRuneInString(upper)
	return upper[:n] + Lower(upper[n:])
}

// lowerTail is s[n:] in lower case, with what comes before in view, as the final sigma needs.
func lowerTail(s string, n int) string {
	if isASCII(s) {
		return strings.ToLower(s[n:])
	}
	lower := Lower(s)
	head := Lower(s[:n])
	return strings.TrimPrefix(lower, head)
}

// Title is Python's s.title(): every run of letters starts in title case and goes on in lower case.
func Title(s string) string {
	var b, word strings.Builder
	flush := func() {
		if w := word.String(); w != "" {
			_, n := utf8.DecodeRuneInString(w)
			b.WriteString(titleOf(w[:n]))
			b.WriteString(lowerTail(w, n))
		}
		word.Reset()
	}
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) {
			word.WriteRune(r)
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String()
}
