package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// project is the tree of a small project: path to text.
type project map[string]string

// models lists the paths of the files in the modelling language, sorted.
func (p project) models() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if strings.HasSuffix(name, ".cf") {
			out = append(out, name)
		}
	}
	return out
}

// with is a copy of the project in which one file has another text.
func (p project) with(name, text string) project {
	q := maps.Clone(p)
	q[name] = text
	return q
}

// String shows all files, each after a header, in the form of txtar archives.
func (p project) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "-- %s --\n%s", name, p[name])
		if !strings.HasSuffix(p[name], "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// readCases reads the projects of a file with one recorded case per line.
func readCases(file string) ([]project, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	defer func() { _ = f.Close() }()
	var out []project
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var c struct {
			Files project `json:"files"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("reading cases: %s: case %d: %w", file, len(out)+1, err)
		}
		if len(c.Files.models()) == 0 {
			return nil, fmt.Errorf("reading cases: %s: case %d has no model", file, len(out)+1)
		}
		out = append(out, c.Files)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading cases: %s: %w", file, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading cases: %s has none", file)
	}
	return out, nil
}
