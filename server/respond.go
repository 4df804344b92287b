package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// compressFrom is the size in bytes from which answers are compressed.
const compressFrom = 1024

// refusal is an error of the API itself, with its status.
type refusal struct {
	status  int
	message string
}

func (e *refusal) Error() string { return e.message }

// refuse makes an error that is answered with the status.
func refuse(status int, message string) error { return &refusal{status, message} }

// describe turns an error into a status and a body. internal is true when the text must stay in the log.
func describe(err error) (body *api.Error, internal bool) {
	body = &api.Error{Status: http.StatusInternalServerError}
	var arguments *invalidArgumentsError
	var tooLarge *bodyTooLargeError
	var refused *refusal
	text := err.Error()
	switch {
	case errors.As(err, &arguments):
		body.Status = http.StatusBadRequest
		if len(arguments.details) > 0 {
			body.Details = map[string]any{"validation_errors": arguments.details}
		}
	case errors.As(err, &tooLarge):
		body.Status = http.StatusRequestEntityTooLarge
	case errors.As(err, &refused):
		body.Status = refused.status
	case errors.Is(err, ErrUnauthenticated):
		body.Status = http.StatusUnauthorized
	case errors.Is(err, model.ErrNotFound):
		body.Status = http.StatusNotFound
	case errors.Is(err, model.ErrConflict):
		body.Status = http.StatusConflict
	case errors.Is(err, model.ErrInvalid):
		body.Status = http.StatusBadRequest
	case errors.Is(err, model.ErrForbidden):
		body.Status = http.StatusForbidden
	case errors.Is(err, context.Canceled):
		body.Status = http.StatusServiceUnavailable
		text = "the request was given up before it was done"
	case errors.Is(err, context.DeadlineExceeded):
		body.Status = http.StatusServiceUnavailable
		text = "the request took too long and was given up; ask for less, or again later"
	case errors.Is(err, model.ErrUnavailable):
		body.Status = http.StatusServiceUnavailable
	default:
		internal = true
		text = "the server's log has the cause under the trace id of this answer"
	}
	for _, sentinel := range []error{ErrUnauthenticated, model.ErrNotFound, model.ErrConflict, model.ErrInvalid, model.ErrForbidden, model.ErrUnavailable} {
		text = strings.TrimSuffix(text, ": "+sentinel.Error()) // the prefix says the same
	}
	body.Code = api.CodeOf(body.Status)
	body.Message = prefix(body.Status) + text
	return body, internal
}

// prefix is how the message of an error begins (API reference, section 1.5).
func prefix(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "Invalid request: "
	case http.StatusUnauthorized:
		return "Access to this resource is unauthorized: "
	case http.StatusForbidden:
		return "Access denied: "
	case http.StatusNotFound:
		return "Request or referenced resource does not exist: "
	case http.StatusConflict:
		return "Request conflicts with the current state of the resource: "
	case http.StatusInternalServerError:
		return "An unexpected error occurred in the server while processing the request: "
	}
	return ""
}

// encode makes the body of a successful answer.
func encode(c *call, value any) ([]byte, error) {
	if len(c.warnings) > 0 {
		if c.metadata == nil {
			c.metadata = &api.Metadata{}
		}
		c.metadata.Warnings = append(c.metadata.Warnings, c.warnings...)
	}
	if _, empty := value.(none); empty {
		if c.metadata == nil {
			return nil, nil
		}
		return marshal(struct {
			Metadata *api.Metadata `json:"metadata"`
		}{c.metadata})
	}
	switch c.endpoint.style {
	case bare:
		body, err := marshal(value)
		if err != nil || c.metadata == nil {
			return body, err
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, err
		}
		if object["metadata"], err = marshal(c.metadata); err != nil {
			return nil, err
		}
		return marshal(object)
	case queued:
		return marshal(struct {
			Queue any `json:"queue"`
		}{value})
	case wrapped:
	}
	return marshal(api.Envelope[any]{Data: value, Links: c.links, Metadata: c.metadata})
}

// marshal is json.Marshal without the escaping of HTML, so that texts keep their form.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// jsonType is the Content-Type of JSON. It has no charset: the reference's clients decode nothing else, and JSON is UTF-8 anyway.
const jsonType = "application/json"

// write sends a body, compressed if the client takes that and it is worth it.
func write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= compressFrom && acceptsGzip(r) {
		var packed bytes.Buffer
		z := gzipWriters.Get().(*gzip.Writer)
		z.Reset(&packed)
		_, _ = z.Write(body) // a bytes.Buffer does not fail
		_ = z.Close()
		gzipWriters.Put(z)
		h.Set("Content-Encoding", "gzip")
		body = packed.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	//nolint:gosec // JSON, and the page that openapi.go escapes
	_, _ = w.Write(body) // the client is gone if this fails; there is nobody to tell
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(name, "gzip") || name == "*" {
			q := strings.ReplaceAll(parameters, " ", "")
			return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
		}
	}
	return false
}

// writeError sends the envelope of errors.
func writeError(w http.ResponseWriter, r *http.Request, e *api.Error) {
	body, err := marshal(e)
	if err != nil { // details are made by this package and always encode
		body = []byte(`{"message":"the error could not be encoded"}`)
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="intendant"`)
	}
	write(w, r, e.Status, jsonType, body)
}
