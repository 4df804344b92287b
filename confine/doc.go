// Package confine bounds what processes that this program starts may use, and ends them with all that they started.
//
// Two bounds work together. The kernel's own, see [Set], is exact and per process; it refuses memory and kills for processor
// time and file size. The watch, see [Watch], adds up what a process and its descendants hold, which the kernel does not bound
// for a tree of processes without control groups; whoever has passed its limit is ended by whoever watches.
//
// Linux is required: the figures come from /proc.
package confine
