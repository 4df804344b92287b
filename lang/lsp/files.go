package lsp

import (
	"bytes"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// pathOf is the file that a URI stands for, with forward slashes; ok is false for another kind of URI.
func pathOf(uri string) (name string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || strings.Contains(u.Path, "\x00") {
		return "", false
	}
	return path.Clean(u.Path), true
}

// uriOf is the URI of a file.
func uriOf(name string) string { return (&url.URL{Scheme: "file", Path: name}).String() }

// overlay is a tree with the texts of open documents in place of its files.
type overlay struct {
	fs.FS
	texts map[string][]byte // by name in the tree
}

var (
	_ fs.ReadDirFS  = overlay{}
	_ fs.ReadFileFS = overlay{}
	_ fs.StatFS     = overlay{}
)

// Open opens a file or a directory.
func (o overlay) Open(name string) (fs.File, error) {
	if text, ok := o.texts[name]; ok {
		return &memoryFile{Reader: bytes.NewReader(text), info: memoryInfo{path.Base(name), int64(len(text))}}, nil
	}
	return o.FS.Open(name)
}

// ReadFile reads a whole file.
func (o overlay) ReadFile(name string) ([]byte, error) {
	if text, ok := o.texts[name]; ok {
		return bytes.Clone(text), nil
	}
	return fs.ReadFile(o.FS, name)
}

// Stat describes a file.
func (o overlay) Stat(name string) (fs.FileInfo, error) {
	if text, ok := o.texts[name]; ok {
		return memoryInfo{path.Base(name), int64(len(text))}, nil
	}
	return fs.Stat(o.FS, name)
}

// ReadDir lists a directory, with documents that have not been saved yet.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, name)
	for doc, text := range o.texts {
		if path.Dir(doc) != name {
			continue
		}
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(doc) }) {
			entries = append(entries, fs.FileInfoToDirEntry(memoryInfo{path.Base(doc), int64(len(text))}))
			err = nil
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// memoryFile is an open file in memory.
type memoryFile struct {
	*bytes.Reader
	info memoryInfo
}

var _ io.ReadSeeker = (*memoryFile)(nil)

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

// memoryInfo describes a file in memory.
type memoryInfo struct {
	name string
	size int64
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return 0o444 }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return false }
func (i memoryInfo) Sys() any           { return nil }

// mounted is a tree made of a few files in memory and of another tree at one directory: the project that a module alone makes.
type mounted struct {
	overlay
	dir  string // where tree is
	tree fs.FS
}

func newMounted(files map[string][]byte, dir string, tree fs.FS) fs.FS {
	return mounted{overlay{emptyFS{}, files}, dir, tree}
}

// within is the name in the other tree.
func (m mounted) within(name string) (string, bool) {
	if name == m.dir {
		return ".", true
	}
	return strings.CutPrefix(name, m.dir+"/")
}

// Open opens a file or a directory.
func (m mounted) Open(name string) (fs.File, error) {
	if rel, ok := m.within(name); ok {
		return m.tree.Open(rel)
	}
	return m.overlay.Open(name)
}

// ReadFile reads a whole file.
func (m mounted) ReadFile(name string) ([]byte, error) {
	if rel, ok := m.within(name); ok {
		return fs.ReadFile(m.tree, rel)
	}
	return m.overlay.ReadFile(name)
}

// Stat describes a file.
func (m mounted) Stat(name string) (fs.FileInfo, error) {
	if rel, ok := m.within(name); ok {
		return fs.Stat(m.tree, rel)
	}
	return m.overlay.Stat(name)
}

// ReadDir lists a directory.
func (m mounted) ReadDir(name string) ([]fs.DirEntry, error) {
	if rel, ok := m.within(name); ok {
		return fs.ReadDir(m.tree, rel)
	}
	switch name {
	case ".":
		entries, err := m.overlay.ReadDir(name)
		return append(entries, dirEntry(path.Dir(m.dir))), err
	case path.Dir(m.dir):
		return []fs.DirEntry{dirEntry(path.Base(m.dir))}, nil
	}
	return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
}

// dirEntry is a directory of a mounted tree.
type dirEntry string

func (d dirEntry) Name() string               { return string(d) }
func (d dirEntry) IsDir() bool                { return true }
func (d dirEntry) Type() fs.FileMode          { return fs.ModeDir }
func (d dirEntry) Info() (fs.FileInfo, error) { return dirInfo{memoryInfo{name: string(d)}}, nil }

type dirInfo struct{ memoryInfo }

func (d dirInfo) Mode() fs.FileMode { return fs.ModeDir | 0o555 }
func (d dirInfo) IsDir() bool       { return true }

// emptyFS has no files.
type emptyFS struct{}

func (emptyFS) Open(name string) (fs.File, error) {
	if name == "." {
		return &emptyDir{}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

type emptyDir struct{}

func (*emptyDir) Stat() (fs.FileInfo, error)         { return dirInfo{memoryInfo{name: "."}}, nil }
func (*emptyDir) Read([]byte) (int, error)           { return 0, io.EOF }
func (*emptyDir) Close() error                       { return nil }
func (*emptyDir) ReadDir(int) ([]fs.DirEntry, error) { return nil, io.EOF }
