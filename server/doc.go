// Package server is the HTTP face of Intendant: the REST API of the reference under /api/v1 and /api/v2, our additions under
// /api/v3, the stream of events, health and metrics, and the console's files.
//
// Every endpoint is a row of one table that names its path, its permission, its arguments and its handler. The table drives
// the router, the decoding of arguments, the authorisation and the OpenAPI document. A handler is a function of a context and
// a decoded request that returns a value or an error; the router behind it appears in one file only.
//
// The package decides nothing about deployments: a deploy is a stored command, a compile a stored job.
package server
