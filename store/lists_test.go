package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

// pager is a list method and how to make bounds of its items.
type pager[T any] struct {
	list  func(context.Context, model.Page) (model.List[T], error)
	sorts map[string]func(T) string
	id    func(T) string
	want  int
}

// check walks through the list in pages of every sort and direction, both ways, and compares with the list as a whole.
func (p pager[T]) check(t *testing.T) {
	t.Helper()
	for sort, value := range p.sorts {
		for _, descending := range []bool{false, true} {
			name := fmt.Sprintf("%s descending=%t", sort, descending)
			get := func(lower, upper *model.Bound, limit int) model.List[T] {
				t.Helper()
				l, err := p.list(t.Context(), model.Page{Sort: sort, Descending: descending, Limit: limit, Lower: lower, Upper: upper})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return l
			}
			bound := func(item T) *model.Bound { return &model.Bound{Value: value(item), ID: p.id(item)} }
			all := get(nil, nil, 0)
			if len(all.Items) != p.want || all.Total != p.want || all.Before != 0 || all.After != 0 {
				t.Fatalf("%s: whole list has %d items, total %d, before %d, after %d, want %d items", name, len(all.Items), all.Total, all.Before, all.After, p.want)
			}
			const size = 2
			var forth []T
			for l := get(nil, nil, size); ; {
				if l.Before != len(forth) || l.Total != p.want || l.After != p.want-len(forth)-len(l.Items) {
					t.Fatalf("%s: page at %d has %d items, total %d, before %d, after %d", name, len(forth), len(l.Items), l.Total, l.Before, l.After)
				}
				forth = append(forth, l.Items...)
				if len(l.Items) == 0 {
					break
				}
				if last := bound(l.Items[len(l.Items)-1]); descending {
					l = get(nil, last, size)
				} else {
					l = get(last, nil, size)
				}
			}
			if d := cmp.Diff(all.Items, forth, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("%s: pages forward differ from the whole list: %s", name, d)
			}
			back := []T{all.Items[len(all.Items)-1]}
			for len(back) < p.want {
				var l model.List[T]
				if first := bound(back[0]); descending {
					l = get(first, nil, size)
				} else {
					l = get(nil, first, size)
				}
				if len(l.Items) == 0 || l.Before+len(l.Items)+l.After != p.want || l.After != len(back) {
					t.Fatalf("%s: page back from %d has %d items, before %d, after %d", name, len(back), len(l.Items), l.Before, l.After)
				}
				back = append(append([]T{}, l.Items...), back...)
			}
			if d := cmp.Diff(all.Items, back); d != "" {
				t.Fatalf("%s: pages back differ from the whole list: %s", name, d)
			}
		}
	}
	if _, err := p.list(t.Context(), model.Page{Sort: "no such column"}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an unknown sort gives %v, want invalid", err)
	}
	both := model.Bound{}
	if _, err := p.list(t.Context(), model.Page{Lower: &both, Upper: &both}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("two bounds give %v, want invalid", err)
	}
}

func rfc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// world is an environment with some of everything.
type world struct {
	s     *store.Store
	env   model.EnvironmentID
	lease model.Lease
	now   time.Time
}

func newWorld(t *testing.T) world {
	t.Helper()
	s := storetest.New(t)
	w := world{s: s, env: storetest.Environment(t, s, storetest.Watching("https://git.example.org/a.git", "a")).ID, now: storetest.Now()}
	storetest.Version(t, s, w.env, true, storetest.Intents(t, "a=1", "b=1 > a", "db/c=1", "d=1 > b", "e=?", "f=1 > e")...)
	storetest.Version(t, s, w.env, true, storetest.Intents(t, "a=2", "b=1 > a", "db/c=1", "e=?", "f=1 > e")...)
	storetest.Version(t, s, w.env, false, storetest.Intents(t, "a=2")...)
	w.lease = storetest.Lease(t, s, w.env)
	return w
}

func TestListsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, env := w.s, w.env

	t.Run("resources", func(t *testing.T) {
		pager[model.ResourceRow]{
			list: func(ctx context.Context, p model.Page) (model.List[model.ResourceRow], error) {
				return s.Resources(ctx, env, model.ResourceFilter{}, p)
			},
			sorts: map[string]func(model.ResourceRow) string{
				"resource_type":     func(r model.ResourceRow) string { return r.State.Resource.Parts().Type },
				"agent":             func(r model.ResourceRow) string { return string(r.State.Resource.Parts().Agent) },
				"resource_id_value": func(r model.ResourceRow) string { return r.State.Resource.Parts().Value },
				"resource_id":       func(r model.ResourceRow) string { return string(r.State.Resource) },
				"status":            func(r model.ResourceRow) string { return string(r.State.Status()) },
			},
			id: func(r model.ResourceRow) string { return string(r.State.Resource) }, want: 6,
		}.check(t)
	})
	t.Run("version resources", func(t *testing.T) {
		pager[model.Intent]{
			list: func(ctx context.Context, p model.Page) (model.List[model.Intent], error) {
				return s.VersionResources(ctx, env, 1, model.ResourceFilter{}, p)
			},
			sorts: map[string]func(model.Intent) string{
				"resource_type":     func(r model.Intent) string { return r.Resource.Parts().Type },
				"agent":             func(r model.Intent) string { return string(r.Resource.Parts().Agent) },
				"resource_id_value": func(r model.Intent) string { return r.Resource.Parts().Value },
			},
			id: func(r model.Intent) string { return string(r.Resource) }, want: 6,
		}.check(t)
	})
	t.Run("versions", func(t *testing.T) {
		number := func(v model.VersionRow) string { return strconv.Itoa(v.Number) }
		pager[model.VersionRow]{
			list: func(ctx context.Context, p model.Page) (model.List[model.VersionRow], error) {
				return s.Versions(ctx, env, model.VersionFilter{}, p)
			},
			sorts: map[string]func(model.VersionRow) string{"version": number}, id: number, want: 3,
		}.check(t)
	})
	t.Run("compile reports", func(t *testing.T) {
		for i := range 5 {
			job := model.CompileJob{ID: model.JobID{UUID: uuid.New()}, Environment: env, RequestedAt: w.now.Add(time.Duration(i/2) * time.Microsecond), ExporterPlugin: strconv.Itoa(i)}
			if err := s.RequestCompile(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.ClaimCompileJob(t.Context(), "w", w.now.Add(time.Hour), time.Minute); err != nil {
			t.Fatal(err)
		}
		pager[model.CompileReport]{
			list: func(ctx context.Context, p model.Page) (model.List[model.CompileReport], error) {
				return s.CompileReports(ctx, env, model.CompileFilter{}, p)
			},
			sorts: map[string]func(model.CompileReport) string{
				"requested": func(r model.CompileReport) string { return rfc(r.Job.RequestedAt) },
				"started":   func(r model.CompileReport) string { return rfc(r.Job.StartedAt) },
			},
			id: func(r model.CompileReport) string { return r.Job.ID.String() }, want: 5,
		}.check(t)
	})
	t.Run("agents", func(t *testing.T) {
		if err := s.SaveAgents(t.Context(), []model.AgentStatus{
			{Environment: env, Name: "x", Up: true, Process: "p1", SessionID: "s1", Since: w.now}, {Environment: env, Name: "y", Process: "p0"},
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetAgentsPaused(t.Context(), env, []model.AgentName{"y", "unknown"}, true, "me", w.now); err != nil {
			t.Fatal(err)
		}
		pager[model.AgentStatus]{
			list: func(ctx context.Context, p model.Page) (model.List[model.AgentStatus], error) {
				return s.Agents(ctx, env, model.AgentFilter{}, p)
			},
			sorts: map[string]func(model.AgentStatus) string{
				"name":         func(a model.AgentStatus) string { return string(a.Name) },
				"process_name": func(a model.AgentStatus) string { return a.Process },
				"paused":       func(a model.AgentStatus) string { return strconv.FormatBool(a.Paused) },
				"status": func(a model.AgentStatus) string {
					switch {
					case a.Paused:
						return "paused"
					case a.Up:
						return "up"
					}
					return "down"
				},
			},
			id: func(a model.AgentStatus) string { return string(a.Name) }, want: 4,
		}.check(t)
		l, err := s.Agents(t.Context(), env, model.AgentFilter{Statuses: []string{"paused", "up"}, Processes: []string{"P"}}, model.Page{})
		if err != nil || len(l.Items) != 2 {
			t.Errorf("paused or up agents = %v, %v, want x and y", l.Items, err)
		}
	})
	t.Run("parameters and facts", func(t *testing.T) {
		var params []model.Parameter
		for i, name := range []string{"p", "q", "r", "r", "r"} {
			p := model.Parameter{
				Name: name, Value: "v", Source: model.SourceUser, Updated: w.now.Add(time.Duration(i) * time.Second),
				Metadata: map[string]json.RawMessage{"k": json.RawMessage(strconv.Itoa(i))},
			}
			if i > 2 {
				p.Resource = storetest.ID("web", fmt.Sprint("/", i))
			}
			params = append(params, p)
		}
		stored, queued, err := s.SetParameters(t.Context(), env, params, false, model.CompileJob{})
		if err != nil || queued || len(stored) != len(params) {
			t.Fatalf("SetParameters = %v, queued %t, %v", stored, queued, err)
		}
		id := func(p model.Parameter) string { return p.ID.String() }
		pager[model.Parameter]{
			list: func(ctx context.Context, p model.Page) (model.List[model.Parameter], error) {
				return s.Parameters(ctx, env, model.ParameterFilter{}, p)
			},
			sorts: map[string]func(model.Parameter) string{
				"name":    func(p model.Parameter) string { return p.Name },
				"source":  func(p model.Parameter) string { return string(p.Source) },
				"updated": func(p model.Parameter) string { return rfc(p.Updated) },
			},
			id: id, want: 3,
		}.check(t)
		pager[model.Parameter]{
			list: func(ctx context.Context, p model.Page) (model.List[model.Parameter], error) {
				return s.Facts(ctx, env, model.ParameterFilter{}, p)
			},
			sorts: map[string]func(model.Parameter) string{
				"name":        func(p model.Parameter) string { return p.Name },
				"resource_id": func(p model.Parameter) string { return string(p.Resource) },
			},
			id: id, want: 2,
		}.check(t)
		l, err := s.Parameters(t.Context(), env, model.ParameterFilter{Metadata: map[string]json.RawMessage{"k": json.RawMessage("1")}}, model.Page{})
		if err != nil || len(l.Items) != 1 || l.Items[0].Name != "q" {
			t.Errorf("parameters with k=1 = %v, %v, want q", l.Items, err)
		}
		facts, err := s.ResourceFacts(t.Context(), env, storetest.ID("web", "/3"))
		if err != nil || len(facts) != 1 {
			t.Errorf("ResourceFacts = %v, %v, want one", facts, err)
		}
	})
	t.Run("deliveries", func(t *testing.T) {
		for i := range 5 {
			fresh, err := s.RecordDelivery(t.Context(), model.Delivery{
				Repository: "a", Key: strconv.Itoa(i), ReceivedAt: w.now.Add(time.Duration(i/2) * time.Second), Headers: map[string]string{"h": "v"}, Body: []byte("x"),
			})
			if err != nil || !fresh {
				t.Fatalf("RecordDelivery = %t, %v", fresh, err)
			}
		}
		pager[model.Delivery]{
			list: func(ctx context.Context, p model.Page) (model.List[model.Delivery], error) {
				return s.Deliveries(ctx, model.DeliveryFilter{Repository: "a"}, p)
			},
			sorts: map[string]func(model.Delivery) string{"received": func(d model.Delivery) string { return rfc(d.ReceivedAt) }},
			id:    func(d model.Delivery) string { return d.Key }, want: 5,
		}.check(t)
	})
	t.Run("history", func(t *testing.T) {
		a := storetest.ID("web", "/a")
		pager[model.HistoryEntry]{
			list: func(ctx context.Context, p model.Page) (model.List[model.HistoryEntry], error) {
				return s.ResourceHistory(ctx, env, a, p)
			},
			sorts: map[string]func(model.HistoryEntry) string{"date": func(h model.HistoryEntry) string { return rfc(h.Date) }},
			id:    func(h model.HistoryEntry) string { return h.AttributeHash }, want: 2,
		}.check(t)
	})
}

func TestListsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	values := func(f model.ResourceFilter) []string {
		t.Helper()
		l, err := w.s.Resources(t.Context(), w.env, f, model.Page{Sort: "resource_id_value"})
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, r := range l.Items {
			out = append(out, r.State.Resource.Parts().Value+" "+string(r.State.Status()))
		}
		return out
	}
	tests := []struct {
		name   string
		filter model.ResourceFilter
		want   []string
	}{
		{"all", model.ResourceFilter{}, []string{"/a available", "/b available", "/c available", "/d orphaned", "/e undefined", "/f skipped_for_undefined"}},
		{"agent", model.ResourceFilter{Agents: []string{"DB"}}, []string{"/c available"}},
		{"values", model.ResourceFilter{Values: []string{"/A", "/b"}}, []string{"/a available", "/b available"}},
		{"a wildcard is text", model.ResourceFilter{Values: []string{"%"}}, []string{}},
		{"type", model.ResourceFilter{Types: []string{"dir"}}, []string{}},
		{"status", model.ResourceFilter{Statuses: []model.Status{model.StatusOrphaned}}, []string{"/d orphaned"}},
		{"not status", model.ResourceFilter{ExcludeStatuses: []model.Status{model.StatusOrphaned, model.StatusAvailable}}, []string{"/e undefined", "/f skipped_for_undefined"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, values(tt.filter)); d != "" {
				t.Error(d)
			}
		})
	}
	summary, err := w.s.DeploySummary(t.Context(), w.env)
	if err != nil {
		t.Fatal(err)
	}
	want := model.DeploySummary{Total: 5, ByStatus: map[model.Status]int{model.StatusAvailable: 3, model.StatusUndefined: 1, model.StatusSkippedForUndefined: 1}}
	if d := cmp.Diff(want, summary); d != "" {
		t.Error(d)
	}
	released := true
	versions, err := w.s.Versions(t.Context(), w.env, model.VersionFilter{Released: &released, Statuses: []model.VersionStatus{model.VersionCandidate}}, model.Page{})
	if err != nil || len(versions.Items) != 2 {
		t.Errorf("released candidates = %v, %v, want two", versions.Items, err)
	}
}

func TestResourceDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, err := w.s.Resource(t.Context(), w.env, storetest.ID("web", "/b"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 2 || string(got.Attributes) != `{"content":"1"}` || !got.FirstGenerated.Equal(w.now) {
		t.Errorf("Resource(b) = %+v", got)
	}
	if d := cmp.Diff(map[model.ResourceID]model.Status{storetest.ID("web", "/a"): model.StatusAvailable}, got.RequiresStatus); d != "" {
		t.Errorf("requires: %s", d)
	}
	orphan, err := w.s.Resource(t.Context(), w.env, storetest.ID("web", "/d"))
	if err != nil || orphan.Version != 1 || orphan.State.Status() != model.StatusOrphaned {
		t.Errorf("Resource(d) = %+v, %v, want the orphan as of version 1", orphan, err)
	}
	a, err := w.s.Resource(t.Context(), w.env, storetest.ID("web", "/a"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[model.ResourceID]model.Status{storetest.ID("web", "/b"): model.StatusAvailable}, a.ProvidesStatus); d != "" {
		t.Errorf("provides: %s", d)
	}
	if _, err := w.s.Resource(t.Context(), w.env, storetest.ID("web", "/none")); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("Resource(none) = %v, want not found", err)
	}
}
