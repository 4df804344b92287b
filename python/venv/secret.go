package venv

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// userinfo matches the credentials of an address, wherever it stands in a text.
var userinfo = lazyregexp.New(`(//)[^/?#\s"'<>]*@`)

// Redact removes the credentials from all addresses in a text.
func Redact(text string) string { return userinfo().ReplaceAllString(text, "$1") }

// credentials are the user names and passwords of hosts.
type credentials struct {
	hosts   []string
	logins  map[string][2]string
	secrets []string
}

// strip removes the credentials from an address and remembers them.
func (c *credentials) strip(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw, nil //nolint:nilerr // addresses were checked; what can not be parsed is a path
	}
	password, _ := u.User.Password()
	login := [2]string{u.User.Username(), password}
	if login[1] == "" {
		// A token alone is a user name; a netrc file has no line without a password.
		login[1] = "x"
	}
	host := u.Hostname()
	if old, ok := c.logins[host]; ok && old != login {
		return "", fmt.Errorf("the package indexes on %s have different credentials: use one account for both: %w", host, model.ErrInvalid)
	}
	if c.logins == nil {
		c.logins = map[string][2]string{}
	}
	if !slices.Contains(c.hosts, host) {
		c.hosts = append(c.hosts, host)
	}
	c.logins[host] = login
	for _, s := range []string{u.User.Username(), password} {
		if len(s) >= 4 {
			c.secrets = append(c.secrets, s)
			if e := url.QueryEscape(s); e != s {
				c.secrets = append(c.secrets, e)
			}
		}
	}
	u.User = nil
	return u.String(), nil
}

// write makes a netrc file that only its owner can read. The grammar of these files has no standard: Python knows quotes and
// escapes since 3.11, so that they are used only where nothing else will do.
func (c *credentials) write(dir string) (string, error) {
	var b strings.Builder
	quote := func(s string) string {
		if !strings.ContainsAny(s, " \t\\") && !strings.HasPrefix(s, `"`) {
			return s
		}
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	for _, h := range c.hosts {
		l := c.logins[h]
		fmt.Fprintf(&b, "machine %s\nlogin %s\npassword %s\n", h, quote(l[0]), quote(l[1]))
	}
	name := filepath.Join(dir, "netrc")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		return "", fmt.Errorf("writing the credentials of the package index: %w", err)
	}
	return name, nil
}

// clean removes secrets from a text.
func (c *credentials) clean(text string) string {
	text = Redact(text)
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}
