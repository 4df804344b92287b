package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// defaultPoll is how often, in seconds, a repository is asked for news that nobody configured.
const defaultPoll = "60"

// CreateProject stores a project with the id given. It fails with [model.ErrConflict] when the id or the name is taken.
func (s *Store) CreateProject(ctx context.Context, p model.Project) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.InsertProject(ctx, p.ID.UUID, text(p.Name)); err != nil {
			return conflict(err, "project %q: the name or the id is taken", p.Name)
		}
		return nil
	})
}

// conflict replaces the violation of a unique index by a sentence.
func conflict(err error, format string, args ...any) error {
	if c := classify(err); !errors.Is(c, model.ErrConflict) {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, model.ErrConflict)...)
}

// RenameProject changes the name of a project: [model.ErrNotFound], or [model.ErrConflict] when the name is taken.
func (s *Store) RenameProject(ctx context.Context, id model.ProjectID, name string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.RenameProject(ctx, text(name), id.UUID)
		if err != nil {
			return conflict(err, "project %q: the name is taken", name)
		}
		if n == 0 {
			return fmt.Errorf("project %s: %w", id, model.ErrNotFound)
		}
		return nil
	})
}

// DeleteProject removes an empty project: [model.ErrNotFound], or [model.ErrConflict] while it has environments.
func (s *Store) DeleteProject(ctx context.Context, id model.ProjectID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.DeleteProject(ctx, id.UUID)
		if err != nil {
			return conflict(err, "project %s still has environments; delete them first", id)
		}
		if n == 0 {
			return fmt.Errorf("project %s: %w", id, model.ErrNotFound)
		}
		return nil
	})
}

// Project returns one project or [model.ErrNotFound].
func (s *Store) Project(ctx context.Context, id model.ProjectID) (model.Project, error) {
	p, err := s.read().GetProject(ctx, id.UUID)
	if err != nil {
		return model.Project{}, notFound(err, "project %s", id)
	}
	return model.Project{ID: model.ProjectID{UUID: p.ID}, Name: p.Name}, nil
}

// Projects lists all projects by name.
func (s *Store) Projects(ctx context.Context) ([]model.Project, error) {
	rows, err := s.read().ListProjects(ctx)
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.Project, len(rows))
	for i, p := range rows {
		out[i] = model.Project{ID: model.ProjectID{UUID: p.ID}, Name: p.Name}
	}
	return out, nil
}

func environmentOf(e sqlgen.Environment) (model.Environment, error) {
	out := model.Environment{
		ID: model.EnvironmentID{UUID: e.ID}, Project: model.ProjectID{UUID: e.Project}, Name: e.Name, Description: e.Description, Icon: e.Icon,
		RepoURL: e.RepoUrl, RepoBranch: e.RepoBranch, RepoPath: e.RepoPath, Settings: map[string]json.RawMessage{},
		LastVersion: int(e.LastVersion), Halted: e.Halted,
		Revision: model.Revision{
			Ref: e.RevisionRef, Commit: e.RevisionCommit, Author: e.RevisionAuthor, Message: e.RevisionMessage,
			CommittedAt: timeOf(e.RevisionCommittedAt),
		},
	}
	if e.Repository != nil {
		out.Repository = model.RepositoryName(*e.Repository)
		if e.RevisionCommit != "" {
			out.Revision.Repository = out.Repository
		}
	}
	if err := decode(e.Settings, &out.Settings, "the settings of environment "+e.Name); err != nil {
		return model.Environment{}, err
	}
	return out, nil
}

func environmentsOf(rows []sqlgen.Environment) ([]model.Environment, error) {
	out := make([]model.Environment, len(rows))
	for i, r := range rows {
		e, err := environmentOf(r)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// CreateEnvironment stores an environment with the id given. With a RepoURL it is linked to the repository record of that
// URL; if there is none, one is made under the name in Repository, or that name with -2, -3, … added when another URL has it.
// [model.ErrNotFound]: no such project; [model.ErrConflict]: the id, or the name within the project, is taken.
func (s *Store) CreateEnvironment(ctx context.Context, e model.Environment) error {
	settings, err := encode(e.Settings, "{}")
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.GetProject(ctx, e.Project.UUID); err != nil {
			return notFound(err, "project %s", e.Project)
		}
		repository, err := tx.linkRepository(ctx, e.RepoURL, e.Repository)
		if err != nil {
			return err
		}
		err = tx.InsertEnvironment(ctx, sqlgen.InsertEnvironmentParams{
			ID: e.ID.UUID, Project: e.Project.UUID, Name: text(e.Name), Description: text(e.Description), Icon: text(e.Icon),
			RepoUrl: text(e.RepoURL), RepoBranch: text(e.RepoBranch), RepoPath: text(e.RepoPath), Repository: repository,
			Settings: settings, Halted: e.Halted,
		})
		if err != nil {
			return conflict(err, "environment %q: the id, or the name in its project, is taken", e.Name)
		}
		tx.hint(model.TopicEnvironment, e.ID, "")
		return nil
	})
}

// linkRepository returns the name of the record of a URL, making one if there is none; nil for no URL.
func (tx *Tx) linkRepository(ctx context.Context, url string, wanted model.RepositoryName) (*string, error) {
	if url == "" {
		return nil, nil //nolint:nilnil // no URL, no repository
	}
	if wanted == "" {
		wanted = "repository"
	}
	for i := 1; ; i++ {
		name, err := tx.RepositoryOfURL(ctx, text(url))
		if err == nil {
			return &name, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
		name = string(wanted)
		if i > 1 {
			name += "-" + strconv.Itoa(i)
		}
		made, err := tx.InsertRepositoryForURL(ctx, name, text(url), defaultPoll)
		if err != nil {
			return nil, err
		}
		if made > 0 {
			tx.hint(model.TopicRepository, model.EnvironmentID{}, name)
			return &name, nil
		}
	}
}

// UpdateEnvironment changes the fields set in the patch and returns the result. A new RepoURL links as
// [Store.CreateEnvironment] does and forgets the revision, an empty one unlinks. [model.ErrNotFound]: no such environment or
// project; [model.ErrConflict]: the name is taken in the project.
func (s *Store) UpdateEnvironment(ctx context.Context, id model.EnvironmentID, patch model.EnvironmentPatch) (model.Environment, error) {
	var out model.Environment
	err := s.InTx(ctx, func(tx *Tx) error {
		e, err := tx.LockEnvironment(ctx, id.UUID)
		if err != nil {
			return notFound(err, "environment %s", id)
		}
		if patch.Project != nil {
			if _, err := tx.GetProject(ctx, patch.Project.UUID); err != nil {
				return notFound(err, "project %s", *patch.Project)
			}
			e.Project = patch.Project.UUID
		}
		for to, from := range map[*string]*string{
			&e.Name: patch.Name, &e.Description: patch.Description, &e.Icon: patch.Icon, &e.RepoPath: patch.RepoPath,
		} {
			if from != nil {
				*to = text(*from)
			}
		}
		moved := false
		if patch.RepoBranch != nil && *patch.RepoBranch != e.RepoBranch {
			e.RepoBranch, moved = text(*patch.RepoBranch), true
		}
		if patch.RepoURL != nil && *patch.RepoURL != e.RepoUrl {
			var wanted model.RepositoryName
			if patch.Repository != nil {
				wanted = *patch.Repository
			}
			if e.Repository, err = tx.linkRepository(ctx, *patch.RepoURL, wanted); err != nil {
				return err
			}
			e.RepoUrl, moved = text(*patch.RepoURL), true
		}
		if moved {
			// The newest commit of another branch is not known; the next fetch finds it and compiles it.
			e.RevisionRef, e.RevisionCommit, e.RevisionAuthor, e.RevisionMessage, e.RevisionCommittedAt = "", "", "", "", nil
		}
		err = tx.Queries.UpdateEnvironment(ctx, sqlgen.UpdateEnvironmentParams{
			Project: e.Project, Name: e.Name, Description: e.Description, Icon: e.Icon, RepoUrl: e.RepoUrl, RepoBranch: e.RepoBranch,
			RepoPath: e.RepoPath, Repository: e.Repository, RevisionRef: e.RevisionRef, RevisionCommit: e.RevisionCommit,
			RevisionAuthor: e.RevisionAuthor, RevisionMessage: e.RevisionMessage, RevisionCommittedAt: e.RevisionCommittedAt, ID: e.ID,
		})
		if err != nil {
			return conflict(err, "environment %q: the name is taken in its project", e.Name)
		}
		tx.hint(model.TopicEnvironment, id, "")
		if moved && e.Repository != nil {
			tx.hint(model.TopicRepository, model.EnvironmentID{}, *e.Repository)
		}
		out, err = environmentOf(e)
		return err
	})
	return out, err
}

// DeleteEnvironment removes an environment and all that belongs to it, or fails with [model.ErrNotFound]. A scheduler or
// compile worker that still holds something of it is refused at its next write.
func (s *Store) DeleteEnvironment(ctx context.Context, id model.EnvironmentID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.clear(ctx, id); err != nil {
			return err
		}
		if _, err := tx.Queries.DeleteEnvironment(ctx, id.UUID); err != nil {
			return err
		}
		s.contents.forgetAfter(tx, id)
		return nil
	})
}

// ClearEnvironment removes all that belongs to an environment but itself, its settings, tokens and version counter. It fails
// with [model.ErrNotFound].
func (s *Store) ClearEnvironment(ctx context.Context, id model.EnvironmentID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.clear(ctx, id); err != nil {
			return err
		}
		s.contents.forgetAfter(tx, id)
		return tx.ForgetRevision(ctx, id.UUID)
	})
}

// clear deletes table by table in the order of the references; cascades would look up row by row.
func (tx *Tx) clear(ctx context.Context, id model.EnvironmentID) error {
	if _, err := tx.LockEnvironment(ctx, id.UUID); err != nil {
		return notFound(err, "environment %s", id)
	}
	for _, step := range []func() error{
		func() error { return tx.BreakLease(ctx, id.UUID) },
		func() error { return tx.ClearCompiles(ctx, id.UUID) },
		func() error { return tx.ClearDryRuns(ctx, id.UUID) },
		func() error { return tx.ClearCommands(ctx, id.UUID) },
		func() error { return tx.ClearStates(ctx, id.UUID) },
		func() error { return tx.ClearActions(ctx, id.UUID) },
		func() error { return tx.ClearRunningActions(ctx, id.UUID) },
		func() error { return tx.RememberDeletedVersions(ctx, id.UUID) },
		func() error { return tx.ClearVersions(ctx, id.UUID) },
		func() error { return tx.ClearIntervals(ctx, id.UUID) },
		func() error { return tx.ClearBodies(ctx, id.UUID) },
		func() error { return tx.ClearParameters(ctx, id.UUID) },
		func() error { return tx.ClearNotifications(ctx, id.UUID) },
		func() error { return tx.ClearSessions(ctx, id.UUID) },
		func() error { return tx.ClearAgents(ctx, id.UUID) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, topic := range []model.Topic{model.TopicEnvironment, model.TopicCompileCancel, model.TopicCompileChanged, model.TopicResourceChanged, model.TopicAgentChanged} {
		tx.hint(topic, id, "")
	}
	return nil
}

// Environment returns one environment or [model.ErrNotFound].
func (s *Store) Environment(ctx context.Context, id model.EnvironmentID) (model.Environment, error) {
	e, err := s.read().GetEnvironment(ctx, id.UUID)
	if err != nil {
		return model.Environment{}, notFound(err, "environment %s", id)
	}
	return environmentOf(e)
}

// Environments lists all environments by project name, name and id. A project other than nil keeps only its own.
func (s *Store) Environments(ctx context.Context, project *model.ProjectID) ([]model.Environment, error) {
	q := s.read()
	var rows []sqlgen.Environment
	var err error
	if project == nil {
		rows, err = q.ListEnvironments(ctx, nil)
	} else {
		rows, err = q.ListEnvironments(ctx, &project.UUID)
	}
	if err != nil {
		return nil, classify(err)
	}
	return environmentsOf(rows)
}

// SetHalted halts or resumes an environment. Halting notes per agent whether it was running and pauses all; resuming
// unpauses those. A refresh command is stored. Nothing happens when the environment already is so.
func (s *Store) SetHalted(ctx context.Context, id model.EnvironmentID, halted bool, actor string, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		e, err := tx.LockEnvironment(ctx, id.UUID)
		if err != nil {
			return notFound(err, "environment %s", id)
		}
		if e.Halted == halted {
			return nil
		}
		if err := tx.SetEnvironmentHalted(ctx, halted, id.UUID); err != nil {
			return err
		}
		reason := "environment resumed"
		if halted {
			reason = "environment halted"
			err = tx.PauseForHalt(ctx, id.UUID)
		} else {
			err = tx.UnpauseForResume(ctx, id.UUID)
			// Jobs that waited may run now.
			tx.hint(model.TopicCompileQueued, id, "")
		}
		if err != nil {
			return err
		}
		tx.hint(model.TopicEnvironment, id, "")
		tx.hint(model.TopicAgentChanged, id, "")
		return tx.refresh(ctx, id, reason, actor, now)
	})
}

// refresh stores the command that makes a scheduler read again what it keeps in memory.
func (tx *Tx) refresh(ctx context.Context, env model.EnvironmentID, reason, actor string, now time.Time) error {
	return tx.enqueue(ctx, model.Command{
		ID: model.CommandID{UUID: newID()}, Environment: env, Kind: model.CommandRefresh, Reason: reason, Actor: actor, CreatedAt: now,
	})
}

// SetSetting stores a value that was checked and converted before; nil removes what is stored, so that the default applies.
func (s *Store) SetSetting(ctx context.Context, id model.EnvironmentID, name string, value json.RawMessage) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.LockEnvironment(ctx, id.UUID); err != nil {
			return notFound(err, "environment %s", id)
		}
		var err error
		if value == nil {
			err = tx.UnsetEnvironmentSetting(ctx, text(name), id.UUID)
		} else {
			err = tx.SetEnvironmentSetting(ctx, text(name), value, id.UUID)
		}
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, classify(err))
		}
		tx.hint(model.TopicEnvironment, id, name)
		return tx.refresh(ctx, id, "setting "+name+" changed", "", s.now())
	})
}
