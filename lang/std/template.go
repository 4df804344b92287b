package std

import (
	"errors"

	"github.com/intendant/intendant/lang/template"
	"github.com/intendant/intendant/lang/value"
)

// templatePlugin is std::template. The engine lives as long as the plugin, so that a template is read only once.
func templatePlugin() *value.Plugin {
	engine := template.New()
	return plugin("template", "string", func(c value.Context, a []value.Value) (value.Value, error) {
		variables, _ := a[1].(*value.Dict)
		if variables != nil && variables.Len() == 0 {
			variables = nil
		}
		s, err := engine.Render(c, text(a[0]), variables)
		if te, ok := errors.AsType[*template.Error](err); ok && te.Class == "UndefinedError" {
			err = &value.ModelError{Class: "NotFoundException", Err: err}
		}
		return value.String(s), err
	}, arg("path", "string"), value.Param{Name: "kwargs", Type: "any", Kind: value.VarKeyword})
}
