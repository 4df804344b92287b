// Package sdktest runs handlers the way they run in production: a [Server] with the true hub, a true agent, and a real
// WebSocket between them. Only what the server would store is in memory.
//
// [Conformance] is the suite that every handler must pass.
package sdktest
