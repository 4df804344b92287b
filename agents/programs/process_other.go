//go:build !linux

package programs

import "syscall"

// processAttributes puts a program in a group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
