package compilerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/confine"
	"github.com/intendant/intendant/lazyregexp"
)

// exitError carries the exit status of a compiler that failed.
type exitError struct {
	code int
	err  error
}

// Error is the cause.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *exitError) Unwrap() error { return e.err }

// compile runs the compiler on a directory and reads what it made. The result may be there next to an error: a model with
// faults has diagnostics.
func (r *run) compile(ctx context.Context, st *stage, w *workspace, dir string) (*result, error) {
	c := r.s.config
	args := append(slices.Clone(c.Command[1:]), dir,
		"--result", w.path("result.json"), "--files", w.path("files"), "--inputs", w.path("inputs.json"))
	if c.Modules != nil {
		args = append(args, "--modules", w.path("modules.json"))
	}
	limits := c.Limits
	cmd := exec.Command(c.Command[0], args...) //nolint:noctx // the whole session is ended, in steps: see wait
	cmd.Dir = w.path("home")
	env, refused := childEnvironment(c, w, r.job.EnvironmentVariables)
	cmd.Env = env
	for _, name := range refused {
		st.errorf("environment variable %q is not handed on: it would change how the compiler is run\n", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, fmt.Errorf("the compile took longer than %s and was stopped: look for a model that does not end, or raise the limit", limits.Time))
	defer cancel()
	p := &process{cmd: cmd, limits: limits, watch: confine.Watch{Limit: limits.Memory}, stdout: st.out, stderr: st.err}
	err := p.run(ctx)
	if p.state != nil {
		r.report.CPUTime = p.state.UserTime() + p.state.SystemTime()
		r.report.PeakMemory = max(p.watch.Peak(), maxResident(p.state))
		r.s.metrics.peakMemory.Observe(float64(r.report.PeakMemory))
	}
	if err != nil {
		return nil, err
	}
	code := p.state.ExitCode()
	fail := func(format string, args ...any) error {
		return &exitError{code: exitStatus(p.state), err: fmt.Errorf(format, args...)}
	}
	switch {
	case ctx.Err() != nil:
		return nil, fail("%w", context.Cause(ctx))
	case p.unbound != nil:
		return nil, fail("the compiler was not let run without limits: %w", p.unbound)
	case p.watch.Over(), code != 0 && code != 1 && saysOutOfMemory(st.err.String()):
		return nil, fail("the compiler used more memory than the limit of %s and was stopped: make the model smaller, or raise the limit", confine.Size(limits.Memory))
	case signalOf(p.state) == syscall.SIGXCPU, signalOf(p.state) == syscall.SIGKILL && r.report.CPUTime >= limits.CPUTime:
		return nil, fail("the compiler used more processor time than the limit of %s and was stopped", limits.CPUTime)
	case signalOf(p.state) == syscall.SIGXFSZ:
		return nil, fail("the compiler wrote a file larger than the limit of %s and was stopped", confine.Size(limits.File))
	case signalOf(p.state) != 0:
		return nil, fail("the compiler was ended by signal %d (%s); if nobody sent it, the machine is out of memory", int(signalOf(p.state)), signalOf(p.state))
	case code != 0 && code != 1:
		return nil, fail("the compiler failed with exit status %d: %s", code, lastLine(st.err.String()))
	}
	res, err := readResult(ctx, w.path("result.json"), limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail("the compiler ended with exit status %d and left no result: %s", code, lastLine(st.err.String()))
	}
	if err != nil {
		return nil, &exitError{code: max(code, 1), err: fmt.Errorf("the compiler's result can not be used: %w", err)}
	}
	if code != 0 || !res.ok {
		return res, &exitError{code: max(code, 1), err: errModel}
	}
	return res, nil
}

// reserved are variables that decide how a process is loaded and where it finds things.
var reserved = lazyregexp.New(`^(?:PATH|HOME|TMPDIR|TZ|LC_ALL|IFS|ENV|BASH_ENV|SHELLOPTS|GODEBUG|GOMEMLIMIT|GOGC|GOTRACEBACK|GOMAXPROCS|LD_.*|DYLD_.*|GLIBC_.*|MALLOC_.*|PYTHON(?:PATH|HOME|STARTUP|INSPECT).*)$`)

var variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// childEnvironment makes the whole environment of a compiler. Nothing of this process's own is in it. The names that a job
// may not set are returned as well.
func childEnvironment(c Config, w *workspace, job map[string]string) (env, refused []string) {
	set := map[string]string{
		"PATH": c.Path, "HOME": w.path("home"), "TMPDIR": w.path("tmp"), "LC_ALL": "C.UTF-8", "TZ": "UTC",
		// The collector works harder near the limit, which is better than to die at it.
		"GOMEMLIMIT": fmt.Sprintf("%dB", c.Limits.Memory/10*9), "GOTRACEBACK": "single",
	}
	for name, value := range job {
		if !variableForm().MatchString(name) || reserved().MatchString(name) || strings.ContainsRune(value, 0) {
			refused = append(refused, name)
			continue
		}
		set[name] = value
	}
	maps.Copy(set, c.Environment)
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	slices.Sort(refused)
	return env, refused
}

// process is a child with everything it starts.
type process struct {
	cmd            *exec.Cmd
	limits         Limits
	stdout, stderr io.Writer

	state *os.ProcessState
	// unbound says why the limits could not be set; the child was killed then.
	unbound error
	// watch looks at the memory of the process and its children.
	watch confine.Watch
}

// run starts the child and returns when it and all of its process group have ended and their output is read. Its error is
// about starting; how the child ended is in state.
func (p *process) run(ctx context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the compiler: %w", err)
	}
	defer outR.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("starting the compiler: %w", err), outW.Close())
	}
	defer errR.Close()
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	// A session of its own: no terminal, and one process group to end. It dies with this process, should that be killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error, 1)
	exited := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		// The death signal comes when the thread that started the child ends: it is kept until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			confine.WaitExit(p.cmd.Process.Pid)
			close(exited)
		}
	})
	err = <-started
	err = errors.Join(err, outW.Close(), errW.Close())
	if p.cmd.Process == nil {
		wg.Wait()
		return fmt.Errorf("starting the compiler %s: %w", p.cmd.Path, err)
	}
	pid := p.cmd.Process.Pid
	if err := confine.Set(pid, confine.Limits{Memory: p.limits.Memory, CPUTime: p.limits.CPUTime, File: p.limits.File}); err != nil {
		// It may be gone already; otherwise it must not run without limits.
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		p.unbound = err
	}
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(p.stdout, outR) })
	readers.Go(func() { _, _ = io.Copy(p.stderr, errR) })

	p.supervise(ctx, pid, exited)
	// The leader is a zombie until it is waited for, so the group's number is still its own.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = p.cmd.Wait() // the state says how it ended
	p.state = p.cmd.ProcessState
	wg.Wait()
	// Somebody may have left the group and kept the pipes.
	late := time.Now().Add(time.Second)
	_ = outR.SetReadDeadline(late)
	_ = errR.SetReadDeadline(late)
	readers.Wait()
	return nil
}

// supervise returns when the leader has ended. It asks it to end, and then makes it, when ctx ends or memory is used up.
func (p *process) supervise(ctx context.Context, pid int, exited <-chan struct{}) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	over := ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case <-exited:
			return
		case <-over:
			over = nil
			_ = syscall.Kill(-pid, syscall.SIGTERM)
			t := time.NewTimer(p.limits.Grace)
			defer t.Stop()
			kill = t.C
		case <-kill:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		case <-look.C:
			if p.watch.Look(pid) {
				confine.Kill(pid)
			}
		}
	}
}

func signalOf(s *os.ProcessState) syscall.Signal {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

// exitStatus is the status as shells count it.
func exitStatus(s *os.ProcessState) int {
	if sig := signalOf(s); sig != 0 {
		return 128 + int(sig)
	}
	return max(s.ExitCode(), 1)
}

func maxResident(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) * 1024 //nolint:unconvert // it is narrower on some platforms
	}
	return 0
}

// saysOutOfMemory recognises how the Go runtime and Python die when memory is refused to them.
func saysOutOfMemory(stderr string) bool {
	for _, s := range []string{"runtime: out of memory", "fatal error: out of memory", "cannot allocate memory", "MemoryError"} {
		if strings.Contains(stderr, s) {
			return true
		}
	}
	return false
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "it said nothing"
	}
	lines := strings.Split(s, "\n")
	for _, l := range lines { // the reason of a Go program's death comes first, not last
		if strings.HasPrefix(l, "panic:") || strings.HasPrefix(l, "fatal error:") {
			return oneLine(l)
		}
	}
	return oneLine(lines[len(lines)-1])
}
