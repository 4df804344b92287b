package venv

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// Spec says what an environment consists of. The zero value is an empty environment of the default Python.
type Spec struct {
	// Python is the interpreter: a path, a command such as python3.12, or a version such as 3.12. Empty means python3.
	Python string
	// Requirements are what is installed, one requirement of PEP 508 each, with hashes ("name==1 --hash=sha256:…") if they are
	// to be checked. Their order does not matter.
	Requirements []string
	// Constraints bound the versions of what requirements draw in. They install nothing by themselves.
	Constraints []string
	// Index says where packages come from.
	Index Index
	// SystemSite lets the environment see the packages of the interpreter's own installation.
	SystemSite bool
	// NoDeps installs the requirements and nothing that they require, as a lock file wants it. They name exact versions then, and
	// where these come from does not count for the digest.
	NoDeps bool
	// Provided are distributions, by name, that the caller supplies by other means in the given version. Whatever requires one is
	// satisfied, and no index is asked for it.
	Provided map[string]string
	// ProvidedRequires are what the provided distributions require in their turn, by their names.
	ProvidedRequires map[string][]string
}

// Index says where packages come from. The zero value is no place at all, which is enough for an environment without
// requirements.
type Index struct {
	// URL is the index; it may contain credentials. Empty for none, or for the system's with UseSystemConfig.
	URL string
	// Extra are further indexes, searched together with the first.
	Extra []string
	// FindLinks are directories with wheels, absolute, or addresses of pages that link to some.
	FindLinks []string
	// NoIndex looks in FindLinks only. It is implied when there is no index.
	NoIndex bool
	// Pre allows pre-releases.
	Pre bool
	// OnlyBinary refuses packages without a wheel, whose build script would run as the user of this process.
	OnlyBinary bool
	// UseSystemConfig lets pip's and uv's own configuration files and variables of the machine count.
	UseSystemConfig bool
}

// limits of a specification.
const (
	maxLines = 10_000
	maxLine  = 4096
)

// hashOption is the only option that a requirement may carry.
var hashOption = lazyregexp.New(`\s--hash=sha(?:256|384|512):[0-9a-f]{64,128}`)

// requirementForm is the beginning of a requirement: a name, and perhaps extras.
var requirementForm = lazyregexp.New(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[A-Za-z0-9._,\s-]*\])?\s*(.*)$`)

// checkLine refuses what is more than one requirement.
func checkLine(kind, line string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s %.200q %s: %w", kind, Redact(line), fmt.Sprintf(format, args...), model.ErrInvalid)
	}
	switch {
	case strings.TrimSpace(line) == "":
		return bad("is empty")
	case len(line) > maxLine:
		return bad("is longer than %d bytes", maxLine)
	case strings.ContainsFunc(line, unicode.IsControl):
		return bad("contains control characters")
	case strings.Contains(line, "\\"):
		return bad("contains a backslash")
	case strings.Contains(line, "${"):
		return bad("refers to an environment variable: write the value itself")
	case strings.HasPrefix(strings.TrimSpace(line), "-"):
		return bad("is an option of the installer; only requirements are allowed here")
	}
	rest := hashOption().ReplaceAllString(line, "")
	m := requirementForm().FindStringSubmatch(strings.TrimSpace(rest))
	switch {
	case m == nil:
		return bad("does not begin with the name of a package")
	case strings.Contains(rest, " --"):
		return bad("carries an option of the installer; only --hash is allowed")
	case m[3] != "" && !strings.ContainsAny(m[3][:1], "=<>!~@;("):
		return bad("is no requirement: a version constraint (>=1.0), a marker (; ...) or an address (@ https://...) may follow the name")
	}
	if at, ok := strings.CutPrefix(m[3], "@"); ok {
		u, err := url.Parse(strings.Fields(at + " x")[0])
		if err != nil || !slices.Contains([]string{"https", "http", "file", "git+https", "git+http", "git+ssh"}, strings.ToLower(u.Scheme)) {
			return bad("has an address that is not allowed: use https, http, file, git+https or git+ssh")
		}
	}
	return nil
}

// checkIndexURL refuses an address that is none.
func checkIndexURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil, strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return fmt.Errorf("package index %q is no address: %w", Redact(raw), model.ErrInvalid)
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "file":
		return fmt.Errorf("package index %q: use an address with https, http or file: %w", Redact(raw), model.ErrInvalid)
	case u.Scheme != "file" && u.Hostname() == "":
		return fmt.Errorf("package index %q has no host: %w", Redact(raw), model.ErrInvalid)
	}
	return nil
}

var providedVersion = lazyregexp.New(`^[0-9][0-9a-z.!]*(\+[a-z0-9.]+)?$`)

// check refuses a specification that can not be built.
func (s Spec) check() error {
	var errs []error
	if len(s.Requirements)+len(s.Constraints) > maxLines {
		return fmt.Errorf("an environment of more than %d requirements and constraints: %w", maxLines, model.ErrInvalid)
	}
	for _, r := range s.Requirements {
		errs = append(errs, checkLine("requirement", r))
	}
	for _, c := range s.Constraints {
		errs = append(errs, checkLine("constraint", c))
	}
	if s.Index.URL != "" {
		errs = append(errs, checkIndexURL(s.Index.URL))
	}
	for _, u := range s.Index.Extra {
		errs = append(errs, checkIndexURL(u))
	}
	for _, l := range s.Index.FindLinks {
		if strings.Contains(l, "://") {
			errs = append(errs, checkIndexURL(l))
		} else if !filepath.IsAbs(l) {
			errs = append(errs, fmt.Errorf("find-links directory %q is not absolute: %w", l, model.ErrInvalid))
		}
	}
	for name, v := range s.Provided {
		if !requirementForm().MatchString(name) || requirementForm().FindStringSubmatch(name)[1] != name || !providedVersion().MatchString(v) {
			errs = append(errs, fmt.Errorf("provided distribution %q in version %q: %w", name, v, model.ErrInvalid))
		}
	}
	if strings.HasPrefix(s.Python, "-") || strings.ContainsFunc(s.Python, unicode.IsControl) {
		errs = append(errs, fmt.Errorf("python %q is no interpreter: %w", s.Python, model.ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(s.Requirements) > 0 && s.Index.URL == "" && len(s.Index.Extra) == 0 && len(s.Index.FindLinks) == 0 && !s.Index.UseSystemConfig {
		return fmt.Errorf("installing %s needs a package index: set pip.index_url in project.yml, or pip.use_system_config: true "+
			"for the index that pip is set up with on this machine; or name directories with wheels in find-links ([python]) or pip-find-links ([agent]): %w", quoteSome(s.Requirements), model.ErrInvalid)
	}
	return nil
}

func quoteSome(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// Digest names the environment: 64 hexadecimal digits over everything in the specification and over the version of the
// interpreter, which is started to ask for it. Credentials of indexes do not count, so that a new password builds nothing anew.
// An interpreter that can not be started gives a digest of its own; [Cache.Ensure] says what is wrong with it.
func (s Spec) Digest() string {
	py, _ := probe(s.Python) // Ensure reports the error
	return s.digest(py)
}

func (s Spec) digest(py interpreter) string {
	sorted := func(list []string) []string {
		out := make([]string, 0, len(list))
		for _, l := range list {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	clean := func(list []string) []string {
		out := make([]string, 0, len(list)) // the order of indexes counts
		for _, l := range list {
			out = append(out, Redact(l))
		}
		return out
	}
	provided := make([]string, 0, len(s.Provided))
	for _, name := range slices.Sorted(maps.Keys(s.Provided)) {
		provided = append(provided, name+"=="+s.Provided[name])
	}
	index := s.Index
	requires := s.ProvidedRequires
	if s.NoDeps {
		index, requires = Index{}, nil
	}
	text, err := json.Marshal([]any{
		"intendant environment 1", py.Implementation, py.Version, py.Platform, sorted(s.Requirements), sorted(s.Constraints),
		Redact(index.URL), clean(index.Extra), clean(index.FindLinks), index.NoIndex, index.Pre, index.UseSystemConfig, index.OnlyBinary,
		s.SystemSite, provided, s.NoDeps, requires,
	})
	if err != nil {
		panic(err) // texts and booleans can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
