package lang

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" // the file storage addresses contents by SHA-1
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// Inputs are what a model may ask for besides its files.
type Inputs struct {
	// Environment names the environment that is compiled for; both may be empty.
	Environment struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"environment"`
	// Facts are by <resource id>/<fact>.
	Facts map[string]string `json:"facts"`
	// Parameters are by name.
	Parameters map[string]string `json:"parameters"`
	// Settings are by name (see [value.InputKind]); the settings about the environment come from Environment.
	Settings map[string]string `json:"settings"`
	// Seed decides what random values are.
	Seed string `json:"seed"`
	// Env reads an environment variable; nil means that there are none.
	Env func(name string) (string, bool) `json:"-"`
}

// InputUse is an input that a model read.
type InputUse struct {
	Kind value.InputKind `json:"kind"`
	Name string          `json:"name"`
	// Value is what it got; empty when Found is false.
	Value string `json:"value"`
	Found bool   `json:"found"`
}

// host lends a model what it may see of the world, and notes what it took.
type host struct {
	c         *compilation
	stdout    io.Writer
	plugins   []*value.Plugin
	builtin   map[*value.Plugin]bool
	byName    map[string]*value.Plugin
	resources map[string]*ResourceType
	order     []*ResourceType
	uses      map[string]InputUse
	unknowns  []model.UnknownParameter
	awaited   map[model.UnknownParameter]bool
	files     map[string][]byte
}

var _ eval.Host = (*host)(nil)

func newHost(c *compilation, ext Extension) *host {
	h := &host{
		c: c, stdout: c.opts.Stdout, plugins: ext.Plugins, builtin: map[*value.Plugin]bool{}, byName: map[string]*value.Plugin{},
		resources: map[string]*ResourceType{}, uses: map[string]InputUse{}, awaited: map[model.UnknownParameter]bool{},
		files: map[string][]byte{},
	}
	if h.stdout == nil {
		h.stdout = io.Discard
	}
	for _, p := range ext.Plugins {
		h.byName[p.Name] = p
		h.builtin[p] = slices.Contains(c.ours, p)
	}
	for i := range ext.Resources {
		r := &ext.Resources[i]
		h.resources[r.Entity] = r
		h.order = append(h.order, r)
	}
	return h
}

func (h *host) Stdout() io.Writer { return h.stdout }

func (h *host) Plugin(name string) (*value.Plugin, bool) {
	p, ok := h.byName[name]
	return p, ok
}

// locate finds a file or directory of a module: the name is module/relative, ./relative for the module of the namespace, or
// /relative for the project.
func (h *host) locate(namespace, dir, name string) (fs.FS, string, error) {
	modName, rel, _ := strings.Cut(name, "/")
	switch modName {
	case ".":
		modName, _, _ = strings.Cut(namespace, "::")
	case "":
		modName = module.Main
	}
	m := h.c.loaded.Module(modName)
	if m == nil {
		return nil, "", &missingFileError{fmt.Sprintf("Module %s does not exist for path %s", modName, name)}
	}
	clean := path.Join(dir, rel)
	if !fs.ValidPath(clean) || clean != dir && !strings.HasPrefix(clean, dir+"/") {
		return nil, "", fmt.Errorf("the path %s leads out of the directory %s of the module %s", name, dir, modName)
	}
	return m.Root, clean, nil
}

func (h *host) ReadFile(namespace, dir, name string) ([]byte, error) {
	root, file, err := h.locate(namespace, dir, name)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(root, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &missingFileError{fmt.Sprintf("%s does not contain %s: %s", dir, name, reason(err))}
	case err != nil:
		return nil, fmt.Errorf("%s does not contain %s: %s", dir, name, reason(err))
	}
	return text, nil
}

// missingFileError says that a file of a module does not exist. It is an [fs.ErrNotExist].
type missingFileError struct{ text string }

func (e *missingFileError) Error() string        { return e.text }
func (e *missingFileError) Is(target error) bool { return target == fs.ErrNotExist }

func (h *host) ListFiles(namespace, dir, name string) ([]string, error) {
	root, d, err := h.locate(namespace, dir, name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root, d)
	if err != nil {
		return nil, fmt.Errorf("%s does not contain the directory %s: %s", dir, name, reason(err))
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// reason is why a file could not be read, without the path on this machine.
func reason(err error) string {
	var pe *fs.PathError
	for e := err; e != nil; {
		if p, ok := e.(*fs.PathError); ok { //nolint:errorlint // the chain is walked here
			pe, e = p, p.Err
			continue
		}
		return e.Error()
	}
	if pe != nil {
		return pe.Err.Error()
	}
	return ""
}

func (h *host) Input(kind value.InputKind, name string) (string, bool) {
	v, ok := h.input(kind, name)
	h.uses[string(kind)+"\x00"+name] = InputUse{Kind: kind, Name: name, Value: v, Found: ok}
	return v, ok
}

func (h *host) input(kind value.InputKind, name string) (v string, ok bool) {
	in := &h.c.opts.Inputs
	switch kind {
	case value.InputFact:
		v, ok = in.Facts[name]
	case value.InputParameter:
		v, ok = in.Parameters[name]
	case value.InputEnv:
		if in.Env != nil {
			return in.Env(name)
		}
	case value.InputSetting:
		switch {
		case name == "environment-id" && in.Environment.ID != "":
			return in.Environment.ID, true
		case name == "environment-name" && in.Environment.Name != "":
			return in.Environment.Name, true
		}
		v, ok = in.Settings[name]
	}
	return v, ok
}

// Await records that the compile needs an input that is not there yet. Each call gives an Unknown of its own, as the language has
// it: two of them are different values even if they await the same.
func (h *host) Await(kind value.InputKind, name, resource string) *value.Unknown {
	p := model.UnknownParameter{Name: name, Resource: resource, Source: string(kind)}
	if !h.awaited[p] {
		h.awaited[p] = true
		h.unknowns = append(h.unknowns, p)
	}
	return &value.Unknown{Source: name}
}

func (h *host) AddFile(content []byte) string {
	sum := sha1.Sum(content)
	hash := hex.EncodeToString(sum[:])
	if _, ok := h.files[hash]; !ok {
		h.files[hash] = slices.Clone(content)
	}
	return hash
}

func (h *host) Random(purpose string, n int) []byte {
	mac := hmac.New(sha256.New, []byte(h.c.opts.Inputs.Seed))
	out := make([]byte, 0, n+sha256.Size)
	for i := uint64(0); len(out) < n; i++ {
		mac.Reset()
		mac.Write(binary.BigEndian.AppendUint64([]byte(purpose+"\x00"), i))
		out = mac.Sum(out)
	}
	return out[:n]
}

func (h *host) used() []InputUse {
	out := make([]InputUse, 0, len(h.uses))
	for _, u := range h.uses {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b InputUse) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}
