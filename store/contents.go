package store

import (
	"crypto/sha256"
	"hash/maphash"
	"math/bits"
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

// contents is what is remembered of one version, sorted by resource; it is not changed after it was put into the cache.
type contents struct {
	version int
	ids     []model.ResourceID
	// keys are the hashes of ids, to compare them without fetching their text; fingerprints are those of the intents.
	keys         []uint64
	fingerprints []uint64
}

// fingerprintSeed is secret and per process: nobody can aim at a collision, and that of two given bodies has probability 2⁻⁶⁴.
var fingerprintSeed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant of the process

// blockedMark changes the fingerprint of an intent that is blocked.
const blockedMark = 0x5bd1e9955bd1e995

// fingerprint tells intents of one resource apart, but for their being blocked. The parts are hashed on their own and mixed,
// which saves copying them.
func fingerprint(i *model.Intent) uint64 {
	const odd = 0x9e3779b97f4a7c15 // so that the mixing loses nothing
	sum := maphash.Bytes(fingerprintSeed, i.Attributes)
	mix := func(part uint64) { sum = bits.RotateLeft64(sum, 29)*odd + part }
	for _, r := range i.Requires {
		mix(maphash.String(fingerprintSeed, string(r)))
	}
	mix(uint64(len(i.Requires)))
	mix(maphash.String(fingerprintSeed, i.Set))
	if i.Undefined {
		mix(1)
	} else {
		mix(0)
	}
	return sum
}

// of returns what is remembered of a version, or nil. Nothing is to be known of version 0: it is empty.
func (c *contentCache) of(env model.EnvironmentID, version int) *contents {
	if version == 0 {
		return &contents{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.envs[env]; e != nil && e.version == version {
		return e
	}
	return nil
}

// put remembers a version, forgetting others when there are too many.
func (c *contentCache) put(env model.EnvironmentID, now *contents) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.envs[env]; e != nil && e.version > now.version {
		return
	}
	c.drop(env)
	n := len(now.ids)
	if n > maxCached {
		return
	}
	for other := range c.envs {
		if c.size+n <= maxCached {
			break
		}
		c.drop(other)
	}
	if c.envs == nil {
		c.envs = map[model.EnvironmentID]*contents{}
	}
	c.envs[env] = now
	c.size += n
}

// drop forgets an environment; the caller holds mu.
func (c *contentCache) drop(env model.EnvironmentID) {
	if e := c.envs[env]; e != nil {
		c.size -= len(e.ids)
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
