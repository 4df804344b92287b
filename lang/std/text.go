package std

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/value"
)

func textPlugins() []*value.Plugin {
	onText := func(name string, f func(string) string) *value.Plugin {
		return plugin(name, "string", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.String(f(text(a[0]))), nil
		}, arg("string", "string"))
	}
	return []*value.Plugin{
		onText("capitalize", value.Capitalize),
		onText("upper", value.Upper),
		onText("lower", value.Lower),
		plugin("replace", "string", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.String(strings.ReplaceAll(text(a[0]), text(a[1]), text(a[2]))), nil
		}, arg("string", "string"), arg("old", "string"), arg("new", "string")),
		plugin("limit", "string", limit, arg("string", "string"), arg("length", "int")),
		plugin("split", "list", split, arg("string_list", "string"), arg("delim", "string")),
		plugin("length", "int", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.Int(utf8.RuneCountInString(text(a[0]))), nil
		}, arg("value", "string")),
		plugin("print", "any", printMessage, arg("message", "any")),
		plugin("printf", "any", printMessage, arg("message", "any")),
		plugin("format", "string", format, arg("__string", "string"),
			value.Param{Name: "args", Type: "any", Kind: value.VarPositional}, value.Param{Name: "kwargs", Type: "any", Kind: value.VarKeyword}),
		plugin("hostname", "string", func(_ value.Context, a []value.Value) (value.Value, error) {
			name, _, _ := strings.Cut(text(a[0]), ".")
			return value.String(name), nil
		}, arg("fqdn", "string")),
		plugin("is_base64_encoded", "bool", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.Bool(isBase64(text(a[0]))), nil
		}, arg("s", "string")),
		plugin("json_loads", "any", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.ParseJSON(text(a[0]))
		}, arg("s", "string")),
		plugin("json_dumps", "string", func(_ value.Context, a []value.Value) (value.Value, error) {
			b, err := value.AppendJSON(nil, a[0], value.PythonJSON)
			return value.String(b), err
		}, arg("obj", "any")),
		{Name: "exec::in_shell", Params: []value.Param{arg("command", "string")}, Returns: "string", Call: inShell},
	}
}

func limit(_ value.Context, a []value.Value) (value.Value, error) {
	runes := []rune(text(a[0]))
	n, err := integer(a[1])
	if err != nil {
		return a[0], nil //nolint:nilerr // longer than any text
	}
	if n < 0 {
		n = max(0, len(runes)+n)
	}
	return value.String(runes[:min(n, len(runes))]), nil
}

func split(_ value.Context, a []value.Value) (value.Value, error) {
	if text(a[1]) == "" {
		return nil, errors.New("empty separator")
	}
	list := &value.List{}
	for part := range strings.SplitSeq(text(a[0]), text(a[1])) {
		list.Items = append(list.Items, value.String(part))
	}
	return list, nil
}

func printMessage(c value.Context, a []value.Value) (value.Value, error) {
	_, err := fmt.Fprintln(c.Stdout(), value.PrintForm(a[0]))
	return value.Null{}, err
}

// isBase64 is what Python's b64decode with validation accepts: characters of the alphabet, then padding that completes the
// last group of four.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && !strings.ContainsAny(s, "\r\n")
}

// inShell makes a command that runs another one in a shell.
func inShell(_ value.Context, a []value.Value) (value.Value, error) {
	return value.String("sh -c " + quoteArgument(text(a[0]))), nil
}

// quoteArgument quotes an argument by the rules that Python's subprocess.list2cmdline follows.
func quoteArgument(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"") && !strings.Contains(s, `\"`) {
		return s
	}
	quote := s == "" || strings.ContainsAny(s, " \t")
	var b strings.Builder
	if quote {
		b.WriteByte('"')
	}
	slashes := 0
	for i := range len(s) {
		switch s[i] {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, 2*slashes+1))
			b.WriteByte('"')
			slashes = 0
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
			b.WriteByte(s[i])
			slashes = 0
		}
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	if quote {
		b.WriteString(strings.Repeat(`\`, slashes))
		b.WriteByte('"')
	}
	return b.String()
}

// formatter carries out Python's str.format.
type formatter struct {
	args   []value.Value
	kwargs *value.Dict
	next   int
	manual bool
	auto   bool
}

func format(_ value.Context, a []value.Value) (value.Value, error) {
	kwargs, _ := a[2].(*value.Dict)
	if kwargs == nil {
		kwargs = &value.Dict{}
	}
	f := &formatter{args: items(a[1]), kwargs: kwargs}
	s, err := f.run(text(a[0]), 2)
	return value.String(s), err
}

func (f *formatter) run(s string, depth int) (string, error) {
	if depth < 0 {
		return "", errors.New("Max string recursion exceeded")
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		c := s[i]
		if i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			s = s[i+2:]
			continue
		}
		if c == '}' {
			return "", errors.New("Single '}' encountered in format string")
		}
		field, rest, ok := cutField(s[i+1:])
		if !ok {
			if s[i+1:] == "" {
				return "", errors.New("Single '{' encountered in format string")
			}
			return "", errors.New("expected '}' before end of string")
		}
		one, err := f.field(field, depth)
		if err != nil {
			return "", err
		}
		b.WriteString(one)
		s = rest
	}
	return b.String(), nil
}

// cutField splits s at the brace that ends the field at its start. Braces within square brackets belong to the key.
func cutField(s string) (field, rest string, ok bool) {
	depth, bracket := 1, false
	for i := range len(s) {
		switch s[i] {
		case '[':
			bracket = true
		case ']':
			bracket = false
		case '{':
			depth++
		case '}':
			if bracket && strings.Contains(s[i:], "]") {
				continue
			}
			if depth--; depth == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

func (f *formatter) field(field string, depth int) (string, error) {
	name, conv, spec := field, byte(0), ""
	bracket := false
	for i := range len(field) {
		if field[i] == '[' {
			bracket = true
		} else if field[i] == ']' {
			bracket = false
		}
		if bracket || field[i] != '!' && field[i] != ':' {
			continue
		}
		name = field[:i]
		rest := field[i:]
		if rest[0] == '!' {
			switch {
			case len(rest) < 2:
				return "", errors.New("unmatched '{' in format spec")
			case len(rest) > 2 && rest[2] != ':':
				return "", errors.New("expected ':' after conversion specifier")
			}
			conv = rest[1]
			rest = rest[2:]
		}
		spec = strings.TrimPrefix(rest, ":")
		break
	}
	v, err := f.lookup(name)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(spec, "{}") {
		if spec, err = f.run(spec, depth-1); err != nil {
			return "", err
		}
	}
	switch x := v.(type) {
	case *value.List, *value.Dict, value.Instance, value.Null:
		shown := value.String(value.PrintForm(x))
		switch {
		case conv != 0:
			return value.FormatSpec(shown, 's', spec)
		case spec == "":
			return string(shown), nil
		}
		return "", errors.New("unsupported format string passed to " + value.TypeName(v) + ".__format__")
	}
	return value.FormatSpec(v, conv, spec)
}

// lookup finds the value of a field name: an argument, then attributes and keys.
func (f *formatter) lookup(name string) (value.Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := f.argument(name[:end])
	if err != nil {
		return nil, err
	}
	for rest := name[end:]; rest != ""; {
		if v, err = known(v); err != nil {
			return nil, err
		}
		if rest[0] == '.' {
			stop := strings.IndexAny(rest[1:], ".[") + 1
			if stop == 0 {
				stop = len(rest)
			}
			if stop == 1 {
				return nil, errors.New("Empty attribute in format string")
			}
			if v, err = attribute(v, rest[1:stop]); err != nil {
				return nil, err
			}
			rest = rest[stop:]
			continue
		}
		stop := strings.IndexByte(rest, ']')
		switch {
		case rest[0] != '[':
			return nil, errors.New("Only '.' or '[' may follow ']' in format field specifier")
		case stop < 0:
			return nil, errors.New("Missing ']' in format string")
		case stop == 1:
			return nil, errors.New("Empty attribute in format string")
		}
		if v, err = element(v, rest[1:stop]); err != nil {
			return nil, err
		}
		rest = rest[stop+1:]
	}
	return known(v)
}

func (f *formatter) argument(name string) (value.Value, error) {
	index, err := strconv.Atoi(name)
	switch {
	case name == "":
		if f.manual {
			return nil, errors.New("cannot switch from manual field specification to automatic field numbering")
		}
		f.auto = true
		index = f.next
		f.next++
	case err != nil || index < 0:
		v, ok := f.kwargs.Get(name)
		if !ok {
			return nil, errors.New(value.StringRepr(name))
		}
		return v, nil
	default:
		if f.auto {
			return nil, errors.New("cannot switch from automatic field numbering to manual field specification")
		}
		f.manual = true
	}
	if index >= len(f.args) {
		return nil, fmt.Errorf("Replacement index %d out of range for positional args tuple", index)
	}
	return f.args[index], nil
}

// element reads v[key].
func element(v value.Value, key string) (value.Value, error) {
	switch x := v.(type) {
	case *value.Dict:
		if e, ok := x.Get(key); ok {
			return e, nil
		}
		return nil, errors.New(value.StringRepr(key))
	case *value.List:
		index, err := strconv.Atoi(key)
		if err != nil {
			return nil, errors.New("list indices must be integers or slices, not str")
		}
		if index, err = position(index, len(x.Items)); err != nil {
			return nil, err
		}
		return x.Items[index], nil
	}
	return nil, fmt.Errorf("'%s' object is not subscriptable", value.TypeName(v))
}
