package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"golang.org/x/term"
)

// printer writes the results of commands: tables for people, JSON or YAML for programs.
type printer struct {
	out    io.Writer
	format string
	width  int // of the terminal; 0 means unlimited
}

// outputFlag gives a command and all below it the flag -o.
func outputFlag(cmd *cobra.Command) *string {
	return cmd.PersistentFlags().StringP("output", "o", "table", "table, json or yaml")
}

func newPrinter(cmd *cobra.Command, format string) (*printer, error) {
	switch format {
	case "table", "json", "yaml":
	default:
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("-o %s: must be table, json or yaml", format)}
	}
	p := &printer{out: cmd.OutOrStdout(), format: format}
	if f, ok := p.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			p.width = w
		}
	}
	return p, nil
}

// value writes v for programs and reports true, or reports false when a table is wanted.
func (p *printer) value(v any) (bool, error) {
	if p.format == "table" {
		return false, nil
	}
	text, err := readableJSON(v, "  ")
	if err != nil {
		return true, fmt.Errorf("encoding the result: %w", err)
	}
	if p.format == "yaml" {
		// by way of the JSON, so that both have the same names; its numbers keep their text
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var tree any
		if err := d.Decode(&tree); err != nil {
			return true, fmt.Errorf("encoding the result: %w", err)
		}
		if text, err = yaml.Marshal(plainNumbers(tree)); err != nil {
			return true, fmt.Errorf("encoding the result: %w", err)
		}
		text = bytes.TrimRight(text, "\n")
	}
	_, err = fmt.Fprintf(p.out, "%s\n", text)
	return true, err
}

// readableJSON encodes a value and leaves the characters < > & as they are: nobody puts it into a page.
func readableJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// plainNumbers turns the decoder's numbers into integers or floats.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for k, x := range v {
			v[k] = plainNumbers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plainNumbers(x)
		}
	}
	return v
}

// table writes rows in columns. An empty list prints the sentence instead.
func (p *printer) table(header []string, rows [][]string, empty string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(p.out, empty)
		return err
	}
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(cell)))
		}
	}
	p.fit(widths)
	var b strings.Builder
	for n, row := range append([][]string{header}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			text := cut(oneLine(cell), widths[i])
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
		if n == 0 {
			total := 0
			for _, w := range widths {
				total += w + 2
			}
			b.WriteString(strings.Repeat("─", total-2))
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// fit narrows the widest columns until the table fits the terminal. Piped output is never cut.
func (p *printer) fit(widths []int) {
	if p.width == 0 {
		return
	}
	for {
		total, widest := 0, 0
		for i, w := range widths {
			total += w + 2
			if w > widths[widest] {
				widest = i
			}
		}
		if total-2 <= p.width || widths[widest] <= 12 {
			return
		}
		widths[widest]--
	}
}

// facts writes names and values below each other.
func (p *printer) facts(pairs ...[2]string) error {
	rows := make([][]string, 0, len(pairs))
	for _, f := range pairs {
		rows = append(rows, []string{f[0], f[1]})
	}
	return p.table([]string{"Name", "Value"}, rows, "")
}

func oneLine(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		s += " …"
	}
	return s
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
