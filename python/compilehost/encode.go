package compilehost

import (
	"errors"
	"math"
	"strconv"

	"github.com/intendant/intendant/lang/value"
)

// How much is sent ahead with a message.
const (
	maxAhead = 256  // instances whose attributes go along
	maxList  = 4096 // length up to which the instances of a list are sent ahead
)

// table is what Python has seen of the model.
type table struct {
	types map[string]int
	// sent says per instance, by serial, which attributes Python knows.
	sent     map[int]*known
	unknowns map[*value.Unknown]int
	byNumber map[int]*value.Unknown
	// refs are the references that Python made, by its numbers for them.
	refs    map[int]*value.Reference
	numbers map[*value.Reference]int
	// made are the instances that were made of references to dataclasses, by the numbers of those; of the other way round.
	made map[int]value.Instance
	of   map[int]int
	// instances are those that Python has been told of, by serial.
	instances map[int]value.Instance
	// objects are those of Python that models pass on, by Python's numbers for them.
	objects       map[int]*value.Opaque
	objectNumbers map[*value.Opaque]int
}

// known is which attributes of an instance Python knows.
type known struct {
	names []string
	has   []bool
	left  int
}

func newTable() *table {
	return &table{
		types: map[string]int{}, sent: map[int]*known{}, unknowns: map[*value.Unknown]int{}, byNumber: map[int]*value.Unknown{},
		refs: map[int]*value.Reference{}, numbers: map[*value.Reference]int{}, made: map[int]value.Instance{},
		of: map[int]int{}, instances: map[int]value.Instance{}, objects: map[int]*value.Opaque{}, objectNumbers: map[*value.Opaque]int{},
	}
}

// encoder writes one message.
type encoder struct {
	t *table
	c value.ModelContext
	// types are the entities that the message mentions first.
	types []value.TypeInfo
	// queue are the instances whose attributes go along.
	queue []value.Instance
	// ahead is how many may be in the queue.
	ahead int
	// noted says which instances are in the queue.
	noted map[int]bool
}

func newEncoder(t *table, c value.ModelContext) *encoder {
	return &encoder{t: t, c: c, ahead: maxAhead}
}

// value appends a value.
func (e *encoder) value(b []byte, v value.Value) []byte {
	switch x := v.(type) {
	case nil, value.Null:
		return append(b, "null"...)
	case value.Bool:
		return strconv.AppendBool(b, bool(x))
	case value.Int:
		return strconv.AppendInt(b, int64(x), 10)
	case *value.BigInt:
		return x.V.Append(b, 10)
	case value.Float:
		return appendFloat(b, float64(x))
	case value.String:
		return appendString(b, string(x))
	case *value.List:
		b = append(b, '[')
		for i, item := range x.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.inner(b, item)
		}
		return append(b, ']')
	case *value.Dict:
		b = append(b, `{"$d":[`...)
		for i := range x.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			k, item := x.At(i)
			b = append(appendString(b, k), ',')
			b = e.inner(b, item)
		}
		return append(b, "]}"...)
	case value.Instance:
		return e.instance(b, x)
	case *value.Unknown:
		n, ok := e.t.unknowns[x]
		if !ok {
			n = len(e.t.unknowns) + 1
			e.t.unknowns[x], e.t.byNumber[n] = n, x
		}
		b = strconv.AppendInt(append(b, `{"$u":[`...), int64(n), 10)
		return append(appendString(append(b, ','), x.Source), "]}"...)
	case *value.Reference:
		return e.reference(b, x)
	case *value.Opaque:
		if n, ok := e.t.objectNumbers[x]; ok {
			return append(strconv.AppendInt(append(b, `{"$p":`...), int64(n), 10), '}')
		}
		return append(appendString(append(b, `{"$t":`...), x.Text), '}')
	}
	return append(b, "null"...)
}

// inner appends a value inside a list or dict. A null there stays one: its text is not that of Python's None.
func (e *encoder) inner(b []byte, v value.Value) []byte {
	if _, null := v.(value.Null); null {
		return append(b, `{"$z":0}`...)
	}
	return e.value(b, v)
}

func (e *encoder) instance(b []byte, i value.Instance) []byte {
	serial := i.Serial()
	b = strconv.AppendInt(append(b, `{"$i":[`...), int64(serial), 10)
	b = strconv.AppendInt(append(b, ','), int64(e.typeOf(i)), 10)
	if n := e.t.of[serial]; n != 0 {
		b = strconv.AppendInt(append(b, ','), int64(n), 10)
	}
	e.t.instances[serial] = i
	e.note(i)
	return append(b, "]}"...)
}

// note marks an instance for sending its attributes along.
func (e *encoder) note(i value.Instance) {
	if len(e.queue) >= e.ahead {
		return
	}
	serial := i.Serial()
	if k := e.t.sent[serial]; k != nil && k.left == 0 || e.noted[serial] {
		return
	}
	if e.noted == nil {
		e.noted = map[int]bool{}
	}
	e.noted[serial] = true
	e.queue = append(e.queue, i)
}

// typeOf is the number of an instance's entity.
func (e *encoder) typeOf(i value.Instance) int { return e.typeNamed(i.TypeName()) }

func (e *encoder) typeNamed(name string) int {
	n, ok := e.t.types[name]
	if !ok {
		info, found := e.c.Type(name)
		if !found {
			info = value.TypeInfo{Name: name, Entity: true}
		}
		n = e.declare(info)
	}
	return n
}

// declare makes an entity known to Python that is not yet, and gives it a number.
func (e *encoder) declare(info value.TypeInfo) int {
	n := len(e.t.types)
	e.t.types[info.Name] = n
	e.types = append(e.types, info)
	return n
}

func (e *encoder) reference(b []byte, r *value.Reference) []byte {
	b = strconv.AppendInt(append(b, `{"$r":[`...), int64(e.t.numbers[r]), 10)
	b = appendString(append(b, ','), r.Type)
	b = append(b, ",{"...)
	if r.Args != nil {
		for i := range r.Args.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			k, v := r.Args.At(i)
			b = append(appendString(b, k), ':')
			b = e.value(b, v)
		}
	}
	b = append(b, "},"...)
	return append(appendString(b, r.Model), "]}"...)
}

// attributes appends the attributes of an instance that have a value and that Python does not know; ok is false when there are
// none.
func (e *encoder) attributes(b []byte, i value.Instance) (_ []byte, ok bool) {
	serial := i.Serial()
	k := e.t.sent[serial]
	if k == nil {
		names := i.AttributeNames()
		k = &known{names: names, has: make([]bool, len(names)), left: len(names)}
		e.t.sent[serial] = k
	}
	if k.left == 0 {
		return b, false
	}
	b = strconv.AppendInt(append(b, '['), int64(serial), 10)
	b = strconv.AppendInt(append(b, ','), int64(e.typeOf(i)), 10)
	for n, name := range k.names {
		if k.has[n] {
			continue
		}
		v, found, err := i.Attribute(name)
		switch {
		case !found:
			k.has[n] = true
			k.left--
			continue
		case err != nil:
			if _, optional := errors.AsType[*value.OptionalError](err); !optional {
				continue
			}
		}
		if l, isList := v.(*value.List); isList && len(l.Items) > maxList {
			continue // asked for when it is needed
		}
		k.has[n] = true
		k.left--
		ok = true
		b = append(appendString(append(b, ','), name), ',')
		if err != nil {
			b = append(b, `{"$o":1}`...)
			continue
		}
		b = e.value(b, v)
	}
	return append(b, ']'), ok
}

// mentioned appends the entities that the message is the first to mention.
func (e *encoder) mentioned(b []byte) []byte {
	if len(e.types) == 0 {
		return b
	}
	b = append(b, `,"t":[`...)
	for n, t := range e.types {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(e.t.types[t.Name]), 10)
		b = appendString(append(b, ','), t.Name)
		names := make([]string, len(t.Attributes))
		for i := range t.Attributes {
			names[i] = t.Attributes[i].Name
		}
		b = appendStrings(append(b, ','), names)
		b = appendStrings(append(b, ','), t.Ancestors)
		b = strconv.AppendBool(append(b, ','), t.Dataclass)
		b = append(b, ']')
	}
	return append(b, ']')
}

// rest appends all that goes along with the values of a message, and ends it.
func (e *encoder) rest(b []byte) []byte {
	first := true
	for n := 0; n < len(e.queue); n++ { //nolint:intrange // the attributes of one may put others into the queue
		mark := len(b)
		if first {
			b = append(b, `,"a":[`...)
		} else {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = e.attributes(b, e.queue[n]); !ok {
			b = b[:mark]
			continue
		}
		first = false
	}
	if !first {
		b = append(b, ']')
	}
	return append(e.mentioned(b), '}')
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `{"$f":"nan"}`...)
	case math.IsInf(f, 1):
		return append(b, `{"$f":"inf"}`...)
	case math.IsInf(f, -1):
		return append(b, `{"$f":"-inf"}`...)
	}
	return append(b, value.FloatRepr(f)...)
}

func appendString(b []byte, s string) []byte {
	b, err := value.AppendJSON(b, value.String(s), value.JSONStyle{})
	if err != nil {
		panic(err) // strings can always be written
	}
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}
