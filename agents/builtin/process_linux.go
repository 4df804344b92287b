package builtin

import "syscall"

// commandAttributes puts a command in a process group of its own, so that it can be ended with all it started, and has the
// kernel end it when the agent dies.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
