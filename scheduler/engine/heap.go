package engine

import "slices"

// never is the time of a timer that is not set.
const never = int64(1<<63 - 1)

// timers is a heap of times, one per slot of some dense table, with the earliest on top.
type timers struct {
	heap []timer
	// pos is the index in heap by slot, plus one; 0 when the slot has no timer.
	pos []int32
}

type timer struct {
	at   int64
	slot int32
}

func (t *timers) next() int64 {
	if len(t.heap) == 0 {
		return never
	}
	return t.heap[0].at
}

// at returns when a slot's timer is due, or never.
func (t *timers) at(slot int32) int64 {
	if int(slot) >= len(t.pos) || t.pos[slot] == 0 {
		return never
	}
	return t.heap[t.pos[slot]-1].at
}

// set makes a slot's timer due at a time; never clears it.
func (t *timers) set(slot int32, at int64) {
	if int(slot) >= len(t.pos) {
		if at == never {
			return
		}
		t.pos = append(t.pos, make([]int32, int(slot)+1-len(t.pos))...)
	}
	p := int(t.pos[slot]) - 1
	switch {
	case p < 0 && at == never:
	case p < 0:
		t.heap = append(t.heap, timer{at: at, slot: slot})
		t.up(len(t.heap) - 1)
	case at == never:
		last := len(t.heap) - 1
		moved := t.heap[last]
		t.heap = t.heap[:last]
		t.pos[slot] = 0
		if p < last {
			t.heap[p] = moved
			t.fix(p)
		}
	default:
		t.heap[p].at = at
		t.fix(p)
	}
}

func less(a, b timer) bool { return a.at < b.at || a.at == b.at && a.slot < b.slot }

func (t *timers) fix(i int) {
	if i > 0 && less(t.heap[i], t.heap[(i-1)/2]) {
		t.up(i)
		return
	}
	t.down(i)
}

func (t *timers) up(i int) {
	x := t.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !less(x, t.heap[parent]) {
			break
		}
		t.heap[i] = t.heap[parent]
		t.pos[t.heap[i].slot] = int32(i) + 1
		i = parent
	}
	t.heap[i] = x
	t.pos[x.slot] = int32(i) + 1
}

func (t *timers) down(i int) {
	x := t.heap[i]
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			break
		}
		if child+1 < len(t.heap) && less(t.heap[child+1], t.heap[child]) {
			child++
		}
		if !less(t.heap[child], x) {
			break
		}
		t.heap[i] = t.heap[child]
		t.pos[t.heap[i].slot] = int32(i) + 1
		i = child
	}
	t.heap[i] = x
	t.pos[x.slot] = int32(i) + 1
}

// queue is a heap of requests in the order of their sequence numbers. Entries are not removed when a request moves on: a
// reader asks whether an entry still stands, and compact sweeps when too many do not.
type queue struct {
	heap []entry
	// live counts the entries that stand.
	live int
}

// entry points to a resource (ref >= 0) or to an extra (ref < 0, the complement of its slot).
type entry struct {
	seq uint64
	ref int32
}

func (q *queue) push(e entry) {
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if e.seq >= q.heap[parent].seq {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

func (q *queue) pop() {
	last := len(q.heap) - 1
	x := q.heap[last]
	q.heap = q.heap[:last]
	if last == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.heap[child+1].seq < q.heap[child].seq {
			child++
		}
		if q.heap[child].seq >= x.seq {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	q.heap[i] = x
}

// compact drops the entries that do not stand, when they are the greater part.
func (q *queue) compact(stands func(entry) bool) {
	if len(q.heap) < 64 || len(q.heap) < 2*q.live {
		return
	}
	kept := slices.DeleteFunc(q.heap, func(e entry) bool { return !stands(e) })
	slices.SortFunc(kept, func(a, b entry) int {
		switch {
		case a.seq < b.seq:
			return -1
		case a.seq > b.seq:
			return 1
		}
		return 0
	})
	// A sorted slice is a heap. Two entries of one request are one.
	q.heap = slices.Compact(kept)
}
