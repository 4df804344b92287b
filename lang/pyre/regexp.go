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
	linear  *linear // nil when only the machine will do
	prog    []inst
	regs    int
	pool    sync.Pool
}

// linear is the pattern for Go's regexp package, in the three ways of applying it.
type linear struct {
	search, match, full *regexp.Regexp
	own, dollars        []int
	fullOwn             []int
}

// Compile reads a pattern without flags. The error is an [*Error] with Python's text.
func Compile(pattern string) (*Regexp, error) { return CompileFlags(pattern, 0) }

// CompileFlags reads a pattern. The error is an [*Error] with Python's text.
func CompileFlags(pattern string, flags Flags) (*Regexp, error) {
	r, root, err := prepare(pattern, flags)
	if err != nil {
		return nil, err
	}
	if r.linear = newLinear(root, r.groups); r.linear != nil {
		return r, nil
	}
	return r, r.compile(root)
}

func prepare(pattern string, flags Flags) (*Regexp, *node, error) {
	root, p, err := parse(pattern, flags)
	if err != nil {
		return nil, nil, err
	}
	return &Regexp{pattern: pattern, groups: p.groups, names: p.names}, root, nil
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
	if !ok || tooBig(search) {
		return nil
	}
	full, fullOwn, _, ok := translate(root, groups, true)
	if !ok {
		return nil
	}
	match, err := regexp.Compile(`\A` + search.String())
	if err != nil {
		return nil
	}
	if full, err = regexp.Compile(`\A` + full.String()); err != nil {
		return nil
	}
	return &linear{search: search, match: match, full: full, own: own, dollars: dollars, fullOwn: fullOwn}
}

// String is the pattern as it was given.
func (r *Regexp) String() string { return r.pattern }

// Groups is the number of groups.
func (r *Regexp) Groups() int { return r.groups }

// Linear reports whether the pattern runs in time linear in the text.
func (r *Regexp) Linear() bool { return r.linear != nil }

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
	if r.linear != nil {
		return r.fromLinear(text, r.linear.match.FindStringSubmatchIndex(text), r.linear.own, r.linear.dollars), nil
	}
	return r.fromMachine(text, false, false)
}

// Matches reports whether the pattern matches at the start of text. It is [Regexp.Match] without the places.
func (r *Regexp) Matches(text string) (bool, error) {
	if r.linear != nil {
		return r.linear.match.MatchString(text), nil
	}
	m, err := r.fromMachine(text, false, false)
	return m != nil, err
}

// FullMatch matches the whole text, as Python's re.fullmatch does.
func (r *Regexp) FullMatch(text string) (*Match, error) {
	if r.linear != nil {
		return r.fromLinear(text, r.linear.full.FindStringSubmatchIndex(text), r.linear.fullOwn, nil), nil
	}
	return r.fromMachine(text, true, false)
}

// Search finds the first match anywhere in text, as Python's re.search does.
func (r *Regexp) Search(text string) (*Match, error) {
	if r.linear != nil {
		return r.fromLinear(text, r.linear.search.FindStringSubmatchIndex(text), r.linear.own, r.linear.dollars), nil
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
