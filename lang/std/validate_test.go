package std

import (
	"bufio"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/intendant/intendant/lang/value"
)

// goldenValue reads a value of testdata/validate.jsonl.
func goldenValue(t *testing.T, v any) value.Value {
	t.Helper()
	switch x := v.(type) {
	case bool:
		return value.Bool(x)
	case string:
		return value.String(x)
	case map[string]any:
		if s, ok := x["int"].(string); ok {
			n, _ := new(big.Int).SetString(s, 10)
			return value.NewInt(n)
		}
		f, _ := value.ParseFloat(x["float"].(string))
		return f
	}
	t.Fatalf("unexpected %T", v)
	return nil
}

func TestValidateAgainstPydantic(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/validate.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var row struct {
			T  string
			V  any
			P  map[string]any
			OK bool
		}
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		params := value.NewDict(0)
		for k, v := range row.P {
			params.Set(k, goldenValue(t, v))
		}
		got, err := validate(row.T, goldenValue(t, row.V), params)
		if err != nil || got != row.OK {
			t.Errorf("validate(%s, %.100v, %v) = %v, %v, want %v", row.T, row.V, row.P, got, err, row.OK)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
}
