//go:build !embedpg

package embedded

// Bundled reports whether this program carries a PostgreSQL of its own (build tag embedpg).
const Bundled = false

// bundleUnpacker is nil: this build carries no PostgreSQL.
func bundleUnpacker(string) func() (string, error) { return nil }
