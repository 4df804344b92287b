package compilerd

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/intendant/intendant/confine"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// result is what a compiler made, checked.
type result struct {
	ok          bool
	diagnostics diag.List
	intents     []model.Intent
	sets        []string
	unknowns    []model.UnknownParameter
	code        []model.ModuleCode
	pip         *model.PipConfig
	stats       json.RawMessage
}

// resultResource is one resource of a result.
type resultResource struct {
	ID         string             `json:"id"`
	Attributes json.RawMessage    `json:"attributes"`
	Requires   []model.ResourceID `json:"requires"`
	Set        string             `json:"resource_set"`
	State      string             `json:"state"`
}

type resultUnknown struct {
	Resource  string `json:"resource"`
	Parameter string `json:"parameter"`
	Source    string `json:"source"`
}

// undefinedValue is what stands in the attributes of a resource where a value is not known yet.
const undefinedValue = `"<<undefined>>"`

// tooLargeError says that a result goes beyond a limit.
type tooLargeError struct{ what string }

// Error names the limit.
func (e *tooLargeError) Error() string { return "it has more than " + e.what }

// readResult reads a result piece by piece: nothing of it but what is kept is ever in memory at once.
func readResult(ctx context.Context, name string, l Limits) (*result, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening it: %w", err)
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	} else if fi.Size() > l.Result {
		return nil, &tooLargeError{confine.Size(l.Result)}
	}
	d := json.NewDecoder(io.LimitReader(f, l.Result))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	r := &result{}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading it: %w", err)
		}
		k, _ := key.(string)
		if seen[k] {
			return nil, fmt.Errorf("key %q occurs twice", k)
		}
		seen[k] = true
		if err := r.member(ctx, d, k, l); err != nil {
			return nil, fmt.Errorf("reading %q: %w", k, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if !seen["ok"] {
		return nil, errors.New(`it does not say whether the model is "ok"`)
	}
	if r.ok && r.diagnostics.HasErrors() {
		return nil, errors.New(`it says "ok" and lists errors`)
	}
	if !r.ok {
		r.intents = nil
		return r, nil
	}
	return r, r.check()
}

func (r *result) member(ctx context.Context, d *json.Decoder, key string, l Limits) error {
	switch key {
	case "ok":
		return d.Decode(&r.ok)
	case "stats":
		if err := d.Decode(&r.stats); err != nil {
			return err
		}
		if len(r.stats) > 64<<10 {
			r.stats = nil
		}
		return nil
	case "resource_sets":
		return each(ctx, d, l.Resources, "resource sets", func(s string) error {
			r.sets = append(r.sets, s)
			return nil
		})
	case "diagnostics":
		left := 0
		err := each(ctx, d, 10_000_000, "diagnostics", func(x diag.Diagnostic) error {
			// Errors are what people need: they push out what is kept of the rest.
			if len(r.diagnostics) < l.Diagnostics {
				r.diagnostics = append(r.diagnostics, x)
				return nil
			}
			left++
			if x.Severity == diag.Error && !r.diagnostics.HasErrors() {
				r.diagnostics[len(r.diagnostics)-1] = x
			}
			return nil
		})
		if left > 0 {
			r.diagnostics = append(r.diagnostics, diag.Diagnostic{Severity: diag.Info, Message: fmt.Sprintf("%d more diagnostics are not kept", left)})
		}
		return err
	case "unknowns":
		return each(ctx, d, l.Resources, "unknowns", func(u resultUnknown) error {
			r.unknowns = append(r.unknowns, model.UnknownParameter{Name: u.Parameter, Resource: u.Resource, Source: u.Source})
			return nil
		})
	case "code":
		return each(ctx, d, maxModules, "modules with code", func(m model.ModuleCode) error {
			if err := m.Validate(); err != nil {
				return err //nolint:wrapcheck // it names the module
			}
			r.code = append(r.code, m)
			return nil
		})
	case "pip":
		return d.Decode(&r.pip)
	case "resources":
		return each(ctx, d, l.Resources, "resources", r.resource)
	}
	var skip json.RawMessage
	return d.Decode(&skip)
}

// maxModules is how many modules with code a version ships at most.
const maxModules = 2000

// each decodes a JSON array element by element; null is an empty one.
func each[T any](ctx context.Context, d *json.Decoder, most int, what string, f func(T) error) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err //nolint:wrapcheck // readResult says where
	}
	if t != json.Delim('[') {
		return errors.New("it is not a list")
	}
	for n := 0; d.More(); n++ {
		if n >= most {
			return &tooLargeError{fmt.Sprintf("%d %s", most, what)}
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx) //nolint:wrapcheck // the cause is the message
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err //nolint:wrapcheck // readResult says where
		}
		if err := f(v); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err //nolint:wrapcheck // readResult says where
}

func (r *result) resource(x resultResource) error {
	id, _, version, err := model.ParseResourceID(x.ID)
	if err != nil {
		return err //nolint:wrapcheck // it names the id
	}
	if version != 0 || string(id) != x.ID {
		return fmt.Errorf("resource %s has a version in its id", x.ID)
	}
	attrs := strings.TrimLeft(string(x.Attributes), " \t\r\n")
	if !strings.HasPrefix(attrs, "{") {
		return fmt.Errorf("the attributes of resource %s are not an object", x.ID)
	}
	undefined := x.State == "undefined" || strings.Contains(attrs, undefinedValue)
	in, err := model.NewIntent(id, x.Attributes, x.Requires, x.Set, undefined)
	if err != nil {
		return err //nolint:wrapcheck // it names the id
	}
	r.intents = append(r.intents, in)
	return nil
}

// check holds the resources against each other and puts them in order.
func (r *result) check() error {
	slices.SortFunc(r.intents, func(a, b model.Intent) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	known := make(map[model.ResourceID]bool, len(r.intents))
	for _, in := range r.intents {
		if known[in.Resource] {
			return fmt.Errorf("resource %s occurs twice", in.Resource)
		}
		known[in.Resource] = true
	}
	for _, in := range r.intents {
		for _, q := range in.Requires {
			if !known[q] {
				return fmt.Errorf("resource %s requires %s, which is not in the result", in.Resource, q)
			}
		}
	}
	return nil
}

// hashForm matches the names of exported files.
var hashForm = lazyregexp.New(`^[0-9a-f]{40}$`)

// readFiles reads the contents that the compiler left, each named by its SHA-1.
func readFiles(dir string, l Limits) ([]model.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the exported files: %w", err)
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("reading the exported files: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(l.Files + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the exported files: %w", err)
	}
	if len(names) > l.Files {
		return nil, fmt.Errorf("the model exports more than %d files", l.Files)
	}
	slices.Sort(names)
	left := l.FilesBytes
	out := make([]model.File, 0, len(names))
	for _, name := range names {
		if !hashForm().MatchString(name) {
			return nil, fmt.Errorf("exported file %q is not named by its SHA-1", name)
		}
		if fi, err := root.Lstat(name); err != nil || !fi.Mode().IsRegular() {
			return nil, fmt.Errorf("exported file %s is not a plain file", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading exported file %s: %w", name, err)
		}
		content, err := io.ReadAll(io.LimitReader(f, left+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("reading exported file %s: %w", name, err)
		}
		if left -= int64(len(content)); left < 0 {
			return nil, fmt.Errorf("the files that the model exports have more than %s together", confine.Size(l.FilesBytes))
		}
		if sum := sha1.Sum(content); hex.EncodeToString(sum[:]) != name {
			return nil, fmt.Errorf("exported file %s has another content than its name says", name)
		}
		out = append(out, model.File{Hash: name, Content: content})
	}
	return out, nil
}
