package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// diffContext is the number of unchanged lines shown around a change.
const diffContext = 3

// maxDiffLines is the number of lines beyond which texts are not compared line by line.
const maxDiffLines = 4000

// maxEdits is the number of edits beyond which a text counts as replaced: the search costs its square.
const maxEdits = 1000

// replaceAll is the plainest way from a to b.
func replaceAll(a, b []string) []line {
	out := make([]line, 0, len(a)+len(b))
	for i, text := range a {
		out = append(out, line{'-', text, i + 1, 1})
	}
	for i, text := range b {
		out = append(out, line{'+', text, len(a) + 1, i + 1})
	}
	return out
}

// line is one line of a comparison: kept (' '), removed ('-') or added ('+'), with its place in both texts, from 1.
type line struct {
	op       byte
	text     string
	from, to int
}

// unifiedDiff shows the difference between two texts in the unified format.
func unifiedDiff(path, from, to string) string {
	a, b := lines(from), lines(to)
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return fmt.Sprintf("%d lines become %d\n", len(a), len(b))
	}
	all := compareLines(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s (current)\n+++ %s (desired)\n", path, path)
	for i := 0; i < len(all); {
		if all[i].op == ' ' {
			i++
			continue
		}
		first := max(0, i-diffContext)
		last, quiet := i, 0
		for j := i; j < len(all) && quiet <= 2*diffContext; j++ {
			if all[j].op == ' ' {
				quiet++
				continue
			}
			last, quiet = j, 0
		}
		last = min(len(all)-1, last+diffContext)
		writeHunk(&out, all[first:last+1])
		i = last + 1
	}
	return out.String()
}

func writeHunk(out *strings.Builder, hunk []line) {
	var removed, added int
	for _, l := range hunk {
		if l.op != '+' {
			removed++
		}
		if l.op != '-' {
			added++
		}
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(hunk[0].from, removed), span(hunk[0].to, added))
	for _, l := range hunk {
		out.WriteByte(l.op)
		out.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func span(first, n int) string {
	if n == 0 {
		first--
	}
	return fmt.Sprintf("%d,%d", first, n)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// compareLines finds a shortest way from a to b, by the greedy algorithm of Myers. trace keeps, for each number of edits,
// how far each diagonal got.
func compareLines(a, b []string) []line {
	n, m := len(a), len(b)
	v := map[int]int{1: 0}
	var trace []map[int]int
search:
	for d := 0; d <= n+m; d++ {
		if d > maxEdits {
			return replaceAll(a, b)
		}
		snapshot := make(map[int]int, len(v))
		maps.Copy(snapshot, v)
		trace = append(trace, snapshot)
		for k := -d; k <= d; k += 2 {
			x := v[k-1] + 1
			if k == -d || k != d && v[k-1] < v[k+1] {
				x = v[k+1]
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			v[k] = x
			if x >= n && x-k >= m {
				break search
			}
		}
	}
	var reversed []line
	x, y := n, m
	for d, v := range slices.Backward(trace) {
		k := x - y
		before := k - 1
		if k == -d || k != d && v[k-1] < v[k+1] {
			before = k + 1
		}
		px := v[before]
		py := px - before
		for x > px && y > py && x > 0 && y > 0 {
			x, y = x-1, y-1
			reversed = append(reversed, line{' ', a[x], x + 1, y + 1})
		}
		if d == 0 {
			break
		}
		if x == px {
			y--
			reversed = append(reversed, line{'+', b[y], x + 1, y + 1})
		} else {
			x--
			reversed = append(reversed, line{'-', a[x], x + 1, y + 1})
		}
	}
	out := make([]line, len(reversed))
	for i, l := range reversed {
		out[len(reversed)-1-i] = l
	}
	return out
}
