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
			return replace(text(a[0]), text(a[1]), text(a[2]))
		}, arg("string", "string"), arg("old", "string"), arg("new", "string")),
		plugin("limit", "string", limit, arg("string", "string"), arg("length", "int")),
		plugin("split", "list", split, arg("string_list", "string"), arg("delim", "string")),
		plugin("length", "int", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.Int(utf8.RuneCountInString(text(a[0]))), nil
		}, arg("value", "string")),
		plugin("print", "any", printMessage, arg("message", anyOrReference)),
		plugin("printf", "any", printMessage, arg("message", anyOrReference)),
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

// format is Python's str.format.
func format(_ value.Context, a []value.Value) (value.Value, error) {
	args, kwargs := items(a[1]), value.NewDict(0)
	if d, ok := a[2].(*value.Dict); ok {
		kwargs = d
	}
	s, err := value.FormatText(text(a[0]), func(name string, index int) (value.Value, error) {
		if name != "" {
			v, ok := kwargs.Get(name)
			if !ok {
				return nil, errors.New(value.StringRepr(name))
			}
			return known(v)
		}
		if index >= len(args) {
			return nil, value.IndexRange(index)
		}
		return known(args[index])
	}, func(v value.Value, name string, item bool) (value.Value, error) {
		next, err := attributeOrElement(v, name, item)
		if err != nil {
			return nil, err
		}
		return known(next)
	}, formatValue)
	return value.String(s), err
}

func attributeOrElement(v value.Value, name string, item bool) (value.Value, error) {
	if item {
		return element(v, name)
	}
	return attribute(v, name)
}

// formatValue formats a value as a plugin in Python sees it.
func formatValue(v value.Value, conv byte, spec string) (string, error) {
	switch v.(type) {
	case *value.List, *value.Dict, value.Instance, value.Null:
		shown := value.String(value.PrintForm(v))
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

// maxText bounds the texts that plugins make, in bytes.
const maxText = 64 << 20

func replace(s, old, to string) (value.Value, error) {
	if n := strings.Count(s, old); n > 0 && len(to) > len(old) && n > (maxText-len(s))/(len(to)-len(old)) {
		return nil, tooLarge("the text would be longer than %d bytes", maxText)
	}
	return value.String(strings.ReplaceAll(s, old, to)), nil
}

// tooLarge is the fault of a plugin whose result would use up the memory.
func tooLarge(format string, args ...any) error {
	return &value.PluginError{Message: fmt.Sprintf(format, args...), Class: "CompilerException"}
}
