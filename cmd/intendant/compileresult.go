package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/intendant/intendant/lang"
)

// write writes a result as encoding/json would, without HTML escaping, and with a newline. Its resources, which make up nearly all of
// a large one, go to b one by one; what a small one has is written without working out the types of everything first, which takes
// as long as the compile of a small model.
func (r *compileResult) write(b *bufio.Writer) error {
	w := &resultWriter{b: b}
	w.text(`{"ok":`)
	w.text(strconv.FormatBool(r.OK))
	w.list("diagnostics", len(r.Diagnostics), r.Diagnostics)
	w.resources(r.Resources)
	w.list("resource_sets", len(r.Sets), r.Sets)
	w.list("unknowns", len(r.Unknowns), r.Unknowns)
	w.list("files", len(r.Files), r.Files)
	if len(r.Code) > 0 {
		w.member("code", r.Code)
	}
	if r.Pip != nil {
		w.member("pip", r.Pip)
	}
	w.list("inputs", len(r.Inputs), r.Inputs)
	w.text(`,"digest":`)
	w.string(r.Digest)
	w.stats(&r.Stats)
	if len(r.Instances) > 0 {
		w.member("instances", r.Instances)
	}
	w.text("}\n")
	return w.err
}

// resultWriter writes the parts of a result. Errors of b show when it is flushed.
type resultWriter struct {
	b   *bufio.Writer
	err error // of a value that can not be encoded
}

func (w *resultWriter) text(s string) { _, _ = w.b.WriteString(s) }

// member writes a member of the result that is not the first.
func (w *resultWriter) member(name string, v any) {
	w.text(`,"`)
	w.text(name)
	w.text(`":`)
	w.value(v)
}

func (w *resultWriter) value(v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("encoding %T: %w", v, err)
		}
		return
	}
	_, _ = w.b.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// list writes a member that is a list of n values, and not null.
func (w *resultWriter) list(name string, n int, v any) {
	if n > 0 {
		w.member(name, v)
		return
	}
	w.text(`,"`)
	w.text(name)
	w.text(`":[]`)
}

// string writes a text.
func (w *resultWriter) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			w.value(s)
			return
		}
	}
	_ = w.b.WriteByte('"')
	w.text(s)
	_ = w.b.WriteByte('"')
}

func (w *resultWriter) resources(all []compiledResource) {
	w.text(`,"resources":[`)
	for i := range all {
		r := &all[i]
		if i > 0 {
			_ = w.b.WriteByte(',')
		}
		w.text(`{"id":`)
		w.string(string(r.ID))
		w.text(`,"attributes":`)
		_, _ = w.b.Write(r.Attributes) // canonical JSON
		w.text(`,"requires":[`)
		for k, id := range r.Requires {
			if k > 0 {
				_ = w.b.WriteByte(',')
			}
			w.string(string(id))
		}
		w.text(`]`)
		if r.Set != "" {
			w.text(`,"resource_set":`)
			w.string(r.Set)
		}
		w.text(`,"state":`)
		w.string(r.State)
		w.text(`}`)
	}
	w.text(`]`)
}

func (w *resultWriter) stats(s *lang.Stats) {
	separator := `,"stats":{`
	number := func(name string, n int64) {
		w.text(separator)
		separator = ","
		w.string(name)
		w.text(":")
		w.text(strconv.FormatInt(n, 10))
	}
	number("files", int64(s.Files))
	number("instances", int64(s.Instances))
	number("resources", int64(s.Resources))
	number("steps", s.Steps)
	number("freezes", s.Freezes)
	for _, d := range []struct {
		name string
		took time.Duration
	}{{"load_ns", s.Load}, {"check_ns", s.Check}, {"eval_ns", s.Eval}, {"export_ns", s.Export}} {
		number(d.name, d.took.Nanoseconds())
	}
	w.text("}")
}
