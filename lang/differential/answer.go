package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing/fstest"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

// answer is what a compiler makes of a project, in a form that two compilers can share.
type answer struct {
	// outcome is "ok", "error", or how the compiler failed: "timeout", "broken".
	outcome string
	// errors are the faults, the first one first; the reference has one.
	errors []fault
	// printed is the standard output.
	printed []string
	// nodes are the instances by id.
	nodes map[string]*node
	// resources are the exported resources by id, each in one line of text.
	resources map[string]string
	// exportError is set when the model compiles and can not be exported.
	exportError string
}

// fault is an error of a model.
type fault struct {
	// codes are the class and those of the causes of an aggregate.
	codes   []string
	message string
	// places are where it may be reported; empty when the reference names none.
	places []place
}

type place struct {
	file string
	line int
}

func (p place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

// node is an instance: its attributes and relations with values in a common form (see [canonical]).
type node struct {
	kind  string
	own   bool
	slots map[string]any
}

// The values of slots besides nil, bool, string, number and []any.
type (
	ref     string // an instance
	unknown struct{}
	// deferred is a reference of the language, to a value that is known at deployment. The two write its kind in their own ways.
	deferred struct{}
	pairs    map[string]any
	number   string
)

// ours compiles a project with the compiler under test. A panic is an outcome, since finding one is what this is for.
func ours(ctx context.Context, p project, limit time.Duration) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{outcome: "broken", errors: []fault{{codes: []string{"panic"}, message: fmt.Sprint(r)}}}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	files := fstest.MapFS{}
	for name, text := range p {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var out bytes.Buffer
	opts := lang.Options{Stdout: &out, Inputs: lang.Inputs{
		Env: os.LookupEnv, Settings: map[string]string{"now": "2026-01-01T00:00:00Z"},
	}}
	res, ds, err := lang.Compile(ctx, lang.Project{FS: files}, opts)
	switch {
	case ctx.Err() != nil:
		return answer{outcome: "timeout"}
	case err != nil:
		return answer{outcome: "broken", errors: []fault{{codes: []string{"error"}, message: err.Error()}}}
	}
	a = answer{outcome: "ok", printed: lines(out.String())}
	if ds.HasErrors() {
		a.outcome = "error"
		for _, d := range ds.Errors() {
			a.errors = append(a.errors, ourFault(d))
		}
		return a
	}
	a.nodes = map[string]*node{}
	for _, i := range lang.ExportInstances(res.Model) {
		_, own := p[i.File]
		n := &node{kind: plainType(i.Type), own: own, slots: map[string]any{}}
		for name, v := range decode[map[string]any](i.Attributes) {
			n.slots[name] = ourValue(v)
		}
		a.nodes[i.ID] = n
	}
	a.resources = map[string]string{}
	for _, in := range res.State.Intents {
		requires := make([]string, 0, len(in.Requires))
		for _, r := range in.Requires {
			requires = append(requires, string(r))
		}
		a.resources[string(in.Resource)] = resourceText(decode[map[string]any](in.Attributes), requires)
	}
	return a
}

func ourFault(d diag.Diagnostic) fault {
	return fault{codes: []string{d.Code}, message: d.Message, places: []place{{d.Range.File, d.Range.Start.Line}}}
}

// ourValue turns a decoded value of [lang.ExportInstances] into the common form.
func ourValue(v any) any {
	switch x := v.(type) {
	case json.Number:
		return number(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = ourValue(e)
		}
		return out
	case map[string]any:
		if id, ok := x["instance"].(string); ok && len(x) == 1 {
			return ref(id)
		}
		if u, ok := x["unknown"].(bool); ok && u && len(x) == 1 {
			return unknown{}
		}
		if _, ok := x["reference"].(string); ok && len(x) == 1 {
			return deferred{}
		}
		out := pairs{}
		for k, e := range x {
			out[k] = ourValue(e)
		}
		return out
	}
	return v
}

// lines splits printed text.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// plainType is the name of a type as the main file writes it.
func plainType(name string) string { return strings.TrimPrefix(name, "__config__::") }

// decode decodes JSON with the text of its numbers kept. What the two compilers write is always JSON.
func decode[T any](text []byte) T {
	var v T
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("decoding %.100q: %v", text, err))
	}
	return v
}
