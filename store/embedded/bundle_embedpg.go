//go:build embedpg

package embedded

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the bundle is a variable
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Bundled reports whether this program carries a PostgreSQL of its own (build tag embedpg).
const Bundled = true

//go:embed bundle/postgres.tar.zst
var bundle []byte

// bundleUnpacker returns a function that unpacks the bundle beside an instance, once, and returns its bin directory.
func bundleUnpacker(home string) func() (string, error) {
	return func() (string, error) {
		sum := sha256.Sum256(bundle)
		dir := filepath.Join(home, "postgres-"+hex.EncodeToString(sum[:6]))
		bin := filepath.Join(dir, "bin")
		if _, err := os.Stat(dir); err == nil {
			return bin, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("looking for the unpacked bundle: %w", err)
		}
		// Unpack aside and rename: a directory of that name is always whole.
		half, err := os.MkdirTemp(home, "unpacking-")
		if err != nil {
			return "", fmt.Errorf("making a directory for the bundle: %w", err)
		}
		defer func() { _ = os.RemoveAll(half) }()
		if err := os.Chmod(half, 0o755); err != nil {
			return "", fmt.Errorf("opening the bundle's directory: %w", err)
		}
		if err := Unpack(bytes.NewReader(bundle), half); err != nil {
			return "", err
		}
		if err := os.Rename(half, dir); err != nil {
			return "", fmt.Errorf("putting the bundle in place: %w", err)
		}
		return bin, nil
	}
}
