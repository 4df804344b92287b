package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/intendant/intendant/model"
)

// Version is the protocol version this package speaks; MinVersion is the oldest it understands.
const (
	Version    = 1
	MinVersion = 1
)

// Limits of the protocol. Both sides obey them when they send and check them when they receive.
const (
	// MaxFrame is the size of a frame in bytes.
	MaxFrame = 16 << 20
	// SoftFrame is the size at which a sender begins the next frame.
	SoftFrame = 1 << 20
	// MaxBatch is the number of tasks, results or resources in a frame.
	MaxBatch = 1000
	// MaxNames is the number of agents of a process.
	MaxNames = 10_000
	// MaxHeld is the number of tasks that an agent names in its hello.
	MaxHeld = 100_000
	// MaxUpload is the size of a content that an agent adds to the file storage, in bytes.
	MaxUpload = 256 << 20
	// MaxText is the size of a name, token or reason in bytes.
	MaxText = 4096
	// MaxUnacknowledged is the number of results that an agent sends before it waits for acknowledgements.
	MaxUnacknowledged = 4096
	// MaxUnacknowledgedBytes is their size together.
	MaxUnacknowledgedBytes = 32 << 20
	// MaxAssigned is the number of tasks that an agent holds at once; the hub keeps the rest.
	MaxAssigned = 4096
)

// PingInterval is how often each side pings the other; a side that has heard nothing for three of them ends the connection.
const PingInterval = 20 * time.Second

// Paths and headers of the HTTP side.
const (
	// SessionPath is where an agent opens its WebSocket.
	SessionPath = "/api/v3/agent/session"
	// FilePath precedes the SHA-1 of a content.
	FilePath = "/api/v3/agent/file/"
	// EnrollPath is where a one-time token is exchanged for a lasting one.
	EnrollPath = "/api/v3/agent/enroll"
	// EnvironmentHeader names the environment of a request.
	EnvironmentHeader = "X-Inmanta-Tid"
)

// Kind is the kind of a frame.
type Kind string

// The kinds of frames, in the order of a session.
const (
	KindHello     Kind = "hello"
	KindWelcome   Kind = "welcome"
	KindHost      Kind = "host"
	KindNames     Kind = "names"
	KindPrimary   Kind = "primary"
	KindPaused    Kind = "paused"
	KindDesired   Kind = "desired"
	KindAssign    Kind = "assign"
	KindCancel    Kind = "cancel"
	KindLog       Kind = "log"
	KindReport    Kind = "report"
	KindAck       Kind = "ack"
	KindHeartbeat Kind = "heartbeat"
	KindBye       Kind = "bye"
	KindError     Kind = "error"
)

// Body is the content of a frame: a pointer to one of the message types of this package.
type Body interface {
	Kind() Kind
	check() error
}

// Frame is one message.
type Frame struct {
	ID uint64
	// Kind is of the body; it is kept also when the kind is unknown.
	Kind Kind
	// Body is nil when the kind is unknown to this version.
	Body Body
}

type envelope struct {
	ID   uint64          `json:"id"`
	Kind Kind            `json:"kind"`
	Body json.RawMessage `json:"body"`
}

// Encode makes the bytes of a frame. It fails with [model.ErrInvalid] when a limit is exceeded.
func Encode(id uint64, b Body) ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", b.Kind(), err)
	}
	raw, err := json.Marshal(struct {
		ID   uint64 `json:"id"`
		Kind Kind   `json:"kind"`
		Body Body   `json:"body"`
	}{id, b.Kind(), b})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", b.Kind(), err)
	}
	if len(raw) > MaxFrame {
		return nil, fmt.Errorf("encoding %s: %d bytes, at most %d: %w", b.Kind(), len(raw), MaxFrame, model.ErrInvalid)
	}
	return raw, nil
}

// Decode reads the bytes of a frame. It fails with [model.ErrInvalid] on anything that is not one, or exceeds a limit; a
// frame of an unknown kind is returned without a body.
func Decode(raw []byte) (Frame, error) {
	if len(raw) > MaxFrame {
		return Frame{}, fmt.Errorf("frame of %d bytes, at most %d: %w", len(raw), MaxFrame, model.ErrInvalid)
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return Frame{}, fmt.Errorf("frame: %w: %w", model.ErrInvalid, err)
	}
	if e.Kind == "" {
		return Frame{}, fmt.Errorf("frame without a kind: %w", model.ErrInvalid)
	}
	f := Frame{ID: e.ID, Kind: e.Kind}
	b := newBody(e.Kind)
	if b == nil {
		return f, nil
	}
	if len(e.Body) > 0 {
		if err := json.Unmarshal(e.Body, b); err != nil {
			return Frame{}, fmt.Errorf("body of %s: %w: %w", e.Kind, model.ErrInvalid, err)
		}
	}
	if err := b.check(); err != nil {
		return Frame{}, fmt.Errorf("body of %s: %w", e.Kind, err)
	}
	f.Body = b
	return f, nil
}

func newBody(k Kind) Body {
	switch k {
	case KindHello:
		return &Hello{}
	case KindWelcome:
		return &Welcome{}
	case KindHost:
		return &Host{}
	case KindNames:
		return &Names{}
	case KindPrimary:
		return &Primary{}
	case KindPaused:
		return &Paused{}
	case KindDesired:
		return &Desired{}
	case KindAssign:
		return &Assign{}
	case KindCancel:
		return &Cancel{}
	case KindLog:
		return &Log{}
	case KindReport:
		return &Report{}
	case KindAck:
		return &Ack{}
	case KindHeartbeat:
		return &Heartbeat{}
	case KindBye:
		return &Bye{}
	case KindError:
		return &Error{}
	}
	return nil
}

// Code is the form in which the sentinel errors of package model cross the wire.
type Code string

// The codes. CodeReplaced says that another process is the agent's primary now.
const (
	CodeInternal     Code = "internal"
	CodeUnavailable  Code = "unavailable"
	CodeFenced       Code = "fenced"
	CodeForbidden    Code = "forbidden"
	CodeInvalid      Code = "invalid"
	CodeNotFound     Code = "not_found"
	CodeConflict     Code = "conflict"
	CodeIncompatible Code = "incompatible"
	CodeReplaced     Code = "replaced"
	CodeOverrun      Code = "overrun"
)

// CodeOf returns the code of an error.
func CodeOf(err error) Code {
	switch {
	case errors.Is(err, model.ErrUnavailable):
		return CodeUnavailable
	case errors.Is(err, model.ErrFenced):
		return CodeFenced
	case errors.Is(err, model.ErrForbidden):
		return CodeForbidden
	case errors.Is(err, model.ErrInvalid):
		return CodeInvalid
	case errors.Is(err, model.ErrNotFound):
		return CodeNotFound
	case errors.Is(err, model.ErrConflict):
		return CodeConflict
	}
	return CodeInternal
}

// Err makes an error of a code and its message, which errors.Is recognises by the sentinel.
func (c Code) Err(message string) error {
	switch c {
	case CodeUnavailable:
		return fmt.Errorf("%s: %w", message, model.ErrUnavailable)
	case CodeFenced, CodeReplaced:
		return fmt.Errorf("%s: %w", message, model.ErrFenced)
	case CodeForbidden:
		return fmt.Errorf("%s: %w", message, model.ErrForbidden)
	case CodeInvalid, CodeIncompatible, CodeOverrun:
		return fmt.Errorf("%s: %w", message, model.ErrInvalid)
	case CodeNotFound:
		return fmt.Errorf("%s: %w", message, model.ErrNotFound)
	case CodeConflict:
		return fmt.Errorf("%s: %w", message, model.ErrConflict)
	case CodeInternal:
	}
	return errors.New(message)
}
