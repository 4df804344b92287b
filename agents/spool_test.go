package agents

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

func spoolResult(n int, resource string) wire.Result {
	return wire.Result{
		Task: model.TaskID{UUID: uuid.New()}, Agent: "one", Epoch: 1, Resource: model.ResourceID("test::Thing[one,name=" + resource + "]"),
		Outcome: model.OutcomeDeployed, FinishedAt: time.Unix(int64(n), 0).UTC(), Code: fmt.Sprint(n),
	}
}

func mustOpen(t *testing.T, dir string) *spool {
	t.Helper()
	s, err := openSpool(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("openSpool() = %v", err)
	}
	return s
}

func codes(results []wire.Result) string {
	var all []string
	for _, r := range results {
		all = append(all, r.Code)
	}
	return strings.Join(all, " ")
}

func TestSpoolKeepsWhatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	var all []wire.Result
	for i := range 5 {
		r := spoolResult(i, fmt.Sprint(i))
		all = append(all, r)
		s.append(r)
		s.append(r) // once is enough
	}
	if got := codes(s.next()); got != "0 1 2 3 4" {
		t.Errorf("next() = %s", got)
	}
	if got := s.next(); len(got) != 0 {
		t.Errorf("next() again = %v, want nothing", codes(got))
	}
	s.forget(all[0].Task, all[2].Task)
	s.again([]model.TaskID{all[3].Task, all[2].Task})
	if got := codes(s.next()); got != "3" {
		t.Errorf("next() after again = %s, want 3", got)
	}
	s.restart()
	if got := codes(s.next()); got != "1 3 4" {
		t.Errorf("next() in another session = %s, want 1 3 4", got)
	}
	// The process dies here: nothing is closed.
	s = mustOpen(t, dir)
	s.forget(all[0].Task, all[2].Task) // acknowledged before, and sent again
	s.restart()
	got := s.next()
	if diff := cmp.Diff([]wire.Result{all[1], all[3], all[4]}, got); diff != "" {
		t.Errorf("after a restart differs:\n%s", diff)
	}
	s.forget(all[1].Task, all[3].Task, all[4].Task)
	if s.len() != 0 {
		t.Errorf("len() = %d, want 0", s.len())
	}
	s.close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("an empty spool leaves %v, %v", left, err)
	}
}

func TestSpoolEndsAtDamage(t *testing.T) {
	t.Parallel()
	tests := map[string]func(raw []byte) []byte{
		"cut off":     func(raw []byte) []byte { return raw[:len(raw)-5] },
		"bit flipped": func(raw []byte) []byte { raw[len(raw)-10] ^= 1; return raw },
		"no checksum": func(raw []byte) []byte {
			return append(raw[:strings.LastIndex(string(raw[:len(raw)-1]), "\n")+1], "rubbish\n"...)
		},
		"no number": func(raw []byte) []byte {
			return append(raw[:strings.LastIndex(string(raw[:len(raw)-1]), "\n")+1], "zzzzzzzz {}\n"...)
		},
		"not a result": func(raw []byte) []byte {
			return append(raw[:strings.LastIndex(string(raw[:len(raw)-1]), "\n")+1], "2ebb67f1 [\n"...)
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := mustOpen(t, dir)
			first := spoolResult(0, "a")
			s.append(first)
			s.append(spoolResult(1, "b"))
			s.close()
			path := s.path(1)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir)
			defer s.close()
			if got := codes(s.next()); got != "0" || !s.has(first.Task) {
				t.Errorf("next() = %s, want the first result", got)
			}
			s.append(spoolResult(2, "c")) // goes to another file
			if got := codes(s.next()); got != "2" {
				t.Errorf("next() = %s, want 2", got)
			}
		})
	}
}

func TestSpoolFilesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	defer s.close()
	var tasks []model.TaskID
	for i := range 20 {
		r := spoolResult(i, fmt.Sprint(i))
		r.Log = []wire.LogLine{{Message: strings.Repeat("x", segmentBytes/4)}}
		tasks = append(tasks, r.Task)
		s.append(r)
	}
	count := func() int {
		files, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if got := count(); got < 5 {
		t.Fatalf("%d files, want several", got)
	}
	s.forget(tasks...)
	if got := count(); got != 1 {
		t.Errorf("%d files are left, want the one that is written", got)
	}
}

func TestSpoolWindow(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir())
	defer s.close()
	for i := range wire.MaxUnacknowledged + 10 {
		s.append(spoolResult(i, fmt.Sprint(i)))
	}
	var sent []wire.Result
	for {
		batch := s.next()
		if len(batch) == 0 {
			break
		}
		if len(batch) > wire.MaxBatch {
			t.Fatalf("a batch of %d", len(batch))
		}
		sent = append(sent, batch...)
	}
	if len(sent) != wire.MaxUnacknowledged {
		t.Errorf("%d were sent, want %d", len(sent), wire.MaxUnacknowledged)
	}
	s.forget(sent[0].Task)
	if got := s.next(); len(got) != 1 {
		t.Errorf("an acknowledgement made room for %d, want 1", len(got))
	}
}

func TestSpoolKeepsTheNewestOfflineResult(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir())
	defer s.close()
	for i := range 3 {
		r := spoolResult(i, "same")
		r.Offline = true
		s.append(r)
	}
	s.append(spoolResult(3, "same"))
	if got := codes(s.next()); got != "2 3" {
		t.Errorf("next() = %s, want the newest repair and the task", got)
	}
}

func TestNextRepair(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	tests := map[string]struct {
		want time.Time
		bad  bool
	}{
		"600":          {want: last.Add(10 * time.Minute)},
		"0.5":          {want: last.Add(500 * time.Millisecond)},
		"0":            {},
		"-1":           {},
		"0 * * * *":    {want: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)},
		"30 0 0 2 1 *": {want: time.Date(2026, 1, 2, 0, 0, 30, 0, time.UTC)},
		"@hourly":      {want: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)},
		"often":        {bad: true},
		"":             {bad: true},
	}
	for interval, test := range tests {
		got, err := nextRepair(interval, last)
		if (err != nil) != test.bad || !got.Equal(test.want) {
			t.Errorf("nextRepair(%q) = %v, %v, want %v", interval, got, err, test.want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	intent := func(id string, requires ...model.ResourceID) model.Intent {
		return model.Intent{Resource: model.ResourceID(id), Requires: requires}
	}
	var got []string
	for _, i := range order([]model.Intent{
		intent("a", "b", "elsewhere"), intent("b", "c"), intent("c"), intent("d", "a"), intent("x", "y"), intent("y", "x"),
	}) {
		got = append(got, string(i.Resource))
	}
	if diff := cmp.Diff([]string{"c", "b", "a", "d", "y", "x"}, got); diff != "" {
		t.Errorf("order differs:\n%s", diff)
	}
}

func BenchmarkSpool(b *testing.B) {
	s, err := openSpool(b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	r := spoolResult(0, "a")
	b.ReportAllocs()
	for b.Loop() {
		r.Task.UUID = uuid.New()
		s.append(r)
		s.next()
		s.forget(r.Task)
	}
}
