package template

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"testing"

	"github.com/intendant/intendant/lang/value"
)

// goldenValue reads a value of testdata/jinja.jsonl.
func goldenValue(t *testing.T, v any) value.Value {
	t.Helper()
	switch x := v.(type) {
	case nil:
		return value.Null{}
	case bool:
		return value.Bool(x)
	case string:
		return value.String(x)
	case json.Number:
		n, err := x.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return value.Int(n)
	case []any:
		l := &value.List{}
		for _, item := range x {
			l.Items = append(l.Items, goldenValue(t, item))
		}
		return l
	case map[string]any:
		if s, ok := x["$float"].(string); ok {
			f, _ := value.ParseFloat(s)
			return f
		}
		if s, ok := x["$int"].(string); ok {
			n, _ := new(big.Int).SetString(s, 10)
			return value.NewInt(n)
		}
		d := value.NewDict(0)
		for _, pair := range x["$dict"].([]any) {
			p := pair.([]any)
			d.Set(p[0].(string), goldenValue(t, p[1]))
		}
		return d
	}
	t.Fatalf("unexpected %T", v)
	return nil
}

// TestAgainstJinja holds that templates give the bytes that Python's Jinja2 gives, and fail with the same class of exception.
func TestAgainstJinja(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/jinja.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	var variables *value.Dict
	engine := New()
	failures, rows := 0, 0
	for scanner.Scan() {
		if variables == nil {
			var first struct {
				Vars json.RawMessage
			}
			if err := json.Unmarshal(scanner.Bytes(), &first); err != nil {
				t.Fatal(err)
			}
			var raw any
			dec := json.NewDecoder(bytes.NewReader(first.Vars))
			dec.UseNumber()
			if err := dec.Decode(&raw); err != nil {
				t.Fatal(err)
			}
			variables = goldenValue(t, raw).(*value.Dict)
			continue
		}
		var row struct {
			T       map[string]string
			Strict  bool
			Escape  bool
			Out     string
			Error   string
			Message string
			Line    int
		}
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows++
		got, err := engine.RenderText("main", Options{
			Load:      func(name string) (string, bool, error) { s, ok := row.T[name]; return s, ok, nil },
			Variables: variables, Strict: row.Strict, AutoEscape: row.Escape,
		})
		var own *Error
		bad := ""
		switch {
		case row.Error == "" && err != nil:
			bad = "error " + err.Error()
		case row.Error == "" && got != row.Out:
			bad = value.StringRepr(got)
		case row.Error != "" && !errors.As(err, &own):
			bad = "no error: " + value.StringRepr(got)
		case row.Error != "" && own.Class != row.Error:
			bad = "error " + own.Class + ": " + own.Message
		case row.Error == "UndefinedError" && own.Message != row.Message:
			bad = "message " + own.Message
		case row.Line != 0 && own.Line != row.Line:
			bad = "error in another line: " + err.Error()
		}
		if bad != "" {
			if failures++; failures <= 60 {
				t.Errorf("%.300s\nfor %.700s", bad, scanner.Text())
			}
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	if failures > 0 {
		t.Errorf("%d of %d templates differ", failures, rows)
	}
}
