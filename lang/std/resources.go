package std

import (
	"errors"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// Resource describes the resource that the exporter makes of the instances of an entity.
type Resource struct {
	// Entity is the qualified name of the entity.
	Entity string
	// IDAttribute is the field whose value identifies the resource on its agent.
	IDAttribute string
	// AgentPath is the path of attributes from the instance to the name of its agent, such as host.name.
	AgentPath string
	// Fields are the fields of the resource, in order. A field is the attribute of that name unless Computed has it.
	Fields []string
	// Computed are the fields that are not plain attributes. A function may give Unknown as its value.
	Computed map[string]Field
	// Ignored, if not nil, says that an instance makes no resource.
	Ignored func(i value.Instance) (bool, error)
}

// Field calculates a field of a resource at export.
type Field func(c value.Context, i value.Instance) (value.Value, error)

var (
	resourceFields  = []string{"send_event", "receive_events", "report_only"}
	purgeableFields = []string{"purged", "purge_on_delete"}
	managedFields   = []string{"managed"}
)

// Resources lists the resources of the embedded modules.
func Resources() []Resource {
	all := []Resource{
		{
			Entity: "std::testing::NullResource", IDAttribute: "name", AgentPath: "agentname",
			Fields:  slices.Concat(resourceFields, managedFields, purgeableFields, []string{"name", "agentname", "fail", "value", "int_value"}),
			Ignored: notManaged,
		},
		{
			Entity: "std::AgentConfig", IDAttribute: "agentname", AgentPath: "agent",
			Fields:  slices.Concat(resourceFields, purgeableFields, []string{"agentname", "uri", "autostart"}),
			Ignored: notAutostarted,
		},
		{
			Entity: "std::Service", IDAttribute: "name", AgentPath: "host.name",
			Fields: slices.Concat(resourceFields, []string{"onboot", "state", "name", "reload"}),
		},
		{
			Entity: "std::Package", IDAttribute: "name", AgentPath: "host.name",
			Fields: slices.Concat(resourceFields, []string{"name", "state", "reload"}),
		},
		{
			Entity: "exec::Run", IDAttribute: "command", AgentPath: "host.name",
			Fields: slices.Concat(resourceFields, []string{
				"command", "creates", "cwd", "environment", "onlyif", "path", "reload", "reload_only", "returns",
				"timeout", "unless", "skip_on_fail",
			}),
		},
	}
	for _, module := range []string{"std", "fs"} {
		all = append(all,
			Resource{
				Entity: module + "::File", IDAttribute: "path", AgentPath: "host.name",
				Fields:   slices.Concat(resourceFields, purgeableFields, []string{"path", "owner", "hash", "group", "permissions", "reload"}),
				Computed: map[string]Field{"hash": fileHash, "permissions": permissions},
			},
			Resource{
				Entity: module + "::Directory", IDAttribute: "path", AgentPath: "host.name",
				Fields:   slices.Concat(resourceFields, purgeableFields, []string{"path", "owner", "group", "permissions", "reload"}),
				Computed: map[string]Field{"permissions": permissions},
			},
			Resource{
				Entity: module + "::Symlink", IDAttribute: "target", AgentPath: "host.name",
				Fields: slices.Concat(resourceFields, purgeableFields, []string{"source", "target", "reload"}),
			})
	}
	return all
}

// notAutostarted holds for the configuration of an agent that the server does not start.
// notManaged says that a managed resource is none of ours.
func notManaged(i value.Instance) (bool, error) {
	v, err := attribute(i, "managed")
	if err != nil {
		return false, err
	}
	if _, unknown := v.(*value.Unknown); unknown {
		return false, nil
	}
	return !value.Truth(v), nil
}

// notAutostarted says that an agent is not started by the server.
func notAutostarted(i value.Instance) (bool, error) {
	v, err := attribute(i, "autostart")
	if err != nil {
		return true, nil //nolint:nilerr // an agent without the setting is not started either
	}
	if _, unknown := v.(*value.Unknown); unknown {
		return true, nil
	}
	return !value.Truth(v), nil
}

// permissions is the mode of a file or directory, as the number whose decimal digits are read as octal.
func permissions(_ value.Context, i value.Instance) (value.Value, error) {
	v, err := attribute(i, "mode")
	if err != nil {
		return nil, err
	}
	return value.Cast("int", v)
}

// fileHash puts the content of a file, with its prefixes and suffixes, into the file storage and gives its address.
func fileHash(c value.Context, i value.Instance) (value.Value, error) {
	v, err := attribute(i, "content")
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case *value.Unknown, *value.Reference:
		return v, nil
	}
	content := text(v)
	if path, ok := strings.CutPrefix(content, fileMarker); ok {
		raw, err := c.ReadFile("files", path)
		if err != nil {
			return nil, err
		}
		content = string(raw)
	}
	separator, err := attribute(i, "content_seperator")
	if err != nil {
		return nil, err
	}
	sep := text(separator)
	prefix, err := pieces(i, "prefix_content", sep)
	if err != nil {
		return unknownOr(err)
	}
	suffix, err := pieces(i, "suffix_content", sep)
	if err != nil {
		return unknownOr(err)
	}
	if prefix != "" {
		content = prefix + sep + content
	}
	if suffix != "" {
		content += sep + suffix
	}
	return value.String(c.AddFile([]byte(content))), nil
}

// unknownOr turns the discovery of an unknown value into that value.
func unknownOr(err error) (value.Value, error) {
	if unknown, ok := errors.AsType[*value.UnknownError](err); ok {
		return unknown.Value, nil
	}
	return nil, err
}

// pieces joins the texts of a relation to std::Content, sorted by key; empty when there are none.
func pieces(i value.Instance, relation, sep string) (string, error) {
	v, err := attribute(i, relation)
	if err != nil {
		return "", err
	}
	type piece struct{ key, text string }
	var all []piece
	for _, content := range items(v) {
		val, err := attribute(content, "value")
		if err != nil {
			return "", err
		}
		if val, err = known(val); err != nil {
			return "", err
		}
		key, err := attribute(content, "sorting_key")
		if err != nil {
			return "", err
		}
		if key, err = known(key); err != nil {
			return "", err
		}
		if _, null := key.(value.Null); null {
			key = val
		}
		all = append(all, piece{key: text(key), text: text(val)})
	}
	if len(all) == 0 {
		return "", nil
	}
	slices.SortStableFunc(all, func(a, b piece) int { return strings.Compare(a.key, b.key) })
	texts := make([]string, len(all))
	for n, p := range all {
		texts[n] = p.text
	}
	return strings.Join(texts, sep) + sep, nil
}

// Exported is a resource that the exporter has made.
type Exported struct {
	// ID is the id of the resource, without a version.
	ID string
	// Instance is what it was made of.
	Instance value.Instance
}

// ImpliedRequires gives the requirements that no model states: a file or directory requires the directories above it on the
// same host that are resources too. The result maps ids to the ids that they require as well, in the order of exported.
func ImpliedRequires(exported []Exported) map[string][]string {
	type place struct {
		host value.Value
		path string
	}
	// What the entities of the instances are, by name: most resources are neither files nor directories.
	type kind struct{ placed, directory bool }
	kinds := make(map[string]kind)
	kindOf := func(i value.Instance) kind {
		k, ok := kinds[i.TypeName()]
		if !ok {
			k.directory = slices.ContainsFunc([]string{"std::Directory", "fs::Directory"}, i.IsA)
			k.placed = k.directory || slices.ContainsFunc([]string{"std::File", "fs::File"}, i.IsA)
			kinds[i.TypeName()] = k
		}
		return k
	}
	locate := func(e Exported) (place, bool) {
		host, err := attribute(e.Instance, "host")
		if err != nil {
			return place{}, false
		}
		path, err := attribute(e.Instance, "path")
		s, ok := path.(value.String)
		return place{host: host, path: strings.TrimRight(string(s), "/")}, err == nil && ok && s != ""
	}
	directories := make(map[place]string)
	for _, e := range exported {
		if !kindOf(e.Instance).directory {
			continue
		}
		if p, ok := locate(e); ok {
			directories[p] = e.ID
		}
	}
	implied := make(map[string][]string)
	for _, e := range exported {
		if !kindOf(e.Instance).placed {
			continue
		}
		p, ok := locate(e)
		if !ok {
			continue
		}
		for path := p.path; path != ""; {
			path = path[:max(strings.LastIndexByte(path, '/'), 0)]
			if id, ok := directories[place{host: p.host, path: path}]; ok && id != e.ID {
				implied[e.ID] = append(implied[e.ID], id)
			}
		}
	}
	return implied
}
