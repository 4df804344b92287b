// Package scheduler runs the deployment of environments: for each one that this server owns, a loop feeds an [engine.State] with
// what happens and carries out what it decides. The package decides nothing about deployments itself.
//
// # Ownership
//
// An environment belongs to the server that holds its lease. Every write carries the lease's fencing token. A loop whose lease
// is lost, fenced or past its end drops all it has at once; the next owner begins from the stored state.
//
// # A turn of a loop
//
//	take what has come in ─▶ step the engine for each ─▶ store everything in one transaction ─▶ hand out tasks ─▶ acknowledge reports
//
// While one transaction is on its way, the next turn's events gather: the busier it is, the more each transaction holds. A
// report is acknowledged only when it is stored; a task leaves only when it is stored that it did.
//
// # Idle environments
//
// All timers of all loops share one heap and one goroutine, hints wake single loops, and one query polls for all of them.
package scheduler
