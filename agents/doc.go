// Package agents is the agent: a process that runs tasks through handlers and reports what came of them.
//
// The agent keeps one session with the server's hub (package agents/wire has the messages). Everything that must outlive
// the process is in its state directory, which a lock keeps to one process at a time:
//
//	lock          held while the process lives
//	process       the identity of the directory, named in every hello
//	agents.json   per agent name: epoch, primary or standby, paused, last repair
//	desired/      the last desired state of each agent
//	spool/        results that the server has not acknowledged
//	files/        contents from the server's file storage
//
// A task that waits is void when the session ends without being resumed: the server counts it as lost. A task that runs
// finishes, and its result goes to the spool and from there to the server whenever that can be reached. While the server
// is away the agent repairs by its last desired state at the repair interval, unless it is paused, or other processes
// stand by for the name and may have taken over.
package agents
