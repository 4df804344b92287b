package hub

import "syscall"

// childAttributes puts the process in a group of its own, so that it can be ended with all it started, and has the kernel
// ask it to stop when the server dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
