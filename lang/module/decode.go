package module

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/slab"
)

// decoder reads a YAML mapping key by key and keeps what is wrong with it. Numbers are fine where text is expected, as in the
// reference, but not what its YAML (1.1) takes for a boolean or a date.
type decoder struct {
	file   string
	node   *yaml.Node
	faults *diag.List
	prefix string // of keys in messages
	dashes bool   // keys may be written with dashes for underscores
}

// newDecoder reads YAML. The diagnostic says why it is not a mapping.
func newDecoder(file string, src []byte) (*decoder, *diag.Diagnostic) {
	fault := func(line int, format string, args ...any) *diag.Diagnostic {
		r := diag.Range{File: file}
		if line > 0 {
			r.Start, r.End = diag.Position{Line: line}, diag.Position{Line: line}
		}
		d := diag.Errorf("InvalidMetadata", r, "Metadata defined in %s is invalid:\n  %s", file, fmt.Sprintf(format, args...))
		return &d
	}
	var doc, next yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(src))
	if err := documents.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault(errorLine(err), "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch err := documents.Decode(&next); {
	case err == nil:
		return nil, fault(next.Line, "the file must hold a single document")
	case !errors.Is(err, io.EOF):
		return nil, fault(errorLine(err), "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return nil, fault(1, "the file is empty")
	}
	root := resolve(doc.Content[0])
	if root.Kind != yaml.MappingNode {
		return nil, fault(root.Line, "the file must hold a mapping of keys to values")
	}
	return &decoder{file: file, node: root, faults: &diag.List{}}, nil
}

// errorLine is the line that a YAML error names, 0 when it names none.
func errorLine(err error) int {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "line "); ok {
		n := 0
		for _, c := range after {
			if c < '0' || c > '9' || n > 1<<20 {
				break
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	return 0
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// get is the value of a key; nil when it is missing or null.
func (d *decoder) get(key string) *yaml.Node {
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		k := d.node.Content[i].Value
		if k == key || d.dashes && strings.ReplaceAll(k, "-", "_") == key {
			v := resolve(d.node.Content[i+1])
			if v == nil || v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
				return nil
			}
			return v
		}
	}
	return nil
}

func (d *decoder) at(n *yaml.Node) diag.Range {
	start := diag.Position{Line: n.Line, Column: n.Column}
	end := start
	if n.Kind == yaml.ScalarNode && n.Style == 0 && !strings.Contains(n.Value, "\n") {
		end.Column += len([]rune(n.Value))
	}
	return diag.Range{File: d.file, Start: start, End: end}
}

// invalid records that a value can not be used.
func (d *decoder) invalid(n *yaml.Node, key, format string, args ...any) {
	d.faults.Errorf("InvalidMetadata", d.at(n), "Metadata defined in %s is invalid:\n  %s: %s", d.file, d.prefix+key, fmt.Sprintf(format, args...))
}

func (d *decoder) warnf(code, key, format string, args ...any) {
	r := diag.Range{File: d.file}
	if n := d.get(key); n != nil {
		r = d.at(n)
	}
	d.faults.Warnf(code, r, format, args...)
}

// required is the text of a key that must be there.
func (d *decoder) required(key string) string {
	if d.get(key) == nil {
		d.invalid(d.node, key, "the key is missing")
		return ""
	}
	return d.text(key)
}

func (d *decoder) text(key string) string {
	n := d.get(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		d.invalid(n, key, "expected text")
		return ""
	}
	d.checkText(n, key)
	return n.Value
}

// checkText complains about what looks like text and is none in YAML 1.1.
func (d *decoder) checkText(n *yaml.Node, key string) {
	if n.Style != 0 {
		return
	}
	switch strings.ToLower(n.Value) {
	case "true", "false", "yes", "no", "on", "off":
		d.invalid(n, key, "expected text, and %s is a boolean: put it in quotes", n.Value)
	case "=", "<<":
		d.invalid(n, key, "expected text, and %s has a meaning of its own in YAML: put it in quotes", n.Value)
	default:
		if n.Tag == "!!timestamp" {
			d.invalid(n, key, "expected text, and %s is a date: put it in quotes", n.Value)
		}
	}
}

// requirements is a list of requirements on modules and packages.
func (d *decoder) requirements(key string) []string {
	out := d.list(key)
	for _, text := range out {
		if _, err := ParseRequirement(text); err != nil {
			d.invalid(d.get(key), key, "%v", err)
		}
	}
	return out
}

// list is a list of texts. A single text makes a list of one.
func (d *decoder) list(key string) []string {
	n := d.get(key)
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.ScalarNode:
		d.checkText(n, key)
		return []string{n.Value}
	case yaml.SequenceNode:
		var out []string
		for _, item := range n.Content {
			item = resolve(item)
			if item.Kind != yaml.ScalarNode {
				d.invalid(item, key, "expected a list of texts")
				return nil
			}
			d.checkText(item, key)
			out = append(out, item.Value)
		}
		return out
	}
	d.invalid(n, key, "expected a list of texts")
	return nil
}

func (d *decoder) flag(key string, otherwise bool) bool {
	n := d.get(key)
	if n == nil {
		return otherwise
	}
	switch strings.ToLower(n.Value) {
	case "true", "t", "yes", "y", "on", "1":
		return true
	case "false", "f", "no", "n", "off", "0":
		return false
	}
	d.invalid(n, key, "expected true or false")
	return otherwise
}

// choice is one of the texts; the first is the default.
func (d *decoder) choice(key string, options ...string) string {
	n := d.get(key)
	if n == nil {
		return options[0]
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(options, n.Value) {
		d.invalid(n, key, "expected one of %s", strings.Join(options, ", "))
		return options[0]
	}
	return n.Value
}

func (d *decoder) mapping(key string) map[string]any {
	n := d.get(key)
	if n == nil {
		return nil
	}
	var out map[string]any
	if n.Kind != yaml.MappingNode || n.Decode(&out) != nil {
		d.invalid(n, key, "expected a mapping")
		return nil
	}
	return out
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

var errTooLarge = errors.New("the file is too large")

// readLimited reads a file of at most limit bytes.
func readLimited(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var size int64 // as far as it is known
	if info, err := f.Stat(); err == nil {
		size = min(max(info.Size(), 0), limit)
	}
	src := slab.Make[byte](int(size) + bytes.MinRead)[:0]
	for r := io.LimitReader(f, limit+1); ; {
		n, err := r.Read(src[len(src):cap(src)])
		src = src[:len(src)+n]
		switch {
		case int64(len(src)) > limit:
			return nil, fmt.Errorf("reading %s: %w: more than %d bytes", name, errTooLarge, limit)
		case err == io.EOF:
			return src, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", name, err)
		case len(src) == cap(src):
			src = slices.Grow(src, bytes.MinRead)
		}
	}
}
