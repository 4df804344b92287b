// Package embedded runs a private PostgreSQL for one Intendant server, so that a machine needs no database set-up.
//
// The instance is a supervised child process: it listens on a Unix socket in a directory that only its user may enter,
// never on TCP, and runs unprivileged also when the server is root. It outlives nothing: when the server dies, however it
// dies, the kernel sends the postmaster SIGINT (a fast shutdown), and the next [Start] waits for or ends what is left,
// recovers, and goes on. A lock file makes sure that one directory has one instance.
//
// Binaries are looked for in this order: Config.BinDir; the major version that the data directory was made with; the
// newest of the machine's own; the bundle inside this program (build tag embedpg). See docs/operations/database.md.
package embedded
