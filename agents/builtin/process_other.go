//go:build !linux

package builtin

import "syscall"

// commandAttributes puts a command in a process group of its own, so that it can be ended with all it started.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
