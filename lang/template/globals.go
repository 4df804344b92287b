package template

import (
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// cycler is what the global cycler gives.
type cycler struct {
	items []any
	pos   int
}

func (c *cycler) next() any {
	v := c.items[c.pos]
	c.pos = (c.pos + 1) % len(c.items)
	return v
}

func (c *cycler) attribute(name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "items":
		return &tuple{c.items}, true
	case "pos":
		return value.Int(c.pos), true
	case "next":
		return method(name, 0, nil, func([]any) any { return c.next() }), true
	case "reset":
		return method(name, 0, nil, func([]any) any { c.pos = 0; return value.Null{} }), true
	}
	return nil, false
}

// joiner is what the global joiner gives.
type joiner struct {
	sep  any
	used bool
}

func (j *joiner) next() any {
	if !j.used {
		j.used = true
		return value.String("")
	}
	return j.sep
}

func (j *joiner) attribute(name string) (any, bool) {
	switch name {
	case "sep":
		return j.sep, true
	case "used":
		return value.Bool(j.used), true
	}
	return nil, false
}

func (n *namespace) attribute(name string) (any, bool) { return n.vars.get(value.String(name)) }

func (n *namespace) text() string { return "<Namespace " + repr(n.vars) + ">" }

// newGlobals are the names that every template knows.
func (r *renderer) newGlobals() map[string]any {
	return map[string]any{
		"range": &function{name: "range", class: "range", call: makeRange},
		"dict": &function{name: "dict", class: "dict", call: func(args callArgs) any {
			d := newDict()
			fill(d, args)
			return d
		}},
		"cycler": &function{name: "cycler", class: "jinja2.utils.Cycler", call: func(args callArgs) any {
			if len(args.positional) == 0 {
				fail("RuntimeError", "at least one item has to be provided")
			}
			return &cycler{items: args.positional}
		}},
		"joiner": &function{name: "joiner", class: "jinja2.utils.Joiner", call: func(args callArgs) any {
			a := bind("joiner", 0, []string{"sep"}, args)
			if a[0] == nil {
				a[0] = value.String(", ")
			}
			return &joiner{sep: a[0]}
		}},
		"namespace": &function{name: "namespace", class: "jinja2.utils.Namespace", call: func(args callArgs) any {
			n := &namespace{vars: newDict()}
			fill(n.vars, args)
			return n
		}},
		"lipsum": &function{name: "lipsum", call: r.lipsum},
	}
}

func makeRange(args callArgs) any {
	if len(args.names) > 0 {
		typeError("range() takes no keyword arguments")
	}
	a := args.positional
	o := &rangeObject{step: 1}
	switch len(a) {
	case 1:
		o.stop = integer(a[0])
	case 2, 3:
		o.start, o.stop = integer(a[0]), integer(a[1])
		if len(a) == 3 {
			if o.step = integer(a[2]); o.step == 0 {
				valueError("range() arg 3 must not be zero")
			}
		}
	default:
		typeError("range expected at least 1 argument, got %d", len(a))
	}
	for _, n := range []int{o.start, o.stop, o.step} {
		if n > 1<<60 || n < -1<<60 {
			fail("OverflowError", "the numbers of the range are too large")
		}
	}
	return o
}

// fillerWords are what lipsum is made of.
var fillerWords = strings.Fields("alias amet ante arcu at augue bibendum blandit condimentum congue cras cubilia curae dapibus diam dictum dolor " +
	"eget elit enim erat est et eu felis fermentum fusce gravida hac id in ipsum justo lacus lectus leo lorem magna massa mauris metus mi morbi nec " +
	"neque nisi non nulla nunc odio orci pede porta quam quis risus rutrum sapien sed sem sit tellus tempor tortor turpis urna ut varius velit vitae")

// lipsum makes paragraphs of filler text. They are always the same for the same rendering.
func (r *renderer) lipsum(args callArgs) any {
	a := bind("lipsum", 0, []string{"n", "html", "min", "max"}, args)
	n, least, most := intArg(a[0], 5), intArg(a[2], 20), intArg(a[3], 100)
	html := a[1] == nil || truth(a[1])
	if n > 1000 || most > 10000 || least > most || least < 1 {
		valueError("lipsum makes at most 1000 paragraphs of at most 10000 words")
	}
	var paragraphs []string
	for range n {
		bytes := r.random(2 * most)
		count := least + int(bytes[0])%(most-least+1)
		words := make([]string, count)
		for i := range words {
			words[i] = fillerWords[(int(bytes[2*i])<<8|int(bytes[2*i+1]))%len(fillerWords)]
		}
		p := value.Capitalize(strings.Join(words, " ")) + "."
		if html {
			p = "<p>" + p + "</p>"
		}
		paragraphs = append(paragraphs, p)
	}
	if html {
		return markup(strings.Join(paragraphs, "\n"))
	}
	return value.String(strings.Join(paragraphs, "\n\n"))
}
