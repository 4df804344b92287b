package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type versionListV1Args struct {
	Start *int `arg:"start" doc:"How many of the newest versions to pass over; only with limit."`
	Limit *int `arg:"limit"`
}

type versionGetV1Args struct {
	ID          int     `arg:"id"`
	IncludeLogs *bool   `arg:"include_logs"`
	LogFilter   *string `arg:"log_filter" doc:"Only actions of this kind."`
	Limit       *int    `arg:"limit" doc:"The greatest number of actions of each resource."`
}

type versionIDArgs struct {
	ID int `arg:"id"`
}

type versionArgs struct {
	Version int `arg:"version"`
}

type releaseArgs struct {
	ID      int     `arg:"id"`
	Push    bool    `arg:"push,optional" doc:"Accepted for compatibility: a released version is always deployed."`
	Trigger *string `arg:"agent_trigger_method" enum:"push_incremental_deploy,push_full_deploy" doc:"Accepted for compatibility."`
}

type promoteArgs struct {
	Version int     `arg:"version"`
	Trigger *string `arg:"trigger_method" enum:"no_push,push_incremental_deploy,push_full_deploy" doc:"Accepted for compatibility."`
}

type versionListArgs struct {
	Limit  *int                `arg:"limit"`
	Start  *string             `arg:"start"`
	End    *string             `arg:"end"`
	Filter map[string][]string `arg:"filter,optional" doc:"version, date (lt:, le:, gt:, ge:), status, released"`
	Sort   string              `arg:"sort" default:"version.desc"`
}

type versionResourcesArgs struct {
	Version int                 `arg:"version"`
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"resource_type, agent, resource_id_value"`
	Sort    string              `arg:"sort" default:"resource_type.desc"`
}

type versionResourceArgs struct {
	Version  int    `arg:"version"`
	Resource string `arg:"rid"`
}

type diffArgs struct {
	From int `arg:"from_version"`
	To   int `arg:"to_version"`
}

type modelV1 struct {
	Model api.VersionV1 `json:"model"`
}

func resourceID(text string) (model.ResourceID, int, error) {
	id, _, version, err := model.ParseResourceID(text)
	if err != nil {
		return "", 0, invalidArgument("rid", "value_error", "%v", err)
	}
	return id, version, nil
}

func (s *Server) reserveVersion(ctx context.Context, c *call, _ struct{}) (int, error) {
	return s.store.ReserveVersion(ctx, c.env())
}

func (s *Server) versionListV1(ctx context.Context, c *call, a versionListV1Args) (api.VersionListV1, error) {
	if (a.Start == nil) != (a.Limit == nil) {
		return api.VersionListV1{}, invalidArgument("start", "value_error", "start and limit must be given together")
	}
	page := model.Page{Sort: "version", Descending: true}
	offset := 0
	if a.Limit != nil {
		if *a.Limit > maxPage || *a.Limit < 0 || *a.Start < 0 {
			return api.VersionListV1{}, invalidArgument("limit", "value_error", "limit parameter can not exceed %d, got %d", maxPage, *a.Limit)
		}
		offset = *a.Start
		page.Limit = offset + *a.Limit
	}
	list, err := s.store.Versions(ctx, c.env(), model.VersionFilter{}, page)
	if err != nil {
		return api.VersionListV1{}, err
	}
	items := list.Items[min(offset, len(list.Items)):]
	return api.VersionListV1{Versions: convertAll(items, versionV1Of), Start: a.Start, Limit: a.Limit, Count: list.Total}, nil
}

func (s *Server) versionGetV1(ctx context.Context, c *call, a versionGetV1Args) (api.VersionReportV1, error) {
	v, err := s.store.Version(ctx, c.env(), a.ID)
	if err != nil {
		return api.VersionReportV1{}, err
	}
	intents, err := s.store.VersionResources(ctx, c.env(), a.ID, model.ResourceFilter{}, model.Page{Sort: "resource_type"})
	if err != nil {
		return api.VersionReportV1{}, err
	}
	unknowns, err := s.store.VersionUnknowns(ctx, c.env(), a.ID)
	if err != nil {
		return api.VersionReportV1{}, err
	}
	out := api.VersionReportV1{
		Model:     versionV1Of(v),
		Resources: make([]api.ResourceV1, len(intents.Items)),
		Unknowns: convertAll(unknowns, func(u model.UnknownParameter) api.UnknownV1 {
			return api.UnknownV1{Name: u.Name, ResourceID: u.Resource, Source: u.Source, Environment: c.env().String(), Version: a.ID}
		}),
	}
	actions := map[model.ResourceID][]api.ResourceAction{}
	if a.IncludeLogs != nil && *a.IncludeLogs {
		f := model.ActionFilter{Version: a.ID}
		if a.LogFilter != nil {
			f.Kind = model.ActionKind(*a.LogFilter)
		}
		all, err := s.store.Actions(ctx, c.env(), f)
		if err != nil {
			return api.VersionReportV1{}, err
		}
		for _, x := range all {
			if a.Limit == nil || len(actions[x.Resource]) < *a.Limit {
				actions[x.Resource] = append(actions[x.Resource], actionOf(x))
			}
		}
	}
	for i, intent := range intents.Items {
		out.Resources[i] = resourceV1Of(c.env(), a.ID, intent)
		out.Resources[i].Actions = actions[intent.Resource]
	}
	return out, nil
}

func (s *Server) versionDelete(ctx context.Context, c *call, a versionIDArgs) (none, error) {
	return none{}, s.store.DeleteVersion(ctx, c.env(), a.ID)
}

func (s *Server) release(ctx context.Context, c *call, a releaseArgs) (modelV1, error) {
	if err := s.store.ReleaseVersion(ctx, c.env(), a.ID, c.now); err != nil {
		return modelV1{}, err
	}
	v, err := s.store.Version(ctx, c.env(), a.ID)
	return modelV1{versionV1Of(v)}, err
}

func (s *Server) promote(ctx context.Context, c *call, a promoteArgs) (none, error) {
	return none{}, s.store.ReleaseVersion(ctx, c.env(), a.Version, c.now)
}

var versionListing = listing[model.VersionRow]{
	sort: map[string]sortColumn[model.VersionRow]{
		"version": {intColumn, func(v model.VersionRow) string { return strconv.Itoa(v.Number) }},
	},
	filters: []string{"version", "date", "status", "released"},
}

func (s *Server) versions(ctx context.Context, c *call, a versionListArgs) ([]model.VersionRow, error) {
	args := pageArgs{limit: a.Limit, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := versionListing.page(args)
	if err != nil {
		return nil, err
	}
	var f model.VersionFilter
	var errs [3]error
	f.Number, errs[0] = filterInts("version", a.Filter["version"])
	f.Date, errs[1] = filterTimes("date", a.Filter["date"])
	f.Released, errs[2] = filterBool("released", a.Filter["released"])
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for _, text := range a.Filter["status"] {
		status := model.VersionStatus(strings.ToLower(text))
		all := []model.VersionStatus{model.VersionActive, model.VersionCandidate, model.VersionRetired, model.VersionSkippedCandidate}
		if !slices.Contains(all, status) {
			return nil, invalidArgument("filter", "value_error", "filter status: %q is not one of %s", text, joinTexts(all))
		}
		f.Statuses = append(f.Statuses, status)
	}
	list, err := s.store.Versions(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	versionListing.describe(c, args, page, list)
	return list.Items, nil
}

func (s *Server) versionList(ctx context.Context, c *call, a versionListArgs) ([]api.DesiredStateVersion, error) {
	list, err := s.versions(ctx, c, a)
	return convertAll(list, versionOf), err
}

// versionDetailsList is the list with origin and changes of each version.
func (s *Server) versionDetailsList(ctx context.Context, c *call, a versionListArgs) ([]api.VersionDetails, error) {
	list, err := s.versions(ctx, c, a)
	return convertAll(list, versionDetailsOf), err
}

func (s *Server) versionDetails(ctx context.Context, c *call, a versionArgs) (api.VersionDetails, error) {
	v, err := s.store.Version(ctx, c.env(), a.Version)
	return versionDetailsOf(v), err
}

// intentSort are the columns by which intents are listed.
var intentSort = map[string]sortColumn[model.Intent]{
	"resource_type":     {textColumn, func(i model.Intent) string { return i.Resource.Parts().Type }},
	"agent":             {textColumn, func(i model.Intent) string { return string(i.Resource.Parts().Agent) }},
	"resource_id_value": {textColumn, func(i model.Intent) string { return i.Resource.Parts().Value }},
}

var intentListing = listing[model.Intent]{
	sort:    intentSort,
	id:      func(i model.Intent) string { return string(i.Resource) },
	filters: []string{"resource_type", "agent", "resource_id_value"},
}

// unversioned takes the version off an id that bounds a page: lists are ordered by ids without one.
func unversioned(id *string) *string {
	if id == nil {
		return nil
	}
	if rid, _, _, err := model.ParseResourceID(*id); err == nil {
		text := string(rid)
		return &text
	}
	return id
}

func (s *Server) versionResources(ctx context.Context, c *call, a versionResourcesArgs) ([]api.VersionedResource, error) {
	args := pageArgs{limit: a.Limit, first: unversioned(a.FirstID), last: unversioned(a.LastID), start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := intentListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.ResourceFilter{Types: a.Filter["resource_type"], Agents: a.Filter["agent"], Values: a.Filter["resource_id_value"]}
	list, err := s.store.VersionResources(ctx, c.env(), a.Version, f, page)
	if err != nil {
		return nil, err
	}
	intentListing.describe(c, args, page, list)
	return convertAll(list.Items, func(i model.Intent) api.VersionedResource { return versionedOf(i.Resource, a.Version, i.Requires) }), nil
}

func (s *Server) versionResource(ctx context.Context, c *call, a versionResourceArgs) (api.VersionedResourceDetails, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return api.VersionedResourceDetails{}, err
	}
	i, err := s.store.VersionResource(ctx, c.env(), a.Version, id)
	if err != nil {
		return api.VersionedResourceDetails{}, err
	}
	attributes, err := withRequires(i.Attributes, i.Requires)
	return api.VersionedResourceDetails{
		ResourceDetails: resourceDetailsOf(i.Resource, attributes), ResourceVersionID: i.Resource.WithVersion(a.Version), Version: a.Version,
	}, err
}

func (s *Server) diff(ctx context.Context, c *call, a diffArgs) ([]api.ResourceDiff, error) {
	if a.From >= a.To {
		return nil, invalidArgument("from_version", "value_error",
			"the versions to compare must be in order, from_version (%d) below to_version (%d)", a.From, a.To)
	}
	diffs, err := s.store.DiffVersions(ctx, c.env(), a.From, a.To)
	if err != nil {
		return nil, err
	}
	out := make([]api.ResourceDiff, len(diffs))
	for i, d := range diffs {
		if out[i], err = versionDiffOf(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// versionDiffOf compares two intents attribute by attribute.
func versionDiffOf(d model.ResourceDiff) (api.ResourceDiff, error) {
	read := func(i *model.Intent) (map[string]json.RawMessage, error) {
		if i == nil {
			return nil, nil
		}
		raw, err := withRequires(i.Attributes, i.Requires)
		if err != nil {
			return nil, err
		}
		var out map[string]json.RawMessage
		return out, json.Unmarshal(raw, &out)
	}
	from, err := read(d.From)
	if err != nil {
		return api.ResourceDiff{}, err
	}
	to, err := read(d.To)
	if err != nil {
		return api.ResourceDiff{}, err
	}
	out := api.ResourceDiff{ResourceID: string(d.Resource), Status: string(d.Status), Attributes: map[string]api.AttributeDiff{}}
	names := make(map[string]bool, len(from)+len(to))
	for name := range from {
		names[name] = true
	}
	for name := range to {
		names[name] = true
	}
	for name := range names {
		if !bytes.Equal(from[name], to[name]) {
			out.Attributes[name] = attributeDiffOf(from[name], to[name])
		}
	}
	return out, nil
}

func attributeDiffOf(from, to json.RawMessage) api.AttributeDiff {
	return api.AttributeDiff{
		FromValue: orNull(from), ToValue: orNull(to), FromValueCompare: compareText(from), ToValueCompare: compareText(to),
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// compareText is a value as text for a comparison by lines: nothing for null, indented JSON for lists and objects.
func compareText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	switch raw[0] {
	case '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
	case '{', '[':
		canonical, err := model.Canonical(raw)
		if err != nil {
			break
		}
		var b bytes.Buffer
		if json.Indent(&b, canonical, "", "    ") == nil {
			return b.String()
		}
	case 't':
		return "True"
	case 'f':
		return "False"
	}
	return string(raw)
}

// withRequires adds the requirements to the attributes, where clients look for them.
func withRequires(attributes json.RawMessage, requires []model.ResourceID) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(attributes, &object); err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	list, err := marshal(textsOf(requires))
	if err != nil {
		return nil, err
	}
	object["requires"] = list
	return marshal(object)
}

func textsOf[T ~string](in []T) []string {
	return convertAll(in, func(t T) string { return string(t) })
}

func versionOf(v model.VersionRow) api.DesiredStateVersion {
	out := api.DesiredStateVersion{
		Version: v.Number, Date: api.OptionalTime(v.Date), Total: v.Resources, Labels: []api.Label{}, Status: string(v.Status), Released: v.Released,
	}
	if kind, message := textOf(v.Metadata, "type"), textOf(v.Metadata, "message"); kind != "" && message != "" {
		out.Labels = append(out.Labels, api.Label{Name: kind, Message: message})
	}
	return out
}

func versionDetailsOf(v model.VersionRow) api.VersionDetails {
	return api.VersionDetails{
		DesiredStateVersion: versionOf(v), ReleasedAt: api.OptionalTime(v.ReleasedAt), Added: v.Added, Changed: v.Changed, Removed: v.Removed,
		Digest: v.Digest, Compile: optionalID(v.Job.UUID), Revision: revisionOf(v.Revision), Trace: string(v.Trace),
		Undeployable: textsOf(v.Undeployable), Blocked: textsOf(v.Blocked),
	}
}

func versionV1Of(v model.VersionRow) api.VersionV1 {
	metadata := v.Metadata
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	var base *int
	if raw, ok := metadata[model.MetadataPartialBase]; ok {
		_ = json.Unmarshal(raw, &base) // what is not a number is none
	}
	_, crossSet := metadata[model.MetadataCrossSet]
	return api.VersionV1{
		PartialBase: base, Version: v.Number, Environment: v.Environment.String(), Date: api.OptionalTime(v.Date), Released: v.Released,
		VersionInfo: map[string]map[string]json.RawMessage{"export_metadata": metadata}, IsSuitableForPartialCompiles: !crossSet, Total: v.Resources,
		Undeployable: textsOf(v.Undeployable), SkippedForUndeployable: textsOf(v.Blocked), Status: string(v.Status),
	}
}

func versionedOf(id model.ResourceID, version int, requires []model.ResourceID) api.VersionedResource {
	p := id.Parts()
	return api.VersionedResource{
		ResourceID: string(id), ResourceVersionID: id.WithVersion(version), Requires: textsOf(requires),
		IDDetails: api.ResourceIDDetails{ResourceType: p.Type, Agent: string(p.Agent), Attribute: p.Attribute, ResourceIDValue: p.Value},
	}
}

func resourceDetailsOf(id model.ResourceID, attributes json.RawMessage) api.ResourceDetails {
	p := id.Parts()
	return api.ResourceDetails{
		ResourceID: string(id), ResourceType: p.Type, Agent: string(p.Agent), IDAttribute: p.Attribute, IDAttributeValue: p.Value,
		Attributes: attributes,
	}
}

func resourceV1Of(env model.EnvironmentID, version int, i model.Intent) api.ResourceV1 {
	p := i.Resource.Parts()
	attributes, err := withRequires(i.Attributes, i.Requires)
	if err != nil { // what is stored was canonical
		attributes = i.Attributes
	}
	return api.ResourceV1{
		Environment: env.String(), Model: version, ResourceID: string(i.Resource), ResourceVersionID: i.Resource.WithVersion(version),
		ResourceType: p.Type, ResourceIDValue: p.Value, Agent: string(p.Agent), Attributes: attributes, AttributeHash: i.AttributeHash,
		IsUndefined: i.Undefined, ResourceSet: optionalText(i.Set),
	}
}
