package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
)

// BenchmarkWholePath brings a model of 10,000 resources the whole way, from the push to the last result, then one in which a
// single resource is another. The times are those that the server recorded.
func BenchmarkWholePath(b *testing.B) {
	const n = 10_000
	model := func(last string) string {
		return fmt.Sprintf(`import std::testing
for i in std::sequence(%d):
    agent = i %% 8
    std::testing::NullResource(name="r{{i}}", agentname="agent{{agent}}", value=i == 7 ? "%s" : "same")
end
`, n, last)
	}
	for b.Loop() {
		s := newSystem(b)
		s.watch()
		for _, round := range []struct{ name, model string }{{"first", model("a")}, {"one changed", model("b")}} {
			before := s.processorTime()
			s.push(round.name, round.model)
			j := s.converged(round.name)
			if round.name == "first" {
				b.ReportMetric(n/j.ConvergedAt.Sub(j.ReleasedAt.Time).Seconds(), "resources/s")
				for what, spent := range s.processorTime() {
					b.ReportMetric(float64((spent-before[what]).Microseconds())/n, what+"-cpu-us/resource")
				}
			}
			c, err := s.api.Compile(b.Context(), j.CompileID)
			if err != nil {
				b.Fatal(err)
			}
			ms := func(name string, d time.Duration) {
				b.ReportMetric(float64(d.Microseconds())/1000, name+"-"+map[string]string{"first": "all", "one changed": "one"}[round.name]+"-ms")
			}
			for _, st := range c.Reports {
				if st.Started != nil && st.Completed != nil {
					ms(st.Name, st.Completed.Sub(st.Started.Time))
				}
			}
			ms("compile-to-version", j.StoredAt.Sub(j.StartedAt.Time))
			ms("deploy", j.ConvergedAt.Sub(j.ReleasedAt.Time))
			ms("push-to-converged", time.Duration(j.Seconds*float64(time.Second)))
			b.ReportMetric(float64(c.PeakMemory)/(1<<20), "compiler-MB")
		}
		if b.Failed() {
			return
		}
	}
}

// BenchmarkHookToCompile is the time from a webhook's delivery, as the server noted its arrival, until the compile of what was pushed
// begins, on a server that does nothing else. Fetching from the repository, by programs of git, is most of it.
func BenchmarkHookToCompile(b *testing.B) {
	s := newSystem(b)
	s.watch()
	// Pushes follow each other here at once; what is measured is one that comes alone.
	if err := s.api.SetSetting(b.Context(), "recompile_backoff", 0); err != nil {
		b.Fatal(err)
	}
	n := 0
	push := func() api.Journey {
		n++
		message := fmt.Sprintf("push %d.", n)
		s.push(message, fmt.Sprintf("value = %d\n", n))
		return s.await(message+" to be compiled", func(j api.Journey) bool {
			return j.Revision != nil && strings.HasPrefix(j.Revision.Message, message) && j.FinishedAt != nil
		})
	}
	push() // the first one clones
	took := map[string][]time.Duration{}
	for b.Loop() {
		for range 100 {
			j := push()
			took["all"] = append(took["all"], j.StartedAt.Sub(j.ReceivedAt.Time))
			took["fetch"] = append(took["fetch"], j.RequestedAt.Sub(j.ReceivedAt.Time))
		}
	}
	for what, times := range took {
		slices.Sort(times)
		for name, share := range map[string]int{"p50": 50, "p99": 99} {
			b.ReportMetric(float64(times[(len(times)-1)*share/100].Microseconds())/1000, what+"-"+name+"-ms")
		}
	}
}

// BenchmarkIdle is what a server costs that has 1,000 environments with a released version each, and polls 50 repositories for them
// every minute: processor time of the server and of PostgreSQL, in percent of one core, and the server's resident memory.
func BenchmarkIdle(b *testing.B) {
	const (
		repositories = 50
		environments = 1000
		watched      = 90 * time.Second
	)
	s := newSystem(b)
	s.push("a model", "value = 1\n")
	poll, off, branch := "60", map[string]json.RawMessage{"server_compile": json.RawMessage("false")}, "main"
	for i := range repositories {
		// Repositories have different addresses.
		url, name := filepath.Join(s.dir, fmt.Sprintf("repo%d.git", i)), fmt.Sprintf("repo%d", i)
		if err := os.Symlink(filepath.Join(s.dir, "infra.git"), url); err != nil {
			b.Fatal(err)
		}
		url = "file://" + url
		if _, err := s.api.CreateRepository(b.Context(), name, api.RepositoryWrite{URL: &url, Poll: &poll}); err != nil {
			b.Fatal(err)
		}
		for k := range environments / repositories {
			e, err := s.api.CreateEnvironment(b.Context(), api.EnvironmentWrite{
				Project: "idle", Name: fmt.Sprintf("%s-%d", name, k), Repository: &name, RepoBranch: &branch, Settings: off,
			})
			if err != nil {
				b.Fatal(err)
			}
			in := s.api.In(e.ID)
			number, err := in.ReserveVersion(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if err := in.UploadVersion(b.Context(), api.UploadedVersion{Version: number, Resources: []map[string]json.RawMessage{}, ModuleVersionInfo: map[string]json.RawMessage{}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		before := s.processorTime()
		time.Sleep(watched) // this is what is measured
		for what, spent := range s.processorTime() {
			b.ReportMetric(100*(spent-before[what]).Seconds()/watched.Seconds(), what+"-percent")
		}
		b.ReportMetric(float64(s.resident())/(1<<20), "server-MB")
	}
}

// processorTime is what the processes of the system have used so far: the server, its agents and PostgreSQL. Compilers that have ended
// are not among them. It is read from /proc.
func (s *system) processorTime() map[string]time.Duration {
	s.t.Helper()
	type process struct {
		parent int
		ticks  int64
		name   string
	}
	all := map[int]process{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		// After the name in parentheses: state, parent, … and user and system time as the 12th and 13th.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		parent, _ := strconv.Atoi(f[1])
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		p := process{parent: parent, ticks: user + system, name: "postgres"}
		if args := strings.Split(string(line), "\x00"); args[0] == s.bin && len(args) > 1 {
			p.name = args[1]
		}
		all[pid] = p
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	out := map[string]time.Duration{"server": 0, "agent": 0, "postgres": 0}
	for pid, p := range all {
		for up := pid; up > 1; up = all[up].parent {
			if up == s.cmd.Process.Pid {
				out[p.name] += time.Duration(p.ticks) * tick
				break
			}
		}
	}
	return out
}

// resident is the memory of the server that is in use now, in bytes.
func (s *system) resident() int64 {
	s.t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
