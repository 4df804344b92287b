package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/intendant/intendant/model"
)

// ErrUnauthenticated says that a request carries no proof of who makes it while one is required.
var ErrUnauthenticated = errors.New("no valid credentials")

// Identity is who makes a request.
type Identity struct {
	// Name is shown as the actor of what is done; empty when nobody is known.
	Name string
	// ClientTypes are the kinds of client the credentials are for: api, agent, compiler. Empty means all.
	ClientTypes []string
	// Environment, when not nil, is the only environment that the credentials are for.
	Environment *model.EnvironmentID
}

// Access is what somebody wants to do.
type Access struct {
	// Endpoint is the operation's name, Permission its label, ClientTypes the kinds of clients it is made for.
	Endpoint    string
	Permission  string
	ClientTypes []string
	// Environment is the one that the operation is about, nil for none.
	Environment *model.EnvironmentID
	// ReadOnly operations change nothing.
	ReadOnly bool
}

// Authenticator decides who makes a request and what they may do. Both methods are called by many goroutines.
type Authenticator interface {
	// Authenticate returns who makes a request. It fails with ErrUnauthenticated when the request has no credentials and with
	// model.ErrForbidden when they are not valid.
	Authenticate(r *http.Request) (Identity, error)
	// Authorize returns nil when the access is granted and model.ErrForbidden when it is not.
	Authorize(ctx context.Context, who Identity, what Access) error
}

// BearerTokens is an [Authenticator] with a fixed set of tokens, by the name of who holds each. A holder may do everything.
type BearerTokens map[string]model.Secret

// Authenticate takes the token from the Authorization header.
func (b BearerTokens) Authenticate(r *http.Request) (Identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Identity{}, fmt.Errorf("the request has no Authorization header with a bearer token: %w", ErrUnauthenticated)
	}
	given := sha256.Sum256([]byte(token))
	found := ""
	for name, secret := range b {
		want := sha256.Sum256([]byte(secret.Reveal()))
		if subtle.ConstantTimeCompare(given[:], want[:]) == 1 && secret != "" {
			found = name
		}
	}
	if found == "" {
		return Identity{}, fmt.Errorf("the bearer token is not valid: %w", model.ErrForbidden)
	}
	return Identity{Name: found}, nil
}

// Authorize grants everything that the identity's client types and environment cover.
func (b BearerTokens) Authorize(_ context.Context, who Identity, what Access) error {
	return who.covers(what)
}

// covers holds an identity to its kinds of client and its environment.
func (i Identity) covers(what Access) error {
	if len(i.ClientTypes) > 0 && !slices.ContainsFunc(i.ClientTypes, func(t string) bool { return slices.Contains(what.ClientTypes, t) }) {
		return fmt.Errorf("the token is for clients of type %s, and %s is for %s: %w",
			strings.Join(i.ClientTypes, ", "), what.Endpoint, strings.Join(what.ClientTypes, ", "), model.ErrForbidden)
	}
	if i.Environment == nil || what.Permission == "file.read" || what.Permission == "file.write" {
		return nil
	}
	if what.Environment == nil || *what.Environment != *i.Environment {
		return fmt.Errorf("the token is for environment %s only: %w", i.Environment, model.ErrForbidden)
	}
	return nil
}

var _ Authenticator = BearerTokens(nil)
