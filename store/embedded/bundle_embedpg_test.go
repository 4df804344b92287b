//go:build embedpg

package embedded_test

import (
	"testing"

	"github.com/intendant/intendant/store/embedded"
)

// TestBundleAndMachineShareADirectory starts one data directory with the bundle, the machine's own binaries (when they are
// of the same major version) and the bundle again.
func TestBundleAndMachineShareADirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	for i, bin := range []string{embedded.UseBundle, "", embedded.UseBundle} {
		s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, BinDir: bin})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		execute(t, s.URL("postgres"), "CREATE TABLE IF NOT EXISTS kept (v text)")
		execute(t, s.URL("postgres"), "INSERT INTO kept VALUES ('x')")
		if got := query(t, s.URL("postgres"), "SELECT count(*)::text FROM kept"); got != string(rune('1'+i)) {
			t.Errorf("start %d sees %s rows", i, got)
		}
		stop(t, s)
	}
}
