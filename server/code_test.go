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
