package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/intendant/intendant/model"
)

// A sealed secret is a version byte, four bytes that name the key, a nonce, and the AES-256-GCM ciphertext. The additional
// data is the table, row and column: a secret copied to another place does not open.
const (
	sealVersion = 1
	keyNameLen  = 4
	minKeyLen   = 16
)

var errNoKey = errors.New("no master key is configured for the secrets in the database")

type sealer struct {
	aead cipher.AEAD // nil without a key
	name [keyNameLen]byte
}

// newSealer derives the key of the store from the master key; other uses of the master key derive others.
func newSealer(master []byte) (*sealer, error) {
	if len(master) == 0 {
		return &sealer{}, nil
	}
	if len(master) < minKeyLen {
		return nil, fmt.Errorf("the master key has %d bytes, at least %d are needed: %w", len(master), minKeyLen, model.ErrInvalid)
	}
	derive := func(info string, n int) ([]byte, error) { return hkdf.Key(sha256.New, master, nil, info, n) }
	key, err := derive("intendant store secrets", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the store: %w", err)
	}
	name, err := derive("intendant store key name", keyNameLen)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the store: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing the key of the store: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("preparing the key of the store: %w", err)
	}
	return &sealer{aead: aead, name: [keyNameLen]byte(name)}, nil
}

// seal encrypts a secret for one place. The empty secret stays empty, but not nil.
func (s *sealer) seal(secret model.Secret, place string) ([]byte, error) {
	if secret == "" {
		return []byte{}, nil
	}
	if s.aead == nil {
		return nil, fmt.Errorf("storing %s: %w; set one and try again: %w", place, errNoKey, model.ErrInvalid)
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("storing %s: %w", place, err)
	}
	out := append([]byte{sealVersion}, s.name[:]...)
	out = append(out, nonce...)
	return s.aead.Seal(out, nonce, []byte(secret.Reveal()), []byte(place)), nil
}

// open decrypts what was sealed for the place.
func (s *sealer) open(sealed []byte, place string) (model.Secret, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	if s.aead == nil {
		return "", fmt.Errorf("reading %s: %w: %w", place, errNoKey, model.ErrUnavailable)
	}
	head := 1 + keyNameLen + s.aead.NonceSize()
	if len(sealed) < head || sealed[0] != sealVersion {
		return "", fmt.Errorf("reading %s: not a sealed secret", place)
	}
	if [keyNameLen]byte(sealed[1:]) != s.name {
		return "", fmt.Errorf("reading %s: it was sealed with another master key; start with that one, or set the secret anew: %w", place, model.ErrUnavailable)
	}
	plain, err := s.aead.Open(nil, sealed[1+keyNameLen:head], sealed[head:], []byte(place))
	if err != nil {
		return "", fmt.Errorf("reading %s: it was changed or moved in the database: %w", place, err)
	}
	return model.Secret(plain), nil
}
