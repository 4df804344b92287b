package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
)

// minMajor is the oldest PostgreSQL that the schema works with.
const minMajor = 14

// UseBundle as Config.BinDir takes the PostgreSQL inside this program even if the machine has its own.
const UseBundle = "bundle"

// ErrNoBinaries says that no PostgreSQL was found. Its text tells how to install one.
var ErrNoBinaries = errors.New("no PostgreSQL binaries (postgres and initdb, version 14 or newer) on this machine.\n" +
	"Install them, for instance\n" +
	"  Debian, Ubuntu:  apt-get install -y postgresql\n" +
	"  Fedora, RHEL:    dnf install -y postgresql-server\n" +
	"  macOS:           brew install postgresql@16\n" +
	"or set database.url to a PostgreSQL of your own, or build with `make build EMBEDPG=1` to carry one in the program")

// binaries are the programs of one PostgreSQL installation.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

var versionPattern = lazyregexp.New(`\(PostgreSQL\) (\d+)`)

// searchPatterns are the places where distributions keep server binaries outside PATH.
var searchPatterns = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/lib64/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

// probe tells which version lies in dir; ok is false when it is not a usable installation.
func probe(dir string) (binaries, bool) {
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return binaries{}, false
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output() //nolint:noctx // it prints one line
	if err != nil {
		return binaries{}, false
	}
	m := versionPattern().FindSubmatch(out)
	if m == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil || major < minMajor {
		return binaries{}, false
	}
	return binaries{dir: dir, major: major}, true
}

// find chooses binaries. want is the major version that a data directory needs, 0 for the newest.
func find(binDir string, want int, unpack func() (string, error)) (binaries, error) {
	switch binDir {
	case "":
	case UseBundle:
		if unpack == nil {
			return binaries{}, errors.New("database.bin_dir is \"bundle\", but this program carries no PostgreSQL: build it with `make build EMBEDPG=1`")
		}
		dir, err := unpack()
		if err != nil {
			return binaries{}, fmt.Errorf("unpacking the bundled PostgreSQL: %w", err)
		}
		return find(dir, want, nil)
	default:
		b, ok := probe(binDir)
		if !ok {
			return binaries{}, fmt.Errorf("database.bin_dir: %s has no PostgreSQL of version %d or newer", binDir, minMajor)
		}
		if want != 0 && b.major != want {
			return binaries{}, fmt.Errorf("database.bin_dir: %s has PostgreSQL %d, but the data directory was made by %d; use that version, or export and import", binDir, b.major, want)
		}
		return b, nil
	}
	var found []binaries
	for _, dir := range candidates() {
		if b, ok := probe(dir); ok {
			found = append(found, b)
		}
	}
	if i := slices.IndexFunc(found, func(b binaries) bool { return b.major == want }); want != 0 && i >= 0 {
		return found[i], nil
	}
	if want == 0 && len(found) > 0 {
		return slices.MaxFunc(found, func(a, b binaries) int { return a.major - b.major }), nil
	}
	if unpack != nil {
		dir, err := unpack()
		if err != nil {
			return binaries{}, fmt.Errorf("unpacking the bundled PostgreSQL: %w", err)
		}
		if b, ok := probe(dir); ok && (want == 0 || b.major == want) {
			return b, nil
		}
	}
	if want != 0 {
		return binaries{}, fmt.Errorf("the data directory was made by PostgreSQL %d, which is not on this machine: install that version (Debian: apt-get install -y postgresql-%d)", want, want)
	}
	return binaries{}, ErrNoBinaries
}

func candidates() []string {
	var dirs []string
	for _, p := range searchPatterns {
		m, err := filepath.Glob(p)
		if err == nil {
			dirs = append(dirs, m...)
		}
	}
	//nolint:noctx // it prints one line
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(p); err == nil {
			p = target
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
