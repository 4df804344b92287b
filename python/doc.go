// Package python runs Python code in processes of its own and speaks to them in frames of JSON.
//
// The Python side is embedded: the package inmanta, which modules import, and the package intendant_host, which drives it. Both
// need nothing but the standard library of Python 3.9 or later. [Unpack] writes them to a directory named by their content.
//
// A [Process] reads frames on descriptor 3 and writes them on descriptor 4: whatever its code does with the standard streams can
// not break the connection. A frame is a length of four bytes, most significant first, and that many bytes of JSON:
//
//	{"id": n, "call": method, "args": …}     a call; "in": m says that it is made on behalf of the other side's call m
//	{"id": n, "result": …}                   its answer
//	{"id": n, "error": {"class", "message", "traceback", "data"}}
//	{"event": name, "args": …}               no answer
//
// Ids are per sender. A call that Python makes while it serves one of ours is handled by the goroutine that waits in
// [Process.Call], so that handlers see the caller's data without locks. The first frame of each side is the event hello with the
// version of the protocol.
package python
