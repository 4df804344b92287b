package server

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// webhookTimeout is how long a forge may take to send a delivery.
const webhookTimeout = 30 * time.Second

// record is what is written down about a request.
type record struct {
	endpoint string
	actor    string
	trace    model.TraceID
	written  bool
}

type recordKey struct{}

// recordOf returns the request's record; one that nobody reads when the request did not come through wrap.
func recordOf(r *http.Request) *record {
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		return rec
	}
	return &record{}
}

// TraceOf returns the trace id of a request that comes through the server, for handlers that are mounted in it.
func TraceOf(r *http.Request) model.TraceID { return recordOf(r).trace }

// watched notes what is written.
type watched struct {
	http.ResponseWriter
	rec    *record
	status int
	bytes  int64
}

func (w *watched) WriteHeader(status int) {
	if !w.rec.written {
		w.status = status
		w.rec.written = status >= http.StatusOK
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.rec.written {
		w.status, w.rec.written = http.StatusOK, true
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush sends what is buffered.
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack hands the connection over, for sessions of agents.
func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status, w.rec.written = http.StatusSwitchingProtocols, true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// securityHeaders are sent with every answer. Styles may be inline, as component libraries set them; scripts may not.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
		"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
	"X-Content-Type-Options":     "nosniff",
	"X-Frame-Options":            "DENY",
	"Referrer-Policy":            "no-referrer",
	"Cross-Origin-Opener-Policy": "same-origin",
}

// wrap puts around the router what every request goes through.
func (s *Server) wrap(router http.Handler) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hostAllowed(r) {
			writeError(w, r, &api.Error{
				Status: http.StatusForbidden, Code: api.CodeForbidden, TraceID: string(recordOf(r).trace),
				Message: prefix(http.StatusForbidden) + "this server has no authentication and does not answer to the name " +
					strconv.Quote(r.Host) + ": use localhost or an IP address, or add the name to the allowed hosts",
			})
			return
		}
		if s.cors(w, r) {
			return
		}
		if err := s.guard.Check(r); err != nil {
			writeError(w, r, &api.Error{
				Status: http.StatusForbidden, Code: api.CodeForbidden, TraceID: string(recordOf(r).trace),
				Message: prefix(http.StatusForbidden) + err.Error(),
			})
			return
		}
		switch {
		case strings.HasPrefix(r.URL.Path, AgentPath):
			s.mounted(w, r, s.config.Agents, "agent")
		case strings.HasPrefix(r.URL.Path, "/hooks/"):
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(webhookTimeout)) // a recorder in a test has none
			s.mounted(w, r, s.config.Webhooks, "webhook")
		default:
			router.ServeHTTP(w, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		// A deadline that an earlier request of the same connection set is still there.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		rec := &record{trace: traceOf(r.Header.Get("Traceparent"))}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, rec))
		ww := &watched{ResponseWriter: w, rec: rec, status: http.StatusOK}
		h := w.Header()
		for name, value := range securityHeaders {
			h.Set(name, value)
		}
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		h.Set(api.TraceHeader, string(rec.trace))
		defer func() { s.logged(ww, r, time.Since(begun)) }()
		defer s.recovered(ww, r)
		inner.ServeHTTP(ww, r)
	})
}

// mounted serves a handler of another part.
func (s *Server) mounted(w http.ResponseWriter, r *http.Request, h http.Handler, name string) {
	recordOf(r).endpoint = name
	if h == nil {
		writeError(w, r, notFound(r))
		return
	}
	h.ServeHTTP(w, r)
}

// recovered turns a panic into an answer and a line in the log.
func (s *Server) recovered(w *watched, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // the documented value to compare with
		panic(cause)
	}
	s.metrics.panics.Inc()
	s.log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "trace", w.rec.trace, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	s.fail(w, r, fmt.Errorf("panic: %v", cause))
}

func (s *Server) logged(w *watched, r *http.Request, took time.Duration) {
	endpoint := w.rec.endpoint
	if endpoint == "" {
		endpoint = "other"
	}
	s.metrics.requests.WithLabelValues(endpoint, methodLabel(r.Method), strconv.Itoa(w.status)).Inc()
	s.metrics.seconds.WithLabelValues(endpoint).Observe(took.Seconds())
	level := slog.LevelInfo
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(r.Context(), level, "request",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", w.status), slog.Duration("took", took),
		slog.Int64("bytes", w.bytes), slog.String("endpoint", endpoint), slog.String("actor", w.rec.actor), slog.String("remote", r.RemoteAddr),
		slog.String("environment", r.Header.Get(api.EnvironmentHeader)), slog.String("trace", string(w.rec.trace)))
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// traceOf continues the trace of a W3C traceparent header, or begins one.
func traceOf(parent string) model.TraceID {
	parts := strings.Split(parent, "-")
	if len(parts) >= 4 && len(parts[0]) == 2 && parts[0] != "ff" && len(parts[1]) == 32 && strings.ToLower(parts[1]) == parts[1] {
		if id, err := hex.DecodeString(parts[1]); err == nil && slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
			return model.TraceID(parts[1])
		}
	}
	return model.NewTraceID()
}

// hostAllowed holds requests to names that a foreign page can not have chosen, while there is no authentication.
func (s *Server) hostAllowed(r *http.Request) bool {
	if s.config.Authenticator != nil || s.config.AllowInsecure {
		return true
	}
	if strings.HasPrefix(r.URL.Path, "/hooks/") || strings.HasPrefix(r.URL.Path, AgentPath) {
		return true // these have authentication of their own, and come through tunnels and proxies by names of their own
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.ContainsFunc(s.config.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, host) })
}

// cors sets the headers for pages of the allowed origin and answers OPTIONS; it reports whether it answered.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	if s.config.AllowOrigin != "" {
		h.Set("Access-Control-Allow-Origin", s.config.AllowOrigin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", api.TraceHeader+", "+api.EnvironmentHeader)
	}
	if r.Method != http.MethodOptions {
		return false
	}
	allowed := "Origin, Accept, Content-Type, X-Requested-With, X-CSRF-Token, X-Inmanta-tid, Idempotency-Key, Traceparent, Last-Event-ID"
	if s.config.Authenticator != nil {
		allowed += ", Authorization"
	}
	h.Set("Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, OPTIONS, DELETE, PATCH")
	h.Set("Access-Control-Allow-Headers", allowed)
	w.WriteHeader(http.StatusOK)
	return true
}

// metrics are the server's own numbers.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	panics   prometheus.Counter
}

func newMetrics(r prometheus.Registerer, b *broker) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_http_requests_total", Help: "Requests by endpoint, method and status.",
		}, []string{"endpoint", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intendant_http_request_seconds", Help: "Time to answer by endpoint.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"endpoint"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intendant_http_panics_total", Help: "Requests that ended in a panic.",
		}),
	}
	if r == nil {
		return m, nil
	}
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intendant_event_streams", Help: "Open event streams.",
	}, func() float64 { return float64(b.count()) })
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.panics, streams} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// unknownEnvironment gives an unknown environment the words that clients know.
func unknownEnvironment(id model.EnvironmentID, err error) error {
	if describes, _ := describe(err); describes.Status != http.StatusNotFound {
		return err
	}
	return refuse(http.StatusNotFound, "The given environment id does not exist! ("+id.String()+")")
}
