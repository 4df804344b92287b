package api

import "encoding/json"

// CompileRun is a compile that waits or runs.
type CompileRun struct {
	ID                            string                     `json:"id"`
	RemoteID                      *string                    `json:"remote_id"`
	Environment                   string                     `json:"environment"`
	Requested                     *Time                      `json:"requested"`
	Started                       *Time                      `json:"started"`
	DoExport                      bool                       `json:"do_export"`
	ForceUpdate                   bool                       `json:"force_update"`
	Metadata                      map[string]json.RawMessage `json:"metadata"`
	EnvironmentVariables          map[string]string          `json:"environment_variables"`
	RequestedEnvironmentVariables map[string]string          `json:"requested_environment_variables"`
	MergeableEnvironmentVariables map[string]string          `json:"mergeable_environment_variables"`
	Partial                       bool                       `json:"partial"`
	RemovedResourceSets           []string                   `json:"removed_resource_sets"`
	ExporterPlugin                *string                    `json:"exporter_plugin"`
	NotifyFailedCompile           *bool                      `json:"notify_failed_compile"`
	FailedCompileMessage          *string                    `json:"failed_compile_message"`
	Links                         map[string][]string        `json:"links"`
	CompileData                   *CompileData               `json:"compile_data"`
}

// CompileReport is a compile with its outcome.
type CompileReport struct {
	CompileRun
	Completed *Time `json:"completed"`
	Success   *bool `json:"success"`
	Version   *int  `json:"version"`
	// Status is queued, running, succeeded, failed, cancelled or merged.
	Status string `json:"status"`
	// Revision is the commit that was compiled.
	Revision *Revision `json:"revision"`
	Reason   string    `json:"reason"`
	Trace    string    `json:"trace_id"`
	Error    string    `json:"error"`
}

// CompileStage is one stage of a compile.
type CompileStage struct {
	ID         string `json:"id"`
	Started    *Time  `json:"started"`
	Completed  *Time  `json:"completed"`
	Command    string `json:"command"`
	Name       string `json:"name"`
	Errstream  string `json:"errstream"`
	Outstream  string `json:"outstream"`
	Returncode *int   `json:"returncode"`
}

// CompileDetails is a compile report with its stages.
type CompileDetails struct {
	CompileReport
	Reports []CompileStage `json:"reports"`
}

// CompileData is what a failed compile says about its causes.
type CompileData struct {
	Errors []CompileError `json:"errors"`
}

// CompileError is one cause of a failed compile.
type CompileError struct {
	Type     string           `json:"type"`
	Message  string           `json:"message"`
	Location *CompileLocation `json:"location"`
	Category string           `json:"category"`
}

// CompileLocation is a place in a source file.
type CompileLocation struct {
	URI   string       `json:"uri"`
	Range *SourceRange `json:"range"`
}

// SourceRange is a stretch of a source file; lines and characters count from 0, as editors do.
type SourceRange struct {
	Start SourcePosition `json:"start"`
	End   SourcePosition `json:"end"`
}

// SourcePosition is a place in a text.
type SourcePosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Diagnostic is a fault that a compile found, with the source around it. Lines and columns count from 1.
type Diagnostic struct {
	Severity  string         `json:"severity"`
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint,omitempty"`
	File      string         `json:"file"`
	Line      int            `json:"line"`
	Column    int            `json:"column"`
	EndLine   int            `json:"end_line"`
	EndColumn int            `json:"end_column"`
	Related   []RelatedPlace `json:"related"`
	Excerpt   *SourceExcerpt `json:"excerpt,omitempty"`
}

// RelatedPlace is another place that contributed to a fault.
type RelatedPlace struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Message   string `json:"message"`
}

// SourceExcerpt is some lines of a source file.
type SourceExcerpt struct {
	File string `json:"file"`
	// FirstLine is the number of the first of Lines.
	FirstLine int      `json:"first_line"`
	Lines     []string `json:"lines"`
}

// CompileAnalysis is a compile report as people want to read it: stages, diagnostics with source, cost.
type CompileAnalysis struct {
	CompileDetails
	Diagnostics []Diagnostic `json:"diagnostics"`
	// SubstituteID is the compile that did the work of this one, when it was merged.
	SubstituteID *string `json:"substitute_id"`
	Digest       string  `json:"digest"`
	Actor        string  `json:"actor"`
	Attempt      int     `json:"attempt"`
	// PeakMemory is in bytes, CPUTime in seconds.
	PeakMemory int64   `json:"peak_memory"`
	CPUTime    float64 `json:"cpu_time"`
}

// CompileRecordV1 is a compile of the first API version.
type CompileRecordV1 struct {
	CompileReport
	Handled                  bool              `json:"handled"`
	UsedEnvironmentVariables map[string]string `json:"used_environment_variables"`
	SubstituteCompileID      *string           `json:"substitute_compile_id"`
	SoftDelete               bool              `json:"soft_delete"`
	ReinstallProjectAndVenv  bool              `json:"reinstall_project_and_venv"`
	Reports                  []CompileStage    `json:"reports,omitempty"`
}
