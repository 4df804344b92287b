package gitsync

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/intendant/intendant/model"
)

// hooks is what the webhook handler remembers between requests.
type hooks struct {
	slots        chan struct{} // a semaphore
	sources      *limiters
	repositories *limiters
	// decoy is the secret that unknown repositories are verified with, so that they cost what known ones do.
	decoy string
}

func newHooks(c Config) *hooks {
	return &hooks{
		slots:        make(chan struct{}, c.Hooks.Concurrent),
		sources:      newLimiters(c.Hooks.SourceRate, c.Hooks.SourceBurst),
		repositories: newLimiters(c.Hooks.RepositoryRate, c.Hooks.RepositoryBurst),
		decoy:        rand.Text(),
	}
}

// limiters keeps a rate for each of many keys in bounded memory: when the newer half is full the older one is forgotten.
type limiters struct {
	limit rate.Limit
	burst int

	mu         sync.Mutex
	fresh, old map[string]*rate.Limiter
}

// limitersHalf is how many keys each half remembers.
const limitersHalf = 8192

func newLimiters(perSecond float64, burst int) *limiters {
	return &limiters{limit: rate.Limit(perSecond), burst: burst, fresh: map[string]*rate.Limiter{}, old: map[string]*rate.Limiter{}}
}

func (l *limiters) get(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.fresh[key]
	if r != nil {
		return r
	}
	if r = l.old[key]; r == nil {
		r = rate.NewLimiter(l.limit, l.burst)
	}
	if len(l.fresh) >= limitersHalf {
		l.old, l.fresh = l.fresh, make(map[string]*rate.Limiter, limitersHalf)
	}
	l.fresh[key] = r
	return r
}

// connectionAddress is the address at the other end of the connection; of IPv6 the network, since a host has many.
func connectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

// hookAnswer is the body of every answer of the webhook handler.
type hookAnswer struct {
	// Status is accepted, ignored, repeated or refused.
	Status   string        `json:"status"`
	Message  string        `json:"message,omitempty"`
	Delivery string        `json:"delivery,omitempty"`
	Trace    model.TraceID `json:"trace,omitempty"`
}

// notForUs answers unknown repositories and wrong signatures alike, so that nobody can find out which exist.
var notForUs = hookAnswer{
	Status:  "refused",
	Message: "there is no such webhook, or the request is not signed as its provider and secret require; the server's log says which",
}

// WebhookHandler serves POST /hooks/{repository}. The repository's name is the path value "repository", or else the last
// element of the path. A request that is verified is stored, answered 202 and then worked on by [Service.Run]; one that is
// no push is answered 200, and so is one that came before. Everything else is 404, 405, 413, 429, 500 or 503.
func (s *Service) WebhookHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		result := "failed"
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(r.Context(), "webhook handler: internal fault", slog.Any("fault", p))
				answer(w, http.StatusInternalServerError, hookAnswer{Status: "refused", Message: "internal fault"})
			}
			s.metrics.hooks.WithLabelValues(result).Inc()
			s.metrics.hookSeconds.Observe(time.Since(begin).Seconds())
		}()
		var status int
		var body hookAnswer
		result, status, body = s.receive(w, r, begin)
		answer(w, status, body)
	})
}

func answer(w http.ResponseWriter, status int, body hookAnswer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	switch status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "10")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // the sender is gone; there is nobody to tell
}

// receive does the work of the handler. The result is the metric's label.
func (s *Service) receive(w http.ResponseWriter, r *http.Request, now time.Time) (result string, status int, body hookAnswer) {
	refuse := func(result string, status int, format string, args ...any) (string, int, hookAnswer) {
		return result, status, hookAnswer{Status: "refused", Message: fmt.Sprintf(format, args...)}
	}
	if r.Method != http.MethodPost {
		return refuse("malformed", http.StatusMethodNotAllowed, "webhooks are POST requests")
	}
	limits := s.config.Hooks
	source := s.hooks.sources.get(s.config.ClientAddress(r))
	if source.TokensAt(now) < 1 {
		w.Header().Set("Retry-After", retryAfter(limits.SourceRate))
		return refuse("limited", http.StatusTooManyRequests, "too many requests that could not be verified")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return refuse("malformed", http.StatusUnsupportedMediaType, "send the body without Content-Encoding")
	}
	if r.ContentLength > limits.Body {
		return refuse("too_large", http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limits.Body)
	}
	select {
	case s.hooks.slots <- struct{}{}:
		defer func() { <-s.hooks.slots }()
	default:
		return refuse("limited", http.StatusServiceUnavailable, "too many webhooks at once")
	}
	// Not every connection can have a deadline; the ones that carry traffic can.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(now.Add(limits.BodyTimeout))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.Body))
	if err != nil {
		source.AllowN(now, 1)
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return refuse("too_large", http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limits.Body)
		}
		return refuse("malformed", http.StatusBadRequest, "the body could not be read")
	}
	_ = control.SetReadDeadline(time.Time{})

	name := model.RepositoryName(r.PathValue("repository"))
	if name == "" {
		name = model.RepositoryName(path.Base(r.URL.Path))
	}
	if quietPing(r.Header) {
		source.AllowN(now, 1)
		return "ignored", http.StatusOK, hookAnswer{Status: "ignored", Message: "the server is here"}
	}
	repo, p, err := s.authenticate(r.Context(), name, r.Header, raw, now)
	if err != nil {
		if !errors.Is(err, errRefused) {
			s.log.ErrorContext(r.Context(), "webhook could not be checked", slog.String("repository", clip(string(name), 128)), slog.String("error", err.Error()))
			return refuse("failed", http.StatusServiceUnavailable, "the server can not look up the repository now")
		}
		source.AllowN(now, 1)
		s.log.WarnContext(r.Context(), "webhook refused", slog.String("repository", clip(string(name), 128)),
			slog.String("source", s.config.ClientAddress(r)), slog.String("error", err.Error()))
		return "refused", http.StatusNotFound, notForUs
	}
	if !s.hooks.repositories.get(string(name)).AllowN(now, 1) {
		w.Header().Set("Retry-After", retryAfter(limits.RepositoryRate))
		return refuse("limited", http.StatusTooManyRequests, "too many deliveries for this repository")
	}
	return s.accept(r, repo, p, raw, now)
}

func retryAfter(perSecond float64) string {
	return strconv.Itoa(int(math.Ceil(1/perSecond)) + 1)
}

// quietPing reports whether a request is the unsigned test of a Bitbucket Data Center. It is answered before anything is
// looked up, whatever the repository.
func quietPing(h http.Header) bool {
	return h.Get("X-Event-Key") == providers[model.ProviderBitbucketDC].quiet && len(h.Values("X-Hub-Signature")) == 0
}

// errRefused marks requests that are not from somebody who may send them.
var errRefused = errors.New("refused")

// authenticate finds the repository and verifies the request. An unknown repository is verified against a secret that
// nobody has, so that it takes the same time.
func (s *Service) authenticate(ctx context.Context, name model.RepositoryName, h http.Header, body []byte, now time.Time) (model.Repository, provider, error) {
	refused := func(err error) (model.Repository, provider, error) {
		return model.Repository{}, provider{}, fmt.Errorf("%w: %w", errRefused, err)
	}
	decoy := func() { _ = hexHMAC(s.hooks.decoy, body) }
	if CheckRepositoryName(name) != nil {
		decoy()
		return refused(errors.New("not a repository's name"))
	}
	repo, err := s.recorder.Repository(ctx, name)
	if errors.Is(err, model.ErrNotFound) {
		decoy()
		return refused(errors.New("no such repository"))
	}
	if err != nil {
		return model.Repository{}, provider{}, fmt.Errorf("reading repository %s: %w", name, err)
	}
	p, ok := providers[repo.Provider]
	if !ok {
		decoy()
		return refused(errors.New("the repository has no webhook provider configured"))
	}
	var secrets []string
	for _, x := range repo.WebhookSecrets {
		if x.Reveal() != "" {
			secrets = append(secrets, x.Reveal())
		}
	}
	if len(secrets) == 0 {
		decoy()
		return refused(errNoSecret)
	}
	if err := p.verify(h, body, secrets, now, s.config.Hooks.Tolerance); err != nil {
		return refused(err)
	}
	return repo, p, nil
}

// accept stores a verified delivery and hands it on.
func (s *Service) accept(r *http.Request, repo model.Repository, p provider, raw []byte, now time.Time) (result string, status int, body hookAnswer) {
	event := clip(firstHeader(r.Header, p.event), 128)
	push := parsePush(repo.Provider, r.Header.Get("Content-Type"), raw)
	d := model.Delivery{
		Key: deliveryKey(r.Header, p, push, raw, now), Repository: repo.Name, Provider: repo.Provider, Event: event,
		Ref: push.Ref, Before: push.Before, After: push.After, Trace: traceOf(r.Header), ReceivedAt: now,
		Status: model.DeliveryReceived, Headers: storedHeaders(r.Header), Body: raw[:min(len(raw), s.config.Hooks.StoredBody)],
	}
	isPush := slices.Contains(p.pushes, event)
	if !isPush {
		d.Status, d.Detail, d.FinishedAt = model.DeliveryIgnored, fmt.Sprintf("event %q is not a push", event), now
	}
	fresh, err := s.recorder.RecordDelivery(r.Context(), d)
	if err != nil {
		s.log.ErrorContext(r.Context(), "webhook delivery was not stored", slog.String("repository", string(repo.Name)),
			slog.String("trace", string(d.Trace)), slog.String("error", err.Error()))
		return "failed", http.StatusServiceUnavailable, hookAnswer{Status: "refused", Message: "the delivery could not be stored; send it again", Delivery: d.Key}
	}
	out := hookAnswer{Delivery: d.Key, Trace: d.Trace}
	switch {
	case !fresh:
		out.Status, out.Message, out.Trace = "repeated", "this delivery was received before; nothing is done again", ""
		return "repeated", http.StatusOK, out
	case !isPush:
		out.Status, out.Message = "ignored", d.Detail
		return "ignored", http.StatusOK, out
	}
	s.log.InfoContext(r.Context(), "webhook accepted", slog.String("repository", string(repo.Name)), slog.String("delivery", d.Key),
		slog.String("ref", d.Ref), slog.String("after", d.After), slog.String("trace", string(d.Trace)))
	s.poller.request(repo.Name, request{cause: causeWebhook, reason: reasonOf(d), trace: d.Trace, at: now, delivery: &d})
	out.Status = "accepted"
	return "accepted", http.StatusAccepted, out
}

// Replay works on a stored delivery again, as if it had just come: the repository is fetched and news are recorded.
func (s *Service) Replay(ctx context.Context, d model.Delivery) (SyncResult, error) {
	return s.SyncNow(ctx, d.Repository, reasonOf(d)+" (replayed)", d.Trace)
}

// reasonOf says why a compile runs, for people.
func reasonOf(d model.Delivery) string {
	if d.Ref == "" {
		return fmt.Sprintf("webhook of %s", d.Repository)
	}
	return "push to " + d.Ref
}

func firstHeader(h http.Header, names []string) string {
	for _, n := range names {
		if v := h.Get(n); v != "" {
			return v
		}
	}
	return ""
}

// deliveryKey identifies a delivery within its repository: by the provider's id; without one by the body if that tells one
// push from another, for a minute; else by chance, for then every request is news.
func deliveryKey(h http.Header, p provider, push Push, raw []byte, now time.Time) string {
	if id := firstHeader(h, p.delivery); id != "" {
		if len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return id
		}
		sum := sha256.Sum256([]byte(id))
		return "id-" + hex.EncodeToString(sum[:])
	}
	if push.After != "" {
		sum := sha256.Sum256(raw)
		return fmt.Sprintf("body-%s-%d", hex.EncodeToString(sum[:16]), now.Unix()/60)
	}
	return "once-" + rand.Text()
}

// traceOf takes over the sender's trace if there is one.
func traceOf(h http.Header) model.TraceID {
	parts := strings.Split(h.Get("Traceparent"), "-")
	if len(parts) == 4 && len(parts[1]) == 32 && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[1], "0123456789abcdef") == "" {
		return model.TraceID(parts[1])
	}
	return model.NewTraceID()
}

// secretHeaders are not stored: they are secrets, or verify as well as one.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "Signature", "Token", "Secret", "Key-Id", "Api-Key", "Password"}

// storedHeaders are the headers that are kept with a delivery: a bounded number of short ones, without secrets.
func storedHeaders(h http.Header) map[string]string {
	names := make([]string, 0, len(h))
	for n := range h {
		names = append(names, n)
	}
	slices.Sort(names)
	out := make(map[string]string, len(names))
	for _, n := range names {
		secret := slices.ContainsFunc(secretHeaders, func(s string) bool { return strings.Contains(strings.ToLower(n), strings.ToLower(s)) })
		if secret || len(out) >= 64 || len(n) > 128 {
			continue
		}
		out[n] = clip(strings.Join(h[n], ", "), 1024)
	}
	return out
}
