package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newEnvironmentCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "Environments: where a model comes from, and how it is deployed"}
	r.serverFlags(cmd)
	cmd.AddCommand(r.environmentList(), r.environmentCreate(), r.environmentShow(), r.environmentSave(), r.environmentModify(),
		r.environmentDelete(), r.environmentRecompile(), r.environmentSwitch("halt", "Stop compiling and deploying until it is resumed", (*api.Client).Halt),
		r.environmentSwitch("resume", "Go on after a halt", (*api.Client).Resume), r.environmentSettings(), r.environmentWait(), r.environmentWatch())
	return cmd
}

func (r *remote) environmentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the environments",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			all, err := s.Environments(cmd.Context(), true)
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, e := range all {
				rows = append(rows, []string{e.ProjectName, e.Name, e.ID, e.RepoURL, e.RepoBranch, state(e)})
			}
			return s.table([]string{"Project", "Environment", "ID", "Repository", "Branch", "State"}, rows, "There are no environments.")
		},
	}
}

// state says in a few words how an environment is.
func state(e api.EnvironmentDetails) string {
	switch {
	case e.Halted:
		return "halted"
	case e.Compiling:
		return "compiling"
	case e.ReleasedVersion == 0:
		return "nothing deployed"
	case e.DeploySummary == nil:
		return fmt.Sprintf("version %d", e.ReleasedVersion)
	}
	return fmt.Sprintf("version %d: %s", e.ReleasedVersion, summary(*e.DeploySummary))
}

// summary counts resources by state, what matters first.
func summary(d api.DeploySummary) string {
	parts := []string{fmt.Sprintf("%d/%d deployed", d.ByState["deployed"], d.Total)}
	for _, name := range slices.Sorted(maps.Keys(d.ByState)) {
		if n := d.ByState[name]; n > 0 && name != "deployed" {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(name, "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

func (s *session) environment(e api.EnvironmentDetails, format string) error {
	if format != "" {
		_, err := fmt.Fprintln(s.out, strings.NewReplacer("{id}", e.ID, "{name}", e.Name, "{project}", e.ProjectID, "{repo_url}", e.RepoURL, "{repo_branch}", e.RepoBranch).Replace(format))
		return err
	}
	if done, err := s.value(e); done {
		return err
	}
	return s.facts([2]string{"ID", e.ID}, [2]string{"Name", e.Name}, [2]string{"Project", e.ProjectName}, [2]string{"Repository URL", e.RepoURL},
		[2]string{"Branch Name", e.RepoBranch}, [2]string{"Directory", e.RepoPath}, [2]string{"Repository", e.Repository},
		[2]string{"Commit", shortCommit(e.Revision)}, [2]string{"State", state(e)})
}

func (r *remote) environmentCreate() *cobra.Command {
	var name, project, repoURL, branch, path, repository string
	var save bool
	cmd := &cobra.Command{
		Use: "create", Short: "Create an environment",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), s.Client, project)
			if err != nil {
				return err
			}
			w := api.EnvironmentWrite{ProjectID: p.ID, Name: name}
			for to, text := range map[**string]string{&w.RepoURL: repoURL, &w.Repository: repository, &w.RepoBranch: branch, &w.RepoPath: path} {
				if text != "" {
					*to = &text
				}
			}
			e, err := s.CreateEnvironment(cmd.Context(), w)
			if err != nil {
				return err
			}
			if save {
				if err := saveEnvironment(s, e); err != nil {
					return err
				}
			}
			return s.environment(e, "")
		},
	}
	f := cmd.Flags()
	f.StringVarP(&name, "name", "n", "", "name of the environment")
	f.StringVarP(&project, "project", "p", "", "name or id of its project")
	f.StringVarP(&repoURL, "repo-url", "r", "", "URL of the git repository to watch; without it and --repository, models are uploaded")
	f.StringVarP(&branch, "branch", "b", "", "branch to watch; empty: the repository's default")
	f.StringVar(&path, "path", "", "directory of the project in the repository")
	f.StringVar(&repository, "repository", "", "name of a repository made before, instead of a URL")
	f.BoolVarP(&save, "save", "s", false, "write .inmanta in the working directory, for compile and export")
	for _, required := range []string{"name", "project"} {
		_ = cmd.MarkFlagRequired(required)
	}
	return cmd
}

func (r *remote) environmentShow() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "show ENVIRONMENT", Short: "Show an environment", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, e, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			if e, err = s.EnvironmentDetails(cmd.Context(), e.ID); err != nil {
				return err
			}
			return s.environment(e, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "print this text with {id}, {name}, {project}, {repo_url}, {repo_branch} filled in")
	return cmd
}

// named connects to the environment of an argument.
func (r *remote) named(cmd *cobra.Command, name string) (*session, api.EnvironmentDetails, error) {
	s, err := r.plain(cmd)
	if err != nil {
		return nil, api.EnvironmentDetails{}, err
	}
	e, err := findEnvironment(cmd.Context(), s.Client, name)
	if err != nil {
		return nil, e, err
	}
	s.Client = s.In(e.ID)
	return s, e, nil
}

// savedFile is what compile and export read in a project.
const savedFile = ".inmanta"

func saveEnvironment(s *session, e api.EnvironmentDetails) error {
	if _, err := os.Stat(savedFile); err == nil {
		return fmt.Errorf("%s is there already: remove it first", savedFile)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for %s: %w", savedFile, err)
	}
	u, err := url.Parse(s.BaseURL())
	if err != nil {
		return fmt.Errorf("reading the server's address: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[config]\nenvironment = %s\n", e.ID)
	for _, section := range []string{"compiler_rest_transport", "cmdline_rest_transport"} {
		fmt.Fprintf(&b, "\n[%s]\nhost = %s\nport = %s\nssl = %t\n", section, u.Hostname(), u.Port(), u.Scheme == "https")
	}
	if err := os.WriteFile(savedFile, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("saving the environment: %w", err)
	}
	return nil
}

func (r *remote) environmentSave() *cobra.Command {
	return &cobra.Command{
		Use: "save ENVIRONMENT", Short: "Write .inmanta for compile and export in this directory", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, e, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			if err := saveEnvironment(s, e); err != nil {
				return err
			}
			return s.say("Saved to %s.", savedFile)
		},
	}
}

func (r *remote) environmentModify() *cobra.Command {
	var name, repoURL, branch, path string
	cmd := &cobra.Command{
		Use: "modify ENVIRONMENT", Short: "Change an environment; what is not given stays", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, e, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			w := api.EnvironmentWrite{Name: name}
			for flag, v := range map[string]struct {
				to   **string
				text string
			}{"repo-url": {&w.RepoURL, repoURL}, "branch": {&w.RepoBranch, branch}, "path": {&w.RepoPath, path}} {
				if cmd.Flags().Changed(flag) {
					*v.to = &v.text
				}
			}
			e, err = s.UpdateEnvironment(cmd.Context(), e.ID, w)
			if err != nil {
				return err
			}
			return s.environment(e, "")
		},
	}
	cmd.Flags().StringVarP(&name, "name", "n", "", "new name")
	cmd.Flags().StringVarP(&repoURL, "repo-url", "r", "", "new repository URL")
	cmd.Flags().StringVarP(&branch, "branch", "b", "", "new branch")
	cmd.Flags().StringVar(&path, "path", "", "new directory in the repository")
	return cmd
}

func (r *remote) environmentDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete ENVIRONMENT", Short: "Delete an environment with all its versions and history", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, e, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			if err := s.DeleteEnvironment(cmd.Context(), e.ID); err != nil {
				return err
			}
			return s.say("Environment successfully deleted")
		},
	}
}

func (r *remote) environmentRecompile() *cobra.Command {
	var update bool
	cmd := &cobra.Command{
		Use: "recompile ENVIRONMENT", Short: "Compile the model on the server", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			if _, err := s.RequestCompile(cmd.Context(), api.CompileRequest{Update: &update, Message: "Requested on the command line"}); err != nil {
				return err
			}
			if update {
				return s.say("Update & Recompile triggered successfully")
			}
			return s.say("Recompile triggered successfully")
		},
	}
	cmd.Flags().BoolVarP(&update, "update", "u", false, "fetch the repository first")
	return cmd
}

func (r *remote) environmentSwitch(action, short string, act func(*api.Client, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: action + " ENVIRONMENT", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			return act(s.Client, cmd.Context())
		},
	}
}

func (r *remote) environmentSettings() *cobra.Command {
	cmd := &cobra.Command{Use: "setting", Short: "Settings of an environment"}
	r.environmentFlag(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List all settings with their values and meaning",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			all, err := s.Settings(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, key := range slices.Sorted(maps.Keys(all.Definition)) {
				d := all.Definition[key]
				rows = append(rows, []string{key, plainJSON(all.Settings[key]), plainJSON(d.Default), d.Type, d.Doc})
			}
			return s.table([]string{"Key", "Value", "Default value", "Type", "Help"}, rows, "There are no settings.")
		},
	})
	var key, value string
	set := &cobra.Command{
		Use: "set", Short: "Set a setting",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			return s.SetSetting(cmd.Context(), key, value)
		},
	}
	// The letter is the reference's. A flag of its own hides the --output of the other commands, whose letter it is: nothing is printed.
	set.Flags().StringVarP(&value, "value", "o", "", "its value")
	set.Flags().String("output", "table", "")
	_ = set.Flags().MarkHidden("output")
	get := &cobra.Command{
		Use: "get", Short: "Print the value in force",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			v, err := s.Setting(cmd.Context(), key)
			if err != nil {
				return err
			}
			return s.say("%s", plainJSON(v))
		},
	}
	del := &cobra.Command{
		Use: "delete", Short: "Go back to the default",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			return s.DeleteSetting(cmd.Context(), key)
		},
	}
	for _, c := range []*cobra.Command{set, get, del} {
		c.Flags().StringVarP(&key, "key", "k", "", "name of the setting")
		_ = c.MarkFlagRequired("key")
	}
	_ = set.MarkFlagRequired("value")
	cmd.AddCommand(set, get, del)
	return cmd
}

// plainJSON is a JSON value as people write it: text without quotes.
func plainJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
