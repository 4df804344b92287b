package main_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCheckWatch changes a project while it is watched.
func TestCheckWatch(t *testing.T) {
	t.Parallel()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		// Renamed into place, so that no check sees half a file.
		if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write("project.yml", "name: test\nmodulepath: libs\n")
	write("main.cf", "a = Missing()\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "check", "--watch", dir)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	expect := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the output ended before %q", want)
	}
	expect("1 error in ")
	write("main.cf", "a = 1\n")
	expect("no faults in ")
	write("main.cf", "import m\n")
	expect("1 error in ")
	write("libs/m/module.yml", "name: m\nversion: 1.0.0\nlicense: ASL\n")
	write("libs/m/model/_init.cf", "b = 2\n")
	expect("no faults in ")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended by an interrupt: %v, want status 0", err)
	}
}
