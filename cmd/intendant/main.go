// Command intendant is the whole product in one binary: server, agent, compiler, and the commands that speak to a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run())
}

// run is main with a result, so that deferred calls happen and tests can register it as a program.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCommand()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[*exitError](err); ok {
		if status.err != nil {
			fmt.Fprintln(os.Stderr, "error:", status.err)
		}
		return status.code
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}

// The exit statuses of the program.
const (
	exitFailed   = 1 // what was asked for did not work out: a model with faults, a refused request
	exitUsage    = 2 // the command line makes no sense
	exitInternal = 3 // our fault
)

// exitError ends the program with a status of its own. A nil err has been reported already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
