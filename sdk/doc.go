// Package sdk is what the author of a handler needs: [Handler] and its optional companions, [Context] and [Registry].
//
// A handler brings resources of one type to their desired state. The agent calls it in a fixed order:
//
//	Read ─→ Diff ─→ (dry run and report-only stop here) ─→ Change ─→ Reload, if a requirement changed ─→ Facts
//
// Read looks at reality and says what it [Observed]. The difference to the intent is computed from that, by the handler's
// own [Differ] or by [Compare]. Change is called only when there is a difference, and never in a dry run: a handler that
// does not change anything in Read can not break that promise.
//
// A handler returns nil, one of the instructions made by [Skip], [SkipForDependency], [Unavailable], [Permanent] and
// [Coded], or any other error, which counts as a failed run that is tried again later. It must obey the end of its
// context, which comes at the task's deadline, and must leave no work behind when it returns. One handler value serves all
// resources of its type, from several goroutines at once; no two calls are for the same resource at the same time.
//
// A type whose order of work is another, such as a handler that runs in another process, implements [Executor] instead.
package sdk
