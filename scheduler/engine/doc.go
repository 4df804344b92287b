// Package engine decides what is deployed, when and in which order. It is pure: a [State] is made from a snapshot, and
// [State.Step] takes the time and an [Event], changes the state and returns the [Effect] list that the shell must carry out,
// in order. It knows no clock, database, network or randomness, so the same events always give the same effects.
//
// # Vocabulary
//
// A resource has an intent (what the newest released version asks) and a [model.ResourceState] (what is known of reality).
// It is dirty when it should be deployed without anybody asking: not blocked, and with an update or a failed last run or an
// outstanding event. A request asks for one resource to be run, at a [Priority]. A task is a run handed to an agent.
//
// # The life of a request
//
//	         request                 requirements idle            agent has a free slot
//	idle ───────────────▶ waiting ─────────────────────▶ queued ───────────────────────▶ running
//	 ▲                       ▲   ◀───────────────────────  │                               │
//	 │                       │    a requirement is asked   │                               │
//	 │                       └── for ──────────────────────┴── asked again meanwhile ──────┤
//	 └───────────────────────────────────── result ───────────────────────────────────────-┘
//
// A resource is in this cycle at most once, and at most one task of it is in flight. It waits while a direct requirement is
// in the cycle. Blocked resources (undefined, or requiring something undefined) never enter it.
//
// # Order
//
// An agent's queue is ordered by priority, then by the time of the request. Three rules keep that fair:
// what a request waits for inherits its priority; what is pushed back into waiting by a newer request inherits that one's, so it
// is next as soon as it may run; and an agent that has passed over its oldest request [Config.FairShare] times serves it.
// Hence a deploy goes before a repair, and a repair is completed however many deploys arrive: it goes on with what it has
// not verified and never begins again.
package engine
