// Package modules fetches what a project's models need from elsewhere: modules from git repositories, and modules and other
// packages from Python package indexes.
//
// # Vocabulary
//
// A project asks for modules by the key requires of its project.yml, by its requirements.txt (modules that are Python packages),
// and by the imports of its models. Each answer is a choice: a version of a module at a commit of a repository, a Python package,
// a checkout within the project, or a module that comes with the program. The choices are kept in the project's intendant.lock.
//
//	ask ──▶ choose (constraints, transitively) ──▶ fetch ──▶ imports of what was fetched ──┐
//	          ▲                                                                            │
//	          └────────────────── until nothing is missing any more ◀──────────────────────┘
//	                                     │
//	                                     ▼
//	                    intendant.lock ──▶ place: directories for the compiler
//
// # Which source answers
//
// A checkout on the project's module path goes before everything. What requirements.txt lists comes from the package index. All
// else comes from the first repository of project.yml that has it, from the package index if none has, and from the program
// itself at last. A module that comes with the program and that only other modules ask for, not the project, comes from the program.
//
// # The store
//
// Trees of modules are kept by the digest of their content, below [Config].Dir, read-only. Whoever uses one counts its digest
// again, so that a tree that was changed is noticed. With a lock and what it names in the store no network is needed.
//
// # Trust
//
// A lock names commits and digests. A tag that was moved, or a repository that was replaced, is an error and never a silent
// change. Trees come from gitsync, which refuses links that leave, devices, submodules and whatever is too large. Repositories
// and indexes are named by the project: whoever may change the project decides whose code its models run.
package modules
