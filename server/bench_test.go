package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store/storetest"
)

// BenchmarkResourceList reads one full page out of ten thousand resources, store included.
func BenchmarkResourceList(b *testing.B) {
	st := storetest.New(b)
	e := storetest.Environment(b, st)
	storetest.Version(b, st, e.ID, true, storetest.Many(b, 10_000, nil)...)
	s, err := server.New(server.Config{Store: st, RequestTimeout: 10 * time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, path string }{
		{"page", "/api/v2/resource?sort=agent.asc"},
		{"summary", "/api/v2/resource?limit=1&deploy_summary=true"},
		{"one", "/api/v3/resource/" + api.Segment(string(storetest.ID("host3.example.org", "/srv/data/file-000003")))},
		{"docs", "/api/v2/docs?format=openapi"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, c.path, nil)
				r.Host = "localhost"
				r.Header.Set(api.EnvironmentHeader, e.ID.String())
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}
