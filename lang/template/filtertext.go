package template

import (
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lazyregexp"
)

// escape is v as text that needs no escaping.
func escape(v any) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	return markup(escapeText(text(v)))
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeText(s string) string { return htmlEscapes.Replace(s) }

func unescapeHTML(s string) string { return html.UnescapeString(s) }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// stripTags removes comments and tags, and joins what is left by single spaces.
func stripTags(s string) string {
	for {
		start := strings.Index(s, "<!--")
		if start < 0 {
			break
		}
		end := strings.Index(s[start:], "-->")
		if end < 0 {
			break
		}
		s = s[:start] + s[start+end+3:]
	}
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		end := strings.IndexByte(s[start:], '>')
		if end < 0 {
			break
		}
		s = s[:start] + s[start+end+1:]
	}
	return unescapeHTML(strings.Join(strings.FieldsFunc(s, value.IsSpace), " "))
}

func truncate(_ *filterCall, v any, a []any) any {
	size := intArg(a[0], 255)
	kill := a[1] != nil && truth(a[1])
	end := "..."
	if a[2] != nil {
		end = stringArg(a[2])
	}
	leeway := intArg(a[3], 5)
	ending := len([]rune(end))
	if size < ending {
		fail("AssertionError", "expected length >= %d, got %d", ending, size)
	}
	if leeway < 0 {
		fail("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	n, ok := length(v)
	if !ok {
		typeError("object of type '%s' has no len()", typeName(v))
	}
	if n <= size+leeway {
		return v
	}
	if _, ok := asString(v); !ok {
		if kill {
			typeError("can only concatenate %s (not \"str\") to %s", typeName(v), typeName(v))
		}
		fail("AttributeError", "'%s' object has no attribute 'rsplit'", typeName(v))
	}
	return softText(v, func(s string) string {
		runes := []rune(s)
		cut := string(runes[:size-ending])
		if !kill {
			if i := strings.LastIndexByte(cut, ' '); i >= 0 {
				cut = cut[:i]
			}
		}
		return cut + end
	})
}

// quoteURL is Python's urllib.parse.quote with the given characters left as they are.
func quoteURL(v any, safe string) string {
	s := text(v)
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~", c) >= 0 || strings.IndexByte(safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func urlEncode(_ *filterCall, v any) any {
	var items []any
	switch {
	case isDict(v):
		items = pairs(v)
	default:
		_, isText := asString(v)
		if _, ok := each(v); isText || !ok {
			return value.String(quoteURL(v, "/"))
		}
		items = itemsOf(v)
	}
	var parts []string
	for _, item := range items {
		pair := itemsOf(item)
		if len(pair) != 2 {
			valueError("not enough values to unpack (expected 2, got %d)", len(pair))
		}
		query := func(v any) string { return strings.ReplaceAll(quoteURL(v, ""), "%20", "+") }
		parts = append(parts, query(pair[0])+"="+query(pair[1]))
	}
	return value.String(strings.Join(parts, "&"))
}

var (
	linkPattern = lazyregexp.New(`(?i)^((https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59})|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)` +
		`|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\])))(?::[\d]{1,5})?(?:[/?#]\S*)?$`)
	mailPattern  = lazyregexp.New(`^\S+@\w[\w.-]*\.\w+$`)
	leadPattern  = lazyregexp.New(`^(?:[(<]|&lt;)+`)
	trailPattern = lazyregexp.New(`(?:[)>.,\n]|&gt;)+$`)
)

// urlize turns addresses in a text into links.
func urlize(c *filterCall, v any, a []any) any {
	rels := map[string]bool{"noopener": true}
	if !isNone(a[3]) {
		for word := range strings.FieldsSeq(stringArg(a[3])) {
			rels[word] = true
		}
	}
	if a[1] != nil && truth(a[1]) {
		rels["nofollow"] = true
	}
	var names []any
	for n := range rels {
		names = append(names, value.String(n))
	}
	names = sortBy(names, names, false)
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = text(n)
	}
	attrs := ` rel="` + escapeText(strings.Join(words, " ")) + `"`
	if !isNone(a[2]) && truth(a[2]) {
		attrs += ` target="` + escapeText(text(a[2])) + `"`
	}
	var schemes []string
	if !isNone(a[4]) {
		for _, s := range itemsOf(a[4]) {
			schemes = append(schemes, stringArg(s))
		}
	}
	limit := intArg(a[0], -1)
	var b strings.Builder
	rest := string(escape(v))
	for rest != "" {
		n := strings.IndexFunc(rest, value.IsSpace)
		if n == 0 {
			n = len(rest) - len(strings.TrimLeftFunc(rest, value.IsSpace))
			b.WriteString(rest[:n])
			rest = rest[n:]
			continue
		}
		if n < 0 {
			n = len(rest)
		}
		b.WriteString(link(rest[:n], attrs, limit, schemes))
		rest = rest[n:]
	}
	if c.s.escapes {
		return markup(b.String())
	}
	return value.String(b.String())
}

// link makes a link of a word if it is an address.
func link(word, attrs string, limit int, schemes []string) string {
	head := leadPattern().FindString(word)
	middle := word[len(head):]
	tail := trailPattern().FindString(middle)
	middle = strings.TrimSuffix(middle, tail)
	for _, pair := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		opened := strings.Count(middle, pair[0])
		if opened <= strings.Count(middle, pair[1]) {
			continue
		}
		for range min(opened, strings.Count(tail, pair[1])) {
			end := strings.Index(tail, pair[1]) + len(pair[1])
			middle, tail = middle+tail[:end], tail[end:]
		}
	}
	short := middle
	if runes := []rune(middle); limit >= 0 && len(runes) > limit {
		short = string(runes[:limit]) + "..."
	}
	switch {
	case linkPattern().MatchString(middle):
		target := middle
		if !strings.HasPrefix(middle, "https://") && !strings.HasPrefix(middle, "http://") {
			target = "https://" + middle
		}
		middle = `<a href="` + target + `"` + attrs + `>` + short + `</a>`
	case strings.HasPrefix(middle, "mailto:") && mailPattern().MatchString(middle[7:]):
		middle = `<a href="` + middle + `">` + middle[7:] + `</a>`
	case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && !strings.HasPrefix(middle, "@") && !strings.Contains(middle, ":") && mailPattern().MatchString(middle):
		middle = `<a href="mailto:` + middle + `">` + middle + `</a>`
	default:
		for _, s := range schemes {
			if middle != s && strings.HasPrefix(middle, s) {
				middle = `<a href="` + middle + `"` + attrs + `>` + middle + `</a>`
			}
		}
	}
	return head + middle + tail
}

func wordWrap(_ *filterCall, v any, a []any) any {
	width := intArg(a[0], 79)
	long := a[1] == nil || truth(a[1])
	newline := "\n"
	if !isNone(a[2]) {
		newline = stringArg(a[2])
	}
	hyphens := a[3] == nil || truth(a[3])
	if width <= 0 {
		valueError("invalid width %d (must be > 0)", width)
	}
	s, ok := asString(v)
	if !ok {
		if u, undef := v.(*undefined); undef {
			u.fail()
		}
		fail("AttributeError", "'%s' object has no attribute 'splitlines'", typeName(v))
	}
	var out []string
	for _, line := range splitLines(s, false) {
		out = append(out, strings.Join(wrapLine(line, width, long, hyphens), newline))
	}
	return value.String(strings.Join(out, newline))
}

// wrapLine breaks a line into lines of at most width characters. White space is kept, except where a line ends or the next
// begins.
func wrapLine(line string, width int, breakLong, breakHyphens bool) []string {
	chunks := wrapChunks(line, breakHyphens)
	var lines []string
	for len(chunks) > 0 {
		var cur []string
		n := 0
		if strings.TrimSpace(chunks[0]) == "" && len(lines) > 0 {
			chunks = chunks[1:]
			if len(chunks) == 0 {
				break
			}
		}
		for len(chunks) > 0 {
			l := len([]rune(chunks[0]))
			if n+l > width {
				break
			}
			cur = append(cur, chunks[0])
			n += l
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && len([]rune(chunks[0])) > width {
			runes := []rune(chunks[0])
			if breakLong {
				room := max(width-n, 1)
				if width < 1 {
					room = 1
				}
				end := room
				if breakHyphens && len(runes) > room {
					if h := lastHyphen(runes[:room]); h > 0 {
						end = h + 1
					}
				}
				if room > 0 && n < width {
					cur = append(cur, string(runes[:end]))
					chunks[0] = string(runes[end:])
				}
			} else if len(cur) == 0 {
				cur = append(cur, chunks[0])
				chunks = chunks[1:]
			}
		}
		if len(cur) > 0 && strings.TrimSpace(cur[len(cur)-1]) == "" {
			cur = cur[:len(cur)-1]
		}
		if len(cur) > 0 {
			lines = append(lines, strings.Join(cur, ""))
		}
	}
	return lines
}

// lastHyphen is the place of the last hyphen that has something else before it.
func lastHyphen(runes []rune) int {
	for i := len(runes) - 1; i > 0; i-- {
		if runes[i] == '-' {
			for _, r := range runes[:i] {
				if r != '-' {
					return i
				}
			}
			return -1
		}
	}
	return -1
}

// wrapChunks splits a line into white space and words, and words at hyphens between letters.
func wrapChunks(line string, hyphens bool) []string {
	var chunks []string
	space := func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) }
	for rest := line; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return space(r) != space(firstRune(rest)) })
		if n < 0 {
			n = len(rest)
		}
		chunk := rest[:n]
		rest = rest[n:]
		if space(firstRune(chunk)) || !hyphens {
			chunks = append(chunks, chunk)
			continue
		}
		chunks = append(chunks, hyphenated([]rune(chunk))...)
	}
	return chunks
}

// hyphenated splits a word after its hyphens, and around dashes.
func hyphenated(word []rune) []string {
	letter := func(i int) bool { return i >= 0 && i < len(word) && (unicode.IsLetter(word[i]) || word[i] == '_') }
	punct := func(r rune) bool { return strings.ContainsRune(`!"'&.,?`, r) || isWord(r) }
	var out []string
	start := 0
	for i := 0; i < len(word); i++ {
		if word[i] != '-' {
			continue
		}
		end := i
		for end < len(word) && word[end] == '-' {
			end++
		}
		switch {
		case end-i >= 2 && i > start && punct(word[i-1]) && end < len(word) && isWord(word[end]):
			out = append(out, string(word[start:i]), string(word[i:end]))
			start = end
		case end-i == 1 && letter(i+1) && letter(i+2) && (letter(i-1) && letter(i-2) || i >= 2 && isWord(word[i-1]) && letter(i-2) || i >= 2 && letter(i-1) && isWord(word[i-2])):
			out = append(out, string(word[start:end]))
			start = end
		}
		i = end - 1
	}
	if start < len(word) {
		out = append(out, string(word[start:]))
	}
	return out
}

func xmlAttr(c *filterCall, v any, a []any) any {
	keys, vals, ok := entries(v)
	if !ok {
		if u, undef := v.(*undefined); undef {
			u.fail()
		}
		fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	var parts []string
	for i, k := range keys {
		if _, missing := vals[i].(*undefined); missing || isNone(vals[i]) {
			continue
		}
		name := stringArg(k)
		if strings.ContainsAny(name, "/>=") || strings.ContainsFunc(name, value.IsSpace) {
			valueError("Invalid character in attribute name: %s", repr(k))
		}
		parts = append(parts, string(escape(k))+`="`+string(escape(vals[i]))+`"`)
	}
	out := strings.Join(parts, " ")
	if out != "" && (a[0] == nil || truth(a[0])) {
		out = " " + out
	}
	if c.s.escapes {
		return markup(out)
	}
	return value.String(out)
}

// prettyWidth is the width that pprint tries to keep.
const prettyWidth = 80

// prettyPrint is Python's pprint.pformat.
func prettyPrint(v any) string {
	var b strings.Builder
	pretty(&b, v, 0, 0, 0)
	return b.String()
}

func pretty(b *strings.Builder, v any, indent, allowance, level int) {
	flat := prettyRepr(v, level)
	if len([]rune(flat)) <= prettyWidth-indent-allowance {
		b.WriteString(flat)
		return
	}
	switch x := v.(type) {
	case *dict:
		order := sortSafely(x.keys)
		b.WriteByte('{')
		for i, k := range order {
			key := prettyRepr(k, level+1)
			b.WriteString(key + ": ")
			rest := 1
			if i == len(order)-1 {
				rest = allowance + 1
			}
			val, _ := x.get(k)
			pretty(b, val, indent+len([]rune(key))+3, rest, level+1)
			if i < len(order)-1 {
				b.WriteString(",\n" + strings.Repeat(" ", indent+1))
			}
		}
		b.WriteByte('}')
	case *list:
		prettyItems(b, "[", "]", x.items, indent, allowance, level)
	case *tuple:
		end := ")"
		if len(x.items) == 1 {
			end = ",)"
		}
		prettyItems(b, "(", end, x.items, indent, allowance, level)
	case value.String:
		prettyText(b, string(x), indent, allowance, level)
	default:
		b.WriteString(flat)
	}
}

func prettyItems(b *strings.Builder, open, shut string, items []any, indent, allowance, level int) {
	b.WriteString(open)
	for i, item := range items {
		rest := 1
		if i == len(items)-1 {
			rest = allowance + len(shut)
		}
		pretty(b, item, indent+1, rest, level+1)
		if i < len(items)-1 {
			b.WriteString(",\n" + strings.Repeat(" ", indent+1))
		}
	}
	b.WriteString(shut)
}

// prettyText breaks a long text at white space into several literals.
func prettyText(b *strings.Builder, s string, indent, allowance, level int) {
	if level == 0 {
		indent, allowance = indent+1, allowance+1
	}
	var rows []string
	lines := splitLines(s, true)
	width := prettyWidth - indent
	for i, line := range lines {
		room := width
		if i == len(lines)-1 {
			room -= allowance
		}
		if r := value.StringRepr(line); len([]rune(r)) <= room {
			rows = append(rows, r)
			continue
		}
		parts := spacedWords(line)
		room = width
		current := ""
		for j, part := range parts {
			if j == len(parts)-1 && i == len(lines)-1 {
				room -= allowance
			}
			if len([]rune(value.StringRepr(current+part))) > room {
				if current != "" {
					rows = append(rows, value.StringRepr(current))
				}
				current = part
			} else {
				current += part
			}
		}
		if current != "" {
			rows = append(rows, value.StringRepr(current))
		}
	}
	if len(rows) == 1 {
		b.WriteString(rows[0])
		return
	}
	if level == 0 {
		b.WriteByte('(')
	}
	b.WriteString(strings.Join(rows, "\n"+strings.Repeat(" ", indent)))
	if level == 0 {
		b.WriteByte(')')
	}
}

// spacedWords splits a text into words with the white space after them.
func spacedWords(s string) []string {
	var out []string
	for s != "" {
		i := strings.IndexFunc(s, value.IsSpace)
		if i < 0 {
			return append(out, s)
		}
		j := len(s) - len(strings.TrimLeftFunc(s[i:], value.IsSpace))
		out = append(out, s[:j])
		s = s[j:]
	}
	return out
}

// prettyRepr is repr with sorted dictionaries.
func prettyRepr(v any, level int) string {
	tooDeep(level)
	switch x := v.(type) {
	case *dict:
		parts := make([]string, 0, len(x.keys))
		for _, k := range sortSafely(x.keys) {
			val, _ := x.get(k)
			parts = append(parts, prettyRepr(k, level+1)+": "+prettyRepr(val, level+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *list:
		return "[" + prettyList(x.items, level+1) + "]"
	case *tuple:
		if len(x.items) == 1 {
			return "(" + prettyRepr(x.items[0], level+1) + ",)"
		}
		return "(" + prettyList(x.items, level+1) + ")"
	}
	return repr(v)
}

func prettyList(items []any, level int) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = prettyRepr(item, level)
	}
	return strings.Join(parts, ", ")
}

// sortSafely sorts keys by their order if they have one, else by type and text.
func sortSafely(keys []any) (out []any) {
	var err error
	func() {
		defer caught(&err)
		out = sortBy(keys, keys, false)
	}()
	if err == nil {
		return out
	}
	names := make([]any, len(keys))
	for i, k := range keys {
		names[i] = value.String(typeName(k) + " " + repr(k))
	}
	return sortBy(keys, names, false)
}
