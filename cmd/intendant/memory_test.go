package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestFirstCollection(t *testing.T) {
	const giga = 1 << 30
	for _, c := range []struct{ limit, machine, want int64 }{
		{math.MaxInt64, math.MaxInt64, giga},
		{math.MaxInt64, 24 * giga, giga},
		{math.MaxInt64, 2 * giga, giga / 2},
		{giga, 24 * giga, giga / 2},
	} {
		if got := firstCollection(c.limit, c.machine); got != c.want {
			t.Errorf("with a limit of %d on a machine of %d: %d, not %d", c.limit, c.machine, got, c.want)
		}
	}
	if m := machineMemory(); m < 64<<20 || m == math.MaxInt64 {
		t.Errorf("this machine has %d bytes", m)
	}
}

// TestCollectLate changes how this process collects garbage, and waits until the first collection has changed it back.
func TestCollectLate(t *testing.T) {
	t.Setenv("GOGC", "")
	percent, limit := debug.SetGCPercent(123), debug.SetMemoryLimit(7<<40)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	collectLate()
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Fatalf("garbage is collected when the heap has grown by %d percent, not late", got)
	}
	if got := debug.SetMemoryLimit(-1); got > collectFrom {
		t.Fatalf("garbage is collected from %d bytes on, which is later than it should", got)
	}
	runtime.GC()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for debug.SetMemoryLimit(-1) != 7<<40 {
		select {
		case <-deadline.C:
			t.Fatal("the limit is not what it was after a collection")
		default:
			runtime.Gosched()
		}
	}
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("garbage is collected at %d percent after the first collection", got)
	}
}

func TestCollectAsTold(t *testing.T) {
	t.Setenv("GOGC", "50")
	percent := debug.SetGCPercent(123)
	defer debug.SetGCPercent(percent)
	collectLate()
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("garbage is collected at %d percent in spite of the environment", got)
	}
}
