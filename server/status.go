package server

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/intendant/intendant/api"
)

// serverStatus tells what the server is and how its parts are.
func (s *Server) serverStatus(ctx context.Context, c *call, _ struct{}) (api.ServerStatus, error) {
	out := api.ServerStatus{
		Product: "Intendant", Edition: "Open source", Version: s.config.Version, License: "Apache-2.0",
		Extensions: []api.ExtensionInfo{{Name: "core", Version: s.config.Version, Package: "intendant"}},
		Slices:     []api.SliceStatus{}, Features: []api.Feature{}, Status: "OK",
	}
	answers := s.ready(ctx)
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		slice := api.SliceStatus{Name: name, Status: map[string]any{}, ReportedStatus: "OK"}
		if text := answers[name]; text != "ok" {
			slice.ReportedStatus, slice.Message = "Error", &text
			out.Status = "Error"
		}
		if name == "database" && slice.ReportedStatus == "OK" {
			d, err := s.store.DatabaseStatus(ctx)
			if err == nil {
				out.PostgresqlVersion = &d.Version
				slice.Status = map[string]any{
					"connected": d.Connected, "database": d.Database, "host": d.Host, "max_pool": d.MaxPool,
					"open_connections": d.OpenPool, "free_pool": d.FreePool, "free_connections": d.FreePool,
				}
			}
		}
		out.Slices = append(out.Slices, slice)
	}
	out.Slices = append(out.Slices, api.SliceStatus{
		Name: "transport", ReportedStatus: "OK",
		Status: map[string]any{"running": !s.draining.Load(), "event_streams": s.events.count(), "uptime": c.now.Sub(s.started).Seconds()},
	})
	for _, slice := range slices.Sorted(maps.Keys(s.config.Features)) {
		for _, name := range slices.Sorted(maps.Keys(s.config.Features[slice])) {
			out.Features = append(out.Features, api.Feature{Slice: slice, Name: name, Value: s.config.Features[slice][name]})
		}
	}
	return out, nil
}

func (s *Server) health(ctx context.Context, c *call, _ struct{}) (none, error) {
	for _, text := range s.ready(ctx) {
		if text != "ok" {
			c.status = http.StatusInternalServerError
		}
	}
	return none{}, nil
}

type featureArgs struct {
	Slice string `arg:"slice_name"`
	Name  string `arg:"feature_name"`
}

func (s *Server) boolFeature(_ context.Context, _ *call, a featureArgs) (bool, error) {
	value, ok := s.config.Features[a.Slice][a.Name]
	if !ok {
		return false, refuse(http.StatusNotFound, "there is no feature "+a.Slice+"."+a.Name)
	}
	b, ok := value.(bool)
	if !ok {
		return false, invalidArgument("feature_name", "value_error", "the feature %s.%s is not a switch", a.Slice, a.Name)
	}
	return b, nil
}

type docsArgs struct {
	Format string `arg:"format" default:"swagger" enum:"openapi,swagger"`
}

// docsPage serves the OpenAPI document, or a page that lists the endpoints.
func (s *Server) docsPage(w http.ResponseWriter, r *http.Request, _ *call, a docsArgs) error {
	if a.Format == "openapi" {
		write(w, r, http.StatusOK, jsonType, append(append([]byte(`{"data":`), s.openapi...), '}'))
		return nil
	}
	write(w, r, http.StatusOK, "text/html; charset=utf-8", s.docs)
	return nil
}
