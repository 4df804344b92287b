package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

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
