package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Nearly all that a compile allocates stays until it is over, so that collecting garbage gains little: it is not done before the
// heap has grown to this many bytes, or to a quarter of the machine's memory, or to half of a limit on the process's.
const collectFrom = 1 << 30

// leastHeap is the size in bytes at which the runtime collects first when its percentage is 100 (runtime.GOGC).
const leastHeap = 4 << 20

// collectLate puts off the collection of garbage, for commands that compile once and end. From the first collection on garbage is
// collected as usual. Where the environment says how garbage is to be collected (GOGC), that holds instead.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	limit := int64(math.MaxInt64)
	if os.Getenv("GOMEMLIMIT") != "" {
		limit = debug.SetMemoryLimit(-1)
	}
	percent := debug.SetGCPercent(int(firstCollection(limit, machineMemory()) / (leastHeap / 100)))
	// The first collection finds the mark unreachable.
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { debug.SetGCPercent(percent) })
}

// firstCollection is the size of the heap, in bytes, at which garbage is collected first, given the limit on the memory of the process
// and the memory of the machine, each [math.MaxInt64] when it is not known.
func firstCollection(limit, machine int64) int64 {
	return max(min(collectFrom, limit/2, machine/4), leastHeap)
}

// machineMemory is the memory of the machine in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	return int64(min(info.Totalram*uint64(info.Unit), math.MaxInt64))
}
