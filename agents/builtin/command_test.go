package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{Path: "/usr/bin:/bin", Env: []string{"KEPT=kept", "PATH=/nowhere"}})
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	write(t, there, "", 0o644)
	tests := map[string]struct {
		attributes map[string]any
		outcome    model.Outcome
		code       string
		change     model.Change
		log        string
	}{
		"runs":                   {map[string]any{"command": "echo 'hello world'"}, model.OutcomeDeployed, "", model.ChangeUpdated, "hello world"},
		"no shell":               {map[string]any{"command": "echo $HOME *"}, model.OutcomeDeployed, "", model.ChangeUpdated, "$HOME *"},
		"environment":            {map[string]any{"command": "env", "environment": map[string]any{"MINE": "x y", "N": 3}}, model.OutcomeDeployed, "", model.ChangeUpdated, "MINE=x y\nN=3"},
		"environment is kept":    {map[string]any{"command": "env"}, model.OutcomeDeployed, "", model.ChangeUpdated, "KEPT=kept\nPATH=/usr/bin:/bin"},
		"cwd":                    {map[string]any{"command": "pwd", "cwd": dir}, model.OutcomeDeployed, "", model.ChangeUpdated, dir},
		"cwd is the root":        {map[string]any{"command": "pwd"}, model.OutcomeDeployed, "", model.ChangeUpdated, "stdout: /"},
		"creates is there":       {map[string]any{"command": "false", "creates": there}, model.OutcomeDeployed, "", model.ChangeNone, "need not run"},
		"creates is not there":   {map[string]any{"command": "true", "creates": there + "2"}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
		"unless holds":           {map[string]any{"command": "false", "unless": "test -e " + there}, model.OutcomeDeployed, "", model.ChangeNone, "unless"},
		"unless does not hold":   {map[string]any{"command": "true", "unless": "false"}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
		"unless is not found":    {map[string]any{"command": "true", "unless": "no-such-program"}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
		"onlyif holds":           {map[string]any{"command": "true", "onlyif": "true"}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
		"onlyif does not hold":   {map[string]any{"command": "false", "onlyif": "false"}, model.OutcomeDeployed, "", model.ChangeNone, "onlyif"},
		"onlyif is not found":    {map[string]any{"command": "false", "onlyif": "no-such-program"}, model.OutcomeDeployed, "", model.ChangeNone, "onlyif"},
		"reload only":            {map[string]any{"command": "false", "reload_only": true}, model.OutcomeDeployed, "", model.ChangeNone, ""},
		"wrong status":           {map[string]any{"command": "sh -c 'echo why >&2; exit 3'"}, model.OutcomeFailed, "exit-status", model.ChangeNone, "why"},
		"expected status":        {map[string]any{"command": "sh -c 'exit 3'", "returns": []int{0, 3}}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
		"killed by a signal":     {map[string]any{"command": "sh -c 'kill -TERM $$'"}, model.OutcomeFailed, "exit-status", model.ChangeNone, "143"},
		"skip on fail":           {map[string]any{"command": "false", "skip_on_fail": true}, model.OutcomeSkipped, "skipped", model.ChangeNone, "status 1"},
		"program is missing":     {map[string]any{"command": "no-such-program"}, model.OutcomeFailed, "program-missing", model.ChangeNone, "/usr/bin:/bin"},
		"path of its own":        {map[string]any{"command": "echo", "path": dir}, model.OutcomeFailed, "program-missing", model.ChangeNone, dir},
		"timeout":                {map[string]any{"command": "sh -c 'sleep 100 & wait'", "timeout": 0.2}, model.OutcomeFailed, "handler-error", model.ChangeNone, "did not end in time"},
		"command is empty":       {map[string]any{"command": ""}, model.OutcomeFailed, "invalid-resource", model.ChangeNone, "empty"},
		"quote is not closed":    {map[string]any{"command": "echo 'x"}, model.OutcomeFailed, "invalid-resource", model.ChangeNone, "not closed"},
		"double quotes":          {map[string]any{"command": `echo "a \"b\" $c" d\ e`}, model.OutcomeDeployed, "", model.ChangeUpdated, `a "b" $c d e`},
		"ends in a backslash":    {map[string]any{"command": `echo \`}, model.OutcomeFailed, "invalid-resource", model.ChangeNone, "backslash"},
		"long output is cut":     {map[string]any{"command": "sh -c 'head -c 100000 /dev/zero | tr \"\\0\" x; echo end'"}, model.OutcomeDeployed, "", model.ChangeUpdated, "left out"},
		"background is let live": {map[string]any{"command": "sh -c 'sleep 0.1 >/dev/null 2>&1 &'"}, model.OutcomeDeployed, "", model.ChangeUpdated, ""},
	}
	for name, test := range tests {
		began := time.Now()
		r := deploy(t, s, id("exec::Run", "command", strings.ReplaceAll(name, " ", "-")), test.attributes)
		if r.Outcome != test.outcome || r.Code != test.code || r.Change != test.change {
			t.Errorf("%s: %s (%s), %s, want %s (%s), %s; %s", name, r.Outcome, r.Code, r.Change, test.outcome, test.code, test.change, messages(r))
		}
		if !strings.Contains(messages(r), test.log) {
			t.Errorf("%s: log is %q, want %q in it", name, messages(r), test.log)
		}
		if time.Since(began) > 20*time.Second {
			t.Errorf("%s took %v", name, time.Since(began))
		}
	}
}

func TestRunReload(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{Path: "/usr/bin:/bin", Env: []string{}})
	tests := map[string]struct {
		reload, reloadOnly, guarded bool
		asked                       bool
		want                        string
	}{
		"command again":                      {guarded: true, asked: true, want: "c"},
		"command has run already":            {asked: true, want: "c"},
		"reload after the command":           {reload: true, asked: true, want: "cr"},
		"reload alone":                       {reload: true, guarded: true, asked: true, want: "r"},
		"reload only":                        {reloadOnly: true, asked: true, want: "c"},
		"reload only with a reload":          {reload: true, reloadOnly: true, asked: true, want: "r"},
		"reload only without a change":       {reloadOnly: true, want: ""},
		"reload only after nothing happened": {reload: true, reloadOnly: true, want: ""},
	}
	for name, test := range tests {
		path := filepath.Join(t.TempDir(), "log")
		attributes := map[string]any{"command": "sh -c 'printf c >> " + path + "'", "reload_only": test.reloadOnly}
		if test.reload {
			attributes["reload"] = "sh -c 'printf r >> " + path + "'"
		}
		if test.guarded {
			attributes["unless"] = "true"
		}
		task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, id("exec::Run", "command", strings.ReplaceAll(name, " ", "-")), attributes))
		task.Reload = test.asked
		r := s.Run(t, task)
		content, _ := os.ReadFile(path)
		if r.Outcome != model.OutcomeDeployed || string(content) != test.want {
			t.Errorf("%s: %s, ran %q, want %q; %s", name, r.Outcome, content, test.want, messages(r))
		}
		if changed := r.Change != model.ChangeNone; changed != (test.want != "") {
			t.Errorf("%s: change is %s", name, r.Change)
		}
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	cfg, state := systemd(t, "web", "masked", "static")
	write(t, filepath.Join(state, "exists.masked"), "masked\n", 0o644)
	write(t, filepath.Join(state, "static.static"), "", 0o644)
	s := host(t, cfg)
	tests := map[string]struct {
		attributes map[string]any
		outcome    model.Outcome
		code       string
		log        string
	}{
		"missing":             {map[string]any{"name": "none", "state": "running", "onboot": true}, model.OutcomeFailed, "service-missing", "install it first"},
		"missing and stopped": {map[string]any{"name": "none", "state": "stopped", "onboot": false}, model.OutcomeDeployed, "", ""},
		"masked":              {map[string]any{"name": "masked", "state": "running", "onboot": false}, model.OutcomeFailed, "handler-error", "unmask"},
		"static":              {map[string]any{"name": "static", "state": "running", "onboot": true}, model.OutcomeDeployed, "", "can not be chosen"},
		"bad state":           {map[string]any{"name": "web", "state": "paused", "onboot": true}, model.OutcomeFailed, "invalid-resource", "paused"},
		"bad name":            {map[string]any{"name": "-rf", "state": "running", "onboot": true}, model.OutcomeFailed, "invalid-resource", "-rf"},
	}
	for name, test := range tests {
		service, _ := test.attributes["name"].(string)
		r := deploy(t, s, id("std::Service", "name", service), test.attributes)
		if r.Outcome != test.outcome || r.Code != test.code || !strings.Contains(messages(r), test.log) {
			t.Errorf("%s: %s (%s), want %s (%s) with %q in the log; %s", name, r.Outcome, r.Code, test.outcome, test.code, test.log, messages(r))
		}
	}
}

func TestServiceWithoutSystemd(t *testing.T) {
	t.Parallel()
	cfg, state := systemd(t, "web")
	cfg.SystemdDir = filepath.Join(state, "none")
	s := host(t, cfg)
	r := deploy(t, s, id("std::Service", "name", "web"), map[string]any{"name": "web", "state": "running", "onboot": true})
	if r.Outcome != model.OutcomeUnavailable || !strings.Contains(messages(r), "systemd does not run") {
		t.Errorf("outcome is %s, want unavailable; %s", r.Outcome, messages(r))
	}
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for name, machine := range map[string]func(testing.TB) (builtin.Config, string){"debian": debian, "red hat": redHat} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, state := machine(t)
			s := host(t, cfg)
			write(t, filepath.Join(state, "pkg.old"), "1\n", 0o644)
			write(t, state+".lists", "", 0o644)
			r := deploy(t, s, id("std::Package", "name", "old"), map[string]any{"name": "old", "state": "latest"})
			if r.Outcome != model.OutcomeDeployed || r.Change != model.ChangeUpdated || string(r.Changes["version"].Desired) != `"2"` {
				t.Errorf("upgrade is %s, %s, %v; %s", r.Outcome, r.Change, r.Changes, messages(r))
			}
			r = deploy(t, s, id("std::Package", "name", "new"), map[string]any{"name": "new", "state": "latest"})
			if r.Outcome != model.OutcomeDeployed || read(t, filepath.Join(state, "pkg.new")) != "2\n" {
				t.Errorf("installing the latest is %s; %s", r.Outcome, messages(r))
			}
			if r = deploy(t, s, id("std::Package", "name", "new"), map[string]any{"name": "new", "state": "latest"}); r.Change != model.ChangeNone {
				t.Errorf("installing the latest again is %s", r.Change)
			}
			for _, bad := range []map[string]any{
				{"name": "--purge", "state": "installed"}, {"name": "a b", "state": "installed"}, {"name": "x", "state": "broken"},
			} {
				if r := deploy(t, s, id("std::Package", "name", "x"), bad); r.Code != "invalid-resource" {
					t.Errorf("%v is %s (%s), want invalid-resource", bad, r.Outcome, r.Code)
				}
			}
		})
	}
}

func TestPackageLeftover(t *testing.T) {
	t.Parallel()
	cfg, _ := debian(t)
	s := host(t, cfg)
	r := deploy(t, s, id("std::Package", "name", "leftover"), map[string]any{"name": "leftover", "state": "removed"})
	if r.Outcome != model.OutcomeDeployed || r.Change != model.ChangeNone {
		t.Errorf("a package of which only configuration is left: %s, %s", r.Outcome, r.Change)
	}
}

// TestPackageOfThisMachine reads, and only reads, with the true dpkg.
func TestPackageOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"/usr/bin/dpkg-query", "/usr/bin/apt-get"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("this machine has no dpkg")
		}
	}
	s := host(t, builtin.Config{})
	dry := func(name, state string) model.Result {
		return s.Run(t, s.NewTask(model.TaskDryRun, sdktest.NewIntent(t, id("std::Package", "name", name), map[string]any{"name": name, "state": state})))
	}
	if r := dry("dpkg", "installed"); r.Outcome != model.OutcomeDryRun || len(r.Changes) != 0 {
		t.Errorf("dpkg is not installed: %s, %v; %s", r.Outcome, r.Changes, messages(r))
	}
	if r := dry("no-such-package-at-all", "installed"); r.Outcome != model.OutcomeDryRun || len(r.Changes) != 1 {
		t.Errorf("a package that does not exist: %s, %v; %s", r.Outcome, r.Changes, messages(r))
	}
}

func TestPackageWithoutManager(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{Path: t.TempDir()})
	r := deploy(t, s, id("std::Package", "name", "x"), map[string]any{"name": "x", "state": "installed"})
	if r.Outcome != model.OutcomeUnavailable {
		t.Errorf("outcome is %s, want unavailable; %s", r.Outcome, messages(r))
	}
}

func TestNullAndAgentConfig(t *testing.T) {
	t.Parallel()
	s := host(t, builtin.Config{})
	tests := map[string]struct {
		resource   model.ResourceID
		attributes map[string]any
		outcome    model.Outcome
	}{
		"null":         {id("std::testing::NullResource", "name", "a"), map[string]any{"name": "a"}, model.OutcomeDeployed},
		"null purged":  {id("std::testing::NullResource", "name", "b"), map[string]any{"name": "b", "purged": true}, model.OutcomeDeployed},
		"null fails":   {id("std::testing::NullResource", "name", "c"), map[string]any{"name": "c", "fail": true}, model.OutcomeFailed},
		"null skips":   {id("std::testing::NullResource", "name", "d"), map[string]any{"name": "d", "skip": true}, model.OutcomeSkipped},
		"local agent":  {id("std::AgentConfig", "agentname", "e"), map[string]any{"agentname": "e", "uri": "local:"}, model.OutcomeDeployed},
		"remote agent": {id("std::AgentConfig", "agentname", "f"), map[string]any{"agentname": "f", "uri": "ssh://root@h:22"}, model.OutcomeUnavailable},
	}
	for name, test := range tests {
		if r := deploy(t, s, test.resource, test.attributes); r.Outcome != test.outcome || r.Change != model.ChangeNone {
			t.Errorf("%s: %s, %s, want %s; %s", name, r.Outcome, r.Change, test.outcome, messages(r))
		}
	}
}
