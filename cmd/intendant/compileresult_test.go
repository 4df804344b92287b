package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/model"
)

// TestResultAsEncoded compares what is written with what encoding/json makes of the same result, with values in all members that a
// result has, so that one that is added later shows here.
func TestResultAsEncoded(t *testing.T) {
	t.Parallel()
	empty := &compileResult{
		Diagnostics: diag.List{}, Resources: []compiledResource{}, Sets: []string{}, Unknowns: []compiledUnknown{}, Files: []string{},
		Inputs: []lang.InputUse{},
	}
	full := &compileResult{}
	fill(t, reflect.ValueOf(full).Elem(), 0)
	full.Diagnostics = diag.List{diag.Errorf("Code", diag.Range{File: "main.cf"}, "a message with <b> and \u2028")}
	if len(full.Resources) == 0 {
		t.Fatal("there are no resources")
	}
	for i := range full.Resources {
		full.Resources[i].Attributes = json.RawMessage(`{"a":"<é>","b":[1,null]}`)
		full.Resources[i].ID = model.ResourceID("std::X[a,n=\"quoted\" \\ é <b> \x01 \u2028]")
		full.Resources[i].Requires = []model.ResourceID{"x::Y[a,b=c]", "x::Y[a,b=\n]"}
	}
	full.Resources = append(full.Resources, compiledResource{Attributes: json.RawMessage("{}"), Requires: []model.ResourceID{}, State: "undefined"})
	for name, r := range map[string]*compileResult{"empty": empty, "full": full} {
		var want, got bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		b := bufio.NewWriter(&got)
		if err := r.write(b); err != nil {
			t.Fatal(err)
		}
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.String(), got.String()); d != "" {
			t.Errorf("%s (-encoding/json +ours):\n%s", name, d)
		}
	}
}

func TestResultThatCanNotBeEncoded(t *testing.T) {
	t.Parallel()
	r := &compileResult{Instances: []lang.ExportedInstance{{}}}
	r.Instances[0].Attributes = json.RawMessage("{")
	if err := r.write(bufio.NewWriter(&bytes.Buffer{})); err == nil {
		t.Error("a result with broken JSON in it is written")
	}
}

// fill puts a value into all that v consists of.
func fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if depth > 8 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.String:
		v.SetString("text <x>")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.ValueOf(json.RawMessage(`{"raw":1}`)))
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("bytes"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), depth+1)
		fill(t, v.Index(1), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), depth+1)
			}
		}
	default:
	}
}
