package module

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lazyregexp"
)

// ManifestFile is the file that makes a directory a project.
const ManifestFile = "project.yml"

// Manifest is the content of project.yml. Keys that are not listed here are ignored.
type Manifest struct {
	Name        string
	Description string
	Author      string
	AuthorEmail string
	License     string
	Copyright   string
	// ModulePath are the directories that hold modules in the layout V1, relative to the project and within it.
	ModulePath []string
	// DownloadPath is the directory to which modules in the layout V1 are cloned; empty without one.
	DownloadPath string
	// Repos are the places from which modules are fetched.
	Repos []Repo
	// InstallMode is one of [InstallModes].
	InstallMode string
	// Requires are version constraints on modules, such as std>=8,<9.
	Requires []string
	// FreezeRecursive and FreezeOperator are the defaults of the command that writes Requires.
	FreezeRecursive bool
	FreezeOperator  string
	// Precedence are the rules about the order in which relations are closed.
	Precedence []Precedence
	// AgentInstallsModules says that agents install the Python packages that modules depend on.
	AgentInstallsModules bool
	Pip                  Pip
	// Settings are settings of the environment that the project prescribes, as decoded YAML.
	Settings map[string]any
	// Range is the whole file.
	Range diag.Range
}

// Repo is a place from which modules are fetched. URL holds {} or {0} for the module's name, or ends before it.
type Repo struct {
	URL  string
	Type string // git or package
}

// Pip says where Python packages come from.
type Pip struct {
	IndexURL        string
	ExtraIndexURL   []string
	Pre             *bool
	UseSystemConfig bool
}

// Precedence is a rule of relation_precedence_policy: the relation First is closed before the relation Then.
type Precedence struct {
	First, Then RelationName
	// Text is the rule as written.
	Text  string
	Range diag.Range
}

// RelationName is a relation by its entity's qualified name and its own.
type RelationName struct{ Entity, Relation string }

// String is the relation as written in a rule.
func (n RelationName) String() string { return n.Entity + "." + n.Relation }

var precedenceRule = lazyregexp.New(`^\s*(\S+)\.(\S+)\s+before\s+(\S+)\.(\S+)\s*$`)

// maxMetadata bounds files that describe a project or a module, in bytes.
const maxMetadata = 1 << 20

// ReadManifest reads project.yml. The manifest is nil when the file is missing or is no YAML mapping.
func ReadManifest(project fs.FS) (*Manifest, diag.List) {
	var ds diag.List
	at := diag.Range{File: ManifestFile}
	src, err := readLimited(project, ManifestFile, maxMetadata)
	if err != nil {
		d := diag.Errorf("ProjectNotFoundException", diag.Range{}, "Unable to find an inmanta project (project.yml expected)")
		d.Hint = "run the command in a directory with a project.yml, or give the directory as an argument"
		if !isNotExist(err) {
			d.Hint = "reading project.yml: " + err.Error()
		}
		return nil, append(ds, d)
	}
	d, fault := newDecoder(ManifestFile, src)
	if fault != nil {
		return nil, append(ds, *fault)
	}
	m := &Manifest{
		Name:                 d.required("name"),
		Description:          d.text("description"),
		Author:               d.text("author"),
		AuthorEmail:          d.text("author_email"),
		License:              d.text("license"),
		Copyright:            d.text("copyright"),
		ModulePath:           d.list("modulepath"),
		DownloadPath:         d.text("downloadpath"),
		Repos:                d.repos(),
		InstallMode:          d.choice("install_mode", InstallModes...),
		Requires:             d.requirements("requires"),
		FreezeRecursive:      d.flag("freeze_recursive", false),
		FreezeOperator:       d.choice("freeze_operator", "~=", "==", ">="),
		Precedence:           d.precedence(),
		AgentInstallsModules: d.flag("agent_install_dependency_modules", true),
		Pip:                  d.pip(),
		Settings:             d.mapping("environment_settings"),
		Range:                at,
	}
	d.misspelt(manifestKeys)
	m.ModulePath = d.within("modulepath", m.ModulePath)
	if m.DownloadPath != "" {
		d.checkDownloadPath(m)
	}
	return m, *d.faults
}

// InstallModes say which versions of modules in repositories count; the first is the default.
var InstallModes = []string{"release", "prerelease", "master"}

// manifestKeys are the keys of project.yml, with those that other tools know.
var manifestKeys = []string{
	"name", "description", "author", "author_email", "license", "copyright", "modulepath", "downloadpath", "repo", "install_mode", "requires",
	"freeze_recursive", "freeze_operator", "relation_precedence_policy", "agent_install_dependency_modules", "pip", "environment_settings",
	"requires_compiler", "strict_deps_check", "autostd",
}

// misspelt warns of keys that are unknown, and near to a known one. Others are those of other tools.
func (d *decoder) misspelt(known []string) {
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		key := d.node.Content[i]
		like := diag.Closest(key.Value, known)
		if slices.Contains(known, key.Value) || like == "" || d.get(like) != nil {
			continue
		}
		d.faults.Add(diag.Diagnostic{
			Severity: diag.Warning, Code: "ProjectConfigurationWarning", Range: d.at(key), Hint: "did you mean " + like + "?",
			Message: fmt.Sprintf("Found unexpected configuration value '%s' in %s", key.Value, d.file),
		})
	}
}

// within cleans paths and leaves out those that lead out of the project.
func (d *decoder) within(key string, paths []string) []string {
	var out []string
	for _, p := range paths {
		c := path.Clean(strings.TrimSuffix(p, "/"))
		if !fs.ValidPath(c) {
			d.warnf("ProjectConfigurationWarning", key, "%s: %s lies outside of the project and is ignored", key, p)
			continue
		}
		out = append(out, c)
	}
	return out
}

func (d *decoder) checkDownloadPath(m *Manifest) {
	p := path.Clean(m.DownloadPath)
	if slices.Contains(m.ModulePath, p) {
		m.DownloadPath = p
		return
	}
	d.warnf("ProjectConfigurationWarning", "downloadpath", "The downloadpath %s is not in the modulepath: modules stored there are not found", m.DownloadPath)
}

func (d *decoder) repos() []Repo {
	n := d.get("repo")
	if n == nil {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	var out []Repo
	for _, item := range items {
		item = resolve(item)
		switch item.Kind {
		case yaml.ScalarNode:
			out = append(out, Repo{URL: item.Value, Type: "git"})
		case yaml.MappingNode:
			sub := decoder{file: d.file, node: item, faults: d.faults}
			r := Repo{URL: sub.required("url"), Type: sub.choice("type", "git", "package")}
			if r.Type == "package" {
				d.warnf("ProjectConfigurationWarning", "repo", "repositories of type package are ignored: use pip.index_url")
			}
			out = append(out, r)
		default:
			d.invalid(item, "repo", "expected an address, or a mapping with url and type")
		}
	}
	return out
}

func (d *decoder) precedence() []Precedence {
	n := d.get("relation_precedence_policy")
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.invalid(n, "relation_precedence_policy", "expected a list")
		return nil
	}
	var out []Precedence
	for _, item := range n.Content {
		item = resolve(item)
		m := precedenceRule().FindStringSubmatch(item.Value)
		if item.Kind != yaml.ScalarNode || m == nil {
			d.invalid(item, "relation_precedence_policy", "expected <type>.<relation> before <type>.<relation>")
			continue
		}
		out = append(out, Precedence{
			First: RelationName{m[1], m[2]}, Then: RelationName{m[3], m[4]},
			Text: item.Value, Range: d.at(item),
		})
	}
	return out
}

func (d *decoder) pip() Pip {
	n := d.get("pip")
	if n == nil {
		return Pip{}
	}
	if n.Kind != yaml.MappingNode {
		d.invalid(n, "pip", "expected a mapping")
		return Pip{}
	}
	sub := decoder{file: d.file, node: n, faults: d.faults, prefix: "pip.", dashes: true}
	known := map[string]bool{"index_url": true, "extra_index_url": true, "pre": true, "use_system_config": true}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := strings.ReplaceAll(n.Content[i].Value, "-", "_"); !known[key] {
			d.faults.Add(diag.Diagnostic{
				Severity: diag.Warning, Code: "ProjectConfigurationWarning", Range: d.at(n.Content[i]),
				Message: fmt.Sprintf("Found unexpected configuration value 'pip.%s' in %s", n.Content[i].Value, d.file),
			})
		}
	}
	p := Pip{
		IndexURL:        sub.text("index_url"),
		ExtraIndexURL:   sub.list("extra_index_url"),
		UseSystemConfig: sub.flag("use_system_config", false),
	}
	if sub.get("pre") != nil {
		pre := sub.flag("pre", false)
		p.Pre = &pre
	}
	return p
}
