package agents_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

func everySecond(context.Context, model.EnvironmentID) (string, error) { return "1", nil }

// awaitFile waits until a file is there.
func awaitFile(t testing.TB, dir, name string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(sdktest.Timeout)
	for {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", name)
		}
	}
}

// awaitGone waits until a process is gone.
func awaitGone(t testing.TB, pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(sdktest.Timeout)
	for alive(pid) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d still runs", pid)
		}
	}
}
