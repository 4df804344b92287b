package module_test

import (
	"testing"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/syntax"
)

// TestMemoryAge forgets what two rounds had no use for.
func TestMemoryAge(t *testing.T) {
	t.Parallel()
	m := module.NewMemory()
	old, used := module.CacheKey{1}, module.CacheKey{2}
	tree := &syntax.File{Name: "main.cf"}
	m.Put(old, module.CacheEntry{Tree: tree})
	m.Put(used, module.CacheEntry{Tree: tree})
	for range 2 {
		m.Age(2)
		if e, ok := m.Get(used); !ok || e.Tree != tree {
			t.Fatalf("Get = %v, %t", e, ok)
		}
	}
	if m.Len() != 2 {
		t.Errorf("Len = %d after one round without a use, want 2", m.Len())
	}
	m.Age(2)
	if _, ok := m.Get(old); ok || m.Len() != 1 {
		t.Errorf("an entry outlived two rounds without a use; %d are left", m.Len())
	}
}

// TestLoadMemory loads through a memory: the second time the trees are those of the first.
func TestLoadMemory(t *testing.T) {
	t.Parallel()
	m := module.NewMemory()
	project := tree("project.yml", manifest, "main.cf", "x = 1")
	first, _ := load(t, project, module.Options{Cache: m})
	second, _ := load(t, project, module.Options{Cache: m})
	if first.Files[0].Tree != second.Files[0].Tree || m.Len() != len(first.Files) {
		t.Errorf("a file was parsed again; the memory has %d entries", m.Len())
	}
}
