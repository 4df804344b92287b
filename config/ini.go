package config

import (
	"fmt"
	"strings"
)

// entry is one option of a file.
type entry struct {
	section, name, value string
	line                 int
}

// parse reads INI text as the reference does: [section], name = value or name: value, comments from # or ; at the start of
// a line, longer values on indented lines. There is no interpolation. Within a file the last of equal options wins.
func parse(text string) ([]entry, error) {
	var out []entry
	section, open := "", false
	for i, raw := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line := strings.TrimRight(raw, " \t\r")
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case trimmed == "":
			open = false
		case trimmed[0] == '#' || trimmed[0] == ';':
		case len(trimmed) < len(line) && open:
			out[len(out)-1].value += "\n" + trimmed
		case trimmed[0] == '[':
			name, ok := strings.CutSuffix(trimmed[1:], "]")
			if !ok || name == "" {
				return nil, fmt.Errorf("line %d: a section is written [name]", i+1)
			}
			section, open = name, false
		default:
			at := strings.IndexAny(trimmed, "=:")
			if at <= 0 {
				return nil, fmt.Errorf("line %d: an option is written name = value", i+1)
			}
			if section == "" {
				return nil, fmt.Errorf("line %d: the option stands before the first [section]", i+1)
			}
			out = append(out, entry{section: section, name: strings.TrimSpace(trimmed[:at]), value: strings.TrimSpace(trimmed[at+1:]), line: i + 1})
			open = true
		}
	}
	return out, nil
}
