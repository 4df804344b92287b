// Package std holds the standard modules that are part of the program: std, exec and fs. Their models are embedded files, their
// plugins are Go functions.
//
// The module std exists in two extents. The present one has types, plugins and the entities of hosts. The classic one has the
// resources besides that older models use (std::File, std::Service, std::Package, ...), which add relations to std::Host.
// [Modules] chooses by the names that a project mentions.
package std

import (
	"bytes"
	"embed"
	"io/fs"
	"slices"
	"time"
)

//go:embed all:modules
var embedded embed.FS

//go:embed classic.cf
var classic []byte

// classicNames are the names that only the classic extent of the module std has.
var classicNames = []string{
	"File", "ConfigFile", "Content", "Directory", "DefaultDirectory", "Symlink", "Service", "Package", "Packages", "Reload", "MutableNumber",
	"service_state", "package_state", "reload",
}

// ClassicNames are the names that only the classic extent of std has.
func ClassicNames() []string { return slices.Clone(classicNames) }

// UsesClassic reports whether the text of a model mentions a name that only the classic extent of std has.
func UsesClassic(source []byte) bool {
	for {
		before, after, found := bytes.Cut(source, []byte("std::"))
		if !found {
			return false
		}
		end := 0
		for end < len(after) && isWord(after[end]) {
			end++
		}
		if (len(before) == 0 || !isWord(before[len(before)-1])) && slices.Contains(classicNames, string(after[:end])) {
			return true
		}
		source = after
	}
}

// isWord reports whether a byte may be part of a name.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// Modules gives the embedded modules by name, each as the tree of a module directory (module.yml, model, templates). sources
// are the texts of all models of the project and its modules: std has the classic resources if one of them mentions one, or if
// no text is given.
func Modules(sources ...[]byte) map[string]fs.FS {
	whole := len(sources) == 0
	for _, s := range sources {
		whole = whole || UsesClassic(s)
	}
	modules := make(map[string]fs.FS)
	for _, name := range []string{"std", "exec", "fs"} {
		sub, err := fs.Sub(embedded, "modules/"+name)
		if err != nil {
			panic(err) // the names are constants
		}
		modules[name] = sub
	}
	if whole {
		const main = "model/_init.cf"
		base, err := fs.ReadFile(modules["std"], main)
		if err != nil {
			panic(err) // the file is embedded
		}
		modules["std"] = extended{FS: modules["std"], name: main, data: append(append(base, '\n'), classic...)}
	}
	return modules
}

// extended is a file system with one file replaced.
type extended struct {
	fs.FS
	name string
	data []byte
}

// Open opens a file; the replaced one is read from memory.
func (e extended) Open(name string) (fs.File, error) {
	if name == e.name {
		return &memoryFile{Reader: bytes.NewReader(e.data), size: int64(len(e.data))}, nil
	}
	return e.FS.Open(name)
}

// ReadFile reads a whole file.
func (e extended) ReadFile(name string) ([]byte, error) {
	if name == e.name {
		return bytes.Clone(e.data), nil
	}
	return fs.ReadFile(e.FS, name)
}

// ReadDir lists a directory.
func (e extended) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(e.FS, name) }

// memoryFile is an open file in memory and its own description.
type memoryFile struct {
	*bytes.Reader
	size int64
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *memoryFile) Close() error               { return nil }
func (f *memoryFile) Name() string               { return "_init.cf" }
func (f *memoryFile) Size() int64                { return f.size }
func (f *memoryFile) Mode() fs.FileMode          { return 0o444 }
func (f *memoryFile) ModTime() time.Time         { return time.Time{} }
func (f *memoryFile) IsDir() bool                { return false }
func (f *memoryFile) Sys() any                   { return nil }

var (
	_ fs.ReadFileFS = extended{}
	_ fs.ReadDirFS  = extended{}
)
