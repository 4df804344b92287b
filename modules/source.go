package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// shelf is the catalogue of one project.
type shelf struct {
	i   *Installer
	req Request
	ask *ask
	// checkouts are the modules in the project's own tree: the path of each.
	checkouts map[string]string
	out       io.Writer
	listings  map[string]listing
	env       module.MarkerEnv
	// descriptions are those of the checkouts; nil before they are read.
	descriptions map[string]module.Description
	// choices are the candidates that were looked at.
	choices map[string]choice
	// parsed are the models that were read: most are read again when more modules are there.
	parsed parsed
}

// parsed keeps parsed files for one request. It implements [module.Cache].
type parsed struct {
	mu      sync.Mutex
	entries map[module.CacheKey]module.CacheEntry
}

// Get returns what was put under a key.
func (p *parsed) Get(key module.CacheKey) (module.CacheEntry, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.entries[key]
	return e, ok
}

// Put keeps an entry.
func (p *parsed) Put(key module.CacheKey, entry module.CacheEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries[key] = entry
}

var _ module.Cache = (*parsed)(nil)

// listing is what a repository has.
type listing struct {
	repo model.Repository
	head string
	refs map[string]string
	err  error
}

func (i *Installer) newShelf(req Request, a *ask) *shelf {
	return &shelf{
		i: i, req: req, ask: a, checkouts: module.Checkouts(req.Project, a.manifest), out: io.Discard, listings: map[string]listing{},
		choices: map[string]choice{}, parsed: parsed{entries: map[module.CacheKey]module.CacheEntry{}},
	}
}

// markers are the variables of the Python that packages are for. Without one the newest that is supported is assumed.
func (s *shelf) markers() module.MarkerEnv {
	if s.env == nil {
		py, err := venv.FindPython(s.i.config.Python)
		if err != nil {
			py = venv.Interpreter{Version: "3.14.0", Platform: "linux-x86_64"}
		}
		_, machine, _ := strings.Cut(py.Platform, "-")
		s.env = module.PythonEnv(py.Version, machine)
	}
	return s.env
}

// fresh reports whether a module is to be chosen anew.
func (s *shelf) fresh(name string) bool {
	return s.req.Update && (len(s.req.Only) == 0 || slices.Contains(s.req.Only, name))
}

// candidates implements catalogue.
func (s *shelf) candidates(ctx context.Context, name string, demands []demand) ([]candidate, error) {
	if err := module.CheckModuleName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", err, model.ErrInvalid)
	}
	if at, ok := s.checkouts[name]; ok {
		return []candidate{{source: module.SourceEditable, path: at, any: true}}, nil
	}
	if s.ask.packaged[name] {
		return []candidate{{source: module.SourceIndex, any: true}}, nil
	}
	builtin, ours := s.i.builtin[name]
	own := candidate{version: builtin, source: module.SourceBuiltin, pre: true}
	if ours && fits(own, demands) && !slices.ContainsFunc(demands, func(d demand) bool { return d.project }) {
		return []candidate{own}, nil
	}
	found, tried, err := s.repositories(ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case found != nil: // a repository without a version is no reason to take another's module
		return found, nil
	case s.ask.hasIndex():
		return []candidate{{source: module.SourceIndex, any: true}}, nil
	case ours:
		return []candidate{own}, nil
	}
	return nil, s.nowhere(name, demands, tried)
}

// nowhere says that there is no module of a name.
func (s *shelf) nowhere(name string, demands []demand, tried []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s was not found", name)
	if len(demands) > 0 {
		fmt.Fprintf(&b, " (%s)", demands[0])
	}
	if len(tried) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(tried, "; "))
	}
	known := slices.Concat(slices.Collect(maps.Keys(s.i.builtin)), slices.Collect(maps.Keys(s.checkouts)))
	for _, d := range s.ask.demands {
		known = append(known, d.Name)
	}
	slices.Sort(known)
	known = slices.DeleteFunc(known, func(k string) bool { return k == name })
	switch like := diag.Closest(name, known); {
	case like != "":
		fmt.Fprintf(&b, "; did you mean %s?", like)
	case len(s.ask.repos) == 0:
		b.WriteString("; project.yml names no place to fetch modules from: set repo, or pip.index_url")
	default:
		b.WriteString("; no package index is set up either (pip.index_url in project.yml)")
	}
	return fmt.Errorf("%s: %w", b.String(), model.ErrNotFound)
}

// repositories lists a module's versions in the first repository that has it. Nothing is found is no error: tried tells where it
// was looked for.
func (s *shelf) repositories(ctx context.Context, name string) (found []candidate, tried []string, err error) {
	locked, isLocked := s.req.Lock.Module(name)
	isLocked = isLocked && locked.Git()
	for _, template := range s.ask.repos {
		url := expand(template, name)
		repo, err := s.i.repository(ctx, url)
		if err != nil {
			return nil, nil, err
		}
		var old []candidate
		if isLocked && !s.fresh(name) && locked.Source == redact(url) {
			v, err := module.ParseVersion(locked.Version)
			if err == nil {
				old = []candidate{{version: v, repo: repo, ref: locked.Ref, commit: locked.Commit, digest: locked.Digest, pre: true}}
			}
			if s.i.config.Git == nil { // nothing else can be known
				return old, nil, nil
			}
		}
		l := s.list(ctx, url, repo)
		switch {
		case errors.Is(l.err, model.ErrNotFound):
			tried = append(tried, l.err.Error())
			continue
		case l.err != nil && len(old) > 0 && errors.Is(l.err, model.ErrUnavailable):
			fmt.Fprintf(s.out, "warning: %v; module %s stays at %s\n", l.err, name, locked.Version)
			return old, nil, nil
		case l.err != nil:
			// Going on with another repository would let an outage change whose code is used.
			return nil, nil, fmt.Errorf("looking for module %s: %w", name, l.err)
		}
		return append(append([]candidate{}, old...), s.versions(l)...), nil, nil
	}
	return nil, tried, nil
}

// repositoryForm is how gitsync names a repository in its errors: by a name that is made up here.
var repositoryForm = lazyregexp.New(`repository module-[0-9a-f]{16} \(([^)]*)\): `)

// sourceError is an error of a source in words for people.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return repositoryForm().ReplaceAllString(e.err.Error(), "$1: ") }
func (e *sourceError) Unwrap() error { return e.err }

// list asks a repository once.
func (s *shelf) list(ctx context.Context, url string, repo model.Repository) listing {
	l, ok := s.listings[url]
	if !ok {
		l.repo = repo
		if s.i.config.Git == nil {
			l.err = fmt.Errorf("%s: %w: %w", redact(url), errOffline, model.ErrUnavailable)
		} else {
			if l.head, l.refs, l.err = s.i.config.Git.Refs(ctx, repo); l.err != nil {
				l.err = &sourceError{l.err}
			}
		}
		if l.err == nil || errors.Is(l.err, model.ErrNotFound) { // what may work later is tried again
			s.listings[url] = l
		}
	}
	return l
}

// versions are the candidates of a repository, as the install mode says, the preferred first.
func (s *shelf) versions(l listing) []candidate {
	if s.ask.manifest.InstallMode == "master" {
		if l.head == "" {
			return []candidate{}
		}
		return []candidate{{repo: l.repo, ref: l.head, commit: l.refs[l.head], pre: true}}
	}
	out := []candidate{}
	for _, ref := range slices.Sorted(maps.Keys(l.refs)) {
		tag, ok := strings.CutPrefix(ref, "refs/tags/")
		if !ok {
			continue
		}
		v, err := module.ParseVersion(tag)
		if err != nil {
			continue
		}
		out = append(out, candidate{version: v, repo: l.repo, ref: ref, commit: l.refs[ref], pre: s.ask.manifest.InstallMode == "prerelease"})
	}
	// The same version may be tagged twice, as 1.0 and v1.0: the plain one comes first.
	slices.SortStableFunc(out, func(a, b candidate) int { return b.version.Compare(a.version) })
	return out
}

// describe implements catalogue.
func (s *shelf) describe(ctx context.Context, name string, c candidate) (choice, error) {
	key := name + " " + c.ref + " " + c.commit + " " + c.digest + " " + c.source + c.path
	if x, ok := s.choices[key]; ok {
		return x, nil
	}
	x, err := s.read(ctx, name, c)
	if err == nil {
		s.choices[key] = x
	}
	return x, err
}

// read fetches a candidate and reads what it says about itself.
func (s *shelf) read(ctx context.Context, name string, c candidate) (choice, error) {
	switch c.source {
	case module.SourceIndex:
		return choice{candidate: c, Description: module.Description{Layout: module.LayoutV2}}, nil
	case module.SourceBuiltin:
		d, err := module.Describe(s.i.config.Builtin[name])
		d.Layout = module.LayoutBuiltin
		return choice{candidate: c, Description: d}, err
	case module.SourceEditable:
		root, err := fs.Sub(s.req.Project, c.path)
		if err != nil {
			return choice{}, fmt.Errorf("reading the checkout %s: %w", c.path, err)
		}
		d, err := module.Describe(root)
		if err == nil && d.Name != name {
			err = fmt.Errorf("it says that it is module %s", d.Name)
		}
		if err == nil {
			c.version, err = module.ParseVersion(d.Version)
		}
		if err != nil {
			return choice{}, fmt.Errorf("checkout %s can not be used: %w: %w", c.path, err, model.ErrInvalid)
		}
		return choice{candidate: c, Description: d}, nil
	}
	digest, err := s.bring(ctx, name, c)
	if err != nil {
		return choice{}, err
	}
	d, err := s.i.read(digest, name)
	if err == nil && c.version.Text() == "" {
		c.version, err = module.ParseVersion(d.Version)
	}
	if err != nil {
		return choice{}, fmt.Errorf("%s at %s holds no module %s that can be used: %w: %w", redact(c.repo.URL), c.ref, name, err, model.ErrInvalid)
	}
	return choice{candidate: c, Description: d, digest: digest}, nil
}

// bring makes sure that the tree of a candidate from git is in the store.
func (s *shelf) bring(ctx context.Context, name string, c candidate) (string, error) {
	if c.digest != "" && s.i.store.verify(c.digest) == nil {
		return c.digest, nil
	}
	fmt.Fprintf(s.out, "fetching module %s %s from %s\n", name, strings.TrimSpace(c.version.Text()+" ("+c.commit[:12]+")"), redact(c.repo.URL))
	digest, err := s.i.fetch(ctx, c.repo, c.ref, c.commit)
	switch {
	case errors.Is(err, model.ErrNotFound) && c.digest != "":
		return "", fmt.Errorf("module %s: %s names commit %s at %s of %s, and the repository does not have it there any more: somebody "+
			"moved the tag or rewrote the branch. Find out who and why; intendant module update %s takes what is there now: %w",
			name, module.LockFile, c.commit, c.ref, redact(c.repo.URL), name, model.ErrConflict)
	case err != nil:
		return "", fmt.Errorf("fetching module %s: %w", name, &sourceError{err})
	case c.digest != "" && digest != c.digest:
		return "", fmt.Errorf("module %s: commit %s of %s has the content %s, and %s says %s: do not trust either until you know why: %w",
			name, c.commit, redact(c.repo.URL), digest, module.LockFile, c.digest, model.ErrConflict)
	}
	return digest, nil
}

// read reads what a module in the store says about itself.
func (i *Installer) read(digest, name string) (module.Description, error) {
	root, err := os.OpenRoot(i.store.path(digest))
	if err != nil {
		return module.Description{}, fmt.Errorf("opening the module: %w", err)
	}
	defer root.Close()
	d, err := module.Describe(root.FS())
	if err == nil && d.Name != name {
		err = fmt.Errorf("it says that it is module %s", d.Name)
	}
	return d, err
}

// repository makes the record of a URL.
func (i *Installer) repository(ctx context.Context, url string) (model.Repository, error) {
	sum := sha256.Sum256([]byte(redact(url)))
	repo := model.Repository{Name: model.RepositoryName("module-" + hex.EncodeToString(sum[:8])), URL: url}
	if i.config.Credentials == nil {
		return repo, nil
	}
	repo, err := i.config.Credentials(ctx, repo)
	if err != nil {
		return repo, fmt.Errorf("repository %s: %w", redact(url), err)
	}
	return repo, nil
}

// expand is the address of a module's repository: {} or {0} stands for its name, which else is put behind.
func expand(template, name string) string {
	switch {
	case strings.Contains(template, "{}"), strings.Contains(template, "{0}"):
		return strings.NewReplacer("{}", name, "{0}", name).Replace(template)
	case strings.HasSuffix(template, "/"), strings.HasSuffix(template, ":"):
		return template + name
	}
	return template + "/" + name
}

// userinfo matches the credentials in an address; the user of one that git reaches by SSH is part of the address.
var userinfo = lazyregexp.New(`^(https?://)[^/?#]*@`)

// redact removes the credentials from the address of a repository.
func redact(url string) string { return userinfo().ReplaceAllString(url, "$1") }
