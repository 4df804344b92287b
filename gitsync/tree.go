package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/intendant/intendant/model"
)

// A HostileTreeError says that a commit contains something that could reach outside of its tree or harm the server. It
// matches [model.ErrInvalid]: fetching again does not help, the repository has to change.
type HostileTreeError struct {
	// Path is the entry at fault, with forward slashes.
	Path string
	// Reason says what is wrong and what to do.
	Reason string
}

// Error names the path and the reason.
func (e *HostileTreeError) Error() string { return fmt.Sprintf("%q is refused: %s", e.Path, e.Reason) }

// Is reports that the error is one of [model.ErrInvalid].
func (e *HostileTreeError) Is(target error) bool { return target == model.ErrInvalid }

// entry is what a path of a tree is.
type entry struct {
	mode filemode.FileMode
	hash plumbing.Hash
	size int64
	// target is what a symbolic link says.
	target string
}

// plan is a tree that was read and found harmless, before anything is written.
type plan struct {
	limits TreeLimits
	// paths are in writing order: a directory before what it contains.
	paths   []string
	entries map[string]entry
	folded  map[string]string
	total   int64
}

// readPlan walks the tree of a commit and refuses whatever could do harm.
func readPlan(ctx context.Context, st storer.EncodedObjectStorer, commit plumbing.Hash, limits TreeLimits) (*plan, error) {
	c, err := object.GetCommit(st, commit)
	if err != nil {
		return nil, fmt.Errorf("%w: commit %s: %w", errCorrupt, commit, err)
	}
	p := &plan{limits: limits, entries: map[string]entry{}, folded: map[string]string{}}
	if err := p.walk(ctx, st, c.TreeHash, "", 0); err != nil {
		return nil, err
	}
	for _, name := range p.paths {
		if e := p.entries[name]; e.mode == filemode.Symlink {
			if err := p.checkLink(name); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func (p *plan) walk(ctx context.Context, st storer.EncodedObjectStorer, tree plumbing.Hash, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reading the tree: %w", context.Cause(ctx))
	}
	if depth > p.limits.Depth {
		return &HostileTreeError{dir, fmt.Sprintf("directories are nested more than %d deep", p.limits.Depth)}
	}
	t, err := object.GetTree(st, tree)
	if errors.Is(err, object.ErrMalformedTree) {
		return &HostileTreeError{dir + "/", "the directory is malformed: " + err.Error()}
	}
	if err != nil {
		return fmt.Errorf("%w: tree %s of %q: %w", errCorrupt, tree, dir, err)
	}
	for _, e := range t.Entries {
		name := path.Join(dir, e.Name)
		if err := p.checkName(dir, e.Name); err != nil {
			return err
		}
		out := entry{mode: e.Mode, hash: e.Hash}
		switch e.Mode {
		case filemode.Dir:
			p.add(name, out)
			if err := p.walk(ctx, st, e.Hash, name, depth+1); err != nil {
				return err
			}
			continue
		case filemode.Regular, filemode.Deprecated, filemode.Executable, filemode.Symlink:
			if err := p.measure(st, name, &out); err != nil {
				return err
			}
		case filemode.Submodule:
			return &HostileTreeError{name, "submodules are not fetched: copy its files into the repository, or name it as a module of the project"}
		default:
			return &HostileTreeError{name, fmt.Sprintf("entries of mode %s are neither files, directories nor links", e.Mode)}
		}
		p.add(name, out)
	}
	return nil
}

func (p *plan) add(name string, e entry) {
	p.paths = append(p.paths, name)
	p.entries[name] = e
}

// measure notes the size of a file, and the target of a link.
func (p *plan) measure(st storer.EncodedObjectStorer, name string, e *entry) error {
	size, err := st.EncodedObjectSize(e.hash)
	if err != nil {
		return fmt.Errorf("%w: file %q: %w", errCorrupt, name, err)
	}
	e.size = size
	if e.mode == filemode.Symlink {
		if size > int64(p.limits.PathBytes) {
			return &HostileTreeError{name, fmt.Sprintf("the link is longer than %d bytes", p.limits.PathBytes)}
		}
		b, err := object.GetBlob(st, e.hash)
		if err != nil {
			return fmt.Errorf("%w: link %q: %w", errCorrupt, name, err)
		}
		r, err := b.Reader()
		if err != nil {
			return fmt.Errorf("%w: link %q: %w", errCorrupt, name, err)
		}
		text, err := io.ReadAll(io.LimitReader(r, int64(p.limits.PathBytes)+1))
		if err = errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("%w: link %q: %w", errCorrupt, name, err)
		}
		e.target = string(text)
		return nil
	}
	if size > p.limits.FileBytes {
		return &HostileTreeError{name, fmt.Sprintf("the file has %d bytes, the limit is %d", size, p.limits.FileBytes)}
	}
	if p.total += size; p.total > p.limits.TotalBytes {
		return &HostileTreeError{name, fmt.Sprintf("with this file the tree has more than %d bytes", p.limits.TotalBytes)}
	}
	return nil
}

// checkName refuses names that mean something to a file system or to git on any platform.
func (p *plan) checkName(dir, name string) error {
	full := dir + "/" + name
	if dir == "" {
		full = name
	}
	refuse := func(format string, args ...any) error { return &HostileTreeError{full, fmt.Sprintf(format, args...)} }
	switch {
	case name == "" || name == "." || name == "..":
		return refuse("it is no name")
	case strings.Contains(name, "/"):
		return refuse("a name must not contain a slash")
	case strings.Contains(name, "\\"):
		return refuse("a name must not contain a backslash")
	case !utf8.ValidString(name):
		return refuse("the name is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return refuse("the name contains control characters")
	case len(name) > 255:
		return refuse("the name is longer than 255 bytes")
	case len(full) > p.limits.PathBytes:
		return refuse("the path is longer than %d bytes", p.limits.PathBytes)
	case isDotGit(name):
		return refuse("git's own directory must not be part of a commit")
	case len(p.entries) >= p.limits.Entries:
		return refuse("the tree has more than %d entries", p.limits.Entries)
	}
	fold := strings.ToLower(full)
	if other, ok := p.folded[fold]; ok {
		if other == full {
			return refuse("the name occurs twice")
		}
		return refuse("it differs from %q only in case", other)
	}
	p.folded[fold] = full
	return nil
}

// isDotGit reports whether some file system takes a name for git's directory: in any case, with code points that HFS+
// ignores, and as NTFS abbreviates it, ends it in dots and spaces or adds a stream.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		case r == 0xff0e: // full-width full stop, which compatibility forms fold
			return '.'
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// checkLink follows a symbolic link through the tree, as a file system would, and refuses it if it ever leaves.
func (p *plan) checkLink(name string) error {
	refuse := func(why string) error {
		return &HostileTreeError{name, fmt.Sprintf("the link to %q %s", p.entries[name].target, why)}
	}
	hops := 0
	// rest are the components still to be walked, at is where the walk stands.
	at := dirOf(name)
	rest := []string{path.Base(name)}
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return refuse("leaves the tree")
			}
			at = dirOf(at)
			continue
		}
		next := path.Join(at, part)
		e, ok := p.entries[next]
		if !ok || e.mode != filemode.Symlink {
			if !ok {
				// It leads nowhere, and nothing can appear there; a later ".." still counts.
				if isDotGit(part) {
					return refuse("leads into git's directory")
				}
			}
			at = next
			continue
		}
		if hops++; hops > 40 {
			return refuse("goes round in circles")
		}
		switch {
		case e.target == "":
			return refuse("is empty")
		case strings.HasPrefix(e.target, "/"):
			return refuse("is absolute; only links inside the repository are allowed")
		case strings.ContainsAny(e.target, "\\") || strings.ContainsFunc(e.target, unicode.IsControl) || !utf8.ValidString(e.target):
			return refuse("contains a character that is not allowed")
		}
		rest = append(strings.Split(e.target, "/"), rest...)
		if len(rest) > 1024 {
			return refuse("goes round in circles")
		}
	}
	return nil
}

func dirOf(name string) string {
	if d := path.Dir(name); d != "." {
		return d
	}
	return ""
}

// write unpacks the plan into an empty directory, read-only. Links come last, so that no file is ever written through one,
// and the directory is a root that no path can leave.
func (p *plan) write(ctx context.Context, st storer.EncodedObjectStorer, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	buf := make([]byte, 64<<10)
	for i, name := range p.paths {
		if i%64 == 0 && ctx.Err() != nil {
			return fmt.Errorf("unpacking: %w", context.Cause(ctx))
		}
		e := p.entries[name]
		switch e.mode {
		case filemode.Dir:
			if err := root.Mkdir(filepath.FromSlash(name), 0o700); err != nil {
				return fmt.Errorf("unpacking: %w", err)
			}
		case filemode.Symlink:
		default:
			if err := writeFile(root, st, name, e, buf); err != nil {
				return err
			}
		}
	}
	for _, name := range p.paths {
		if e := p.entries[name]; e.mode == filemode.Symlink {
			if err := root.Symlink(filepath.FromSlash(e.target), filepath.FromSlash(name)); err != nil {
				return fmt.Errorf("unpacking: %w", err)
			}
		}
	}
	for _, name := range slices.Backward(p.paths) {
		if p.entries[name].mode == filemode.Dir {
			if err := root.Chmod(filepath.FromSlash(name), 0o555); err != nil {
				return fmt.Errorf("unpacking: %w", err)
			}
		}
	}
	return nil
}

func writeFile(root *os.Root, st storer.EncodedObjectStorer, name string, e entry, buf []byte) (err error) {
	mode := os.FileMode(0o444)
	if e.mode == filemode.Executable {
		mode = 0o555
	}
	b, err := object.GetBlob(st, e.hash)
	if err != nil {
		return fmt.Errorf("%w: file %q: %w", errCorrupt, name, err)
	}
	r, err := b.Reader()
	if err != nil {
		return fmt.Errorf("%w: file %q: %w", errCorrupt, name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	src := &blobReader{r: io.LimitReader(r, e.size+1)}
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, src, buf)
	switch {
	case src.err != nil:
		return fmt.Errorf("%w: file %q: %w", errCorrupt, name, src.err)
	case err != nil:
		return fmt.Errorf("unpacking: %w", err)
	case n != e.size:
		return fmt.Errorf("%w: file %q has %d bytes instead of %d", errCorrupt, name, n, e.size)
	}
	return nil
}

// blobReader remembers that it was the object that could not be read, and not the file that could not be written.
type blobReader struct {
	r   io.Reader
	err error
}

// Read implements [io.Reader].
func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err //nolint:wrapcheck // a Reader hands on what it wraps
}
