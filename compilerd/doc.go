// Package compilerd compiles: it claims jobs from a queue that any number of workers on any number of hosts share, runs the
// compiler in a child process with limits, and hands back a report and, if all is well, a desired state.
//
//	queued ── claimed ── fetch ── checkout ── modules ── python environment ── compile ── export ── succeeded, with a version
//	             │          └─────────┴──────────┴───────────────┴────────────────┴──────────┴──── failed, with diagnostics or an error
//	             ├── cancelled: somebody asked; the child's process group is ended
//	             └── fenced: the claim was lost; the child is ended and nothing is written
//
// A claim is a lease that is prolonged while the job runs. When a worker dies its lease ends and another worker begins the
// job again; when the service is stopped its claims are let go at once.
//
// Modules and Python packages are fetched before the compiler starts, by this process, which has the credentials. The child needs
// no network: it gets paths.
//
// The child gets the directory of an immutable tree, a workspace of its own and an environment of a few variables. It is
// bound in time, processor time, memory, file size and output; whatever it leaves running is killed with it. Its result is
// read as a stranger's.
package compilerd
