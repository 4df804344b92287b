package template

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// filter is a built-in filter. The arguments after the value are bound to params, unless variadic is set.
type filter struct {
	least    int
	params   []string
	variadic bool
	call     func(c *filterCall, v any, a []any, raw callArgs) any
}

// filterCall is what a filter may use of the rendering.
type filterCall struct {
	r    *renderer
	s    *scope
	name string
}

// simple makes a filter without arguments.
func simple(f func(c *filterCall, v any) any) filter {
	return filter{call: func(c *filterCall, v any, _ []any, _ callArgs) any { return f(c, v) }}
}

// withArgs makes a filter with arguments.
func withArgs(least int, params string, f func(c *filterCall, v any, a []any) any) filter {
	return filter{least: least, params: strings.Fields(params), call: func(c *filterCall, v any, a []any, _ callArgs) any { return f(c, v, a) }}
}

// variadic makes a filter that takes its arguments as they come.
func variadic(f func(c *filterCall, v any, args callArgs) any) filter {
	return filter{variadic: true, call: func(c *filterCall, v any, _ []any, raw callArgs) any { return f(c, v, raw) }}
}

// softText is the text of v; markup stays markup.
func softText(v any, out func(string) string) any {
	s := out(text(v))
	if _, safe := v.(markup); safe {
		return markup(s)
	}
	return value.String(s)
}

// builtinFilters are the filters of Jinja2.
func builtinFilters() map[string]filter {
	count := simple(func(_ *filterCall, v any) any {
		n, ok := length(v)
		if !ok {
			typeError("object of type '%s' has no len()", typeName(v))
		}
		return value.Int(n)
	})
	def := withArgs(0, "default_value boolean", func(_ *filterCall, v any, a []any) any {
		_, missing := v.(*undefined)
		if missing || a[1] != nil && truth(a[1]) && !truth(v) {
			if a[0] == nil {
				return value.String("")
			}
			return a[0]
		}
		return v
	})
	esc := simple(func(_ *filterCall, v any) any { return escape(v) })
	return map[string]filter{
		"abs": simple(func(_ *filterCall, v any) any {
			n, ok := number(v)
			if !ok {
				typeError("bad operand type for abs(): '%s'", typeName(v))
			}
			if f, ok := n.(value.Float); ok {
				return value.Float(math.Abs(float64(f)))
			}
			i, _ := bigOf(n)
			return value.NewInt(new(big.Int).Abs(i))
		}),
		"attr": withArgs(1, "name", func(c *filterCall, v any, a []any) any {
			if x, ok := c.r.attribute(v, text(a[0])); ok {
				return x
			}
			if _, ok := v.(value.Instance); ok {
				return c.r.getAttribute(v, text(a[0]))
			}
			return c.r.undefined(v, value.String(text(a[0])))
		}),
		"batch":      withArgs(1, "linecount fill_with", batch),
		"capitalize": simple(func(_ *filterCall, v any) any { return softText(v, value.Capitalize) }),
		"center": withArgs(0, "width", func(_ *filterCall, v any, a []any) any {
			return softText(v, func(s string) string { return pad(s, intArg(a[0], 80), " ", true, true) })
		}),
		"count":          count,
		"length":         count,
		"d":              def,
		"default":        def,
		"dictsort":       withArgs(0, "case_sensitive by reverse", dictSort),
		"e":              esc,
		"escape":         esc,
		"forceescape":    simple(func(_ *filterCall, v any) any { return markup(escapeText(text(v))) }),
		"filesizeformat": withArgs(0, "binary", fileSize),
		"first": simple(func(c *filterCall, v any) any {
			next, ok := each(v)
			if !ok {
				typeError("'%s' object is not iterable", typeName(v))
			}
			if x, ok := next(); ok {
				return x
			}
			return &undefined{strict: c.r.strict, hint: "No first item, sequence was empty."}
		}),
		"last": simple(func(c *filterCall, v any) any {
			items := itemsOf(v)
			if len(items) == 0 {
				return &undefined{strict: c.r.strict, hint: "No last item, sequence was empty."}
			}
			return items[len(items)-1]
		}),
		"float": withArgs(0, "default", func(_ *filterCall, v any, a []any) any {
			if f, ok := toFloat(v); ok {
				return f
			}
			if a[0] == nil {
				return value.Float(0)
			}
			return a[0]
		}),
		"int": withArgs(0, "default base", toInt),
		"format": variadic(func(_ *filterCall, v any, args callArgs) any {
			if len(args.positional) > 0 && len(args.names) > 0 {
				fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
			}
			if len(args.names) > 0 {
				d := newDict()
				fill(d, callArgs{names: args.names, named: args.named})
				return percent(v, text(v), d)
			}
			return percent(v, text(v), &tuple{args.positional})
		}),
		"groupby": withArgs(1, "attribute default case_sensitive", groupBy),
		"indent":  withArgs(0, "width first blank", indent),
		"items": simple(func(_ *filterCall, v any) any {
			if _, ok := v.(*undefined); ok {
				return generator("do_items", nil)
			}
			if !isDict(v) {
				typeError("Can only get item pairs from a mapping.")
			}
			return generator("do_items", pairs(v))
		}),
		"join":  withArgs(0, "d attribute", join),
		"list":  simple(func(_ *filterCall, v any) any { return &list{itemsOf(v)} }),
		"lower": simple(func(_ *filterCall, v any) any { return softText(v, value.Lower) }),
		"upper": simple(func(_ *filterCall, v any) any { return softText(v, value.Upper) }),
		"title": simple(func(_ *filterCall, v any) any { return value.String(titleWords(text(v))) }),
		"map":   variadic(mapFilter),
		"max":   withArgs(0, "case_sensitive attribute", func(c *filterCall, v any, a []any) any { return extreme(c, v, a, true) }),
		"min":   withArgs(0, "case_sensitive attribute", func(c *filterCall, v any, a []any) any { return extreme(c, v, a, false) }),
		"pprint": simple(func(_ *filterCall, v any) any {
			return value.String(prettyPrint(v))
		}),
		"random": simple(func(c *filterCall, v any) any {
			n, ok := length(v)
			if !ok {
				typeError("object of type '%s' has no len()", typeName(v))
			}
			if n == 0 {
				return &undefined{strict: c.r.strict, hint: "No random item, sequence was empty."}
			}
			b := c.r.random(4)
			i := (int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])) % n
			return c.r.getItem(v, value.Int(i))
		}),
		"reject":     variadic(func(c *filterCall, v any, args callArgs) any { return choose(c, v, args, false, false) }),
		"rejectattr": variadic(func(c *filterCall, v any, args callArgs) any { return choose(c, v, args, false, true) }),
		"select":     variadic(func(c *filterCall, v any, args callArgs) any { return choose(c, v, args, true, false) }),
		"selectattr": variadic(func(c *filterCall, v any, args callArgs) any { return choose(c, v, args, true, true) }),
		"replace": withArgs(2, "old new count", func(c *filterCall, v any, a []any) any {
			if !c.s.escapes {
				return value.String(replaceText(text(v), text(a[0]), text(a[1]), intArg(a[2], -1)))
			}
			_, safeOld := a[0].(markup)
			_, safeNew := a[1].(markup)
			if _, safe := v.(markup); safeOld || safeNew && !safe {
				v = escape(v)
			}
			if s, safe := v.(markup); safe {
				return markup(replaceText(string(s), string(escape(a[0])), string(escape(a[1])), intArg(a[2], -1)))
			}
			return value.String(replaceText(text(v), text(a[0]), text(a[1]), intArg(a[2], -1)))
		}),
		"reverse": simple(reverse),
		"round":   withArgs(0, "precision method", round),
		"safe":    simple(func(_ *filterCall, v any) any { return markup(text(v)) }),
		"slice":   withArgs(1, "slices fill_with", sliceFilter),
		"sort": withArgs(0, "reverse case_sensitive attribute", func(c *filterCall, v any, a []any) any {
			items := itemsOf(v)
			keys := make([]any, len(items))
			for i, item := range items {
				keys[i] = multiKey(c, item, a[2], a[1] != nil && truth(a[1]))
			}
			return &list{sortBy(items, keys, a[0] != nil && truth(a[0]))}
		}),
		"string": simple(func(_ *filterCall, v any) any {
			if _, ok := asString(v); ok {
				return v
			}
			return value.String(text(v))
		}),
		"striptags": simple(func(_ *filterCall, v any) any { return value.String(stripTags(text(v))) }),
		"sum": withArgs(0, "attribute start", func(c *filterCall, v any, a []any) any {
			var total any = value.Int(0)
			if a[1] != nil {
				total = a[1]
			}
			if _, ok := asString(total); ok {
				typeError("sum() can't sum strings [use ''.join(seq) instead]")
			}
			for _, item := range itemsOf(v) {
				if !isNone(a[0]) {
					item = attributePath(c, item, a[0], nil)
				}
				total = operate("+", total, item)
			}
			return total
		}),
		"tojson": withArgs(0, "indent", toJSON),
		"trim": withArgs(0, "chars", func(_ *filterCall, v any, a []any) any {
			return softText(v, func(s string) string {
				if isNone(a[0]) {
					return strings.TrimFunc(s, value.IsSpace)
				}
				return strings.Trim(s, stringArg(a[0]))
			})
		}),
		"truncate":  withArgs(0, "length killwords end leeway", truncate),
		"unique":    withArgs(0, "case_sensitive attribute", unique),
		"urlencode": simple(urlEncode),
		"urlize":    withArgs(0, "trim_url_limit nofollow target rel extra_schemes", urlize),
		"wordcount": simple(func(_ *filterCall, v any) any {
			return value.Int(len(strings.FieldsFunc(text(v), func(r rune) bool { return !isWord(r) })))
		}),
		"wordwrap": withArgs(0, "width break_long_words wrapstring break_on_hyphens", wordWrap),
		"xmlattr":  withArgs(0, "autospace", xmlAttr),
	}
}

// generator makes an iterator over items that prints as a generator of that name.
func generator(name string, items []any) *iterator {
	i := 0
	return &iterator{shown: "generator object " + name, next: func() (any, bool) {
		if i >= len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}}
}

func fillRow(row []any, size int, with any) []any {
	if !isNone(with) && len(row) < size {
		for len(row) < size {
			row = append(row, with)
		}
	}
	return row
}

func batch(_ *filterCall, v any, a []any) any {
	size := integer(a[0])
	if size > maxItems {
		fail("MemoryError", "the sequence is too long")
	}
	var rows []any
	var row []any
	for _, item := range itemsOf(v) {
		if len(row) == size {
			rows = append(rows, &list{row})
			row = nil
		}
		row = append(row, item)
	}
	if len(row) > 0 {
		rows = append(rows, &list{fillRow(row, size, a[1])})
	}
	return generator("do_batch", rows)
}

func sliceFilter(_ *filterCall, v any, a []any) any {
	items := itemsOf(v)
	n := integer(a[0])
	if n == 0 {
		fail("ZeroDivisionError", "integer division or modulo by zero")
	}
	if n < 0 || n > maxItems {
		return generator("sync_do_slice", nil)
	}
	size, extra := len(items)/n, len(items)%n
	var rows []any
	at := 0
	for i := range n {
		end := at + size
		if i < extra {
			end++
		}
		row := slices.Clone(items[at:end])
		if !isNone(a[1]) && i >= extra && extra > 0 {
			row = append(row, a[1])
		} else if !isNone(a[1]) && extra == 0 {
			row = append(row, a[1])
		}
		rows = append(rows, &list{row})
		at = end
	}
	return generator("sync_do_slice", rows)
}

// lowered is v in lower case if it is text.
func lowered(v any) any {
	if s, ok := asString(v); ok {
		return value.String(value.Lower(s))
	}
	return v
}

// attributePath follows a dotted name or an index from v. def stands in for what is undefined, unless it is nil.
func attributePath(c *filterCall, v, path any, def any) any {
	follow := func(key any) {
		v = c.r.getItem(v, key)
		if _, missing := v.(*undefined); missing && def != nil {
			v = def
		}
	}
	s, ok := asString(path)
	if !ok {
		if !isNone(path) {
			follow(path)
		}
		return v
	}
	for part := range strings.SplitSeq(s, ".") {
		if n, ok := value.ParseInt(part, 10); ok && strings.Trim(part, "0123456789") == "" {
			follow(n)
		} else {
			follow(value.String(part))
		}
	}
	return v
}

// multiKey is the sort key of item: the values of the attributes that path lists.
func multiKey(c *filterCall, item, path any, caseSensitive bool) any {
	paths := []any{path}
	if s, ok := asString(path); ok {
		paths = nil
		for p := range strings.SplitSeq(s, ",") {
			paths = append(paths, value.String(p))
		}
	}
	keys := make([]any, len(paths))
	for i, p := range paths {
		keys[i] = attributePath(c, item, p, nil)
		if !caseSensitive {
			keys[i] = lowered(keys[i])
		}
	}
	return &list{keys}
}

func dictSort(_ *filterCall, v any, a []any) any {
	order := "key"
	if a[1] != nil {
		order = text(a[1])
	}
	if order != "key" && order != "value" {
		fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"")
	}
	keys, vals, ok := entries(v)
	if !ok {
		if u, undef := v.(*undefined); undef {
			u.fail()
		}
		fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	by := keys
	if order == "value" {
		by = vals
	}
	sortKeys := make([]any, len(by))
	for i, k := range by {
		sortKeys[i] = k
		if a[0] == nil || !truth(a[0]) {
			sortKeys[i] = lowered(k)
		}
	}
	return &list{sortBy(pairs(v), sortKeys, a[2] != nil && truth(a[2]))}
}

// group is a group of groupby.
type group struct {
	grouper any
	list    *list
}

func (g *group) attribute(name string) (any, bool) {
	switch name {
	case "grouper":
		return g.grouper, true
	case "list":
		return g.list, true
	}
	return sequenceMethod([]any{g.grouper, g.list}, name)
}

func groupBy(c *filterCall, v any, a []any) any {
	items := itemsOf(v)
	sensitive := a[2] != nil && truth(a[2])
	raw := make([]any, len(items))
	keys := make([]any, len(items))
	order := make([]any, len(items))
	for i, item := range items {
		raw[i] = attributePath(c, item, a[0], a[1])
		keys[i] = raw[i]
		if !sensitive {
			keys[i] = lowered(raw[i])
		}
		order[i] = value.Int(i)
	}
	out := &list{}
	var last any
	for _, o := range sortBy(order, keys, false) {
		i := int(o.(value.Int))
		if n := len(out.items); n > 0 && equal(last, keys[i]) {
			g := out.items[n-1].(*group)
			g.list.items = append(g.list.items, items[i])
			continue
		}
		last = keys[i]
		out.items = append(out.items, &group{grouper: raw[i], list: &list{[]any{items[i]}}})
	}
	return out
}

func indent(_ *filterCall, v any, a []any) any {
	prefix := strings.Repeat(" ", 4)
	if a[0] != nil {
		if s, ok := asString(a[0]); ok {
			prefix = s
		} else if n := integer(a[0]); n <= maxText {
			prefix = strings.Repeat(" ", max(n, 0))
		} else {
			fail("MemoryError", "the text is too long")
		}
	}
	if _, ok := asString(v); !ok {
		if u, undef := v.(*undefined); undef {
			u.fail()
		}
		if _, ok := v.(*list); ok {
			fail("AttributeError", "'list' object has no attribute 'splitlines'")
		}
		typeError("unsupported operand type(s) for +=: '%s' and 'str'", typeName(v))
	}
	first, blank := a[1] != nil && truth(a[1]), a[2] != nil && truth(a[2])
	return softText(v, func(s string) string {
		s += "\n"
		var out string
		if blank {
			out = strings.Join(splitLines(s, false), "\n"+prefix)
		} else {
			lines := splitLines(s, false)
			out = lines[0]
			for _, l := range lines[1:] {
				out += "\n"
				if l != "" {
					out += prefix + l
				}
				if len(out) > maxText {
					fail("MemoryError", "the text is too long")
				}
			}
		}
		if first {
			out = prefix + out
		}
		return out
	})
}

func join(c *filterCall, v any, a []any) any {
	var sep any = value.String("")
	if a[0] != nil {
		sep = a[0]
	}
	items := itemsOf(v)
	if !isNone(a[1]) {
		for i, item := range items {
			items[i] = attributePath(c, item, a[1], nil)
		}
	}
	parts := make([]string, len(items))
	total := 0
	safe := false
	if c.s.escapes {
		_, safe = sep.(markup)
		for _, item := range items {
			if _, ok := item.(markup); ok {
				safe = true
			}
		}
	}
	for i, item := range items {
		if safe {
			parts[i] = string(escape(item))
		} else {
			parts[i] = text(item)
		}
		if total += len(parts[i]); total > maxText {
			fail("MemoryError", "the text is too long")
		}
	}
	if safe {
		return markup(strings.Join(parts, string(escape(sep))))
	}
	return value.String(strings.Join(parts, text(sep)))
}

// titleWords starts each word in upper case; words end at white space, hyphens and opening brackets.
func titleWords(s string) string {
	var b, word strings.Builder
	flush := func() {
		if w := []rune(word.String()); len(w) > 0 {
			b.WriteString(value.Upper(string(w[:1])) + value.Lower(string(w[1:])))
		}
		word.Reset()
	}
	for _, r := range s {
		if value.IsSpace(r) || strings.ContainsRune("-({[<", r) {
			flush()
			b.WriteRune(r)
		} else {
			word.WriteRune(r)
		}
	}
	flush()
	return b.String()
}

// lazily makes a generator that calls f for the items of v when they are asked for.
func lazily(name string, v any, f func(item any) (any, bool)) any {
	if !truth(v) {
		return generator(name, nil)
	}
	next, ok := each(v)
	if !ok {
		typeError("'%s' object is not iterable", typeName(v))
	}
	return &iterator{shown: "generator object " + name, next: func() (any, bool) {
		for {
			item, ok := next()
			if !ok {
				return nil, false
			}
			if out, ok := f(item); ok {
				return out, true
			}
		}
	}}
}

func mapFilter(c *filterCall, v any, args callArgs) any {
	if path, ok := args.keyword("attribute"); ok && len(args.positional) == 0 {
		def, _ := args.keyword("default")
		if len(args.names) > 0 {
			fail("FilterArgumentError", "Unexpected keyword argument %s", value.StringRepr(args.names[0]))
		}
		return lazily("sync_do_map", v, func(item any) (any, bool) { return attributePath(c, item, path, def), true })
	}
	if len(args.positional) == 0 {
		fail("FilterArgumentError", "map requires a filter argument")
	}
	name := stringArg(args.positional[0])
	args.positional = args.positional[1:]
	return lazily("sync_do_map", v, func(item any) (any, bool) { return c.r.applyFilter(c.s, name, item, args), true })
}

// choose is select, reject, selectattr and rejectattr.
func choose(c *filterCall, v any, args callArgs, want, byAttribute bool) any {
	get := func(item any) any { return item }
	rest := args.positional
	if byAttribute {
		if len(rest) == 0 {
			fail("FilterArgumentError", "Missing parameter for attribute name")
		}
		path := rest[0]
		rest = rest[1:]
		get = func(item any) any { return attributePath(c, item, path, nil) }
	}
	holds := truth
	if len(rest) > 0 {
		name := stringArg(rest[0])
		args.positional = rest[1:]
		holds = func(item any) bool { return c.r.test(c.s, name, item, args) }
	}
	return lazily("select_or_reject", v, func(item any) (any, bool) { return item, holds(get(item)) == want })
}

func extreme(c *filterCall, v any, a []any, largest bool) any {
	items := itemsOf(v)
	if len(items) == 0 {
		return &undefined{strict: c.r.strict, hint: "No aggregated item, sequence was empty."}
	}
	key := func(item any) any {
		item = attributePath(c, item, a[1], nil)
		if a[0] == nil || !truth(a[0]) {
			item = lowered(item)
		}
		return item
	}
	best, bestKey := items[0], key(items[0])
	for _, item := range items[1:] {
		k := key(item)
		if largest && lessOf(bestKey, k, k, bestKey, ">") || !largest && less(k, bestKey, "<") {
			best, bestKey = item, k
		}
	}
	return best
}

func reverse(_ *filterCall, v any) any {
	if s, ok := asString(v); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		if _, safe := v.(markup); safe {
			return markup(runes)
		}
		return value.String(runes)
	}
	if _, ok := each(v); !ok {
		fail("FilterArgumentError", "argument must be iterable")
	}
	items := slices.Clone(itemsOf(v))
	slices.Reverse(items)
	it := generator("", items)
	it.shown = "list_reverseiterator object"
	return it
}

func unique(c *filterCall, v any, a []any) any {
	seen := map[string]bool{}
	var out []any
	for _, item := range itemsOf(v) {
		key := attributePath(c, item, a[1], nil)
		if a[0] == nil || !truth(a[0]) {
			key = lowered(key)
		}
		if h := hashKey(key); !seen[h] {
			seen[h] = true
			out = append(out, item)
		}
	}
	return generator("do_unique", out)
}

func toJSON(_ *filterCall, v any, a []any) any {
	style := value.PythonJSON
	style.SortKeys = true
	if !isNone(a[0]) {
		style.Pretty, style.Indent = true, min(max(integer(a[0]), 0), 100)
	}
	plain, err := toValue(v)
	if err != nil {
		fail("TypeError", "%s", err)
	}
	b, err := value.AppendJSON(nil, plain, style)
	if err != nil {
		if _, ok := errors.AsType[*value.UnknownError](err); ok {
			throw(err)
		}
		fail("TypeError", "%s", err)
	}
	return markup(strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(string(b)))
}
