package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
)

// fakeStore has one environment and lists of fixed content: for tests of decoding, envelopes and links alone. A method that a
// test does not expect panics on the nil interface.
type fakeStore struct {
	Store
	environment model.Environment
	versions    []model.VersionRow
	page        model.Page
	filter      model.VersionFilter
	err         error
	hints       chan model.Hint
}

var testEnvironment = model.EnvironmentID{UUID: uuid.MustParse("11111111-2222-3333-4444-555555555555")}

func (f *fakeStore) Environment(_ context.Context, id model.EnvironmentID) (model.Environment, error) {
	if id != f.environment.ID {
		return model.Environment{}, fmt.Errorf("environment %s: %w", id, model.ErrNotFound)
	}
	return f.environment, nil
}

func (f *fakeStore) Versions(_ context.Context, _ model.EnvironmentID, filter model.VersionFilter, p model.Page) (model.List[model.VersionRow], error) {
	f.page, f.filter = p, filter
	if f.err != nil {
		return model.List[model.VersionRow]{}, f.err
	}
	return model.List[model.VersionRow]{Items: f.versions, Total: 10, Before: 3, After: 5}, nil
}

func (f *fakeStore) SetSetting(_ context.Context, _ model.EnvironmentID, name string, value json.RawMessage) error {
	f.environment.Settings = map[string]json.RawMessage{name: value}
	return f.err
}

func (f *fakeStore) DatabaseStatus(context.Context) (model.DatabaseStatus, error) {
	return model.DatabaseStatus{Connected: true}, f.err
}

func (f *fakeStore) Resource(_ context.Context, _ model.EnvironmentID, id model.ResourceID) (model.ResourceDetails, error) {
	return model.ResourceDetails{
		ResourceRow: model.ResourceRow{Version: 3, State: model.ResourceState{Resource: id}}, Attributes: json.RawMessage(`{"n":12345678901234567890}`),
	}, f.err
}

func (f *fakeStore) Subscribe(context.Context, ...model.Topic) <-chan model.Hint { return f.hints }

func newFake() *fakeStore {
	return &fakeStore{
		environment: model.Environment{ID: testEnvironment, Name: "prod"},
		versions: []model.VersionRow{
			{Version: model.Version{Number: 7, Resources: 2, Metadata: map[string]json.RawMessage{"type": json.RawMessage(`"api"`), "message": json.RawMessage(`"a <b>"`)}}, Status: model.VersionActive},
			{Version: model.Version{Number: 6, Date: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}, Status: model.VersionRetired},
		},
		hints: make(chan model.Hint),
	}
}

func newTestServer(t *testing.T, f *fakeStore, changes ...func(*Config)) *Server {
	t.Helper()
	c := Config{Store: f, Now: func() time.Time { return time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC) }}
	for _, change := range changes {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// do sends a request about the test environment; header lines are "Name: value".
func do(t *testing.T, s *Server, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost:8888"
	r.Header.Set("X-Inmanta-tid", testEnvironment.String())
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if value == "" {
			r.Header.Del(name)
			continue
		}
		if strings.EqualFold(name, "Host") {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func decodeJSON(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("the answer %d %q is not JSON: %v", w.Code, w.Body, err)
	}
	return v
}

func status(t *testing.T, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want {
		t.Fatalf("status = %d, want %d: %s", w.Code, want, w.Body)
	}
}
