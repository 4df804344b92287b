package compilehost

import (
	"errors"
	"fmt"
	"math"

	"github.com/intendant/intendant/lang/value"
)

// decoder reads the values of one message.
type decoder struct {
	t *table
	c value.ModelContext
}

// parse reads a value from its JSON.
func (d *decoder) parse(text []byte) (value.Value, error) {
	v, err := value.ParseJSON(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading what Python sent: %w", err)
	}
	return d.value(v)
}

func (d *decoder) value(v value.Value) (value.Value, error) {
	switch x := v.(type) {
	case *value.List:
		for i, item := range x.Items { // it has just been made, nobody else sees it
			switch item.(type) {
			case *value.List, *value.Dict:
				var err error
				if x.Items[i], err = d.value(item); err != nil {
					return nil, err
				}
			}
		}
		return x, nil
	case *value.Dict:
		return d.tagged(x)
	}
	return v, nil
}

func (d *decoder) tagged(x *value.Dict) (value.Value, error) {
	if x.Len() == 0 {
		return nil, errForm
	}
	key, v := x.At(0)
	if key == "$f" {
		switch s, _ := v.(value.String); s {
		case "nan":
			return value.Float(math.NaN()), nil
		case "inf":
			return value.Float(math.Inf(1)), nil
		case "-inf":
			return value.Float(math.Inf(-1)), nil
		}
		return nil, errForm
	}
	if n, ok := v.(value.Int); ok && key == "$u" {
		if u := d.t.byNumber[int(n)]; u != nil {
			return u, nil
		}
		return nil, errForm
	}
	if s, ok := v.(value.String); ok && key == "$t" {
		return &value.Opaque{Class: "type", Text: string(s), Notation: "<class '" + string(s) + "'>"}, nil
	}
	l, ok := v.(*value.List)
	if !ok {
		return nil, errForm
	}
	switch key {
	case "$p":
		return d.object(l.Items)
	case "$d":
		return d.dict(l.Items)
	case "$i":
		if len(l.Items) >= 2 {
			if n, ok := l.Items[0].(value.Int); ok {
				if i := d.t.instances[int(n)]; i != nil {
					return i, nil
				}
			}
		}
	case "$u":
		if len(l.Items) == 1 {
			source, _ := l.Items[0].(value.String)
			return &value.Unknown{Source: string(source)}, nil
		}
	case "$r":
		return d.reference(l.Items)
	case "$n":
		return d.construct(x, l.Items)
	}
	return nil, errForm
}

// errForm says that Python sent what our own host code never sends.
var errForm = errors.New("reading what Python sent: a value is not in the expected form")

func (d *decoder) dict(items []value.Value) (*value.Dict, error) {
	out := value.NewDict(len(items) / 2)
	for i := 0; i+1 < len(items); i += 2 {
		k, ok := items[i].(value.String)
		if !ok {
			return nil, errForm
		}
		v, err := d.value(items[i+1])
		if err != nil {
			return nil, err
		}
		out.Set(string(k), v)
	}
	return out, nil
}

func (d *decoder) reference(items []value.Value) (value.Value, error) {
	if len(items) != 4 {
		return nil, errForm
	}
	number, ok1 := items[0].(value.Int)
	kind, ok2 := items[1].(value.String)
	args, ok3 := items[2].(*value.Dict)
	model, ok4 := items[3].(value.String)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil, errForm
	}
	if r := d.t.refs[int(number)]; r != nil {
		return r, nil
	}
	r := &value.Reference{Type: string(kind), Args: value.NewDict(args.Len()), Model: string(model)}
	for i := range args.Len() {
		k, v := args.At(i)
		v, err := d.value(v)
		if err != nil {
			return nil, err
		}
		r.Args.Set(k, v)
	}
	d.t.refs[int(number)], d.t.numbers[r] = r, int(number)
	return r, nil
}

// object is an object of Python; one that came before is the same value.
func (d *decoder) object(items []value.Value) (value.Value, error) {
	if len(items) != 4 {
		return nil, errForm
	}
	number, ok1 := items[0].(value.Int)
	class, ok2 := items[1].(value.String)
	text, ok3 := items[2].(value.String)
	notation, ok4 := items[3].(value.String)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil, errForm
	}
	o := d.t.objects[int(number)]
	if o == nil {
		o = &value.Opaque{Class: string(class), Text: string(text), Notation: string(notation)}
		d.t.objects[int(number)], d.t.objectNumbers[o] = o, int(number)
	}
	return o, nil
}

// construct makes an instance of what a dataclass holds. A reference to a dataclass makes one instance, however often it comes.
func (d *decoder) construct(x *value.Dict, items []value.Value) (value.Value, error) {
	if len(items) == 0 {
		return nil, errForm
	}
	name, ok := items[0].(value.String)
	if !ok {
		return nil, errForm
	}
	ref := 0
	if v, ok := x.Get("ref"); ok {
		n, _ := v.(value.Int)
		ref = int(n)
		if i := d.t.made[ref]; i != nil {
			return i, nil
		}
	}
	attrs, err := d.dict(items[1:])
	if err != nil {
		return nil, err
	}
	i, err := d.c.Construct(string(name), attrs)
	if err != nil {
		return nil, err
	}
	if ref != 0 {
		d.t.made[ref], d.t.of[i.Serial()] = i, ref
	}
	return i, nil
}
