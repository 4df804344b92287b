package std

import (
	"crypto/md5" //nolint:gosec // the name of a file, not a secret
	"encoding/hex"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// fileMarker starts the content of a file that std::file refers to; the exporter puts the file's bytes in its place.
const fileMarker = "imp-module-source:file://"

func filePlugins() []*value.Plugin {
	return []*value.Plugin{
		templatePlugin(),
		plugin("source", "string", func(c value.Context, a []value.Value) (value.Value, error) {
			content, err := c.ReadFile("files", text(a[0]))
			return value.String(strings.ReplaceAll(strings.ReplaceAll(string(content), "\r\n", "\n"), "\r", "\n")), err
		}, arg("path", "string")),
		plugin("file", "string", fileReference, arg("path", "string")),
		plugin("list_files", "list", listFiles, arg("path", "string")),
		plugin("unique_file", "string", uniqueFile, arg("prefix", "string"), arg("seed", "string"), arg("suffix", "string"), opt("length", "int", value.Int(20))),
	}
}

// fileReference refers to a file of a module without reading it into the model.
func fileReference(c value.Context, a []value.Value) (value.Value, error) {
	path := text(a[0])
	if _, err := c.ReadFile("files", path); err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(path, "./"); ok {
		module, _, _ := strings.Cut(c.Namespace(), "::")
		path = module + "/" + rest
	}
	return value.String(fileMarker + path), nil
}

func listFiles(c value.Context, a []value.Value) (value.Value, error) {
	names, err := c.ListFiles("files", text(a[0]))
	if err != nil {
		return nil, err
	}
	list := &value.List{}
	for _, n := range names {
		list.Items = append(list.Items, value.String(n))
	}
	return list, nil
}

func uniqueFile(_ value.Context, a []value.Value) (value.Value, error) {
	sum := md5.Sum([]byte(text(a[1])))
	return value.String(text(a[0]) + hex.EncodeToString(sum[:]) + text(a[2])), nil
}
