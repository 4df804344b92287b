package api

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Error is the body of every answer that is not a success, and the error that [Client] returns for it.
type Error struct {
	// Message is for people. It begins with what kind of failure it is.
	Message string `json:"message"`
	// Code is stable: invalid, unauthorized, forbidden, not-found, method-not-allowed, conflict, too-large, internal, unavailable.
	Code string `json:"code,omitempty"`
	// TraceID finds the request in the server's log.
	TraceID string `json:"trace_id,omitempty"`
	// Details has more for programs, such as validation_errors.
	Details map[string]any `json:"error_details,omitempty"`
	// Status is the HTTP status.
	Status int `json:"-"`
}

// The codes of errors.
const (
	CodeInvalid          = "invalid"
	CodeUnauthorized     = "unauthorized"
	CodeForbidden        = "forbidden"
	CodeNotFound         = "not-found"
	CodeMethodNotAllowed = "method-not-allowed"
	CodeConflict         = "conflict"
	CodeTooLarge         = "too-large"
	CodeInternal         = "internal"
	CodeUnavailable      = "unavailable"
)

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Is lets errors.Is compare by status: errors.Is(err, &api.Error{Status: 404}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Status == e.Status && (t.Code == "" || t.Code == e.Code)
}

// ValidationError is one item of error_details.validation_errors.
type ValidationError struct {
	// Loc is the path to the faulty argument.
	Loc []string `json:"loc"`
	Msg string   `json:"msg"`
	// Type is missing, type_error, enum, extra_forbidden or value_error.
	Type string `json:"type"`
}

// decodeError makes an Error of an answer's status and body.
func decodeError(status int, body []byte) *Error {
	e := &Error{Status: status}
	if json.Unmarshal(body, e) != nil || e.Message == "" {
		e.Message = fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	}
	if e.Code == "" {
		e.Code = CodeOf(status)
	}
	return e
}

// CodeOf is the code that belongs to an HTTP status.
func CodeOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return CodeInvalid
	case http.StatusUnauthorized:
		return CodeUnauthorized
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusNotFound:
		return CodeNotFound
	case http.StatusMethodNotAllowed:
		return CodeMethodNotAllowed
	case http.StatusConflict:
		return CodeConflict
	case http.StatusRequestEntityTooLarge:
		return CodeTooLarge
	case http.StatusServiceUnavailable:
		return CodeUnavailable
	}
	return CodeInternal
}
