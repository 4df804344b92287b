package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lazyregexp"
)

// alternatives matches the help of a flag that takes one of a few words, such as "form of the diagnostics: text, json or sarif".
var alternatives = lazyregexp.New(`(?:^|: )((?:[a-z]+, )*[a-z]+ or [a-z]+)(?:$| \()`)

// completions lets shells complete what can be known without a server, in every command: words that flags choose from, directories
// of projects, files of models, and locked modules.
func completions(cmd *cobra.Command) {
	flags := func(f *pflag.Flag) {
		switch m := alternatives().FindStringSubmatch(f.Usage); {
		case f.Value.Type() == "bool":
		case m != nil:
			words := strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ")
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for one that has a function
		case strings.Contains(f.Usage, "directory"):
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
		}
	}
	cmd.PersistentFlags().VisitAll(flags)
	cmd.LocalNonPersistentFlags().VisitAll(flags)
	switch {
	case cmd.ValidArgsFunction != nil:
	case cmd.CommandPath() == "intendant module update":
		cmd.ValidArgsFunction = completeLocked
	case cmd.CommandPath() == "intendant fmt":
		cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"cf"}, cobra.ShellCompDirectiveFilterFileExt)
	case strings.Contains(cmd.Use, "[DIR]"):
		cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case cmd.Runnable() && !strings.Contains(cmd.Use, "FILE"):
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		completions(sub)
	}
}

// completeLocked lists the modules and packages that the project's lock names.
func completeLocked(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	dir, err := cmd.Flags().GetString("project")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = root.Close() }()
	lock, err := module.ReadLock(root.FS())
	if err != nil || lock == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	taken := map[string]bool{}
	for _, g := range given {
		taken[g] = true
	}
	var out []string
	add := func(name string) {
		if !taken[name] {
			taken[name] = true
			out = append(out, name)
		}
	}
	for _, m := range lock.Modules {
		add(m.Name)
	}
	if lock.Python != nil {
		for _, p := range lock.Python.Packages {
			if module.NameOf(p.Name) == "" {
				add(p.Name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
