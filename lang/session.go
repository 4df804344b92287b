package lang

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/value"
)

// Session compiles the same project again and again, as its files change: for an editor, for a watched directory, for a server.
// From one compile to the next it keeps the parsed files whose path and content are the same. As long as all files declare the
// same, it keeps what is declared as well, and the bound statements of the files that did not change. The model itself is always
// run as a whole, since each of its statements may depend on any other. A session decides only how long a compile takes: result
// and diagnostics are those of [Compile].
//
// The methods may be called from several goroutines; they take turns.
type Session struct {
	turn    chan struct{} // holds a token while a method works
	trees   *module.Memory
	plugins []*value.Plugin // that are part of the compiler
	bound   *check.Program  // the last one without faults
}

// sessionRounds is how many compiles a parsed file outlives without being used: enough for an author who tries something and
// takes it back.
const sessionRounds = 4

// NewSession returns a session that has compiled nothing yet.
func NewSession() *Session {
	return &Session{turn: make(chan struct{}, 1), trees: module.NewMemory(), plugins: std.Plugins()}
}

// Compile compiles a project like the function [Compile].
func (s *Session) Compile(ctx context.Context, p Project, opts Options) (res *Result, ds diag.List, err error) {
	err = s.take(ctx, opts, func(c *compilation) (err error) {
		res, ds, err = c.compile(ctx, p)
		return err
	})
	return res, ds, err
}

// Checked is what is known about a project whose model has not been run.
type Checked struct {
	// Modules are the files of the project and what they import, as far as they could be read. It is never nil.
	Modules *module.Program
	// Program has the names bound; nil when files or plugins have faults. With other errors it is incomplete: what comes after
	// the first phase that found one is missing.
	Program *check.Program
	// Source returns the text of a source file by the name that diagnostics use.
	Source func(file string) ([]byte, bool)
}

// Check does all of a compile that comes before the model runs, and reports its faults and warnings. What it returns is not
// changed by later calls. It is not nil when err is nil; err is set as [Compile] does.
func (s *Session) Check(ctx context.Context, p Project, opts Options) (out *Checked, ds diag.List, err error) {
	err = s.take(ctx, opts, func(c *compilation) error {
		if err := c.front(ctx, p); err != nil {
			return err
		}
		out = &Checked{Modules: c.loaded, Program: c.bound, Source: c.res.Source}
		ds = slices.DeleteFunc(c.diags, ours)
		return nil
	})
	return out, ds, err
}

// take runs work when the session is free.
func (s *Session) take(ctx context.Context, opts Options, work func(*compilation) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another compile: %w", context.Cause(ctx))
	}
	opts.Cache = layered{s.trees, opts.Cache}
	defer s.trees.Age(sessionRounds)
	c := newCompilation(opts, time.Now)
	c.ours, c.previous = s.plugins, s.bound
	err := work(c)
	if c.sound {
		s.bound = c.bound
	}
	return err
}

// layered is a cache in memory before another one, which may be nil.
type layered struct {
	near *module.Memory
	far  module.Cache
}

var _ module.Cache = layered{}

// Get asks the near cache, then the far one.
func (l layered) Get(key module.CacheKey) (module.CacheEntry, bool) {
	e, ok := l.near.Get(key)
	if !ok && l.far != nil {
		if e, ok = l.far.Get(key); ok {
			l.near.Put(key, e)
		}
	}
	return e, ok
}

// Put keeps an entry in both.
func (l layered) Put(key module.CacheKey, e module.CacheEntry) {
	l.near.Put(key, e)
	if l.far != nil {
		l.far.Put(key, e)
	}
}
