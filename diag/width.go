package diag

import (
	"unicode"

	"golang.org/x/text/width"
)

// columns is the number of columns that a character takes on a terminal: none for marks that combine with the one before and for
// characters without a shape, two for the wide ones of East Asia and for pictures.
func columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Width is the number of columns that a text takes on a terminal.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}
