package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clearLeftOvers deals with what a killed predecessor left: a postmaster on its way out, or only its pid files. Its
// processes are found by their working directory, since a pid in a file may belong to somebody else by now, and a dead
// postmaster that nobody has reaped yet would make a new one refuse to start.
func (s *Server) clearLeftOvers(ctx context.Context) error {
	pidFile := filepath.Join(s.data, "postmaster.pid")
	first, err := os.ReadFile(pidFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", pidFile, err)
	}
	postmaster, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(string(first), "\n", 2)[0]))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	asked := syscall.Signal(0)
	for {
		live := processesIn(s.data)
		if len(live) == 0 {
			break
		}
		want := syscall.SIGINT
		switch waited := time.Since(begun); {
		case waited > 20*time.Second:
			want = syscall.SIGKILL
		case waited > 10*time.Second:
			want = syscall.SIGQUIT
		}
		if want != asked {
			asked = want
			s.log.Info("ending a left-over PostgreSQL", "pid", postmaster, "signal", want.String())
			for _, pid := range live {
				if pid == postmaster || want == syscall.SIGKILL {
					_ = syscall.Kill(pid, want)
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a left-over PostgreSQL to end: %w", ctx.Err())
		case <-tick.C:
		}
	}
	for _, stale := range []string{pidFile, filepath.Join(s.socket, socketName+".lock"), filepath.Join(s.socket, socketName)} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing a stale %s: %w", filepath.Base(stale), err)
		}
	}
	return nil
}

// processesIn lists live processes whose working directory is dir: every process of PostgreSQL works in its data
// directory. A zombie has no working directory any more and does not count.
func processesIn(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && cwd == dir {
			pids = append(pids, pid)
		}
	}
	return pids
}
