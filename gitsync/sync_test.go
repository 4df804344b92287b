package gitsync_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func local(t testing.TB, o *origin) (*recorder, model.Repository, *gitsync.Service) {
	t.Helper()
	rec := newRecorder()
	repo := model.Repository{Name: "demo", URL: "file://" + o.dir, Provider: model.ProviderGitHub, WebhookSecrets: []model.Secret{"s3cret"}, Poll: "0"}
	rec.addRepo(repo)
	return rec, repo, newService(t, gitsync.Config{Recorder: rec, AllowLocal: true})
}

func TestResolveAndCheckout(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("main", files{"main.cf": text("a"), "sub/project.yml": text("name: x"), "link": link("sub/project.yml")}, "first\n")
	rec, repo, s := local(t, o)
	env := rec.addEnv(repo, "", "")

	rev, err := s.Resolve(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if rev.Commit != first || rev.Ref != "refs/heads/main" || rev.Message != "first" || !strings.HasPrefix(rev.Author, "Ada") || rev.CommittedAt.IsZero() {
		t.Errorf("Resolve() = %+v, want commit %s of refs/heads/main", rev, first)
	}
	dir, release, err := s.Checkout(t.Context(), env, rev)
	if err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, dir, "main.cf") + readFile(t, dir, "link"); got != "aname: x" {
		t.Errorf("content = %q", got)
	}
	if fi, _ := os.Stat(filepath.Join(dir, "main.cf")); fi.Mode().Perm() != 0o444 {
		t.Errorf("mode of main.cf = %v, want read-only", fi.Mode())
	}
	release()

	second := o.push("main", files{"main.cf": text("b")}, "second")
	rev2, err := s.Resolve(t.Context(), env)
	if err != nil || rev2.Commit != second {
		t.Fatalf("Resolve() = %v, %v, want %s", rev2.Commit, err, second)
	}
	// The older one still can be had, and the newer one is another directory.
	dir1, release1, err := s.Checkout(t.Context(), env, rev)
	if err != nil {
		t.Fatal(err)
	}
	defer release1()
	dir2, release2, err := s.Checkout(t.Context(), env, rev2)
	if err != nil {
		t.Fatal(err)
	}
	defer release2()
	if got := readFile(t, dir1, "main.cf") + readFile(t, dir2, "main.cf"); got != "ab" {
		t.Errorf("contents = %q, want ab", got)
	}

	env.RepoPath = "sub"
	if dir, release, err := s.Checkout(t.Context(), env, rev); err != nil {
		t.Error(err)
	} else {
		defer release()
		readFile(t, dir, "project.yml")
	}
	for _, bad := range []string{"../x", "/etc", "sub/../..", "missing", "main.cf"} {
		env.RepoPath = bad
		if _, _, err := s.Checkout(t.Context(), env, rev); err == nil {
			t.Errorf("Checkout of path %q succeeded", bad)
		}
	}
}

func TestResolveRefs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	main := o.push("main", files{"f": text("1")}, "m")
	dev := o.push("dev", files{"f": text("2")}, "d")
	tagged := o.commitTree("refs/tags/v1", o.tree(files{"f": text("3")}), "t")
	o.commitTree("refs/tags/dev", o.tree(files{"f": text("4")}), "t") // a tag named like a branch
	annotated := o.object(plumbing.TagObject, []byte("object "+tagged+"\ntype commit\ntag v2\ntagger Ada <a@b> 1700000000 +0000\n\nx\n"))
	if err := o.repo.Storer.SetReference(plumbing.NewHashReference("refs/tags/v2", annotated)); err != nil {
		t.Fatal(err)
	}
	rec, repo, s := local(t, o)
	for branch, want := range map[string][2]string{
		"": {"refs/heads/main", main}, "main": {"refs/heads/main", main}, "dev": {"refs/heads/dev", dev}, "refs/heads/dev": {"refs/heads/dev", dev},
		"v1": {"refs/tags/v1", tagged}, "v2": {"refs/tags/v2", tagged},
	} {
		rev, err := s.Resolve(t.Context(), rec.addEnv(repo, branch, ""))
		if err != nil {
			t.Errorf("Resolve(%q): %v", branch, err)
			continue
		}
		if diff := cmp.Diff(want, [2]string{rev.Ref, rev.Commit}); diff != "" {
			t.Errorf("Resolve(%q): %s", branch, diff)
		}
	}
	_, err := s.Resolve(t.Context(), rec.addEnv(repo, "gone", ""))
	wantErr(t, err, model.ErrNotFound, `no branch or tag "gone"`)
	for _, bad := range []string{"-x", "a..b", "a b", "a@{1}", "refs/heads/../x", "x.lock", "a//b", strings.Repeat("x", 65536), "a\x00b", "/a", ".a", "a^", "a:b"} {
		_, err := s.Resolve(t.Context(), rec.addEnv(repo, bad, ""))
		wantErr(t, err, model.ErrInvalid)
	}
}

func TestForcePushAndFolding(t *testing.T) {
	t.Parallel()
	for _, web := range []bool{false, true} {
		t.Run(fmt.Sprintf("web=%t", web), func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			url := o.dir
			if web {
				url = serveHTTP(t, o, "", "", nil).URL + "/origin.git"
			}
			dir := t.TempDir()
			_, env, s := setup(t, model.Repository{URL: url}, gitsync.Config{AllowLocal: true, MaxPacks: 3, Dir: dir})
			pushAndFetch(t, o, s, env)
			mirrors := glob(t, dir, "0/mirrors/demo/*.git")
			if len(mirrors) != 1 {
				t.Fatalf("mirrors = %q", mirrors)
			}
			if n := len(glob(t, mirrors[0], "objects/pack/*.pack")); n > 4 {
				t.Errorf("the mirror has %d packs", n)
			}
			if out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "-C", mirrors[0], "fsck", "--full", "--strict").CombinedOutput(); err != nil {
				t.Errorf("git fsck: %v: %s", err, out)
			}
		})
	}
}

func pushAndFetch(t *testing.T, o *origin, s *gitsync.Service, env model.Environment) {
	t.Helper()
	for i := range 12 {
		if i == 4 { // start again from nothing
			if err := o.repo.Storer.RemoveReference("refs/heads/main"); err != nil {
				t.Fatal(err)
			}
		}
		want := o.push("main", files{"f": text(strings.Repeat("x", i))}, "c")
		rev, err := s.Resolve(t.Context(), env)
		if err != nil || rev.Commit != want {
			t.Fatalf("push %d: Resolve() = %s, %v, want %s", i, rev.Commit, err, want)
		}
		dir, release, err := s.Checkout(t.Context(), env, rev)
		if err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, dir, "f"); len(got) != i {
			t.Errorf("push %d: f = %q", i, got)
		}
		release()
	}
}

func TestDamagedMirrorIsClonedAgain(t *testing.T) {
	t.Parallel()
	damage := map[string]func(t *testing.T, mirror string){
		"truncated pack": func(t *testing.T, mirror string) {
			t.Helper()
			for _, p := range glob(t, mirror, "objects/pack/*.pack") {
				if err := os.Chmod(p, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(p, 40); err != nil {
					t.Fatal(err)
				}
			}
		},
		"lost index": func(t *testing.T, mirror string) {
			t.Helper()
			for _, p := range glob(t, mirror, "objects/pack/*.idx") {
				if err := os.Remove(p); err != nil {
					t.Fatal(err)
				}
			}
		},
		"killed while fetching": func(t *testing.T, mirror string) {
			t.Helper()
			// An index without its pack, half a pack, and refs that point to what never came.
			for _, p := range glob(t, mirror, "objects/pack/*.pack") {
				if err := os.Rename(p, filepath.Join(filepath.Dir(p), "tmp_pack_1")); err != nil {
					t.Fatal(err)
				}
			}
		},
		"lost mirror": func(t *testing.T, mirror string) {
			t.Helper()
			if err := os.RemoveAll(mirror); err != nil {
				t.Fatal(err)
			}
		},
		"garbage refs": func(t *testing.T, mirror string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(mirror, "refs/heads/main"), []byte("garbage\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.push("main", files{"f": text(strings.Repeat("some text ", 500))}, "one")
			rec := newRecorder()
			repo := model.Repository{Name: "demo", URL: o.dir}
			rec.addRepo(repo)
			dir := t.TempDir()
			s := newService(t, gitsync.Config{Recorder: rec, AllowLocal: true, Dir: dir})
			env := rec.addEnv(repo, "main", "")
			rev, err := s.Resolve(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			mirrors := glob(t, dir, "0/mirrors/demo/*.git")
			if len(mirrors) != 1 {
				t.Fatalf("mirrors = %q", mirrors)
			}
			harm(t, mirrors[0])
			got, release, err := s.Checkout(t.Context(), env, rev)
			if err != nil {
				t.Fatalf("Checkout() after damage: %v", err)
			}
			readFile(t, got, "f")
			release()
			harm(t, mirrors[0])
			want := o.push("main", files{"f": text("new")}, "two")
			rev, err = s.Resolve(t.Context(), env)
			if err != nil || rev.Commit != want {
				t.Fatalf("Resolve() after damage = %s, %v, want %s", rev.Commit, err, want)
			}
			if _, release, err = s.Checkout(t.Context(), env, rev); err != nil {
				t.Fatalf("Checkout() after damage: %v", err)
			}
			release()
		})
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTreeCache(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	rec := newRecorder()
	repo := model.Repository{Name: "demo", URL: o.dir}
	rec.addRepo(repo)
	dir := t.TempDir()
	env := rec.addEnv(repo, "main", "")
	c := gitsync.Config{Recorder: rec, AllowLocal: true, Dir: dir, CacheBytes: 60_000}
	s, err := gitsync.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var revs []model.Revision
	var held string
	var releaseHeld func()
	for i := range 4 {
		o.push("main", files{"f": text(strings.Repeat("y", 20_000+i))}, "c")
		rev, err := s.Resolve(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		revs = append(revs, rev)
		d, release, err := s.Checkout(t.Context(), env, rev)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			held, releaseHeld = d, release
		} else {
			release()
		}
	}
	if _, err := os.Stat(held); err != nil {
		t.Errorf("a tree in use was removed: %v", err)
	}
	if n := len(glob(t, dir, "0/trees/demo/*")); n != 2 {
		t.Errorf("%d trees are kept, want 2: the one in use and the newest", n)
	}
	releaseHeld()
	// A half-written tree of a process that died is no tree.
	half := filepath.Join(dir, "0/trees/demo", revs[3].Commit, ".ready")
	if err := os.Remove(half); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newService(t, c)
	got, release, err := s.Checkout(t.Context(), env, revs[3])
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if readFile(t, got, "f")[0] != 'y' {
		t.Error("the tree was not written again")
	}
	// Two at once with the same directory do not meet.
	other := newService(t, c)
	got2, release2, err := other.Checkout(t.Context(), env, revs[3])
	if err != nil {
		t.Fatal(err)
	}
	defer release2()
	if got == got2 {
		t.Errorf("two services share the tree %s", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	want := o.push("main", files{"f": text("1")}, "c")
	rec, repo, s := local(t, o)
	env := rec.addEnv(repo, "main", "")
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			rev, err := s.Resolve(t.Context(), env)
			if err != nil || rev.Commit != want {
				t.Errorf("Resolve() = %s, %v", rev.Commit, err)
				return
			}
			d, release, err := s.Checkout(t.Context(), env, rev)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := os.Stat(filepath.Join(d, "f")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Resolve(ctx, env)
	wantErr(t, err, context.Canceled)
}

func TestSyncNow(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	rec, repo, s := local(t, o)
	a, b, gone := rec.addEnv(repo, "main", ""), rec.addEnv(repo, "", ""), rec.addEnv(repo, "gone", "")
	_, err := s.SyncNow(t.Context(), "demo", "asked", "")
	wantErr(t, err, model.ErrNotFound, "push a first commit")
	if rec.syncs["demo"] == "" {
		t.Error("the failure was not recorded")
	}
	commit := o.push("main", files{"f": text("1")}, "c")
	res, err := s.SyncNow(t.Context(), "demo", "asked", "0123456789abcdef0123456789abcdef")
	wantErr(t, err, model.ErrNotFound, `"gone"`)
	if len(res.Jobs) != 2 || res.Revisions[a.ID].Commit != commit || res.Revisions[b.ID].Commit != commit {
		t.Errorf("SyncNow() = %+v, want two jobs at %s", res, commit)
	}
	if rec.jobs[0].Reason != "asked" || rec.jobs[0].Trace != "0123456789abcdef0123456789abcdef" {
		t.Errorf("recorded %+v", rec.jobs[0])
	}
	rec.update(func() { delete(rec.envs, gone.ID) })
	res, err = s.SyncNow(t.Context(), "demo", "asked", "")
	if err != nil || len(res.Jobs) != 0 || rec.syncs["demo"] != "" {
		t.Errorf("second SyncNow() = %+v, %v, recorded %q; want no jobs", res, err, rec.syncs["demo"])
	}
	_, err = s.SyncNow(t.Context(), "nothing", "asked", "")
	wantErr(t, err, model.ErrNotFound)
}

func TestNewChecksConfig(t *testing.T) {
	t.Parallel()
	_, err := gitsync.New(gitsync.Config{PollJitter: 2})
	wantErr(t, err, model.ErrInvalid, "Dir", "Recorder", "PollJitter")
	reg := prometheus.NewRegistry()
	c := gitsync.Config{Dir: t.TempDir(), Recorder: newRecorder(), Registerer: reg}
	if _, err := gitsync.New(c); err != nil {
		t.Fatal(err)
	}
	if _, err := gitsync.New(c); err == nil {
		t.Error("the same metrics were registered twice")
	}
}

// BenchmarkUnchanged is what one poll without news costs.
func BenchmarkUnchanged(b *testing.B) {
	for _, web := range []bool{false, true} {
		b.Run(fmt.Sprintf("web=%t", web), func(b *testing.B) {
			o := newOrigin(b)
			o.push("main", files{"f": text("0")}, "c")
			rec := newRecorder()
			repo := model.Repository{Name: "demo", URL: o.dir}
			if web {
				repo.URL = serveHTTP(b, o, "", "", nil).URL + "/origin.git"
			}
			rec.addRepo(repo)
			rec.addEnv(repo, "main", "")
			s := newService(b, gitsync.Config{Recorder: rec, AllowLocal: true})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.SyncNow(b.Context(), "demo", "poll", ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
