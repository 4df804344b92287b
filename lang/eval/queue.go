package eval

import "github.com/intendant/intendant/lang/check"

// fifo is a first-in first-out queue.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) push(x T) { q.items = append(q.items, x) }

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) pop() T {
	var zero T
	x := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 4096 && q.head*2 >= len(q.items):
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return x
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
		return q.free.pop()
	}
	for i := range q.ranked {
		if q.ranked[i].len() > 0 {
			return q.ranked[i].pop()
		}
	}
	return nil
}

// before reports whether a is to be frozen before b.
func (q *waitQueue) before(a, b *variable) bool { return a.attr.PolicyRank < b.attr.PolicyRank }
