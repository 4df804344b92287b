package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/modules"
	"github.com/intendant/intendant/python/venv"
)

// unusedAge is how long modules and environments of Python packages are kept that no compile uses.
const unusedAge = 30 * 24 * time.Hour

// importBudget bounds the models that the server reads for their imports itself, outside of the confined compiler: their trees take
// some thirty times as much.
const importBudget = 8 << 20

// serverModules brings the modules of the projects that the server compiles.
type serverModules struct {
	dir   string
	git   *gitsync.Service
	envs  *venv.Cache
	cfg   modules.Config
	repos func(ctx context.Context, name model.RepositoryName) (model.Repository, error)
}

var _ compilerd.Modules = (*serverModules)(nil)

// newServerModules makes it. Everything that is fetched is shared by all environments, below the state directory.
func newServerModules(c *config.Config, stateDir string, git gitsync.Config, repos func(context.Context, model.RepositoryName) (model.Repository, error)) (*serverModules, error) {
	dir := filepath.Join(stateDir, "modules")
	index, err := packageIndex(c)
	if err != nil {
		return nil, err
	}
	git.Dir, git.Recorder = filepath.Join(dir, "git"), noRecorder{}
	s := &serverModules{dir: dir, repos: repos, envs: &venv.Cache{Dir: filepath.Join(dir, "environments"), Environ: venv.Environ(os.Environ())}}
	if s.git, err = gitsync.New(git); err != nil {
		return nil, err
	}
	s.cfg = modules.Config{
		Dir: dir, Git: s.git, Environments: s.envs, Python: c.String("compiler", "python"), Provided: providedPackages, ProvidedRequires: providedRequires, Index: index, Builtin: std.Modules(),
		Budget: importBudget,
	}
	return s, nil
}

// Prepare implements [compilerd.Modules]. A lock in the repository is binding. Without one what was chosen is kept here, so that
// compiling a commit again finds the same, until an update is asked for.
func (s *serverModules) Prepare(ctx context.Context, env model.Environment, dir string, update bool, stage compilerd.ModuleStage) (compilerd.Prepared, error) {
	var out compilerd.Prepared
	root, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("opening the project: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(module.ManifestFile); errors.Is(err, fs.ErrNotExist) {
		return out, nil // the compiler reports it
	}
	cfg := s.cfg
	cfg.Credentials = func(ctx context.Context, repo model.Repository) (model.Repository, error) {
		return s.credentials(ctx, env, repo)
	}
	installer, err := modules.New(cfg)
	if err != nil {
		return out, err
	}
	req := modules.Request{Project: root.FS(), Dir: dir, Stage: func(name, command string, work func(ctx context.Context, out io.Writer) error) error {
		return stage(name, command, func(ctx context.Context, out io.Writer) error { return plain(work(ctx, out)) })
	}}
	if req.Lock, err = module.ReadLock(root.FS()); err != nil {
		return out, plain(fmt.Errorf("%w: %w", err, model.ErrInvalid))
	}
	committed := req.Lock != nil
	kept := filepath.Join(s.dir, "locks", env.ID.String())
	if committed {
		req.Frozen, req.TrustLock = true, true
	} else {
		req.Lock, req.Update = readKept(kept), update
	}
	res, err := installer.Install(ctx, req)
	if err != nil {
		return out, plain(err)
	}
	out.Notes = slices.Concat(res.Warnings, res.Lost)
	if !committed && !res.Lock.Trivial() {
		if err := keep(kept, res.Lock); err != nil {
			return out, err
		}
	}
	if len(res.Placement.Modules) == 0 && res.Placement.Python == "" {
		return out, nil
	}
	if out.Placement, err = json.Marshal(res.Placement); err != nil {
		return out, fmt.Errorf("writing where modules are: %w", err)
	}
	if out.Lock, err = describeLock(res.Lock); err != nil {
		return out, err
	}
	if res.Placement.Python != "" {
		out.Release, err = s.envs.Hold(ctx, venv.Env{Dir: filepath.Dir(filepath.Dir(res.Placement.Python))})
	}
	return out, err
}

// lockedEntry is a module or package in the metadata of a version.
type lockedEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"`
	Commit  string `json:"commit,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// describeLock lists what a lock names.
func describeLock(l *module.Lock) (json.RawMessage, error) {
	all := []lockedEntry{}
	for _, m := range l.Modules {
		all = append(all, lockedEntry{m.Name, m.Version, m.Source, m.Commit, m.Digest})
	}
	if l.Python != nil {
		for _, p := range l.Python.Packages {
			e := lockedEntry{Name: p.Name, Version: p.Version, Source: "package"}
			if p.SHA256 != "" {
				e.Digest = "sha256:" + p.SHA256
			}
			all = append(all, e)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("listing modules: %w", err)
	}
	return raw, nil
}

// readKept reads what was chosen for an environment. One that can not be read is chosen again.
func readKept(name string) *module.Lock {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	l, err := module.ParseLock(text)
	if err != nil {
		return nil
	}
	return l
}

func keep(name string, l *module.Lock) error {
	text, err := l.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keeping what was chosen: %w", err)
	}
	return putFile(name, text)
}

// credentials lends a module's repository the credentials of the environment's own, if both are on the same host: a project says
// where its modules are, and must not send them anywhere else. A repository on this machine is read only for a project that is
// on it itself.
func (s *serverModules) credentials(ctx context.Context, env model.Environment, repo model.Repository) (model.Repository, error) {
	own := model.Repository{URL: env.RepoURL}
	if env.Repository != "" {
		var err error
		if own, err = s.repos(ctx, env.Repository); err != nil {
			return repo, fmt.Errorf("reading the environment's repository: %w", err)
		}
	}
	a, b := endpoint(own.URL), endpoint(repo.URL)
	if b == "file" && a != "file" {
		return repo, fmt.Errorf("modules on the server's own disk are for projects that are there as well: %w", model.ErrForbidden)
	}
	if u, err := url.Parse(repo.URL); a != b || a == "" || err == nil && u.User != nil && u.Scheme != "ssh" {
		return repo, nil
	}
	repo.Username, repo.Password, repo.SSHKey, repo.SSHKeyPassphrase, repo.KnownHosts = own.Username, own.Password, own.SSHKey, own.SSHKeyPassphrase, own.KnownHosts
	if u, err := url.Parse(own.URL); err == nil && u.User != nil && repo.Username == "" && repo.Password == "" && u.Scheme != "ssh" {
		password, _ := u.User.Password()
		repo.Username, repo.Password = u.User.Username(), model.Secret(password)
	}
	return repo, nil
}

// endpoint is the scheme, host and port of a repository's address, "file" for one on this machine, and empty for what is no
// address.
func endpoint(raw string) string {
	switch {
	case strings.HasPrefix(raw, "/"), strings.HasPrefix(raw, "file:"):
		return "file"
	case !strings.Contains(raw, "://"):
		host, _, ok := strings.Cut(raw, ":") // user@host:path
		if !ok {
			return ""
		}
		return "ssh " + strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]) + " 22"
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "ssh": "22"}[scheme]
	}
	return scheme + " " + strings.ToLower(u.Hostname()) + " " + port
}

// sweep removes modules and environments that nobody uses any more.
func (s *serverModules) sweep() error {
	installer, err := modules.New(s.cfg)
	if err != nil {
		return err
	}
	return errors.Join(installer.Sweep(unusedAge), s.envs.Sweep(unusedAge))
}
