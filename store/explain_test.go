package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

// fill makes environments with hundreds of rows each in each table that lists are made from.
const fill = `
INSERT INTO version (environment, number, created_at, released_at, resources, added, changed, removed, digest, metadata, revision_repository,
	revision_ref, revision_commit, revision_author, revision_message, trace, resource_sets, undeployable, blocked)
SELECT e.id, n, now(), now(), 2000, 0, 0, 0, '', '{}', '', '', '', '', '', md5(e.name || n), '{}', '{}', '{}' FROM environment e, generate_series(1, 100) n;
INSERT INTO resource_body (environment, hash, attributes, requires, set_name, undefined)
SELECT e.id, sha256(convert_to(n::text, 'UTF8')), '{"a":1}', '{}', '', false FROM environment e, generate_series(1, 500) n;
INSERT INTO resource_interval (environment, resource_id, from_version, until_version, type, agent, value, attribute_hash, body, blocked)
SELECT e.id, 'fs::File[host' || n % 50 || ',path=/' || n || ']', 1 + n % 70, CASE n % 4 WHEN 0 THEN 71 + n % 20 ELSE 2147483647 END, 'fs::File', 'host' || n % 50, '/' || n,
	'', sha256(convert_to(n::text, 'UTF8')), false FROM environment e, generate_series(1, 500) n;
INSERT INTO resource_state (environment, resource_id, type, agent, value, compliance, last_run, blocked, deploying, intent_hash, deployed_hash,
	deployed_version, last_outcome, orphaned_after, failures)
SELECT environment, resource_id, type, agent, value, 'compliant', 'new', 'not_blocked', false, '', '', 0, '', 0, 0 FROM resource_interval;
INSERT INTO action (id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code, log)
SELECT gen_random_uuid(), environment, from_version, resource_id, 'deploy', '', now() - n * interval '1 minute', now(), 'deployed', 'nochange', '{}', md5(resource_id || n), '', '{"level":"INFO","time":"2026-01-01T00:00:00Z","message":"m"}'
FROM resource_interval, generate_series(1, 2) n;
INSERT INTO compile (id, environment, status, merge_key, follows_branch, revision_repository, revision_ref, revision_commit, revision_author,
	revision_message, reason, actor, trace, export, update_modules, remote_id, metadata, environment_variables, exporter_plugin, requested_at, finished_at, version)
SELECT gen_random_uuid(), e.id, 'succeeded', '', false, '', '', '', '', '', '', '', md5(e.name || n), true, false, '', '{}', '{}', '', now() - n * interval '1 minute', now(), 1 + n % 100
FROM environment e, generate_series(1, 500) n;
INSERT INTO notification (id, environment, created_at, title, message, severity, uri)
SELECT gen_random_uuid(), e.id, now() - n * interval '1 minute', '', '', 'info', '' FROM environment e, generate_series(1, 500) n;
INSERT INTO parameter (id, environment, name, resource_id, value, source, updated_at, metadata, expires)
SELECT gen_random_uuid(), e.id, 'p' || n, CASE n % 2 WHEN 0 THEN '' ELSE 'fs::File[host,path=/' || n || ']' END, '', 'user', now(), '{}', true
FROM environment e, generate_series(1, 500) n;
INSERT INTO command (id, environment, kind, agents, resources, version, reason, actor, trace, created_at, done_at)
SELECT gen_random_uuid(), e.id, 'deploy', '{}', '{}', 0, '', '', '', now() - n * interval '1 minute', CASE n WHEN 1 THEN NULL ELSE now() END
FROM environment e, generate_series(1, 500) n;
INSERT INTO delivery (repository, key, provider, event, ref, before, after, trace, received_at, status, detail, finished_at, headers, body)
SELECT r.name, n, '', '', '', '', '', md5(r.name || n), now() - n * interval '1 minute', 'synced', '', now(), '{}', '' FROM repository r, generate_series(1, 500) n;
ANALYZE;`

// Reading lists of one environment among many never walks through a whole table.
func TestListsUseIndexes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	setup := storetest.Open(t, url)
	var env model.EnvironmentID
	for i := range 20 {
		name := model.RepositoryName(fmt.Sprint("repo", i))
		env = storetest.Environment(t, setup, storetest.Watching("https://git.example.org/"+string(name), name)).ID
	}
	setup.Close()
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	// What a store has read is counted when its connections have ended.
	scans := func() map[string]int {
		t.Helper()
		for deadline := time.Now().Add(patience); ; {
			var open int
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'intendant'").Scan(&open); err != nil {
				t.Fatal(err)
			}
			if open == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d connections of the store are still open", open)
			}
		}
		out := map[string]int{}
		rows, err := conn.Query(t.Context(), "SELECT relname::text, seq_scan FROM pg_stat_user_tables")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var (
				table string
				n     int
			)
			if err := rows.Scan(&table, &n); err != nil {
				t.Fatal(err)
			}
			out[table] = n
		}
		return out
	}
	id := model.ResourceID("fs::File[host7,path=/107]")
	bound := &model.Bound{Value: "/5", ID: string(id)}
	at := &model.Bound{Value: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano), ID: uuid.NewString()}
	small := model.Page{Limit: 20}
	reads := map[string]func() error{}
	s := storetest.Open(t, url)
	for _, sort := range []string{"resource_type", "agent", "resource_id_value", "resource_id", "status"} {
		reads["resources by "+sort] = func() error {
			_, err := s.Resources(t.Context(), env, model.ResourceFilter{}, model.Page{Sort: sort, Limit: 20, Lower: bound})
			return err
		}
	}
	reads["resources filtered"] = func() error {
		_, err := s.Resources(t.Context(), env, model.ResourceFilter{Statuses: []model.Status{model.StatusFailed}, Agents: []string{"host1"}}, small)
		return err
	}
	reads["summary"] = func() error { _, err := s.DeploySummary(t.Context(), env); return err }
	reads["resource"] = func() error { _, err := s.Resource(t.Context(), env, id); return err }
	reads["history"] = func() error { _, err := s.ResourceHistory(t.Context(), env, id, small); return err }
	reads["logs"] = func() error { _, err := s.ResourceLogs(t.Context(), env, id, model.LogFilter{}, small); return err }
	reads["actions"] = func() error { _, err := s.Actions(t.Context(), env, model.ActionFilter{Limit: 20}); return err }
	reads["actions of a resource"] = func() error {
		_, err := s.Actions(t.Context(), env, model.ActionFilter{Resource: id, Limit: 20})
		return err
	}
	reads["trace"] = func() error { _, err := s.Trace(t.Context(), "0af7651916cd43dd8448eb211c80319c"); return err }
	reads["version resources"] = func() error {
		_, err := s.VersionResources(t.Context(), env, 50, model.ResourceFilter{}, model.Page{Sort: "agent", Limit: 20})
		return err
	}
	reads["version resource"] = func() error { _, err := s.VersionResource(t.Context(), env, 50, id); return err }
	reads["versions"] = func() error { _, err := s.Versions(t.Context(), env, model.VersionFilter{}, small); return err }
	reads["diff"] = func() error { _, err := s.DiffVersions(t.Context(), env, 69, 71); return err }
	reads["changes"] = func() error { _, _, _, err := s.ChangesSince(t.Context(), env, 98); return err }
	reads["agents' intents"] = func() error {
		_, _, err := s.AgentIntents(t.Context(), env, []model.AgentName{"host7"})
		return err
	}
	reads["compiles"] = func() error {
		_, err := s.CompileReports(t.Context(), env, model.CompileFilter{}, model.Page{Limit: 20, Descending: true, Upper: at})
		return err
	}
	reads["compile queue"] = func() error { _, err := s.CompileQueue(t.Context(), env); return err }
	reads["claim"] = func() error { _, err := s.ClaimCompileJob(t.Context(), "w", time.Now(), time.Minute); return err }
	reads["journeys"] = func() error { _, err := s.Journeys(t.Context(), env, time.Time{}, 10); return err }
	reads["notifications"] = func() error {
		_, err := s.Notifications(t.Context(), env, model.NotificationFilter{}, model.Page{Limit: 20, Descending: true})
		return err
	}
	reads["parameters"] = func() error { _, err := s.Parameters(t.Context(), env, model.ParameterFilter{}, small); return err }
	reads["facts"] = func() error { _, err := s.ResourceFacts(t.Context(), env, id); return err }
	reads["commands"] = func() error { _, err := s.PendingCommands(t.Context(), env); return err }
	reads["deliveries"] = func() error {
		_, err := s.Deliveries(t.Context(), model.DeliveryFilter{Repository: "repo3"}, model.Page{Limit: 20, Descending: true})
		return err
	}
	reads["unfinished deliveries"] = func() error { _, err := s.UnfinishedDeliveries(t.Context(), 10); return err }
	s.Close()
	// Small tables may be walked through.
	walked := map[string]bool{"environment": true, "repository": true, "project": true, "lease": true, "agent": true, "dryrun": true, "compile_stage": true, "schema_migration": true, "unknown": true, "running_action": true}
	for name, read := range reads {
		before := scans()
		s = storetest.Open(t, url)
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.Close()
		for table, n := range scans() {
			if n > before[table] && !walked[table] {
				t.Errorf("%s walks through the whole of table %s", name, table)
			}
		}
	}
}
