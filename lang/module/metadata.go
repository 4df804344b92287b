package module

import (
	"io/fs"
	"strings"

	"github.com/intendant/intendant/diag"
)

// The files in which modules describe themselves.
const (
	v1File      = "module.yml"
	setupFile   = "setup.cfg"
	projectFile = "pyproject.toml"
)

// Metadata is what a module says about itself.
type Metadata struct {
	Name        string
	Version     string
	License     string
	Description string
	// Deprecated says that the module should no longer be used.
	Deprecated bool
	// CompilerVersion is the lowest version of the compiler that the module works with; empty for any.
	CompilerVersion string
	// Requires are the modules, and in the layout V2 also Python packages, that the module needs.
	Requires []string
}

// readV1 reads the module.yml of a module. file is its path in diagnostics.
func readV1(root fs.FS, file string) (Metadata, diag.List) {
	src, err := readLimited(root, v1File, maxMetadata)
	if err != nil {
		var ds diag.List
		if isNotExist(err) {
			ds.Errorf("InvalidModuleException", diag.Range{File: file}, "Metadata file %s does not exist", file)
		} else {
			ds.Errorf("InvalidModuleException", diag.Range{File: file}, "Metadata file %s can not be read: %v", file, err)
		}
		return Metadata{}, ds
	}
	d, fault := newDecoder(file, src)
	if fault != nil {
		return Metadata{}, diag.List{*fault}
	}
	m := Metadata{
		Name:            d.required("name"),
		Version:         d.required("version"),
		License:         d.required("license"),
		Description:     d.text("description"),
		Deprecated:      d.flag("deprecated", false),
		CompilerVersion: d.text("compiler_version"),
		Requires:        d.requirements("requires"),
	}
	d.flag("freeze_recursive", false)
	d.choice("freeze_operator", "~=", "==", ">=")
	if v := d.get("version"); v != nil {
		if _, err := ParseVersion(m.Version); err != nil {
			d.invalid(v, "version", "Version %s is not PEP440 compliant", m.Version)
		}
	}
	return m, *d.faults
}

// readV2 reads what a module in the layout V2 says about itself, in setup.cfg or in pyproject.toml. Nothing is required:
// an installed package has been checked when it was built.
func readV2(root fs.FS) Metadata {
	var m Metadata
	if src, err := readLimited(root, setupFile, maxMetadata); err == nil {
		values := parseSetup(string(src))
		m = Metadata{
			Name:            values["metadata.name"],
			Version:         values["metadata.version"],
			License:         values["metadata.license"],
			Description:     values["metadata.description"],
			Deprecated:      strings.EqualFold(values["metadata.deprecated"], "true"),
			CompilerVersion: values["metadata.compiler_version"],
		}
		if tag := values["egg_info.tag_build"]; tag != "" && m.Version != "" {
			m.Version += "." + strings.TrimPrefix(tag, ".")
		}
		for line := range strings.Lines(values["options.install_requires"]) {
			if line = strings.TrimSpace(line); line != "" {
				m.Requires = append(m.Requires, line)
			}
		}
	}
	if m.Name == "" {
		if src, err := readLimited(root, projectFile, maxMetadata); err == nil {
			m = readProject(src)
		}
	}
	m.Name = strings.ReplaceAll(strings.TrimPrefix(m.Name, "inmanta-module-"), "-", "_")
	return m
}

// parseSetup reads the keys of an INI file as section.key. A value goes on in the
// following lines that are indented.
func parseSetup(src string) map[string]string {
	values := map[string]string{}
	section, key := "", ""
	for line := range strings.Lines(src) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case line[0] == '[':
			section, key = strings.Trim(trimmed, "[]"), ""
		case (line[0] == ' ' || line[0] == '\t') && key != "":
			values[key] += "\n" + trimmed
		default:
			name, value, ok := strings.Cut(trimmed, "=")
			if !ok {
				name, value, ok = strings.Cut(trimmed, ":")
			}
			if ok {
				key = section + "." + strings.TrimSpace(name)
				values[key] = strings.TrimSpace(value)
			}
		}
	}
	return values
}
