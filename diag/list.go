package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// List is a sequence of diagnostics. A phase returns one next to what it could make of its input.
type List []Diagnostic

// Errorf appends an error at r. The code is the exception class name of the reference implementation.
func (l *List) Errorf(code string, r Range, format string, args ...any) {
	*l = append(*l, Errorf(code, r, format, args...))
}

// Warnf appends a warning at r.
func (l *List) Warnf(code string, r Range, format string, args ...any) {
	*l = append(*l, Diagnostic{Severity: Warning, Code: code, Message: fmt.Sprintf(format, args...), Range: r})
}

// Add appends diagnostics.
func (l *List) Add(ds ...Diagnostic) { *l = append(*l, ds...) }

// HasErrors reports whether a diagnostic of severity [Error] is in the list.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors are the diagnostics of severity [Error], in their order.
func (l List) Errors() List { return l.only(func(d Diagnostic) bool { return d.Severity == Error }) }

// Warnings are the diagnostics of severity [Warning], in their order.
func (l List) Warnings() List {
	return l.only(func(d Diagnostic) bool { return d.Severity == Warning })
}

// Count is the number of diagnostics of the severity.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

func (l List) only(keep func(Diagnostic) bool) List {
	var out List
	for _, d := range l {
		if keep(d) {
			out = append(out, d)
		}
	}
	return out
}

// Sort orders the list by file and place, keeping the order of diagnostics at the same place.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Diagnostic) int { return a.Range.compare(b.Range) })
}

// Dedupe returns the list without diagnostics that repeat an earlier one in severity, code, message and range.
func (l List) Dedupe() List {
	type key struct {
		severity Severity
		code     string
		message  string
		at       Range
	}
	seen := make(map[key]bool, len(l))
	out := l[:0:0]
	for _, d := range l {
		k := key{d.Severity, d.Code, d.Message, d.Range}
		if !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return out
}

// Escalate returns the list with every warning turned into an error.
func (l List) Escalate() List {
	out := slices.Clone(l)
	for i := range out {
		if out[i].Severity == Warning {
			out[i].Severity = Error
		}
	}
	return out
}

// String is the list in the plain form, one line for each diagnostic.
func (l List) String() string {
	var b strings.Builder
	for _, d := range l {
		b.WriteString(d.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Errorf returns an error at r.
func Errorf(code string, r Range, format string, args ...any) Diagnostic {
	return Diagnostic{Severity: Error, Code: code, Message: fmt.Sprintf(format, args...), Range: r}
}

// String is the diagnostic on one line: place, severity, message and code. Line breaks in the message become spaces.
func (d Diagnostic) String() string {
	var b strings.Builder
	if at := d.Range.String(); at != "" {
		b.WriteString(at)
		b.WriteString(": ")
	}
	b.WriteString(string(d.Severity))
	b.WriteString(": ")
	b.WriteString(oneLine(d.Message))
	if d.Code != "" {
		b.WriteString(" [")
		b.WriteString(d.Code)
		b.WriteByte(']')
	}
	return b.String()
}

// WithHint returns the diagnostic with a hint.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// WithRelated returns the diagnostic with one more related place.
func (d Diagnostic) WithRelated(r Range, format string, args ...any) Diagnostic {
	d.Related = append(slices.Clip(d.Related), Related{Range: r, Message: fmt.Sprintf(format, args...)})
	return d
}

// String is the start of the range as file:line:column, without what is not known; empty for the zero Range.
func (r Range) String() string {
	s := r.File
	if r.Start.Line > 0 {
		s += ":" + strconv.Itoa(r.Start.Line)
		if r.Start.Column > 0 {
			s += ":" + strconv.Itoa(r.Start.Column)
		}
	}
	return s
}

// IsZero reports whether the range names no place.
func (r Range) IsZero() bool { return r == Range{} }

// LineOnly is the range without columns: the whole line on which r starts.
func (r Range) LineOnly() Range {
	line := Position{Line: r.Start.Line}
	return Range{File: r.File, Start: line, End: line}
}

func (r Range) compare(o Range) int {
	return cmp.Or(
		cmp.Compare(r.File, o.File),
		cmp.Compare(r.Start.Line, o.Start.Line),
		cmp.Compare(r.Start.Column, o.Start.Column),
	)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
