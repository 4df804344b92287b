package builtin

import (
	"errors"

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

var _ sdk.Handler = nullHandler{}
