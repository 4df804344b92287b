package diag

import "slices"

// Closest is the candidate that was most likely meant by name; empty when none is near enough. Of equally near ones the
// first in alphabetical order is taken.
func Closest(name string, candidates []string) string {
	if s := Suggest(name, candidates, 1); len(s) > 0 {
		return s[0]
	}
	return ""
}

// Suggest lists at most n candidates that may have been meant by name, the closest first. A candidate is near when it can be
// made by changing, adding, dropping or swapping no more than a third of the characters.
func Suggest(name string, candidates []string, n int) []string {
	limit := (len([]rune(name)) + 1) / 3
	type scored struct {
		text     string
		distance int
	}
	var near []scored
	want := []rune(name)
	for _, c := range candidates {
		if c == name {
			continue
		}
		if d := distance(want, []rune(c), limit); d <= limit {
			near = append(near, scored{c, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		switch {
		case a.text < b.text:
			return -1
		case a.text > b.text:
			return 1
		}
		return 0
	})
	near = slices.CompactFunc(near, func(a, b scored) bool { return a.text == b.text })
	out := make([]string, 0, min(n, len(near)))
	for _, s := range near[:min(n, len(near))] {
		out = append(out, s.text)
	}
	return out
}

// distance is the number of changes that make b of a, counting a swap of neighbours as one. Any number above limit means more
// than limit.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := row[0]
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
