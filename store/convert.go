package store

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
)

// text makes a string storable: PostgreSQL's text has neither NUL nor malformed UTF-8. Both become U+FFFD.
func text(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// timeOrNil is NULL for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// timeOf is the zero time for NULL.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// uuidOrNil is NULL for the zero id.
func uuidOrNil(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func uuidOf(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

// strs converts between slices of named strings. The result is never nil: NULL is not an empty array.
func strs[To, From ~string](in []From) []To {
	out := make([]To, len(in))
	for i, s := range in {
		out[i] = To(s)
	}
	return out
}

// int32Of converts what can only be a bound or a version number; larger values are cut.
func int32Of(n int) int32 {
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}

// encode renders a value as JSON; nil maps and slices become the empty text given.
func encode(v any, empty string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w: %w", v, err, model.ErrInvalid)
	}
	if string(b) == "null" {
		return []byte(empty), nil
	}
	return b, nil
}

// decode fills v from a JSON column.
func decode(raw []byte, v any, what string) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}

// splitID returns type, agent and value of a resource id. It is the fast form of [model.ParseResourceID] for ids that a
// client has parsed before; ok is false for a malformed one.
func splitID(id model.ResourceID) (typ, agent, value string, ok bool) {
	s := string(id)
	typ, rest, ok := strings.Cut(s, "[")
	if !ok || !strings.Contains(typ, "::") || !strings.HasSuffix(rest, "]") {
		return "", "", "", false
	}
	agent, rest, ok = strings.Cut(rest[:len(rest)-1], ",")
	if !ok || agent == "" {
		return "", "", "", false
	}
	attribute, value, ok := strings.Cut(rest, "=")
	if !ok || attribute == "" || value == "" || strings.ContainsRune(value, ']') {
		return "", "", "", false
	}
	return typ, agent, value, true
}
