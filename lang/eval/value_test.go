package eval

import "github.com/intendant/intendant/lang/value"

func str(s string) value.Value { return value.String(s) }

func integer(n int64) value.Value { return value.Int(n) }
