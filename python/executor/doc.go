// Package executor runs the handlers of modules, which are Python, at an agent.
//
// # Vocabulary
//
// A task names a manifest: the modules that its agent needs, and where their packages come from. The manager fetches it and the
// sources it names from the file storage, and keeps both on disk, so that an agent that has run them once needs no server for them.
// A blueprint is what a process is made of: sources, and a virtual environment of their requirements. A worker is a process with
// one blueprint, for one agent:
//
//	task ──▶ manifest ──▶ blueprint ──▶ worker (agent, blueprint) ──▶ handler
//
// Operations of a worker run one after the other in one thread, so handlers may count on being alone. Changed code is another
// blueprint and hence another worker; the old one is idle and stops after a while.
//
// # Trouble
//
// What a handler does can not hurt more than its own resource. Code that can not be imported, or whose packages can not be had,
// makes the resources that need it unavailable, and the log says why. A handler that does not end at its deadline is interrupted,
// and its process killed if that does not help; a process that ends by itself fails the task that ran, and the next task starts
// another. What handlers print is logged and can not disturb the protocol.
package executor
