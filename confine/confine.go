package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound a process. Zero is no bound.
type Limits struct {
	// Memory is how many bytes a process and its descendants may hold together; see [Watch].
	Memory int64
	// CPUTime is the processor time of each process.
	CPUTime time.Duration
	// File is the largest file that each process may write, in bytes.
	File int64
}

// headroom is what a process may map beyond its limit: the watch over resident memory is the tighter bound, and this one
// catches what grows faster than it looks.
const headroom = 512 << 20

// Set binds a process that has just been started, and what it starts from then on. No process leaves a core dump. A process that is
// gone is no error. What the machine's owner has set lower stays.
//
// Memory bounds RLIMIT_DATA, which counts what is written to, with some room above the limit; RLIMIT_AS would count the large
// reservations of runtimes as well.
func Set(pid int, l Limits) error {
	set := func(resource int, soft, hard uint64) error {
		var old unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
			return err //nolint:wrapcheck // it is wrapped below
		}
		// It could not be raised above what it is.
		return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(soft, old.Max), Max: min(hard, old.Max)}, nil)
	}
	errs := []error{set(unix.RLIMIT_CORE, 0, 0)}
	if l.Memory > 0 {
		memory := uint64(l.Memory + headroom)
		errs = append(errs, set(unix.RLIMIT_DATA, memory, memory))
	}
	if l.CPUTime > 0 {
		seconds := uint64(max(l.CPUTime.Seconds(), 1))
		errs = append(errs, set(unix.RLIMIT_CPU, seconds, seconds+1)) // who does not hear the first signal is killed by the second
	}
	if l.File > 0 {
		errs = append(errs, set(unix.RLIMIT_FSIZE, uint64(l.File), uint64(l.File)))
	}
	err := errors.Join(errs...)
	if errors.Is(err, unix.ESRCH) {
		return nil // it is gone, and what it did is done
	}
	if err != nil {
		return fmt.Errorf("setting the limits of process %d: %w", pid, err)
	}
	return nil
}

// Watch looks at the memory of a process and its descendants. Its methods may be called from several goroutines.
type Watch struct {
	// Limit is how much they may hold together, in bytes; 0 is no limit.
	Limit int64

	peak atomic.Int64
	over atomic.Bool
}

// Look takes a look, and reports whether the limit is passed, now or at an earlier look.
func (w *Watch) Look(pid int) bool {
	used := Resident(pid)
	if used > w.peak.Load() {
		w.peak.Store(used)
	}
	if w.Limit > 0 && used > w.Limit {
		w.over.Store(true)
	}
	return w.over.Load()
}

// Over reports whether a look found the limit passed.
func (w *Watch) Over() bool { return w.over.Load() }

// Peak is the most that a look has found, in bytes.
func (w *Watch) Peak() int64 { return w.peak.Load() }

// Resident is the memory that a process and its descendants hold, in bytes. What ends meanwhile counts nothing; pages of files,
// which the kernel can take back, do not count.
func Resident(pid int) int64 {
	total := residentOne(pid)
	for _, p := range descendants(pid) {
		total += residentOne(p)
	}
	return total
}

// Kill ends a process, its group when it leads one, and all of its descendants, also those in groups of their own. The process
// must not have been waited for: its number could be somebody else's.
func Kill(pid int) {
	// They are listed first: when a parent dies its children belong to somebody else.
	all := descendants(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may lead no group
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range all {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
}

// WaitExit returns when a child of this process has ended, and leaves it to be waited for: until then its number is its own.
func WaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

// children lists the processes that the threads of one have started and not waited for.
func children(pid int) []int {
	tasks, err := os.ReadDir(procDir(pid, "task"))
	if err != nil {
		return nil
	}
	var all []int
	for _, t := range tasks {
		raw, err := os.ReadFile(procDir(pid, "task", t.Name(), "children"))
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
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
	shared, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}

// procDir is a place in the kernel's view of processes.
func procDir(pid int, rest ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(pid)}, rest...)...)
}
