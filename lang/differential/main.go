package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

// config is the command line.
type config struct {
	python    string
	cases     string
	out       string
	seed      uint64
	count     int
	mutations int
	limit     time.Duration
	budget    int
}

func main() {
	var c config
	flag.StringVar(&c.python, "python", os.Getenv("REFERENCE_PYTHON"), "a Python that can import the reference (default $REFERENCE_PYTHON)")
	flag.StringVar(&c.cases, "cases", "", "take the models from this file of recorded cases, not from the generator")
	flag.StringVar(&c.out, "out", "differences", "write the models that differ to this directory")
	flag.Uint64Var(&c.seed, "seed", 1, "the first seed; each model has one of its own")
	flag.IntVar(&c.count, "n", 1000, "how many models to make")
	flag.IntVar(&c.mutations, "mutations", 2, "how many broken copies to make of each; 0 compares recorded cases themselves")
	flag.DurationVar(&c.limit, "limit", 10*time.Second, "the time for one model") //nolint:mnd // a default
	flag.IntVar(&c.budget, "minimise", 150, "how many compiles to spend on making a model small")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	differs, err := c.run(ctx, os.Stdout)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(2)
	case differs:
		os.Exit(1)
	}
}

// run compares all models and reports whether any differs by no known reason.
func (c config) run(ctx context.Context, w io.Writer) (bool, error) {
	if c.python == "" {
		return false, errors.New("no Python for the reference: set REFERENCE_PYTHON or -python")
	}
	var seeds []project
	if c.cases != "" {
		var err error
		if seeds, err = readCases(c.cases); err != nil {
			return false, err
		}
	}
	s, err := newSession(ctx, c, w)
	if err != nil {
		return false, err
	}
	for i := range c.count {
		r := rand.New(rand.NewPCG(c.seed+uint64(i), 0))
		var p project
		if seeds != nil {
			p = seeds[i%len(seeds)]
		} else {
			p = generate(r)
		}
		for m := range c.mutations + 1 {
			q := p
			if m > 0 {
				q = mutate(r, p)
			} else if seeds != nil && c.mutations > 0 {
				continue // recorded already
			}
			if err := s.check(ctx, fmt.Sprintf("%d-%d", c.seed+uint64(i), m), q); err != nil {
				return false, errors.Join(err, s.close())
			}
			if ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	s.report()
	return len(s.kinds) > 0, s.close()
}

// session is one run of comparisons.
type session struct {
	config
	w io.Writer
	// references are drivers with different hash seeds; all but the first are only asked about what differs.
	references []*reference
	models     int
	accepted   int
	// reasons counts the differences that are meant to be, by reason.
	reasons map[string]int
	// kinds counts the others by what they look like; of each kind only a few are made small.
	kinds map[string]int
}

// hashSeeds is how many hash seeds the reference is asked with.
const hashSeeds = 3

// perKind is how many models of a kind are written down.
const perKind = 2

func newSession(ctx context.Context, c config, w io.Writer) (*session, error) {
	s := &session{config: c, w: w, reasons: map[string]int{}, kinds: map[string]int{}}
	for seed := range hashSeeds {
		r, err := startReference(ctx, c.python, seed, c.limit)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.references = append(s.references, r)
	}
	return s, nil
}

func (s *session) close() error {
	var errs []error
	for _, r := range s.references {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// check compares what the compilers make of a project, and writes it down when they differ.
func (s *session) check(ctx context.Context, name string, p project) error {
	s.models++
	their, err := s.references[0].compile(p)
	if err != nil {
		return err
	}
	if their.outcome == "ok" {
		s.accepted++
	}
	our := ours(ctx, p, s.limit)
	d := compare(our, their)
	if d == nil {
		return nil
	}
	kind := kindOf(our, their, d)
	reason := chosen(p, our, their, d)
	if reason == "" {
		if reason, err = s.undecided(p, our, kind); err != nil {
			return err
		}
	}
	if reason != "" {
		s.reasons[reason]++
		return nil
	}
	s.kinds[kind]++
	if s.kinds[kind] > perKind {
		return nil
	}
	small := minimise(p, s.budget, func(q project) bool { return s.same(ctx, q, kind) })
	return s.write(ctx, name, small, kind)
}

// undecided asks the reference again with other hash seeds: when it is at odds with itself, or agrees with us once, the difference
// is none of ours.
func (s *session) undecided(p project, our answer, kind string) (string, error) {
	for _, r := range s.references[1:] {
		again, err := r.compile(p)
		if err != nil {
			return "", err
		}
		e := compare(our, again)
		if e == nil || kindOf(our, again, e) != kind {
			return undecided, nil
		}
	}
	return "", nil
}

// kindOf is what differences of the same cause have in common, most likely.
func kindOf(our, their answer, d *difference) string {
	code := func(a answer) string {
		if len(a.errors) == 0 {
			return a.outcome
		}
		return a.errors[0].codes[0] + " " + shape(a.errors[0].message)
	}
	return fmt.Sprintf("%s: ours %s; the reference %s", d.point, code(our), code(their))
}

// same reports whether a project differs in the given way.
func (s *session) same(ctx context.Context, p project, kind string) bool {
	their, err := s.references[0].compile(p)
	if err != nil || their.outcome == "timeout" {
		return false
	}
	our := ours(ctx, p, s.limit)
	d := compare(our, their)
	return d != nil && kindOf(our, their, d) == kind && chosen(p, our, their, d) == ""
}

// write prints a model that differs and keeps it in a file.
func (s *session) write(ctx context.Context, name string, p project, kind string) error {
	their, err := s.references[0].compile(p)
	if err != nil {
		return err
	}
	text := kind
	if d := compare(ours(ctx, p, s.limit), their); d != nil {
		text = string(d.point) + ": " + d.text
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("writing a difference: %w", err)
	}
	file := filepath.Join(s.out, name+".txtar")
	content := text + "\n" + p.String()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing a difference: %w", err)
	}
	fmt.Fprintf(s.w, "\n==== %s\n%s", file, content)
	return nil
}

// report prints the figures.
func (s *session) report() {
	known, other := 0, 0
	for _, n := range s.reasons {
		known += n
	}
	for _, n := range s.kinds {
		other += n
	}
	fmt.Fprintf(s.w, "\n%7d models, %d accepted by the reference\n%7d agree\n%7d differ by a known reason\n", s.models, s.accepted,
		s.models-known-other, known)
	list := func(m map[string]int) {
		for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Compare(m[b], m[a]) }) {
			fmt.Fprintf(s.w, "%14d %s\n", m[k], k)
		}
	}
	list(s.reasons)
	fmt.Fprintf(s.w, "%7d differ otherwise\n", other)
	list(s.kinds)
}
