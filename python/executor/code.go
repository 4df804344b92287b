package executor

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/venv"
)

// Limits of what is fetched.
const (
	maxManifest = 64 << 20
	maxSource   = 16 << 20
)

var hashPattern = lazyregexp.New(`^[0-9a-f]{40}$`)

// blueprint is what a worker is made of.
type blueprint struct {
	digest string
	// modules are sorted by name; imports are the modules of Python to import, in order.
	modules []model.ModuleCode
	imports []string
	spec    venv.Spec
	// sources are the files by the dotted name of their module.
	sources map[string]string
}

// manifest returns a manifest: from memory, from disk, or from the server.
func (m *Manager) manifest(ctx context.Context, hash string) (*model.CodeManifest, error) {
	m.mu.Lock()
	known := m.manifests[hash]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	manifest, err := m.kept(hash)
	if errors.Is(err, fs.ErrNotExist) {
		manifest, err = m.fetchManifest(ctx, hash)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of module code that the resource needs: %w", err)
	}
	m.mu.Lock()
	m.manifests[hash] = manifest
	m.mu.Unlock()
	return manifest, nil
}

func (m *Manager) manifestPath(hash string) string {
	return filepath.Join(m.cfg.Dir, "manifests", hash+".json")
}

// kept reads a manifest from disk. It fails with [fs.ErrNotExist] when it is not there, or damaged.
func (m *Manager) kept(hash string) (*model.CodeManifest, error) {
	if !hashPattern().MatchString(hash) {
		return nil, fmt.Errorf("%q is not a SHA-1 in lower-case hex: %w", hash, model.ErrInvalid)
	}
	raw, err := os.ReadFile(m.manifestPath(hash))
	if err != nil {
		return nil, fmt.Errorf("reading a kept manifest: %w", err)
	}
	if hashOf(raw) != hash {
		return nil, fmt.Errorf("the kept manifest %s is damaged: %w", hash, fs.ErrNotExist)
	}
	return parseManifest(raw)
}

func (m *Manager) fetchManifest(ctx context.Context, hash string) (*model.CodeManifest, error) {
	raw, err := m.content(ctx, hash, maxManifest)
	if err != nil {
		return nil, err
	}
	manifest, err := parseManifest(raw)
	if err != nil {
		return nil, err
	}
	path := m.manifestPath(hash)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("keeping a manifest: %w", err)
	}
	return manifest, writeAtomic(path, raw)
}

func parseManifest(raw []byte) (*model.CodeManifest, error) {
	manifest := &model.CodeManifest{}
	if err := json.Unmarshal(raw, manifest); err != nil {
		return nil, fmt.Errorf("reading a manifest: %w: %w", model.ErrInvalid, err)
	}
	for _, c := range slices.Concat(manifest.Modules, manifest.Others) {
		// What the server has checked is checked again: the names become paths.
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	return manifest, nil
}

// content reads a content of the file storage.
func (m *Manager) content(ctx context.Context, hash string, most int64) ([]byte, error) {
	f, size, err := m.cfg.Files.Open(ctx, hash)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which content and why
	}
	defer func() { _ = f.Close() }()
	if size > most {
		return nil, fmt.Errorf("content %s has %d bytes, at most %d are taken: %w", hash, size, most, model.ErrInvalid)
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading content %s: %w", hash, err)
	}
	if hashOf(raw) != hash {
		return nil, fmt.Errorf("content %s is another one: %w", hash, model.ErrInvalid)
	}
	return raw, nil
}

func hashOf(raw []byte) string {
	sum := sha1.Sum(raw)
	return hex.EncodeToString(sum[:])
}

// plan makes the blueprint of the modules that are needed and those that their code imports.
func (m *Manager) plan(ctx context.Context, needed, others []model.ModuleCode, pip *model.PipConfig) (*blueprint, error) {
	b := &blueprint{sources: map[string]string{}}
	available := map[string]model.ModuleCode{}
	for _, c := range slices.Concat(others, needed) {
		available[c.Module] = c
	}
	todo, done, companions := slices.Clone(needed), map[string]bool{}, map[string]bool{}
	for len(todo) > 0 {
		c := todo[0]
		todo = todo[1:]
		if done[c.Module] {
			continue
		}
		done[c.Module] = true
		b.modules = append(b.modules, c)
		imported, err := m.unpack(ctx, c, b.sources, companions)
		if err != nil {
			return nil, fmt.Errorf("the code of module %s: %w", c.Module, err)
		}
		for _, name := range imported {
			if other, ok := available[name]; ok && !done[name] {
				todo = append(todo, other)
			}
		}
	}
	slices.SortFunc(b.modules, func(x, y model.ModuleCode) int { return strings.Compare(x.Module, y.Module) })
	for _, c := range needed {
		for _, f := range c.Files {
			b.imports = append(b.imports, f.Name)
		}
	}
	slices.Sort(b.imports)
	b.spec = m.specOf(b.modules, slices.Sorted(maps.Keys(companions)), pip)
	sum := sha256.New()
	for _, c := range b.modules {
		fmt.Fprintf(sum, "%s %s\n", c.Module, c.Digest)
	}
	fmt.Fprintf(sum, "%q %s", b.imports, b.spec.Digest())
	b.digest = hex.EncodeToString(sum.Sum(nil))
	return b, nil
}

// provided are the distributions that workers have without installing them.
func provided() map[string]string {
	return map[string]string{"inmanta-core": "20.1.0", "inmanta": "20.1.0"}
}

// ours matches requirements that workers have by other means: the package inmanta, and modules, whose code is shipped.
var ours = lazyregexp.New(`(?i)^\s*(inmanta|inmanta[-_.]+core|inmanta[-_.]+module[-_.].*?)\s*($|[\[<>=!~;@ ])`)

// specOf says which virtual environment modules need. companions are requirements of what their code imports although it comes with
// inmanta-core elsewhere.
func (m *Manager) specOf(modules []model.ModuleCode, companions []string, pip *model.PipConfig) venv.Spec {
	spec := venv.Spec{Python: m.cfg.Python, Provided: provided()}
	leans := false // on inmanta-core, itself or through a module
	for _, c := range modules {
		for _, r := range c.Requirements {
			if !ours().MatchString(r) {
				spec.Requirements = append(spec.Requirements, r)
			} else {
				leans = true
			}
		}
	}
	slices.Sort(spec.Requirements)
	spec.Requirements = slices.Compact(spec.Requirements)
	from := m.cfg.Pip
	if pip != nil && (pip.IndexURL != "" || len(pip.ExtraIndexURL) > 0 || len(pip.FindLinks) > 0 || pip.UseSystemConfig) {
		from = *pip
	}
	if pip != nil {
		for _, c := range pip.Constraints {
			if !ours().MatchString(c) {
				spec.Constraints = append(spec.Constraints, c)
			}
		}
	}
	// What inmanta-core draws in elsewhere, modules may import here as well.
	if leans {
		companions = python.Companions()
	}
	if from.IndexURL != "" || from.UseSystemConfig {
		own := spec.Requirements
		for _, c := range companions {
			if !slices.ContainsFunc(own, func(r string) bool { return python.PackageName(r) == python.PackageName(c) }) {
				spec.Requirements = append(spec.Requirements, c)
			}
		}
	}
	own := slices.Concat([]string{m.cfg.Pip.IndexURL}, m.cfg.Pip.ExtraIndexURL)
	spec.Index = venv.Index{
		URL: withLogin(from.IndexURL, own), Extra: make([]string, 0, len(from.ExtraIndexURL)), Pre: from.Pre, UseSystemConfig: from.UseSystemConfig,
		FindLinks: append(slices.Clone(from.FindLinks), m.cfg.FindLinks...),
	}
	for _, u := range from.ExtraIndexURL {
		spec.Index.Extra = append(spec.Index.Extra, withLogin(u, own))
	}
	return spec
}

// withLogin adds the credentials to an address without any that one of the agent's own addresses has for the same host: a project,
// which is kept in git, should have none.
func withLogin(raw string, own []string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return raw
	}
	for _, o := range own {
		if known, err := url.Parse(o); err == nil && known.User != nil && known.Scheme == u.Scheme && known.Host == u.Host {
			u.User = known.User
			return u.String()
		}
	}
	return raw
}

// imports matches what code imports of other modules. What it finds in a comment or a text besides does no harm: the module's code
// is then at hand and not used.
var imports = lazyregexp.New(`inmanta_plugins(?:\.|\s+import\s+\(?\s*)([A-Za-z_][A-Za-z0-9_]*)((?:\s*,\s*[A-Za-z_][A-Za-z0-9_]*)*)`)

var identifier = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*`)

// importing matches the top-level modules of Python that code imports.
var importing = lazyregexp.New(`(?m)^[ \t]*(?:import|from)[ \t]+([A-Za-z_][A-Za-z0-9_]*)`)

// unpack makes sure that the sources of a module are on disk, adds them to sources and the companions that they import to
// companions, and returns the modules that they import.
func (m *Manager) unpack(ctx context.Context, c model.ModuleCode, sources map[string]string, companions map[string]bool) ([]string, error) {
	dir := filepath.Join(m.cfg.Dir, "code", c.Module+"-"+c.Digest)
	packages := map[string]bool{"inmanta_plugins." + c.Module: true}
	for _, f := range c.Files {
		if i := strings.LastIndexByte(f.Name, '.'); i >= 0 {
			packages[f.Name[:i]] = true
		}
		if f.Package {
			packages[f.Name] = true
		}
	}
	var found []string
	for _, f := range c.Files {
		path := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(f.Name, ".", "/")))
		if packages[f.Name] {
			path = filepath.Join(path, "__init__.py")
		} else {
			path += ".py"
		}
		raw, err := os.ReadFile(path)
		if err != nil || hashOf(raw) != f.Hash {
			if raw, err = m.content(ctx, f.Hash, maxSource); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, fmt.Errorf("%s: keeping it: %w", f.Name, err)
			}
			if err := writeAtomic(path, raw); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		sources[f.Name] = path
		for _, match := range importing().FindAllSubmatch(raw, -1) {
			if r, ok := python.Companion(string(match[1])); ok {
				companions[r] = true
			}
		}
		if !bytes.Contains(raw, []byte("inmanta_plugins")) {
			continue
		}
		for _, match := range imports().FindAllSubmatch(raw, -1) {
			found = append(found, string(match[1]))
			for _, more := range identifier().FindAll(match[2], -1) {
				found = append(found, string(more))
			}
		}
	}
	now := m.cfg.Now()
	_ = os.Chtimes(dir, now, now) // the order in which code is given up
	slices.Sort(found)
	return slices.Compact(found), nil
}

// touch notes that what a manifest names is still needed.
func (m *Manager) touch(hash string, manifest *model.CodeManifest) {
	now := m.cfg.Now()
	_ = os.Chtimes(m.manifestPath(hash), now, now)
	for _, c := range slices.Concat(manifest.Modules, manifest.Others) {
		_ = os.Chtimes(filepath.Join(m.cfg.Dir, "code", c.Module+"-"+c.Digest), now, now)
	}
	if b, err := m.plan(context.Background(), manifest.Modules, manifest.Others, manifest.Pip); err == nil {
		m.venvs.Lookup(b.spec)
	}
}

// sweepOld removes what a directory has that is older.
func sweepOld(dir string, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweeping %s: %w", dir, err)
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.ModTime().Before(before) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// writeAtomic replaces a file so that it has, whatever happens, either the old content or the new.
func writeAtomic(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
