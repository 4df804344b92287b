package api

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// timeFormat is ISO 8601 with microseconds and a numeric zone, as clients of the API know it.
const timeFormat = "2006-01-02T15:04:05.000000-07:00"

// Time is a moment on the wire: ISO 8601 with microseconds in UTC, null for the zero time.
type Time struct{ time.Time }

// NewTime returns t in UTC.
func NewTime(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC()}
}

// OptionalTime returns nil for the zero time, so that the answer has null or leaves the field out.
func OptionalTime(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	v := NewTime(t)
	return &v
}

// String is the form on the wire, empty for the zero time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

// MarshalJSON writes the form on the wire.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads any form that [ParseTime] does, and null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = Time{}
		return nil
	}
	parsed, err := ParseTime(strings.Trim(string(b), `"`))
	if err != nil {
		return err
	}
	*t = Time{parsed}
	return nil
}

// ParseTime reads an ISO 8601 date with or without a time, a fraction and a zone. Without a zone it is UTC. A space in the place
// of the zone's plus sign, as clients that forget to escape a query produce it, is taken for one.
func ParseTime(s string) (time.Time, error) {
	text := strings.TrimSpace(s)
	if n := len(text); n > 6 && text[n-6] == ' ' && text[n-3] == ':' && strings.Count(text, ":") > 1 {
		text = text[:n-6] + "+" + text[n-5:]
	}
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not an ISO 8601 time such as 2026-01-31T13:45:00+00:00", s)
}
