package server

import (
	"bytes"
	"compress/gzip"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/intendant/intendant/api"
)

// argument describes one argument of an endpoint, read once from a field's tags:
//
//	Name string `arg:"name" doc:"…"`                 mandatory
//	Limit *int  `arg:"limit"`                         a pointer is optional
//	List []string `arg:"agents,optional"`             so is what says so
//	Sort string `arg:"sort" default:"name.asc"`       and what has a default
//	Kind string `arg:"kind" enum:"a,b"`               takes only these values, in any case
//	Rest map[string]json.RawMessage `arg:"*"`         takes all others
type argument struct {
	name     string
	index    []int // of the field, through embedded ones
	typ      reflect.Type
	inPath   bool
	optional bool
	preset   string
	enum     []string
	rest     bool
	doc      string
}

// argValue is an argument as it came: a JSON value from the body, or one or more texts from path or query.
type argValue struct {
	raw   json.RawMessage
	texts []string
	// keys holds the texts of name.key=value.
	keys map[string][]string
}

func argumentsOf(t reflect.Type, path string) []argument {
	inPath := variables(path)
	var out []argument
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("arg")
		if !ok {
			continue
		}
		name, flags, _ := strings.Cut(tag, ",")
		a := argument{
			name: name, index: f.Index, typ: f.Type, doc: f.Tag.Get("doc"), preset: f.Tag.Get("default"),
			inPath: slices.Contains(inPath, name), rest: name == "*",
		}
		if e := f.Tag.Get("enum"); e != "" {
			a.enum = strings.Split(e, ",")
		}
		a.optional = flags == "optional" || f.Type.Kind() == reflect.Pointer || a.preset != "" || a.rest
		if a.inPath {
			a.optional = false
		}
		out = append(out, a)
	}
	return out
}

// invalidArgumentsError is a request that does not fit its endpoint.
type invalidArgumentsError struct {
	message string
	details []api.ValidationError
}

func (e *invalidArgumentsError) Error() string { return e.message }

func invalidArgument(name, kind, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &invalidArgumentsError{
		message: text,
		details: []api.ValidationError{{Loc: []string{name}, Msg: text, Type: kind}},
	}
}

// bodyTooLargeError is a request body over the limit.
type bodyTooLargeError struct{ limit int64 }

func (e *bodyTooLargeError) Error() string {
	return fmt.Sprintf("the request body is larger than %d bytes (server.max-request-body-size)", e.limit)
}

// readBody returns the request's body, unpacked, within the limit.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, &bodyTooLargeError{limit}
	}
	var source io.Reader = &cappedReader{r.Body, limit, limit}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(source)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, invalidArgument("body", "value_error", "the request body is not the gzip data that its Content-Encoding says: %v", err)
		}
		defer func() { _ = z.Close() }()
		source = &cappedReader{z, limit, limit}
	default:
		return nil, invalidArgument("body", "value_error", "the Content-Encoding %q is not supported; use gzip or none", encoding)
	}
	body, err := io.ReadAll(source)
	var tooLarge *bodyTooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case err != nil:
		return nil, invalidArgument("body", "value_error", "the request body could not be read: %v", err)
	}
	return body, nil
}

// cappedReader fails with bodyTooLargeError once more than n bytes were read.
type cappedReader struct {
	r           io.Reader
	left, limit int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, &bodyTooLargeError{limit: c.limit}
	}
	return n, err
}

// collect merges body, path and query into one map: query overrides path, path overrides body.
func collect(e *endpoint, body []byte, path map[string]string, query url.Values) (map[string]argValue, error) {
	values := make(map[string]argValue, len(e.args))
	if len(bytes.TrimSpace(body)) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, &invalidArgumentsError{message: "The request body couldn't be decoded as a JSON: " + err.Error()}
		}
		for k, v := range object {
			values[k] = argValue{raw: v}
		}
	}
	for k, v := range path {
		values[k] = argValue{texts: []string{v}}
	}
	for k, texts := range query {
		name, key, dotted := strings.Cut(k, ".")
		if dotted && takesKeys(e, name) {
			v := values[name]
			if v.keys == nil {
				v = argValue{keys: map[string][]string{}}
			}
			v.keys[key] = append(v.keys[key], texts...)
			values[name] = v
			continue
		}
		values[k] = argValue{texts: texts}
	}
	return values, nil
}

func takesKeys(e *endpoint, name string) bool {
	return slices.ContainsFunc(e.args, func(a argument) bool {
		return a.name == name && (a.typ.Kind() == reflect.Map || a.typ.Kind() == reflect.Pointer && a.typ.Elem().Kind() == reflect.Map)
	})
}

// bind fills a struct of arguments and refuses what is missing, unknown or of the wrong type. It reports all faults at once.
func bind(into reflect.Value, arguments []argument, values map[string]argValue) error {
	var faults []api.ValidationError
	var message string
	fault := func(name, kind, text string) {
		if message == "" {
			message = text
		}
		faults = append(faults, api.ValidationError{Loc: []string{name}, Msg: text, Type: kind})
	}
	known := make(map[string]bool, len(arguments))
	var rest *argument
	for i := range arguments {
		a := &arguments[i]
		if a.rest {
			rest = a
			continue
		}
		known[a.name] = true
		v, given := values[a.name]
		if given && v.isNull() && a.optional {
			given = false
		}
		switch {
		case given:
		case a.preset != "":
			v = argValue{texts: []string{a.preset}}
		case a.optional:
			continue
		default:
			fault(a.name, "missing", "Field '"+a.name+"' is required.")
			continue
		}
		if err := v.assign(into.FieldByIndex(a.index), a); err != nil {
			fault(a.name, "type_error", fmt.Sprintf("Field '%s' has an incorrect value: %v", a.name, err))
		}
	}
	var unknown []string
	for name := range values {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	switch {
	case len(unknown) > 0 && rest != nil:
		extra := make(map[string]json.RawMessage, len(unknown))
		for _, name := range unknown {
			extra[name] = values[name].json()
		}
		into.FieldByIndex(rest.index).Set(reflect.ValueOf(extra))
	case len(unknown) > 0:
		text := "request contains fields {'" + strings.Join(unknown, "', '") + "'} that are not declared in method and no kwargs argument is provided."
		message = text
		for _, name := range unknown {
			faults = append(faults, api.ValidationError{Loc: []string{name}, Msg: "the field is not known here", Type: "extra_forbidden"})
		}
	}
	if len(faults) > 0 {
		return &invalidArgumentsError{message: message, details: faults}
	}
	return nil
}

func (v argValue) isNull() bool {
	return v.raw != nil && bytes.Equal(bytes.TrimSpace(v.raw), []byte("null"))
}

// json is the argument as one JSON value.
func (v argValue) json() json.RawMessage {
	var x any = v.texts
	switch {
	case v.raw != nil:
		return v.raw
	case v.keys != nil:
		flat := make(map[string]any, len(v.keys))
		for k, texts := range v.keys {
			if len(texts) == 1 {
				flat[k] = texts[0]
			} else {
				flat[k] = texts
			}
		}
		x = flat
	case len(v.texts) == 1:
		x = v.texts[0]
	}
	b, err := json.Marshal(x)
	if err != nil {
		return json.RawMessage("null") // texts always encode
	}
	return b
}

var (
	rawMessageType = reflect.TypeFor[json.RawMessage]()
	timeType       = reflect.TypeFor[time.Time]()
	filterType     = reflect.TypeFor[map[string][]string]()
	unmarshaler    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// assign converts the argument to the field's type.
func (v argValue) assign(field reflect.Value, a *argument) error {
	t := field.Type()
	if t.Kind() == reflect.Pointer {
		p := reflect.New(t.Elem())
		if err := v.assign(p.Elem(), a); err != nil {
			return err
		}
		field.Set(p)
		return nil
	}
	switch {
	case t == rawMessageType:
		field.SetBytes(v.json())
		return nil
	case t == timeType:
		text, err := v.text()
		if err != nil {
			return err
		}
		parsed, err := api.ParseTime(text)
		if err != nil {
			return err
		}
		field.Set(reflect.ValueOf(parsed))
		return nil
	case t == filterType:
		m, err := v.lists()
		if err != nil {
			return err
		}
		field.Set(reflect.ValueOf(m))
		return nil
	case reflect.PointerTo(t).Implements(unmarshaler):
		text, err := v.text()
		if err != nil {
			return err
		}
		if err := field.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%q is not valid: %w", text, err)
		}
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // the rest is JSON
	case reflect.String:
		text, err := v.text()
		if err != nil {
			return err
		}
		if a.enum != nil {
			i := slices.IndexFunc(a.enum, func(e string) bool { return strings.EqualFold(e, text) })
			if i < 0 {
				return fmt.Errorf("%q is not one of %s", text, strings.Join(a.enum, ", "))
			}
			text = a.enum[i]
		}
		field.SetString(text)
		return nil
	case reflect.Int:
		n, err := v.integer()
		if err != nil {
			return err
		}
		field.SetInt(n)
		return nil
	case reflect.Bool:
		b, err := v.boolean()
		if err != nil {
			return err
		}
		field.SetBool(b)
		return nil
	case reflect.Slice:
		if v.raw == nil && t.Elem().Kind() == reflect.String {
			list := reflect.MakeSlice(t, len(v.texts), len(v.texts))
			for i, text := range v.texts {
				list.Index(i).SetString(text)
			}
			field.Set(list)
			return nil
		}
	}
	d := json.NewDecoder(bytes.NewReader(v.json()))
	d.UseNumber()
	p := reflect.New(t)
	if err := d.Decode(p.Interface()); err != nil {
		return err
	}
	field.Set(p.Elem())
	return nil
}

// text is the argument as one text: a JSON string, or what path or query has.
func (v argValue) text() (string, error) {
	if v.raw != nil {
		var s string
		if err := json.Unmarshal(v.raw, &s); err != nil || v.isNull() {
			return "", errors.New("a text is expected")
		}
		return s, nil
	}
	if len(v.texts) != 1 {
		return "", errors.New("exactly one value is expected")
	}
	return v.texts[0], nil
}

func (v argValue) integer() (int64, error) {
	text, err := v.scalar()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

func (v argValue) boolean() (bool, error) {
	text, err := v.scalar()
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1", "yes", "on", "t", "y":
		return true, nil
	case "false", "0", "no", "off", "f", "n":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// scalar is a text, number or boolean as text.
func (v argValue) scalar() (string, error) {
	if v.raw == nil {
		return v.text()
	}
	var x any
	d := json.NewDecoder(bytes.NewReader(v.raw))
	d.UseNumber()
	if err := d.Decode(&x); err != nil {
		return "", err
	}
	switch x := x.(type) {
	case string:
		return x, nil
	case json.Number:
		return x.String(), nil
	case bool:
		return strconv.FormatBool(x), nil
	}
	return "", errors.New("a single value is expected")
}

// lists is the argument as lists of texts by key, as filters are: {"status": ["a", "b"], "agent": "c"}.
func (v argValue) lists() (map[string][]string, error) {
	if v.keys != nil {
		return v.keys, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(v.json(), &object); err != nil {
		return nil, errors.New("an object of lists is expected")
	}
	out := make(map[string][]string, len(object))
	for k, raw := range object {
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			items = []json.RawMessage{raw}
		}
		for _, item := range items {
			text, err := (argValue{raw: item}).scalar()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			out[k] = append(out[k], text)
		}
	}
	return out, nil
}
