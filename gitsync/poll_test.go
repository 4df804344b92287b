package gitsync_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func TestPolling(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("main", files{"f": text("1")}, "c")
	rec := newRecorder()
	repo := model.Repository{Name: "demo", URL: o.dir}
	rec.addRepo(repo)
	rec.addRepo(model.Repository{Name: "broken", URL: "/nowhere", Poll: "often"})
	broken := rec.addEnv(model.Repository{Name: "broken"}, "main", "")
	rec.addEnv(repo, "main", "")
	s := newService(t, gitsync.Config{Recorder: rec, AllowLocal: true, PollInterval: 30 * time.Millisecond})
	stop := run(t, s)
	rec.await(t, "the first commit is recorded", func() bool { return len(rec.jobs) == 1 && rec.jobs[0].Rev.Commit == first })
	second := o.push("main", files{"f": text("2")}, "c")
	rec.await(t, "the second commit is recorded", func() bool { return len(rec.jobs) == 2 && rec.jobs[1].Rev.Commit == second })
	if rec.jobs[1].Reason != "poll" || rec.jobs[1].Trace == "" {
		t.Errorf("recorded %+v", rec.jobs[1])
	}
	rec.await(t, "the failure of the other is recorded", func() bool { return rec.syncs["broken"] != "" })
	stop()
	_ = broken
	if n := rec.synced["demo"]; n > 3 {
		t.Errorf("%d syncs were recorded though only two brought news", n)
	}
}

func TestHintsWakeThePoller(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := o.push("main", files{"f": text("1")}, "c")
	dev := o.push("dev", files{"f": text("2")}, "c")
	rec := newRecorder()
	s := newService(t, gitsync.Config{Recorder: rec, AllowLocal: true, PollInterval: -1})
	run(t, s)
	rec.await(t, "the service listens", func() bool { return true })
	awaitSubscriber(t, rec)

	repo := model.Repository{Name: "demo", URL: o.dir}
	rec.addRepo(repo)
	env := rec.addEnv(repo, "main", "")
	rec.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env.ID})
	rec.await(t, "the new environment is synced", func() bool { return len(rec.jobs) == 1 && rec.jobs[0].Rev.Commit == main })

	rec.update(func() { e := rec.envs[env.ID]; e.RepoBranch = "dev"; rec.envs[env.ID] = e })
	rec.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env.ID})
	rec.await(t, "the other branch is synced", func() bool { return len(rec.jobs) == 2 && rec.jobs[1].Rev.Commit == dev })

	other := newOrigin(t)
	moved := other.push("dev", files{"f": text("3")}, "c")
	rec.update(func() { repo.URL = other.dir; rec.repos["demo"] = repo })
	rec.hint(model.Hint{Topic: model.TopicRepository, ID: "demo"})
	rec.await(t, "the new URL is synced", func() bool { return len(rec.jobs) == 3 && rec.jobs[2].Rev.Commit == moved })

	// A halted environment is left alone until it is resumed.
	rec.update(func() { e := rec.envs[env.ID]; e.Halted = true; rec.envs[env.ID] = e })
	rec.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env.ID})
	last := other.push("dev", files{"f": text("4")}, "c")
	if _, err := s.SyncNow(t.Context(), "demo", "asked", ""); err != nil {
		t.Fatal(err)
	}
	if len(rec.jobs) != 3 {
		t.Errorf("a halted environment was synced: %+v", rec.jobs[3:])
	}
	rec.update(func() { e := rec.envs[env.ID]; e.Halted = false; rec.envs[env.ID] = e })
	rec.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env.ID})
	rec.await(t, "the resumed environment is synced", func() bool { return len(rec.jobs) == 4 && rec.jobs[3].Rev.Commit == last })
}

func awaitSubscriber(t *testing.T, rec *recorder) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		rec.mu.Lock()
		n := len(rec.subs)
		rec.mu.Unlock()
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody subscribed")
}

func TestParsePoll(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "0", "1", "60", "1.5", "*/5 * * * *", "0 3 * * 1", "@hourly"} {
		if _, err := gitsync.ParsePoll(good, time.Minute); err != nil {
			t.Errorf("ParsePoll(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{"-1", "0.5", "1e308", "NaN", "Inf", "1y", "often", "* * * *", "@every 1ns", "TZ=Mars * * * * *", strings.Repeat("*", 1000)} {
		_, err := gitsync.ParsePoll(bad, time.Minute)
		wantErr(t, err, model.ErrInvalid)
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://example.com/a/b.git", "http://example.com:8080/a", "ssh://git@example.com:2222/a.git", "git@example.com:a/b.git", "example.com:a/b.git",
		"https://user:token@example.com/a", "ssh://[2001:db8::1]:22/a", "git@[::1]:a", "HTTPS://example.com/a",
	} {
		if err := gitsync.CheckURL(good, false); err != nil {
			t.Errorf("CheckURL(%q) = %v", good, err)
		}
	}
	for _, good := range []string{"/srv/git/a.git", "file:///srv/git/a.git"} {
		if err := gitsync.CheckURL(good, true); err != nil {
			t.Errorf("CheckURL(%q) = %v", good, err)
		}
		wantErr(t, gitsync.CheckURL(good, false), model.ErrInvalid, "local")
	}
	for _, bad := range []string{
		"", "-u", "--upload-pack=x", "ext::sh -c evil", "fd::17", "git://example.com/a", "ftp://example.com/a", "javascript:alert(1)", "https://", "https:///a",
		"https://example.com", "https://example.com/a?x=1", "https://example.com/a#b", "file://other.host/a", "relative/path", "ssh://-oProxyCommand=x/a",
		"ssh://-x@example.com/a", "git@-evil:a", "git@example.com:-a", "https://exa mple.com/a", "https://example.com:99999/a", "https://example.com/a\nb", "C:\\repo",
		"https://" + strings.Repeat("x", 3000) + "/a", "https://s3cretpass@:80/",
	} {
		err := gitsync.CheckURL(bad, true)
		if !errors.Is(err, model.ErrInvalid) {
			t.Errorf("CheckURL(%q) = %v, want it invalid", bad, err)
			continue
		}
		if strings.Contains(err.Error(), "s3cretpass") {
			t.Errorf("CheckURL(%q) tells the secret: %v", bad, err)
		}
	}
}

func TestSplitURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][3]string{
		"https://user:tok%40en@example.com/a": {"https://example.com/a", "user", "tok@en"},
		"https://token@example.com/a":         {"https://example.com/a", "token", ""},
		"https://example.com/a":               {"https://example.com/a", "", ""},
		"ssh://git:pw@example.com/a":          {"ssh://git@example.com/a", "", "pw"},
		"git@example.com:a":                   {"git@example.com:a", "", ""},
		"bad://user:pw@x y/":                  {"bad://x y/", "", ""},
	} {
		clean, user, password := gitsync.SplitURL(raw)
		if got := [3]string{clean, user, password.Reveal()}; got != want {
			t.Errorf("SplitURL(%q) = %q, want %q", raw, got, want)
		}
	}
	if got := gitsync.RedactURL("fetch https://a:b@c/d and http://e:f@g/h: failed"); got != "fetch https://c/d and http://g/h: failed" {
		t.Errorf("RedactURL() = %q", got)
	}
}

// fetchUntilKilled is what the test binary does when it is started to be killed in the middle of a fetch.
func fetchUntilKilled(url, dir string) {
	rec := newRecorder()
	s, err := gitsync.New(gitsync.Config{Recorder: rec, Dir: dir})
	if err != nil {
		panic(err)
	}
	_, err = s.Resolve(context.Background(), model.Environment{RepoURL: url, RepoBranch: "main"})
	panic(err)
}

func TestKilledWhileFetching(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	commit := o.push("main", files{"f": text("one"), "g": text(strings.Repeat("noise 123 ", 1000))}, "c")
	sending := make(chan struct{}, 1)
	var healed atomic.Bool
	srv := serveHTTP(t, o, "", "", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if healed.Load() || !strings.HasSuffix(r.URL.Path, "git-upload-pack") {
				next.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()-30])
			w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's is one
			sending <- struct{}{}
			<-r.Context().Done()
		})
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url := srv.URL + "/origin.git"
	cmd := exec.CommandContext(t.Context(), self, "fetch-and-be-killed", url, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-sending
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	healed.Store(true)
	s := newService(t, gitsync.Config{Recorder: newRecorder(), Dir: dir})
	if got := checkout(t, s, model.Environment{RepoURL: url, RepoBranch: "main"}, commit); got != "one" {
		t.Errorf("f = %q", got)
	}
	for _, p := range glob(t, dir, "0/mirrors/*/*/objects/pack/*") {
		if strings.Contains(p, "tmp_") {
			t.Errorf("the killed process's %s is still there", p)
		}
	}
}

func TestRequestedSyncAndReplay(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.push("main", files{"f": text("1")}, "c")
	rec, repo, s := local(t, o)
	rec.addEnv(repo, "main", "")
	run(t, s)
	rec.await(t, "the first commit is recorded", func() bool { return len(rec.jobs) == 1 && rec.synced["demo"] == 1 })

	// A request without news is recorded, so that whoever asked sees it; one with news as well.
	for i := range 3 {
		asked := time.Now()
		want := len(rec.jobs)
		if i > 0 {
			o.push("main", files{"f": text(strings.Repeat("x", i))}, "c")
			want++
		}
		rec.update(func() { repo.SyncRequested = asked; rec.repos["demo"] = repo })
		rec.hint(model.Hint{Topic: model.TopicRepository, ID: "demo"})
		rec.await(t, "the request is served", func() bool { return rec.syncedAt["demo"].After(asked) && len(rec.jobs) == want })
	}
	if got := rec.jobs[len(rec.jobs)-1].Reason; got != "requested" {
		t.Errorf("reason = %q", got)
	}

	if w := post(t, s.WebhookHandler(), "demo", signedBy("s3cret", "d1", pushed), pushed); w.Code != http.StatusAccepted {
		t.Fatalf("status = %d", w.Code)
	}
	rec.await(t, "the delivery is synced", func() bool { return rec.deliveries["d1"].Status == model.DeliverySynced })
	commit := o.push("main", files{"f": text("replayed")}, "c")
	rec.update(func() { d := rec.deliveries["d1"]; d.Status = model.DeliveryReceived; rec.deliveries["d1"] = d })
	rec.hint(model.Hint{Topic: model.TopicReplay, ID: "demo/d1"})
	rec.await(t, "the delivery is synced again", func() bool { return rec.deliveries["d1"].Status == model.DeliverySynced })
	if got := rec.jobs[len(rec.jobs)-1]; got.Rev.Commit != commit {
		t.Errorf("recorded %+v, want %s", got, commit)
	}
}
