package confine_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/confine"
)

const modeVariable = "CONFINE_TEST_MODE"

func TestMain(m *testing.M) {
	switch os.Getenv(modeVariable) {
	case "":
		os.Exit(m.Run())
	case "parent": // starts a process of a session of its own, which holds memory
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{modeVariable + "=holder"}
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Run(); err != nil {
			os.Exit(1)
		}
	case "holder":
		held := make([]byte, 64<<20)
		for i := range held {
			held[i] = 1
		}
		fmt.Println(os.Getpid())
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		time.Sleep(time.Hour) // it is killed
		fmt.Println(held[0])
	case "spin":
		fmt.Println(os.Getpid())
		for n := 0; ; n++ {
		}
	}
}

// begin starts a process of a group of its own and returns the process id that it prints.
func begin(t *testing.T, mode string) (cmd *exec.Cmd, printed int) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = []string{modeVariable + "=" + mode}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if printed, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return cmd, printed
}

func TestWatchCountsDescendantsAndKillEndsThem(t *testing.T) {
	t.Parallel()
	cmd, grandchild := begin(t, "parent")
	pid := cmd.Process.Pid
	if grandchild == pid {
		t.Fatal("the memory is held by the process itself")
	}
	w := confine.Watch{Limit: 1 << 40}
	if w.Look(pid) || w.Over() || w.Peak() < 64<<20 {
		t.Errorf("a large limit: over %t, peak %d; want not over and at least 64 MiB", w.Over(), w.Peak())
	}
	none := confine.Watch{}
	if none.Look(pid) {
		t.Error("without a limit it is passed")
	}
	w = confine.Watch{Limit: 32 << 20}
	if !w.Look(pid) || !w.Over() {
		t.Errorf("a small limit is not passed; the peak is %d", w.Peak())
	}
	confine.Kill(pid)
	confine.WaitExit(pid)
	// The limit stays passed when nothing is left.
	if !w.Look(pid) {
		t.Error("what was over is not any more")
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Wait() = %v, want killed", err)
	}
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for syscall.Kill(grandchild, 0) == nil && confine.Resident(grandchild) > 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the grandchild, which has a session of its own, runs on")
		}
	}
}

func TestSetBoundsProcessorTime(t *testing.T) {
	t.Parallel()
	cmd, pid := begin(t, "spin")
	if err := confine.Set(pid, confine.Limits{CPUTime: time.Second}); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGXCPU && status.Signal() != syscall.SIGKILL {
		t.Errorf("Wait() = %v, want the signal for too much processor time", err)
	}
	if err := confine.Set(pid, confine.Limits{Memory: 1, CPUTime: 1, File: 1}); err != nil {
		t.Errorf("Set() of a process that is gone = %v", err)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{2 << 30: "2 GiB", 1536 << 20: "1536 MiB", 4096: "4096 bytes"} {
		if got := confine.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}
