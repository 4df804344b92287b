package compilerd

import (
	"io"
	"os"
	"path"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/model"
)

// The sizes of excerpts: how many are kept, how many lines around the fault, how long a line, and how large a file may be.
const (
	maxExcerpts    = 200
	excerptContext = 3
	maxExcerptLine = 400
	maxExcerptFile = 4 << 20
)

// excerpts reads the source around diagnostics, by their index. The files that the compiler names are looked for below the
// project's directory and nowhere else; what can not be read is left out.
func excerpts(dir string, ds diag.List) map[int]model.SourceExcerpt {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	files := map[string][]string{}
	out := map[int]model.SourceExcerpt{}
	for i, d := range ds {
		at := d.Range
		if at.File == "" || at.Start.Line < 1 || len(out) >= maxExcerpts {
			continue
		}
		lines, ok := files[at.File]
		if !ok {
			lines = readLines(root, at.File)
			files[at.File] = lines
		}
		if at.Start.Line > len(lines) {
			continue
		}
		first := max(at.Start.Line-excerptContext, 1)
		last := min(max(at.Start.Line, min(at.End.Line, at.Start.Line+excerptContext))+excerptContext, len(lines))
		e := model.SourceExcerpt{File: at.File, FirstLine: first}
		for _, l := range lines[first-1 : last] {
			if len(l) > maxExcerptLine {
				l = strings.ToValidUTF8(l[:maxExcerptLine], "") + "…"
			}
			e.Lines = append(e.Lines, l)
		}
		out[i] = e
	}
	return out
}

// readLines reads a small text file, or nothing.
func readLines(root *os.Root, name string) []string {
	if path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return nil
	}
	fi, err := root.Stat(name)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxExcerptFile {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxExcerptFile))
	if err != nil {
		return nil
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\x00", "\uFFFD")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}
