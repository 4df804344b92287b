package pyre

import (
	"regexp"
	"sync"
	"unicode/utf8"
)

// Regexp is a compiled pattern. It may be used by several goroutines at once.
type Regexp struct {
	pattern string
	groups  int
	names   map[string]int
	root    *node
	once    sync.Once // guards what follows, which is made when the pattern is used first, for many never are
	linear  *linear   // nil when only the machine will do
	prog    []inst
	regs    int
	pool    sync.Pool
}

// linear is the pattern for Go's regexp package, in the three ways of applying it.
type linear struct {
	match        *regexp.Regexp
	search, full func() *regexp.Regexp
	own, dollars []int
	fullOwn      []int
}

// Compile reads a pattern without flags. The error is an [*Error] with Python's text.
func Compile(pattern string) (*Regexp, error) { return CompileFlags(pattern, 0) }

// CompileFlags reads a pattern. The error is an [*Error] with Python's text.
func CompileFlags(pattern string, flags Flags) (*Regexp, error) {
	r, err := prepare(pattern, flags)
	if err != nil {
		return nil, err
	}
	if r.root.weight() <= maxSmall {
		return r, nil
	}
	r.once.Do(func() { err = r.choose() })
	return r, err
}

func prepare(pattern string, flags Flags) (*Regexp, error) {
	root, p, err := parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	return &Regexp{pattern: pattern, groups: p.groups, names: p.names, root: root}, nil
}

// maxSmall is the weight up to which neither Go's regexp package nor the machine can find a pattern too large.
const maxSmall = 200

// weight is the number of nodes of a tree, those of a repeat as often as they may be written out, up to a bit more than maxSmall.
func (n *node) weight() int {
	w := 1
	if n.set != nil {
		w += len(n.set.items)
	}
	for _, k := range n.kids {
		w += k.weight()
	}
	switch {
	case n.op != opRepeat:
	case n.max == unlimited:
		w *= 1 + n.min
	default:
		w *= 1 + n.max
	}
	return min(w, maxSmall+1)
}

// choose makes what the pattern is run with.
func (r *Regexp) choose() error {
	if r.linear = newLinear(r.root, r.groups); r.linear != nil {
		return nil
	}
	return r.compile(r.root)
}

// chosen is what Go's regexp package runs the pattern with, nil when the machine runs it.
func (r *Regexp) chosen() *linear {
	r.once.Do(func() { _ = r.choose() }) // only a large pattern can be too large, and one that is large has been tried
	return r.linear
}

// compile makes the program for the machine.
func (r *Regexp) compile(root *node) error {
	size := 0
	c := &compiler{registers: &r.regs, size: &size}
	c.node(root)
	c.emit(inst{op: iMatch})
	if c.tooLarge {
		return &Error{Message: "the pattern is too large", Pos: -1, Pattern: r.pattern}
	}
	r.prog = c.prog
	return nil
}

func newLinear(root *node, groups int) *linear {
	search, own, dollars, ok := translate(root, groups, false)
	if !ok {
		return nil
	}
	full, fullOwn, _, ok := translate(root, groups, true)
	if !ok || root.weight() > maxSmall && (tooBig(search) || tooBig(`\A`+full)) {
		return nil
	}
	match, err := regexp.Compile(`\A` + search)
	if err != nil {
		return nil
	}
	return &linear{match: match, search: lazily(search), full: lazily(`\A` + full), own: own, dollars: dollars, fullOwn: fullOwn}
}

// lazily compiles a translated pattern, of which another variant has been compiled, when it is used first.
func lazily(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// String is the pattern as it was given.
func (r *Regexp) String() string { return r.pattern }

// Groups is the number of groups.
func (r *Regexp) Groups() int { return r.groups }

// Linear reports whether the pattern runs in time linear in the text.
func (r *Regexp) Linear() bool { return r.chosen() != nil }

// Match is where a pattern matched.
type Match struct {
	re   *Regexp
	text string
	at   []int
}

// Span gives the start and the end in bytes of a group, 0 being the whole match; -1, -1 for a group that took no part.
func (m *Match) Span(group int) (start, end int) { return m.at[2*group], m.at[2*group+1] }

// Group is the text of a group, 0 being the whole match. ok is false for a group that took no part or does not exist.
func (m *Match) Group(group int) (text string, ok bool) {
	if group < 0 || 2*group >= len(m.at) || m.at[2*group] < 0 {
		return "", false
	}
	return m.text[m.at[2*group]:m.at[2*group+1]], true
}

// Named is the text of a named group.
func (m *Match) Named(name string) (text string, ok bool) {
	group, ok := m.re.names[name]
	if !ok {
		return "", false
	}
	return m.Group(group)
}

// Match matches at the start of text, as Python's re.match does. It gives nil when there is no match; the error is [ErrSteps].
func (r *Regexp) Match(text string) (*Match, error) {
	if l := r.chosen(); l != nil {
		return r.fromLinear(text, l.match.FindStringSubmatchIndex(text), l.own, l.dollars), nil
	}
	return r.fromMachine(text, false, false)
}

// Matches reports whether the pattern matches at the start of text. It is [Regexp.Match] without the places.
func (r *Regexp) Matches(text string) (bool, error) {
	if l := r.chosen(); l != nil {
		return l.match.MatchString(text), nil
	}
	m, err := r.fromMachine(text, false, false)
	return m != nil, err
}

// FullMatch matches the whole text, as Python's re.fullmatch does.
func (r *Regexp) FullMatch(text string) (*Match, error) {
	if l := r.chosen(); l != nil {
		return r.fromLinear(text, l.full().FindStringSubmatchIndex(text), l.fullOwn, nil), nil
	}
	return r.fromMachine(text, true, false)
}

// Search finds the first match anywhere in text, as Python's re.search does.
func (r *Regexp) Search(text string) (*Match, error) {
	if l := r.chosen(); l != nil {
		return r.fromLinear(text, l.search().FindStringSubmatchIndex(text), l.own, l.dollars), nil
	}
	return r.fromMachine(text, false, true)
}

// fromLinear translates what Go's regexp package found.
func (r *Regexp) fromLinear(text string, found, own, dollars []int) *Match {
	if found == nil {
		return nil
	}
	end := found[1]
	for _, d := range dollars {
		if from, to := found[2*d], found[2*d+1]; from >= 0 && to > from {
			end = from
		}
	}
	at := make([]int, 2*(r.groups+1))
	at[0], at[1] = found[0], end
	for g := 1; g <= r.groups; g++ {
		from, to := found[2*own[g]], found[2*own[g]+1]
		if from >= 0 {
			to = min(to, end)
		}
		at[2*g], at[2*g+1] = from, to
	}
	return &Match{re: r, text: text, at: at}
}

// fromMachine runs the machine at the start of the text, and with search at every later place too.
func (r *Regexp) fromMachine(text string, toEnd, search bool) (*Match, error) {
	m, _ := r.pool.Get().(*machine)
	if m == nil {
		m = &machine{save: make([]int, 2*(r.groups+1)), regs: make([]int, r.regs)}
	}
	defer func() {
		m.text, m.stack = "", m.stack[:0]
		r.pool.Put(m)
	}()
	m.text, m.steps, m.depth = text, 0, 0
	for pos := 0; ; {
		for i := range m.save {
			m.save[i] = -1
		}
		m.stack = m.stack[:0]
		end, ok, err := m.run(r.prog, pos, toEnd)
		if err != nil {
			return nil, err
		}
		if ok {
			at := make([]int, len(m.save))
			copy(at, m.save)
			at[0], at[1] = pos, end
			return &Match{re: r, text: text, at: at}, nil
		}
		if !search || pos >= len(text) {
			return nil, nil
		}
		_, n := utf8.DecodeRuneInString(text[pos:])
		pos += n
	}
}
