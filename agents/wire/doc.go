// Package wire is what the server's hub and an agent say to each other: JSON frames over one WebSocket.
//
// A frame is one text message {"id": n, "kind": "...", "body": {…}}; ids grow by one per sender and are for reading traces.
// Unknown kinds and unknown fields are ignored, so that either side may be newer. A session runs like this:
//
//	agent                                            hub
//	hello (who I am, what I still have)      ─→
//	                                         ←─      welcome (session, resume token, resumed or new)
//	                                         ←─      host (autostarted agents: the names to offer)
//	names (the names I offer)                ─→
//	                                         ←─      primary (which names are yours now, under which epoch)
//	                                         ←─      desired … (what to repair by while the server is away), paused
//	                                         ←─      assign (tasks), cancel
//	log, report (results)                    ─→
//	                                         ←─      ack (stored, refused, or to be sent again later)
//	heartbeat                                ─→
//	bye                                      ─→
//
// Every election of a primary has an epoch that is higher than all before it for the same agent name. Tasks and results
// carry it: an agent refuses tasks of an older epoch than it has seen, the hub refuses results of a process that has since
// been replaced. Deadlines travel as the time that is left, so that clocks need not agree.
//
// The package holds the messages, their limits and their codec, and no behaviour.
package wire
