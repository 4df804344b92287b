package venv

import (
	"archive/zip"
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
)

var separators = lazyregexp.New(`[-_.]+`)

// Normalise gives the form of a distribution's name in which names are compared: lower case, with single dashes.
func Normalise(name string) string { return strings.ToLower(separators().ReplaceAllString(name, "-")) }

// pipReport is the part of pip's installation report that is of use.
type pipReport struct {
	Install []struct {
		Download struct {
			URL     string `json:"url"`
			Archive struct {
				Hash   string            `json:"hash"`
				Hashes map[string]string `json:"hashes"`
			} `json:"archive_info"`
		} `json:"download_info"`
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
	} `json:"install"`
}

// packages lists what was installed, with digests where the installer reports them.
func (b *builder) packages(sites []string) ([]Package, error) {
	files := map[string]Package{}
	if raw, err := os.ReadFile(b.report); err == nil {
		var r pipReport
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("reading pip's report: %w", err)
		}
		for _, i := range r.Install {
			p := Package{SHA256: i.Download.Archive.Hashes["sha256"]}
			if p.SHA256 == "" {
				p.SHA256, _ = strings.CutPrefix(i.Download.Archive.Hash, "sha256=")
			}
			if u, err := url.Parse(i.Download.URL); err == nil {
				p.File = path.Base(u.Path)
			}
			files[Normalise(i.Metadata.Name)] = p
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading pip's report: %w", err)
	}
	var out []Package
	for _, s := range sites {
		found, err := filepath.Glob(filepath.Join(b.dir, s, "*.dist-info", "METADATA"))
		if err != nil {
			return nil, fmt.Errorf("listing installed packages: %w", err)
		}
		for _, name := range found {
			p, err := readMetadata(name)
			if err != nil {
				return nil, err
			}
			f := files[p.Name]
			p.File, p.SHA256 = f.File, f.SHA256
			for name := range b.spec.Provided {
				if Normalise(name) == p.Name {
					p.Provided, p.File, p.SHA256 = true, "", ""
				}
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Package) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b Package) bool { return a.Name == b.Name }), nil
}

// readMetadata reads name and version of an installed distribution.
func readMetadata(name string) (Package, error) {
	f, err := os.Open(name)
	if err != nil {
		return Package{}, fmt.Errorf("reading an installed package: %w", err)
	}
	defer f.Close()
	var p Package
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "" {
		if v, ok := strings.CutPrefix(lines.Text(), "Name: "); ok && p.Name == "" {
			p.Name = Normalise(strings.TrimSpace(v))
		}
		if v, ok := strings.CutPrefix(lines.Text(), "Version: "); ok && p.Version == "" {
			p.Version = strings.TrimSpace(v)
		}
	}
	if err := lines.Err(); err != nil {
		return p, fmt.Errorf("reading %s: %w", name, err)
	}
	return p, nil
}

// writeStubs makes a wheel without code for each provided distribution.
func writeStubs(dir string, provided map[string]string, requires map[string][]string) ([]Package, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing provided packages: %w", err)
	}
	var out []Package
	for _, name := range slices.Sorted(maps.Keys(provided)) {
		p := Package{Name: name, Version: provided[name]}
		p.File = strings.ReplaceAll(Normalise(name), "-", "_") + "-" + p.Version + "-py3-none-any.whl"
		if err := writeStub(dir, name, p.Version, requires[name]); err != nil {
			return nil, fmt.Errorf("preparing the provided package %s: %w", name, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, p.File))
		if err != nil {
			return nil, fmt.Errorf("preparing the provided package %s: %w", name, err)
		}
		sum := sha256.Sum256(raw)
		p.SHA256 = hex.EncodeToString(sum[:])
		out = append(out, p)
	}
	return out, nil
}

func writeStub(dir, name, version string, requires []string) error {
	var meta strings.Builder
	meta.WriteString("Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nSummary: Supplied by intendant\n")
	for _, r := range requires {
		meta.WriteString("Requires-Dist: " + r + "\n")
	}
	stem := strings.ReplaceAll(Normalise(name), "-", "_") + "-" + version
	info := stem + ".dist-info/"
	var record strings.Builder
	f, err := os.Create(filepath.Join(dir, stem+"-py3-none-any.whl"))
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	add := func(name, text string) error {
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(text))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		_, err = w.Write([]byte(text))
		return err
	}
	err = errors.Join(
		add(info+"METADATA", meta.String()),
		add(info+"WHEEL", "Wheel-Version: 1.0\nGenerator: intendant\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
	)
	return errors.Join(err, add(info+"RECORD", record.String()+info+"RECORD,,\n"), z.Close(), f.Close())
}
