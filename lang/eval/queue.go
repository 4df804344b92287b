package eval

import (
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/slab"
)

// fifo is a first-in first-out queue. It grows by whole blocks, so that what is in it is never moved. What has been taken out stays
// in its block until that is used again: clearing each place took longer than all else that the queue does.
type fifo[T any] struct {
	first, last *block[T]
	head, tail  int // of the first block, of the last block
	count       int
	spare       *block[T]
}

// blockSize is the number of entries of a block.
const blockSize = 512

type block[T any] struct {
	items [blockSize]T
	next  *block[T]
}

func (q *fifo[T]) push(x T) { *q.place() = x }

// place makes a place at the end, which may hold an entry of the past.
func (q *fifo[T]) place() *T {
	if q.last == nil || q.tail == blockSize {
		b := q.spare
		if b != nil {
			q.spare = nil
		} else {
			b = &slab.Make[block[T]](1)[0]
		}
		if q.last == nil {
			q.first, q.head = b, 0
		} else {
			q.last.next = b
		}
		q.last, q.tail = b, 0
	}
	q.tail++
	q.count++
	return &q.last.items[q.tail-1]
}

func (q *fifo[T]) len() int { return q.count }

// pop takes the first entry out, which stays readable until the next push.
func (q *fifo[T]) pop() *T {
	x := &q.first.items[q.head]
	q.head++
	q.count--
	switch {
	case q.count == 0:
		q.first.next = nil
		q.last, q.head, q.tail = q.first, 0, 0
	case q.head == blockSize:
		b := q.first
		q.first, q.head = b.next, 0
		b.next = nil
		q.spare = b
	}
	return x
}

// ahead are the first entries, at most n, as far as they are next to each other.
func (q *fifo[T]) ahead(n int) []T {
	if q.count == 0 {
		return nil
	}
	return q.first.items[q.head:min(q.head+min(n, q.count), blockSize)]
}

// waitQueue holds the relations that might be complete: first those that the precedence policy does not name, then those that
// it names, in its order.
type waitQueue struct {
	free   fifo[*variable]
	ranked []fifo[*variable]
	count  int
}

func newWaitQueue(policy []*check.Attribute) *waitQueue {
	return &waitQueue{ranked: make([]fifo[*variable], len(policy))}
}

func (q *waitQueue) len() int { return q.count }

func (q *waitQueue) push(v *variable) {
	q.count++
	if r := v.attr.PolicyRank; r > 0 {
		q.ranked[r-1].push(v)
		return
	}
	q.free.push(v)
}

func (q *waitQueue) pop() *variable {
	q.count--
	if q.free.len() > 0 {
		return *q.free.pop()
	}
	for i := range q.ranked {
		if q.ranked[i].len() > 0 {
			return *q.ranked[i].pop()
		}
	}
	return nil
}

// before reports whether a is to be frozen before b.
func (q *waitQueue) before(a, b *variable) bool { return a.attr.PolicyRank < b.attr.PolicyRank }
