package compilehost_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// boundaryPrelude is the module whose functions take one value each and say what they got.
const boundaryPrelude = `
import numbers
from collections.abc import Mapping, Sequence
from typing import *
from inmanta.plugins import ModelType, plugin
from inmanta.references import Reference

def shape(x):
    name = type(x).__name__
    if name in ("SequenceProxy", "list"):
        return name + "[" + ",".join(shape(v) for v in x) + "]"
    if name in ("DictProxy", "dict"):
        return name + "{" + ",".join(k + ":" + shape(v) for k, v in x.items()) + "}"
    return name + ":" + repr(x)
`

type boundaryCase struct {
	function       int
	line           string
	value, outcome string
}

// TestBoundary holds, for each annotation and value of testdata/boundary.txt, whether the value is taken and what the function gets.
func TestBoundary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/boundary.txt")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	code.WriteString(boundaryPrelude)
	functions := map[string]int{}
	var taken, refused []boundaryCase
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		annotation, rest, ok := strings.Cut(line, " <- ")
		value, outcome, also := strings.Cut(rest, " => ")
		if !ok || !also {
			t.Fatalf("the line can not be read: %s", line)
		}
		n, known := functions[annotation]
		if !known {
			n = len(functions)
			functions[annotation] = n
			fmt.Fprintf(&code, "\n@plugin\ndef f%d(key: int, x: %s) -> str:\n    return str(key) + \" \" + shape(x)\n", n, annotation)
		}
		c := boundaryCase{function: n, line: line, value: value, outcome: outcome}
		if outcome == "!" {
			refused = append(refused, c)
		} else {
			taken = append(taken, c)
		}
	}
	if len(taken) < 300 || len(refused) < 800 {
		t.Fatalf("only %d and %d cases", len(taken), len(refused))
	}
	t.Run("taken", func(t *testing.T) {
		t.Parallel()
		var main strings.Builder
		for i, c := range taken {
			fmt.Fprintf(&main, "std::print(m::f%d(%d, %s))\n", c.function, i, c.value)
		}
		o := compile(t, project(main.String(), "", code.String()), nil).succeed(t)
		got := map[int]string{}
		for line := range strings.SplitSeq(strings.TrimSpace(o.stdout), "\n") {
			key, text, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(key)
			if err != nil {
				t.Fatalf("printed %q", line)
			}
			got[n] = text
		}
		for i, c := range taken {
			if got[i] != c.outcome {
				t.Errorf("%s, but the function gets %s", c.line, got[i])
			}
		}
	})
	// A run reports no more faults than this.
	const most = 20
	for first := 0; first < len(refused); first += most {
		group := refused[first:min(first+most, len(refused))]
		t.Run("refused/"+strconv.Itoa(first), func(t *testing.T) {
			t.Parallel()
			var main strings.Builder
			for i, c := range group {
				fmt.Fprintf(&main, "m::f%d(%d, %s)\n", c.function, i, c.value)
			}
			o := compile(t, project(main.String(), "", code.String()), nil)
			faulty := map[int]bool{}
			for _, d := range o.diags.Errors() {
				if d.Code == "PluginTypeException" && d.Range.File == "main.cf" {
					faulty[d.Range.Start.Line] = true
				}
			}
			for i, c := range group {
				if !faulty[i+2] {
					t.Errorf("%s, but it is taken", c.line)
				}
			}
		})
	}
}
