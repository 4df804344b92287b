// Package intendant is the root of the Intendant GitOps orchestrator; the program is in cmd/intendant.
package intendant
