package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// alarms is a heap of moments shared by all loops, with one goroutine and one timer.
type alarms struct {
	mu   sync.Mutex // guards heap and the fields of its entries
	heap alarmHeap
	wake chan struct{} // capacity 1: the earliest entry has changed
}

// alarm is one moment of one loop. ring is called on the goroutine of alarms and must not block.
type alarm struct {
	at    time.Time
	index int // in the heap, -1 when not set
	ring  func()
}

func newAlarms() *alarms { return &alarms{wake: make(chan struct{}, 1)} }

func newAlarm(ring func()) *alarm { return &alarm{index: -1, ring: ring} }

// set moves an alarm to a moment; the zero time clears it.
func (a *alarms) set(x *alarm, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case at.IsZero() && x.index >= 0:
		heap.Remove(&a.heap, x.index)
	case at.IsZero():
	case x.index >= 0:
		x.at = at
		heap.Fix(&a.heap, x.index)
	default:
		x.at = at
		heap.Push(&a.heap, x)
	}
	if len(a.heap) > 0 && a.heap[0] == x {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// run rings alarms until ctx ends.
func (a *alarms) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := time.Hour
		for _, x := range a.due(time.Now(), &next) {
			x.ring()
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
	}
}

// due takes the alarms whose moment has come off the heap and shortens next to the time until the one after them.
func (a *alarms) due(now time.Time, next *time.Duration) []*alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	var due []*alarm
	for len(a.heap) > 0 {
		if d := a.heap[0].at.Sub(now); d > 0 {
			*next = min(*next, d)
			break
		}
		x, ok := heap.Pop(&a.heap).(*alarm)
		if ok {
			due = append(due, x)
		}
	}
	return due
}

// alarmHeap implements heap.Interface.
type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push appends an alarm.
func (h *alarmHeap) Push(x any) {
	e, ok := x.(*alarm)
	if !ok {
		return
	}
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop takes the last alarm.
func (h *alarmHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
