package programs

import "syscall"

// processAttributes puts a program in a group of its own, and has the kernel end it when the agent dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
