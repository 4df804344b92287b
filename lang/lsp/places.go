package lsp

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
)

// place is a tree in which a project finds modules: one outside of it, or the checkout of a module in the layout V2 within it.
type place struct {
	// name is the path of the tree in diagnostics, disk its directory on this machine, with forward slashes.
	name, disk string
	tree       fs.FS
	// module is the name of a module in the layout V1; empty for others.
	module string
	// installed says that nobody edits the files: it is a directory of packages, or a copy in a cache.
	installed bool
}

// newPlaces describes where the modules of a project are.
func newPlaces(root string, sites []module.Site, fetched []module.Place) []place {
	var out []place
	seen := map[string]bool{}
	add := func(p place) {
		if p.disk == "" {
			return // its files can not be shown
		}
		if seen[p.name] {
			p.name = p.disk
		}
		seen[p.name] = true
		p.installed = !strings.HasPrefix(p.disk, root+"/") || !isFile(p.tree, "pyproject.toml") && !isFile(p.tree, "setup.cfg") && !isFile(p.tree, "module.yml")
		out = append(out, p)
	}
	for _, s := range sites {
		add(place{name: s.Name, disk: path.Clean(s.Disk), tree: s.FS})
	}
	for _, f := range fetched {
		add(place{name: f.Dir, disk: path.Clean(f.Disk), tree: f.FS, module: f.Name})
	}
	return out
}

func isFile(tree fs.FS, name string) bool {
	info, err := fs.Stat(tree, name)
	return err == nil && !info.IsDir()
}

// placed are the places of the project's modules.
func (p *project) placed() []place {
	if list := p.places.Load(); list != nil {
		return *list
	}
	return nil
}

// path is the file of the machine that a name in diagnostics stands for; empty when it is none, such as a built-in one.
func (p *project) path(name string) string {
	for _, pl := range p.placed() {
		if rel, ok := strings.CutPrefix(name, pl.name+"/"); ok {
			return path.Join(pl.disk, rel)
		}
	}
	switch {
	case strings.HasPrefix(name, "{"):
		return ""
	case path.IsAbs(name):
		return name
	}
	switch p.kind {
	case moduleV1:
		rel, ok := strings.CutPrefix(name, path.Join(v1Mount, p.module)+"/")
		if !ok {
			return ""
		}
		return path.Join(p.root, rel)
	case moduleV2:
		return ""
	default:
		return path.Join(p.root, name)
	}
}

// name is the name in diagnostics of a file of the machine.
func (p *project) name(file string) string {
	best, name := 0, ""
	for _, pl := range p.placed() {
		if rel, ok := strings.CutPrefix(file, pl.disk+"/"); ok && len(pl.disk) > best {
			best, name = len(pl.disk), path.Join(pl.name, rel)
		}
	}
	if best > len(p.root) {
		return name
	}
	rel, ok := strings.CutPrefix(file, p.root+"/")
	switch {
	case !ok || p.kind == moduleV2:
		return file
	case p.kind == moduleV1:
		return path.Join(v1Mount, p.module, rel)
	}
	return rel
}

// trees are the places of modules with the texts of documents, by the paths of their files.
func (p *project) trees(texts map[string][]byte) (sites []module.Site, fetched []module.Place) {
	for _, pl := range p.placed() {
		within := map[string][]byte{}
		for file, text := range texts {
			if rel, ok := strings.CutPrefix(file, pl.disk+"/"); ok {
				within[rel] = text
			}
		}
		tree := overlay{pl.tree, within}
		if pl.module != "" {
			fetched = append(fetched, module.Place{Name: pl.module, Dir: pl.name, FS: tree, Disk: pl.disk})
		} else {
			sites = append(sites, module.Site{Name: pl.name, FS: tree, Disk: pl.disk})
		}
	}
	return sites, fetched
}

// installed reports whether a file, by its name in diagnostics, belongs to a module that nobody edits here.
func (p *project) installed(name string) bool {
	for _, pl := range p.placed() {
		if strings.HasPrefix(name, pl.name+"/") {
			return pl.installed
		}
	}
	return false
}

// maxNeighbours bounds the modules beside one that is opened alone.
const maxNeighbours = 200

var importLine = lazyregexp.New(`(?m)^[ \t]*import[ \t]+(\w+)`)

// neighbours are the checkouts beside that of a module which it imports, and those that they import: who works on a module
// usually has those that it needs in the same directory.
func (s *Server) neighbours(p *project) (sites []module.Site, fetched []module.Place) {
	seen := map[string]bool{p.module: true, module.Std: true}
	for queue := []fs.FS{p.tree}; len(queue) > 0 && len(seen) < maxNeighbours; queue = queue[1:] {
		for _, name := range importsOf(queue[0]) {
			if seen[name] {
				continue
			}
			seen[name] = true
			for _, base := range []string{name, "inmanta-module-" + strings.ReplaceAll(name, "_", "-")} {
				dir := path.Join(path.Dir(p.root), base)
				v1, v2 := s.exists(path.Join(dir, "module.yml")), s.exists(path.Join(dir, "inmanta_plugins", name))
				if !v1 && !v2 {
					continue
				}
				tree, err := s.cfg.Open(dir)
				if err != nil {
					s.log.Warn("a module can not be opened", "directory", dir, "error", err)
					continue
				}
				if v2 {
					sites = append(sites, module.Site{Name: dir, FS: tree, Disk: dir})
				} else {
					fetched = append(fetched, module.Place{Name: name, Dir: dir, FS: tree, Disk: dir})
				}
				queue = append(queue, tree)
				break
			}
		}
	}
	return sites, fetched
}

// importsOf are the modules that the models of a module import, each once.
func importsOf(tree fs.FS) []string {
	var out []string
	files := 0
	_ = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || files > maxPluginFiles:
			return nil //nolint:nilerr // what can not be read imports nothing
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case path.Ext(name) != ".cf" || !d.Type().IsRegular():
			return nil
		}
		files++
		info, err := d.Info()
		if err != nil || info.Size() > maxSourceFile {
			return nil //nolint:nilerr // see above
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		for _, m := range importLine().FindAllSubmatch(text, -1) {
			if !slices.Contains(out, string(m[1])) {
				out = append(out, string(m[1]))
			}
		}
		return nil
	})
	return out
}
