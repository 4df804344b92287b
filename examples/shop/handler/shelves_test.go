package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

// TestShelves holds the handler to the promises of every handler.
func TestShelves(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, _ *sdktest.Server) sdktest.Fixture {
		t.Helper()
		stock := filepath.Join(t.TempDir(), "stock.json")
		registry, err := newRegistry()
		if err != nil {
			t.Fatal(err)
		}
		return sdktest.Fixture{
			Registry: registry, Resource: "shop::Shelf[corner,name=bread]", Purgeable: true,
			Create: map[string]any{"name": "bread", "width": 80, "goods": []string{"rye"}, "stock": stock},
			Update: map[string]any{"name": "bread", "width": 90, "goods": []string{"rye", "wheat"}, "stock": stock},
			State: func() string {
				all, err := load(stock)
				if err != nil {
					t.Error(err)
				}
				return fmt.Sprint(all)
			},
		}
	})
}

// TestStockIsNeverOverwrittenUnread holds the handler to what is its own: a file that it does not understand is left as it is.
func TestStockIsNeverOverwrittenUnread(t *testing.T) {
	t.Parallel()
	stock := filepath.Join(t.TempDir(), "stock.json")
	const text = "a shopping list"
	if err := os.WriteFile(stock, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := newRegistry()
	if err != nil {
		t.Fatal(err)
	}
	s := sdktest.NewServer(t)
	s.StartAgent(t, registry, []model.AgentName{"corner"})
	s.AwaitUp(t, "corner", 1)
	for name, path := range map[string]string{"bread": stock, "dairy": "stock.json"} {
		id := model.ResourceID("shop::Shelf[corner,name=" + name + "]")
		attributes := map[string]any{"name": name, "width": 80, "goods": []string{}, "stock": path}
		result := s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, id, attributes)))
		if result.Outcome != model.OutcomeFailed || result.Retry != model.RetryPerson {
			t.Errorf("%s: the outcome is %s, next comes %q", path, result.Outcome, result.Retry)
		}
	}
	if got, err := os.ReadFile(stock); err != nil || string(got) != text {
		t.Errorf("the stock is %q now, %v", got, err)
	}
}
