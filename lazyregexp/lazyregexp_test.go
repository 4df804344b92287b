package lazyregexp_test

import (
	"testing"

	"github.com/intendant/intendant/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	word := lazyregexp.New(`^\w+$`)
	if !word().MatchString("word") || word().MatchString("two words") {
		t.Error("the expression is not the one of the text")
	}
	if first, again := word(), word(); first != again {
		t.Error("the expression is compiled again")
	}
	wrong := lazyregexp.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a text that is no expression passes")
		}
	}()
	wrong()
}
