package diag

import (
	"encoding/json"
	"fmt"
)

// jsonRange is the JSON form of a place. Numbers that are not known are 0.
type jsonRange struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
}

type jsonDiagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
	jsonRange
	Related []jsonRelated `json:"related"`
	Hint    string        `json:"hint,omitempty"`
}

type jsonRelated struct {
	jsonRange
	Message string `json:"message"`
}

func (r Range) json() jsonRange {
	return jsonRange{r.File, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column}
}

func (r jsonRange) value() Range {
	return Range{
		File:  r.File,
		Start: Position{Line: r.Line, Column: r.Column},
		End:   Position{Line: r.EndLine, Column: r.EndColumn},
	}
}

// MarshalJSON writes the diagnostic as one flat object: severity, code, message, file, line, column, end_line, end_column,
// related (a list of places with messages) and, when there is one, hint. Offsets are left out.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	j := jsonDiagnostic{
		Severity: d.Severity, Code: d.Code, Message: d.Message, Hint: d.Hint,
		jsonRange: d.Range.json(),
		Related:   make([]jsonRelated, len(d.Related)),
	}
	for i, r := range d.Related {
		j.Related[i] = jsonRelated{r.Range.json(), r.Message}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what [Diagnostic.MarshalJSON] writes.
func (d *Diagnostic) UnmarshalJSON(data []byte) error {
	var j jsonDiagnostic
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("reading a diagnostic: %w", err)
	}
	switch j.Severity {
	case Error, Warning, Info:
	default:
		return fmt.Errorf("reading a diagnostic: unknown severity %q", j.Severity)
	}
	*d = Diagnostic{Severity: j.Severity, Code: j.Code, Message: j.Message, Hint: j.Hint, Range: j.value()}
	for _, r := range j.Related {
		d.Related = append(d.Related, Related{Range: r.value(), Message: r.Message})
	}
	return nil
}

// MarshalJSON writes the list as an array, also when it is nil.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Diagnostic(l))
}
