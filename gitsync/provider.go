package gitsync

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
)

// provider is what is particular to one kind of forge. Which one applies is the repository's configuration, never a header:
// Gitea sends the headers of three forges at once.
type provider struct {
	// event and delivery name the headers of the event's kind and of the delivery's id, the preferred first.
	event    []string
	delivery []string
	// verify decides whether the request is from somebody who knows one of the secrets. It runs over the bytes as received,
	// in time that does not depend on where they differ from what is expected.
	verify func(h http.Header, body []byte, secrets []string, now time.Time, tolerance time.Duration) error
	// pushes are the events that mean that refs have changed; any other is recorded and ignored.
	pushes []string
	// quiet is an event that the forge sends unsigned to see whether anybody is there.
	quiet string
}

var providers = map[model.Provider]provider{
	model.ProviderGitHub: {
		event: []string{"X-Github-Event"}, delivery: []string{"X-Github-Delivery"},
		verify: signed("sha256=", "X-Hub-Signature-256"),
		pushes: []string{"push", "create", "delete"},
	},
	model.ProviderGitLab: {
		event: []string{"X-Gitlab-Event"}, delivery: []string{"Webhook-Id", "Idempotency-Key", "X-Gitlab-Event-Uuid"},
		verify: verifyGitLab,
		pushes: []string{"Push Hook", "Tag Push Hook", "System Hook"},
	},
	model.ProviderGitea: {
		event: []string{"X-Gitea-Event"}, delivery: []string{"X-Gitea-Delivery"},
		verify: signed("", "X-Gitea-Signature"),
		pushes: []string{"push", "create", "delete"},
	},
	model.ProviderForgejo: {
		event: []string{"X-Forgejo-Event", "X-Gitea-Event"}, delivery: []string{"X-Forgejo-Delivery", "X-Gitea-Delivery"},
		verify: signed("", "X-Forgejo-Signature", "X-Gitea-Signature"),
		pushes: []string{"push", "create", "delete"},
	},
	model.ProviderBitbucket: {
		event: []string{"X-Event-Key"}, delivery: []string{"X-Request-Uuid"},
		verify: signed("sha256=", "X-Hub-Signature"),
		pushes: []string{"repo:push"},
	},
	model.ProviderBitbucketDC: {
		event: []string{"X-Event-Key"}, delivery: []string{"X-Request-Id"},
		verify: signed("sha256=", "X-Hub-Signature"),
		pushes: []string{"repo:refs_changed", "mirror:repo_synchronized"},
		quiet:  "diagnostics:ping",
	},
	model.ProviderGeneric: {
		event: []string{"X-Intendant-Event"}, delivery: []string{"X-Intendant-Delivery"},
		verify: signed("sha256=", "X-Intendant-Signature"),
		pushes: []string{"", "push"},
	},
}

// The reasons for refusing a request. They are logged; the sender learns none of them.
var (
	errNoSecret  = errors.New("the repository has no webhook secret: without one nothing is accepted")
	errUnsigned  = errors.New("the request carries no signature of the configured provider")
	errSignature = errors.New("the signature does not match any of the repository's secrets")
	errStale     = errors.New("the signed time is too far from the server's clock")
)

// one returns a header that must be there exactly once.
func one(h http.Header, name string) (string, bool) {
	v := h.Values(name)
	if len(v) != 1 || v[0] == "" {
		return "", false
	}
	return v[0], true
}

// signed verifies prefix + lower-case hex HMAC-SHA256 of the body in the first of the headers that is present.
func signed(prefix string, headers ...string) func(http.Header, []byte, []string, time.Time, time.Duration) error {
	return func(h http.Header, body []byte, secrets []string, _ time.Time, _ time.Duration) error {
		for _, name := range headers {
			if len(h.Values(name)) == 0 {
				continue
			}
			got, ok := one(h, name)
			if !ok {
				return errSignature
			}
			match := 0
			for _, s := range secrets {
				match |= subtle.ConstantTimeCompare([]byte(got), []byte(prefix+hexHMAC(s, body)))
			}
			if match != 1 {
				return errSignature
			}
			return nil
		}
		return errUnsigned
	}
}

func hexHMAC(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

// signingPrefix begins the secrets of signed GitLab webhooks (Standard Webhooks).
const signingPrefix = "whsec_"

// verifyGitLab accepts the signature over id, time and body where there is one, else the secret itself in X-Gitlab-Token. A
// secret made for signing is not accepted in the clear.
func verifyGitLab(h http.Header, body []byte, secrets []string, now time.Time, tolerance time.Duration) error {
	if len(h.Values("Webhook-Signature")) > 0 {
		return verifyStandard(h, body, secrets, now, tolerance)
	}
	if len(h.Values("X-Gitlab-Token")) == 0 {
		return errUnsigned
	}
	got, ok := one(h, "X-Gitlab-Token")
	if !ok {
		return errSignature
	}
	sum := sha256.Sum256([]byte(got)) // equal lengths, so that not even the length shows
	match := 0
	for _, s := range secrets {
		if strings.HasPrefix(s, signingPrefix) {
			continue
		}
		want := sha256.Sum256([]byte(s))
		match |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if match != 1 {
		return errSignature
	}
	return nil
}

func verifyStandard(h http.Header, body []byte, secrets []string, now time.Time, tolerance time.Duration) error {
	list, ok1 := one(h, "Webhook-Signature")
	id, ok2 := one(h, "Webhook-Id")
	stamp, ok3 := one(h, "Webhook-Timestamp")
	if !ok1 || !ok2 || !ok3 {
		return errUnsigned
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errSignature
	}
	text := append([]byte(id+"."+stamp+"."), body...)
	match := 0
	given := strings.Fields(list)
	if len(given) > 16 {
		return errSignature
	}
	for _, s := range secrets {
		rest, ok := strings.CutPrefix(s, signingPrefix)
		if !ok {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(rest)
		if err != nil || len(key) == 0 {
			continue
		}
		m := hmac.New(sha256.New, key)
		m.Write(text)
		want := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
		for _, g := range given {
			match |= subtle.ConstantTimeCompare([]byte(g), []byte(want))
		}
	}
	if match != 1 {
		return errSignature
	}
	// After the signature: only whoever knows the secret learns about the clock.
	if d := now.Sub(time.Unix(seconds, 0)); d > tolerance || d < -tolerance {
		return errStale
	}
	return nil
}
