package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
)

// Tool says who found the faults of a SARIF report.
type Tool struct {
	Name    string
	Version string
	// URL is a page about the tool; empty for none.
	URL string
	// Explain says what a code means and how to mend the fault; both are empty when that is not known. Nil explains nothing.
	Explain func(code string) (meaning, mend string)
}

// The part of the SARIF 2.1.0 format that is written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		URL     string      `json:"informationUri,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   string        `json:"id"`
		Full *sarifMessage `json:"fullDescription,omitempty"`
		Help *sarifMessage `json:"help,omitempty"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId,omitempty"`
		RuleIndex *int            `json:"ruleIndex,omitempty"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifMessage `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
)

// WriteSARIF writes the list as a SARIF 2.1.0 report, which code hosts show next to the lines of a change.
func WriteSARIF(w io.Writer, l List, tool Tool) error {
	rules := []sarifRule{}
	index := map[string]int{}
	for _, d := range l {
		if _, ok := index[d.Code]; !ok && d.Code != "" {
			index[d.Code] = 0
			rules = append(rules, tool.rule(d.Code))
		}
	}
	slices.SortFunc(rules, func(a, b sarifRule) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	for i, r := range rules {
		index[r.ID] = i
	}
	results := make([]sarifResult, len(l))
	for i, d := range l {
		text := d.Message
		if d.Hint != "" {
			text += "\nhint: " + d.Hint
		}
		r := sarifResult{RuleID: d.Code, Level: sarifLevel(d.Severity), Message: sarifMessage{text}}
		if d.Code != "" {
			at := index[d.Code]
			r.RuleIndex = &at
		}
		if d.Range.File != "" {
			r.Locations = []sarifLocation{{Physical: d.Range.sarif()}}
		}
		for _, rel := range d.Related {
			if rel.Range.File == "" {
				r.Message.Text += "\nnote: " + rel.Message
			} else {
				r.Related = append(r.Related, sarifLocation{Physical: rel.Range.sarif(), Message: &sarifMessage{rel.Message}})
			}
		}
		results[i] = r
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	err := enc.Encode(sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs: []sarifRun{{
			Tool:       sarifTool{sarifDriver{Name: tool.Name, Version: tool.Version, URL: tool.URL, Rules: rules}},
			ColumnKind: "unicodeCodePoints",
			Results:    results,
		}},
	})
	if err != nil {
		return fmt.Errorf("writing a SARIF report: %w", err)
	}
	return nil
}

func (t Tool) rule(code string) sarifRule {
	r := sarifRule{ID: code}
	if t.Explain != nil {
		if meaning, mend := t.Explain(code); meaning != "" {
			r.Full, r.Help = &sarifMessage{meaning}, &sarifMessage{mend}
		}
	}
	return r
}

func sarifLevel(s Severity) string {
	if s == Info {
		return "note"
	}
	return string(s)
}

func (r Range) sarif() sarifPhysical {
	p := sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: r.File}).EscapedPath()}}
	if r.Start.Line > 0 {
		p.Region = &sarifRegion{StartLine: r.Start.Line}
		if r.Start.Column > 0 {
			p.Region.StartColumn = r.Start.Column
			if r.End.Line >= r.Start.Line && r.End.Column > 0 {
				p.Region.EndLine, p.Region.EndColumn = r.End.Line, r.End.Column
			}
		}
	}
	return p
}
