package slab_test

import (
	"testing"

	"github.com/intendant/intendant/slab"
)

type pair struct {
	a *int
	b string
}

// TestValuesAreApart takes so many values that blocks of all sizes are used up.
func TestValuesAreApart(t *testing.T) {
	t.Parallel()
	var s slab.Of[pair]
	var all []*pair
	for n := range 50_000 {
		got := []*pair{}
		if n%3 == 0 {
			row := s.Take(n % 7)
			if len(row) != n%7 || cap(row) != len(row) {
				t.Fatalf("%d values were taken, not %d, with room for %d", len(row), n%7, cap(row))
			}
			for i := range row {
				got = append(got, &row[i])
			}
		} else {
			got = append(got, s.New())
		}
		for _, p := range got {
			if *p != (pair{}) {
				t.Fatal("a value is not zero")
			}
			*p = pair{&n, "x"}
			all = append(all, p)
		}
	}
	seen := make(map[*pair]bool, len(all))
	for _, p := range all {
		if seen[p] {
			t.Fatal("a value was given twice")
		}
		seen[p] = true
	}
	if row := s.Take(100_000); len(row) != 100_000 || row[99_999] != (pair{}) {
		t.Error("a row longer than a block is not made whole")
	}
}

func TestMake(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 1 << 10, 1 << 20} {
		if s := slab.Make[pair](n); len(s) != n {
			t.Errorf("%d values, not %d", len(s), n)
		}
	}
	if s := slab.Make[struct{}](1 << 20); len(s) != 1<<20 {
		t.Errorf("%d values without a size", len(s))
	}
}

func BenchmarkNew(b *testing.B) {
	var s slab.Of[pair]
	for b.Loop() {
		s.New().b = "x"
	}
}
