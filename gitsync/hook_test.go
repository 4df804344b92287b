package gitsync_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func hexMAC(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// standard signs as Standard Webhooks do.
func standard(key []byte, id string, at time.Time, body string) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + stamp + "." + body))
	return map[string]string{
		"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": "v1,AAAA v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)),
		"X-Gitlab-Event": "Push Hook",
	}
}

// post sends a request to the handler as the server would mount it.
func post(t testing.TB, h http.Handler, repo string, headers map[string]string, body string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/hooks/{repository}", h)
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/hooks/"+repo, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

const (
	before  = "1111111111111111111111111111111111111111"
	after   = "2222222222222222222222222222222222222222"
	pushed  = `{"ref":"refs/heads/main","before":"` + before + `","after":"` + after + `","repository":{"clone_url":"http://evil.example/x"}}`
	cloudIn = `{"push":{"changes":[{"new":{"type":"branch","name":"main","target":{"hash":"` + after + `"}},"old":{"type":"branch","name":"main","target":{"hash":"` + before + `"}}},{"new":null}]}}`
	dcIn    = `{"eventKey":"repo:refs_changed","changes":[{"ref":{"id":"refs/heads/main"},"refId":"refs/heads/main","fromHash":"` + before + `","toHash":"` + after + `","type":"UPDATE"}]}`
)

func TestSignatures(t *testing.T) {
	t.Parallel()
	const secret, older = "s3cret", "0lder"
	key := bytes.Repeat([]byte{7}, 32)
	signing := model.Secret("whsec_" + base64.StdEncoding.EncodeToString(key))
	gh := func(sig string) map[string]string {
		return map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": "d1", "X-Hub-Signature-256": sig}
	}
	for name, tt := range map[string]struct {
		provider model.Provider
		headers  map[string]string
		body     string
		secrets  []model.Secret // s3cret and 0lder by default
		want     int
		event    string
	}{
		"github":                        {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC(secret, pushed)), body: pushed, want: 202, event: "push"},
		"github, older secret":          {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC(older, pushed)), body: pushed, want: 202, event: "push"},
		"github, wrong secret":          {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC("other", pushed)), body: pushed, want: 404},
		"github, upper case":            {provider: model.ProviderGitHub, headers: gh("sha256=" + strings.ToUpper(hexMAC(secret, pushed))), body: pushed, want: 404},
		"github, no digest":             {provider: model.ProviderGitHub, headers: gh("sha256="), body: pushed, want: 404},
		"github, empty":                 {provider: model.ProviderGitHub, headers: gh(""), body: pushed, want: 404},
		"github, no prefix":             {provider: model.ProviderGitHub, headers: gh(hexMAC(secret, pushed)), body: pushed, want: 404},
		"github, short":                 {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC(secret, pushed)[:20]), body: pushed, want: 404},
		"github, other body":            {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC(secret, pushed)), body: pushed + " ", want: 404},
		"github, sha1 only":             {provider: model.ProviderGitHub, headers: map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature": "sha1=" + hexMAC(secret, pushed)[:40]}, body: pushed, want: 404},
		"github, unsigned":              {provider: model.ProviderGitHub, headers: map[string]string{"X-GitHub-Event": "push"}, body: pushed, want: 404},
		"github, signed by gitea":       {provider: model.ProviderGitHub, headers: map[string]string{"X-GitHub-Event": "push", "X-Gitea-Signature": hexMAC(secret, pushed)}, body: pushed, want: 404},
		"github, empty secret":          {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC("", pushed)), body: pushed, secrets: []model.Secret{""}, want: 404},
		"github, no secret":             {provider: model.ProviderGitHub, headers: gh("sha256=" + hexMAC("", pushed)), body: pushed, secrets: []model.Secret{}, want: 404},
		"github, ping":                  {provider: model.ProviderGitHub, headers: map[string]string{"X-GitHub-Event": "ping", "X-Hub-Signature-256": "sha256=" + hexMAC(secret, `{}`)}, body: `{}`, want: 200, event: "ping"},
		"github, form":                  {provider: model.ProviderGitHub, headers: map[string]string{"X-GitHub-Event": "push", "Content-Type": "application/x-www-form-urlencoded", "X-Hub-Signature-256": "sha256=" + hexMAC(secret, "payload="+url.QueryEscape(pushed))}, body: "payload=" + url.QueryEscape(pushed), want: 202, event: "push"},
		"gitlab token":                  {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": secret}, body: pushed, want: 202, event: "Push Hook"},
		"gitlab tag":                    {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Tag Push Hook", "X-Gitlab-Token": secret}, body: pushed, want: 202, event: "Tag Push Hook"},
		"gitlab merge request":          {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Merge Request Hook", "X-Gitlab-Token": secret}, body: `{}`, want: 200, event: "Merge Request Hook"},
		"gitlab, wrong token":           {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": secret + "x"}, body: pushed, want: 404},
		"gitlab, no token":              {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Push Hook"}, body: pushed, want: 404},
		"gitlab, signing key in clear":  {provider: model.ProviderGitLab, headers: map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": signing.Reveal()}, body: pushed, secrets: []model.Secret{signing}, want: 404},
		"gitlab signed":                 {provider: model.ProviderGitLab, headers: standard(key, "m1", time.Now(), pushed), body: pushed, secrets: []model.Secret{secret, signing}, want: 202, event: "Push Hook"},
		"gitlab signed, stale":          {provider: model.ProviderGitLab, headers: standard(key, "m1", time.Now().Add(-time.Hour), pushed), body: pushed, secrets: []model.Secret{signing}, want: 404},
		"gitlab signed, in the future":  {provider: model.ProviderGitLab, headers: standard(key, "m1", time.Now().Add(time.Hour), pushed), body: pushed, secrets: []model.Secret{signing}, want: 404},
		"gitlab signed, other key":      {provider: model.ProviderGitLab, headers: standard([]byte("other"), "m1", time.Now(), pushed), body: pushed, secrets: []model.Secret{signing}, want: 404},
		"gitlab signed, no key":         {provider: model.ProviderGitLab, headers: standard(nil, "m1", time.Now(), pushed), body: pushed, secrets: []model.Secret{"whsec_", "whsec_!!"}, want: 404},
		"gitea":                         {provider: model.ProviderGitea, headers: map[string]string{"X-Gitea-Event": "push", "X-GitHub-Event": "ping", "X-Gogs-Event": "ping", "X-Gitea-Signature": hexMAC(secret, pushed)}, body: pushed, want: 202, event: "push"},
		"gitea, signed for github":      {provider: model.ProviderGitea, headers: map[string]string{"X-Gitea-Event": "push", "X-Hub-Signature-256": "sha256=" + hexMAC(secret, pushed)}, body: pushed, want: 404},
		"forgejo":                       {provider: model.ProviderForgejo, headers: map[string]string{"X-Forgejo-Event": "push", "X-Gitea-Event": "ping", "X-Forgejo-Signature": hexMAC(secret, pushed)}, body: pushed, want: 202, event: "push"},
		"forgejo, gitea's headers":      {provider: model.ProviderForgejo, headers: map[string]string{"X-Gitea-Event": "push", "X-Gitea-Signature": hexMAC(secret, pushed)}, body: pushed, want: 202, event: "push"},
		"forgejo, own signature counts": {provider: model.ProviderForgejo, headers: map[string]string{"X-Forgejo-Event": "push", "X-Forgejo-Signature": "bad", "X-Gitea-Signature": hexMAC(secret, pushed)}, body: pushed, want: 404},
		"bitbucket":                     {provider: model.ProviderBitbucket, headers: map[string]string{"X-Event-Key": "repo:push", "X-Hub-Signature": "sha256=" + hexMAC(secret, cloudIn)}, body: cloudIn, want: 202, event: "repo:push"},
		"bitbucket fork":                {provider: model.ProviderBitbucket, headers: map[string]string{"X-Event-Key": "repo:fork", "X-Hub-Signature": "sha256=" + hexMAC(secret, `{}`)}, body: `{}`, want: 200, event: "repo:fork"},
		"bitbucket, unsigned":           {provider: model.ProviderBitbucket, headers: map[string]string{"X-Event-Key": "repo:push"}, body: cloudIn, want: 404},
		"data center":                   {provider: model.ProviderBitbucketDC, headers: map[string]string{"X-Event-Key": "repo:refs_changed", "X-Hub-Signature": "sha256=" + hexMAC(secret, dcIn)}, body: dcIn, want: 202, event: "repo:refs_changed"},
		"data center, unsigned ping":    {provider: model.ProviderBitbucketDC, headers: map[string]string{"X-Event-Key": "diagnostics:ping"}, body: `{"test":true}`, want: 200},
		"data center, unsigned push":    {provider: model.ProviderBitbucketDC, headers: map[string]string{"X-Event-Key": "repo:refs_changed"}, body: dcIn, want: 404},
		"generic":                       {provider: model.ProviderGeneric, headers: map[string]string{"X-Intendant-Signature": "sha256=" + hexMAC(secret, pushed)}, body: pushed, want: 202},
		"generic, no body":              {provider: model.ProviderGeneric, headers: map[string]string{"X-Intendant-Signature": "sha256=" + hexMAC(secret, "")}, want: 202},
		"generic, nonsense":             {provider: model.ProviderGeneric, headers: map[string]string{"X-Intendant-Signature": "sha256=" + hexMAC(secret, "]{")}, body: "]{", want: 202},
		"unconfigured":                  {provider: model.ProviderUnconfigured, headers: gh("sha256=" + hexMAC(secret, pushed)), body: pushed, want: 404},
		"unheard of":                    {provider: "sourceforge", headers: gh("sha256=" + hexMAC(secret, pushed)), body: pushed, want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newRecorder()
			secrets := []model.Secret{secret, older}
			if tt.secrets != nil {
				secrets = tt.secrets
			}
			rec.addRepo(model.Repository{Name: "demo", URL: "http://127.0.0.1:1/x", Provider: tt.provider, WebhookSecrets: secrets})
			s := newService(t, gitsync.Config{Recorder: rec})
			w := post(t, s.WebhookHandler(), "demo", tt.headers, tt.body)
			if w.Code != tt.want {
				t.Fatalf("status = %d (%s), want %d", w.Code, w.Body, tt.want)
			}
			if tt.want == 404 {
				// Nobody can tell a repository that exists from one that does not.
				other := post(t, s.WebhookHandler(), "nothing", tt.headers, tt.body)
				if other.Code != w.Code || other.Body.String() != w.Body.String() {
					t.Errorf("unknown repository: %d %s, wrong signature: %d %s", other.Code, other.Body, w.Code, w.Body)
				}
				if len(rec.deliveries) != 0 {
					t.Errorf("a refused request was stored: %v", rec.deliveries)
				}
				return
			}
			for _, d := range rec.deliveries {
				if d.Event != tt.event {
					t.Errorf("event = %q, want %q", d.Event, tt.event)
				}
				wantStatus := model.DeliveryReceived
				if tt.want == 200 {
					wantStatus = model.DeliveryIgnored
				}
				if d.Status != wantStatus {
					t.Errorf("delivery status = %s, want %s", d.Status, wantStatus)
				}
				if strings.Contains(tt.body, after) && (d.Ref != "refs/heads/main" || d.Before != before || d.After != after) {
					t.Errorf("delivery = %+v", d)
				}
				for n, v := range d.Headers {
					if strings.Contains(v, secret) || strings.Contains(v, hexMAC(secret, tt.body)) {
						t.Errorf("header %s with a secret was stored: %s", n, v)
					}
				}
			}
		})
	}
}

func signedBy(secret, id, body string) map[string]string {
	return map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": id, "X-Hub-Signature-256": "sha256=" + hexMAC(secret, body)}
}

func TestWebhookToRevision(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("main", files{"f": text("1")}, "c")
	rec, repo, s := local(t, o)
	env := rec.addEnv(repo, "main", "")
	run(t, s)
	rec.await(t, "the first commit is recorded", func() bool { return len(rec.jobs) == 1 })
	if rec.jobs[0].Rev.Commit != first {
		t.Errorf("recorded %+v", rec.jobs[0])
	}
	second := o.push("main", files{"f": text("2")}, "c")
	h := s.WebhookHandler()
	w := post(t, h, "demo", signedBy("s3cret", "d1", pushed), pushed)
	if w.Code != http.StatusAccepted {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	var a struct{ Status, Delivery, Trace string }
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Status != "accepted" || a.Delivery != "d1" || len(a.Trace) != 32 {
		t.Errorf("answer = %s, %v", w.Body, err)
	}
	rec.await(t, "the delivery is synced", func() bool { return rec.deliveries["d1"].Status == model.DeliverySynced })
	got := rec.jobs[1]
	// Not the commit of the payload, but the one that is there.
	if got.Env != env.ID || got.Rev.Commit != second || got.Reason != "push to refs/heads/main" || string(got.Trace) != a.Trace {
		t.Errorf("recorded %+v", got)
	}
	if !strings.Contains(rec.deliveries["d1"].Detail, second) {
		t.Errorf("detail = %q", rec.deliveries["d1"].Detail)
	}
	if w := post(t, h, "demo", signedBy("s3cret", "d1", pushed), pushed); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "repeated") {
		t.Errorf("replay: %d %s", w.Code, w.Body)
	}
	w = post(t, h, "demo", signedBy("s3cret", "d2", pushed), pushed)
	if w.Code != http.StatusAccepted {
		t.Errorf("second delivery: %d", w.Code)
	}
	rec.await(t, "the second delivery is synced", func() bool { return rec.deliveries["d2"].Status == model.DeliverySynced })
	if len(rec.jobs) != 2 || rec.deliveries["d2"].Detail != "nothing new on the watched branches" {
		t.Errorf("jobs = %d, detail = %q", len(rec.jobs), rec.deliveries["d2"].Detail)
	}
}

func TestBurstIsCoalesced(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.push("main", files{"f": text("0")}, "c")
	rec, repo, s := local(t, o)
	rec.addEnv(repo, "main", "")
	run(t, s)
	h := s.WebhookHandler()
	const n = 100
	var last string
	for i := range n {
		last = o.push("main", files{"f": text(fmt.Sprint(i))}, "c")
		if w := post(t, h, "demo", signedBy("s3cret", fmt.Sprint(i), pushed), pushed); w.Code != http.StatusAccepted {
			t.Fatalf("push %d: %d %s", i, w.Code, w.Body)
		}
	}
	t.Cleanup(func() {
		for k, d := range rec.deliveries {
			if t.Failed() && d.Status != model.DeliverySynced {
				t.Logf("delivery %s: %s %s", k, d.Status, d.Detail)
			}
		}
	})
	rec.await(t, "all deliveries are finished", func() bool {
		done := 0
		for _, d := range rec.deliveries {
			if d.Status == model.DeliverySynced {
				done++
			}
		}
		return done == n
	})
	if got := rec.jobs[len(rec.jobs)-1].Rev.Commit; got != last {
		t.Errorf("the last recorded commit is %s, want %s", got, last)
	}
}

func TestUnfinishedDeliveriesAreResumed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	rec, repo, s := local(t, o)
	rec.addEnv(repo, "main", "")
	// Not running: what is accepted is stored and nothing more.
	if w := post(t, s.WebhookHandler(), "demo", signedBy("s3cret", "d1", pushed), pushed); w.Code != http.StatusAccepted {
		t.Fatalf("status = %d", w.Code)
	}
	commit := o.push("main", files{"f": text("1")}, "c")
	run(t, s)
	rec.await(t, "the delivery is synced", func() bool { return rec.deliveries["d1"].Status == model.DeliverySynced })
	if len(rec.jobs) != 1 || rec.jobs[0].Rev.Commit != commit {
		t.Errorf("recorded %+v", rec.jobs)
	}
}

func TestFailedSyncFailsDelivery(t *testing.T) {
	t.Parallel()
	rec := newRecorder()
	repo := model.Repository{Name: "demo", URL: "/nowhere/at/all", Provider: model.ProviderGitHub, WebhookSecrets: []model.Secret{"s3cret"}}
	rec.addRepo(repo)
	rec.addEnv(repo, "main", "")
	s := newService(t, gitsync.Config{Recorder: rec, AllowLocal: true})
	run(t, s)
	post(t, s.WebhookHandler(), "demo", signedBy("s3cret", "d1", pushed), pushed)
	rec.await(t, "the delivery failed", func() bool { return rec.deliveries["d1"].Status == model.DeliveryFailed })
	if d := rec.deliveries["d1"].Detail; !strings.Contains(d, "is not a directory on this machine") {
		t.Errorf("detail = %q", d)
	}
	rec.await(t, "the sync is recorded", func() bool { return rec.syncs["demo"] != "" })
}

func TestHookLimits(t *testing.T) {
	t.Parallel()
	newOne := func(t *testing.T, l gitsync.HookLimits) (*recorder, http.Handler) {
		t.Helper()
		rec := newRecorder()
		rec.addRepo(model.Repository{Name: "demo", URL: "http://127.0.0.1:1/x", Provider: model.ProviderGitHub, WebhookSecrets: []model.Secret{"s3cret"}})
		return rec, newService(t, gitsync.Config{Recorder: rec, Hooks: l}).WebhookHandler()
	}
	t.Run("size", func(t *testing.T) {
		t.Parallel()
		rec, h := newOne(t, gitsync.HookLimits{Body: 1000, StoredBody: 10})
		body := strings.Repeat(" ", 1001)
		if w := post(t, h, "demo", signedBy("s3cret", "d", body), body); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("declared size: %d", w.Code)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/demo", io.MultiReader(strings.NewReader(body))) // chunked
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("chunked: %d", w.Code)
		}
		if w := post(t, h, "demo", signedBy("s3cret", "d", body[1:]), body[1:]); w.Code != http.StatusAccepted || len(rec.deliveries["d"].Body) != 10 {
			t.Errorf("at the limit: %d, stored %d bytes", w.Code, len(rec.deliveries["d"].Body))
		}
	})
	t.Run("source", func(t *testing.T) {
		t.Parallel()
		_, h := newOne(t, gitsync.HookLimits{SourceRate: 0.001, SourceBurst: 3})
		for range 3 {
			if w := post(t, h, "demo", nil, "x"); w.Code != http.StatusNotFound {
				t.Fatalf("status = %d", w.Code)
			}
		}
		if w := post(t, h, "demo", nil, "x"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("status = %d, headers = %v", w.Code, w.Header())
		}
	})
	t.Run("verified requests do not count against the source", func(t *testing.T) {
		t.Parallel()
		_, h := newOne(t, gitsync.HookLimits{SourceRate: 0.001, SourceBurst: 2})
		for i := range 5 {
			if w := post(t, h, "demo", signedBy("s3cret", fmt.Sprint(i), "{}"), "{}"); w.Code != http.StatusAccepted {
				t.Fatalf("request %d: %d", i, w.Code)
			}
		}
	})
	t.Run("repository", func(t *testing.T) {
		t.Parallel()
		_, h := newOne(t, gitsync.HookLimits{RepositoryRate: 0.001, RepositoryBurst: 2})
		codes := []int{}
		for i := range 3 {
			codes = append(codes, post(t, h, "demo", signedBy("s3cret", fmt.Sprint(i), "{}"), "{}").Code)
		}
		if !slices.Equal(codes, []int{202, 202, 429}) {
			t.Errorf("codes = %v", codes)
		}
	})
	t.Run("forms", func(t *testing.T) {
		t.Parallel()
		rec, h := newOne(t, gitsync.HookLimits{})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/hooks/demo", nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
			t.Errorf("GET: %d", w.Code)
		}
		head := signedBy("s3cret", "d", "{}")
		head["Content-Encoding"] = "gzip"
		if w := post(t, h, "demo", head, "{}"); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("gzip: %d", w.Code)
		}
		for _, name := range []string{"..%2fdemo", "DEMO", "demo%00", strings.Repeat("x", 500)} {
			if w := post(t, h, name, signedBy("s3cret", "d", "{}"), "{}"); w.Code != http.StatusNotFound {
				t.Errorf("repository %q: %d", name, w.Code)
			}
		}
		rec.update(func() { rec.failing = errors.New("the database is away") })
		if w := post(t, h, "demo", signedBy("s3cret", "d", "{}"), "{}"); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "database") {
			t.Errorf("not stored: %d %s", w.Code, w.Body)
		}
	})
	t.Run("slow body", func(t *testing.T) {
		t.Parallel()
		_, h := newOne(t, gitsync.HookLimits{BodyTimeout: 100 * time.Millisecond})
		srv := httptest.NewServer(h)
		defer srv.Close()
		pr, pw := io.Pipe()
		defer pw.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/hooks/demo", pr)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = pw.Write([]byte("{")) })
		res, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			defer res.Body.Close()
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("status = %d", res.StatusCode)
			}
		}
		_ = pr.Close()
		wg.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // it is one
	})
}

func TestHookPanicIsRecovered(t *testing.T) {
	t.Parallel()
	s := newService(t, gitsync.Config{Recorder: panicking{newRecorder()}})
	if w := post(t, s.WebhookHandler(), "demo", nil, "x"); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("answer = %d %s", w.Code, w.Body)
	}
}

type panicking struct{ *recorder }

func (panicking) Repository(context.Context, model.RepositoryName) (model.Repository, error) {
	panic("boom")
}

// FuzzWebhook sends verified requests of any content: none may be answered with an internal fault.
func FuzzWebhook(f *testing.F) {
	for _, body := range []string{
		pushed, cloudIn, dcIn, "", "{}", "[]", "null", `{"push":null}`, `{"push":{"changes":null}}`, `{"push":{"changes":[null]}}`, `{"push":{"changes":[{}]}}`,
		`{"changes":[null]}`, `{"changes":[{"ref":null}]}`, `{"ref":1}`, `{"ref":null,"after":[]}`, `{"ref":"v1","ref_type":"tag"}`, "payload=%7B%7D",
		strings.Repeat("[", 10000), `{"ref":"` + strings.Repeat("x", 70000) + `"}`,
	} {
		for p := range 7 {
			f.Add(p, "push", body, p%2 == 0)
		}
	}
	kinds := []model.Provider{
		model.ProviderGitHub, model.ProviderGitLab, model.ProviderGitea, model.ProviderForgejo, model.ProviderBitbucket, model.ProviderBitbucketDC, model.ProviderGeneric,
	}
	f.Fuzz(func(t *testing.T, kind int, event, body string, form bool) {
		p := kinds[max(kind%len(kinds), -(kind%len(kinds)))]
		rec := newRecorder()
		rec.addRepo(model.Repository{Name: "demo", URL: "http://127.0.0.1:1/x", Provider: p, WebhookSecrets: []model.Secret{"s"}})
		s, err := gitsync.New(gitsync.Config{Recorder: rec, Dir: "unused"})
		if err != nil {
			t.Fatal(err)
		}
		mac := hexMAC("s", body)
		head := map[string]string{
			"X-Hub-Signature-256": "sha256=" + mac, "X-Hub-Signature": "sha256=" + mac, "X-Gitea-Signature": mac, "X-Forgejo-Signature": mac,
			"X-Intendant-Signature": "sha256=" + mac, "X-Gitlab-Token": "s",
			"X-GitHub-Event": event, "X-Gitlab-Event": event, "X-Gitea-Event": event, "X-Event-Key": event, "X-Intendant-Event": event,
		}
		if form {
			head["Content-Type"] = "application/x-www-form-urlencoded"
		}
		w := post(t, s.WebhookHandler(), "demo", head, body)
		if w.Code != http.StatusOK && w.Code != http.StatusAccepted {
			t.Errorf("%s: %d %s", p, w.Code, w.Body)
		}
		for _, d := range rec.deliveries {
			if err := gitsync.CheckBranch(d.Ref); err != nil || len(d.After) != 0 && len(d.After) != 40 {
				t.Errorf("stored %+v", d)
			}
		}
	})
}

func BenchmarkWebhookToQueued(b *testing.B) {
	o := newOrigin(b)
	o.push("main", files{"f": text("0")}, "c")
	rec, repo, s := local(b, o)
	rec.addEnv(repo, "main", "")
	run(b, s)
	h := s.WebhookHandler()
	rec.await(b, "the first commit is recorded", func() bool { return len(rec.jobs) == 1 })
	var took []time.Duration
	i := 0
	for b.Loop() {
		i++
		b.StopTimer()
		o.push("main", files{"f": text(fmt.Sprint(i))}, "c")
		b.StartTimer()
		begin := time.Now()
		if w := post(b, h, "demo", signedBy("s3cret", fmt.Sprint(i), pushed), pushed); w.Code == http.StatusTooManyRequests {
			b.Skip("the rate limit was reached")
		}
		rec.await(b, "the push is recorded", func() bool { return len(rec.jobs) == i+1 })
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
