package check

import (
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// constant is the value of an expression that is one.
func constant(e syntax.Expr) (value.Value, bool) {
	switch e := e.(type) {
	case *syntax.Literal:
		return e.Value, true
	case *syntax.List:
		items := make([]value.Value, 0, len(e.Items))
		for _, it := range e.Items {
			v, ok := constant(it)
			if !ok {
				return nil, false
			}
			if l, ok := v.(*value.List); ok {
				items = append(items, l.Items...)
				continue
			}
			items = append(items, v)
		}
		return &value.List{Items: items}, true
	case *syntax.Dict:
		d := value.NewDict(len(e.Entries))
		for _, en := range e.Entries {
			v, ok := constant(en.Value)
			if !ok {
				return nil, false
			}
			d.Set(keyText(en.Key), v)
		}
		return d, true
	}
	return nil, false
}

// keyText is the text of a dictionary's key.
func keyText(l *syntax.Literal) string {
	s, _ := l.Value.(value.String)
	return string(s)
}
