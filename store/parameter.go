package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

func parameterOf(r sqlgen.Parameter) (model.Parameter, error) {
	out := model.Parameter{
		ID: model.ParameterID{UUID: r.ID}, Environment: model.EnvironmentID{UUID: r.Environment}, Name: r.Name, Value: r.Value,
		Source: model.ParameterSource(r.Source), Resource: model.ResourceID(r.ResourceID), Updated: r.UpdatedAt.UTC(), Expires: r.Expires,
	}
	return out, decode(r.Metadata, &out.Metadata, "the metadata of parameter "+r.Name)
}

// what names a parameter or fact in an error.
func what(env model.EnvironmentID, name string, resource model.ResourceID) string {
	if resource == "" {
		return fmt.Sprintf("parameter %s in environment %s", name, env)
	}
	return fmt.Sprintf("fact %s of resource %s in environment %s", name, resource, env)
}

// Parameter returns a parameter (resource empty) or a fact, or [model.ErrNotFound].
func (s *Store) Parameter(ctx context.Context, env model.EnvironmentID, name string, resource model.ResourceID) (model.Parameter, error) {
	r, err := s.read().GetParameter(ctx, env.UUID, text(string(resource)), text(name))
	if err != nil {
		return model.Parameter{}, notFound(err, "%s", what(env, name, resource))
	}
	return parameterOf(r)
}

// ResourceFacts lists the facts of one resource by name.
func (s *Store) ResourceFacts(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) ([]model.Parameter, error) {
	out := []model.Parameter{}
	if resource == "" {
		return out, nil
	}
	rows, err := s.read().ResourceFacts(ctx, env.UUID, text(string(resource)))
	if err != nil {
		return nil, classify(err)
	}
	for _, r := range rows {
		p, err := parameterOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// SetParameters inserts or replaces by (name, resource) and returns what is stored, in the order given; an ID already stored is
// kept. Unknown inputs of those names and resources are marked resolved. In the same transaction job is queued when a value is
// new or changed and recompile is set, or when an unknown was resolved. [model.ErrNotFound]: no such environment.
func (s *Store) SetParameters(ctx context.Context, env model.EnvironmentID, params []model.Parameter, recompile bool, job model.CompileJob) (stored []model.Parameter, queued bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		stored, queued = make([]model.Parameter, 0, len(params)), false
		if _, err := tx.LockEnvironment(ctx, env.UUID); err != nil {
			return notFound(err, "environment %s", env)
		}
		changed := false
		names, resources := make([]string, 0, len(params)), make([]string, 0, len(params))
		for _, p := range params {
			out, news, err := tx.setParameter(ctx, env, p, s.now())
			if err != nil {
				return err
			}
			stored, changed = append(stored, out), changed || news
			names, resources = append(names, out.Name), append(resources, string(out.Resource))
		}
		resolved, err := tx.ResolveUnknowns(ctx, env.UUID, names, resources)
		if err != nil {
			return err
		}
		tx.hint(model.TopicParameter, env, "")
		if queued = resolved > 0 || (changed && recompile); !queued {
			return nil
		}
		return tx.queueFor(ctx, env, job, s.now())
	})
	return stored, queued, err
}

// setParameter stores one parameter and reports whether its value is news.
func (tx *Tx) setParameter(ctx context.Context, env model.EnvironmentID, p model.Parameter, now time.Time) (out model.Parameter, news bool, err error) {
	if p.ID.UUID == uuid.Nil {
		p.ID.UUID = newID()
	}
	if p.Updated.IsZero() {
		p.Updated = now
	}
	metadata, err := encode(p.Metadata, "{}")
	if err != nil {
		return out, false, err
	}
	old, err := tx.GetParameter(ctx, env.UUID, text(string(p.Resource)), text(p.Name))
	if err != nil && !isNoRows(err) {
		return out, false, err
	}
	news = err != nil || old.Value != text(p.Value)
	row, err := tx.SaveParameter(ctx, sqlgen.SaveParameterParams{
		ID: p.ID.UUID, Environment: env.UUID, Name: text(p.Name), ResourceID: text(string(p.Resource)), Value: text(p.Value),
		Source: text(string(p.Source)), UpdatedAt: p.Updated, Metadata: metadata, Expires: p.Expires,
	})
	if err != nil {
		return out, false, fmt.Errorf("%s: %w", what(env, p.Name, p.Resource), classify(err))
	}
	out, err = parameterOf(row)
	return out, news, err
}

// queueFor queues a job of an environment, filling in what the caller left open.
func (tx *Tx) queueFor(ctx context.Context, env model.EnvironmentID, job model.CompileJob, now time.Time) error {
	job.Environment = env
	if job.ID.UUID == uuid.Nil {
		job.ID.UUID = newID()
	}
	if job.RequestedAt.IsZero() {
		job.RequestedAt = now
	}
	return tx.queue(ctx, job)
}

// DeleteParameter removes a parameter or fact and queues job in the same transaction, or fails with [model.ErrNotFound].
func (s *Store) DeleteParameter(ctx context.Context, env model.EnvironmentID, name string, resource model.ResourceID, job model.CompileJob) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.DeleteParameter(ctx, env.UUID, text(string(resource)), text(name))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s: %w", what(env, name, resource), model.ErrNotFound)
		}
		tx.hint(model.TopicParameter, env, "")
		return tx.queueFor(ctx, env, job, s.now())
	})
}

// Notification returns one notification or [model.ErrNotFound].
func (s *Store) Notification(ctx context.Context, env model.EnvironmentID, id model.NotificationID) (model.Notification, error) {
	n, err := s.read().GetNotification(ctx, env.UUID, id.UUID)
	if err != nil {
		return model.Notification{}, notFound(err, "notification %s in environment %s", id, env)
	}
	return notificationOf(n), nil
}

// UpdateNotification sets the flags that are not nil and returns the result, or fails with [model.ErrNotFound].
func (s *Store) UpdateNotification(ctx context.Context, env model.EnvironmentID, id model.NotificationID, read, cleared *bool) (out model.Notification, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.UpdateNotification(ctx, sqlgen.UpdateNotificationParams{Read: read, Cleared: cleared, Environment: env.UUID, ID: id.UUID})
		if err != nil {
			return notFound(err, "notification %s in environment %s", id, env)
		}
		out = notificationOf(n)
		tx.hint(model.TopicNotification, env, id.String())
		return nil
	})
	return out, err
}
