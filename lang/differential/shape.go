package main

import "regexp"

// varying are the parts of a message that models of the same kind have different.
var varying = regexp.MustCompile("`[^`]*`|'[^']*'|\"[^\"]*\"|[({\\[].*|[0-9]+|[a-z_0-9]+::[A-Za-z_:0-9]+|\n.*")

// shapeLen bounds the shape of a message.
const shapeLen = 40

// shape is the beginning of a message without its varying parts.
func shape(message string) string {
	s := varying.ReplaceAllString(message, "~")
	return s[:min(len(s), shapeLen)]
}
