package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// tokenPrefix begins each agent token, so that people and secret scanners know one when they see it.
const tokenPrefix = "iat_"

func tokenDigest(token model.Secret) []byte {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return sum[:]
}

// AuthenticateAgent checks an agent's token for an environment: [model.ErrForbidden] when it is unknown, revoked, for another
// environment, or a one-time token that has been used.
func (s *Store) AuthenticateAgent(ctx context.Context, env model.EnvironmentID, token model.Secret) error {
	return s.InTx(ctx, func(tx *Tx) error {
		_, err := tx.UseAgentToken(ctx, s.now(), tokenDigest(token), env.UUID)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("the token is not valid for environment %s: unknown, revoked, or already used; issue a new one: %w", env, model.ErrForbidden)
		}
		return err
	})
}

// IssueAgentToken makes a token for an environment's agents and returns its text, which can not be had again: only a digest is
// kept. [model.ErrNotFound]: no such environment.
func (s *Store) IssueAgentToken(ctx context.Context, env model.EnvironmentID, description string, oneTime bool) (model.Secret, error) {
	token := model.Secret(tokenPrefix + rand.Text() + rand.Text())
	err := s.InTx(ctx, func(tx *Tx) error {
		if err := mustExist(ctx, tx.Queries, env); err != nil {
			return err
		}
		return tx.InsertAgentToken(ctx, sqlgen.InsertAgentTokenParams{
			ID: newID(), Environment: env.UUID, Digest: tokenDigest(token), Description: text(description), OneTime: oneTime, CreatedAt: s.now(),
		})
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// AgentTokens lists the tokens of an environment, newest first.
func (s *Store) AgentTokens(ctx context.Context, env model.EnvironmentID) ([]model.AgentToken, error) {
	rows, err := s.read().ListAgentTokens(ctx, env.UUID)
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.AgentToken, len(rows))
	for i, r := range rows {
		out[i] = model.AgentToken{
			ID: model.TokenID{UUID: r.ID}, Environment: env, Description: r.Description, OneTime: r.OneTime, CreatedAt: r.CreatedAt.UTC(),
			CreatedBy: r.CreatedBy, UsedAt: timeOf(r.UsedAt), RevokedAt: timeOf(r.RevokedAt),
		}
	}
	return out, nil
}

// RevokeAgentToken makes a token useless, or fails with [model.ErrNotFound]. Revoking twice changes nothing.
func (s *Store) RevokeAgentToken(ctx context.Context, env model.EnvironmentID, id model.TokenID, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.RevokeAgentToken(ctx, now, env.UUID, id.UUID)
		if err == nil && n == 0 {
			return fmt.Errorf("token %s in environment %s: %w", id, env, model.ErrNotFound)
		}
		return err
	})
}

// SaveSession stores a session that began or ended. It belongs to the server that [Store.ExpireSessions] was last called for.
func (s *Store) SaveSession(ctx context.Context, session model.AgentSession) error {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	return s.InTx(ctx, func(tx *Tx) error {
		err := tx.Queries.SaveSession(ctx, sqlgen.SaveSessionParams{
			ID: session.ID, Environment: session.Environment.UUID, Server: server, Hostname: text(session.Hostname), Process: text(session.Process),
			Agents: strs[string](session.Agents), Version: text(session.Version), Autostarted: session.Autostarted,
			ConnectedAt: session.ConnectedAt, LostAt: timeOrNil(session.LostAt),
		})
		if violates(err, "agent_session_environment_fkey") {
			return noEnvironment(session.Environment)
		}
		if err == nil {
			tx.hint(model.TopicAgentChanged, session.Environment, "")
		}
		return err
	})
}

// SaveAgents stores which sessions agents are up with. Whether an agent is paused is not changed. An agent that goes down
// does so only for the session that it is up with: the news of a lost session may come after those of its successor.
func (s *Store) SaveAgents(ctx context.Context, agents []model.AgentStatus) error {
	if len(agents) == 0 {
		return nil
	}
	// In the order of the key, so that two writers do not wait for each other; of two of one agent the later one counts.
	sorted := slices.Clone(agents)
	slices.SortStableFunc(sorted, func(a, b model.AgentStatus) int {
		return cmp.Or(cmp.Compare(a.Environment.String(), b.Environment.String()), cmp.Compare(a.Name, b.Name))
	})
	p := sqlgen.SaveAgentsParams{NoTime: noTime}
	hinted := map[model.EnvironmentID]struct{}{}
	for i, a := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Environment == a.Environment && sorted[i+1].Name == a.Name {
			continue
		}
		p.Environments = append(p.Environments, a.Environment.UUID)
		p.Names = append(p.Names, text(string(a.Name)))
		p.Ups = append(p.Ups, a.Up)
		p.Processes = append(p.Processes, text(a.Process))
		p.Hostnames = append(p.Hostnames, text(a.Hostname))
		p.Sessions = append(p.Sessions, a.SessionID)
		p.Sinces = append(p.Sinces, a.Since)
		hinted[a.Environment] = struct{}{}
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.Queries.SaveAgents(ctx, p); err != nil {
			if violates(err, "agent_environment_fkey") {
				return fmt.Errorf("saving agents: their environment is gone: %w", model.ErrNotFound)
			}
			return err
		}
		for env := range hinted {
			tx.hint(model.TopicAgentChanged, env, "")
		}
		return nil
	})
}

// ExpireSessions marks every session and agent of a server that is starting as lost. Sessions that are saved afterwards
// through this store belong to that server.
func (s *Store) ExpireSessions(ctx context.Context, server string) error {
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	now := s.now()
	return s.InTx(ctx, func(tx *Tx) error {
		lost, err := tx.Queries.ExpireSessions(ctx, now, server)
		if err != nil || len(lost) == 0 {
			return err
		}
		ids := make([]string, len(lost))
		for i, l := range lost {
			ids[i] = l.ID
			tx.hint(model.TopicAgentChanged, model.EnvironmentID{UUID: l.Environment}, "")
		}
		return tx.ExpireAgentsOf(ctx, now, ids)
	})
}

// PausedAgents tells which agents are paused; a halted environment's all are. [model.ErrNotFound]: no such environment.
func (s *Store) PausedAgents(ctx context.Context, env model.EnvironmentID) (map[model.AgentName]bool, error) {
	var out map[model.AgentName]bool
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		e, err := tx.GetEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		out, err = pausedAgents(ctx, tx.Queries, e)
		return err
	})
	return out, err
}

// SetAgentsPaused pauses or unpauses agents, all of them when names is empty; unknown names are passed over. A refresh command
// is stored. [model.ErrNotFound]; [model.ErrForbidden]: the environment is halted.
func (s *Store) SetAgentsPaused(ctx context.Context, env model.EnvironmentID, names []model.AgentName, paused bool, actor string, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		e, err := tx.LockEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		if e.Halted {
			return fmt.Errorf("environment %s is halted: agents are paused and unpaused when it resumes: %w", env, model.ErrForbidden)
		}
		n, err := tx.Queries.SetAgentsPaused(ctx, paused, env.UUID, strs[string](names))
		if err != nil || n == 0 {
			return err
		}
		tx.hint(model.TopicAgentChanged, env, "")
		reason := "agents unpaused"
		if paused {
			reason = "agents paused"
		}
		return tx.refresh(ctx, env, reason, actor, now)
	})
}

// SetUnpauseOnResume notes what resume does to agents, all of them when names is empty. [model.ErrNotFound];
// [model.ErrForbidden]: the environment is not halted.
func (s *Store) SetUnpauseOnResume(ctx context.Context, env model.EnvironmentID, names []model.AgentName, unpause bool) error {
	return s.InTx(ctx, func(tx *Tx) error {
		e, err := tx.LockEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		if !e.Halted {
			return fmt.Errorf("environment %s is not halted: %w", env, model.ErrForbidden)
		}
		tx.hint(model.TopicAgentChanged, env, "")
		return tx.Queries.SetUnpauseOnResume(ctx, unpause, env.UUID, strs[string](names))
	})
}

func sessionOf(r sqlgen.AgentSession) model.AgentSession {
	return model.AgentSession{
		ID: r.ID, Environment: model.EnvironmentID{UUID: r.Environment}, Hostname: r.Hostname, Process: r.Process,
		Agents: strs[model.AgentName](r.Agents), Version: r.Version, Autostarted: r.Autostarted, ConnectedAt: r.ConnectedAt.UTC(), LostAt: timeOf(r.LostAt),
	}
}

// AgentSessions lists sessions of agent processes, newest first, of one environment or of all when it is the zero id; expired
// ones only if asked for. limit 0 means all.
func (s *Store) AgentSessions(ctx context.Context, env model.EnvironmentID, expired bool, limit int) ([]model.AgentSession, error) {
	var only *uuid.UUID
	if env.UUID != uuid.Nil {
		only = &env.UUID
	}
	if limit == 0 {
		limit = untilFurther
	}
	rows, err := s.read().ListSessions(ctx, only, expired, int32Of(limit))
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.AgentSession, len(rows))
	for i, r := range rows {
		out[i] = sessionOf(r)
	}
	return out, nil
}

// AgentSession returns one session or [model.ErrNotFound].
func (s *Store) AgentSession(ctx context.Context, id string) (model.AgentSession, error) {
	r, err := s.read().GetSession(ctx, text(id))
	if err != nil {
		return model.AgentSession{}, notFound(err, "session %s", id)
	}
	return sessionOf(r), nil
}
