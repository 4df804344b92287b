package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/intendant/intendant/model"
)

// TestModuleCredentials holds that an environment's credentials go to its own host and nowhere else.
func TestModuleCredentials(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		own, module string
		lent        bool
		refused     bool
	}{
		{"https://git.example.com/infra.git", "https://git.example.com/modules/web.git", true, false},
		{"https://git.example.com/infra.git", "https://GIT.example.com:443/modules/web.git", true, false},
		{"https://git.example.com/infra.git", "https://git.example.com.evil.net/web.git", false, false},
		{"https://git.example.com/infra.git", "https://git.example.com@evil.net/web.git", false, false},
		{"https://git.example.com/infra.git", "https://git.example.com:8443/web.git", false, false},
		{"https://git.example.com/infra.git", "http://git.example.com/web.git", false, false},
		{"https://git.example.com/infra.git", "https://other:own@git.example.com/web.git", false, false},
		{"https://git.example.com/infra.git", "ssh://git@git.example.com/web.git", false, false},
		{"git@git.example.com:infra.git", "ssh://git@git.example.com/web.git", true, false},
		{"git@git.example.com:infra.git", "git@evil.net:web.git", false, false},
		{"/srv/infra.git", "/srv/web.git", true, false},
		{"https://git.example.com/infra.git", "/etc", false, true},
		{"https://git.example.com/infra.git", "file:///etc", false, true},
		{"", "https://git.example.com/web.git", false, false},
		{"", "not an address", false, false},
	} {
		s := &serverModules{repos: func(context.Context, model.RepositoryName) (model.Repository, error) {
			return model.Repository{URL: tc.own, Username: "ada", Password: "pa55word", SSHKey: "key"}, nil
		}}
		got, err := s.credentials(t.Context(), model.Environment{Repository: "infra"}, model.Repository{URL: tc.module})
		if errors.Is(err, model.ErrForbidden) != tc.refused {
			t.Errorf("%s for %s: %v, want refused %v", tc.module, tc.own, err, tc.refused)
		}
		if lent := got.Password != "" || got.SSHKey != ""; lent != tc.lent {
			t.Errorf("%s gets the credentials of %s: %v, want %v", tc.module, tc.own, lent, tc.lent)
		}
	}
	// Credentials in the address of the environment's repository count as well.
	s := &serverModules{}
	got, err := s.credentials(t.Context(), model.Environment{RepoURL: "https://ada:pa55word@git.example.com/infra.git"}, model.Repository{URL: "https://git.example.com/web.git"})
	if err != nil || got.Username != "ada" || got.Password != "pa55word" {
		t.Errorf("credentials of an address = %+v, %v", got, err)
	}
}

func TestNetrc(t *testing.T) {
	home := t.TempDir()
	t.Setenv("NETRC", "") // not parallel: it sets the environment
	text := "machine other.example.com login eve password no\nmachine git.example.com\n  login ada\n  password pa55word\nmachine third password x\ndefault login anybody password anything\n"
	if err := os.WriteFile(filepath.Join(home, ".netrc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][2]string{
		"git.example.com": {"ada", "pa55word"}, "other.example.com": {"eve", "no"}, "third": {"", "x"}, "unknown.example.com": {"anybody", "anything"},
	} {
		if user, password := netrc(home, host); user != want[0] || password.Reveal() != want[1] {
			t.Errorf("netrc(%s) = %s, %s; want %s", host, user, password.Reveal(), want)
		}
	}
	if user, password := netrc(t.TempDir(), "git.example.com"); user != "" || password != "" {
		t.Errorf("without a file: %s, %s", user, password.Reveal())
	}
}
