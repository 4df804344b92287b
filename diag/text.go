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
	// Width is how many columns the terminal has; 0 when that is not known. Lines of source are cut to fit, messages are not.
	Width int
	// Max is how many diagnostics are written; 0 for all. The summary counts all of them.
	Max int
	// Source returns the text of a file by the name that diagnostics have it under; ok is false when there is none. Nil
	// leaves out excerpts.
	Source func(file string) (text []byte, ok bool)
}

// Layout of excerpts, in columns.
const (
	tabWidth   = 4
	maxExcerpt = 160 // of a line of source; longer ones are cut around the place
	minExcerpt = 20  // however narrow the terminal is
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
	shown := l
	if p.Max > 0 && len(l) > p.Max {
		shown = l[:p.Max]
	}
	for i, d := range shown {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.diagnostic(&b, d)
	}
	switch {
	case len(shown) < len(l):
		fmt.Fprintf(&b, "\n%s; the first %d are shown\n", l.Summary(), len(shown))
	case len(l) > 1:
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

	text, from, to := underline(line, r, p.room(len(number)))
	p.styled(b, styleFrame, number+" | ")
	b.WriteString(text)
	b.WriteByte('\n')
	p.styled(b, styleFrame, margin+" | ")
	b.WriteString(strings.Repeat(" ", from))
	p.styled(b, style, strings.Repeat(string(mark), min(to-from, maxCarets)))
	b.WriteByte('\n')
}

// room is how many columns there are for a line of source behind a number of that many digits. Dots at both ends of a line that
// is cut take four.
func (p Printer) room(digits int) int {
	if p.Width <= 0 {
		return maxExcerpt
	}
	return min(maxExcerpt, max(minExcerpt, p.Width-digits-7))
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

// underline lays out a line of source in at most limit columns. It returns the text to show and the columns from which and up
// to which it is to be underlined.
func underline(line string, r Range, limit int) (text string, from, to int) {
	var cells []cell
	column := 0
	for _, c := range line {
		x := cell{text: string(c), at: column, width: columns(c)}
		switch {
		case c == '\t':
			x.text, x.width = strings.Repeat(" ", tabWidth), tabWidth
		case harmful(c) || c == utf8.RuneError:
			x.text, x.width = "\uFFFD", 1
		}
		cells = append(cells, x)
		column += x.width
	}
	end := column
	at := func(n int) int {
		if n = max(n-1, 0); n < len(cells) {
			return cells[n].at
		}
		return end
	}
	switch {
	case r.Start.Column <= 0:
		from, to = end, end
		for _, c := range cells {
			if strings.TrimSpace(c.text) != "" {
				from = c.at
				break
			}
		}
	case r.End.Line > r.Start.Line:
		from, to = at(r.Start.Column), end
	default:
		from, to = at(r.Start.Column), at(r.End.Column)
	}
	to = max(to, from+1)
	start, stop := 0, end
	if end > limit {
		// Show a window of the line that starts shortly before the place.
		start = max(0, min(from-limit/4, end-limit))
		stop = min(start+limit, end)
	}
	var b strings.Builder
	shift := -start
	if start > 0 {
		b.WriteString("… ")
		shift += 2
	}
	first := true
	for _, c := range cells {
		if c.at < start || c.at+c.width > stop {
			continue
		}
		if first {
			shift -= c.at - start // half of a wide character may have been cut off
			first = false
		}
		b.WriteString(c.text)
	}
	if stop < end {
		b.WriteString(" …")
	}
	return b.String(), from + shift, min(to, max(stop, from+1)) + shift
}

// cell is a character of a line as it is laid out.
type cell struct {
	text string
	// at is the column, from 0, and width how many columns the character takes.
	at, width int
}
