package python

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed all:inmanta all:intendant_host all:pytest_inmanta
var embedded embed.FS

// sources are the embedded files by path, without what an interpreter or a tool left behind in the source tree.
func sources() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(embedded, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "__pycache__" || strings.HasPrefix(d.Name(), ".") && d.Name() != "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".py" && d.Name() != "py.typed":
			return nil
		}
		files[name], err = embedded.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded Python packages: %w", err)
	}
	return files, nil
}

// digest names the content of the embedded packages: 16 hexadecimal digits.
func digest(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range sortedNames(files) {
		fmt.Fprintf(h, "%d %s\n%d\n", len(name), name, len(files[name]))
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Unpack writes the embedded packages to a directory below root that is named by their content, and returns its path. What is
// there already is verified, and replaced if it differs; several processes may unpack at once. root is made when missing, for its
// owner alone: who may write there decides what code runs.
func Unpack(root string) (string, error) {
	files, err := sources()
	if err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", fmt.Errorf("unpacking the Python packages: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("unpacking the Python packages: %w", err)
	}
	dir := filepath.Join(root, "runtime-"+digest(files))
	if intact(dir, files) {
		return dir, nil
	}
	fresh, err := os.MkdirTemp(root, ".unpack-")
	if err != nil {
		return "", fmt.Errorf("unpacking the Python packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	for name, text := range files {
		file := filepath.Join(fresh, "new", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", fmt.Errorf("unpacking the Python packages: %w", err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // our own public program; other accounts run it too
			return "", fmt.Errorf("unpacking the Python packages: %w", err)
		}
	}
	// A directory can not be renamed onto one that has files: what is in the way goes aside first. Who comes second finds the
	// place taken and uses what is there.
	if err := os.Rename(dir, filepath.Join(fresh, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("replacing the damaged Python packages in %s: %w", dir, err)
	}
	if err := os.Rename(filepath.Join(fresh, "new"), dir); err != nil && !intact(dir, files) {
		return "", fmt.Errorf("unpacking the Python packages: %w", err)
	}
	return dir, nil
}

// intact reports whether a directory has the files as they should be, and no other module that could be imported.
func intact(dir string, files map[string][]byte) bool {
	seen := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir // Python checks these against the sources
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		want, ok := files[filepath.ToSlash(rel)]
		if !ok || !d.Type().IsRegular() {
			return fs.ErrInvalid
		}
		got, err := os.ReadFile(p) //nolint:gosec // who could exchange files here could exchange what is run
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fs.ErrInvalid
		}
		seen++
		return nil
	})
	return err == nil && seen == len(files)
}
