package embedded

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Unpack extracts a zstd-compressed tar archive of plain files, directories and relative links into dir, which must
// exist. Nothing is written outside dir.
func Unpack(r io.Reader, dir string) error {
	z, err := zstd.NewReader(r)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer z.Close()
	in := tar.NewReader(z)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the archive names %q, outside its directory", h.Name)
		}
		path := filepath.Join(dir, h.Name) //nolint:gosec // checked just above
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("unpacking %s: %w", h.Name, err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			if !filepath.IsLocal(filepath.Join(filepath.Dir(h.Name), h.Linkname)) || filepath.IsAbs(h.Linkname) { //nolint:gosec // this is the check
				return fmt.Errorf("the archive's link %q leads outside its directory", h.Name)
			}
			err = os.Symlink(h.Linkname, path)
		case tar.TypeReg:
			err = writeFile(path, in, os.FileMode(h.Mode).Perm())
		default:
			err = fmt.Errorf("unexpected entry type %q", h.Typeflag)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", h.Name, err)
		}
	}
}

func writeFile(path string, r io.Reader, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
