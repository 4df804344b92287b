package gitsync

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// maxURL bounds a repository's URL, in bytes.
const maxURL = 2048

// scheme is how a repository is reached.
type scheme string

const (
	schemeHTTP  scheme = "http"
	schemeHTTPS scheme = "https"
	schemeSSH   scheme = "ssh"
	schemeFile  scheme = "file"
)

// remote is a repository's address, taken apart and checked. Its URL has no password.
type remote struct {
	scheme scheme
	// host has no brackets and no port; port is 0 for the scheme's default.
	host string
	port int
	// path is absolute but for the form user@host:path, where it is relative to the user's home.
	path string
	user string
	// password was part of the URL: it is used and never shown.
	password model.Secret
}

// scpForm matches user@host:path, the short form of SSH addresses.
var scpForm = lazyregexp.New(`^(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*|/[^/].*)$`)

// helperForm matches git's remote helpers, which run programs: ext::, fd::.
var helperForm = lazyregexp.New(`^[A-Za-z0-9+.-]*::`)

// hostForm is the grammar of host names and of IPv4 and IPv6 addresses without brackets.
var hostForm = lazyregexp.New(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?|[0-9A-Fa-f:.]+)$`)

// CheckURL reports whether a text is a repository URL that this package can use: http, https, ssh, user@host:path, and, if
// local is set, file:// and absolute paths. It fails with [model.ErrInvalid] and never repeats a password.
func CheckURL(raw string, local bool) error {
	r, err := parseURL(raw)
	if err != nil {
		return err
	}
	if r.scheme == schemeFile && !local {
		return fmt.Errorf("repository URL %q is a local path: allow local repositories in the server's configuration to use it: %w", r, model.ErrInvalid)
	}
	return nil
}

// SplitURL separates a URL from the credentials in it, which belong into the fields of [model.Repository] and not into logs
// and answers. A user name of an SSH address stays, for it is part of the address. A text that is no URL is returned with
// everything between "//" and "@" removed.
func SplitURL(raw string) (clean, username string, password model.Secret) {
	r, err := parseURL(raw)
	if err != nil {
		return RedactURL(raw), "", ""
	}
	if r.scheme == schemeSSH {
		return RedactURL(raw), "", r.password
	}
	return RedactURL(raw), r.user, r.password
}

// userinfo matches the credentials in a URL, wherever it stands in a text. The last @ before the path ends them.
var userinfo = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#\s"'<>]*@`)

// RedactURL removes credentials from every URL in a text. An SSH user name without a password is kept.
func RedactURL(text string) string {
	return userinfo().ReplaceAllStringFunc(text, func(m string) string {
		at := strings.Index(m, "//")
		prefix, info := m[:at+2], strings.TrimSuffix(m[at+2:], "@")
		if prefix == "ssh://" && info != "" {
			user, _, _ := strings.Cut(info, ":")
			return prefix + user + "@"
		}
		return prefix
	})
}

// redactor removes a remote's secrets from error texts, and all that does not belong on one line.
func (r remote) redact(text string, more ...model.Secret) string {
	text = RedactURL(text)
	for _, s := range append(more, r.password) {
		if len(s) < 3 {
			continue
		}
		text = strings.ReplaceAll(text, s.Reveal(), "***")
		text = strings.ReplaceAll(text, url.PathEscape(s.Reveal()), "***")
		text = strings.ReplaceAll(text, url.QueryEscape(s.Reveal()), "***")
	}
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	const most = 600
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// String is the address without credentials; an SSH user name is kept.
func (r remote) String() string {
	if r.scheme == schemeFile {
		return "file://" + r.path
	}
	var b strings.Builder
	b.WriteString(string(r.scheme))
	b.WriteString("://")
	if r.scheme == schemeSSH && r.user != "" {
		b.WriteString(r.user)
		b.WriteByte('@')
	}
	if strings.Contains(r.host, ":") {
		b.WriteString("[" + r.host + "]")
	} else {
		b.WriteString(r.host)
	}
	if r.port != 0 {
		b.WriteString(":" + strconv.Itoa(r.port))
	}
	if !strings.HasPrefix(r.path, "/") {
		b.WriteByte('/')
	}
	b.WriteString(r.path)
	return b.String()
}

// address is host:port for dialling.
func (r remote) address() string {
	port := r.port
	if port == 0 {
		port = map[scheme]int{schemeHTTP: 80, schemeHTTPS: 443, schemeSSH: 22}[r.scheme]
	}
	return net.JoinHostPort(r.host, strconv.Itoa(port))
}

func parseURL(raw string) (remote, error) {
	bad := func(how string) (remote, error) {
		return remote{}, fmt.Errorf("repository URL %q %s: %w", RedactURL(raw), how, model.ErrInvalid)
	}
	switch {
	case raw == "":
		return remote{}, fmt.Errorf("the repository has no URL: %w", model.ErrInvalid)
	case len(raw) > maxURL:
		return remote{}, fmt.Errorf("the repository URL is longer than %d bytes: %w", maxURL, model.ErrInvalid)
	case strings.HasPrefix(raw, "-"):
		return bad("begins with a dash")
	case strings.ContainsFunc(raw, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) && c != ' ' }):
		return remote{}, fmt.Errorf("the repository URL contains control characters: %w", model.ErrInvalid)
	case strings.Contains(raw, "\\"):
		return bad("contains a backslash")
	case strings.HasPrefix(raw, "/"):
		return remote{scheme: schemeFile, path: path.Clean(raw)}, nil
	}
	if !strings.Contains(raw, "://") {
		if m := scpForm().FindStringSubmatch(raw); m != nil && !helperForm().MatchString(raw) && (m[1] != "" || strings.Contains(m[2], ".")) {
			// Without a user a host needs a dot, or else "javascript:…" would be an address.
			if strings.HasPrefix(m[3], "-") {
				return bad("has a path that begins with a dash")
			}
			return remote{scheme: schemeSSH, user: m[1], host: strings.Trim(m[2], "[]"), path: m[3]}, nil
		}
		return bad("is none of http://, https://, ssh://, user@host:path and an absolute path")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return remote{}, fmt.Errorf("the repository URL can not be parsed: %w", model.ErrInvalid)
	}
	r := remote{scheme: scheme(strings.ToLower(u.Scheme)), host: u.Hostname(), path: u.Path}
	switch r.scheme {
	case schemeHTTP, schemeHTTPS, schemeSSH:
	case schemeFile:
		if r.host != "" && r.host != "localhost" || u.User != nil {
			return bad("is a file on another host")
		}
		if !strings.HasPrefix(r.path, "/") {
			return bad("is not an absolute path")
		}
		return remote{scheme: schemeFile, path: path.Clean(r.path)}, nil
	default:
		return bad("has a scheme that is not allowed; use https, http, ssh or, where allowed, file")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return bad("has a query or fragment")
	}
	if r.host == "" || !hostForm().MatchString(r.host) {
		return bad("has no valid host")
	}
	if p := u.Port(); p != "" {
		if r.port, err = strconv.Atoi(p); err != nil || r.port < 1 || r.port > 65535 {
			return bad("has no valid port")
		}
	}
	if strings.Trim(r.path, "/") == "" {
		return bad("has no path")
	}
	if u.User != nil {
		r.user = u.User.Username()
		p, _ := u.User.Password()
		r.password = model.Secret(p)
	}
	if strings.HasPrefix(r.user, "-") {
		return bad("has a user name that begins with a dash")
	}
	return r, nil
}

// refForm refuses the bytes that git refuses in ref names.
var refForm = lazyregexp.New(`^[^\x00-\x20\x7f~^:?*\[\\]+$`)

// CheckBranch reports whether a text may be watched: empty for the default branch, the name of a branch or tag, or a full
// ref name below refs/. It fails with [model.ErrInvalid].
func CheckBranch(name string) error {
	if name == "" {
		return nil
	}
	bad := func(why string) error {
		if len(name) > 80 {
			name = name[:80] + "…"
		}
		return fmt.Errorf("branch %q %s: %w", name, why, model.ErrInvalid)
	}
	switch {
	case len(name) > 255:
		return bad("is longer than 255 bytes")
	case !refForm().MatchString(name):
		return bad("contains a character that git does not allow")
	case strings.HasPrefix(name, "-"):
		return bad("begins with a dash")
	case strings.HasPrefix(name, "/"), strings.HasSuffix(name, "/"), strings.Contains(name, "//"):
		return bad("has an empty component")
	case strings.Contains(name, ".."), strings.Contains(name, "@{"), name == "@", strings.HasSuffix(name, "."):
		return bad("is not a valid ref name")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("is not a valid ref name")
		}
	}
	return nil
}

// repositoryForm is the grammar of [model.RepositoryName], which is also a directory's name.
var repositoryForm = lazyregexp.New(`^[a-z0-9_][a-z0-9._-]{0,127}$`)

// CheckRepositoryName reports whether a name may stand in a webhook's path. It fails with [model.ErrInvalid].
func CheckRepositoryName(name model.RepositoryName) error {
	if !repositoryForm().MatchString(string(name)) {
		return fmt.Errorf("repository name %.80q: use up to 128 lower-case letters, digits, dots, dashes and underscores, not beginning with a dot or dash: %w", string(name), model.ErrInvalid)
	}
	return nil
}

// CheckRepoPath reports whether a path inside a repository is relative and stays inside. It fails with [model.ErrInvalid].
func CheckRepoPath(p string) error {
	if p == "" || p == "." {
		return nil
	}
	if path.IsAbs(p) || strings.ContainsAny(p, "\\\x00") || len(p) > 1024 {
		return fmt.Errorf("path %.80q in the repository is not relative, with forward slashes: %w", p, model.ErrInvalid)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(p, "/"), "/") {
		if part == ".." || strings.EqualFold(part, ".git") {
			return fmt.Errorf("path %.80q in the repository leaves the tree: %w", p, model.ErrInvalid)
		}
	}
	return nil
}
