package eval

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

func TestFifo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q fifo[int]
		var want []int
		next := 0
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 3*blockSize).Draw(t, "pushes") {
				q.push(next)
				want = append(want, next)
				next++
			}
			for range rapid.IntRange(0, len(want)).Draw(t, "pops") {
				if got := *q.pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
			}
			if q.len() != len(want) {
				t.Fatalf("length %d, want %d", q.len(), len(want))
			}
			ahead := q.ahead(rapid.IntRange(1, 20).Draw(t, "ahead"))
			if len(want) > 0 && len(ahead) == 0 || len(ahead) > 20 || !slices.Equal(ahead, want[:len(ahead)]) {
				t.Fatalf("ahead are %d, of %d", ahead, want)
			}
		}
	})
}

func TestWaitQueueOrder(t *testing.T) {
	t.Parallel()
	free, first, second := &check.Attribute{Name: "free"}, &check.Attribute{Name: "first", PolicyRank: 1}, &check.Attribute{Name: "second", PolicyRank: 2}
	q := newWaitQueue([]*check.Attribute{first, second})
	for _, a := range []*check.Attribute{second, first, free, second, free} {
		q.push(&variable{attr: a})
	}
	for _, want := range []string{"free", "free", "first", "second", "second"} {
		if got := q.pop().attr.Name; got != want {
			t.Errorf("popped %s, want %s", got, want)
		}
	}
	if q.len() != 0 || q.pop() != nil {
		t.Error("the queue is not empty")
	}
}

func TestKeysDistinguishValues(t *testing.T) {
	t.Parallel()
	key := func(id int, vs ...value.Value) string {
		b := startKey(nil, &check.IndexDef{ID: id})
		for _, v := range vs {
			b = appendKey(b, "a", v)
		}
		return string(b)
	}
	a, b, one := value.String("a"), value.String("b"), value.String("1")
	if key(0, a, b) == key(0, value.String("a\x00s1:b")) || key(0, one) == key(0, value.Int(1)) {
		t.Error("different values have the same key")
	}
	if key(1, a, b) == key(2, a, b) {
		t.Error("different attributes have the same key")
	}
}
