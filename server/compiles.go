package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

type notifyGetArgs struct {
	ID        model.EnvironmentID `arg:"id"`
	Update    bool                `arg:"update" default:"true" doc:"Fetch the repository and update modules first."`
	Reinstall bool                `arg:"reinstall,optional" doc:"Accepted for compatibility: every compile starts from a clean checkout."`
}

type notifyArgs struct {
	ID        model.EnvironmentID        `arg:"id"`
	Update    bool                       `arg:"update" default:"true" doc:"Fetch the repository and update modules first."`
	Metadata  map[string]json.RawMessage `arg:"metadata,optional"`
	Reinstall bool                       `arg:"reinstall,optional" doc:"Accepted for compatibility: every compile starts from a clean checkout."`
}

type isCompilingArgs struct {
	ID model.EnvironmentID `arg:"id"`
}

type compileIDArgs struct {
	ID model.JobID `arg:"id"`
}

type compileListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"requested (lt:, le:, gt:, ge:), success, started, completed"`
	Sort    string              `arg:"sort" default:"requested.desc"`
}

type compileListV1Args struct {
	Start *string `arg:"start"`
	End   *string `arg:"end"`
	Limit *int    `arg:"limit"`
}

type compileRequestArgs struct {
	Update               *bool                      `arg:"update" doc:"Fetch the repository and update modules first. True by default."`
	Export               *bool                      `arg:"export" doc:"Store the result as a version. True by default."`
	Commit               string                     `arg:"commit,optional" doc:"The commit to compile, in full; the newest of the branch when absent."`
	Message              string                     `arg:"message,optional" doc:"Why, for people."`
	RemoteID             string                     `arg:"remote_id,optional" doc:"An identifier of the caller's, kept with the report."`
	Metadata             map[string]json.RawMessage `arg:"metadata,optional"`
	EnvironmentVariables map[string]string          `arg:"environment_variables,optional"`
	ExporterPlugin       string                     `arg:"exporter_plugin,optional"`
}

type reportsV1 struct {
	Reports []api.CompileRecordV1 `json:"reports"`
}

type reportV1 struct {
	Report api.CompileRecordV1 `json:"report"`
}

// compileDisabled is the warning for environments whose setting forbids compiles by the server.
const compileDisabled = "Skipping compile because server compile not enabled for this environment."

var (
	commitID     = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`)
)

// requestCompile queues a job unless the environment forbids it; ok says whether it did.
func (s *Server) requestCompile(ctx context.Context, c *call, e model.Environment, job model.CompileJob) (id model.JobID, ok bool, err error) {
	if !model.ParseSettings(e.Settings).ServerCompile {
		c.warn(compileDisabled)
		return model.JobID{}, false, nil
	}
	job.Environment = e.ID
	job.Actor = c.identity.Name
	job.Trace = c.trace
	job.RequestedAt = c.now
	return job.ID, true, s.store.RequestCompile(ctx, job)
}

// textOf is a metadata value if it is a text.
func textOf(metadata map[string]json.RawMessage, key string) string {
	var text string
	if json.Unmarshal(metadata[key], &text) != nil {
		return ""
	}
	return text
}

func (s *Server) notifyGet(ctx context.Context, c *call, a notifyGetArgs) (none, error) {
	return s.notify(ctx, c, notifyArgs{ID: a.ID, Update: a.Update, Metadata: map[string]json.RawMessage{
		"type": json.RawMessage(`"api"`), "message": json.RawMessage(`"Recompile trigger through API call"`),
	}})
}

func (s *Server) notify(ctx context.Context, c *call, a notifyArgs) (none, error) {
	e, err := s.store.Environment(ctx, a.ID)
	if err != nil {
		return none{}, unknownEnvironment(a.ID, err)
	}
	c.environment = e
	reason := textOf(a.Metadata, "message")
	if reason == "" {
		reason = "requested by API"
	}
	_, _, err = s.requestCompile(ctx, c, e, model.CompileJob{
		ID: model.JobID{UUID: c.id()}, Reason: reason, Export: true, Update: a.Update, Metadata: a.Metadata,
	})
	return none{}, err
}

func (s *Server) isCompiling(ctx context.Context, c *call, a isCompilingArgs) (none, error) {
	if _, err := s.store.Environment(ctx, a.ID); err != nil {
		return none{}, unknownEnvironment(a.ID, err)
	}
	running, err := s.store.Compiling(ctx)
	if err == nil && !slices.Contains(running, a.ID) {
		c.status = http.StatusNoContent
	}
	return none{}, err
}

// compileRequest queues a compile and answers with its report, so that the caller can wait for it.
func (s *Server) compileRequest(ctx context.Context, c *call, a compileRequestArgs) (api.CompileReport, error) {
	if a.Commit != "" && !commitID().MatchString(a.Commit) {
		return api.CompileReport{}, invalidArgument("commit", "value_error", "%q is not a commit id in full", a.Commit)
	}
	for name := range a.EnvironmentVariables {
		if !variableName().MatchString(name) {
			return api.CompileReport{}, invalidArgument("environment_variables", "value_error", "%q is not the name of an environment variable", name)
		}
	}
	job := model.CompileJob{
		ID: model.JobID{UUID: c.id()}, Reason: a.Message, Export: a.Export == nil || *a.Export, Update: a.Update == nil || *a.Update,
		RemoteID: a.RemoteID, Metadata: a.Metadata, EnvironmentVariables: a.EnvironmentVariables, ExporterPlugin: a.ExporterPlugin,
	}
	if job.Reason == "" {
		job.Reason = "requested by API"
	}
	if a.Commit != "" {
		job.Revision = model.Revision{Repository: c.environment.Repository, Commit: a.Commit}
	}
	id, ok, err := s.requestCompile(ctx, c, c.environment, job)
	if err != nil {
		return api.CompileReport{}, err
	}
	if !ok {
		return api.CompileReport{}, fmt.Errorf("environment %s does not allow compiles by the server (setting %s): %w",
			c.environment.Name, model.SettingServerCompile, model.ErrConflict)
	}
	report, err := s.store.CompileReport(ctx, c.env(), id)
	return reportOf(report), err
}

func (s *Server) compileCancel(ctx context.Context, c *call, a compileIDArgs) (none, error) {
	return none{}, s.store.CancelCompile(ctx, c.env(), a.ID, c.now)
}

func (s *Server) compileQueue(ctx context.Context, c *call, _ struct{}) ([]api.CompileRun, error) {
	queue, err := s.store.CompileQueue(ctx, c.env())
	return convertAll(queue, runOf), err
}

var compileListing = listing[model.CompileReport]{
	sort: map[string]sortColumn[model.CompileReport]{
		"requested": {timeColumn, func(r model.CompileReport) string { return textTime(r.Job.RequestedAt) }},
	},
	id:      func(r model.CompileReport) string { return r.Job.ID.String() },
	idKind:  uuidColumn,
	filters: []string{"requested", "success", "started", "completed"},
}

func (s *Server) compileList(ctx context.Context, c *call, a compileListArgs) ([]api.CompileReport, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := compileListing.page(args)
	if err != nil {
		return nil, err
	}
	var f model.CompileFilter
	var errs [4]error
	f.Requested, errs[0] = filterTimes("requested", a.Filter["requested"])
	f.Success, errs[1] = filterBool("success", a.Filter["success"])
	f.Started, errs[2] = filterBool("started", a.Filter["started"])
	f.Completed, errs[3] = filterBool("completed", a.Filter["completed"])
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	list, err := s.store.CompileReports(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	compileListing.describe(c, args, page, list)
	return convertAll(list.Items, reportOf), nil
}

func (s *Server) compileDetails(ctx context.Context, c *call, a compileIDArgs) (api.CompileDetails, error) {
	r, err := s.compileWithSubstitute(ctx, c.env(), a.ID)
	return detailsOf(r), err
}

// compileWithSubstitute reads a report; one whose job was merged gets the stages and the outcome of the job that did the work.
func (s *Server) compileWithSubstitute(ctx context.Context, env model.EnvironmentID, id model.JobID) (model.CompileReport, error) {
	r, err := s.store.CompileReport(ctx, env, id)
	if err != nil || r.SubstituteID.UUID == uuid.Nil {
		return r, err
	}
	worked, err := s.store.CompileReport(ctx, env, r.SubstituteID)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return r, nil
	case err != nil:
		return r, err
	}
	job, substitute := r.Job, r.SubstituteID
	r = worked
	job.StartedAt, job.Revision = worked.Job.StartedAt, worked.Job.Revision
	r.Job, r.SubstituteID = job, substitute
	return r, nil
}

func (s *Server) compileAnalysis(ctx context.Context, c *call, a compileIDArgs) (api.CompileAnalysis, error) {
	r, err := s.compileWithSubstitute(ctx, c.env(), a.ID)
	if err != nil {
		return api.CompileAnalysis{}, err
	}
	return api.CompileAnalysis{
		CompileDetails: detailsOf(r), Diagnostics: diagnosticsOf(r), SubstituteID: optionalID(r.SubstituteID.UUID), Digest: r.Digest,
		Actor: r.Job.Actor, Attempt: r.Job.Attempt, PeakMemory: r.PeakMemory, CPUTime: r.CPUTime.Seconds(),
	}, nil
}

func (s *Server) compileDataGet(ctx context.Context, c *call, a compileIDArgs) (*api.CompileData, error) {
	r, err := s.compileWithSubstitute(ctx, model.EnvironmentID{}, a.ID)
	if err != nil {
		return nil, err
	}
	return dataOf(r), seen(c, r.Job.Environment)
}

// seen fails when the caller's credentials are for another environment than the one found.
func seen(c *call, env model.EnvironmentID) error {
	if only := c.identity.Environment; only != nil && *only != env {
		return fmt.Errorf("the token is for environment %s only: %w", only, model.ErrForbidden)
	}
	return nil
}

func (s *Server) compileListV1(ctx context.Context, c *call, a compileListV1Args) (reportsV1, error) {
	limit := maxPage
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 0 || limit > maxPage {
		return reportsV1{}, invalidArgument("limit", "value_error", "limit parameter can not exceed %d, got %d", maxPage, limit)
	}
	var f model.CompileFilter
	for _, x := range []struct {
		text *string
		into *time.Time
		name string
	}{{a.Start, &f.StartedAt.After, "start"}, {a.End, &f.StartedAt.Before, "end"}} {
		if x.text == nil {
			continue
		}
		t, err := api.ParseTime(*x.text)
		if err != nil {
			return reportsV1{}, invalidArgument(x.name, "type_error", "%v", err)
		}
		*x.into = t
	}
	list, err := s.store.CompileReports(ctx, c.env(), f, model.Page{Sort: "started", Descending: true, Limit: limit})
	return reportsV1{convertAll(list.Items, func(r model.CompileReport) api.CompileRecordV1 { return recordV1Of(r, false) })}, err
}

func (s *Server) compileGetV1(ctx context.Context, c *call, a compileIDArgs) (reportV1, error) {
	r, err := s.compileWithSubstitute(ctx, model.EnvironmentID{}, a.ID)
	if err != nil {
		return reportV1{}, err
	}
	return reportV1{recordV1Of(r, true)}, seen(c, r.Job.Environment)
}

func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	text := id.String()
	return &text
}

func runOf(r model.CompileReport) api.CompileRun {
	j := r.Job
	variables := j.EnvironmentVariables
	if variables == nil {
		variables = map[string]string{}
	}
	metadata := j.Metadata
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	return api.CompileRun{
		ID: j.ID.String(), RemoteID: optionalText(j.RemoteID), Environment: j.Environment.String(), Requested: api.OptionalTime(j.RequestedAt),
		Started: api.OptionalTime(j.StartedAt), DoExport: j.Export, ForceUpdate: j.Update, Metadata: metadata, EnvironmentVariables: variables,
		RequestedEnvironmentVariables: variables, MergeableEnvironmentVariables: map[string]string{}, RemovedResourceSets: []string{},
		ExporterPlugin: optionalText(j.ExporterPlugin), Links: map[string][]string{}, CompileData: dataOf(r),
	}
}

func reportOf(r model.CompileReport) api.CompileReport {
	out := api.CompileReport{
		CompileRun: runOf(r), Completed: api.OptionalTime(r.FinishedAt), Status: string(r.Status), Revision: revisionOf(r.Job.Revision),
		Reason: r.Job.Reason, Trace: string(r.Job.Trace), Error: r.Error,
	}
	if !r.FinishedAt.IsZero() {
		success := r.Status == model.CompileSucceeded
		out.Success = &success
	}
	if r.Version != 0 {
		out.Version = &r.Version
	}
	return out
}

func detailsOf(r model.CompileReport) api.CompileDetails {
	stages := make([]api.CompileStage, len(r.Stages))
	for i, st := range r.Stages {
		stages[i] = api.CompileStage{
			ID:      uuid.NewSHA1(r.Job.ID.UUID, []byte(strconv.Itoa(st.Ordinal))).String(),
			Started: api.OptionalTime(st.StartedAt), Completed: api.OptionalTime(st.FinishedAt), Command: st.Command, Name: st.Name,
			Errstream: st.Stderr, Outstream: st.Stdout, Returncode: st.ExitCode,
		}
	}
	return api.CompileDetails{CompileReport: reportOf(r), Reports: stages}
}

func recordV1Of(r model.CompileReport, stages bool) api.CompileRecordV1 {
	d := detailsOf(r)
	out := api.CompileRecordV1{
		CompileReport: d.CompileReport, Handled: !r.FinishedAt.IsZero(), UsedEnvironmentVariables: d.EnvironmentVariables,
		SubstituteCompileID: optionalID(r.SubstituteID.UUID),
	}
	if stages {
		out.Reports = d.Reports
	}
	return out
}

// dataOf is what clients of the reference show of a failed compile.
func dataOf(r model.CompileReport) *api.CompileData {
	var out api.CompileData
	for _, d := range r.Diagnostics {
		if d.Severity != diag.Error {
			continue
		}
		e := api.CompileError{Type: d.Code, Message: d.Message, Category: "runtime_error"}
		if strings.Contains(d.Code, "Parser") {
			e.Category = "parse_error"
		}
		if d.Range.File != "" {
			e.Location = &api.CompileLocation{URI: d.Range.File}
			if d.Range.Start.Line > 0 {
				e.Location.Range = &api.SourceRange{Start: fromZero(d.Range.Start), End: fromZero(d.Range.End)}
			}
		}
		out.Errors = append(out.Errors, e)
	}
	if out.Errors == nil {
		return nil
	}
	return &out
}

func fromZero(p diag.Position) api.SourcePosition {
	return api.SourcePosition{Line: max(p.Line-1, 0), Character: max(p.Column-1, 0)}
}

func diagnosticsOf(r model.CompileReport) []api.Diagnostic {
	out := make([]api.Diagnostic, len(r.Diagnostics))
	for i, d := range r.Diagnostics {
		out[i] = api.Diagnostic{
			Severity: string(d.Severity), Code: d.Code, Message: d.Message, Hint: d.Hint, File: d.Range.File, Line: d.Range.Start.Line,
			Column: d.Range.Start.Column, EndLine: d.Range.End.Line, EndColumn: d.Range.End.Column,
			Related: convertAll(d.Related, func(p diag.Related) api.RelatedPlace {
				return api.RelatedPlace{
					File: p.Range.File, Line: p.Range.Start.Line, Column: p.Range.Start.Column, EndLine: p.Range.End.Line,
					EndColumn: p.Range.End.Column, Message: p.Message,
				}
			}),
		}
		if x, ok := r.Excerpts[i]; ok {
			out[i].Excerpt = &api.SourceExcerpt{File: x.File, FirstLine: x.FirstLine, Lines: x.Lines}
		}
	}
	return out
}
