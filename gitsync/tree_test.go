package gitsync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

func TestHostileTrees(t *testing.T) {
	t.Parallel()
	limits := gitsync.TreeLimits{Entries: 50, FileBytes: 2000, TotalBytes: 5000, PathBytes: 300, Depth: 8}
	// raw makes a root tree with one entry of any name.
	raw := func(name string) func(o *origin) plumbing.Hash {
		return func(o *origin) plumbing.Hash {
			return o.rawTree(object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: o.blob("x")})
		}
	}
	of := func(fs files) func(o *origin) plumbing.Hash {
		return func(o *origin) plumbing.Hash { return o.tree(fs) }
	}
	many := files{}
	for i := range 60 {
		many[fmt.Sprintf("f%02d", i)] = text("")
	}
	for name, tt := range map[string]struct {
		tree func(o *origin) plumbing.Hash
		path string // "" when the tree is fine
		want string
	}{
		"absolute link":        {of(files{"a": link("/etc/passwd")}), "a", "absolute"},
		"link to root":         {of(files{"d/a": link("/")}), "d/a", "absolute"},
		"escaping link":        {of(files{"a": link("../x")}), "a", "leaves the tree"},
		"escaping deep link":   {of(files{"d/e/a": link("../../../x")}), "d/e/a", "leaves the tree"},
		"dot dot only":         {of(files{"a": link("..")}), "a", "leaves the tree"},
		"chain of links":       {of(files{"x/y/up": link("../.."), "m": link("x/y/up/../z")}), "m", "leaves the tree"},
		"link through link":    {of(files{"d/a": link("b"), "d/b": link("../../c")}), "d/a", "leaves the tree"},
		"escape and come back": {of(files{"a": link("../origin/f"), "f": text("")}), "a", "leaves the tree"},
		"circle":               {of(files{"a": link("b"), "b": link("a")}), "a", "circles"},
		"link to itself":       {of(files{"a": link("a/x")}), "a", "circles"},
		"empty link":           {of(files{"a": link("")}), "a", "empty"},
		"link with backslash":  {of(files{"a": link(`..\..\x`)}), "a", "not allowed"},
		"link with NUL":        {of(files{"a": link("b\x00c")}), "a", "not allowed"},
		"long link":            {of(files{"a": link(strings.Repeat("x", 400))}), "a", "longer than"},
		"link inside":          {of(files{"a": link("d/f"), "d/f": text("1"), "d/g": link("../d/f"), "e": link("d")}), "", ""},
		"link to nothing":      {of(files{"a": link("d/missing")}), "", ""},
		"dot dot name":         {raw(".."), "..", "no name"},
		"dot name":             {raw("."), ".", "no name"},
		"slash in name":        {raw("../../x"), "../../x", "slash"},
		"absolute name":        {raw("/etc/x"), "/etc/x", "slash"},
		"backslash":            {raw(`a\..\b`), `a\..\b`, "backslash"},
		"git directory":        {of(files{".git/hooks/post-checkout": text("#!/bin/sh")}), ".git", "git's own directory"},
		"upper case":           {raw(".GIT"), ".GIT", "git's own directory"},
		"nested":               {of(files{"a/b/.Git/config": text("")}), "a/b/.Git", "git's own directory"},
		"NTFS short name":      {raw("GIT~1"), "GIT~1", "git's own directory"},
		"trailing dot":         {raw(".git. ."), ".git. .", "git's own directory"},
		"NTFS stream":          {raw(".git::$INDEX_ALLOCATION"), ".git::$INDEX_ALLOCATION", "git's own directory"},
		"HFS ignorable":        {raw(".g\u200cit"), ".g\u200cit", "git's own directory"},
		"byte order mark":      {raw(".git\ufeff"), ".git\ufeff", "git's own directory"},
		"full-width":           {raw("\uff0egit"), "\uff0egit", "git's own directory"},
		"control character":    {raw("a\nb"), "a\nb", "control"},
		"not UTF-8":            {raw("a\xff"), "a\xff", "UTF-8"},
		"long name":            {raw(strings.Repeat("n", 256)), strings.Repeat("n", 256), "longer than 255"},
		"long path":            {of(files{strings.Repeat("n", 200) + "/" + strings.Repeat("n", 150): text("")}), strings.Repeat("n", 200) + "/" + strings.Repeat("n", 150), "longer than 300"},
		"case collision":       {of(files{"README": text(""), "readme": text("")}), "readme", "only in case"},
		"directory collision":  {of(files{"A/x": text(""), "a/y": text("")}), "a", "only in case"},
		"duplicate": {func(o *origin) plumbing.Hash {
			e := object.TreeEntry{Name: "a", Mode: filemode.Regular, Hash: o.blob("")}
			return o.rawTree(e, e)
		}, "a", "twice"},
		"link and directory": {func(o *origin) plumbing.Hash {
			return o.rawTree(object.TreeEntry{Name: "a", Mode: filemode.Symlink, Hash: o.blob("/tmp")}, object.TreeEntry{Name: "a", Mode: filemode.Dir, Hash: o.tree(files{"x": text("")})})
		}, "a", "twice"},
		"submodule": {func(o *origin) plumbing.Hash {
			return o.tree(files{"sub": {mode: filemode.Submodule, hash: plumbing.NewHash(strings.Repeat("1", 40))}})
		}, "sub", "submodules are not fetched"},
		"large file":           {of(files{"big": text(strings.Repeat("x", 2001))}), "big", "2001 bytes"},
		"large tree":           {of(files{"a": text(strings.Repeat("a", 1900)), "b": text(strings.Repeat("b", 1900)), "c": text(strings.Repeat("c", 1900))}), "c", "more than 5000 bytes"},
		"many files":           {of(many), "f50", "more than 50 entries"},
		"deep":                 {of(files{strings.Repeat("d/", 12) + "f": text("")}), strings.TrimSuffix(strings.Repeat("d/", 9), "/"), "nested"},
		"gitattributes, hooks": {of(files{".gitattributes": text("* filter=evil"), ".gitmodules": text("[submodule \"x\"]\n\tpath = ../x\n\turl = ext::sh -c evil"), ".gitignore": text("*")}), "", ""},
		"tree of the same tree": {func(o *origin) plumbing.Hash {
			h := o.tree(files{"f": text("x")})
			for range 7 {
				h = o.rawTree(object.TreeEntry{Name: "a", Mode: filemode.Dir, Hash: h}, object.TreeEntry{Name: "b", Mode: filemode.Dir, Hash: h})
			}
			return h
		}, "", "more than 50 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commitTree("refs/heads/main", tt.tree(o), "c")
			dir := t.TempDir()
			_, env, s := setup(t, model.Repository{URL: o.dir}, gitsync.Config{Dir: dir, AllowLocal: true, Tree: limits})
			rev, err := s.Resolve(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			_, release, err := s.Checkout(t.Context(), env, rev)
			if tt.path == "" && tt.want == "" {
				if err != nil {
					t.Fatalf("Checkout() = %v, want none", err)
				}
				release()
				return
			}
			wantErr(t, err, model.ErrInvalid, tt.want)
			hostile, ok := errors.AsType[*gitsync.HostileTreeError](err)
			if !ok {
				t.Fatalf("Checkout() = %v, want a HostileTreeError", err)
			}
			if tt.path != "" && hostile.Path != tt.path {
				t.Errorf("path = %q, want %q", hostile.Path, tt.path)
			}
			if left := glob(t, dir, "0/trees/demo/*"); len(left) != 0 {
				t.Errorf("a refused tree left %q", left)
			}
		})
	}
}

// BenchmarkCheckout unpacks a commit of 4,000 files that is in the mirror already.
func BenchmarkCheckout(b *testing.B) {
	o := newOrigin(b)
	fs := files{}
	for i := range 4000 {
		fs[fmt.Sprintf("d%02d/f%04d.cf", i%40, i)] = text(strings.Repeat(fmt.Sprintf("entity E%d: end\n", i), 40))
	}
	o.push("main", fs, "c")
	rec := newRecorder()
	repo := model.Repository{Name: "demo", URL: o.dir}
	rec.addRepo(repo)
	env := rec.addEnv(repo, "main", "")
	s := newService(b, gitsync.Config{Recorder: rec, AllowLocal: true, CacheBytes: 1})
	rev, err := s.Resolve(b.Context(), env)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, release, err := s.Checkout(b.Context(), env, rev)
		if err != nil {
			b.Fatal(err)
		}
		release() // the cache is too small to keep it
	}
}
