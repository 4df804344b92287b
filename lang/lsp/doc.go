// Package lsp is a server of the Language Server Protocol (version 3.17) for models: what `intendant lsp` runs.
//
// # Vocabulary
//
//   - A document is a file that the editor has open; its text is what the editor says, saved or not.
//   - A project is a tree in which documents lie: one with a project.yml, or the checkout of a module, which is treated as a
//     project that imports itself. Documents elsewhere only get syntax errors and formatting.
//   - A snapshot is the state of a project at one moment. Requests work on the snapshot of the moment at which they arrive; it
//     never changes.
//
// # How it works
//
// Messages are taken in order from one goroutine. Notifications change the documents there and then; requests are answered by
// goroutines of their own from a snapshot, so that they can be cancelled. Answers about names come from an index of
// [github.com/intendant/intendant/lang/xref], which takes broken sources; faults come from a [lang.Session], which checks a
// project in the background a moment after its last change.
//
// No Python code of a project is ever run: what its plugins are called and take is read from their text. A model that needs
// none is run in the background, to show the faults that only a run finds.
//
// The package reaches files only through the functions in its [Config].
package lsp
