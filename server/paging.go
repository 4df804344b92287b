package server

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// maxPage is the greatest page size, and the default one.
const maxPage = 1000

// columnKind says how the values of a column are written in bounds.
type columnKind int

const (
	textColumn columnKind = iota
	timeColumn
	intColumn
	boolColumn
	uuidColumn
)

// listing describes a list: which columns it can be sorted by, what breaks ties, and which filters it has.
type listing[T any] struct {
	// sort maps the name of a column to how its value is read from an item.
	sort map[string]sortColumn[T]
	// id reads the id column; nil when the list has none.
	id      func(T) string
	idKind  columnKind
	filters []string
}

type sortColumn[T any] struct {
	kind  columnKind
	value func(T) string
}

// pageArgs are the arguments that lists have in common.
type pageArgs struct {
	limit       *int
	first, last *string
	start, end  *string
	filter      map[string][]string
	sort        string
	keep        url.Values // further arguments to repeat in links
}

// page checks the arguments and makes what the store wants to know.
func (l listing[T]) page(a pageArgs) (model.Page, error) {
	p := model.Page{Limit: maxPage}
	if a.limit != nil {
		switch {
		case *a.limit < 0:
			return p, invalidArgument("limit", "value_error", "limit must not be negative")
		case *a.limit > maxPage:
			return p, invalidArgument("limit", "value_error", "limit parameter can not exceed %d, got %d", maxPage, *a.limit)
		}
		p.Limit = *a.limit
	}
	column, direction, ok := strings.Cut(a.sort, ".")
	column = strings.ToLower(column)
	c, known := l.sort[column]
	direction = strings.ToLower(direction)
	if !ok || !known || direction != "asc" && direction != "desc" {
		names := make([]string, 0, len(l.sort))
		for name := range l.sort {
			names = append(names, name)
		}
		slices.Sort(names)
		return p, invalidArgument("sort", "value_error", "sort %q is not valid: use <column>.asc or <column>.desc with one of %s", a.sort, strings.Join(names, ", "))
	}
	p.Sort, p.Descending = column, direction == "desc"

	lower, upper := a.start != nil || a.first != nil, a.end != nil || a.last != nil
	if lower && upper {
		return p, invalidArgument("start", "value_error", "only one of start/first_id and end/last_id may be given")
	}
	var err error
	if lower {
		p.Lower, err = l.bound(c.kind, a.start, a.first)
	}
	if upper {
		p.Upper, err = l.bound(c.kind, a.end, a.last)
	}
	if err != nil {
		return p, err
	}
	for key := range a.filter {
		if !slices.Contains(l.filters, key) {
			if len(l.filters) == 0 {
				return p, invalidArgument("filter", "value_error", "this list has no filters, got %s", key)
			}
			return p, invalidArgument("filter", "value_error", "filter %s is not supported; supported are %s", key, strings.Join(l.filters, ", "))
		}
	}
	return p, nil
}

func (l listing[T]) bound(kind columnKind, value, id *string) (*model.Bound, error) {
	b := &model.Bound{}
	if value != nil {
		v, err := boundValue(kind, *value)
		if err != nil {
			return nil, err
		}
		b.Value = v
	}
	if id != nil {
		if l.id == nil {
			return nil, invalidArgument("first_id", "extra_forbidden", "this list has no ids to page by")
		}
		if l.idKind == uuidColumn {
			if _, err := uuid.Parse(*id); err != nil {
				return nil, invalidArgument("first_id", "type_error", "%q is not a uuid", *id)
			}
		}
		b.ID = *id
	}
	return b, nil
}

// boundValue checks a bound and brings it into the form that model.Bound has.
func boundValue(kind columnKind, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	switch kind {
	case timeColumn:
		t, err := api.ParseTime(text)
		if err != nil {
			return "", invalidArgument("start", "type_error", "%v", err)
		}
		return t.Format(time.RFC3339Nano), nil
	case intColumn:
		n, err := strconv.Atoi(text)
		if err != nil {
			return "", invalidArgument("start", "type_error", "%q is not a whole number", text)
		}
		return strconv.Itoa(n), nil
	case boolColumn:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return "", invalidArgument("start", "type_error", "%q is neither true nor false", text)
		}
		return strconv.FormatBool(b), nil
	case textColumn, uuidColumn:
	}
	return text, nil
}

// describe sets the links and the metadata of a page.
func (l listing[T]) describe(c *call, a pageArgs, p model.Page, list model.List[T]) {
	size := p.Limit
	if size == 0 {
		size = len(list.Items)
	}
	if c.metadata == nil {
		c.metadata = &api.Metadata{}
	}
	c.metadata.Total, c.metadata.Before, c.metadata.After, c.metadata.PageSize = &list.Total, &list.Before, &list.After, &size

	base := url.Values{}
	maps.Copy(base, a.keep)
	base.Set("limit", strconv.Itoa(p.Limit))
	base.Set("sort", p.Sort+"."+directionOf(p.Descending))
	for k, v := range a.filter {
		base["filter."+k] = v
	}
	link := func(side string, value, id *string) string {
		q := url.Values{}
		maps.Copy(q, base)
		idName := map[string]string{"start": "first_id", "end": "last_id"}[side]
		if value != nil {
			q.Set(side, *value)
		}
		if id != nil {
			q.Set(idName, *id)
		}
		return c.path + "?" + q.Encode()
	}
	edge := func(side string, item T) string {
		value := l.sort[p.Sort].value(item)
		if l.id == nil {
			return link(side, &value, nil)
		}
		id := l.id(item)
		return link(side, &value, &id)
	}
	links := &api.Links{Self: link("", nil, nil)}
	switch {
	case p.Lower != nil:
		links.Self = link("start", a.start, a.first)
	case p.Upper != nil:
		links.Self = link("end", a.end, a.last)
	}
	ahead, behind := "start", "end"
	if p.Descending {
		ahead, behind = behind, ahead
	}
	if list.After > 0 && len(list.Items) > 0 {
		links.Next = edge(ahead, list.Items[len(list.Items)-1])
	}
	if list.Before > 0 {
		links.First = link("", nil, nil)
		if len(list.Items) > 0 {
			links.Prev = edge(behind, list.Items[0])
		}
	}
	c.links = links
}

func directionOf(descending bool) string {
	if descending {
		return "desc"
	}
	return "asc"
}

// textTime is a time as a sort value.
func textTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// filterTimes reads lt:, le:, gt: and ge: operands of times.
func filterTimes(name string, values []string) (model.TimeRange, error) {
	var r model.TimeRange
	for _, v := range values {
		operator, text, ok := strings.Cut(v, ":")
		t, err := api.ParseTime(text)
		if !ok || err != nil {
			return r, invalidArgument("filter", "value_error", "filter %s: %q is not lt:, le:, gt: or ge: and a time", name, v)
		}
		switch strings.ToLower(operator) {
		case "gt":
			r.After = later(r.After, t)
		case "ge":
			r.From = later(r.From, t)
		case "lt":
			r.Before = earlier(r.Before, t)
		case "le":
			r.Until = earlier(r.Until, t)
		default:
			return r, invalidArgument("filter", "value_error", "filter %s: %q does not begin with lt:, le:, gt: or ge:", name, v)
		}
	}
	return r, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// filterInts reads lt:, le:, gt: and ge: operands of numbers.
func filterInts(name string, values []string) (model.IntRange, error) {
	var r model.IntRange
	for _, v := range values {
		operator, text, _ := strings.Cut(v, ":")
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return r, invalidArgument("filter", "value_error", "filter %s: %q is not lt:, le:, gt: or ge: and a number", name, v)
		}
		switch strings.ToLower(operator) {
		case "gt":
			if r.Above == nil || n > *r.Above {
				r.Above = &n
			}
		case "ge":
			if r.AtLeast == nil || n > *r.AtLeast {
				r.AtLeast = &n
			}
		case "lt":
			if r.Below == nil || n < *r.Below {
				r.Below = &n
			}
		case "le":
			if r.AtMost == nil || n < *r.AtMost {
				r.AtMost = &n
			}
		default:
			return r, invalidArgument("filter", "value_error", "filter %s: %q does not begin with lt:, le:, gt: or ge:", name, v)
		}
	}
	return r, nil
}

// filterBool reads a filter that takes one truth value.
func filterBool(name string, values []string) (*bool, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 {
		return nil, invalidArgument("filter", "value_error", "filter %s takes one value", name)
	}
	b, err := (argValue{texts: values}).boolean()
	if err != nil {
		return nil, invalidArgument("filter", "value_error", "filter %s: %v", name, err)
	}
	return &b, nil
}

// filterStatuses reads a state filter: values with an exclamation mark exclude.
func filterStatuses(values []string) (include, exclude []model.Status, err error) {
	for _, v := range values {
		name, negated := strings.CutPrefix(v, "!")
		status := model.Status(strings.ToLower(name))
		if !slices.Contains(allStatuses, status) {
			return nil, nil, invalidArgument("filter", "value_error", "filter status: %q is not a resource status; there are %s", name, joinTexts(allStatuses))
		}
		if negated {
			exclude = append(exclude, status)
		} else {
			include = append(include, status)
		}
	}
	for _, s := range include {
		if slices.Contains(exclude, s) {
			return nil, nil, invalidArgument("filter", "value_error", "filter status: %s is both asked for and excluded", s)
		}
	}
	return include, exclude, nil
}

// allStatuses are the display statuses, in the order in which they are documented.
var allStatuses = []model.Status{
	model.StatusAvailable, model.StatusDeploying, model.StatusDeployed, model.StatusFailed, model.StatusSkipped, model.StatusUnavailable,
	model.StatusUndefined, model.StatusSkippedForUndefined, model.StatusNonCompliant, model.StatusOrphaned, "cancelled",
}

func joinTexts[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

// convertAll maps a list's items.
func convertAll[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

// named converts texts to a named text type.
func named[T ~string](texts []string) []T { return convertAll(texts, func(s string) T { return T(s) }) }
