package lang_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/model"
)

func TestFilesRequireTheDirectoriesAboveThem(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"project.yml": {Data: []byte("name: t\n")}, "main.cf": {Data: []byte(`
host = std::Host(name="h", os=std::linux)
std::File(host=host, path="/srv/site/index.html", mode=644, owner="root", group="root", content="x")
std::Directory(host=host, path="/srv/site", mode=755, owner="root", group="root")
std::Directory(host=host, path="/srv/sit", mode=755, owner="root", group="root")
`)}}
	res, ds, err := lang.Compile(t.Context(), lang.Project{FS: files}, lang.Options{})
	if err != nil || ds.HasErrors() {
		t.Fatalf("%v\n%s", err, ds)
	}
	got := map[model.ResourceID][]model.ResourceID{}
	for _, in := range res.State.Intents {
		got[in.Resource] = in.Requires
	}
	want := map[model.ResourceID][]model.ResourceID{
		"std::Directory[h,path=/srv/sit]":        nil,
		"std::Directory[h,path=/srv/site]":       nil,
		"std::File[h,path=/srv/site/index.html]": {"std::Directory[h,path=/srv/site]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
