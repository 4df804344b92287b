package langtest

import (
	"fmt"
	"testing/fstest"
)

// Library describes a project that consists of many modules, as [Library.Project] makes it.
type Library struct {
	// Modules is the number of modules, Entities how many each defines.
	Modules, Entities int
	// Instances is how many instances of each module the main file makes.
	Instances int
}

// ModuleName is the name of the k-th module.
func (l Library) ModuleName(k int) string { return fmt.Sprintf("lib%d", k) }

// Project is the project. Each module imports the one before it, extends its entities and relates to them.
func (l Library) Project() fstest.MapFS {
	modules := make(map[string]string, l.Modules)
	main := &source{}
	for k := range l.Modules {
		modules[l.ModuleName(k)] = l.Module(k)
		main.addf("import %s", l.ModuleName(k))
	}
	for k := range l.Modules {
		for i := range l.Instances {
			main.addf(`%[1]s::Type%[2]d(name="%[1]s-%[3]d", size=%[3]d)`, l.ModuleName(k), i%l.Entities, i)
		}
	}
	return project(main.String(), modules)
}

// Module is the text of the k-th module.
func (l Library) Module(k int) string {
	b := &source{}
	nothing, parent := "lib0::nothing", "lib0::Base"
	switch k {
	case 0:
		b.addf(noImplementation + "entity Base:\n    string name\n    int size = 0\nend")
		nothing, parent = "nothing", "Base"
	case 1:
		b.addf("import lib0")
	default:
		b.addf("import lib0\nimport %s", l.ModuleName(k-1))
	}
	for e := range l.Entities {
		if k%generations > 0 {
			parent = fmt.Sprintf("%s::Type%d", l.ModuleName(k-1), e)
		}
		b.addf(libraryType, e, parent, k, nothing)
	}
	return b.String()
}

// generations is after how many modules the line of descent starts again.
const generations = 10

const libraryType = `
entity Type%[1]d extends %[2]s:
    """
    The entity %[1]d of this module.

    :attr label%[3]d: a text about the instance
    """
    string label%[3]d = "none"
    string[] notes%[3]d = []
end
index Type%[1]d(name, label%[3]d)
Type%[1]d.parts%[3]d [0:] -- Part%[1]d.whole%[3]d [1]
entity Part%[1]d:
    string name
    string text
end
implement Part%[1]d using %[4]s
implement Type%[1]d using build%[1]d
implementation build%[1]d for Type%[1]d:
    # What an instance is made of.
    self.parts%[3]d += Part%[1]d(name=f"{self.name}/%[1]d", text="part of {{self.name}}, of size {{self.size}}")
    if self.size > 3 and self.label%[3]d != "skip":
        self.parts%[3]d += Part%[1]d(name="{{self.name}} large", text=self.size > 10 ? "very large" : "large")
    end
    for note in self.notes%[3]d:
        self.parts%[3]d += Part%[1]d(name=note, text="%[1]d {{note}} of {{self.name}}")
    end
end
`
