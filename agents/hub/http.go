package hub

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

var sha1Pattern = lazyregexp.New(`^[0-9a-f]{40}$`)

// Handler returns one handler for all paths of the agent's HTTP side: sessions, files and enrolment.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+wire.SessionPath, h.Session())
	mux.Handle("GET "+wire.FilePath+"{hash}", h.File())
	mux.Handle("PUT "+wire.FilePath+"{hash}", h.Upload())
	mux.Handle("POST "+wire.EnrollPath, h.Enroll())
	return mux
}

// File returns the handler for [wire.FilePath] followed by a SHA-1 in hex: it answers with the content.
func (h *Hub) File() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := h.authenticate(w, r); !ok {
			return
		}
		hash := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if !sha1Pattern().MatchString(hash) {
			refuse(w, http.StatusBadRequest, "a content is named by its SHA-1 in lower-case hex")
			return
		}
		content, err := h.cfg.Registry.File(r.Context(), hash)
		switch {
		case errors.Is(err, model.ErrNotFound):
			refuse(w, http.StatusNotFound, "there is no content "+hash)
		case err != nil:
			h.log.ErrorContext(r.Context(), "reading a content", "hash", hash, "error", err)
			refuse(w, http.StatusServiceUnavailable, "the content can not be read now")
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("ETag", `"`+hash+`"`)
			w.Header().Set("Cache-Control", "private, immutable")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	})
}

// Upload returns the handler that stores a content under [wire.FilePath] followed by its SHA-1 in hex. The body is the content.
func (h *Hub) Upload() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := h.authenticate(w, r); !ok {
			return
		}
		keeper, ok := h.cfg.Registry.(FileKeeper)
		if !ok {
			refuse(w, http.StatusNotImplemented, "this server takes no contents from agents")
			return
		}
		hash := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxUpload))
		if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
			refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a content has at most %d bytes", tooLarge.Limit))
			return
		}
		if err != nil {
			return // the agent is gone
		}
		sum := sha1.Sum(content)
		if hex.EncodeToString(sum[:]) != hash {
			refuse(w, http.StatusBadRequest, "a content is named by its SHA-1 in lower-case hex, which is another one")
			return
		}
		if err := keeper.SaveFile(r.Context(), model.File{Hash: hash, Content: content}); err != nil {
			h.log.ErrorContext(r.Context(), "storing a content", "hash", hash, "error", err)
			refuse(w, http.StatusServiceUnavailable, "the content can not be stored now")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// Enroll returns the handler for [wire.EnrollPath]: it exchanges a one-time token for a lasting one, {"token": "…"}.
// The registry's AuthenticateAgent uses a one-time token up.
func (h *Hub) Enroll() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		env, ok := h.authenticate(w, r)
		if !ok {
			return
		}
		var request struct {
			Hostname string `json:"hostname"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&request); err != nil {
			refuse(w, http.StatusBadRequest, "the body must be a JSON object with the hostname")
			return
		}
		if len(request.Hostname) > 255 {
			refuse(w, http.StatusBadRequest, "the hostname is too long")
			return
		}
		token, err := h.cfg.Registry.IssueAgentToken(r.Context(), env, "agent on "+request.Hostname, false)
		if err != nil {
			h.log.ErrorContext(r.Context(), "issuing an agent token", "environment", env, "error", err)
			refuse(w, http.StatusServiceUnavailable, "no token can be issued now")
			return
		}
		h.log.InfoContext(r.Context(), "agent enrolled", "environment", env, "hostname", request.Hostname, "remote", r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token.Reveal()})
	})
}

// refuse answers with the error envelope that the API uses.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message}) //nolint:errchkjson // the client is gone; there is nobody to tell
}
