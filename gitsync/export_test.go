package gitsync_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func TestRefsAndExport(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.commitTree("refs/tags/1.0", o.tree(files{"f": text("one"), "sub/x": {mode: filemode.Executable, text: "#!"}}), "c")
	second := o.push("main", files{"f": text("two")}, "c")
	srv := serveHTTP(t, o, "ada", "pa55word", nil)
	repo := model.Repository{Name: "module-x", URL: srv.URL + "/origin.git", Username: "ada", Password: "pa55word"}
	s := newService(t, gitsync.Config{Recorder: newRecorder()})
	head, refs, err := s.Refs(t.Context(), repo)
	if err != nil || head != "refs/heads/main" || refs["refs/tags/1.0"] != first || refs["refs/heads/main"] != second || len(refs) != 2 {
		t.Fatalf("Refs = %q, %v, %v; want main at %s and 1.0 at %s", head, refs, err, second, first)
	}
	export := func(ref, commit string) (string, error) {
		dir := filepath.Join(t.TempDir(), "tree")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir, s.Export(t.Context(), repo, ref, commit, dir)
	}
	dir, err := export("refs/tags/1.0", first)
	if err != nil || readFile(t, dir, "f") != "one" || readFile(t, dir, "sub", "x") != "#!" {
		t.Fatalf("Export: %v", err)
	}
	// Somebody unknown may not know what is there; whoever has credentials is told that they are refused.
	for name, tc := range map[string]struct {
		repo   model.Repository
		unseen bool
	}{
		"unknown":          {model.Repository{Name: "module-x", URL: repo.URL}, true},
		"refused":          {model.Repository{Name: "module-x", URL: repo.URL, Username: "ada", Password: "wr0ngpass"}, false},
		"refused from URL": {model.Repository{Name: "module-x", URL: strings.Replace(repo.URL, "http://", "http://ada:wr0ngpass@", 1)}, false},
	} {
		_, _, err := s.Refs(t.Context(), tc.repo)
		wantErr(t, err, model.ErrUnavailable, "authentication required", "check the repository's user name, token or key")
		if errors.Is(err, model.ErrNotFound) != tc.unseen {
			t.Errorf("%s: not found = %v, want %v: %v", name, !tc.unseen, tc.unseen, err)
		}
	}
	// What is at hand needs no remote.
	srv.Close()
	if _, err := export("refs/tags/1.0", first); err != nil {
		t.Errorf("Export without the remote: %v", err)
	}
	_, err = export("refs/heads/main", second)
	wantErr(t, err, model.ErrUnavailable, "module-x")
	_, _, err = s.Refs(t.Context(), repo)
	wantErr(t, err, model.ErrUnavailable)
	if strings.Contains(err.Error(), "pa55word") {
		t.Errorf("the error tells the password: %v", err)
	}
	_, err = export("refs/heads/main", "abc")
	wantErr(t, err, model.ErrInvalid, "full object id")
	_, err = export("--upload-pack=x", first)
	wantErr(t, err, model.ErrInvalid, "begins with a dash")
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	moved := o.push("main", files{"f": text("one")}, "c")
	hostile := o.push("links", files{"f": link("/etc/passwd")}, "c")
	o.push("empty", files{}, "c")
	s := newService(t, gitsync.Config{Recorder: newRecorder(), AllowLocal: true})
	repo := model.Repository{Name: "module-x", URL: o.dir}
	_, refs, err := s.Refs(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(o.dir, "refs", "heads", "main")); err != nil {
		t.Fatal(err)
	}
	o.push("main", files{"f": text("another history")}, "c")
	for name, tc := range map[string]struct {
		ref, commit string
		kind        error
		says        string
	}{
		"a commit that is gone":   {"refs/heads/main", moved, model.ErrNotFound, "not part of the watched branch"},
		"a ref that is not there": {"refs/tags/9", moved, model.ErrNotFound, "not part of the watched branch"},
		"a hostile link":          {"refs/heads/links", hostile, model.ErrInvalid, "absolute"},
		"nothing":                 {"refs/heads/empty", refs["refs/heads/empty"], model.ErrInvalid, "is empty"},
	} {
		dir := t.TempDir()
		if err := s.Export(t.Context(), repo, tc.ref, tc.commit, dir); err == nil {
			t.Errorf("%s: Export succeeded", name)
		} else {
			wantErr(t, err, tc.kind, tc.says)
		}
	}
	remote := newService(t, gitsync.Config{Recorder: newRecorder()})
	wantErr(t, remote.Export(t.Context(), repo, "refs/heads/main", moved, t.TempDir()), model.ErrForbidden)
}
