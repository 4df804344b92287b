package modules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// ask is what a project asks for, apart from the imports of its models.
type ask struct {
	manifest *module.Manifest
	// demands are those on modules; packages are the project's other Python packages.
	demands  []demand
	packages []string
	// packaged are the modules that requirements.txt lists, extras the optional parts of those that are asked for.
	packaged map[string]bool
	extras   map[string][]string
	// repos are the templates of git repositories.
	repos []string
	index venv.Index
	// digest covers all of it.
	digest string
}

// readAsk reads project.yml and requirements.txt.
func (i *Installer) readAsk(req Request) (*ask, []string, error) {
	man, ds := module.ReadManifest(req.Project)
	if ds.HasErrors() {
		return nil, nil, fmt.Errorf("%s: %w", strings.Join(strings.Fields(ds.Errors()[0].Message), " "), model.ErrInvalid)
	}
	var warnings []string
	for _, d := range ds {
		warnings = append(warnings, d.Message)
	}
	a := &ask{manifest: man, packaged: map[string]bool{}, extras: map[string][]string{}}
	for _, text := range man.Requires {
		r, err := module.ParseRequirement(text)
		if err == nil {
			if name := module.NameOf(r.Name); name != "" {
				r.Name = name
			}
			err = module.CheckModuleName(r.Name)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("project.yml: requires: %w: %w", err, model.ErrInvalid)
		}
		a.demands = append(a.demands, demand{Requirement: r, by: "the project", project: true})
	}
	lines, err := module.ReadRequirements(req.Project)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, model.ErrInvalid)
	}
	for _, text := range lines {
		r, err := module.ParseRequirement(text)
		if err != nil {
			return nil, nil, fmt.Errorf("requirements.txt: %w: %w", err, model.ErrInvalid)
		}
		name := module.NameOf(r.Name)
		if name == "" {
			a.packages = append(a.packages, text)
			continue
		}
		r.Name = name
		a.packaged[name] = true
		a.extras[name] = append(a.extras[name], r.Extras...)
		a.demands = append(a.demands, demand{Requirement: r, by: "the project's requirements.txt", project: true})
	}
	for _, r := range man.Repos {
		if r.Type == "git" {
			a.repos = append(a.repos, r.URL)
		}
	}
	a.index = i.index(man)
	a.digest = a.sum(lines)
	return a, warnings, nil
}

// index says where a project's packages come from.
func (i *Installer) index(man *module.Manifest) venv.Index {
	index := i.config.Index
	if man.Pip.IndexURL != "" || man.Pip.UseSystemConfig || len(man.Pip.ExtraIndexURL) > 0 {
		index = venv.Index{
			URL: man.Pip.IndexURL, Extra: man.Pip.ExtraIndexURL, UseSystemConfig: man.Pip.UseSystemConfig, FindLinks: i.config.Index.FindLinks,
			NoIndex: i.config.Index.NoIndex, OnlyBinary: i.config.Index.OnlyBinary,
		}
	}
	switch {
	case man.Pip.Pre != nil:
		index.Pre = *man.Pip.Pre
	case man.InstallMode != "release":
		index.Pre = true
	}
	return index
}

// hasIndex reports whether packages can come from anywhere.
func (a *ask) hasIndex() bool {
	return a.index.URL != "" || a.index.UseSystemConfig || len(a.index.Extra) > 0 || len(a.index.FindLinks) > 0
}

// sum is the digest of what is asked for. Where the packages of a machine come from does not count, nor do credentials.
func (a *ask) sum(lines []string) string {
	sorted := func(list []string) []string {
		out := []string{}
		for _, l := range list {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
		slices.Sort(out)
		return out
	}
	clean := []string{}
	for _, r := range a.repos {
		clean = append(clean, redact(r))
	}
	text, err := json.Marshal([]any{
		sorted(a.manifest.Requires), sorted(lines), clean, a.manifest.InstallMode, venv.Redact(a.manifest.Pip.IndexURL),
		sorted(strings.Fields(venv.Redact(strings.Join(a.manifest.Pip.ExtraIndexURL, " ")))), a.index.Pre,
	})
	if err != nil {
		panic(err) // texts can be encoded
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
