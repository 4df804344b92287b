package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newProjectCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "project", Short: "Projects: named groups of environments on a server, and directories with models"}
	r.serverFlags(cmd)
	projectModules(g, cmd, r.output)

	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the projects",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			all, err := s.Projects(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, p := range all {
				rows = append(rows, []string{p.ID, p.Name, strconv.Itoa(len(p.Environments))})
			}
			return s.table([]string{"ID", "Name", "Environments"}, rows, "There are no projects.")
		},
	}, &cobra.Command{
		Use: "show PROJECT", Short: "Show a project", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), s.Client, args[0])
			if err != nil {
				return err
			}
			return s.project(p)
		},
	})

	var name string
	create := &cobra.Command{
		Use: "create", Short: "Create a project",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			p, err := s.CreateProject(cmd.Context(), name, "")
			if err != nil {
				return err
			}
			return s.project(p)
		},
	}
	create.Flags().StringVarP(&name, "name", "n", "", "name of the project")
	_ = create.MarkFlagRequired("name")

	modify := &cobra.Command{
		Use: "modify PROJECT", Short: "Rename a project", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), s.Client, args[0])
			if err != nil {
				return err
			}
			p, err = s.RenameProject(cmd.Context(), p.ID, name)
			if err != nil {
				return err
			}
			return s.project(p)
		},
	}
	modify.Flags().StringVarP(&name, "name", "n", "", "new name")
	_ = modify.MarkFlagRequired("name")

	cmd.AddCommand(create, modify, &cobra.Command{
		Use: "delete PROJECT", Short: "Delete a project without environments", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), s.Client, args[0])
			if err != nil {
				return err
			}
			if err := s.DeleteProject(cmd.Context(), p.ID); err != nil {
				return err
			}
			return s.say("Project successfully deleted")
		},
	})
	return cmd
}

func (s *session) project(p api.Project) error {
	if done, err := s.value(p); done {
		return err
	}
	return s.facts([2]string{"ID", p.ID}, [2]string{"Name", p.Name})
}
