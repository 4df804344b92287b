package module

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MarkerEnv are the values of the variables that markers of requirements compare, by name: python_version, sys_platform and so
// on. A variable that is missing is the empty text.
type MarkerEnv map[string]string

// PythonEnv are the variables for a CPython of a full version on Linux, which is what the product runs on. machine is the
// processor as Python names it, such as x86_64.
func PythonEnv(version, machine string) MarkerEnv {
	short := version
	if parts := strings.SplitN(version, ".", 3); len(parts) > 1 {
		short = parts[0] + "." + parts[1]
	}
	return MarkerEnv{
		"python_version": short, "python_full_version": version, "os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
		"platform_machine": machine, "implementation_name": "cpython", "platform_python_implementation": "CPython", "implementation_version": version,
	}
}

// Applies reports whether the requirement's marker holds. extras are the optional parts of the package that states it.
func (r Requirement) Applies(env MarkerEnv, extras ...string) bool {
	if r.marker == nil {
		return true
	}
	if len(extras) == 0 {
		extras = []string{""}
	}
	return slices.ContainsFunc(extras, func(extra string) bool { return r.marker(env, extra) })
}

// Conditional reports whether the requirement has a marker.
func (r Requirement) Conditional() bool { return r.marker != nil }

// marker is a condition.
type marker func(env MarkerEnv, extra string) bool

// markerVariables are the names that PEP 508 defines.
var markerVariables = []string{
	"python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system", "platform_version",
	"platform_machine", "platform_python_implementation", "implementation_name", "implementation_version", "extra",
}

// markerParser reads a condition.
type markerParser struct {
	rest  string
	depth int
}

// maxMarkerDepth bounds parentheses.
const maxMarkerDepth = 50

func parseMarker(text string) (marker, error) {
	p := &markerParser{rest: text}
	m, err := p.or()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("the marker ends in %.40q", strings.TrimSpace(p.rest))
	}
	return m, err
}

func (p *markerParser) word(w string) bool {
	rest := strings.TrimLeft(p.rest, " \t")
	after, ok := strings.CutPrefix(rest, w)
	if !ok || after != "" && strings.ContainsAny(w[len(w)-1:], "abcdefghijklmnopqrstuvwxyz") && strings.ContainsAny(after[:1], "abcdefghijklmnopqrstuvwxyz_") {
		return false
	}
	p.rest = after
	return true
}

func (p *markerParser) or() (marker, error) {
	m, err := p.and()
	for err == nil && p.word("or") {
		var n marker
		left := m
		n, err = p.and()
		m = func(e MarkerEnv, x string) bool { return left(e, x) || n(e, x) }
	}
	return m, err
}

func (p *markerParser) and() (marker, error) {
	m, err := p.atom()
	for err == nil && p.word("and") {
		var n marker
		left := m
		n, err = p.atom()
		m = func(e MarkerEnv, x string) bool { return left(e, x) && n(e, x) }
	}
	return m, err
}

func (p *markerParser) atom() (marker, error) {
	if p.word("(") {
		if p.depth++; p.depth > maxMarkerDepth {
			return nil, errors.New("the marker is nested too deeply")
		}
		m, err := p.or()
		if err == nil && !p.word(")") {
			err = errors.New("the marker lacks a closing parenthesis")
		}
		p.depth--
		return m, err
	}
	left, leftName, err := p.operand()
	if err != nil {
		return nil, err
	}
	op := ""
	for _, o := range []string{"===", "==", "~=", "!=", "<=", ">=", "<", ">", "not in", "in"} {
		if p.word(o) {
			op = o
			break
		}
	}
	if op == "" && p.word("not") && p.word("in") {
		op = "not in"
	}
	if op == "" {
		return nil, fmt.Errorf("the marker lacks a comparison at %.40q", strings.TrimSpace(p.rest))
	}
	right, rightName, err := p.operand()
	if err != nil {
		return nil, err
	}
	extra := leftName == "extra" || rightName == "extra"
	return func(e MarkerEnv, x string) bool {
		a, b := left(e, x), right(e, x)
		if extra {
			a, b = normalise(a), normalise(b)
		}
		return compareMarker(op, a, b)
	}, nil
}

// compareMarker compares as versions where both sides are versions, else as texts.
func compareMarker(op, a, b string) bool {
	switch op {
	case "in":
		return strings.Contains(b, a)
	case "not in":
		return !strings.Contains(b, a)
	}
	c, err := ParseConstraint(op + b)
	v, verr := ParseVersion(a)
	if err == nil && verr == nil {
		return c.Match(v, true)
	}
	switch op {
	case "==", "===":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return false
}

type operand func(MarkerEnv, string) string

func (p *markerParser) operand() (operand, string, error) {
	rest := strings.TrimLeft(p.rest, " \t")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil, "", errors.New("the marker has a text without an end")
		}
		text := rest[1 : 1+end]
		p.rest = rest[end+2:]
		return func(MarkerEnv, string) string { return text }, "", nil
	}
	for _, name := range markerVariables {
		p.rest = rest
		// python_version is not the beginning of another name.
		if after, ok := strings.CutPrefix(rest, name); ok && (after == "" || !strings.ContainsAny(after[:1], "abcdefghijklmnopqrstuvwxyz_")) {
			p.rest = after
			if name == "extra" {
				return func(_ MarkerEnv, x string) string { return x }, name, nil
			}
			return func(e MarkerEnv, _ string) string { return e[name] }, name, nil
		}
	}
	return nil, "", fmt.Errorf("the marker has neither a text in quotes nor a known variable at %.40q", rest)
}
