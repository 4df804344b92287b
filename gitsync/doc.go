// Package gitsync turns pushes into revisions: it keeps mirrors of the repositories that environments deploy from, hears of
// news by webhook, by polling or on request, and gives out source trees.
//
// A mirror is a bare repository on disk, one for each repository however many environments use it. A sync asks the remote
// for its refs, fetches what is missing, resolves the branch of each watching environment to a commit and hands the result
// to the [Recorder], which queues the compile. A webhook says only that it is worth looking: no commit, ref or URL of a
// payload is ever used for anything but display.
//
//	push ── POST /hooks/{repository} ── verified ── delivery stored ── 202
//	                                                      │
//	timer ── poll due ────────────────────────────── one sync at a time per repository ── refs ── fetch ── RecordRevision
//	API ── SyncNow ───────────────────────────────────────┘
//
// A tree is the content of one commit, unpacked once, read-only, shared by whoever compiles it, and removed when the cache
// is full and nobody uses it. Trees that could reach outside themselves are refused with the name of the offending path.
package gitsync
