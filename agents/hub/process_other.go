//go:build !linux

package hub

import "syscall"

// childAttributes puts the process in a group of its own, so that it can be ended with all it started.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
