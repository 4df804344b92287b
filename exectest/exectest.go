// Package exectest writes the programs that tests run.
package exectest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Script writes a program into a directory, for its owner to run, and returns its path. The text begins with its interpreter ("#!/bin/sh").
//
// While it is written no process is started: one that a concurrent test forks would hold the file open for writing until it becomes
// another program, and running the file meanwhile fails with "text file busy" (execve(2), ETXTBSY).
func Script(t testing.TB, dir, name, text string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	syscall.ForkLock.RLock()
	err := os.WriteFile(at, []byte(text), 0o700) //nolint:gosec // it is to be run
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
