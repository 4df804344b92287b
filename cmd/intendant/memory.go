package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Nearly all that a compile allocates stays until it is over, so that collecting garbage gains little: it is not done before the
// process has grown to this many bytes, or to a quarter of the machine's memory, or to half of a limit on the process's.
const collectFrom = 1 << 30

// collectLate puts off the collection of garbage, for commands that compile once and end. From the first collection on garbage is
// collected as usual. Where the environment says how garbage is to be collected (GOGC), that holds instead.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	limit := debug.SetMemoryLimit(-1) // that of GOMEMLIMIT
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection(limit, machineMemory()))
	// The first collection finds the mark unreachable.
	mark := new([16]byte)
	runtime.SetFinalizer(mark, func(*[16]byte) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// firstCollection is the size of the process, in bytes, at which garbage is collected first, given the limit on its memory and the
// memory of the machine, each [math.MaxInt64] when it is not known.
func firstCollection(limit, machine int64) int64 {
	return min(collectFrom, limit/2, machine/4)
}

// machineMemory is the memory of the machine in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	return int64(min(info.Totalram*uint64(info.Unit), math.MaxInt64))
}
