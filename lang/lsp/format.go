package lsp

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
)

// formatting gives a document its usual layout.
func formatting(_ context.Context, r *request) (any, error) {
	var p documentParams
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	if r.doc == nil {
		return nil, failf(codeInvalidParams, "%s is not open", p.TextDocument.URI)
	}
	out, err := syntax.Format(r.doc.text)
	if bad, ok := errors.AsType[*syntax.FormatError](err); ok {
		return nil, failf(codeRequestFailed, "the file has syntax errors: %s", bad.Diags.Errors()[0].Message)
	}
	if err != nil {
		return nil, failf(codeRequestFailed, "%v", err)
	}
	return lineEdits(r.enc, r.doc.text, out), nil
}

// lines cuts a text into lines without their endings, and gives the ending of the first.
func lines(text []byte) (out []string, ending string) {
	for off := 0; ; {
		end, next := lineEnds(text, off)
		out = append(out, string(text[off:end]))
		if next == end {
			break
		}
		if ending == "" {
			ending = string(text[end:next])
		}
		off = next
	}
	if ending == "" {
		ending = "\n"
	}
	return out, ending
}

// lineEdits are edits of whole lines that make one text another, but for line endings. Runs of lines that differ are found between
// lines that are the same but for space.
func lineEdits(e encoding, old, formatted []byte) []textEdit {
	a, ending := lines(old)
	b, _ := lines(formatted)
	edits := []textEdit{}
	same := func(x, y string) bool { return stripped(x) == stripped(y) }
	units := func(line string) int { return e.count([]byte(line)) }
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
			continue
		case i < len(a) && j < len(b) && same(a[i], b[j]):
			edits = append(edits, textEdit{lspRange{position{i, 0}, position{i, units(a[i])}}, b[j]})
			i, j = i+1, j+1
			continue
		}
		// Find the next pair of lines that agree.
		m, n := next(a[i:], b[j:], same)
		start, end := position{i, 0}, position{i + m, 0}
		text := strings.Join(b[j:j+n], ending)
		switch {
		case i+m < len(a):
			if n > 0 {
				text += ending
			}
		case i > 0:
			// At the end of the text the ending in front goes as well.
			start = position{i - 1, units(a[i-1])}
			end = position{len(a) - 1, units(a[len(a)-1])}
			if n > 0 {
				text = ending + text
			}
		default:
			end = position{len(a) - 1, units(a[len(a)-1])}
		}
		edits = append(edits, textEdit{lspRange{start, end}, text})
		i, j = i+m, j+n
	}
	return merged(edits)
}

// merged joins edits that touch: a line that was changed and the text behind its end.
func merged(edits []textEdit) []textEdit {
	out := edits[:0]
	for _, e := range edits {
		if n := len(out); n > 0 && out[n-1].Range.End == e.Range.Start {
			out[n-1].Range.End = e.Range.End
			out[n-1].NewText += e.NewText
			continue
		}
		out = append(out, e)
	}
	return out
}

// next finds how many lines to leave out of either text until two agree that are not empty, with few left out.
func next(a, b []string, same func(x, y string) bool) (m, n int) {
	const window = 200
	for sum := 1; sum < window; sum++ {
		for m = min(sum, len(a)); m >= 0; m-- {
			n = sum - m
			if m < len(a) && n >= 0 && n < len(b) && stripped(a[m]) != "" && same(a[m], b[n]) {
				return m, n
			}
		}
	}
	return len(a), len(b)
}

func stripped(s string) string {
	return string(bytes.Map(func(r rune) rune {
		if r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, []byte(s)))
}
