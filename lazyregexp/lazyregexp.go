// Package lazyregexp compiles regular expressions when they are used first. To compile all that are in the program took a sixth of
// the time of a small command, which needs next to none of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that gives the regular expression of a text, compiled at the first call. A text that is none makes that
// call panic, as it is part of the program.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
