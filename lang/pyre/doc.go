// Package pyre is Python's regular expressions: the syntax, the meaning and the error texts of its module re for text patterns.
//
// A pattern that means the same to Go's regexp package runs there, in linear time. Any other (look-around, back references,
// atomic groups, possessive repeats, word boundaries, conditionals) runs on a backtracking machine that gives up after
// [MaxSteps] steps.
//
// A pattern goes through three stages: parse.go reads it into a tree, translate.go writes the tree in Go's syntax where that is
// possible, and compile.go makes a program of it for the machine in machine.go otherwise.
package pyre
