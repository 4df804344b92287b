// Package api is the contract of the REST API: the types of requests and answers, the envelope of errors, and a client.
//
// The types mirror what is on the wire and nothing else; the server converts its own types to and from them, so that the
// contract does not move with internals. The OpenAPI document of the same endpoints is openapi.json in this directory; it is
// generated from the server's routing table and a test holds it true.
//
// [Client] speaks to a server. It sends the environment with each call, retries what may be retried, and turns error answers
// into [*Error].
package api
