package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/syntax"
)

// The limits of running a model to see whether it works.
const (
	runTime  = 10 * time.Second
	runSteps = 3_000_000
)

// run runs the model of a project that has no other faults, and gives those that only show then. The model is not run when a module
// has plugins in Python: their code is not run in an editor, and without it the result would be another. There are none either
// when the run does not come to its end.
func (p *project) run(ctx context.Context, state *checked, docs map[string]*document, inputs lang.Inputs) diag.List {
	if p.kind != wholeProject || !state.bound || state.python {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runTime, fmt.Errorf("the model runs for more than %s", runTime))
	defer cancel()
	tree, sites, fetched := p.files(docs, nil)
	_, ds, err := p.session.Compile(ctx, lang.Project{FS: tree, Main: mainFile}, lang.Options{
		Inputs: inputs, MaxSteps: runSteps, Sites: sites, Fetched: fetched,
		Syntax: syntax.Options{Resume: true, MaxErrors: maxSyntaxErrors},
	})
	if err != nil || ctx.Err() != nil {
		return nil
	}
	limit := fmt.Sprintf("limit of %d steps", runSteps)
	if slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return strings.Contains(d.Message, limit) }) {
		return nil // with more time it may well end
	}
	return ds
}

// with adds the faults of a run to those known without it, each place once.
func with(known, more diag.List) diag.List {
	type key struct {
		file       string
		line, char int
	}
	at := func(d diag.Diagnostic) key { return key{d.Range.File, d.Range.Start.Line, d.Range.Start.Column} }
	seen := map[key]bool{}
	out := slices.Clone(more)
	for _, d := range more {
		seen[at(d)] = true
	}
	for _, d := range known {
		if !seen[at(d)] {
			out = append(out, d)
		}
	}
	return out
}
