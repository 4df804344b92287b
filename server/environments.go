package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

const (
	maxDescription = 255
	maxIcon        = 64 << 10
)

type environmentIDArgs struct {
	ID model.EnvironmentID `arg:"id"`
}

type environmentArgs struct {
	ID      model.EnvironmentID `arg:"id"`
	Details bool                `arg:"details,optional" doc:"Fill description and icon."`
}

type environmentListArgs struct {
	Details bool `arg:"details,optional" doc:"Fill description and icon."`
}

type environmentCreateArgs struct {
	Project     model.ProjectID      `arg:"project_id"`
	Name        string               `arg:"name"`
	Repository  *string              `arg:"repository" doc:"The URL of the git repository."`
	Branch      *string              `arg:"branch"`
	ID          *model.EnvironmentID `arg:"environment_id" doc:"The id to give it; random when absent."`
	Description string               `arg:"description,optional"`
	Icon        string               `arg:"icon,optional" doc:"A data URL without its scheme: <mime type>;base64,<data>."`
}

type environmentCreateV1Args struct {
	Project    model.ProjectID      `arg:"project_id"`
	Name       string               `arg:"name"`
	Repository *string              `arg:"repository" doc:"The URL of the git repository."`
	Branch     *string              `arg:"branch"`
	ID         *model.EnvironmentID `arg:"environment_id" doc:"The id to give it; random when absent."`
}

type environmentModifyArgs struct {
	ID          model.EnvironmentID `arg:"id"`
	Name        string              `arg:"name"`
	Repository  *string             `arg:"repository" doc:"The URL of the git repository; kept when absent."`
	Branch      *string             `arg:"branch"`
	Project     *model.ProjectID    `arg:"project_id" doc:"The project to move it to."`
	Description *string             `arg:"description"`
	Icon        *string             `arg:"icon"`
}

type environmentModifyV1Args struct {
	ID         model.EnvironmentID `arg:"id"`
	Name       string              `arg:"name"`
	Repository *string             `arg:"repository" doc:"The URL of the git repository; kept when absent."`
	Branch     *string             `arg:"branch"`
}

type environmentV1 struct {
	Environment api.EnvironmentV1 `json:"environment"`
}

type environmentsV1 struct {
	Environments []api.EnvironmentV1 `json:"environments"`
}

// repositoryURL holds a repository's address to the forms that a clone can take. Credentials belong into the repository's record.
func repositoryURL(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	if strings.HasPrefix(text, "-") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", invalidArgument("repository", "value_error", "%q is not the address of a git repository", text)
	}
	u, err := url.Parse(text)
	switch {
	case err == nil && slices.Contains([]string{"http", "https", "ssh", "git", "file"}, u.Scheme):
		if _, has := u.User.Password(); has {
			return "", invalidArgument("repository", "value_error", "the address of a repository must not have a password in it: set it on the repository instead")
		}
		if u.Scheme != "file" && u.Host == "" {
			return "", invalidArgument("repository", "value_error", "%q names no host", text)
		}
	case path.IsAbs(text), scpAddress().MatchString(text):
	default:
		return "", invalidArgument("repository", "value_error",
			"%q is not the address of a git repository: use https://, ssh://, user@host:path, file:// or an absolute path", text)
	}
	return text, nil
}

var (
	scpAddress   = lazyregexp.New(`^[\w.-]+@[\w.-]+:[^:]+$`)
	notInName    = lazyregexp.New(`[^a-z0-9._-]+`)
	branchName   = lazyregexp.New(`^[^\s~^:?*\[\\\x00-\x1f\x7f-][^\s~^:?*\[\\\x00-\x1f\x7f]*$`)
	repositoryID = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,99}$`)
)

// nameOfRepository derives the name of a repository's record from its address: the last two parts of the path.
func nameOfRepository(address string) model.RepositoryName {
	text := strings.TrimSuffix(strings.TrimRight(address, "/"), ".git")
	if i := strings.Index(text, "://"); i >= 0 {
		text = text[i+3:]
		if _, after, ok := strings.Cut(text, "/"); ok {
			text = after
		}
	} else if _, after, ok := strings.Cut(text, ":"); ok {
		text = after
	}
	parts := strings.Split(strings.Trim(text, "/"), "/")
	if len(parts) > 2 {
		parts = parts[len(parts)-2:]
	}
	name := strings.Trim(notInName().ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "-"), "-._")
	if len(name) > 80 {
		name = strings.Trim(name[len(name)-80:], "-._")
	}
	if name == "" {
		name = "repository"
	}
	return model.RepositoryName(name)
}

func checkBranch(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", nil
	}
	if !branchName().MatchString(name) || strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//") ||
		strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".") {
		return "", invalidArgument("branch", "value_error", "%q is not the name of a branch", name)
	}
	return name, nil
}

// checkPath holds the directory inside a repository to stay in there.
func checkPath(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", nil
	}
	clean := path.Clean(strings.ReplaceAll(name, "\\", "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(clean, 0) ||
		slices.Contains(strings.Split(clean, "/"), ".git") {
		return "", invalidArgument("repo_path", "value_error", "%q is not a directory inside the repository", name)
	}
	if clean == "." {
		return "", nil
	}
	return clean, nil
}

func checkDescription(text string) error {
	if len([]rune(text)) > maxDescription {
		return invalidArgument("description", "value_error", "the description must not be longer than %d characters", maxDescription)
	}
	return nil
}

func checkIcon(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > maxIcon {
		return invalidArgument("icon", "value_error", "the icon must not be larger than %d bytes", maxIcon)
	}
	mime, data, ok := strings.Cut(strings.TrimPrefix(text, "data:"), ";base64,")
	if !ok || !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/svg+xml"}, mime) {
		return invalidArgument("icon", "value_error", "the icon must be <mime type>;base64,<data> with a PNG, JPEG, WebP or SVG image")
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return invalidArgument("icon", "value_error", "the icon's data is not base64: %v", err)
	}
	return nil
}

// together holds to the old rule that a repository and its branch are given both or not at all.
func together(repository, branch *string) error {
	if (repository == nil) != (branch == nil) {
		return invalidArgument("repository", "value_error", "Repository and branch should be set together.")
	}
	return nil
}

// asInvalid gives a clash of names the status that the first two API versions have for it.
func asInvalid(err error) error {
	if errors.Is(err, model.ErrConflict) {
		return invalidArgument("name", "value_error", "%v", err)
	}
	return err
}

func (s *Server) environmentCreate(ctx context.Context, _ *call, a environmentCreateArgs) (api.Environment, error) {
	if err := together(a.Repository, a.Branch); err != nil {
		return api.Environment{}, err
	}
	e, err := s.newEnvironment(ctx, a, "")
	if err != nil {
		return api.Environment{}, asInvalid(err)
	}
	return environmentOf(e, true), nil
}

func (s *Server) newEnvironment(ctx context.Context, a environmentCreateArgs, directory string) (model.Environment, error) {
	name, err := checkName("an environment", a.Name)
	if err != nil {
		return model.Environment{}, err
	}
	e := model.Environment{
		ID: model.EnvironmentID{UUID: uuid.New()}, Project: a.Project, Name: name, Description: a.Description, Icon: a.Icon,
	}
	if a.ID != nil {
		e.ID = *a.ID
	}
	if a.Repository != nil {
		if e.RepoURL, err = repositoryURL(*a.Repository); err != nil {
			return e, err
		}
	}
	if a.Branch != nil {
		if e.RepoBranch, err = checkBranch(*a.Branch); err != nil {
			return e, err
		}
	}
	if e.RepoPath, err = checkPath(directory); err != nil {
		return e, err
	}
	if e.RepoURL != "" {
		e.Repository = nameOfRepository(e.RepoURL)
	}
	if err := errors.Join(checkDescription(e.Description), checkIcon(e.Icon)); err != nil {
		return e, err
	}
	if err := s.store.CreateEnvironment(ctx, e); err != nil {
		return e, err
	}
	return s.store.Environment(ctx, e.ID)
}

func (s *Server) environmentModify(ctx context.Context, _ *call, a environmentModifyArgs) (api.Environment, error) {
	e, err := s.patchEnvironment(ctx, a.ID, model.EnvironmentPatch{
		Project: a.Project, Name: &a.Name, Description: a.Description, Icon: a.Icon, RepoURL: a.Repository, RepoBranch: a.Branch,
	})
	if err != nil {
		return api.Environment{}, asInvalid(err)
	}
	return environmentOf(e, true), nil
}

// patchEnvironment checks what is to change and changes it.
func (s *Server) patchEnvironment(ctx context.Context, id model.EnvironmentID, p model.EnvironmentPatch) (model.Environment, error) {
	check := func(field *string, f func(string) (string, error)) (*string, error) {
		if field == nil {
			return nil, nil
		}
		v, err := f(*field)
		return &v, err
	}
	var err error
	for _, x := range []struct {
		field **string
		check func(string) (string, error)
	}{
		{&p.Name, func(n string) (string, error) { return checkName("an environment", n) }},
		{&p.RepoURL, repositoryURL},
		{&p.RepoBranch, checkBranch},
		{&p.RepoPath, checkPath},
		{&p.Description, func(d string) (string, error) { return d, checkDescription(d) }},
		{&p.Icon, func(i string) (string, error) { return i, checkIcon(i) }},
	} {
		if *x.field, err = check(*x.field, x.check); err != nil {
			return model.Environment{}, err
		}
	}
	if p.RepoURL != nil && *p.RepoURL != "" {
		name := nameOfRepository(*p.RepoURL)
		p.Repository = &name
	}
	if p.Project != nil {
		if _, err := s.store.Project(ctx, *p.Project); err != nil {
			if errors.Is(err, model.ErrNotFound) {
				return model.Environment{}, invalidArgument("project_id", "value_error", "%v", err)
			}
			return model.Environment{}, err
		}
	}
	return s.store.UpdateEnvironment(ctx, id, p)
}

func (s *Server) environmentGet(ctx context.Context, _ *call, a environmentArgs) (api.Environment, error) {
	e, err := s.store.Environment(ctx, a.ID)
	if err != nil {
		return api.Environment{}, unknownEnvironment(a.ID, err)
	}
	return environmentOf(e, a.Details), nil
}

// visibleEnvironments lists what the caller may see.
func (s *Server) visibleEnvironments(ctx context.Context, c *call) ([]model.Environment, error) {
	list, err := s.store.Environments(ctx, nil)
	if only := c.identity.Environment; only != nil {
		list = slices.DeleteFunc(list, func(e model.Environment) bool { return e.ID != *only })
	}
	return list, err
}

func (s *Server) environmentList(ctx context.Context, c *call, a environmentListArgs) ([]api.Environment, error) {
	list, err := s.visibleEnvironments(ctx, c)
	return convertAll(list, func(e model.Environment) api.Environment { return environmentOf(e, a.Details) }), err
}

// unprotected fails for an environment whose setting forbids to clear and delete it.
func (s *Server) unprotected(ctx context.Context, id model.EnvironmentID) error {
	e, err := s.store.Environment(ctx, id)
	if err != nil {
		return unknownEnvironment(id, err)
	}
	if model.ParseSettings(e.Settings).ProtectedEnvironment {
		return fmt.Errorf("environment %s is protected; set %s to false first: %w", e.Name, model.SettingProtectedEnvironment, model.ErrForbidden)
	}
	return nil
}

func (s *Server) environmentDelete(ctx context.Context, _ *call, a environmentIDArgs) (none, error) {
	if err := s.unprotected(ctx, a.ID); err != nil {
		return none{}, err
	}
	return none{}, s.store.DeleteEnvironment(ctx, a.ID)
}

func (s *Server) environmentClear(ctx context.Context, _ *call, a environmentIDArgs) (none, error) {
	if err := s.unprotected(ctx, a.ID); err != nil {
		return none{}, err
	}
	return none{}, s.store.ClearEnvironment(ctx, a.ID)
}

func (s *Server) halt(ctx context.Context, c *call, _ struct{}) (none, error) {
	return none{}, s.store.SetHalted(ctx, c.env(), true, c.identity.Name, c.now)
}

func (s *Server) resume(ctx context.Context, c *call, _ struct{}) (none, error) {
	return none{}, s.store.SetHalted(ctx, c.env(), false, c.identity.Name, c.now)
}

func (s *Server) environmentCreateV1(ctx context.Context, c *call, a environmentCreateV1Args) (environmentV1, error) {
	if err := together(a.Repository, a.Branch); err != nil {
		return environmentV1{}, err
	}
	e, err := s.newEnvironment(ctx, environmentCreateArgs{Project: a.Project, Name: a.Name, Repository: a.Repository, Branch: a.Branch, ID: a.ID}, "")
	return environmentV1{environmentV1Of(e)}, asInvalid(err)
}

func (s *Server) environmentModifyV1(ctx context.Context, _ *call, a environmentModifyV1Args) (environmentV1, error) {
	e, err := s.patchEnvironment(ctx, a.ID, model.EnvironmentPatch{Name: &a.Name, RepoURL: a.Repository, RepoBranch: a.Branch})
	return environmentV1{environmentV1Of(e)}, asInvalid(err)
}

func (s *Server) environmentListV1(ctx context.Context, c *call, _ struct{}) (environmentsV1, error) {
	list, err := s.visibleEnvironments(ctx, c)
	return environmentsV1{convertAll(list, environmentV1Of)}, err
}

type createTokenArgs struct {
	ClientTypes []string `arg:"client_types"`
	Idempotent  bool     `arg:"idempotent,optional"`
	Expire      *int     `arg:"expire" doc:"Seconds until the token expires."`
}

func (s *Server) createToken(context.Context, *call, createTokenArgs) (string, error) {
	return "", refuse(400, "Authentication is disabled: tokens for clients can not be made. Agents get theirs at /api/v3/agent-tokens.")
}

type createTokenV1Args struct {
	ClientTypes []string `arg:"client_types"`
	Idempotent  bool     `arg:"idempotent,optional"`
}

type tokenV1 struct {
	Token string `json:"token"`
}

func (s *Server) createTokenV1(ctx context.Context, c *call, a createTokenV1Args) (tokenV1, error) {
	token, err := s.createToken(ctx, c, createTokenArgs{ClientTypes: a.ClientTypes, Idempotent: a.Idempotent})
	return tokenV1{token}, err
}

type environmentDetailsListArgs struct {
	Project *model.ProjectID `arg:"project_id" doc:"Only the environments of this project."`
	Summary bool             `arg:"deploy_summary,optional" doc:"Count the resources of each environment by status."`
}

type environmentDetailsArgs struct {
	ID      model.EnvironmentID `arg:"id"`
	Summary bool                `arg:"deploy_summary,optional" doc:"Count the environment's resources by status."`
}

type environmentPutArgs struct {
	Project     *model.ProjectID           `arg:"project_id" doc:"Where to create it. Either this or project."`
	ProjectName *string                    `arg:"project" doc:"The name of the project; it is created when there is none."`
	Name        string                     `arg:"name"`
	ID          *model.EnvironmentID       `arg:"environment_id" doc:"The id to give it; random when absent."`
	RepoURL     *string                    `arg:"repo_url" doc:"The URL of the git repository. Either this or repository."`
	Repository  *string                    `arg:"repository" doc:"The name of a repository."`
	RepoBranch  *string                    `arg:"repo_branch" doc:"The branch to deploy; the repository's default when absent."`
	RepoPath    string                     `arg:"repo_path,optional" doc:"The directory of the project inside the repository."`
	Description string                     `arg:"description,optional"`
	Icon        string                     `arg:"icon,optional"`
	Settings    map[string]json.RawMessage `arg:"settings,optional"`
}

type environmentPatchArgs struct {
	ID          model.EnvironmentID `arg:"id"`
	Project     *model.ProjectID    `arg:"project_id"`
	Name        *string             `arg:"name"`
	RepoURL     *string             `arg:"repo_url" doc:"The URL of the git repository; empty for none."`
	Repository  *string             `arg:"repository" doc:"The name of a repository."`
	RepoBranch  *string             `arg:"repo_branch"`
	RepoPath    *string             `arg:"repo_path"`
	Description *string             `arg:"description"`
	Icon        *string             `arg:"icon"`
}

// addressOf resolves the two ways to name a repository.
func (s *Server) addressOf(ctx context.Context, address, name *string) (*string, error) {
	switch {
	case name == nil:
		return address, nil
	case address != nil:
		return nil, invalidArgument("repository", "value_error", "repository and repo_url can not both be given")
	}
	r, err := s.store.Repository(ctx, model.RepositoryName(*name))
	if err != nil {
		return nil, err
	}
	return &r.URL, nil
}

func (s *Server) environmentPut(ctx context.Context, c *call, a environmentPutArgs) (api.EnvironmentDetails, error) {
	address, err := s.addressOf(ctx, a.RepoURL, a.Repository)
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	settings := make(map[string]json.RawMessage, len(a.Settings))
	for name, value := range a.Settings {
		if settings[name], err = model.ConvertSetting(name, value, s.config.ValidateCron); err != nil {
			return api.EnvironmentDetails{}, err
		}
	}
	project := a.Project
	switch {
	case (a.Project == nil) == (a.ProjectName == nil):
		return api.EnvironmentDetails{}, invalidArgument("project_id", "value_error", "either project_id or project must be given")
	case a.ProjectName != nil:
		if project, err = s.projectNamed(ctx, *a.ProjectName); err != nil {
			return api.EnvironmentDetails{}, err
		}
	}
	e, err := s.newEnvironment(ctx, environmentCreateArgs{
		Project: *project, Name: a.Name, Repository: address, Branch: a.RepoBranch, ID: a.ID, Description: a.Description, Icon: a.Icon,
	}, a.RepoPath)
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	for name, value := range settings {
		if err := s.storeSetting(ctx, e.ID, name, value); err != nil {
			return api.EnvironmentDetails{}, err
		}
	}
	return s.environmentDetails(ctx, c, environmentDetailsArgs{ID: e.ID})
}

// projectNamed finds a project or makes it.
func (s *Server) projectNamed(ctx context.Context, name string) (*model.ProjectID, error) {
	name, err := checkName("a project", name)
	if err != nil {
		return nil, err
	}
	find := func() (*model.ProjectID, error) {
		projects, err := s.store.Projects(ctx)
		if i := slices.IndexFunc(projects, func(p model.Project) bool { return p.Name == name }); err == nil && i >= 0 {
			return &projects[i].ID, nil
		}
		return nil, err
	}
	if id, err := find(); id != nil || err != nil {
		return id, err
	}
	p := model.Project{ID: model.ProjectID{UUID: uuid.New()}, Name: name}
	switch err := s.store.CreateProject(ctx, p); {
	case errors.Is(err, model.ErrConflict): // somebody else was faster
		id, err := find()
		if err == nil && id == nil {
			err = fmt.Errorf("project %q: %w", name, model.ErrNotFound)
		}
		return id, err
	case err != nil:
		return nil, err
	}
	return &p.ID, nil
}

func (s *Server) environmentPatch(ctx context.Context, c *call, a environmentPatchArgs) (api.EnvironmentDetails, error) {
	address, err := s.addressOf(ctx, a.RepoURL, a.Repository)
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	_, err = s.patchEnvironment(ctx, a.ID, model.EnvironmentPatch{
		Project: a.Project, Name: a.Name, Description: a.Description, Icon: a.Icon, RepoURL: address, RepoBranch: a.RepoBranch, RepoPath: a.RepoPath,
	})
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	return s.environmentDetails(ctx, c, environmentDetailsArgs{ID: a.ID})
}

func (s *Server) environmentDetails(ctx context.Context, _ *call, a environmentDetailsArgs) (api.EnvironmentDetails, error) {
	e, err := s.store.Environment(ctx, a.ID)
	if err != nil {
		return api.EnvironmentDetails{}, unknownEnvironment(a.ID, err)
	}
	list, err := s.detailed(ctx, []model.Environment{e}, a.Summary)
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	return list[0], nil
}

func (s *Server) environmentDetailsList(ctx context.Context, c *call, a environmentDetailsListArgs) ([]api.EnvironmentDetails, error) {
	list, err := s.visibleEnvironments(ctx, c)
	if err != nil {
		return nil, err
	}
	if a.Project != nil {
		list = slices.DeleteFunc(list, func(e model.Environment) bool { return e.Project != *a.Project })
	}
	return s.detailed(ctx, list, a.Summary)
}

func (s *Server) detailed(ctx context.Context, list []model.Environment, summary bool) ([]api.EnvironmentDetails, error) {
	projects, err := s.store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[model.ProjectID]string, len(projects))
	for _, p := range projects {
		names[p.ID] = p.Name
	}
	compiling, err := s.store.Compiling(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]api.EnvironmentDetails, len(list))
	for i, e := range list {
		released := 0
		if e.LastVersion > 0 { // else no version was ever made, and many environments stay cheap to list
			if released, err = s.store.ReleasedVersion(ctx, e.ID); err != nil {
				return nil, err
			}
		}
		out[i] = api.EnvironmentDetails{
			Environment: environmentOf(e, true), ProjectName: names[e.Project], RepoPath: e.RepoPath, Repository: string(e.Repository),
			Revision: revisionOf(e.Revision), LastVersion: e.LastVersion, ReleasedVersion: released, Compiling: slices.Contains(compiling, e.ID),
		}
		if !summary {
			continue
		}
		var counts model.DeploySummary
		if released > 0 {
			if counts, err = s.store.DeploySummary(ctx, e.ID); err != nil {
				return nil, err
			}
		}
		out[i].DeploySummary = summaryOf(counts)
	}
	return out, nil
}

func environmentOf(e model.Environment, details bool) api.Environment {
	out := api.Environment{
		ID: e.ID.String(), Name: e.Name, ProjectID: e.Project.String(), RepoURL: e.RepoURL, RepoBranch: e.RepoBranch,
		Settings: settingsOf(e), Halted: e.Halted,
	}
	if details {
		out.Description, out.Icon = &e.Description, &e.Icon
	}
	return out
}

func environmentV1Of(e model.Environment) api.EnvironmentV1 {
	return api.EnvironmentV1{
		ID: e.ID.String(), Name: e.Name, Project: e.Project.String(), RepoURL: e.RepoURL, RepoBranch: e.RepoBranch,
		Settings: settingsOf(e), Halted: e.Halted,
	}
}

func settingsOf(e model.Environment) map[string]json.RawMessage {
	if e.Settings == nil {
		return map[string]json.RawMessage{}
	}
	return e.Settings
}

func revisionOf(r model.Revision) *api.Revision {
	if r.Commit == "" && r.Ref == "" {
		return nil
	}
	return &api.Revision{
		Repository: string(r.Repository), Ref: r.Ref, Commit: r.Commit, Author: r.Author, Message: r.Message,
		CommittedAt: api.OptionalTime(r.CommittedAt),
	}
}
