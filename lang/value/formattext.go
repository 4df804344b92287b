package value

import (
	"fmt"
	"strconv"
	"strings"
)

// FormatText is Python's text.format(...) over values of any kind V. argument finds an argument by name, or by index when name
// is empty; step follows an attribute or, with item, a key; show formats what was found. Faults of the text itself are
// [*FormatError]; errors of the functions are passed on.
func FormatText[V any](text string, argument func(name string, index int) (V, error), step func(v V, name string, item bool) (V, error),
	show func(v V, conv byte, spec string) (string, error),
) (string, error) {
	f := &textFormatter[V]{argument: argument, step: step, show: show}
	return f.run(text, 2)
}

type textFormatter[V any] struct {
	argument     func(name string, index int) (V, error)
	step         func(v V, name string, item bool) (V, error)
	show         func(v V, conv byte, spec string) (string, error)
	next         int
	manual, auto bool
}

func (f *textFormatter[V]) run(s string, depth int) (string, error) {
	if depth < 0 {
		return "", formatFault("Max string recursion exceeded")
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		c := s[i]
		if i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			s = s[i+2:]
			continue
		}
		if c == '}' {
			return "", formatFault("Single '}' encountered in format string")
		}
		if s[i+1:] == "" {
			return "", formatFault("Single '{' encountered in format string")
		}
		field, rest, ok := cutField(s[i+1:])
		if !ok {
			return "", formatFault("expected '}' before end of string")
		}
		one, err := f.field(field, depth)
		if err != nil {
			return "", err
		}
		b.WriteString(one)
		s = rest
	}
	return b.String(), nil
}

// cutField splits s at the brace that ends the field at its start. Braces within square brackets belong to the key.
func cutField(s string) (field, rest string, ok bool) {
	depth, bracket := 1, false
	for i := range len(s) {
		switch s[i] {
		case '[':
			bracket = strings.Contains(s[i:], "]")
		case ']':
			bracket = false
		case '{':
			if !bracket {
				depth++
			}
		case '}':
			if bracket {
				continue
			}
			if depth--; depth == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

// splitField splits a field into the name, the conversion (0 for none) and the specification.
func splitField(field string) (name string, conv byte, spec string, err error) {
	bracket := false
	for i := range len(field) {
		switch field[i] {
		case '[':
			bracket = true
		case ']':
			bracket = false
		}
		if bracket || field[i] != '!' && field[i] != ':' {
			continue
		}
		name, rest := field[:i], field[i:]
		if rest[0] == '!' {
			switch {
			case len(rest) < 2:
				return "", 0, "", formatFault("end of string while looking for conversion specifier")
			case len(rest) > 2 && rest[2] != ':':
				return "", 0, "", formatFault("expected ':' after conversion specifier")
			}
			conv, rest = rest[1], rest[2:]
		}
		return name, conv, strings.TrimPrefix(rest, ":"), nil
	}
	return field, 0, "", nil
}

func (f *textFormatter[V]) field(field string, depth int) (string, error) {
	name, conv, spec, err := splitField(field)
	if err != nil {
		return "", err
	}
	v, err := f.lookup(name)
	if err != nil {
		return "", err
	}
	switch conv {
	case 0, 'r', 's', 'a':
	default:
		return "", formatFault("Unknown conversion specifier %c", conv)
	}
	if strings.ContainsAny(spec, "{}") {
		if spec, err = f.run(spec, depth-1); err != nil {
			return "", err
		}
	}
	return f.show(v, conv, spec)
}

// lookup finds the value of a field name: an argument, then attributes and keys.
func (f *textFormatter[V]) lookup(name string) (V, error) {
	var none V
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := f.first(name[:end])
	if err != nil {
		return none, err
	}
	for rest := name[end:]; rest != ""; {
		from, item := 1, rest[0] == '['
		var stop int
		if item {
			stop = strings.IndexByte(rest, ']')
			if stop < 0 {
				return none, formatFault("Missing ']' in format string")
			}
		} else {
			if rest[0] != '.' {
				return none, formatFault("Only '.' or '[' may follow ']' in format field specifier")
			}
			if stop = strings.IndexAny(rest[1:], ".[") + 1; stop == 0 {
				stop = len(rest)
			}
		}
		if stop == from {
			return none, formatFault("Empty attribute in format string")
		}
		if v, err = f.step(v, rest[from:stop], item); err != nil {
			return none, err
		}
		if item {
			stop++
		}
		rest = rest[stop:]
	}
	return v, nil
}

// first finds the argument that a field name starts with.
func (f *textFormatter[V]) first(name string) (V, error) {
	var none V
	if name == "" {
		if f.manual {
			return none, formatFault("cannot switch from manual field specification to automatic field numbering")
		}
		f.auto = true
		f.next++
		return f.argument("", f.next-1)
	}
	for i := range len(name) {
		if !isDigit(name[i]) {
			return f.argument(name, 0)
		}
	}
	index, err := strconv.Atoi(name)
	if err != nil {
		return none, formatFault("Too many decimal digits in format string")
	}
	if f.auto {
		return none, formatFault("cannot switch from automatic field numbering to manual field specification")
	}
	f.manual = true
	return f.argument("", index)
}

// IndexRange is the error for a replacement field whose index has no argument.
func IndexRange(index int) error {
	return &FormatError{Message: fmt.Sprintf("Replacement index %d out of range for positional args tuple", index), Class: "IndexError"}
}
