package server

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// maxName is the greatest length of a name in bytes.
const maxName = 255

type projectArgs struct {
	ID      model.ProjectID `arg:"id"`
	Details bool            `arg:"environment_details,optional" doc:"Fill description and icon of the environments."`
}

type projectIDArgs struct {
	ID model.ProjectID `arg:"id"`
}

type projectListArgs struct {
	Details bool `arg:"environment_details,optional" doc:"Fill description and icon of the environments."`
}

type projectCreateArgs struct {
	Name string           `arg:"name"`
	ID   *model.ProjectID `arg:"project_id" doc:"The id to give it; random when absent."`
}

type projectModifyArgs struct {
	ID   model.ProjectID `arg:"id"`
	Name string          `arg:"name"`
}

type projectV1 struct {
	Project api.ProjectV1 `json:"project"`
}

type projectsV1 struct {
	Projects []api.ProjectV1 `json:"projects"`
}

func checkName(what, name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", invalidArgument("name", "value_error", "the name of %s must not be empty", what)
	}
	if len(name) > maxName {
		return "", invalidArgument("name", "value_error", "the name of %s must not be longer than %d bytes", what, maxName)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", invalidArgument("name", "value_error", "the name of %s must not have control characters", what)
	}
	return name, nil
}

func (s *Server) projectCreate(ctx context.Context, c *call, a projectCreateArgs) (api.Project, error) {
	name, err := checkName("a project", a.Name)
	if err != nil {
		return api.Project{}, err
	}
	p := model.Project{ID: model.ProjectID{UUID: uuid.New()}, Name: name}
	if a.ID != nil {
		p.ID = *a.ID
	}
	if err := s.store.CreateProject(ctx, p); err != nil {
		return api.Project{}, err
	}
	return projectOf(p, nil, false), nil
}

func (s *Server) projectModify(ctx context.Context, c *call, a projectModifyArgs) (api.Project, error) {
	name, err := checkName("a project", a.Name)
	if err != nil {
		return api.Project{}, err
	}
	if err := s.store.RenameProject(ctx, a.ID, name); err != nil {
		return api.Project{}, err
	}
	return s.projectGet(ctx, c, projectArgs{ID: a.ID})
}

func (s *Server) projectDelete(ctx context.Context, _ *call, a projectIDArgs) (none, error) {
	return none{}, s.store.DeleteProject(ctx, a.ID)
}

func (s *Server) projectGet(ctx context.Context, _ *call, a projectArgs) (api.Project, error) {
	p, err := s.store.Project(ctx, a.ID)
	if err != nil {
		return api.Project{}, err
	}
	environments, err := s.store.Environments(ctx, &a.ID)
	if err != nil {
		return api.Project{}, err
	}
	return projectOf(p, environments, a.Details), nil
}

func (s *Server) projectList(ctx context.Context, c *call, a projectListArgs) ([]api.Project, error) {
	projects, err := s.store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	environments, err := s.store.Environments(ctx, nil)
	if err != nil {
		return nil, err
	}
	of := make(map[model.ProjectID][]model.Environment, len(projects))
	for _, e := range environments {
		if c.identity.Environment == nil || *c.identity.Environment == e.ID {
			of[e.Project] = append(of[e.Project], e)
		}
	}
	return convertAll(projects, func(p model.Project) api.Project { return projectOf(p, of[p.ID], a.Details) }), nil
}

func (s *Server) projectCreateV1(ctx context.Context, c *call, a projectCreateArgs) (projectV1, error) {
	p, err := s.projectCreate(ctx, c, a)
	return projectV1{projectV1Of(p)}, err
}

func (s *Server) projectModifyV1(ctx context.Context, c *call, a projectModifyArgs) (projectV1, error) {
	p, err := s.projectModify(ctx, c, a)
	return projectV1{projectV1Of(p)}, err
}

func (s *Server) projectGetV1(ctx context.Context, c *call, a projectIDArgs) (projectV1, error) {
	p, err := s.projectGet(ctx, c, projectArgs{ID: a.ID})
	return projectV1{projectV1Of(p)}, err
}

func (s *Server) projectListV1(ctx context.Context, c *call, _ struct{}) (projectsV1, error) {
	list, err := s.projectList(ctx, c, projectListArgs{})
	return projectsV1{convertAll(list, projectV1Of)}, err
}

func projectOf(p model.Project, environments []model.Environment, details bool) api.Project {
	return api.Project{
		ID: p.ID.String(), Name: p.Name,
		Environments: convertAll(environments, func(e model.Environment) api.Environment { return environmentOf(e, details) }),
	}
}

func projectV1Of(p api.Project) api.ProjectV1 {
	return api.ProjectV1{
		ID: p.ID, Name: p.Name,
		Environments: convertAll(p.Environments, func(e api.Environment) string { return e.ID }),
	}
}
