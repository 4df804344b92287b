package template

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/intendant/intendant/lang/value"
)

// method makes a function with at least min and at most max positional arguments, which may also be given by name.
func method(name string, least int, params []string, f func(a []any) any) *function {
	return &function{name: name, call: func(args callArgs) any {
		return f(bind(name, least, params, args))
	}}
}

// bind puts the arguments of a call in the order of params; those left out are nil.
func bind(name string, least int, params []string, args callArgs) []any {
	if len(args.positional) > len(params) {
		typeError("%s() takes at most %d arguments (%d given)", name, len(params), len(args.positional))
	}
	out := make([]any, len(params))
	copy(out, args.positional)
	for i, n := range args.names {
		at := slices.Index(params, n)
		if at < 0 {
			typeError("%s() got an unexpected keyword argument '%s'", name, n)
		}
		if out[at] != nil {
			typeError("%s() got multiple values for argument '%s'", name, n)
		}
		out[at] = args.named[i]
	}
	for i, p := range params[:least] {
		if out[i] == nil {
			typeError("%s() missing required argument '%s'", name, p)
		}
	}
	return out
}

// stringArg reads a text argument.
func stringArg(v any) string {
	s, ok := asString(v)
	if !ok {
		if u, undef := v.(*undefined); undef {
			u.fail()
		}
		typeError("must be str, not %s", typeName(v))
	}
	return s
}

// intArg reads an optional integer argument.
func intArg(v any, missing int) int {
	if v == nil {
		return missing
	}
	if _, none := v.(value.Null); none {
		return missing
	}
	return integer(v)
}

func isNone(v any) bool {
	_, none := v.(value.Null)
	return v == nil || none
}

// textMethod finds a method of a text. The methods of markup escape their arguments and give markup.
func textMethod(s string, safe bool, name string) (any, bool) {
	wrap := func(out string) any {
		if len(out) > maxText {
			fail("MemoryError", "the text is too long")
		}
		if safe {
			return markup(out)
		}
		return value.String(out)
	}
	arg := func(v any) string {
		if safe {
			if _, ok := asString(v); ok {
				return string(escape(v))
			}
		}
		return stringArg(v)
	}
	wrapAll := func(parts []string) any {
		out := &list{items: make([]any, len(parts))}
		for i, p := range parts {
			out.items[i] = wrap(p)
		}
		return out
	}
	plain := func(f func() any) any { return method(name, 0, nil, func([]any) any { return f() }) }
	strip := func(left, right bool) any {
		return method(name, 0, []string{"chars"}, func(a []any) any {
			in := value.IsSpace
			if !isNone(a[0]) {
				chars := stringArg(a[0])
				in = func(r rune) bool { return strings.ContainsRune(chars, r) }
			}
			out := s
			if left {
				out = strings.TrimLeftFunc(out, in)
			}
			if right {
				out = strings.TrimRightFunc(out, in)
			}
			return wrap(out)
		})
	}
	justify := func(left, right bool) any {
		return method(name, 1, []string{"width", "fillchar"}, func(a []any) any {
			fill := " "
			if a[1] != nil {
				if fill = stringArg(a[1]); len([]rune(fill)) != 1 {
					typeError("The fill character must be exactly one character long")
				}
			}
			return wrap(pad(s, integer(a[0]), fill, left, right))
		})
	}
	find := func(last bool, missing func() any) any {
		return method(name, 1, []string{"sub", "start", "end"}, func(a []any) any {
			if i := indexIn([]rune(s), []rune(stringArg(a[0])), a[1], a[2], last); i >= 0 {
				return value.Int(i)
			}
			return missing()
		})
	}
	affix := func(match func(s, affix string) bool) any {
		return method(name, 1, []string{"prefix", "start", "end"}, func(a []any) any {
			part := string(runesBetween([]rune(s), a[1], a[2]))
			if t, ok := a[0].(*tuple); ok {
				return value.Bool(slices.ContainsFunc(t.items, func(v any) bool { return match(part, stringArg(v)) }))
			}
			return value.Bool(match(part, stringArg(a[0])))
		})
	}
	every := func(in func(rune) bool) any {
		return plain(func() any {
			return value.Bool(s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !in(r) }))
		})
	}
	switch name {
	case "upper":
		return plain(func() any { return wrap(value.Upper(s)) }), true
	case "lower", "casefold":
		return plain(func() any { return wrap(value.Lower(s)) }), true
	case "title":
		return plain(func() any { return wrap(value.Title(s)) }), true
	case "capitalize":
		return plain(func() any { return wrap(value.Capitalize(s)) }), true
	case "swapcase":
		return plain(func() any { return wrap(swapCase(s)) }), true
	case "strip":
		return strip(true, true), true
	case "lstrip":
		return strip(true, false), true
	case "rstrip":
		return strip(false, true), true
	case "ljust":
		return justify(false, true), true
	case "rjust":
		return justify(true, false), true
	case "center":
		return justify(true, true), true
	case "zfill":
		return method(name, 1, []string{"width"}, func(a []any) any {
			sign, digits := "", s
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, digits = s[:1], s[1:]
			}
			return wrap(sign + pad(digits, integer(a[0])-len(sign), "0", true, false))
		}), true
	case "split", "rsplit":
		return method(name, 0, []string{"sep", "maxsplit"}, func(a []any) any {
			sep := ""
			if !isNone(a[0]) {
				if sep = stringArg(a[0]); sep == "" {
					valueError("empty separator")
				}
			}
			return wrapAll(splitText(s, sep, intArg(a[1], -1), name == "rsplit"))
		}), true
	case "splitlines":
		return method(name, 0, []string{"keepends"}, func(a []any) any { return wrapAll(splitLines(s, a[0] != nil && truth(a[0]))) }), true
	case "partition", "rpartition":
		return method(name, 1, []string{"sep"}, func(a []any) any {
			sep := stringArg(a[0])
			if sep == "" {
				valueError("empty separator")
			}
			i := strings.Index(s, sep)
			parts := []string{s, "", ""}
			if name == "rpartition" {
				i = strings.LastIndex(s, sep)
				parts = []string{"", "", s}
			}
			if i >= 0 {
				parts = []string{s[:i], sep, s[i+len(sep):]}
			}
			return &tuple{wrapAll(parts).(*list).items}
		}), true
	case "replace":
		return method(name, 2, []string{"old", "new", "count"}, func(a []any) any {
			old, with := arg(a[0]), arg(a[1])
			return wrap(replaceText(s, old, with, intArg(a[2], -1)))
		}), true
	case "startswith":
		return affix(strings.HasPrefix), true
	case "endswith":
		return affix(strings.HasSuffix), true
	case "removeprefix":
		return method(name, 1, []string{"prefix"}, func(a []any) any { return wrap(strings.TrimPrefix(s, stringArg(a[0]))) }), true
	case "removesuffix":
		return method(name, 1, []string{"suffix"}, func(a []any) any { return wrap(strings.TrimSuffix(s, stringArg(a[0]))) }), true
	case "find":
		return find(false, func() any { return value.Int(-1) }), true
	case "rfind":
		return find(true, func() any { return value.Int(-1) }), true
	case "index":
		return find(false, func() any { valueError("substring not found"); return nil }), true
	case "rindex":
		return find(true, func() any { valueError("substring not found"); return nil }), true
	case "count":
		return method(name, 1, []string{"sub", "start", "end"}, func(a []any) any {
			return value.Int(strings.Count(string(runesBetween([]rune(s), a[1], a[2])), stringArg(a[0])))
		}), true
	case "join":
		return method(name, 1, []string{"iterable"}, func(a []any) any {
			var parts []string
			for i, item := range itemsOf(a[0]) {
				if _, ok := asString(item); !ok && !safe {
					typeError("sequence item %d: expected str instance, %s found", i, typeName(item))
				}
				if safe {
					parts = append(parts, string(escape(item)))
				} else {
					parts = append(parts, stringArg(item))
				}
			}
			return wrap(strings.Join(parts, s))
		}), true
	case "format":
		return &function{name: name, call: func(args callArgs) any { return wrap(formatText(s, args, safe)) }}, true
	case "format_map":
		return method(name, 1, []string{"mapping"}, func(a []any) any {
			var args callArgs
			keys, vals, _ := entries(a[0])
			for i, k := range keys {
				args.names = append(args.names, text(k))
				args.named = append(args.named, vals[i])
			}
			return wrap(formatText(s, args, safe))
		}), true
	case "expandtabs":
		return method(name, 0, []string{"tabsize"}, func(a []any) any { return wrap(expandTabs(s, intArg(a[0], 8))) }), true
	case "isdigit", "isdecimal":
		return every(func(r rune) bool {
			return unicode.Is(unicode.Nd, r) || name == "isdigit" && strings.ContainsRune("²³¹", r)
		}), true
	case "isnumeric":
		return every(unicode.IsNumber), true
	case "isalpha":
		return every(unicode.IsLetter), true
	case "isalnum":
		return every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }), true
	case "isspace":
		return every(value.IsSpace), true
	case "isascii":
		return plain(func() any { return value.Bool(!strings.ContainsFunc(s, func(r rune) bool { return r > 127 })) }), true
	case "isupper":
		return plain(func() any { return value.Bool(isCased(s, unicode.IsUpper)) }), true
	case "islower":
		return plain(func() any { return value.Bool(isCased(s, unicode.IsLower)) }), true
	case "istitle":
		return plain(func() any { return value.Bool(s == value.Title(s) && strings.ContainsFunc(s, unicode.IsLetter)) }), true
	case "isidentifier":
		return plain(func() any {
			return value.Bool(s != "" && nameLength(s) == len(s) && (s[0] < '0' || s[0] > '9'))
		}), true
	}
	if safe {
		switch name {
		case "unescape":
			return plain(func() any { return value.String(unescapeHTML(s)) }), true
		case "striptags":
			return plain(func() any { return value.String(stripTags(s)) }), true
		}
	}
	return nil, false
}

// isCased reports whether all letters with case satisfy in, and there is one.
func isCased(s string, in func(rune) bool) bool {
	found := false
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) {
			if !in(r) {
				return false
			}
			found = true
		}
	}
	return found
}

func swapCase(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteString(value.Lower(string(r)))
		} else {
			b.WriteString(value.Upper(string(r)))
		}
	}
	return b.String()
}

// pad fills s up to width characters, on the left, on the right or on both sides as str.center does.
func pad(s string, width int, fill string, left, right bool) string {
	missing := width - len([]rune(s))
	if missing <= 0 {
		return s
	}
	if missing > maxText {
		fail("MemoryError", "the text is too long")
	}
	before := 0
	switch {
	case left && right:
		before = missing/2 + (missing & width & 1)
	case left:
		before = missing
	}
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, missing-before)
}

// runesBetween applies the start and end arguments of text methods.
func runesBetween(s []rune, start, end any) []rune {
	from, to := span(len(s), start, end)
	return s[from:to]
}

func span(n int, start, end any) (from, to int) {
	from, to = intArg(start, 0), intArg(end, n)
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to = max(0, to+n)
	}
	to = min(to, n)
	return min(from, to), to
}

func indexIn(s, sub []rune, start, end any, last bool) int {
	if intArg(start, 0) > len(s) {
		return -1
	}
	from, to := span(len(s), start, end)
	if last {
		for i := to - len(sub); i >= from; i-- {
			if slices.Equal(s[i:i+len(sub)], sub) {
				return i
			}
		}
		return -1
	}
	for i := from; i+len(sub) <= to; i++ {
		if slices.Equal(s[i:i+len(sub)], sub) {
			return i
		}
	}
	return -1
}

func replaceText(s, old, with string, count int) string {
	found := strings.Count(s, old)
	if count >= 0 {
		found = min(found, count)
	}
	if found > 0 && len(with) > 0 && found > maxText/len(with) {
		fail("MemoryError", "the text is too long")
	}
	return strings.Replace(s, old, with, count)
}

// splitText is str.split and, with fromRight, str.rsplit. An empty sep splits at white space.
func splitText(s, sep string, limit int, fromRight bool) []string {
	if sep == "" {
		return splitSpace(s, limit, fromRight)
	}
	parts := strings.Split(s, sep)
	if limit < 0 || len(parts) <= limit+1 {
		return parts
	}
	if fromRight {
		cut := len(parts) - limit
		return append([]string{strings.Join(parts[:cut], sep)}, parts[cut:]...)
	}
	return append(slices.Clone(parts[:limit]), strings.Join(parts[limit:], sep))
}

func splitSpace(s string, limit int, fromRight bool) []string {
	var parts []string
	if fromRight {
		rest := strings.TrimRightFunc(s, value.IsSpace)
		for rest != "" {
			i := strings.LastIndexFunc(rest, value.IsSpace)
			if limit >= 0 && len(parts) == limit || i < 0 {
				parts = append(parts, strings.TrimLeftFunc(rest, value.IsSpace))
				break
			}
			parts = append(parts, rest[i+len(string(firstRune(rest[i:]))):])
			rest = strings.TrimRightFunc(rest[:i], value.IsSpace)
		}
		if limit >= 0 && len(parts) == limit+1 {
			parts[limit] = strings.TrimRightFunc(s[:strings.LastIndex(s, parts[limit])+len(parts[limit])], value.IsSpace)
		}
		slices.Reverse(parts)
		return parts
	}
	rest := strings.TrimLeftFunc(s, value.IsSpace)
	for rest != "" {
		i := strings.IndexFunc(rest, value.IsSpace)
		if limit >= 0 && len(parts) == limit {
			return append(parts, rest)
		}
		if i < 0 {
			return append(parts, rest)
		}
		parts = append(parts, rest[:i])
		rest = strings.TrimLeftFunc(rest[i:], value.IsSpace)
	}
	return parts
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var out []string
	start := 0
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		if !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", runes[i]) {
			continue
		}
		end := i
		if runes[i] == '\r' && i+1 < len(runes) && runes[i+1] == '\n' {
			i++
		}
		if keep {
			end = i + 1
		}
		out = append(out, string(runes[start:end]))
		start = i + 1
	}
	if start < len(runes) {
		out = append(out, string(runes[start:]))
	}
	return out
}

func expandTabs(s string, size int) string {
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch r {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(strings.Repeat(" ", min(n, maxText)))
				column += n
			}
		case '\n', '\r':
			b.WriteRune(r)
			column = 0
		default:
			b.WriteRune(r)
			column++
		}
	}
	return b.String()
}

// listMethod finds a method of a list.
func listMethod(l *list, name string) (any, bool) {
	plain := func(f func() any) any { return method(name, 0, nil, func([]any) any { return f() }) }
	one := func(f func(v any) any) any {
		return method(name, 1, []string{"value"}, func(a []any) any { return f(a[0]) })
	}
	grow := func(v []any) {
		if len(l.items)+len(v) > maxItems {
			fail("MemoryError", "the list is too long")
		}
		l.items = append(l.items, v...)
	}
	switch name {
	case "append":
		return one(func(v any) any { grow([]any{v}); return value.Null{} }), true
	case "extend":
		return one(func(v any) any { grow(itemsOf(v)); return value.Null{} }), true
	case "insert":
		return method(name, 2, []string{"index", "value"}, func(a []any) any {
			i := integer(a[0])
			if i < 0 {
				i = max(0, i+len(l.items))
			}
			l.items = slices.Insert(l.items, min(i, len(l.items)), a[1])
			return value.Null{}
		}), true
	case "pop":
		return method(name, 0, []string{"index"}, func(a []any) any {
			i := intArg(a[0], -1)
			if len(l.items) == 0 {
				fail("IndexError", "pop from empty list")
			}
			if i < 0 {
				i += len(l.items)
			}
			if i < 0 || i >= len(l.items) {
				fail("IndexError", "pop index out of range")
			}
			v := l.items[i]
			l.items = slices.Delete(l.items, i, i+1)
			return v
		}), true
	case "remove":
		return one(func(v any) any {
			i := slices.IndexFunc(l.items, func(x any) bool { return equal(x, v) })
			if i < 0 {
				valueError("list.remove(x): x not in list")
			}
			l.items = slices.Delete(l.items, i, i+1)
			return value.Null{}
		}), true
	case "clear":
		return plain(func() any { l.items = nil; return value.Null{} }), true
	case "copy":
		return plain(func() any { return &list{slices.Clone(l.items)} }), true
	case "reverse":
		return plain(func() any { slices.Reverse(l.items); return value.Null{} }), true
	case "sort":
		return method(name, 0, []string{"reverse"}, func(a []any) any {
			l.items = sortBy(l.items, l.items, a[0] != nil && truth(a[0]))
			return value.Null{}
		}), true
	}
	return sequenceMethod(l.items, name)
}

// sequenceMethod finds a method that all sequences have.
func sequenceMethod(items []any, name string) (any, bool) {
	switch name {
	case "count":
		return method(name, 1, []string{"value"}, func(a []any) any {
			n := 0
			for _, x := range items {
				if equal(x, a[0]) {
					n++
				}
			}
			return value.Int(n)
		}), true
	case "index":
		return method(name, 1, []string{"value", "start", "stop"}, func(a []any) any {
			from, to := span(len(items), a[1], a[2])
			for i := from; i < to; i++ {
				if equal(items[i], a[0]) {
					return value.Int(i)
				}
			}
			valueError("%s is not in list", repr(a[0]))
			return nil
		}), true
	}
	return nil, false
}

// dictMethod finds a method of a dictionary.
func (r *renderer) dictMethod(d any, name string) (any, bool) {
	plain := func(f func() any) any { return method(name, 0, nil, func([]any) any { return f() }) }
	switch name {
	case "keys":
		return plain(func() any { keys, _, _ := entries(d); return &view{"dict_keys", slices.Clone(keys)} }), true
	case "values":
		return plain(func() any { _, vals, _ := entries(d); return &view{"dict_values", slices.Clone(vals)} }), true
	case "items":
		return plain(func() any { return &view{"dict_items", pairs(d)} }), true
	case "get":
		return method(name, 1, []string{"key", "default"}, func(a []any) any {
			if v, ok := lookupKey(d, a[0]); ok {
				return v
			}
			if a[1] == nil {
				return value.Null{}
			}
			return a[1]
		}), true
	}
	own, ok := d.(*dict)
	if !ok {
		return nil, false
	}
	switch name {
	case "pop":
		return method(name, 1, []string{"key", "default"}, func(a []any) any {
			v, ok := own.get(a[0])
			switch {
			case ok:
				own.remove(a[0])
				return v
			case a[1] != nil:
				return a[1]
			}
			fail("KeyError", "%s", repr(a[0]))
			return nil
		}), true
	case "popitem":
		return plain(func() any {
			if len(own.keys) == 0 {
				fail("KeyError", "'popitem(): dictionary is empty'")
			}
			last := len(own.keys) - 1
			t := &tuple{[]any{own.keys[last], own.vals[last]}}
			own.remove(own.keys[last])
			return t
		}), true
	case "setdefault":
		return method(name, 1, []string{"key", "default"}, func(a []any) any {
			if v, ok := own.get(a[0]); ok {
				return v
			}
			if a[1] == nil {
				a[1] = value.Null{}
			}
			own.set(a[0], a[1])
			return a[1]
		}), true
	case "update":
		return &function{name: name, call: func(args callArgs) any { fill(own, args); return value.Null{} }}, true
	case "copy":
		return plain(func() any { out := newDict(); fill(out, callArgs{positional: []any{own}}); return out }), true
	case "clear":
		return plain(func() any { own.keys, own.vals = nil, nil; clear(own.index); return value.Null{} }), true
	}
	return nil, false
}

// pairs gives the entries of a dictionary as tuples. In those of a dictionary of the model the values are plain ones, not views:
// tuples are none of the model's own values, and nobody looks into them.
func pairs(d any) []any {
	keys, vals, _ := entries(d)
	_, model := d.(*value.Dict)
	out := make([]any, len(keys))
	for i, k := range keys {
		v := vals[i]
		if inner, ok := v.(value.Value); ok && model {
			v = native(inner, bareNull{})
		}
		out[i] = &tuple{[]any{k, v}}
	}
	return out
}

// bareNull is null where it is not a view: it is neither none nor false.
type bareNull struct{}

func (bareNull) text() string { return "null" }

// fill puts the arguments of dict(...) or update(...) into a dictionary.
func fill(d *dict, args callArgs) {
	for _, src := range args.positional {
		if keys, vals, ok := entries(src); ok {
			for i, k := range keys {
				d.set(k, vals[i])
			}
			continue
		}
		for i, item := range itemsOf(src) {
			pair := itemsOf(item)
			if len(pair) != 2 {
				valueError("dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
			}
			d.set(pair[0], pair[1])
		}
	}
	for i, n := range args.names {
		d.set(value.String(n), args.named[i])
	}
}

// numberMethod finds an attribute or method of a number.
func numberMethod(v value.Value, name string) (any, bool) {
	f, isFloat := v.(value.Float)
	switch {
	case name == "is_integer":
		return method(name, 0, nil, func([]any) any { return value.Bool(!isFloat || math.Trunc(float64(f)) == float64(f)) }), true
	case name == "bit_length" && !isFloat:
		return method(name, 0, nil, func([]any) any { n, _ := bigOf(v); return value.Int(n.BitLen()) }), true
	case name == "real":
		return operate("+", v, value.Int(0)), true
	case name == "imag":
		if isFloat {
			return value.Float(0), true
		}
		return value.Int(0), true
	case name == "numerator" && !isFloat:
		return operate("+", v, value.Int(0)), true
	case name == "denominator" && !isFloat:
		return value.Int(1), true
	}
	return nil, false
}

// formatText is str.format with objects of a template.
func formatText(s string, args callArgs, safe bool) string {
	out, err := value.FormatText(s, func(name string, index int) (any, error) {
		if name == "" {
			if index >= len(args.positional) {
				return nil, value.IndexRange(index)
			}
			return args.positional[index], nil
		}
		for i, n := range args.names {
			if n == name {
				return args.named[i], nil
			}
		}
		return nil, &Error{Class: "KeyError", Message: value.StringRepr(name)}
	}, formatAttribute, func(v any, conv byte, spec string) (string, error) {
		return formatObject(v, conv, spec, safe)
	})
	if fault, ok := errors.AsType[*value.FormatError](err); ok {
		fail(fault.Class, "%s", fault.Message)
	}
	check(err)
	return out
}

// formatAttribute is a step of a field name in str.format: .name or [key].
func formatAttribute(v any, name string, item bool) (any, error) {
	r := &renderer{strict: true}
	var got any
	if item {
		var key any = value.String(name)
		if n, ok := value.ParseInt(name, 10); ok && !isDict(v) {
			key = n
		}
		got = r.getItem(v, key)
	} else {
		a, ok := r.attribute(v, name)
		if !ok {
			return nil, &Error{Class: "AttributeError", Message: value.StringRepr(typeName(v)) + " object has no attribute " + value.StringRepr(name)}
		}
		got = a
	}
	if u, ok := got.(*undefined); ok {
		return nil, &Error{Class: "KeyError", Message: repr(u.name)}
	}
	return got, nil
}

func formatObject(v any, conv byte, spec string, safe bool) (string, error) {
	switch conv {
	case 'r', 'a':
		out := value.String(repr(v))
		if conv == 'a' {
			return value.FormatSpec(value.String(value.StringASCII(string(out))), 0, spec)
		}
		v = out
	case 's':
		v = value.String(text(v))
	}
	n, isNumber := number(v)
	if isNumber && conv == 0 {
		return value.FormatSpec(n, 0, spec)
	}
	if _, ok := asString(v); !ok && spec != "" {
		return "", &value.FormatError{Message: "unsupported format string passed to " + typeName(v) + ".__format__", Class: "TypeError"}
	}
	shown := text(v)
	if safe {
		shown = string(escape(v))
	}
	return value.FormatSpec(value.String(shown), 0, spec)
}
