package sdk_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

// badVariable names the promise that a handler breaks when the test binary runs itself.
const badVariable = "SDK_TEST_BAD_HANDLER"

// faulty handles one number, and breaks a promise.
type faulty struct {
	promise string
	value   atomic.Int64
	writes  atomic.Int64
}

func (h *faulty) Read(_ *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	if h.promise == "reads without changing" {
		h.writes.Add(1)
	}
	v := h.value.Load()
	if h.promise == "is idempotent" {
		v = -1
	}
	return sdk.Observed{Exists: v != 0, Attributes: map[string]any{"value": v}}, nil
}

func (h *faulty) Change(_ *sdk.Context, r *sdk.Resource, action model.Change, _ sdk.Observed, _ model.Diff) error {
	var want struct {
		Value int64 `json:"value"`
	}
	if err := r.Decode(&want); err != nil {
		return err
	}
	switch {
	case action == model.ChangePurged && h.promise == "purges":
	case action == model.ChangePurged:
		h.value.Store(0)
	case action == model.ChangeUpdated && h.promise == "updates":
	default:
		h.value.Store(want.Value)
	}
	return nil
}

func (h *faulty) Reload(*sdk.Context, *sdk.Resource) error {
	if h.promise != "reloads" {
		h.writes.Add(1)
	}
	return nil
}

// TestFaultyHandler runs the suite over a handler that breaks a promise; it is called by TestConformanceFindsFaults.
func TestFaultyHandler(t *testing.T) {
	t.Parallel()
	promise := os.Getenv(badVariable)
	if promise == "" {
		promise = "none"
	}
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		h := &faulty{promise: promise}
		r := sdk.NewRegistry()
		if err := r.Handle("test::Number", h); err != nil {
			t.Fatal(err)
		}
		return sdktest.Fixture{
			Registry: r, Resource: "test::Number[host,name=a]", Create: map[string]any{"name": "a", "value": 1},
			Update: map[string]any{"name": "a", "value": 2}, Purgeable: true,
			State: func() string {
				if promise == "reads without changing" {
					return fmt.Sprint(h.value.Load(), h.writes.Load())
				}
				return fmt.Sprint(h.value.Load())
			},
			Reloads: func() int { return int(h.writes.Load()) },
		}
	})
}

func TestConformanceFindsFaults(t *testing.T) {
	t.Parallel()
	for promise, failing := range map[string]string{
		"reads without changing": "dry_run_of_a_creation",
		"is idempotent":          "create_and_do_nothing_more",
		"purges":                 "purge_and_do_nothing_more",
		"updates":                "update_and_do_nothing_more",
		"reloads":                "reload_when_a_requirement_says",
	} {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultyHandler$")
			cmd.Env = append(os.Environ(), badVariable+"="+promise)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestFaultyHandler/"+failing) {
				t.Errorf("the suite found no fault (%v):\n%s", err, out)
			}
		})
	}
}
