package main

import (
	"bufio"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/intendant/intendant/model"
)

// userCredentials adds what the user has for a repository: a line of ~/.netrc for HTTP, a key and the known hosts of ~/.ssh for
// SSH. What is not there is left out: many repositories can be read by everybody.
func userCredentials(_ context.Context, repo model.Repository) (model.Repository, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return repo, nil //nolint:nilerr // without a home there are no credentials in it
	}
	u, err := url.Parse(repo.URL)
	switch {
	case err == nil && (u.Scheme == "https" || u.Scheme == "http"):
		if u.User == nil {
			repo.Username, repo.Password = netrc(home, u.Hostname())
		}
	case err == nil && u.Scheme == "ssh", err != nil && strings.Contains(repo.URL, "@"), err == nil && u.Scheme == "" && !strings.HasPrefix(repo.URL, "/"):
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			if key, err := os.ReadFile(filepath.Join(home, ".ssh", name)); err == nil {
				repo.SSHKey = model.Secret(key)
				break
			}
		}
		if hosts, err := os.ReadFile(filepath.Join(home, ".ssh", "known_hosts")); err == nil {
			repo.KnownHosts = string(hosts)
		}
	}
	return repo, nil
}

// netrc finds a host in a netrc file.
func netrc(home, host string) (user string, password model.Secret) {
	name := os.Getenv("NETRC")
	if name == "" {
		name = filepath.Join(home, ".netrc")
	}
	f, err := os.Open(name) //nolint:gosec // the user's own file, where the user says it is
	if err != nil {
		return "", ""
	}
	defer f.Close()
	words := bufio.NewScanner(f)
	words.Split(bufio.ScanWords)
	mine := false
	for words.Scan() {
		key := words.Text()
		if key == "default" {
			mine = user == "" && password == ""
			continue
		}
		if !words.Scan() {
			break
		}
		switch value := words.Text(); key {
		case "machine":
			if mine && password != "" {
				return user, password
			}
			mine = value == host
		case "login":
			if mine {
				user = value
			}
		case "password":
			if mine {
				password = model.Secret(value)
			}
		}
	}
	return user, password
}
