package compilerd

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// headroom is what a process may map beyond its limit: the watch over resident memory is the tighter bound, and this one
// catches what grows faster than it looks.
const headroom = 512 << 20

// setLimits binds a process that has just been started. RLIMIT_DATA counts what is written to, unlike RLIMIT_AS, which
// counts the large reservations of the Go runtime.
func setLimits(pid int, l Limits) error {
	set := func(resource int, soft, hard uint64) error {
		var old unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
			return err //nolint:wrapcheck // it is wrapped below
		}
		// What the machine's owner has set lower stays: it could not be raised either.
		return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(soft, old.Max), Max: min(hard, old.Max)}, nil)
	}
	seconds := uint64(max(l.CPUTime.Seconds(), 1))
	memory := uint64(l.Memory + headroom)
	err := errors.Join(
		set(unix.RLIMIT_CORE, 0, 0),
		set(unix.RLIMIT_DATA, memory, memory),
		set(unix.RLIMIT_CPU, seconds, seconds+1), // who does not hear the first signal is killed by the second
		set(unix.RLIMIT_FSIZE, uint64(l.File), uint64(l.File)),
	)
	if errors.Is(err, unix.ESRCH) {
		return nil // it is gone, and what it did is done
	}
	if err != nil {
		return fmt.Errorf("setting the limits of process %d: %w", pid, err)
	}
	return nil
}

// residentOf is the memory that a process and its descendants hold, in bytes. What ends meanwhile counts nothing.
func residentOf(pid int) int64 {
	total := residentOne(pid)
	tasks, err := os.ReadDir(procDir(pid, "task"))
	if err != nil {
		return total
	}
	for _, t := range tasks {
		raw, err := os.ReadFile(procDir(pid, "task", t.Name(), "children"))
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(f); err == nil {
				total += residentOf(child)
			}
		}
	}
	return total
}

func residentOne(pid int) int64 {
	raw, err := os.ReadFile(procDir(pid, "statm"))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(raw))
	if len(f) < 3 {
		return 0
	}
	resident, err1 := strconv.ParseInt(f[1], 10, 64)
	shared, err2 := strconv.ParseInt(f[2], 10, 64) // file pages, which the kernel can take back
	if err1 != nil || err2 != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
