package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// Every command's flags must go together with those of the commands above it: cobra finds out when the command is used.
func TestFlagsGoTogether(t *testing.T) {
	t.Parallel()
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		n++
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: %v", c.CommandPath(), r)
				}
			}()
			if err := c.ParseFlags(nil); err != nil {
				t.Errorf("%s: %v", c.CommandPath(), err)
			}
		}()
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
	if n < 50 {
		t.Errorf("only %d commands were looked at", n)
	}
}
