//go:build !linux

package slab

// advise does nothing where huge pages can not be asked for.
func advise(_, _ uintptr) {}
