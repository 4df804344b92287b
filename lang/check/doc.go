// Package check gives every name of a project its meaning: it builds the namespaces, defines types, entities, relations,
// indexes and implementations, checks all that the language checks before anything runs (language specification, section 1
// step 4 and appendix D), and binds every statement to what its names stand for.
//
// Vocabulary:
//
//   - A [Source] is one parsed file with the namespace that it fills; all sources of a project, in load order, are the input.
//   - A [Program] is the result: types and blocks in which no name is left to be looked up by text, except those that depend
//     on the type of an instance at run time.
//   - A unit is what the evaluator runs at once. Each expression of a unit that waits for something has a slot in the unit's
//     frame; the checker hands out the slots.
//   - A [Fault] is an error of the model, with the rules by which the language decides where an error is reported.
//
// The trees are not changed; everything found out is in the program.
package check
