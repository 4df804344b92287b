package lang

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// constraintForm matches a requirement that bounds versions: a name, extras that do not count, bounds and perhaps a marker.
var constraintForm = lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([=<>!~].*)$`)

// packages says where agents get the packages that the code of modules requires: what project.yml says below pip, with the versions
// that the project's own requirements.txt allows. It returns nil when the project says nothing.
func packages(p *module.Program) *model.PipConfig {
	if p == nil || p.Manifest == nil {
		return nil
	}
	from := p.Manifest.Pip
	out := model.PipConfig{
		IndexURL: from.IndexURL, ExtraIndexURL: from.ExtraIndexURL, Pre: from.Pre != nil && *from.Pre, UseSystemConfig: from.UseSystemConfig,
	}
	if i := slices.IndexFunc(p.Modules, func(m *module.Module) bool { return m.Layout == module.LayoutProject }); i >= 0 {
		// A file that can not be used is reported by the commands that install what it lists.
		lines, _ := module.ReadRequirements(p.Modules[i].Root)
		for _, line := range lines {
			if m := constraintForm().FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				out.Constraints = append(out.Constraints, m[1]+m[2])
			}
		}
	}
	if out.IndexURL == "" && len(out.ExtraIndexURL) == 0 && !out.Pre && !out.UseSystemConfig && len(out.Constraints) == 0 {
		return nil
	}
	return &out
}
