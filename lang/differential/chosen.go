package main

import (
	"regexp"
	"strings"
)

// undecided is how the reference is at odds with itself: its answers to a model differ with the hash seed.
const undecided = "undecided by the reference"

// chosen names the row of docs/language/differences.md, or another known reason, by which a difference is meant to be; empty when
// it is not.
func chosen(p project, our, their answer, d *difference) string {
	var want fault
	if len(their.errors) > 0 {
		want = their.errors[0]
	}
	var got fault
	if len(our.errors) > 0 {
		got = our.errors[0]
	}
	foreign := their.outcome == "error" && strings.IndexFunc(want.codes[0], func(r rune) bool { return r == '.' }) > 0
	switch {
	case strings.Contains(want.message, "Invalid key in f-string"):
		return "1 doubled braces in f-strings"
	case their.outcome == "timeout" && our.outcome == "error" && strings.Contains(got.message, "steps"):
		return "8 work without end"
	case their.outcome == "timeout":
		return "8 work without end"
	case want.codes != nil && want.codes[0] == "builtins.KeyError" && strings.Contains(want.message, "IsDefinedGradual"):
		return "27 internal error of is defined"
	case foreign && our.outcome == "error":
		return "2-7 errors of the host language: " + want.codes[0]
	case d.point == pointOrder && strings.Count(p["project.yml"], " before ") > 1:
		return "20 order of a precedence policy's chains"
	case (d.point == pointInstances || d.point == pointPrinted || d.point == pointOrder || d.point == pointResources) && p.nonASCII():
		return "15 characters outside ASCII"
	}
	return ""
}

var outsideASCII = regexp.MustCompile(`[^\x00-\x7f]`)

func (p project) nonASCII() bool {
	for _, name := range p.models() {
		if outsideASCII.MatchString(p[name]) {
			return true
		}
	}
	return false
}
