package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// writeCode stores what a version ships to agents; every source must be stored by now, or be among the files of the state.
func (tx *Tx) writeCode(ctx context.Context, env model.EnvironmentID, number int, state model.DesiredState) error {
	if len(state.Code) == 0 {
		return nil
	}
	plan, manifests, err := model.PlanCode(state)
	if err != nil {
		return err
	}
	missing, err := missingFiles(ctx, tx.Queries, plan.ContentHashes())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("module code is neither stored nor given; upload it first: %d contents, among them %s: %w", len(missing), missing[0], model.ErrInvalid)
	}
	if err := tx.writeFiles(ctx, manifests); err != nil {
		return err
	}
	body, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("encoding the code of version %d: %w", number, err)
	}
	hash := sha256.Sum256(body)
	if err := tx.InsertCodePlan(ctx, env.UUID, hash[:], body); err != nil {
		return err
	}
	return tx.InsertVersionCode(ctx, env.UUID, int32Of(number), hash[:])
}

// UploadRetention is how long code that was sent ahead waits for its version.
const UploadRetention = 24 * time.Hour

// UploadCode keeps code for a version that was reserved and is not stored yet; code that came before for it is added to. Storing
// the version takes it, unless that brings code of its own. It fails with [model.ErrInvalid] when the number was never reserved or a
// source is not stored, and with [model.ErrConflict] when the version is or was in use.
func (s *Store) UploadCode(ctx context.Context, env model.EnvironmentID, version int, modules []model.ModuleCode, now time.Time) error {
	err := s.InTx(ctx, func(tx *Tx) error {
		row, err := tx.LockEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		if last := int(row.LastVersion); version <= 0 || version > last {
			return fmt.Errorf("version %d was never reserved (the last reserved one is %d): %w", version, last, model.ErrInvalid)
		}
		near, err := tx.VersionNeighbours(ctx, env.UUID, int32Of(version))
		if err != nil {
			return err
		}
		if near.Taken || near.Deleted {
			return fmt.Errorf("version %d is or was in use; its code can not be changed: %w", version, model.ErrConflict)
		}
		earlier, err := uploadedCode(ctx, tx.Queries, env, version)
		if err != nil {
			return err
		}
		merged := model.MergeCode(earlier, modules)
		var hashes []string
		for _, m := range merged {
			if err := m.Validate(); err != nil {
				return err
			}
			for _, f := range m.Files {
				hashes = append(hashes, f.Hash)
			}
		}
		missing, err := missingFiles(ctx, tx.Queries, hashes)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return fmt.Errorf("module code is not stored; upload it first: %d contents, among them %s: %w", len(missing), missing[0], model.ErrInvalid)
		}
		body, err := json.Marshal(merged)
		if err != nil {
			return fmt.Errorf("encoding the code for version %d: %w", version, err)
		}
		return tx.SaveCodeUpload(ctx, sqlgen.SaveCodeUploadParams{Environment: env.UUID, Version: int32Of(version), Modules: body, Now: now})
	})
	return classify(err)
}

// uploadedCode returns the code that was sent ahead for a version, none if nothing was.
func uploadedCode(ctx context.Context, q *sqlgen.Queries, env model.EnvironmentID, version int) (modules []model.ModuleCode, err error) {
	body, err := q.CodeUpload(ctx, env.UUID, int32Of(version))
	if isNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return modules, decode(body, &modules, fmt.Sprintf("the code for version %d", version))
}

// takeUploadedCode gives a version that brings no code the code that was sent ahead for it.
func (tx *Tx) takeUploadedCode(ctx context.Context, env model.EnvironmentID, number int, state *model.DesiredState) error {
	uploaded, err := uploadedCode(ctx, tx.Queries, env, number)
	if err != nil || len(uploaded) == 0 {
		return err
	}
	if len(state.Code) == 0 {
		state.Code = uploaded
	}
	return tx.DropCodeUpload(ctx, env.UUID, int32Of(number))
}

// VersionCode returns the code that a version ships; a version without any, or one that is not there, has an empty plan.
func (s *Store) VersionCode(ctx context.Context, env model.EnvironmentID, version int) (model.CodePlan, error) {
	plan, err := codePlan(ctx, s.read(), env, version)
	return plan, classify(err)
}

func codePlan(ctx context.Context, q *sqlgen.Queries, env model.EnvironmentID, version int) (plan model.CodePlan, err error) {
	body, err := q.CodePlanOfVersion(ctx, env.UUID, int32Of(version))
	if isNoRows(err) {
		return plan, nil
	}
	if err != nil {
		return plan, err
	}
	return plan, decode(body, &plan, fmt.Sprintf("the code of version %d", version))
}

// AgentCode returns, for a version, the SHA-1 of the code manifest of each agent that needs code.
func (s *Store) AgentCode(ctx context.Context, env model.EnvironmentID, version int) (map[model.AgentName]string, error) {
	plan, err := s.VersionCode(ctx, env, version)
	return plan.Agents, err
}
