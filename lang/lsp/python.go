package lsp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lang/xref"
	"github.com/intendant/intendant/lazyregexp"
)

// The limits of the search for plugins.
const (
	maxPluginFile  = 4 << 20
	maxPluginFiles = 2000
)

// signatures reads what the Python plugins of modules are called and take, from their text: an editor must not run the code of
// what it shows.
type signatures struct {
	found []xref.Plugin
}

var _ lang.Plugins = (*signatures)(nil)

// Load finds the plugins of all modules.
func (s *signatures) Load(_ context.Context, p *module.Program) (lang.Extension, diag.List, error) {
	var ext lang.Extension
	s.found = nil
	loaded := map[string]bool{}
	for _, f := range p.Files {
		loaded[f.Namespace] = true
	}
	for _, m := range p.Modules {
		if m.Plugins == "" || m.Layout == module.LayoutBuiltin || m.Layout == module.LayoutProject {
			continue
		}
		for _, pl := range modulePlugins(m) {
			space, _ := cutName(pl.Name)
			if loaded[space] {
				s.found = append(s.found, pl)
				ext.Plugins = append(ext.Plugins, pl.Plugin)
			}
		}
	}
	return ext, nil, nil
}

func cutName(name string) (space, base string) {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		return name[:i], name[i+2:]
	}
	return "", name
}

func modulePlugins(m *module.Module) []xref.Plugin {
	var out []xref.Plugin
	files := 0
	_ = fs.WalkDir(m.Root, m.Plugins, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can not be read has no plugins to show
		case d.IsDir() && name != m.Plugins && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__" || d.Name() == "model" || d.Name() == "files" || d.Name() == "templates"):
			return fs.SkipDir
		case files >= maxPluginFiles:
			return fs.SkipAll
		case path.Ext(name) != ".py":
			return nil
		}
		files++
		info, err := d.Info()
		if err != nil || info.Size() > maxPluginFile {
			return nil //nolint:nilerr // see above
		}
		text, err := fs.ReadFile(m.Root, name)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		rel := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, m.Plugins), "/"), ".py")
		space := m.Name
		if rel = strings.TrimSuffix(rel, "__init__"); rel != "" {
			space += "::" + strings.ReplaceAll(strings.TrimSuffix(rel, "/"), "/", "::")
		}
		out = append(out, pythonPlugins(space, path.Join(m.Dir, name), string(text))...)
		return nil
	})
	return out
}

var (
	decorator    = lazyregexp.New(`(?m)^@(?:[\w.]+\.)?plugin\b`)
	functionHead = lazyregexp.New(`^(?:async\s+)?def\s+(\w+)\s*\(`)
	given        = lazyregexp.New(`^\(\s*(?:name\s*=\s*)?["']([\w]+)["']`)
	docstring    = lazyregexp.New(`^\s*[rR]?("""(?s:(.*?))"""|'''(?s:(.*?))''')`)
	returning    = lazyregexp.New(`^\s*->\s*`)
)

// pythonPlugins finds the functions with the decorator plugin in a Python source file.
func pythonPlugins(space, file, text string) []xref.Plugin {
	var out []xref.Plugin
	for _, at := range decorator().FindAllStringIndex(text, -1) {
		rest := text[at[1]:]
		name := ""
		if strings.HasPrefix(rest, "(") {
			if m := given().FindStringSubmatch(rest); m != nil {
				name = m[1]
			}
			_, n := parenthesised(rest)
			rest = rest[n:]
		}
		// Other decorators and comments may stand between.
		for {
			i := strings.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			if line := strings.TrimSpace(rest); !strings.HasPrefix(line, "@") && !strings.HasPrefix(line, "#") {
				break
			}
		}
		m := functionHead().FindStringSubmatchIndex(rest)
		if m == nil {
			continue
		}
		function := rest[m[2]:m[3]]
		place := len(text) - len(rest) + m[2]
		p := xref.Plugin{
			Plugin: &value.Plugin{Call: notRun}, File: file,
			Line: 1 + strings.Count(text[:place], "\n"), Column: place - strings.LastIndexByte(text[:place], '\n'),
		}
		if name == "" {
			name = function
		}
		p.Name = space + "::" + name
		params, n := parenthesised(rest[m[1]-1:])
		p.Params = pythonParams(params)
		rest = rest[m[1]-1+n:]
		if r := returning().FindString(rest); r != "" {
			rest = rest[len(r):]
			end := topLevel(rest, ':')
			p.Returns = pythonType(rest[:end])
			rest = rest[end:]
		}
		if _, body, ok := strings.Cut(rest, ":"); ok {
			if d := docstring().FindStringSubmatch(body); d != nil {
				p.Doc = strings.TrimSpace(xref.Dedent(d[2] + d[3]))
			}
		}
		out = append(out, p)
	}
	return out
}

// notRun is what plugins read from their text do when called, which a check never does.
func notRun(value.Context, []value.Value) (value.Value, error) {
	return nil, errors.New("plugins are not run in an editor")
}

// parenthesised is the text in the parenthesis that s starts with, and the number of bytes up to behind its end.
func parenthesised(s string) (inner string, n int) {
	depth := 0
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			if j := strings.IndexByte(s[i:], '\n'); j >= 0 {
				i += j
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth--; depth == 0 {
				return s[1:i], i + 1
			}
		}
	}
	return strings.TrimPrefix(s, "("), len(s)
}

// topLevel is the offset of a character outside brackets and strings; the length of s when there is none.
func topLevel(s string, sep byte) int {
	depth := 0
	quote := byte(0)
	for i := range len(s) {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == sep && depth == 0:
			return i
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return len(s)
}

// pythonParams reads the parameters of a function, without the context.
func pythonParams(text string) []value.Param {
	var out []value.Param
	kind := value.PositionalOrKeyword
	for text != "" {
		end := topLevel(text, ',')
		one := strings.TrimSpace(text[:end])
		text = text[min(end+1, len(text)):]
		if i := strings.LastIndexByte(one, '\n'); i >= 0 && strings.HasPrefix(one, "#") {
			one = strings.TrimSpace(one[i:])
		}
		p := value.Param{Kind: kind}
		switch {
		case one == "" || one == "/":
			continue
		case one == "*":
			kind = value.KeywordOnly
			continue
		case strings.HasPrefix(one, "**"):
			p.Kind, one = value.VarKeyword, one[2:]
		case strings.HasPrefix(one, "*"):
			p.Kind, one = value.VarPositional, one[1:]
			kind = value.KeywordOnly
		}
		if i := topLevel(one, '='); i < len(one) {
			p.Default = pythonDefault(strings.TrimSpace(one[i+1:]))
			one = one[:i]
		}
		name, typ, _ := strings.Cut(one, ":")
		p.Name, p.Type = strings.TrimSpace(name), pythonType(typ)
		if annotation := strings.Trim(strings.TrimSpace(typ), `"'`); annotation == "Context" || strings.HasSuffix(annotation, ".Context") {
			continue
		}
		out = append(out, p)
	}
	return out
}

// pythonDefault is a default value, as far as it is plain.
func pythonDefault(text string) value.Value {
	switch text {
	case "None":
		return value.Null{}
	case "True":
		return value.Bool(true)
	case "False":
		return value.Bool(false)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value.Int(n)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return value.Float(n)
	}
	if s := strings.Trim(text, `"'`); len(s) == len(text)-2 {
		return value.String(s)
	}
	return value.Null{}
}

// modelType matches the types of a model that Python's annotations spell as text.
var modelType = lazyregexp.New(`^[A-Za-z_][\w:]*(\[\])?\??$`)

// pythonType is the type that an annotation stands for: text is a type of the model, and of Python's own types the plain ones
// have one. All others are any.
func pythonType(annotation string) string {
	annotation = strings.TrimSpace(annotation)
	if inner := strings.Trim(annotation, `"'`); len(inner) == len(annotation)-2 && modelType().MatchString(inner) {
		return inner
	}
	switch annotation {
	case "str":
		return "string"
	case "int", "float", "bool", "list", "dict":
		return annotation
	}
	return "any"
}
