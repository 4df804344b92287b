package model

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
)

// Limits of the code of one module. A version that is beyond them is refused: no agent could be expected to load it.
const (
	// MaxCodeFiles is the number of source files of a module.
	MaxCodeFiles = 5000
	// MaxCodeRequirements is the number of packages that a module may ask for.
	MaxCodeRequirements = 500
	// MaxCodeTypes is the number of resource types, references and mutators of a module.
	MaxCodeTypes = 5000
	// MaxCodeText is the size in bytes of one name or requirement.
	MaxCodeText = 1000
)

// ModuleCode is the Python code of one module, as it is shipped to the agents whose resources need it (Python API reference,
// section 11).
type ModuleCode struct {
	// Module is the module's name, the part after inmanta_plugins.
	Module string `json:"module"`
	// Digest is [ModuleCode.Sum]: the module's code and requirements.
	Digest string `json:"digest"`
	// Files are all Python sources of the module, sorted by name.
	Files []CodeFile `json:"files"`
	// Requirements are the packages that the code needs, as requirement strings of PEP 508, sorted.
	Requirements []string `json:"requirements"`
	// Types names the resource types, references and mutators that the module defines or handles, sorted: an agent needs the
	// module when one of its resources names one of them.
	Types []string `json:"types"`
	// Agents, when set, names the agents that need the module, whatever their resources are: clients that do not say which
	// types a module has say this instead.
	Agents []AgentName `json:"agents,omitempty"`
}

// CodeFile is one Python source.
type CodeFile struct {
	// Name is the Python module's dotted name, such as inmanta_plugins.fabric.vlan, or inmanta_fabric of a package that the module
	// brings besides.
	Name string `json:"name"`
	// Hash is the SHA-1 of the content in hex; the content is in the file storage.
	Hash string `json:"hash"`
	// Package is true for the __init__.py of a package. What has other files below it, and the module itself, is a package also
	// when nobody says so.
	Package bool `json:"package,omitempty"`
}

// Sum computes the digest: the SHA-1 over the sorted hashes of the files and then the sorted requirements. The names count
// too, because the same contents under other names are another program.
func (m ModuleCode) Sum() string {
	lines := make([]string, 0, len(m.Files))
	for _, f := range m.Files {
		line := f.Hash + " " + f.Name
		if f.Package {
			line += " package"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	sum := sha1.New()
	for _, l := range append(lines, slices.Sorted(slices.Values(m.Requirements))...) {
		_, _ = sum.Write([]byte(l + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

var (
	moduleNamePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	codeNamePattern   = lazyregexp.New(`^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$`)
	codeHashPattern   = lazyregexp.New(`^[0-9a-f]{40}$`)
)

// reserved are the packages that code of a module may not add to, but for its own part of inmanta_plugins.
var reserved = []string{"inmanta_plugins", "inmanta", "intendant_host"}

// top is the package at the beginning of a dotted name.
func top(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// Validate checks names, hashes and sizes, as whoever takes code in from outside must. It fails with [ErrInvalid].
func (m ModuleCode) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("code of module %q: %s: %w", m.Module, fmt.Sprintf(format, args...), ErrInvalid)
	}
	switch {
	case !moduleNamePattern().MatchString(m.Module) || len(m.Module) > MaxCodeText:
		return bad("the name of a module is one Python identifier")
	case len(m.Files) > MaxCodeFiles:
		return bad("%d files, at most %d", len(m.Files), MaxCodeFiles)
	case len(m.Requirements) > MaxCodeRequirements:
		return bad("%d requirements, at most %d", len(m.Requirements), MaxCodeRequirements)
	case len(m.Types) > MaxCodeTypes:
		return bad("%d types, at most %d", len(m.Types), MaxCodeTypes)
	}
	root := "inmanta_plugins." + m.Module
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		switch {
		case len(f.Name) > MaxCodeText || !codeNamePattern().MatchString(f.Name):
			return bad("%q is not the dotted name of a Python module", f.Name)
		case f.Name != root && !strings.HasPrefix(f.Name, root+".") && slices.Contains(reserved, top(f.Name)):
			return bad("%s is not below %s", f.Name, root)
		case seen[f.Name]:
			return bad("%s is there twice", f.Name)
		case !codeHashPattern().MatchString(f.Hash):
			return bad("the hash %q of %s is not a SHA-1 in lower-case hex", f.Hash, f.Name)
		}
		seen[f.Name] = true
	}
	for _, t := range append(slices.Clone(m.Requirements), m.Types...) {
		if t == "" || len(t) > MaxCodeText || strings.ContainsAny(t, "\x00\r\n") {
			return bad("%.80q is empty, too long, or more than one line", t)
		}
		if strings.HasPrefix(strings.TrimSpace(t), "-") {
			return bad("%.80q is an option of pip, not a requirement", t)
		}
	}
	if want := m.Sum(); m.Digest != want {
		return bad("its digest is %s, not %q", want, m.Digest)
	}
	return nil
}

// Canonical sorts the parts and fills the digest, so that equal code is equal.
func (m ModuleCode) Canonical() ModuleCode {
	m.Files = slices.SortedFunc(slices.Values(m.Files), func(a, b CodeFile) int { return strings.Compare(a.Name, b.Name) })
	m.Requirements = slices.Compact(slices.Sorted(slices.Values(m.Requirements)))
	m.Types = slices.Compact(slices.Sorted(slices.Values(m.Types)))
	m.Digest = m.Sum()
	return m
}

// MergeCode puts the code of two uploads together, module by module: of two files of one name the later counts. The result is
// sorted by module, and canonical.
func MergeCode(earlier, later []ModuleCode) []ModuleCode {
	merged := map[string]ModuleCode{}
	for _, m := range slices.Concat(earlier, later) {
		into := merged[m.Module]
		into.Module = m.Module
		files := slices.Clone(m.Files)
		for _, f := range into.Files {
			if !slices.ContainsFunc(files, func(o CodeFile) bool { return o.Name == f.Name }) {
				files = append(files, f)
			}
		}
		into.Files = files
		into.Requirements = slices.Concat(into.Requirements, m.Requirements)
		into.Types = slices.Concat(into.Types, m.Types)
		into.Agents = slices.Concat(into.Agents, m.Agents)
		slices.Sort(into.Agents)
		into.Agents = slices.Compact(into.Agents)
		merged[m.Module] = into
	}
	out := make([]ModuleCode, 0, len(merged))
	for _, m := range merged {
		out = append(out, m.Canonical())
	}
	slices.SortFunc(out, func(a, b ModuleCode) int { return strings.Compare(a.Module, b.Module) })
	return out
}

// PipConfig says where the packages come from that code requires (server reference, section 3.1).
type PipConfig struct {
	// IndexURL is the package index; empty for none. ExtraIndexURL are further ones.
	IndexURL      string   `json:"index_url,omitempty"`
	ExtraIndexURL []string `json:"extra_index_url,omitempty"`
	// FindLinks are directories with wheels, absolute paths at the agent.
	FindLinks []string `json:"find_links,omitempty"`
	// Pre allows pre-releases.
	Pre bool `json:"pre,omitempty"`
	// UseSystemConfig lets the configuration of pip at the agent count.
	UseSystemConfig bool `json:"use_system_config,omitempty"`
	// Constraints bound the versions of packages, one requirement each.
	Constraints []string `json:"constraints,omitempty"`
}

// CodeManifest is what one agent needs: it is a content of the file storage, and tasks name it by its SHA-1.
type CodeManifest struct {
	Modules []ModuleCode `json:"modules"`
	// Others are the version's other modules: their code may be imported by that of Modules.
	Others []ModuleCode `json:"others,omitempty"`
	Pip    *PipConfig   `json:"pip,omitempty"`
}

// CodePlan is the code of a version.
type CodePlan struct {
	// Modules are all modules, sorted by name.
	Modules []ModuleCode `json:"modules"`
	Pip     *PipConfig   `json:"pip,omitempty"`
	// Agents names the manifest of each agent that needs code, by the SHA-1 of its JSON.
	Agents map[AgentName]string `json:"agents"`
}

// Provides tells whether one of the modules that the agent needs has a type: of resources, references or mutators.
func (m CodeManifest) Provides(name string) bool {
	return slices.ContainsFunc(m.Modules, func(c ModuleCode) bool { return slices.Contains(c.Types, name) })
}

// PlanCode finds which agents need which modules, and returns the plan with the manifests as contents to be stored. An agent
// needs a module when one of its resources is of one of the module's types, or has a reference or a mutator of one.
func PlanCode(state DesiredState) (CodePlan, []File, error) {
	plan := CodePlan{Modules: slices.Clone(state.Code), Pip: state.Pip, Agents: map[AgentName]string{}}
	slices.SortFunc(plan.Modules, func(a, b ModuleCode) int { return strings.Compare(a.Module, b.Module) })
	byType := map[string][]int{}
	wanted := map[AgentName]map[int]bool{}
	want := func(agent AgentName, module int) {
		if wanted[agent] == nil {
			wanted[agent] = map[int]bool{}
		}
		wanted[agent][module] = true
	}
	for i, m := range plan.Modules {
		if err := m.Validate(); err != nil {
			return CodePlan{}, nil, err
		}
		if i > 0 && plan.Modules[i-1].Module == m.Module {
			return CodePlan{}, nil, fmt.Errorf("code of module %q: it is there twice: %w", m.Module, ErrInvalid)
		}
		for _, t := range m.Types {
			byType[t] = append(byType[t], i)
		}
		for _, a := range m.Agents {
			want(a, i)
		}
	}
	// Most resources are of few types and agents: what was seen before costs one look.
	seen := map[string]bool{}
	for i := range state.Intents {
		in := &state.Intents[i]
		head, _, _ := strings.Cut(string(in.Resource), ",")
		resourceType, agent, _ := strings.Cut(head, "[")
		if !seen[head] {
			seen[head] = true
			for _, module := range byType[resourceType] {
				want(AgentName(agent), module)
			}
		}
		for _, t := range referenceTypes(in.Attributes) {
			for _, module := range byType[t] {
				want(AgentName(agent), module)
			}
		}
	}
	var files []File
	made := map[string]string{} // hashes by the set of modules
	for agent, modules := range wanted {
		set := fmt.Sprint(slices.Sorted(maps.Keys(modules)))
		if made[set] == "" {
			f, err := plan.manifest(modules)
			if err != nil {
				return CodePlan{}, nil, err
			}
			files = append(files, f)
			made[set] = f.Hash
		}
		plan.Agents[agent] = made[set]
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Hash, b.Hash) })
	return plan, files, nil
}

// manifest makes the manifest of some modules, by their index.
func (p CodePlan) manifest(modules map[int]bool) (File, error) {
	m := CodeManifest{Pip: p.Pip}
	for i, c := range p.Modules {
		c.Agents = nil
		if modules[i] {
			m.Modules = append(m.Modules, c)
		} else {
			m.Others = append(m.Others, c)
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return File{}, fmt.Errorf("encoding a list of module code: %w", err)
	}
	sum := sha1.Sum(raw)
	return File{Hash: hex.EncodeToString(sum[:]), Content: raw}, nil
}

// referenceTypes lists the types of the references and mutators of a resource. Most have none, which is seen without parsing: the
// attributes are in canonical form.
func referenceTypes(attributes json.RawMessage) []string {
	if !bytes.Contains(attributes, []byte(`"references":[{`)) && !bytes.Contains(attributes, []byte(`"mutators":[{`)) {
		return nil
	}
	var fields struct {
		References []struct {
			Type string `json:"type"`
		} `json:"references"`
		Mutators []struct {
			Type string `json:"type"`
		} `json:"mutators"`
	}
	if json.Unmarshal(attributes, &fields) != nil {
		return nil // attributes of these names that are something else
	}
	var types []string
	for _, f := range append(fields.References, fields.Mutators...) {
		types = append(types, f.Type)
	}
	return types
}

// ContentHashes lists the contents of the file storage that the modules are made of, sorted.
func (p CodePlan) ContentHashes() []string {
	var hashes []string
	for _, m := range p.Modules {
		for _, f := range m.Files {
			hashes = append(hashes, f.Hash)
		}
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}
