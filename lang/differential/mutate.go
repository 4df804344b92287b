package main

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// mutate breaks, or at least changes, a project in one or two small ways. The result may still be valid.
func mutate(r *rand.Rand, p project) project {
	if r.IntN(4) == 0 {
		p = spread(r, p)
	}
	for range 1 + r.IntN(10)/8 {
		names := p.models()
		name := names[r.IntN(len(names))]
		if slices.Contains(names, "main.cf") && r.IntN(3) > 0 {
			name = "main.cf"
		}
		if r.IntN(5) < 2 {
			p = p.with(name, mutateLines(r, p[name]))
		} else {
			p = p.with(name, mutateTokens(r, p[name]))
		}
	}
	return p
}

// mutateLines deletes, doubles, moves or swaps lines, or whole blocks of lines that begin at the margin.
func mutateLines(r *rand.Rand, text string) string {
	l := strings.SplitAfter(text, "\n")
	if r.IntN(2) == 0 {
		l = blocks(l)
	}
	if len(l) < 2 {
		return text
	}
	i, j := r.IntN(len(l)), r.IntN(len(l))
	switch r.IntN(4) {
	case 0:
		l = slices.Delete(l, i, i+1)
	case 1:
		l = slices.Insert(l, j, l[i])
	case 2:
		l[i], l[j] = l[j], l[i]
	case 3:
		x := l[i]
		l = slices.Delete(l, i, i+1)
		l = slices.Insert(l, min(j, len(l)), x)
	}
	return strings.Join(l, "")
}

// blocks joins the lines of each statement at the margin.
func blocks(l []string) []string {
	var out []string
	open := false
	for _, line := range l {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		inside := open || strings.HasPrefix(line, " ") || strings.HasPrefix(line, ")") || strings.HasPrefix(line, "]")
		if inside && len(out) > 0 {
			out[len(out)-1] += line
		} else {
			out = append(out, line)
		}
		switch {
		case word == "end" && !strings.HasPrefix(line, " "):
			open = false
		case !inside && strings.HasSuffix(strings.TrimSpace(line), ":"):
			open = true
		}
	}
	return out
}

var tokens = regexp.MustCompile(`"""(?s:.*?)"""|[fr]?"(?:[^"\\\n]|\\.)*"|[fr]?'(?:[^'\\\n]|\\.)*'|#[^\n]*|` +
	`[A-Za-z_][A-Za-z0-9_-]*|[0-9]+(?:\.[0-9]+)?|::|--|->|<-|[=!<>]=|\+=|\*\*|\s+|.`)

var (
	operators = []string{"+", "-", "*", "/", "%", "**", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "=", "+="}
	literals  = []string{
		"1", "0", "-3", "2.5", "1.0", `"a"`, `""`, "true", "false", "null", "[]", "{}", `["a"]`, "[1, 2]", `{"a": 1}`, "self", "undef",
		`f"{x}"`, `r"\d"`, `"{{ x }}"`, `std::get_env("MODELGEN_NOT_SET_ANYWHERE")`, "12345678901234567890123", "(1)", "not true",
	}
	types = []string{"string", "int", "float", "bool", "number", "dict", "list", "string[]", "int?", "string?", "list?", "dict?", "int[]?"}
	stray = []string{
		"end", ":", ",", "(", ")", "[", "]", "{", "}", ".", "?", "if", "for", "in", "is defined", "::", "=", `"`, "--", "*", "**",
		"entity", "import", "index", "implement", "using", "when", "parents", "matching", "as", "extends", "@", "-", "not", "else:", "1",
	}
)

// mutateTokens deletes, doubles, swaps, replaces or adds tokens.
func mutateTokens(r *rand.Rand, text string) string {
	t := tokens.FindAllString(text, -1)
	var at []int
	for i, s := range t {
		if strings.TrimSpace(s) != "" && !strings.HasPrefix(s, "#") {
			at = append(at, i)
		}
	}
	if len(at) < 2 {
		return text
	}
	n := r.IntN(len(at))
	i := at[n]
	switch k := r.IntN(20); {
	case k < 3:
		t[i] = ""
	case k < 4:
		t[i] += " " + t[i]
	case k < 6 && n+1 < len(at):
		t[i], t[at[n+1]] = t[at[n+1]], t[i]
	case k < 7:
		t[i] += " " + stray[r.IntN(len(stray))]
	case k < 8:
		t[i] = t[at[r.IntN(len(at))]]
	default:
		t[i] = replacement(r, t, at, i)
	}
	return strings.Join(t, "")
}

var (
	isLiteral  = regexp.MustCompile(`^([fr]?["']|[0-9])|^(true|false|null)$`)
	isType     = regexp.MustCompile(`^(string|int|float|bool|number|dict|list)$`)
	isName     = regexp.MustCompile(`^[A-Za-z_]`)
	isOperator = regexp.MustCompile(`^([-+*/%<>]|\*\*|[=!<>+]?=|and|or|in)$`)
)

// replacement is another token of the same kind as that at i, taken from the text or from a list.
func replacement(r *rand.Rand, t []string, at []int, i int) string {
	of := func(kind *regexp.Regexp, more []string) string {
		var all []string
		for _, j := range at {
			if kind.MatchString(t[j]) {
				all = append(all, t[j])
			}
		}
		if len(more) > 0 && (len(all) == 0 || r.IntN(2) == 0) {
			all = more
		}
		return all[r.IntN(len(all))]
	}
	switch s := t[i]; {
	case isLiteral.MatchString(s):
		return of(isLiteral, literals)
	case isOperator.MatchString(s):
		return of(isOperator, operators)
	case isType.MatchString(s):
		return of(isType, types)
	case isName.MatchString(s):
		if r.IntN(6) == 0 {
			return literals[r.IntN(len(literals))]
		}
		return of(isName, nil)
	}
	return stray[r.IntN(len(stray))]
}

// separators are tokens behind which a line may end.
var separators = strings.Split("()[]{}.,=+?", "")

// spread breaks statements over lines, which means nothing to the language but tells places of errors apart.
func spread(r *rand.Rand, p project) project {
	for _, name := range p.models() {
		t := tokens.FindAllString(p[name], -1)
		for i, s := range t {
			switch {
			case strings.HasPrefix(s, "#"):
			case strings.TrimSpace(s) == "":
				if !strings.Contains(s, "\n") && r.IntN(4) == 0 && (i == 0 || t[i-1] != "matching") {
					t[i] = "\n" + s
				}
			case slices.Contains(separators, s) && r.IntN(8) == 0:
				t[i] = s + "\n"
			}
		}
		p = p.with(name, strings.Join(t, ""))
	}
	return p
}
