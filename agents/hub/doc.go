// Package hub is the server's half of the agents: it knows who is connected, hands tasks over and takes results in.
//
// A process opens a session and offers names. For each name one session is the primary; the others stand by. A session
// that loses its connection is suspended for the resume window: it stays primary, its tasks stay with it, and nobody else
// is told anything. When the window ends, or at once when the process says bye or comes back without its memory, the
// session is dropped: its tasks are lost, and the next session that offers the name becomes primary under a higher epoch.
//
//	          hello                connection lost
//	(none) ──────────→ connected ─────────────────→ suspended
//	                    │      ↑       resumed          │
//	                    │ bye  └────────────────────────┤ window over
//	                    ↓                               ↓
//	                  dropped: AgentDown(lost) ←────────┘
//
// Everything is kept in memory under one lock and no call to the outside is made under it. What the scheduler must hear
// (AgentUp, AgentDown) and what the store must keep go through queues that preserve their order.
package hub
