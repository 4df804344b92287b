// Package store keeps everything that Intendant knows in PostgreSQL: the only package that speaks SQL.
//
// The database is the truth; a [model.Hint] is only a word that it changed. A hint is sent by NOTIFY inside the transaction
// that makes the change, so that it is heard after the commit and never without one. [Store.Subscribe] shares one listening
// connection among all subscribers.
//
// # Versions
//
// A resource's body (attributes, requirements, set, definedness) is stored once per environment and content hash. What
// belongs to which version is an interval per resource:
//
//	resource_id              from  until      body
//	fs::File[web,path=/a]       1      4      3fa1…     in versions 1, 2, 3
//	fs::File[web,path=/a]       4      ∞      77c0…     from version 4 on
//
// so that storing version N+1 writes the rows that changed, the content of version N is "from ≤ N < until", and the
// difference of two versions is the rows that begin or end between them: two index scans. A version may also be put below a
// later one (a client reserved its number and was slow): the intervals around it are split. When a version is deleted, ends of
// intervals at it move to the version after it, so that both ends are always versions that exist.
//
// # Ownership
//
// A compile job belongs to the worker that claimed it until its lease ends; an environment's deployment belongs to the holder
// of the lease, whose token grows with each change of hands. Every write under either is checked in its own transaction
// and refused with [model.ErrFenced] when somebody else has taken over.
//
// # Locks
//
// What changes an environment's versions, revision or settings locks its row first (FOR NO KEY UPDATE), then compile jobs,
// then the rest; bulk writes go in the order of resource ids. What is left of deadlocks and serialisation failures is
// retried in [Store.InTx] and only there.
package store
