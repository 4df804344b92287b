package module

import (
	"crypto/sha256"
	"sync"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// Cache keeps parsed files. Its methods are called from several goroutines. Trees and lists are never changed after Put, so
// that one value may serve any number of loads.
type Cache interface {
	// Get returns what was put under a key.
	Get(key CacheKey) (CacheEntry, bool)
	// Put keeps an entry, or forgets it.
	Put(key CacheKey, entry CacheEntry)
}

// CacheKey is a digest of a file's path in diagnostics and its content.
type CacheKey [sha256.Size]byte

// CacheEntry is the result of parsing a file.
type CacheEntry struct {
	Tree  *syntax.File
	Diags diag.List
}

func cacheKey(name string, src []byte) CacheKey {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(src)
	return CacheKey(h.Sum(nil))
}

// Memory is a [Cache] in memory. What counts is not how much it holds but how long ago an entry was used: [Memory.Age] forgets
// what several rounds of loads had no use for, so that it stays about as large as the projects that it serves.
type Memory struct {
	mu      sync.Mutex
	entries map[CacheKey]remembered
	round   int
}

type remembered struct {
	entry CacheEntry
	used  int // the last round that used it
}

var _ Cache = (*Memory)(nil)

// NewMemory returns an empty cache.
func NewMemory() *Memory { return &Memory{entries: map[CacheKey]remembered{}} }

// Get returns what was put under a key.
func (m *Memory) Get(key CacheKey) (CacheEntry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.entries[key]
	if ok {
		r.used = m.round
		m.entries[key] = r
	}
	return r.entry, ok
}

// Put keeps an entry.
func (m *Memory) Put(key CacheKey, entry CacheEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[key] = remembered{entry, m.round}
}

// Len is the number of entries.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Age ends a round and forgets the entries that the last rounds, as many as given, did not use.
func (m *Memory) Age(rounds int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.entries {
		if m.round-r.used >= rounds {
			delete(m.entries, key)
		}
	}
	m.round++
}
