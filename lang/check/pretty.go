package check

import (
	"strings"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// pretty is an expression as messages write it.
func pretty(x syntax.Expr) string {
	switch e := x.(type) {
	case *syntax.Literal:
		if b, ok := e.Value.(value.Bool); ok {
			return strings.ToLower(value.Repr(b))
		}
		return value.Repr(e.Value)
	case syntax.Ref:
		return e.Text()
	case *syntax.Regex:
		return "/" + e.Pattern + "/"
	case *syntax.Binary:
		if e.Op == syntax.OpNotIn {
			return "(not (" + pretty(e.X) + " in " + pretty(e.Y) + "))"
		}
		return "(" + pretty(e.X) + " " + e.Op.String() + " " + pretty(e.Y) + ")"
	case *syntax.Not:
		return "(not " + pretty(e.X) + ")"
	case *syntax.Cond:
		return pretty(e.If) + " ? " + pretty(e.Then) + " : " + pretty(e.Else)
	case *syntax.List:
		parts := make([]string, len(e.Items))
		for i, it := range e.Items {
			parts[i] = pretty(it)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *syntax.Dict:
		return "Dict()"
	case *syntax.Call:
		return e.Func.Text + "(" + prettyArgs(e.Args) + ")"
	case *syntax.Construct:
		return e.Type.Text + "(" + prettyArgs(e.Args) + ")"
	case *syntax.IsDefined:
		return pretty(e.X) + " is defined"
	case *syntax.MapLookup:
		return pretty(e.X) + "[" + pretty(e.Key) + "]"
	case *syntax.IndexLookup:
		return e.Type.Text + "[" + prettyArgs(e.Args) + "]"
	case *syntax.ShortLookup:
		return e.X.Text() + "[" + prettyArgs(e.Args) + "]"
	case *syntax.Interpolation:
		return "Format(" + value.StringRepr(e.Text) + ")"
	case *syntax.FString:
		return value.StringRepr(e.Text)
	case *syntax.ListComp:
		var b strings.Builder
		b.WriteString("[" + pretty(e.Value))
		for _, f := range e.Fors {
			b.WriteString(" for " + f.Var.Text + " in " + pretty(f.Iter))
		}
		for _, c := range e.Conds {
			b.WriteString(" if " + pretty(c))
		}
		b.WriteString("]")
		return b.String()
	}
	return "expression"
}

func prettyArgs(args []syntax.Arg) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = pretty(a.Value)
		switch {
		case a.Name.Valid():
			parts[i] = a.Name.Text + "=" + parts[i]
		case a.Unpack.Valid():
			parts[i] = "**" + parts[i]
		}
	}
	return strings.Join(parts, ",")
}
