package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// runAs is the account that PostgreSQL runs under. credential is nil when it is our own.
type runAs struct {
	uid, gid   int
	name       string
	credential *syscall.Credential
}

// unprivilegedUsers are tried in this order when the server is root: initdb refuses root, and an account must have a
// passwd entry for initdb to look up.
var unprivilegedUsers = []string{"intendant", "postgres", "nobody"}

func account() (runAs, error) {
	if os.Geteuid() != 0 {
		return runAs{uid: os.Geteuid(), gid: os.Getegid(), name: "intendant"}, nil
	}
	for _, name := range unprivilegedUsers {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 != nil || err2 != nil || uid == 0 {
			continue
		}
		return runAs{uid: uid, gid: gid, name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return runAs{}, fmt.Errorf("running as root, and none of the accounts %v exists to run PostgreSQL under: create one (useradd --system intendant)", unprivilegedUsers)
}

// fallbackRoot holds instances whose own directory the unprivileged account can not reach, such as one below /root.
const fallbackRoot = "/var/lib/intendant/embedded"

// home decides where the instance of dir lives: in dir itself, or, when some parent of dir is closed to the account,
// under fallbackRoot with a name made from dir. dir then holds a link named postgres to it.
func (a runAs) home(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the database's directory: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("resolving the database's directory: %w", err)
	}
	if a.credential == nil {
		return dir, nil
	}
	if a.reaches(dir) {
		return dir, openDir(dir)
	}
	sum := sha256.Sum256([]byte(dir))
	far := filepath.Join(fallbackRoot, hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(far, 0o755); err != nil {
		return "", fmt.Errorf("creating the database's directory: %w", err)
	}
	if !a.reaches(far) {
		return "", fmt.Errorf("neither %s nor %s can be entered by the account %s that PostgreSQL must run under: open their parents (chmod o+x) or set database.dir", dir, far, a.name)
	}
	link := filepath.Join(dir, "postgres")
	if old, err := os.Readlink(link); err != nil || old != far {
		_ = os.Remove(link)
		if err := os.Symlink(far, link); err != nil {
			return "", fmt.Errorf("linking the database's directory: %w", err)
		}
	}
	return far, openDir(far)
}

// openDir lets the account pass through the instance's directory, whatever the umask made of it. What lies in it is closed
// on its own.
func openDir(dir string) error {
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // see above
		return fmt.Errorf("opening the database's directory: %w", err)
	}
	return nil
}

// reaches reports whether the account may pass through every directory above dir.
func (a runAs) reaches(dir string) bool {
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		bit := os.FileMode(0o001)
		switch {
		case int(st.Uid) == a.uid:
			bit = 0o100
		case int(st.Gid) == a.gid:
			bit = 0o010
		}
		if info.Mode().Perm()&bit == 0 {
			return false
		}
		if p == filepath.Dir(p) {
			return true
		}
	}
}
