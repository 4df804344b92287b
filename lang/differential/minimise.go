package main

import (
	"maps"
	"strings"
)

// minimise makes a project as small as it gets while it still has the property, by leaving out files, then stretches of lines from
// half a file down to single lines, then single tokens. It asks about the property at most budget times.
func minimise(p project, budget int, has func(project) bool) project {
	try := func(q project) bool {
		if budget <= 0 {
			return false
		}
		budget--
		return has(q)
	}
	for _, name := range p.models() {
		if name == "main.cf" {
			continue
		}
		q := maps.Clone(p)
		delete(q, name)
		if try(q) {
			p = q
		}
	}
	for _, split := range []func(string) []string{splitLines, splitTokens} {
		for again := true; again && budget > 0; {
			again = false
			for _, name := range p.models() {
				parts := split(p[name])
				for size := max(1, len(parts)/2); size > 0; size /= 2 {
					for i := 0; i < len(parts); {
						end := min(i+size, len(parts))
						rest := append(append([]string{}, parts[:i]...), parts[end:]...)
						if q := p.with(name, strings.Join(rest, "")); q[name] != p[name] && try(q) {
							p, parts, again = q, rest, true
							continue
						}
						i = end
					}
				}
			}
		}
	}
	return p
}

func splitLines(text string) []string { return strings.SplitAfter(text, "\n") }

// splitTokens splits a text into its tokens, each with the space before it.
func splitTokens(text string) []string {
	var out []string
	space := ""
	for _, t := range tokens.FindAllString(text, -1) {
		if strings.TrimSpace(t) == "" {
			space += t
			continue
		}
		out = append(out, space+t)
		space = ""
	}
	return append(out, space)
}
