package syntax

import (
	"errors"
	"fmt"
)

// checkRegex finds faults in the outer form of a regular expression, in the words of Python's re module.
func checkRegex(pattern string) error {
	c := regexChecker{s: pattern}
	if err := c.alternatives(0); err != nil {
		return err
	}
	if c.i < len(c.s) {
		return fmt.Errorf("unbalanced parenthesis at position %d", c.i)
	}
	return nil
}

type regexChecker struct {
	s string
	i int
}

var errEscape = errors.New("bad escape (end of pattern)")

// alternatives reads up to a closing parenthesis or the end.
func (c *regexChecker) alternatives(depth int) error {
	if depth > 100 {
		return errors.New("too many groups within one another")
	}
	repeatable, repeated := false, false
	for c.i < len(c.s) {
		start := c.i
		switch c.s[c.i] {
		case ')':
			return nil
		case '|':
			c.i++
			repeatable, repeated = false, false
			continue
		case '\\':
			if c.i+1 >= len(c.s) {
				return fmt.Errorf("%w at position %d", errEscape, c.i)
			}
			c.i += 2
			repeatable = true
		case '[':
			if err := c.set(); err != nil {
				return err
			}
			repeatable = true
		case '(':
			c.i++
			if err := c.alternatives(depth + 1); err != nil {
				return err
			}
			if c.i >= len(c.s) {
				return fmt.Errorf("missing ), unterminated subpattern at position %d", start)
			}
			c.i++
			repeatable = true
		case '*', '+', '?':
			c.i++
			switch {
			case !repeatable && !(start > 0 && c.s[start-1] == '(' && c.s[start] == '?'):
				if repeated {
					return fmt.Errorf("multiple repeat at position %d", start)
				}
				return fmt.Errorf("nothing to repeat at position %d", start)
			case !repeatable:
				// The question mark of a group such as (?:...) or (?P<name>...): what follows it is not checked here.
				c.extension()
				continue
			}
			// A mark that makes a repetition lazy or possessive belongs to it.
			if c.i < len(c.s) && (c.s[c.i] == '?' || c.s[c.i] == '+') {
				c.i++
			}
			repeatable, repeated = false, true
			continue
		case '^':
			c.i++
			repeatable = false
		default:
			c.i++
			repeatable = true
		}
		repeated = false
	}
	return nil
}

// extension skips what introduces a group behind its question mark.
func (c *regexChecker) extension() {
	if c.i >= len(c.s) {
		return
	}
	switch c.s[c.i] {
	case ':', '=', '!', '>', '#':
		c.i++
	case '<':
		c.i++
		if c.i < len(c.s) && (c.s[c.i] == '=' || c.s[c.i] == '!') {
			c.i++
		}
	}
}

// set reads a set in brackets.
func (c *regexChecker) set() error {
	start := c.i
	c.i++
	if c.i < len(c.s) && c.s[c.i] == '^' {
		c.i++
	}
	for first := true; c.i < len(c.s); first = false {
		switch c.s[c.i] {
		case ']':
			if !first {
				c.i++
				return nil
			}
			c.i++
		case '\\':
			c.i += 2
		default:
			c.i++
		}
	}
	return fmt.Errorf("unterminated character set at position %d", start)
}
