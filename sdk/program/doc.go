// Package program makes a handler program of handlers in Go: a program of its own that the agent starts and keeps running. It
// needs no other build of the agent, and a crash of it fails the resources it works on, not the agent.
//
//	func main() {
//		r := sdk.NewRegistry()
//		if err := r.Handle("shop::Shelf", sdk.NewCRUD(&shelf{})); err != nil {
//			log.Fatal(err)
//		}
//		program.Main(program.Info{Name: "shop", Version: "1.2.0"}, r)
//	}
//
// The agent's setting agent.handler-programs names such programs, or directories of them.
//
// # Protocol
//
// A program in any language can take part. The agent starts it with INTENDANT_HANDLER_PROGRAM=1 in its environment, and speaks to
// it in the frames of package pipe: it writes to descriptor 3 and reads from descriptor 4. Standard output and standard error
// are for the agent's log. The program ends when descriptor 3 ends.
//
//	program → agent   event hello    [Hello]: what it handles; once, first
//	agent → program   call execute   [Task] → [Report]
//	agent → program   event cancel   [Cancel]: the context of a task is over
//	program → agent   event log      [Line], while a task runs
//	program → agent   call file      [FileRequest] → [File]: a content of the server's file storage, as a file to read
//
// Attributes of resources come with the values of references in their places. Whatever goes back is cleaned of these values by
// the agent.
package program
