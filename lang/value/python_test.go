package value

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"
)

// decodeGolden reads a value of testdata/python.jsonl.
func decodeGolden(t *testing.T, raw json.RawMessage) Value {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return goldenValue(t, v)
}

func goldenValue(t *testing.T, v any) Value {
	t.Helper()
	switch x := v.(type) {
	case nil:
		return Null{}
	case bool:
		return Bool(x)
	case string:
		return String(x)
	case []any:
		l := &List{}
		for _, item := range x {
			l.Items = append(l.Items, goldenValue(t, item))
		}
		return l
	case map[string]any:
		if s, ok := x["int"].(string); ok {
			n, ok := new(big.Int).SetString(s, 10)
			if !ok {
				t.Fatalf("bad integer %q", s)
			}
			return NewInt(n)
		}
		if s, ok := x["float"].(string); ok {
			f, ok := ParseFloat(s)
			if !ok {
				t.Fatalf("bad float %q", s)
			}
			return f
		}
		d := NewDict(0)
		for _, pair := range x["dict"].([]any) {
			p := pair.([]any)
			d.Set(p[0].(string), goldenValue(t, p[1]))
		}
		return d
	}
	t.Fatalf("unexpected %T", v)
	return nil
}

// same compares two results exactly: kind, sign of zero, NaN.
func same(a, b Value) bool {
	x, ok1 := a.(Float)
	y, ok2 := b.(Float)
	if ok1 && ok2 {
		return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) || math.IsNaN(float64(x)) && math.IsNaN(float64(y))
	}
	return TypeName(a) == TypeName(b) && Repr(a) == Repr(b)
}

// apply runs one row of the table.
func apply(kind string, a []Value) (Value, error) {
	str := func(i int) string { return string(a[i].(String)) }
	text := func(s string, err error) (Value, error) { return String(s), err }
	switch kind {
	case "arith":
		return Arith(str(0), a[1], a[2])
	case "compare":
		r, err := Compare(str(0), a[1], a[2])
		return Bool(r), err
	case "repr":
		return String(Repr(a[0])), nil
	case "str":
		return String(Str(a[0])), nil
	case "format":
		conv := byte(0)
		if s := str(1); s != "" {
			conv = s[0]
		}
		return text(FormatSpec(a[0], conv, str(2)))
	case "cast":
		return Cast(str(0), a[1])
	case "percent":
		return text(Percent(str(0), a[1], true))
	case "percent1":
		return text(Percent(str(0), a[1], false))
	case "strformat":
		return text(formatLikePython(str(0), a[1].(*List), a[2].(*Dict)))
	case "unescape":
		s, _, err := Unescape(str(0))
		return String(s), err
	case "loads":
		return ParseJSON(str(0))
	case "dumps":
		b, err := AppendJSON(nil, a[0], PythonJSON)
		return String(b), err
	case "dumps4":
		b, err := AppendJSON(nil, a[0], JSONStyle{SortKeys: true, NonFinite: true, Pretty: true, Indent: 4, KeySeparator: ": "})
		return String(b), err
	}
	return nil, errors.New("unknown kind " + kind)
}

// formatLikePython is str.format with positional and named arguments.
func formatLikePython(s string, args *List, named *Dict) (string, error) {
	return FormatText(s, func(name string, index int) (Value, error) {
		if name != "" {
			if v, ok := named.Get(name); ok {
				return v, nil
			}
			return nil, errors.New(StringRepr(name))
		}
		if index >= len(args.Items) {
			return nil, IndexRange(index)
		}
		return args.Items[index], nil
	}, func(v Value, name string, item bool) (Value, error) {
		if !item {
			return nil, errors.New("'" + TypeName(v) + "' object has no attribute '" + name + "'")
		}
		switch x := v.(type) {
		case *Dict:
			if e, ok := x.Get(name); ok {
				return e, nil
			}
			return nil, errors.New(StringRepr(name))
		case *List:
			i, ok := ParseInt(name, 10)
			if !ok || strings.HasPrefix(name, "-") {
				return nil, errors.New("list indices must be integers or slices, not str")
			}
			if int(i.(Int)) >= len(x.Items) {
				return nil, errors.New("list index out of range")
			}
			return x.Items[i.(Int)], nil
		case String:
			if _, ok := ParseInt(name, 10); ok {
				return x[:1], nil
			}
			return nil, errors.New("string indices must be integers, not 'str'")
		}
		return nil, errors.New("'" + TypeName(v) + "' object is not subscriptable")
	}, FormatSpec)
}

func TestAgainstPython(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	failures := 0
	for scanner.Scan() {
		var row struct {
			K string
			A []json.RawMessage
			R json.RawMessage
			E string
			M string
		}
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		args := make([]Value, len(row.A))
		for i, raw := range row.A {
			args[i] = decodeGolden(t, raw)
		}
		got, err := apply(row.K, args)
		bad := ""
		switch {
		case row.E == "" && err != nil:
			bad = "error " + err.Error()
		case row.E != "" && err == nil:
			bad = "value " + Repr(got)
		case row.E != "" && !sameFault(row.K, row.M, err):
			bad = "error " + err.Error()
		case row.E == "":
			if want := decodeGolden(t, row.R); !same(got, want) {
				bad = "value " + Repr(got)
			}
		}
		if bad != "" {
			if failures++; failures < 40 {
				line := scanner.Text()
				t.Errorf("got %.300s\nfor %.400s", bad, line)
			}
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	if failures > 0 {
		t.Errorf("%d rows differ", failures)
	}
}

// sameFault compares the text of an error with Python's. The texts of casts are ours; those of arithmetic vary with the
// version of Python, as do a few of formatting.
func sameFault(kind, want string, err error) bool {
	switch kind {
	case "cast":
		var c *CastError
		return errors.As(err, &c)
	case "arith":
		var a *ArithmeticError
		return errors.As(err, &a)
	case "strformat":
		// Which of several faults of a text without end is named differs, and with the version of Python too.
		var f *FormatError
		for _, text := range []string{"expected '", "unmatched '{'", "Unknown conversion", "end of string", "Missing ']'", "Single '"} {
			if strings.HasPrefix(want, text) && errors.As(err, &f) {
				return true
			}
		}
	case "format", "percent", "percent1":
		if strings.HasPrefix(want, "Invalid format specifier") || strings.HasPrefix(want, "Too many decimal") {
			return strings.HasPrefix(err.Error(), want[:10])
		}
	}
	return err.Error() == want
}
