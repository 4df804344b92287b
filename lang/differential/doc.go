// Command differential compiles a stream of generated models with this compiler and with the reference implementation, and
// reports every model of which the two make something different.
//
// A model is made by a generator from a seed ([generate]), or read from a file of recorded cases, and then broken in small ways
// ([mutate]). Both compilers say what they make of it as an [answer]; [compare] names the points in which two answers differ. What
// differs is compiled again by the reference with other hash seeds, since some of its errors depend on them; known and chosen
// differences are told apart ([chosen]); the rest is made as small as it gets ([minimise]) and written down.
//
//	make differential REFERENCE_PYTHON=/path/to/python
//
// docs/language/differential.md has the details and the figures.
package main
