package server

import (
	"context"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/intendant/intendant/api"
)

// checkTimeout is how long a readiness check may take.
const checkTimeout = 2 * time.Second

// others are the routes beside the API.
func (s *Server) others() []other {
	get := func(path string, h http.HandlerFunc) []other {
		return []other{{http.MethodGet, path, h}, {http.MethodHead, path, h}}
	}
	out := append(get("/healthz", s.healthz), get("/readyz", s.readyz)...)
	if s.config.Gatherer != nil {
		h := promhttp.HandlerFor(s.config.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
		out = append(out, get("/metrics", func(w http.ResponseWriter, r *http.Request) {
			recordOf(r).endpoint = "metrics"
			h.ServeHTTP(w, r)
		})...)
	}
	home := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/console", http.StatusFound) }
	out = append(out, get("/", home)...)
	out = append(out, get("/dashboard", home)...)
	out = append(out, get("/dashboard/*path", home)...)
	out = append(out, get("/console", s.console)...)
	return append(out, get("/console/*path", s.console)...)
}

// healthz tells that the process serves; it asks nobody.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	recordOf(r).endpoint = "healthz"
	w.Header().Set("Cache-Control", "no-store")
	write(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

// readyz tells whether every part is ready, and which is not.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	recordOf(r).endpoint = "readyz"
	w.Header().Set("Cache-Control", "no-store")
	answers := s.ready(r.Context())
	status := http.StatusOK
	for _, text := range answers {
		if text != "ok" {
			status = http.StatusServiceUnavailable
		}
	}
	body, err := marshal(answers)
	if err != nil { // a map of texts always encodes
		body = nil
	}
	write(w, r, status, jsonType, body)
}

// ready runs all checks at once and returns "ok" or the cause, by name.
func (s *Server) ready(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	checks := append([]Check{{Name: "database", Run: func(ctx context.Context) error {
		_, err := s.store.DatabaseStatus(ctx)
		return err
	}}}, s.config.Ready...)
	answers := make(map[string]string, len(checks)+1)
	var mu sync.Mutex // guards answers
	var wg sync.WaitGroup
	for _, c := range checks {
		wg.Go(func() {
			text := "ok"
			if err := c.Run(ctx); err != nil {
				text = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			answers[c.Name] = text
		})
	}
	wg.Wait()
	if s.draining.Load() {
		answers["server"] = "stopping"
	}
	return answers
}

// console serves the console's files. Paths that are no file are places inside the console, and get its page.
func (s *Server) console(w http.ResponseWriter, r *http.Request) {
	recordOf(r).endpoint = "console"
	if s.config.Console == nil {
		writeError(w, r, &api.Error{
			Status: http.StatusNotFound, Code: api.CodeNotFound, TraceID: string(recordOf(r).trace),
			Message: "This program was built without the console. The API is at /api/v2/docs.",
		})
		return
	}
	name, inside := strings.CutPrefix(path.Clean(r.URL.Path), "/console")
	if !inside {
		writeError(w, r, notFound(r))
		return
	}
	name = strings.Trim(name, "/")
	if name == "" {
		name = "index.html"
	}
	content, err := readConsole(s.config.Console, name)
	if err != nil {
		if path.Ext(name) != "" && strings.HasPrefix(name, "assets/") {
			writeError(w, r, notFound(r))
			return
		}
		name = "index.html"
		if content, err = readConsole(s.config.Console, name); err != nil {
			writeError(w, r, notFound(r))
			return
		}
	}
	// The build puts a digest into the names of what lies under assets.
	cache := "no-cache"
	if strings.HasPrefix(name, "assets/") {
		cache = "public, max-age=31536000, immutable"
	}
	w.Header().Set("Cache-Control", cache)
	write(w, r, http.StatusOK, contentType(name), content)
}

func readConsole(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(files, name)
}

// contentType is by a list of our own: the machine's would differ from host to host.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json; charset=utf-8"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".ttf":
		return "font/ttf"
	case ".wasm":
		return "application/wasm"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
