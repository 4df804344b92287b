// Package slab makes many values of one type in few allocations, out of memory of which the kernel is told that it will be filled.
package slab

import "unsafe"

// Of is a stock of zero values of one type. It is allocated in blocks, the larger the more it has given; a block lives as long as
// any value of it. The zero Of is ready for use, by one goroutine at a time.
type Of[T any] struct {
	free []T
	size uintptr // of the block that the free values are part of, in bytes
}

// The sizes of blocks, in bytes, and that of a row of values that is allocated by itself.
const (
	minBlock = 1 << 9
	maxBlock = 1 << 19
	longRow  = maxBlock / 8
)

// New returns a zero value.
func (s *Of[T]) New() *T {
	if len(s.free) == 0 {
		s.grow(1)
	}
	v := &s.free[0]
	s.free = s.free[1:]
	return v
}

// Take returns n zero values in a row, as a slice without room for more.
func (s *Of[T]) Take(n int) []T {
	if len(s.free) < n {
		if uintptr(n)*unsafe.Sizeof(*new(T)) >= longRow {
			return Make[T](n) // the rest of the block is for shorter ones
		}
		s.grow(n)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// grow makes room for n values at least. What was left is not used any more.
func (s *Of[T]) grow(n int) {
	var value T
	s.size = min(max(2*s.size, minBlock), maxBlock)
	s.free = Make[T](max(n, int(s.size/max(unsafe.Sizeof(value), 1))))
}

// Make is make([]T, n), for what will be filled with values soon.
func Make[T any](n int) []T {
	s := make([]T, n)
	if size := uintptr(cap(s)) * unsafe.Sizeof(*new(T)); size >= leastAdvised {
		advise(uintptr(unsafe.Pointer(unsafe.SliceData(s))), size) //nolint:gosec // an address to tell the kernel, not to be followed
	}
	return s
}

// leastAdvised is the size in bytes from which memory is worth telling the kernel about.
const leastAdvised = 1 << 15
