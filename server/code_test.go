package server_test

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

func TestDiscovery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1")...)
	finder := "net::Scan[web,name=all]"
	found := func(path, values string) string {
		return fmt.Sprintf(`{"discovered_resource_id": "fs::File[web,path=%s]", "values": %s, "discovery_resource_id": "%s"}`, path, values, finder)
	}
	b.call("POST", "/api/v2/discovered/", `{"discovered_resources": [`+found("/a", `{"size": 12345678901234567890}`)+`, `+found("/b", `{}`)+`]}`)
	b.call("POST", "/api/v2/discovered/"+api.Segment("fs::File[web,path=/c]"), `{"discovery_resource_id": "`+finder+`", "values": {"x": null}}`)
	b.call("GET", "/api/v2/discovered", "")
	b.call("GET", "/api/v2/discovered?filter.managed=true", "")
	b.call("GET", "/api/v2/discovered?limit=1&sort=resource_id_value.desc", "")
	b.call("GET", "/api/v2/discovered?end=%2Fc&last_id="+api.Segment("fs::File[web,path=/c]")+"&limit=1&sort=resource_id_value.desc", "")
	b.call("GET", "/api/v2/discovered/"+api.Segment("fs::File[web,path=/b]"), "")
	b.call("GET", "/api/v2/discovered/"+api.Segment("fs::File[web,path=/none]"), "")
	b.call("POST", "/api/v2/discovered/", `{"discovered_resources": [`+found("/a", `[1]`)+`]}`)
	b.call("POST", "/api/v2/discovered/", `{"discovered_resources": [{"discovered_resource_id": "nonsense", "values": {}, "discovery_resource_id": "x"}]}`)
	b.call("DELETE", "/api/v2/discovered/"+api.Segment("fs::File[web,path=/b]"), "")
	b.call("DELETE", "/api/v2/discovered/"+api.Segment("fs::File[web,path=/b]"), "")
	b.call("DELETE", "/api/v2/discovered/?discovered_resource_ids="+api.Segment("fs::File[web,path=/a]")+"&discovered_resource_ids="+api.Segment("fs::File[web,path=/x]"), "")
	b.call("GET", "/api/v2/discovered", "")
	b.golden("discovery")
}

// A client that uploads a version ships code with it: by the agents that need it, as other exporters say it, or by types.
func TestCodeIsUploaded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	text := "x = 1\n"
	sum := sha1.Sum([]byte(text))
	hash := hex.EncodeToString(sum[:])
	b.call("PUT", "/api/v1/file/"+hash, `{"content": "`+base64.StdEncoding.EncodeToString([]byte(text))+`"}`)
	upload := func(version int, info string) string {
		return fmt.Sprintf(`{"version": %d, "resources": [{"id": "fs::File[web,path=/a],v=%d", "requires": [], "path": "/a"}], "module_version_info": %s,
			"pip_config": {"index_url": "https://pypi.example.org/simple", "pre": true, "use_system_config": false}, "project_constraints": "# why\nrequests<3  # not yet\n\nattrs==1\n"}`,
			version, version, info)
	}
	module := func(name, file, more string) string {
		return `{"` + name + `": {"name": "` + name + `", "version": "1", "files_in_module": [{"name": "` + file + `", "hash_value": "` + hash + `", "is_byte_code": false}], "requirements": ["requests"], ` + more + `}}`
	}
	for range 2 {
		b.call("POST", "/api/v2/reserve_version", "")
	}
	b.call("PUT", "/api/v1/version", upload(1, module("fs", "inmanta_plugins.fs", `"for_agents": ["web", "db"]`)))
	b.call("PUT", "/api/v1/version", upload(2, module("fs", "inmanta_plugins.fs", `"for_agents": [], "types": ["fs::File"]`)))
	b.call("GET", "/api/v2/code/2?resource_type=fs::File", "")
	b.call("GET", "/api/v2/code/2?resource_type=fs::Other", "")
	b.call("GET", "/api/v2/code/9?resource_type=fs::File", "")
	b.call("POST", "/api/v2/reserve_version", "")
	b.call("PUT", "/api/v1/version", upload(3, module("fs", "../../etc/passwd", `"for_agents": ["web"]`)))
	b.call("PUT", "/api/v1/version", upload(3, strings.Replace(module("fs", "inmanta_plugins.fs", `"for_agents": ["web"]`), `"is_byte_code": false`, `"is_byte_code": true`, 1)))
	b.call("PUT", "/api/v1/version", upload(3, strings.Replace(module("fs", "inmanta_plugins.fs", `"for_agents": ["web"]`), hash, strings.Repeat("0", 40), 1)))
	b.call("PUT", "/api/v1/version", upload(3, strings.Replace(module("fs", "inmanta_plugins.fs", `"for_agents": ["web"]`), `"requests"`, `"--index-url=http://evil"`, 1)))
	b.golden("code_upload")

	first, err := b.store.VersionCode(t.Context(), e.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.store.VersionCode(t.Context(), e.ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Agents) != 2 || first.Agents["db"] == "" || len(second.Agents) != 1 || second.Agents["web"] == "" {
		t.Errorf("the agents with code are %v, then %v; want web and db, then web", first.Agents, second.Agents)
	}
	want := &model.PipConfig{IndexURL: "https://pypi.example.org/simple", Pre: true, Constraints: []string{"requests<3", "attrs==1"}}
	if d := cmp.Diff(want, first.Pip); d != "" {
		t.Error(d)
	}
}

// Exporters of the first generation send code ahead of the version that it is for, by type and hash.
func TestCodeIsUploadedAhead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	file := func(text string) string {
		t.Helper()
		sum := sha1.Sum([]byte(text))
		hash := hex.EncodeToString(sum[:])
		b.call("PUT", "/api/v1/file/"+hash, `{"content": "`+base64.StdEncoding.EncodeToString([]byte(text))+`"}`)
		return hash
	}
	root, files, other := file("import os\n"), file("x = 1\n"), file("y = 1\n")
	source := func(hash, path, module, requirements string) string {
		return fmt.Sprintf(`"%s": ["%s", "%s", %s]`, hash, path, module, requirements)
	}
	upload := func(version int, resources string) {
		b.call("PUT", fmt.Sprintf("/api/v1/codebatched/%d", version), `{"resources": `+resources+`}`)
	}
	version := func(number int, more string) {
		b.call("PUT", "/api/v1/version", fmt.Sprintf(`{"version": %d, "resources": [{"id": "fs::File[web,path=/a],v=%d", "requires": [], "path": "/a"}]%s}`, number, number, more))
	}
	b.call("POST", "/api/v2/reserve_version", "")
	upload(1, `{"fs::File": {`+source(root, "libs/fs/plugins/__init__.py", "inmanta_plugins.fs", `["requests"]`)+`, `+source(files, "libs/fs/plugins/files.py", "inmanta_plugins.fs.files", `[]`)+`}}`)
	// A second batch adds to the first.
	upload(1, `{"fs::Directory": {`+source(root, "libs/fs/plugins/__init__.py", "inmanta_plugins.fs", `["attrs"]`)+`}, "net::Link": {`+source(other, "/x/net.py", "inmanta_plugins.net", `[]`)+`}}`)
	version(1, "")
	b.call("GET", "/api/v1/code/1?resource=fs::File", "")
	b.call("GET", "/api/v1/code/1?resource=net::Link", "")
	b.call("GET", "/api/v1/code/1?resource=fs::None", "")
	b.call("GET", "/api/v1/code/9?resource=fs::File", "")
	b.call("GET", "/api/v2/code/1?resource_type=fs::Directory", "")
	upload(1, `{}`) // it is stored
	upload(7, `{}`) // it was never reserved
	upload(0, `{}`)
	b.call("POST", "/api/v2/reserve_version", "")
	upload(2, `{"fs::File": {`+source(strings.Repeat("0", 40), "a.py", "inmanta_plugins.fs", `[]`)+`}}`)
	upload(2, `{"fs::File": {"`+root+`": ["a.py", "inmanta_plugins.fs"]}}`)
	upload(2, `{"fs::File": {`+source(root, "a.py", "os.path", `[]`)+`}}`)
	upload(2, `{"fs::File": {`+source(root, "a.py", "inmanta_plugins...etc", `[]`)+`}}`)
	upload(2, `{"fs::File": {`+source(root, "a.py", "inmanta_plugins.fs", `["--index-url=http://evil"]`)+`}}`)
	upload(2, `{"fs::File": {`+source(root, "a.py", "inmanta_plugins.fs", `"requests"`)+`}}`)
	// What a version brings itself comes first.
	upload(2, `{"fs::File": {`+source(root, "a.py", "inmanta_plugins.fs", `[]`)+`}}`)
	version(2, `, "module_version_info": {"net": {"name": "net", "version": "1", "files_in_module": [{"name": "inmanta_plugins.net", "hash_value": "`+other+`", "is_byte_code": false}], "requirements": [], "for_agents": ["web"]}}`)
	b.golden("code_upload_ahead")

	first, err := b.store.VersionCode(t.Context(), e.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	var fs model.ModuleCode
	for _, m := range first.Modules {
		if m.Module == "fs" {
			fs = m
		}
	}
	want := model.ModuleCode{Module: "fs", Types: []string{"fs::Directory", "fs::File"}, Requirements: []string{"attrs", "requests"}, Files: []model.CodeFile{
		{Name: "inmanta_plugins.fs", Hash: root, Package: true}, {Name: "inmanta_plugins.fs.files", Hash: files},
	}}.Canonical()
	if d := cmp.Diff(want, fs); d != "" || first.Agents["web"] == "" || len(first.Agents) != 1 {
		t.Errorf("the code of version 1, for agents %v, differs (-want +got):\n%s", first.Agents, d)
	}
	second, err := b.store.VersionCode(t.Context(), e.ID, 2)
	if err != nil || len(second.Modules) != 1 || second.Modules[0].Module != "net" {
		t.Errorf("the code of version 2 is %+v, %v; want that of its upload", second.Modules, err)
	}
}

// Who asks for a fact that is missing, or stale, has its resource asked for it, once within a time.
func TestFactsOnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1", "b=1")...)
	ask := func(resource string) int {
		t.Helper()
		err := b.client().Do(t.Context(), "GET", "/api/v1/parameter/ip?resource_id="+api.Segment(resource), nil, nil, nil)
		if err == nil {
			return 200
		}
		if e, ok := err.(*api.Error); ok { //nolint:errorlint // the client returns it as it is
			return e.Status
		}
		t.Fatal(err)
		return 0
	}
	requested := func() []model.ResourceID {
		t.Helper()
		pending, err := b.store.PendingCommands(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		var out []model.ResourceID
		for _, c := range pending {
			if c.Kind == model.CommandFacts {
				out = append(out, c.Resources...)
			}
		}
		return out
	}
	a, other := "fs::File[web,path=/a]", "fs::File[web,path=/b]"
	for range 3 {
		if status := ask(a); status != 503 {
			t.Errorf("a missing fact is answered with %d, want 503", status)
		}
	}
	if d := cmp.Diff([]model.ResourceID{model.ResourceID(a)}, requested()); d != "" {
		t.Errorf("asked three times: %s", d)
	}
	if status := ask("fs::File[web,path=/none]"); status != 404 {
		t.Errorf("a fact of no resource is answered with %d, want 404", status)
	}
	// What is stored and not released is asked for as it is stored.
	storetest.Version(t, b.store, e.ID, false, storetest.Intents(t, "a=1", "b=1", "c=1")...)
	if status := ask("fs::File[web,path=/c]"); status != 503 {
		t.Errorf("a fact of a resource that is not released is answered with %d, want 503", status)
	}
	pending, err := b.store.PendingCommands(t.Context(), e.ID)
	if err != nil || len(pending) != 2 || pending[0].Version != 0 || pending[1].Version != 2 {
		t.Errorf("commands = %+v, %v, want the second one to be about version 2", pending, err)
	}
	fact := func(age time.Duration, expires bool) {
		t.Helper()
		p := model.Parameter{Name: "ip", Value: "10.0.0.1", Source: model.SourceFact, Resource: model.ResourceID(other), Expires: expires, Updated: storetest.Now().Add(time.Hour).Add(-age)}
		if _, _, err := b.store.SetParameters(t.Context(), e.ID, []model.Parameter{p}, false, model.CompileJob{}); err != nil {
			t.Fatal(err)
		}
	}
	fact(time.Minute, true)
	if status := ask(other); status != 200 {
		t.Errorf("a fresh fact is answered with %d, want 200", status)
	}
	fact(2*time.Hour, false)
	if status := ask(other); status != 200 {
		t.Errorf("a fact that does not expire is answered with %d, want 200", status)
	}
	fact(2*time.Hour, true)
	if status := ask(other); status != 503 {
		t.Errorf("a stale fact is answered with %d, want 503", status)
	}
	if d := cmp.Diff([]model.ResourceID{model.ResourceID(a), "fs::File[web,path=/c]", model.ResourceID(other)}, requested()); d != "" {
		t.Error(d)
	}
}
