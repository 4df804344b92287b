package value

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

// thing is an instance for tests.
type thing struct {
	IsInstance
	name   string
	serial int
	attrs  map[string]Value
}

func (t *thing) TypeName() string     { return t.name }
func (t *thing) IsA(name string) bool { return name == t.name }
func (t *thing) Attribute(name string) (Value, bool, error) {
	v, ok := t.attrs[name]
	return v, ok, nil
}
func (t *thing) AttributeNames() []string { return nil }
func (t *thing) Serial() int              { return t.serial }
func (t *thing) Places() []string         { return []string{"main.cf:3", "main.cf:9"} }

func dictOf(pairs ...any) *Dict {
	d := NewDict(0)
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1].(Value))
	}
	return d
}

func TestEqual(t *testing.T) {
	t.Parallel()
	a, b := &thing{name: "m::A", serial: 10}, &thing{name: "m::A", serial: 11}
	u := &Unknown{}
	huge := NewInt(new(big.Int).Lsh(big.NewInt(1), 100))
	cases := []struct {
		name string
		a, b Value
		want bool
	}{
		{"int and float", Int(1), Float(1), true},
		{"bool and int", Bool(true), Int(1), true},
		{"null and false", Null{}, Bool(false), false},
		{"null", Null{}, Null{}, true},
		{"string and int", String("1"), Int(1), false},
		{"nan", Float(math.NaN()), Float(math.NaN()), false},
		{"big and float", huge, Float(math.Ldexp(1, 100)), true},
		{"exact beyond doubles", Int(1<<53 + 1), Float(1 << 53), false},
		{"lists", &List{Items: []Value{Int(1), String("a")}}, &List{Items: []Value{Float(1), String("a")}}, true},
		{"lists of other lengths", &List{Items: []Value{Int(1)}}, &List{}, false},
		{"dicts in another order", dictOf("a", Int(1), "b", Int(2)), dictOf("b", Int(2), "a", Int(1)), true},
		{"dicts with other keys", dictOf("a", Int(1)), dictOf("b", Int(1)), false},
		{"same instance", a, a, true},
		{"other instance", a, b, false},
		{"same unknown", u, u, true},
		{"other unknown", u, &Unknown{Source: "x"}, false},
		{"references", &Reference{Type: "std::Environment", Args: dictOf("name", String("x"))}, &Reference{Type: "std::Environment", Args: dictOf("name", String("x"))}, true},
		{"references with other arguments", &Reference{Type: "std::Environment", Args: dictOf("name", String("x"))}, &Reference{Type: "std::Environment"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Equal(c.a, c.b); got != c.want {
				t.Errorf("Equal(%s, %s) = %v, want %v", Repr(c.a), Repr(c.b), got, c.want)
			}
			if got := Equal(c.b, c.a); got != c.want {
				t.Errorf("Equal(%s, %s) = %v, want %v", Repr(c.b), Repr(c.a), got, c.want)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	a := &thing{name: "m::A", serial: 26}
	nested := &List{Items: []Value{Int(1), Null{}, Bool(true), Float(2), String("x"), a}}
	cases := []struct {
		v                           Value
		str, repr, print, interpoly string
	}{
		{Null{}, "null", "null", "None", "null"},
		{Bool(true), "True", "True", "True", "True"},
		{Float(1), "1.0", "1.0", "1.0", "1"},
		{Float(1e19), "1e+19", "1e+19", "1e+19", "10000000000000000000"},
		{Float(-0.5), "-0.5", "-0.5", "-0.5", "-0.5"},
		{Float(math.Inf(1)), "inf", "inf", "inf", "inf"},
		{String("it's"), "it's", `"it's"`, "it's", "it's"},
		{a, "m::A (instantiated at main.cf:3,main.cf:9)", "m::A 1a", "@m::A 1a", "m::A (instantiated at main.cf:3,main.cf:9)"},
		{nested, "[1, null, True, 2.0, 'x', m::A 1a]", "[1, null, True, 2.0, 'x', m::A 1a]", "@[1, null, True, 2.0, 'x', m::A 1a]", "[1, null, True, 2.0, 'x', m::A 1a]"},
		{dictOf("a", Int(1)), "{'a': 1}", "{'a': 1}", "@{'a': 1}", "{'a': 1}"},
	}
	for _, c := range cases {
		text, unknown, err := Interpolate(c.v)
		if unknown || err != nil {
			t.Errorf("Interpolate(%s) = unknown %v, error %v", c.repr, unknown, err)
		}
		for _, pair := range [][2]string{{Str(c.v), c.str}, {Repr(c.v), c.repr}, {PrintForm(c.v), c.print}, {text, c.interpoly}} {
			if pair[0] != pair[1] {
				t.Errorf("got %q, want %q", pair[0], pair[1])
			}
		}
	}
	if _, unknown, err := Interpolate(&Unknown{}); !unknown || err != nil {
		t.Errorf("Interpolate(unknown) = %v, %v", unknown, err)
	}
	ref := &Reference{Type: "std::Environment", Args: dictOf("name", String("HOME")), Model: "string"}
	var refErr *ReferenceError
	if _, _, err := Interpolate(ref); !errors.As(err, &refErr) || refErr.Reference != ref {
		t.Errorf("Interpolate(reference) = %v", err)
	}
	if got, want := Repr(ref), "std::Environment(name='HOME')"; got != want {
		t.Errorf("Repr(reference) = %s, want %s", got, want)
	}
	if got, want := IndexKey("n", String("a")), "n='a'"; got != want {
		t.Errorf("IndexKey = %s, want %s", got, want)
	}
}

func TestFormatField(t *testing.T) {
	t.Parallel()
	cases := []struct {
		v    Value
		conv byte
		spec string
		want string
	}{
		{Float(2), 0, "d", "2"},
		{Float(2), 'r', "", "2"},
		{Null{}, 0, "", "null"},
		{String("a"), 'r', ">5", "  'a'"},
	}
	for _, c := range cases {
		got, unknown, err := FormatField(c.v, c.conv, c.spec)
		if got != c.want || unknown || err != nil {
			t.Errorf("FormatField(%s, %q, %q) = %q, %v, %v, want %q", Repr(c.v), c.conv, c.spec, got, unknown, err, c.want)
		}
	}
	if _, unknown, _ := FormatField(&Unknown{}, 0, "d"); !unknown {
		t.Error("the field of an unknown value should be unknown")
	}
	var fault *FormatError
	if _, _, err := FormatField(Null{}, 0, ">5"); !errors.As(err, &fault) || fault.Class != "TypeError" {
		t.Errorf("FormatField(null, >5) gives %v", err)
	}
	if _, _, err := FormatField(&Reference{}, 0, ""); err == nil {
		t.Error("the field of a reference should be refused")
	}
}

func TestOperandErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		op   string
		a, b Value
		want string
	}{
		{"+", String("a"), Int(1), "Can only concatenate str (not 'int' (1)) to str"},
		{"+", Int(1), String("a"), "Unsupported operand type(s) for plus: 'int' (1) and 'str' ('a')"},
		{"-", Float(3.5), &List{}, "Unsupported operand type(s) for minus: 'float' (3.5) and 'list' ([])"},
		{"*", &List{Items: []Value{Int(1)}}, Int(2), "Unsupported operand type(s) for multiplication: 'list' ([1]) and 'int' (2)"},
	}
	for _, c := range cases {
		_, err := Arith(c.op, c.a, c.b)
		var fault *OperandError
		if !errors.As(err, &fault) || fault.Message != c.want {
			t.Errorf("Arith(%s) = %v, want %s", c.op, err, c.want)
		}
	}
	if _, err := Compare("<", String("a"), String("b")); err == nil || err.Error() != "Can only compare numbers." {
		t.Errorf("Compare = %v", err)
	}
	if v, err := Arith("+", String("a"), String("b")); err != nil || v != String("ab") {
		t.Errorf("concatenation = %v, %v", v, err)
	}
	var fault *ArithmeticError
	if _, err := Arith("**", Int(10), Int(1<<30)); !errors.As(err, &fault) || fault.Class != "OverflowError" {
		t.Errorf("a huge power gives %v", err)
	}
	if _, err := Arith("/", Int(1), Int(0)); !errors.As(err, &fault) || fault.Class != "ZeroDivisionError" {
		t.Errorf("division by zero gives %v", err)
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	u := &Unknown{}
	list := &List{Items: []Value{u, Int(1)}}
	cases := []struct {
		a, b           Value
		found, unknown bool
	}{
		{Int(1), list, true, false},
		{Int(2), list, false, true},
		{u, list, false, true},
		{Int(2), &List{Items: []Value{Float(2)}}, true, false},
		{String("a"), dictOf("a", u), true, false},
		{Int(1), dictOf("a", u), false, false},
		{Int(1), u, false, true},
	}
	for _, c := range cases {
		found, unknown, err := In(c.a, c.b)
		if found != c.found || unknown != c.unknown || err != nil {
			t.Errorf("In(%s, %s) = %v, %v, %v", Repr(c.a), Repr(c.b), found, unknown, err)
		}
	}
	if _, _, err := In(Int(1), String("abc")); err == nil || err.Error() != "Operand two of 'in' can only be a list or dict (abc)" {
		t.Errorf("In a string = %v", err)
	}
}

func TestCast(t *testing.T) {
	t.Parallel()
	cases := []struct {
		typ  string
		v    Value
		want Value
	}{
		{"string", Bool(true), String("true")},
		{"string", Null{}, String("null")},
		{"string", Float(1), String("1.0")},
		{"number", Int(3), Int(3)},
		{"number", String("42"), Float(42)},
		{"bool", Null{}, Bool(false)},
		{"bool", String("false"), Bool(true)},
	}
	for _, c := range cases {
		got, err := Cast(c.typ, c.v)
		if err != nil || !same(got, c.want) {
			t.Errorf("Cast(%s, %s) = %v, %v, want %s", c.typ, Repr(c.v), got, err, Repr(c.want))
		}
	}
	for _, c := range []struct {
		typ  string
		v    Value
		want string
	}{{"int", String("x"), "Failed to cast 'x' to int"}, {"int", Null{}, "Failed to cast 'null' to int"}, {"float", &List{}, "Failed to cast '[]' to float"}} {
		if _, err := Cast(c.typ, c.v); err == nil || err.Error() != c.want {
			t.Errorf("Cast(%s, %s) = %v, want %s", c.typ, Repr(c.v), err, c.want)
		}
	}
	u := &Unknown{}
	if v, err := Cast("int", u); v != u || err != nil {
		t.Errorf("Cast(int, unknown) = %v, %v", v, err)
	}
}

func TestUnescapeKeepsText(t *testing.T) {
	t.Parallel()
	cases := []struct {
		in, want string
		invalid  bool
	}{
		{`é\n日本`, "é\n日本", false},
		{`\.\é`, `\.\é`, true},
		{`\ud83d\ude00`, "😀", false},
		{`\ud83dx`, "\uFFFDx", false},
	}
	for _, c := range cases {
		got, invalid, err := Unescape(c.in)
		if got != c.want || invalid != c.invalid || err != nil {
			t.Errorf("Unescape(%q) = %q, %v, %v, want %q, %v", c.in, got, invalid, err, c.want, c.invalid)
		}
	}
}

func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	got, err := CanonicalJSON(dictOf("b", Float(1), "a", &List{Items: []Value{Null{}, String("é<")}}))
	if want := `{"a":[null,"é<"],"b":1.0}`; err != nil || string(got) != want {
		t.Errorf("CanonicalJSON = %s, %v, want %s", got, err, want)
	}
	for _, v := range []Value{Float(math.NaN()), &Unknown{}, &Reference{Model: "string"}, &thing{name: "m::A"}} {
		if _, err := CanonicalJSON(v); err == nil {
			t.Errorf("CanonicalJSON(%s) should fail", Repr(v))
		}
	}
}

func TestDictGrows(t *testing.T) {
	t.Parallel()
	d := NewDict(0)
	for i := range 100 {
		d.Set(strings.Repeat("k", i+1), Int(i))
	}
	d.Set("k", Int(-1))
	if k, v := d.At(0); k != "k" || v != Int(-1) || d.Len() != 100 {
		t.Errorf("At(0) = %s, %v of %d", k, v, d.Len())
	}
	if _, ok := d.Get("nope"); ok {
		t.Error("found a key that was never set")
	}
}

func FuzzUnescape(f *testing.F) {
	f.Add(`a\x41\N{BULLET}\ud83d\ude00\`)
	f.Fuzz(func(_ *testing.T, s string) { _, _, _ = Unescape(s) })
}

func FuzzFormat(f *testing.F) {
	f.Add("*^+#020,.3f", 1.5, "x")
	f.Fuzz(func(_ *testing.T, spec string, x float64, s string) {
		for _, v := range []Value{Float(x), String(s), Int(int64(len(s)))} {
			_, _ = FormatSpec(v, 0, spec)
			_, _ = Percent(spec, v, false)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	f.Add(`{"a": [1, 2.5e3, "\ud83d\ude00", null]}`)
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseJSON(s)
		if err != nil {
			return
		}
		if _, err := AppendJSON(nil, v, PythonJSON); err != nil {
			t.Errorf("%q was read but can not be written: %v", s, err)
		}
	})
}
