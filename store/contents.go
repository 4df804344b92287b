package store

import (
	"crypto/sha256"
	"hash/maphash"
	"sync"

	"github.com/intendant/intendant/model"
)

// maxCached bounds the fingerprints that are remembered, over all environments: some 100 bytes each.
const maxCached = 2_000_000

// contentCache remembers, per environment, a fingerprint of each resource of the newest version that this process stored:
// finding what a new version changes then reads nothing. A version never changes once it is stored, so that an entry whose
// number is still the newest is right, whichever process stored what in between. It is only a saving: without an entry the
// database is asked.
type contentCache struct {
	mu   sync.Mutex
	envs map[model.EnvironmentID]*contents // guarded by mu
	size int                               // guarded by mu: the fingerprints in envs
}

// contents is what is remembered of one version; it is not changed after it was put into the cache.
type contents struct {
	version      int
	fingerprints map[model.ResourceID]uint64
}

// fingerprintSeed is secret and per process: nobody can aim at a collision, and that of two given bodies has probability 2⁻⁶⁴.
var fingerprintSeed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant of the process

// fingerprint tells intents of one resource apart.
func fingerprint(h *maphash.Hash, i *model.Intent) uint64 {
	h.SetSeed(fingerprintSeed)
	_, _ = h.Write(i.Attributes)
	for _, r := range i.Requires {
		_ = h.WriteByte(0)
		_, _ = h.WriteString(string(r))
	}
	_ = h.WriteByte(1)
	_, _ = h.WriteString(i.Set)
	flags := byte(2)
	if i.Undefined {
		flags |= 4
	}
	if i.Blocked {
		flags |= 8
	}
	_ = h.WriteByte(flags)
	return h.Sum64()
}

// of returns what is remembered of a version, or nil.
func (c *contentCache) of(env model.EnvironmentID, version int) map[model.ResourceID]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.envs[env]; e != nil && e.version == version {
		return e.fingerprints
	}
	return nil
}

// put remembers a version, forgetting others when there are too many.
func (c *contentCache) put(env model.EnvironmentID, version int, fingerprints map[model.ResourceID]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.envs[env]; e != nil && e.version > version {
		return
	}
	c.drop(env)
	if len(fingerprints) > maxCached {
		return
	}
	for other := range c.envs {
		if c.size+len(fingerprints) <= maxCached {
			break
		}
		c.drop(other)
	}
	if c.envs == nil {
		c.envs = map[model.EnvironmentID]*contents{}
	}
	c.envs[env] = &contents{version: version, fingerprints: fingerprints}
	c.size += len(fingerprints)
}

// drop forgets an environment; the caller holds mu.
func (c *contentCache) drop(env model.EnvironmentID) {
	if e := c.envs[env]; e != nil {
		c.size -= len(e.fingerprints)
		delete(c.envs, env)
	}
}

// forgetAfter forgets an environment once the transaction is committed.
func (c *contentCache) forgetAfter(tx *Tx, env model.EnvironmentID) {
	tx.onCommit = append(tx.onCommit, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(env)
	})
}

// bodyKey is the address of a body.
type bodyKey = [sha256.Size]byte
