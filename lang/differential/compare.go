package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A point is something in which two answers can differ.
type point string

// The points, the most important first. Only one is reported of each model, since the later ones often follow from it.
const (
	pointBroken    point = "broken"     // we crash or do not end
	pointAccept    point = "accept"     // one accepts what the other refuses
	pointLine      point = "line"       // no error of ours is where the reference has it
	pointFirst     point = "first line" // another error comes first
	pointCode      point = "code"       // the class of the error
	pointInstances point = "instances"  // the graph of instances
	pointPrinted   point = "printed"    // the lines of standard output, in any order
	pointResources point = "resources"  // the exported resources
	pointOrder     point = "order"      // the order of printed lines
)

// difference is a point in which two answers differ, and how.
type difference struct {
	point point
	text  string
}

// compare names the most important point in which our answer differs from that of the reference; nil when they agree.
func compare(our, their answer) *difference {
	found := func(p point, format string, args ...any) *difference {
		return &difference{p, fmt.Sprintf(format, args...)}
	}
	if our.outcome != "ok" && our.outcome != "error" && our.outcome != their.outcome {
		return found(pointBroken, "%s: %s; the reference: %s", our.outcome, our.said(), their.said())
	}
	if their.exportError != "" {
		if our.outcome == "ok" {
			return found(pointResources, "exported; the reference: %s", their.exportError)
		}
		return nil
	}
	if our.outcome != their.outcome {
		return found(pointAccept, "ours: %s; the reference: %s", our.said(), their.said())
	}
	switch our.outcome {
	case "ok":
		return compareModels(our, their, found)
	case "error":
		return compareFaults(our, their.errors[0], found)
	}
	return nil
}

func compareFaults(our answer, want fault, found func(point, string, ...any) *difference) *difference {
	text := func() string { return fmt.Sprintf("ours: %s; the reference: %s", our.said(), want) }
	if len(want.places) > 0 {
		if !slices.ContainsFunc(our.errors, want.near) {
			return found(pointLine, "%s", text())
		}
		if !want.near(our.errors[0]) {
			return found(pointFirst, "%s", text())
		}
	}
	if !slices.ContainsFunc(our.errors, func(f fault) bool { return slices.Contains(want.codes, f.codes[0]) }) {
		return found(pointCode, "%s", text())
	}
	return nil
}

// near reports whether another fault is at one of this one's places. Inside the standard module lines are each compiler's own.
func (f fault) near(g fault) bool {
	for _, p := range f.places {
		for _, q := range g.places {
			if p == q || strings.HasPrefix(p.file, "{std}") && strings.HasPrefix(q.file, "{") {
				return true
			}
		}
	}
	return false
}

func (f fault) String() string {
	return fmt.Sprintf("%v %s: %.200s", f.places, strings.Join(f.codes, ","), f.message)
}

// said is the outcome in a few words.
func (a answer) said() string {
	if len(a.errors) == 0 {
		return a.outcome
	}
	return a.errors[0].String()
}

func compareModels(our, their answer, found func(point, string, ...any) *difference) *difference {
	o, t := prune(our.nodes), prune(their.nodes)
	if !slices.Equal(colours(o), colours(t)) {
		return found(pointInstances, "%s", describe(o, t))
	}
	if a, b := slices.Sorted(slices.Values(our.printed)), slices.Sorted(slices.Values(their.printed)); !slices.Equal(a, b) {
		return found(pointPrinted, "ours: %.300q; the reference: %.300q", without(a, b), without(b, a))
	}
	if !maps.Equal(our.resources, their.resources) {
		return found(pointResources, "ours: %v; the reference: %v", our.resources, their.resources)
	}
	if !slices.Equal(our.printed, their.printed) {
		return found(pointOrder, "ours: %.300q; the reference: %.300q", our.printed, their.printed)
	}
	return nil
}

// without lists what is in a and not in b.
func without(a, b []string) []string {
	b = slices.Clone(b)
	var out []string
	for _, x := range a {
		if i := slices.Index(b, x); i >= 0 {
			b = slices.Delete(b, i, i+1)
			continue
		}
		out = append(out, x)
	}
	return out
}

// prune keeps the instances that the project's own files made and what they lead to. Empty requires and provides say nothing.
func prune(nodes map[string]*node) map[string]*node {
	out := map[string]*node{}
	var visit func(id string)
	var follow func(v any)
	follow = func(v any) {
		switch x := v.(type) {
		case ref:
			visit(string(x))
		case []any:
			for _, e := range x {
				follow(e)
			}
		}
	}
	visit = func(id string) {
		n := nodes[id]
		if n == nil || out[id] != nil {
			return
		}
		out[id] = n
		for _, name := range []string{"requires", "provides"} {
			if l, ok := n.slots[name].([]any); ok && len(l) == 0 || n.slots[name] == nil {
				delete(n.slots, name)
			}
		}
		for _, v := range n.slots {
			follow(v)
		}
	}
	for id, n := range nodes {
		if n.own {
			visit(id)
		}
	}
	return out
}

// rounds bounds the refinement of colours.
const rounds = 100

// colours gives each instance a colour by refinement in the manner of Weisfeiler and Lehman: it starts as the type, and is refined
// by the values of attributes and the colours of the instances referred to until the number of colours grows no more. Equal models
// have equal colours, however their instances are named and ordered. The colours are sorted.
func colours(nodes map[string]*node) []string {
	col := make(map[string]string, len(nodes))
	for id, n := range nodes {
		col[id] = n.kind
	}
	count := 0
	for range rounds {
		next := make(map[string]string, len(nodes))
		seen := map[string]bool{}
		for id, n := range nodes {
			b := []byte(col[id])
			for _, name := range slices.Sorted(maps.Keys(n.slots)) {
				b = append(b, "\x00"+name+"="...)
				b = appendCanonical(b, n.slots[name], col)
			}
			sum := sha256.Sum256(b)
			next[id] = string(sum[:])
			seen[next[id]] = true
		}
		col = next
		if len(seen) == count {
			break
		}
		count = len(seen)
	}
	return slices.Sorted(maps.Values(col))
}

// appendCanonical appends a text of a value that equal values share. A list that holds an instance is a set.
func appendCanonical(b []byte, v any, col map[string]string) []byte {
	switch x := v.(type) {
	case ref:
		return append(append(b, '@'), col[string(x)]...)
	case unknown:
		return append(b, "<unknown>"...)
	case deferred:
		return append(b, "<reference>"...)
	case number:
		return append(b, plainNumber(string(x))...)
	case string:
		return strconv.AppendQuote(b, x)
	case []any:
		parts := make([]string, len(x))
		set := false
		for i, e := range x {
			_, isRef := e.(ref)
			set = set || isRef
			parts[i] = string(appendCanonical(nil, e, col))
		}
		if set {
			slices.Sort(parts)
		}
		return append(b, "["+strings.Join(parts, ",")+"]"...)
	case pairs:
		b = append(b, '{')
		for _, k := range slices.Sorted(maps.Keys(x)) {
			b = append(strconv.AppendQuote(b, k), ':')
			b = append(appendCanonical(b, x[k], col), ',')
		}
		return append(b, '}')
	}
	return fmt.Append(b, v)
}

// plainNumber is the text of a number by its value, with a mark for those that are not whole by type.
func plainNumber(text string) string {
	if !strings.ContainsAny(text, ".eEnN") {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return "f" + strconv.FormatFloat(f, 'g', -1, 64)
}

// describe says in short how two graphs differ.
func describe(our, their map[string]*node) string {
	counts := func(nodes map[string]*node) map[string]int {
		m := map[string]int{}
		for _, n := range nodes {
			m[n.kind]++
		}
		return m
	}
	var out []string
	co, ct := counts(our), counts(their)
	for _, kind := range slices.Sorted(maps.Keys(ct)) {
		if co[kind] != ct[kind] {
			out = append(out, fmt.Sprintf("%s: ours %d, the reference %d", kind, co[kind], ct[kind]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(co)) {
		if ct[kind] == 0 {
			out = append(out, fmt.Sprintf("%s: ours %d, the reference none", kind, co[kind]))
		}
	}
	values := func(nodes map[string]*node) []string {
		kinds := map[string]string{}
		for id, n := range nodes {
			kinds[id] = n.kind
		}
		var l []string
		for _, n := range nodes {
			for name, v := range n.slots {
				l = append(l, n.kind+"."+name+"="+string(appendCanonical(nil, v, kinds)))
			}
		}
		slices.Sort(l)
		return l
	}
	a, b := values(our), values(their)
	return fmt.Sprintf("%s ours: %.300q; the reference: %.300q", strings.Join(out, "; "), without(a, b), without(b, a))
}

var version = regexp.MustCompile(`,v=\d+$`)

func unversioned(id string) string { return version.ReplaceAllString(id, "") }

// resourceText is a line for a resource: its attributes sorted by name and what it requires. Undefined values look alike.
func resourceText(attributes map[string]any, requires []string) string {
	attributes = maps.Clone(attributes)
	for _, name := range []string{"id", "requires", "provides", "version"} {
		delete(attributes, name)
	}
	for name, v := range attributes {
		if m, ok := v.(map[string]any); ok && m["unknown"] == true {
			attributes[name] = "<<undefined>>"
		}
		if l, ok := v.([]any); ok && len(l) == 0 && (name == "references" || name == "mutators") {
			delete(attributes, name)
		}
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		panic(fmt.Sprintf("encoding attributes: %v", err)) // they were decoded from JSON
	}
	for i, r := range requires {
		requires[i] = unversioned(r)
	}
	slices.Sort(requires)
	return fmt.Sprintf("%s requires %v", text, requires)
}
