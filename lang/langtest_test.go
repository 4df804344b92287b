package lang_test

import (
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/langtest"
)

// TestGenerated compiles each kind of generated model and counts what comes out: a model that does less than it says measures
// nothing.
func TestGenerated(t *testing.T) {
	t.Parallel()
	empty, err := compiled(lang.Compile, project("main.cf", ""))
	if err != nil {
		t.Fatal(err)
	}
	standard := empty.Stats.Instances
	for _, s := range langtest.Shapes() {
		for _, n := range []int{100, 1_000} {
			res, err := compiled(lang.Compile, s.Project(n))
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			if got := res.Stats.Instances - standard; got < n*8/10 || got > n*12/10 {
				t.Errorf("%s: %d instances, want about %d", s.Name, got, n)
			}
		}
	}
	lib := langtest.Library{Modules: 25, Entities: 3, Instances: 4}
	res, err := compiled(lang.Compile, lib.Project())
	if err != nil {
		t.Fatal(err)
	}
	// One part for each instance, and a second one for those whose size is greater than 3, of which there are none.
	if got, want := res.Stats.Instances-standard, 2*25*4; got != want || res.Stats.Files != 27 {
		t.Errorf("the library makes %d instances of %d files, want %d of 27", got, res.Stats.Files, want)
	}
}
