package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// lockState takes a server's state directory for this process and returns the server's lasting id, which is kept there: a server
// that comes back has its environments back at once. The lock goes with the process, however it ends.
func lockState(dir string) (id string, unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "server.id"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("opening the state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return "", nil, fmt.Errorf("another server is running on %s: stop it first, or choose another --state-dir", dir)
	}
	text, err := io.ReadAll(io.LimitReader(f, 128))
	if err != nil {
		_ = f.Close()
		return "", nil, fmt.Errorf("reading the server's id: %w", err)
	}
	if _, err := uuid.Parse(strings.TrimSpace(string(text))); err == nil {
		return strings.TrimSpace(string(text))[:8], func() { _ = f.Close() }, nil
	}
	fresh := uuid.NewString()
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(fresh+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return "", nil, fmt.Errorf("writing the server's id: %w", err)
	}
	return fresh[:8], func() { _ = f.Close() }, nil
}
