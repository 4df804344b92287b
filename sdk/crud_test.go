package sdk_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

// note is a resource that lives in memory.
type note struct {
	Name string   `json:"name"`
	Text string   `json:"text"`
	Tags []string `json:"tags"`
}

// notes handles notes.
type notes struct {
	mu      sync.Mutex
	all     map[string]note
	reloads int
}

func (n *notes) Read(_ *sdk.Context, desired note) (note, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	current, ok := n.all[desired.Name]
	return current, ok, nil
}

func (n *notes) Create(_ *sdk.Context, desired note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[desired.Name] = desired
	return nil
}

func (n *notes) Update(_ *sdk.Context, current, desired note, diff model.Diff) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(diff) == 0 || current.Name != desired.Name {
		return errors.New("an update without a difference")
	}
	n.all[desired.Name] = desired
	return nil
}

func (n *notes) Delete(_ *sdk.Context, current note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, current.Name)
	return nil
}

func (n *notes) Reload(*sdk.Context, note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reloads++
	return nil
}

func (n *notes) Facts(_ *sdk.Context, desired note) ([]model.Fact, error) {
	return []model.Fact{{Name: "length", Value: fmt.Sprint(len(desired.Text))}}, nil
}

func TestCRUDConformance(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		n := &notes{all: map[string]note{}}
		r := sdk.NewRegistry()
		if err := r.Handle("test::Note", sdk.NewCRUD(n)); err != nil {
			t.Fatal(err)
		}
		return sdktest.Fixture{
			Registry: r, Resource: "test::Note[host,name=a]",
			Create: map[string]any{"name": "a", "text": "one", "tags": []string{"x"}},
			Update: map[string]any{"name": "a", "text": "two", "tags": []string{"x", "y"}},
			State: func() string {
				n.mu.Lock()
				defer n.mu.Unlock()
				return fmt.Sprint(n.all)
			},
			Purgeable: true,
			Reloads: func() int {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.reloads
			},
		}
	})
}

func TestCRUDReportsFacts(t *testing.T) {
	t.Parallel()
	h := sdk.HandlerExecutor{Handler: sdk.NewCRUD(&notes{all: map[string]note{}})}
	r := run(t, h, `{"name":"a","text":"four","tags":[]}`, nil)
	if len(r.Facts) != 1 || r.Facts[0].Value != "4" || r.Change != model.ChangeCreated || len(r.Changes) != 4 {
		t.Errorf("result is %+v", r)
	}
	r = run(t, h, `{"name":1}`, nil)
	if r.Outcome != model.OutcomeFailed || r.Code != sdk.CodeInvalid {
		t.Errorf("a resource of wrong types is %s (%s), want failed (%s)", r.Outcome, r.Code, sdk.CodeInvalid)
	}
}

func ExampleNewCRUD() {
	registry := sdk.NewRegistry()
	if err := registry.Handle("test::Note", sdk.NewCRUD(&notes{all: map[string]note{}})); err != nil {
		fmt.Println(err)
	}
	fmt.Println(registry.Types())
	// Output: [test::Note]
}
