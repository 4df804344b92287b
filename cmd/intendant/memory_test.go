package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
		{1 << 10, 24 * giga, leastHeap},
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
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	collectLate()
	percent := func() int { return metric(t, "/gc/gogc:percent") }
	if late := percent(); late < 1000 {
		t.Fatalf("garbage is collected when the heap has grown by %d percent, not late", late)
	}
	runtime.GC()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for percent() != 123 {
		select {
		case <-deadline.C:
			t.Fatalf("the percentage is %d after a collection", percent())
		default:
			runtime.Gosched()
		}
	}
}

// metric reads a number of the runtime.
func metric(t *testing.T, name string) int {
	t.Helper()
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		t.Fatalf("the runtime has no number %s", name)
	}
	return int(sample[0].Value.Uint64())
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
