// Package eval runs a checked program: it makes the instances of a model by letting data flow between statements until
// nothing moves any more (language specification, sections 7 to 12 and appendix A).
//
// Vocabulary:
//
//   - A variable receives one value, or, for relations, values until it is frozen.
//   - A unit is a piece of a statement that runs once all it waits for has a value. A unit whose last requirement is met joins
//     the run queue, first in first out.
//   - A relation that might be complete waits in the wait queue. When no unit can run, the first relation there that somebody
//     waits for, and that nobody has promised to add to, is frozen, and whatever waited for it runs.
//   - A promise is the announcement that a value will be set; while there are outstanding ones a relation is not frozen.
//   - A collector takes the values of a relation one by one, as they come, without waiting for it to be frozen.
//
// Everything is deterministic: the order of the queues is part of the language. A machine is used once and by one goroutine.
package eval
