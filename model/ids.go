// Package model is the vocabulary of work: ids, revisions, versions, intents, resource states, tasks and results.
//
// Every noun that crosses a package border is defined here, once. The package decides nothing and does no I/O; it owns the
// canonical encoding of resource attributes and the digests made from it.
package model

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/lazyregexp"
)

// The errors that the edges of the system branch on. Wrap them with what was being done and to what.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrInvalid     = errors.New("invalid")
	ErrForbidden   = errors.New("forbidden")
	ErrUnavailable = errors.New("unavailable")
	// ErrFenced says that a write carried a fencing token older than the current owner's: the writer must stop.
	ErrFenced = errors.New("fenced: another owner has taken over")
)

// ProjectID identifies a project.
type ProjectID struct{ uuid.UUID }

// EnvironmentID identifies an environment, the unit of isolation: one model, one version sequence, one scheduler.
type EnvironmentID struct{ uuid.UUID }

// JobID identifies a compile job.
type JobID struct{ uuid.UUID }

// TaskID identifies one run of a handler; results are idempotent by it.
type TaskID struct{ uuid.UUID }

// DryRunID identifies a dry run of one version.
type DryRunID struct{ uuid.UUID }

// CommandID identifies a request of a user to the scheduler.
type CommandID struct{ uuid.UUID }

// RepositoryName names a git repository in webhook paths: lower-case letters, digits, dot, dash, underscore.
type RepositoryName string

// AgentName is the name of an agent inside a resource id.
type AgentName string

// TraceID follows one change from push to result: 32 hexadecimal digits, the trace-id of W3C Trace Context.
type TraceID string

// NewTraceID returns a random trace id.
func NewTraceID() TraceID {
	u := uuid.New()
	return TraceID(strings.ReplaceAll(u.String(), "-", ""))
}

// ResourceID identifies a resource without its version: ns::Type[agent,attribute=value].
type ResourceID string

// ResourceIDParts are the parts of a [ResourceID].
type ResourceIDParts struct {
	Type      string
	Agent     AgentName
	Attribute string
	Value     string
}

// resourceIDPattern is the grammar of the API reference, section 5.4.
var resourceIDPattern = lazyregexp.New(`^((?:[\w-]+::)+[\w-]+)\[([^,]+),([^=]+)=([^\]]+)\](?:,v=([0-9]+))?$`)

// ParseResourceID splits an id with or without a version (0 when there is none). It fails with [ErrInvalid].
func ParseResourceID(s string) (ResourceID, ResourceIDParts, int, error) {
	m := resourceIDPattern().FindStringSubmatch(s)
	if m == nil {
		return "", ResourceIDParts{}, 0, fmt.Errorf("resource id %q is not of the form ns::Type[agent,attribute=value]: %w", s, ErrInvalid)
	}
	version := 0
	if m[5] != "" {
		n, err := strconv.Atoi(m[5])
		if err != nil {
			return "", ResourceIDParts{}, 0, fmt.Errorf("resource id %q: version: %w", s, ErrInvalid)
		}
		version = n
	}
	p := ResourceIDParts{Type: m[1], Agent: AgentName(m[2]), Attribute: m[3], Value: m[4]}
	return p.ID(), p, version, nil
}

// ID joins the parts.
func (p ResourceIDParts) ID() ResourceID {
	return ResourceID(p.Type + "[" + string(p.Agent) + "," + p.Attribute + "=" + p.Value + "]")
}

// Parts splits an id that was made by this package; the parts of a malformed one are empty.
func (r ResourceID) Parts() ResourceIDParts {
	_, p, _, err := ParseResourceID(string(r))
	if err != nil {
		return ResourceIDParts{}
	}
	return p
}

// WithVersion renders the id of the resource in one version: …,v=N.
func (r ResourceID) WithVersion(version int) string {
	return string(r) + ",v=" + strconv.Itoa(version)
}

// Secret is a text that must not reach a log, an API answer or a process list. Reveal is the one way to its value.
type Secret string

// Reveal returns the secret's text.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "**********"
}

// LogValue hides the text in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the text in JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Format hides the text from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }
