package lang

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the identity of references is defined with MD5; nothing is secured by it
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// references collects the references in the fields of one resource: each is replaced by null, and a mutator says where its
// value goes when the resource is deployed.
type references struct {
	resource string
	refs     []identified
	mutators []identified
}

// identified is the JSON form of a reference or a mutator with its identity, by which they are sorted.
type identified struct {
	id    uuid.UUID
	model *value.Dict
}

// strip returns v with null in place of references. path is the place of v in the resource.
func (r *references) strip(v value.Value, path string) (value.Value, error) {
	switch x := v.(type) {
	case *value.Reference:
		id, err := r.add(x, 0)
		if err != nil {
			return nil, err
		}
		args := &value.List{Items: []value.Value{
			argument("resource", "resource", "id", value.String(r.resource)),
			argument("reference", "value", "id", value.String(id.String())),
			argument("literal", "destination", "value", value.String(path)),
		}}
		replace := dict("type", value.String("core::Replace"), "args", args)
		mid, err := identity("core::Replace", args)
		if err != nil {
			return nil, err
		}
		r.mutators = insert(r.mutators, identified{mid, replace})
		return value.Null{}, nil
	case *value.List:
		out := make([]value.Value, len(x.Items))
		changed := false
		for i, e := range x.Items {
			var err error
			if out[i], err = r.strip(e, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return nil, err
			}
			changed = changed || isReplaced(e, out[i])
		}
		if changed {
			return &value.List{Items: out}, nil
		}
	case *value.Dict:
		out := value.NewDict(x.Len())
		changed := false
		for i := range x.Len() {
			k, e := x.At(i)
			s, err := r.strip(e, path+".'"+strings.ReplaceAll(k, "'", "\\'")+"'")
			if err != nil {
				return nil, err
			}
			changed = changed || isReplaced(e, s)
			out.Set(k, s)
		}
		if changed {
			return out, nil
		}
	}
	return v, nil
}

// isReplaced reports whether strip made something else of a value.
func isReplaced(before, after value.Value) bool {
	switch b := before.(type) {
	case *value.Reference:
		return true
	case *value.List:
		a, ok := after.(*value.List)
		return !ok || a != b
	case *value.Dict:
		a, ok := after.(*value.Dict)
		return !ok || a != b
	}
	return false
}

// maxReferenceDepth bounds references to references.
const maxReferenceDepth = 100

// add notes a reference and those among its arguments, and returns its identity.
func (r *references) add(ref *value.Reference, depth int) (uuid.UUID, error) {
	if depth > maxReferenceDepth {
		return uuid.UUID{}, fmt.Errorf("reference %s refers to itself", value.Repr(ref))
	}
	args := &value.List{}
	if ref.Args != nil {
		for i := range ref.Args.Len() {
			name, v := ref.Args.At(i)
			a, err := r.argument(name, v, depth)
			if err != nil {
				return uuid.UUID{}, err
			}
			args.Items = append(args.Items, a)
		}
	}
	id, err := identity(ref.Type, args)
	if err != nil {
		return uuid.UUID{}, err
	}
	r.refs = insert(r.refs, identified{id, dict("id", value.String(id.String()), "type", value.String(ref.Type), "args", args)})
	return id, nil
}

func (r *references) argument(name string, v value.Value, depth int) (value.Value, error) {
	switch x := v.(type) {
	case *value.Reference:
		id, err := r.add(x, depth+1)
		if err != nil {
			return nil, err
		}
		return argument("reference", name, "id", value.String(id.String())), nil
	case *value.List, *value.Dict:
		return argument("json", name, "value", v), nil
	case *value.Opaque:
		if x.Class == "type" {
			return argument("python_type", name, "value", value.String(x.Text)), nil
		}
		return nil, fmt.Errorf("argument %s of a reference can not be %s", name, x.Text)
	case *value.Unknown, value.Instance:
		return nil, fmt.Errorf("argument %s of a reference can not be %s", name, value.Str(v))
	}
	return argument("literal", name, "value", v), nil
}

func argument(kind, name, field string, v value.Value) *value.Dict {
	return dict("type", value.String(kind), "name", value.String(name), field, v)
}

func dict(pairs ...any) *value.Dict {
	d := value.NewDict(len(pairs) / 2)
	for i := 0; i+1 < len(pairs); i += 2 {
		k, _ := pairs[i].(string)
		v, _ := pairs[i+1].(value.Value)
		d.Set(k, v)
	}
	return d
}

// identity is the identity of a reference or mutator: equal ones have the same.
func identity(kind string, args *value.List) (uuid.UUID, error) {
	style := value.PythonJSON
	style.SortKeys = true
	text, err := value.AppendJSON(nil, dict("type", value.String(kind), "args", args), style)
	if err != nil {
		return uuid.UUID{}, err
	}
	sum := md5.Sum(text)
	return uuid.NewMD5(uuid.NameSpaceOID, sum[:]), nil
}

func insert(list []identified, x identified) []identified {
	i, found := slices.BinarySearchFunc(list, x, func(a, b identified) int { return cmp.Compare(a.id.String(), b.id.String()) })
	if found {
		return list
	}
	return slices.Insert(list, i, x)
}

func models(list []identified) *value.List {
	out := &value.List{Items: make([]value.Value, len(list))}
	for i, x := range list {
		out.Items[i] = x.model
	}
	return out
}

// complete is the canonical form of a resource's fields, with its references and mutators when there are any.
func (r *references) complete(fields []byte) ([]byte, error) {
	if len(r.refs) == 0 {
		return canonical(fields)
	}
	b := fields[:len(fields)-1]
	for _, part := range []struct {
		name string
		list []identified
	}{{"references", r.refs}, {"mutators", r.mutators}} {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendString(b, part.name), ':')
		var err error
		if b, err = value.AppendJSON(b, models(part.list), value.JSONStyle{}); err != nil {
			return nil, fmt.Errorf("writing references: %w", err)
		}
	}
	return model.Canonical(append(b, '}'))
}
