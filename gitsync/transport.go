package gitsync

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/intendant/intendant/model"
)

// session is one conversation with a remote: its refs, and then at most one pack.
type session interface {
	// refs returns what the remote advertises.
	refs(ctx context.Context) (*packp.AdvRefs, error)
	// pack asks for objects. It fails with [transport.ErrEmptyUploadPackRequest] when there is nothing to send.
	pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error)
	// close ends the conversation; it may be called in any state.
	close()
}

// transports opens sessions. It holds no state of a single repository.
type transports struct {
	web          transport.Transport
	idle         func()
	blockPrivate bool
	local        bool
	temp         string
	// maxRefs and maxPack bound what a remote may send, in bytes.
	maxRefs, maxPack int64
}

func newTransports(c Config, temp string) *transports {
	t := &http.Transport{
		Proxy:                  c.Proxy,
		DialContext:            guardedDialer(c.BlockPrivateNetworks),
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  c.PeekTimeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
	}
	client := &http.Client{Transport: &limitedRoundTripper{next: t, refs: c.MaxAdvertisement, pack: c.MaxPack}}
	return &transports{
		web:          githttp.NewClientWithOptions(client, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects}),
		idle:         t.CloseIdleConnections,
		blockPrivate: c.BlockPrivateNetworks,
		local:        c.AllowLocal,
		temp:         temp,
		maxRefs:      c.MaxAdvertisement,
		maxPack:      c.MaxPack,
	}
}

// open starts a session with a repository. Nothing has been received yet when it returns without an error.
func (t *transports) open(ctx context.Context, r remote, repo model.Repository) (session, error) {
	switch r.scheme {
	case schemeHTTP, schemeHTTPS:
		return t.openHTTP(r, repo)
	case schemeSSH:
		return t.openSSH(ctx, r, repo)
	case schemeFile:
		if !t.local {
			return nil, fmt.Errorf("local repositories are not allowed by the server's configuration: %w", model.ErrForbidden)
		}
		return t.openLocal(ctx, r)
	}
	return nil, fmt.Errorf("scheme %q: %w", r.scheme, model.ErrInvalid)
}

func (t *transports) openHTTP(r remote, repo model.Repository) (session, error) {
	ep := &transport.Endpoint{Protocol: string(r.scheme), Host: r.host, Port: r.port, Path: r.path}
	if strings.Contains(r.host, ":") {
		ep.Host = "[" + r.host + "]"
	}
	user, password := repo.Username, repo.Password
	if user == "" && password == "" {
		user, password = r.user, r.password
	}
	var auth transport.AuthMethod
	if user != "" || password != "" {
		if user == "" {
			user = "git" // forges take any name next to a token, but not none
		}
		auth = &githttp.BasicAuth{Username: user, Password: password.Reveal()}
	}
	s, err := t.web.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	return &httpSession{s}, nil
}

type httpSession struct{ s transport.UploadPackSession }

func (h *httpSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	ar, err := h.s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing refs: %w", err)
	}
	return ar, nil
}

func (h *httpSession) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	r, err := h.s.UploadPack(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("fetching objects: %w", err)
	}
	return r, nil
}

func (h *httpSession) close() { _ = h.s.Close() }

// errTooLarge says that a remote sent more than it may.
var errTooLarge = errors.New("the remote sent more than the configured limit")

// limitedRoundTripper bounds the bodies of responses: the list of refs by one limit, packs by another, everything else
// (error pages) by a small one.
type limitedRoundTripper struct {
	next       http.RoundTripper
	refs, pack int64
}

// RoundTrip implements [http.RoundTripper].
func (l *limitedRoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RoundTripper hands on what it wraps
	}
	limit := l.pack
	switch {
	case res.StatusCode != http.StatusOK:
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 4<<10), res.Body}
		return res, nil
	case r.Method == http.MethodGet:
		limit = l.refs
	}
	res.Body = &limitedBody{ReadCloser: res.Body, left: limit}
	return res, nil
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

// Read implements [io.Reader] and fails with errTooLarge beyond the limit.
func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n, errTooLarge
	}
	return n, err //nolint:wrapcheck // a Reader hands on what it wraps
}
