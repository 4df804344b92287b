package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
)

// store keeps the trees of modules by the digest of their content.
type store struct{ dir string }

// path is where a tree of a digest is.
func (s store) path(digest string) string {
	return filepath.Join(s.dir, strings.TrimPrefix(digest, "sha256:"))
}

// add keeps a tree that write makes, and returns its digest.
func (s store) add(write func(dir string) error) (digest string, err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil { // the compiler may run as another user
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	temp, err := os.MkdirTemp(s.dir, ".tmp-")
	if err != nil {
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	defer func() { err = errors.Join(err, removeTree(temp)) }()
	tree := filepath.Join(temp, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	if err := write(tree); err != nil {
		return "", err
	}
	if digest, err = Digest(tree); err != nil {
		return "", err
	}
	at := s.path(digest)
	if s.verify(digest) == nil {
		return digest, nil
	}
	if err := removeTree(at); err != nil { // somebody changed it
		return "", err
	}
	// A directory can be moved only while it may be written to.
	if err := os.Chmod(tree, 0o700); err != nil { //nolint:gosec // it is closed again below
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	if err := os.Rename(tree, at); err != nil && s.verify(digest) != nil { // another process may have been faster
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	if err := os.Chmod(at, 0o555); err != nil { //nolint:gosec // the compiler may run as another user
		return "", fmt.Errorf("keeping a module: %w", err)
	}
	return digest, nil
}

// verify reports whether a tree is there and has the content that its name says. It fails with [model.ErrNotFound] when it is
// not there, with [model.ErrConflict] when it was changed.
func (s store) verify(digest string) error {
	at := s.path(digest)
	if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is not on this machine: %w", model.ErrNotFound)
	}
	got, err := Digest(at)
	if err != nil {
		return err
	}
	if got != digest {
		return fmt.Errorf("%s was changed: its content has the digest %s instead of %s: %w", at, got, digest, model.ErrConflict)
	}
	now := time.Now()
	_ = os.Chtimes(at, now, now) // for Sweep; a store that can not be written is still good for reading
	return nil
}

// Sweep removes trees that nobody has used for so long, and what killed processes left behind.
func (i *Installer) Sweep(age time.Duration) error {
	entries, err := os.ReadDir(i.store.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweeping modules: %w", err)
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < age {
			continue // it is gone already, or in use
		}
		at := filepath.Join(i.store.dir, e.Name())
		// Renamed first, so that whoever looks for it meanwhile finds all of it or nothing.
		gone := filepath.Join(i.store.dir, ".tmp-gone-"+strings.TrimPrefix(e.Name(), ".tmp-gone-"))
		errs = append(errs, os.Chmod(at, 0o700)) //nolint:gosec // only to be able to remove it
		if gone != at {
			errs = append(errs, os.Rename(at, gone))
		}
		errs = append(errs, removeTree(gone))
	}
	return errors.Join(errs...)
}

// Digest is the digest of a tree: of the paths, kinds and contents of all files in it. Times, owners and whether something may be
// written do not count.
func Digest(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "link %q %q\n", rel, filepath.ToSlash(target))
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a link", rel)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		kind := "file"
		if info.Mode()&0o100 != 0 {
			kind = "program"
		}
		sum, err := fileDigest(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %q %s\n", kind, rel, sum)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading a module: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func fileDigest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// removeTree removes a directory whose parts are read-only.
func removeTree(dir string) error {
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // only to be able to remove it
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a module: %w", err)
	}
	return nil
}

// fetch brings a tree of a known digest. The error says what differs.
func (i *Installer) fetch(ctx context.Context, repo model.Repository, ref, commit string) (string, error) {
	if i.config.Git == nil {
		return "", fmt.Errorf("%w: %w", errOffline, model.ErrUnavailable)
	}
	return i.store.add(func(dir string) error { return i.config.Git.Export(ctx, repo, ref, commit, dir) })
}
