package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
)

// documentVersion is the version of the contract, not of the program.
const documentVersion = "3.0"

// object is a JSON object of the document; encoding sorts its keys.
type object = map[string]any

// document makes the OpenAPI document from the table: the paths and arguments that are decoded, the types that are encoded.
func (s *Server) document() ([]byte, error) {
	schemas := schemas{}
	paths := map[string]object{}
	for i := range s.table {
		e := &s.table[i]
		path := strings.NewReplacer("<", "{", ">", "}").Replace(e.path)
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(e.method)] = schemas.operation(e)
	}
	errorSchema := schemas.of(reflect.TypeFor[api.Error]())
	components := object{
		"schemas": schemas,
		"responses": object{"Error": object{
			"description": "The request was refused or has failed; the message says why.",
			"content":     jsonContent(errorSchema),
		}},
		"parameters": object{"Environment": object{
			"name": api.EnvironmentHeader, "in": "header", "required": true, "description": "The environment that the request is about.",
			"schema": object{"type": "string", "format": "uuid"},
		}},
		"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
	}
	return marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Intendant", "version": documentVersion,
			"description": "The REST API of the Intendant orchestrator. Versions 1 and 2 are those of the system it is compatible with; version 3 has its own additions.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths": paths, "components": components, "security": []object{{"bearer": []string{}}, {}},
	})
}

// OpenAPI returns the OpenAPI document of the endpoints, indented, as it is committed in package api.
func (s *Server) OpenAPI() ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, s.openapi, "", "  "); err != nil {
		return nil, fmt.Errorf("indenting the API document: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func jsonContent(schema any) object { return object{"application/json": object{"schema": schema}} }

// schemas collects the named types of the document.
type schemas map[string]any

// operation describes one endpoint.
func (s schemas) operation(e *endpoint) object {
	var parameters []object
	properties, required := object{}, []string{}
	inBody := e.method == http.MethodPost || e.method == http.MethodPut || e.method == http.MethodPatch
	if e.scoped {
		parameters = append(parameters, object{"$ref": "#/components/parameters/Environment"})
	}
	for _, a := range e.args {
		schema := s.argument(a)
		switch {
		case a.rest:
		case a.inPath:
			parameters = append(parameters, object{"name": a.name, "in": "path", "required": true, "schema": schema})
		case inBody:
			properties[a.name] = schema
			if !a.optional {
				required = append(required, a.name)
			}
		default:
			p := object{"name": a.name, "in": "query", "schema": schema}
			if !a.optional {
				p["required"] = true
			}
			if a.typ == filterType {
				p["description"] = "As " + a.name + ".<key>=<value>, repeatable."
			}
			parameters = append(parameters, p)
		}
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(e.path, "/api/"), "/")
	out := object{
		"operationId": version + "_" + e.name, "tags": []string{version}, "responses": s.responses(e),
		"x-client-types": e.clients,
	}
	if e.permission != "" {
		out["x-permission"] = e.permission
	}
	if e.public {
		out["security"] = []object{{}}
	}
	if e.doc != "" {
		out["summary"] = e.doc
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if len(properties) > 0 {
		body := object{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			body["required"] = required
		}
		out["requestBody"] = object{"required": len(required) > 0, "content": jsonContent(body)}
	}
	return out
}

func (s schemas) argument(a argument) any {
	schema := s.of(a.typ)
	o, ok := schema.(object)
	if !ok || o["$ref"] != nil {
		return schema
	}
	if a.doc != "" {
		o["description"] = a.doc
	}
	if a.preset != "" {
		var value any = a.preset
		if a.typ.Kind() == reflect.Bool || a.typ.Kind() == reflect.Int {
			value = json.RawMessage(a.preset)
		}
		o["default"] = value
	}
	if a.enum != nil {
		o["enum"] = a.enum
	}
	return o
}

func (s schemas) responses(e *endpoint) object {
	success := object{"description": "Success."}
	switch {
	case e.name == "events":
		success["content"] = object{"text/event-stream": object{"schema": s.of(reflect.TypeFor[api.Event]())}}
	case e.raw != nil:
		success["content"] = jsonContent(object{"type": "object"})
	case e.result == reflect.TypeFor[none]():
	default:
		schema := s.of(e.result)
		switch e.style {
		case wrapped:
			schema = object{"type": "object", "required": []string{"data"}, "properties": object{
				"data": schema, "links": s.of(reflect.TypeFor[api.Links]()), "metadata": s.of(reflect.TypeFor[api.Metadata]()),
			}}
		case queued:
			schema = object{"type": "object", "required": []string{"queue"}, "properties": object{"queue": schema}}
		case bare:
		}
		success["content"] = jsonContent(schema)
	}
	return object{"200": success, "default": object{"$ref": "#/components/responses/Error"}}
}

// of is the schema of a type; types of package api become named ones.
func (s schemas) of(t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[api.Time](), t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == rawMessageType:
		return object{}
	case t == reflect.TypeFor[uuid.UUID](), t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[uuid.UUID]():
		return object{"type": "string", "format": "uuid"}
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "integer"}
	}
	switch t.Kind() { //nolint:exhaustive // the kinds that the API's types are made of
	case reflect.Pointer:
		inner := s.of(t.Elem())
		if o, ok := inner.(object); ok {
			if kind, ok := o["type"].(string); ok && o["$ref"] == nil {
				o["type"] = []string{kind, "null"}
				return o
			}
			if len(o) == 0 {
				return o
			}
		}
		return object{"anyOf": []any{inner, object{"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return object{"type": "integer"}
	case reflect.Float64, reflect.Float32:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[api.Error]().PkgPath() {
			return s.structure(t)
		}
		if s[t.Name()] == nil {
			s[t.Name()] = object{} // a type that contains itself refers to this
			s[t.Name()] = s.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	return object{}
}

func (s schemas) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for f := range t.Fields() {
			tag := f.Tag.Get("json")
			name, flags, _ := strings.Cut(tag, ",")
			switch {
			case tag == "-" || !f.IsExported():
			case f.Anonymous && tag == "":
				add(f.Type)
			default:
				if name == "" {
					name = f.Name
				}
				properties[name] = s.of(f.Type)
				if !strings.Contains(flags, "omitempty") {
					required = append(required, name)
				}
			}
		}
	}
	add(t)
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Intendant API</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884;vertical-align:top}code{font-size:.9em}h2{margin-top:2rem}</style>
</head><body><h1>Intendant API</h1>
<p>The whole contract as an <a href="/api/v2/docs?format=openapi">OpenAPI document</a>.
Requests about an environment carry its id in the header <code>X-Inmanta-tid</code>.</p>
{{range .}}<h2>{{.Version}}</h2><table><tr><th>Call</th><th>Operation</th><th>Arguments</th><th>Permission</th></tr>
{{range .Rows}}<tr><td><code>{{.Method}} {{.Path}}</code></td><td>{{.Name}}{{with .Doc}}<br>{{.}}{{end}}</td><td>{{range .Arguments}}<code>{{.}}</code> {{end}}</td><td>{{.Permission}}</td></tr>
{{end}}</table>{{end}}</body></html>
`))

// page makes the HTML page that lists the endpoints.
func (s *Server) page() ([]byte, error) {
	type row struct {
		Method, Path, Name, Doc, Permission string
		Arguments                           []string
	}
	type group struct {
		Version string
		Rows    []row
	}
	var groups []group
	for _, e := range s.table {
		version, _, _ := strings.Cut(strings.TrimPrefix(e.path, "/api/"), "/")
		if len(groups) == 0 || groups[len(groups)-1].Version != version {
			groups = append(groups, group{Version: version})
		}
		r := row{Method: e.method, Path: e.path, Name: e.name, Doc: e.doc, Permission: e.permission}
		for _, a := range e.args {
			r.Arguments = append(r.Arguments, a.name)
		}
		g := &groups[len(groups)-1]
		g.Rows = append(g.Rows, r)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, groups); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
