//go:build !embedpg

package embedded_test

import (
	"strings"
	"testing"

	"github.com/intendant/intendant/store/embedded"
)

func TestStartWithoutTheBundle(t *testing.T) {
	t.Parallel()
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: shortDir(t), BinDir: embedded.UseBundle})
	if err == nil || !strings.Contains(err.Error(), "carries no PostgreSQL") {
		t.Fatalf("Start said %v", err)
	}
}
