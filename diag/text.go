package diag

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printer writes diagnostics for people at a terminal: the message, an excerpt of the source with the place underlined, notes
// about related places, and a hint. The zero Printer writes without colour and without excerpts.
type Printer struct {
	// Color uses ANSI escape sequences.
	Color bool
	// Source returns the text of a file by the name that diagnostics have it under; ok is false when there is none. Nil
	// leaves out excerpts.
	Source func(file string) (text []byte, ok bool)
}

// Layout of excerpts, in columns.
const (
	tabWidth   = 4
	maxExcerpt = 160 // of a line of source; longer ones are cut around the place
	maxCarets  = 80
)

// The escape sequences of the parts of a diagnostic.
const (
	styleReset = "\x1b[0m"
	styleBold  = "\x1b[1m"
	styleError = "\x1b[1;31m"
	styleWarn  = "\x1b[1;33m"
	styleInfo  = "\x1b[1;36m"
	styleFrame = "\x1b[34m"
	styleHint  = "\x1b[1;32m"
)

// Print writes the list and, when there is more than one diagnostic, how many of each severity there are.
func (p Printer) Print(w io.Writer, l List) error {
	var b bytes.Buffer
	for i, d := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.diagnostic(&b, d)
	}
	if len(l) > 1 {
		fmt.Fprintf(&b, "\n%s\n", l.Summary())
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Summary counts the diagnostics of each severity: "2 errors, 1 warning". It is empty for an empty list.
func (l List) Summary() string {
	var parts []string
	for _, s := range []Severity{Error, Warning, Info} {
		noun := string(s)
		if s == Info {
			noun = "note"
		}
		switch n := l.Count(s); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+noun)
		default:
			parts = append(parts, strconv.Itoa(n)+" "+noun+"s")
		}
	}
	return strings.Join(parts, ", ")
}

func (p Printer) diagnostic(b *bytes.Buffer, d Diagnostic) {
	style := styleInfo
	switch d.Severity {
	case Error:
		style = styleError
	case Warning:
		style = styleWarn
	case Info:
	}
	head := string(d.Severity)
	if d.Code != "" {
		head += "[" + d.Code + "]"
	}
	p.styled(b, style, head)
	b.WriteString(": ")
	p.message(b, d.Message)
	p.excerpt(b, d.Range, style, '^')
	for i, r := range d.Related {
		p.styled(b, styleInfo, "note")
		b.WriteString(": ")
		p.message(b, r.Message)
		if r.Range != d.Range && (i == 0 || r.Range != d.Related[i-1].Range) {
			p.excerpt(b, r.Range, styleInfo, '-')
		}
	}
	if d.Hint != "" {
		p.styled(b, styleHint, "hint")
		b.WriteString(": ")
		p.message(b, d.Hint)
	}
}

func (p Printer) styled(b *bytes.Buffer, style, text string) {
	if p.Color {
		text = style + text + styleReset
	}
	b.WriteString(text)
}

// message writes a text whose further lines are indented.
func (p Printer) message(b *bytes.Buffer, text string) {
	text = clean(strings.TrimRight(text, "\n"))
	first, rest, more := strings.Cut(text, "\n")
	p.styled(b, styleBold, first)
	b.WriteByte('\n')
	for more {
		first, rest, more = strings.Cut(rest, "\n")
		b.WriteString("  ")
		b.WriteString(first)
		b.WriteByte('\n')
	}
}

// clean replaces characters that could control the terminal. Line ends and tabs stay.
func clean(text string) string {
	if strings.IndexFunc(text, harmful) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if harmful(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func harmful(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069)
}

// excerpt writes the place of a range and the line it starts on, underlined.
func (p Printer) excerpt(b *bytes.Buffer, r Range, style string, mark rune) {
	at := clean(r.String())
	if at == "" {
		return
	}
	line, ok := p.line(r)
	if !ok {
		p.styled(b, styleFrame, "  --> ")
		b.WriteString(at)
		b.WriteByte('\n')
		return
	}
	number := strconv.Itoa(r.Start.Line)
	margin := strings.Repeat(" ", len(number))
	p.styled(b, styleFrame, margin+" --> ")
	b.WriteString(at)
	b.WriteByte('\n')
	p.styled(b, styleFrame, margin+" |")
	b.WriteByte('\n')

	text, from, to := underline(line, r)
	p.styled(b, styleFrame, number+" | ")
	b.WriteString(text)
	b.WriteByte('\n')
	p.styled(b, styleFrame, margin+" | ")
	b.WriteString(strings.Repeat(" ", from))
	p.styled(b, style, strings.Repeat(string(mark), min(to-from, maxCarets)))
	b.WriteByte('\n')
}

// line is the text of the line on which r starts.
func (p Printer) line(r Range) (string, bool) {
	if p.Source == nil || r.Start.Line <= 0 {
		return "", false
	}
	src, ok := p.Source(r.File)
	if !ok {
		return "", false
	}
	for range r.Start.Line - 1 {
		i := bytes.IndexByte(src, '\n')
		if i < 0 {
			return "", false
		}
		src = src[i+1:]
	}
	if i := bytes.IndexByte(src, '\n'); i >= 0 {
		src = src[:i]
	}
	return strings.TrimRight(string(src), "\r"), len(src) > 0
}

// underline lays out a line of source. It returns the text to show and the columns from which and up to which it is to be
// underlined.
func underline(line string, r Range) (text string, from, to int) {
	// at[i] is the column of the i-th character of the line once laid out.
	var at []int
	var cells []rune
	for _, c := range line {
		at = append(at, len(cells))
		switch {
		case c == '\t':
			cells = append(cells, []rune(strings.Repeat(" ", tabWidth))...)
		case harmful(c) || c == utf8.RuneError:
			cells = append(cells, '\uFFFD')
		default:
			cells = append(cells, c)
		}
	}
	at = append(at, len(cells))
	column := func(c int) int { return at[min(max(c-1, 0), len(at)-1)] }
	switch {
	case r.Start.Column <= 0:
		trimmed := strings.TrimLeft(string(cells), " ")
		from, to = len(cells)-utf8.RuneCountInString(trimmed), len(cells)
	case r.End.Line > r.Start.Line:
		from, to = column(r.Start.Column), len(cells)
	default:
		from, to = column(r.Start.Column), column(r.End.Column)
	}
	to = max(to, from+1)
	if len(cells) <= maxExcerpt {
		return string(cells), from, to
	}
	// Show a window of the line that starts shortly before the place.
	start := max(0, min(from-maxExcerpt/4, len(cells)-maxExcerpt))
	end := min(start+maxExcerpt, len(cells))
	window := cells[start:end]
	prefix, suffix := "", ""
	if start > 0 {
		prefix = "… "
	}
	if end < len(cells) {
		suffix = " …"
	}
	shift := utf8.RuneCountInString(prefix) - start
	return prefix + string(window) + suffix, from + shift, min(to, end) + shift
}
