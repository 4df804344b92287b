package template

import (
	"math"
	"math/big"
	"strconv"

	"github.com/intendant/intendant/lang/value"
)

func toFloat(v any) (any, bool) {
	switch x := v.(type) {
	case markup:
		return value.ParseFloat(string(x))
	case *undefined:
		x.fail()
	case value.Value:
		switch x.(type) {
		case value.String, value.Int, value.Bool, value.Float, *value.BigInt:
			f, err := value.Cast("float", x)
			return f, err == nil
		}
	}
	return nil, false
}

func fileSize(_ *filterCall, v any, a []any) any {
	f, ok := toFloat(v)
	if !ok {
		if _, ok := asString(v); !ok {
			typeError("float() argument must be a string or a real number, not '%s'", typeName(v))
		}
		valueError("could not convert string to float: %s", repr(v))
	}
	bytes := float64(f.(value.Float))
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if a[0] != nil && truth(a[0]) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case bytes == 1:
		return value.String("1 Byte")
	case bytes < base:
		whole, _ := value.Cast("int", value.Float(bytes))
		if whole == nil {
			fail("OverflowError", "cannot convert float infinity to integer")
		}
		return value.String(value.Str(whole) + " Bytes")
	}
	for i, name := range units {
		unit := math.Pow(base, float64(i+2))
		if bytes < unit || i == len(units)-1 {
			return value.String(strconv.FormatFloat(base*bytes/unit, 'f', 1, 64) + " " + name)
		}
	}
	return nil
}

func toInt(_ *filterCall, v any, a []any) any {
	def := a[0]
	if def == nil {
		def = value.Int(0)
	}
	if s, ok := asString(v); ok {
		if n, ok := value.ParseInt(s, intArg(a[1], 10)); ok {
			return n
		}
	} else if n, ok := number(v); ok {
		if i, err := value.Cast("int", n); err == nil {
			return i
		}
		return def
	}
	if f, ok := toFloat(v); ok {
		if i, err := value.Cast("int", f.(value.Value)); err == nil {
			return i
		}
	}
	return def
}

func round(_ *filterCall, v any, a []any) any {
	method := "common"
	if a[1] != nil {
		method = text(a[1])
	}
	precision := intArg(a[0], 0)
	n, ok := number(v)
	if !ok {
		typeError("type %s doesn't define __round__ method", typeName(v))
	}
	switch method {
	case "common":
		if i, ok := bigOf(n); ok {
			return value.NewInt(roundInt(i, precision))
		}
		return value.Float(roundFloat(float64(n.(value.Float)), precision))
	case "ceil", "floor":
		f, err := value.Cast("float", n)
		check(err)
		scale := math.Pow(10, float64(precision))
		x := float64(f.(value.Float)) * scale
		if math.IsInf(x, 0) || math.IsNaN(x) {
			fail("OverflowError", "cannot convert float infinity to integer")
		}
		if method == "ceil" {
			return value.Float(math.Ceil(x) / scale)
		}
		return value.Float(math.Floor(x) / scale)
	}
	fail("FilterArgumentError", "method must be common, ceil or floor")
	return nil
}

// roundFloat is Python's round(f, precision): to the nearest decimal, ties of the exact value to even.
func roundFloat(f float64, precision int) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || precision > 400 {
		return f
	}
	if precision < -400 {
		return math.Copysign(0, f)
	}
	if precision >= 0 {
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		return out
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-precision)), nil)
	q := new(big.Rat).Quo(exact, new(big.Rat).SetInt(scale))
	whole := nearestEven(q)
	out, _ := new(big.Float).SetInt(whole.Mul(whole, scale)).Float64()
	if out == 0 {
		return math.Copysign(0, f)
	}
	return out
}

func nearestEven(q *big.Rat) *big.Int {
	floor, rest := new(big.Int).DivMod(q.Num(), q.Denom(), new(big.Int))
	switch new(big.Int).Lsh(rest, 1).Cmp(q.Denom()) {
	case 1:
		floor.Add(floor, big.NewInt(1))
	case 0:
		if floor.Bit(0) == 1 {
			floor.Add(floor, big.NewInt(1))
		}
	}
	return floor
}

func roundInt(i *big.Int, precision int) *big.Int {
	if precision >= 0 {
		return i
	}
	if -precision > 5000 {
		return new(big.Int)
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-precision)), nil)
	whole := nearestEven(new(big.Rat).SetFrac(i, scale))
	return whole.Mul(whole, scale)
}
