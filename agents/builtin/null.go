package builtin

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// nullHandler handles std::testing::NullResource: there is nothing to do, and it fails or skips when the resource says so.
type nullHandler struct{}

// Read implements [sdk.Handler].
func (nullHandler) Read(_ *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	if r.Bool("fail") {
		return sdk.Observed{}, errors.New("the resource is set to fail")
	}
	if r.Bool("skip") {
		return sdk.Observed{}, sdk.Skip("the resource is set to be skipped")
	}
	return sdk.Observed{Exists: !r.Purged()}, nil
}

// Change implements [sdk.Handler].
func (nullHandler) Change(*sdk.Context, *sdk.Resource, model.Change, sdk.Observed, model.Diff) error {
	return nil
}

// agentConfigHandler handles std::AgentConfig. Which agents the server starts is decided by what is to be deployed, so there
// is nothing to change; it tells early that an agent's way of reaching its machine can not be served.
type agentConfigHandler struct{}

// Read implements [sdk.Handler].
func (agentConfigHandler) Read(_ *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	if r.Purged() {
		return sdk.Observed{}, nil
	}
	uri := r.String("uri")
	u, err := url.Parse(uri)
	if err != nil {
		return sdk.Observed{}, fmt.Errorf("uri %q of agent %s: %w: %w", uri, r.String("agentname"), model.ErrInvalid, err)
	}
	switch {
	case u.Scheme == "local", uri == "", uri == "localhost":
		return sdk.Observed{Exists: true}, nil
	}
	return sdk.Observed{}, sdk.Unavailable(fmt.Sprintf("agent %s is to be reached by %q: run an agent process on that machine instead, "+
		"or use the uri local:", r.String("agentname"), u.Redacted()))
}

// Change implements [sdk.Handler].
func (agentConfigHandler) Change(*sdk.Context, *sdk.Resource, model.Change, sdk.Observed, model.Diff) error {
	return nil
}

var (
	_ sdk.Handler = nullHandler{}
	_ sdk.Handler = agentConfigHandler{}
)
