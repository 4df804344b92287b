package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/intendant/intendant/config"
)

// masterKeySize is that of AES-256.
const masterKeySize = 32

// masterKey reads the key that encrypts credentials in the database. Without a setting it is kept in the state directory,
// made at first use, and readable by its owner alone.
func masterKey(c *config.Config, stateDir string) ([]byte, error) {
	path := c.String("server", "master-key-file")
	own := path == ""
	if own {
		path = filepath.Join(stateDir, "master.key")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && own {
		return newMasterKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the master key: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the master key %s may be read by others: chmod 600 it", path)
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != masterKeySize {
		return nil, fmt.Errorf("the master key %s is not of %d hexadecimal digits; make one with: openssl rand -hex %d", path, 2*masterKeySize, masterKeySize)
	}
	return key, nil
}

// newMasterKey makes a key and writes it whole or not at all.
func newMasterKey(path string) ([]byte, error) {
	key := make([]byte, masterKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("making a master key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".master-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("writing the master key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // fails if another server was faster, and keeps its key
	}
	_ = os.Remove(f.Name())
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another server has just made %s: start again", path)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the master key: %w", err)
	}
	return key, nil
}
