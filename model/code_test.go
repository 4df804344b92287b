package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
)

const emptyFile = "da39a3ee5e6b4b0d3255bfef95601890afd80709"

func code() model.ModuleCode {
	return model.ModuleCode{
		Module:       "fabric",
		Files:        []model.CodeFile{{Name: "inmanta_plugins.fabric.vlan", Hash: emptyFile}, {Name: "inmanta_plugins.fabric", Hash: emptyFile}},
		Requirements: []string{"requests>=2", "requests>=2", "attrs"},
		Types:        []string{"fabric::Vlan"},
	}.Canonical()
}

func TestModuleCode(t *testing.T) {
	t.Parallel()
	c := code()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Files[0].Name != "inmanta_plugins.fabric" || len(c.Requirements) != 2 || c.Requirements[0] != "attrs" {
		t.Errorf("canonical code is %+v, want it sorted and without doubles", c)
	}
	for name, change := range map[string]func(*model.ModuleCode){
		"requirement": func(c *model.ModuleCode) { c.Requirements = []string{"attrs"} },
		"content":     func(c *model.ModuleCode) { c.Files[0].Hash = strings.Repeat("0", 40) },
		"file name":   func(c *model.ModuleCode) { c.Files[1].Name = "inmanta_plugins.fabric.port" },
	} {
		other := code()
		change(&other)
		if other.Sum() == c.Digest {
			t.Errorf("the digest does not change with the %s", name)
		}
	}
}

func TestModuleCodeRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*model.ModuleCode)
		want   string
	}{
		"module path":      {func(c *model.ModuleCode) { c.Module = "../fabric" }, "one Python identifier"},
		"file path":        {func(c *model.ModuleCode) { c.Files[0].Name = "inmanta_plugins.fabric/../x" }, "dotted name"},
		"foreign file":     {func(c *model.ModuleCode) { c.Files[0].Name = "inmanta_plugins.fabricator" }, "not below"},
		"our package":      {func(c *model.ModuleCode) { c.Files[0].Name = "inmanta.resources" }, "not below"},
		"double file":      {func(c *model.ModuleCode) { c.Files[0].Name = c.Files[1].Name }, "there twice"},
		"hash":             {func(c *model.ModuleCode) { c.Files[0].Hash = "../../etc/passwd" }, "not a SHA-1"},
		"pip option":       {func(c *model.ModuleCode) { c.Requirements = []string{"--index-url=http://evil"} }, "option of pip"},
		"multi-line":       {func(c *model.ModuleCode) { c.Requirements = []string{"a\n-r b"} }, "more than one line"},
		"too many files":   {func(c *model.ModuleCode) { c.Files = make([]model.CodeFile, model.MaxCodeFiles+1) }, "at most"},
		"too many types":   {func(c *model.ModuleCode) { c.Types = make([]string, model.MaxCodeTypes+1) }, "at most"},
		"too many demands": {func(c *model.ModuleCode) { c.Requirements = make([]string, model.MaxCodeRequirements+1) }, "at most"},
		"empty type":       {func(c *model.ModuleCode) { c.Types = []string{""} }, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := code()
			tc.change(&c)
			c.Digest = c.Sum()
			if err := c.Validate(); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate = %v, want %q", err, tc.want)
			}
		})
	}
	c := code()
	c.Digest = "wrong"
	if err := c.Validate(); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a wrong digest is taken: %v", err)
	}
}
