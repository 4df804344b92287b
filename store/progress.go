package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// SaveProgress stores states, the processed version (0 leaves it), started actions and finished ones with their logs and
// facts, in one transaction under the lease: [model.ErrFenced] when it is not the current one, and nothing is stored.
//
// A result is stored once however often it comes. Facts that make an unknown input known queue a compile in the same
// transaction. The facts of a resource that was purged are deleted.
func (s *Store) SaveProgress(ctx context.Context, lease model.Lease, p model.Progress) error {
	if p.Now.IsZero() {
		p.Now = s.now()
	}
	return s.InTx(ctx, func(tx *Tx) error {
		env := lease.Environment
		if len(p.States)+len(p.Started)+len(p.Finished)+len(p.Abandoned) > 0 || p.Processed != 0 {
			tx.hint(model.TopicResourceChanged, env, "")
		}
		err := tx.pipe(ctx, func(q *pipeline) error {
			if err := q.fence(ctx, lease); err != nil {
				return err
			}
			return q.progress(ctx, env, p)
		})
		if err != nil {
			return err
		}
		fresh, err := tx.finishActions(ctx, env, p.Finished)
		if err != nil {
			return err
		}
		if err := tx.saveFacts(ctx, env, fresh, p.Now); err != nil {
			return err
		}
		// Only when nothing more was begun can everything be done; looking at every save would cost the size of the environment.
		if len(p.Started) == 0 && (len(p.Finished) > 0 || p.Processed != 0) {
			return tx.MarkConverged(ctx, p.Now, env.UUID)
		}
		return nil
	})
}

// progress queues what needs no answer.
func (q *pipeline) progress(ctx context.Context, env model.EnvironmentID, p model.Progress) error {
	if err := q.saveStates(ctx, env, p.States); err != nil {
		return err
	}
	if p.Processed != 0 {
		if err := q.SetProcessed(ctx, int32Of(p.Processed), env.UUID); err != nil {
			return err
		}
	}
	if err := q.startActions(ctx, env, p.Started); err != nil {
		return err
	}
	if err := q.abandonActions(ctx, env, p.Abandoned, p.Now); err != nil {
		return err
	}
	if len(p.DoneCommands) > 0 {
		ids := make([]uuid.UUID, len(p.DoneCommands))
		for i, c := range p.DoneCommands {
			ids[i] = c.UUID
		}
		return q.FinishCommands(ctx, p.Now, env.UUID, ids)
	}
	return nil
}

// noTime stands for NULL in arrays of times.
var noTime = time.Time{}

func (q *pipeline) saveStates(ctx context.Context, env model.EnvironmentID, states []model.ResourceState) error {
	if len(states) == 0 {
		return nil
	}
	// In the order of ids, so that two writers do not wait for each other; of two states of a resource the later one counts.
	order := make([]int, len(states))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(states[a].Resource, states[b].Resource) })
	n := len(states)
	p := sqlgen.SaveStatesParams{
		Environment: env.UUID, Ids: make([]string, 0, n), Types: make([]string, 0, n), Agents: make([]string, 0, n), Values: make([]string, 0, n),
		Compliances: make([]string, 0, n), LastRuns: make([]string, 0, n), Blocked: make([]string, 0, n), Deploying: make([]bool, 0, n),
		IntentHashes: make([]string, 0, n), DeployedHashes: make([]string, 0, n), DeployedVersions: make([]int32, 0, n),
		LastOutcomes: make([]string, 0, n), RunTimes: make([]time.Time, 0, n), SuccessTimes: make([]time.Time, 0, n),
		EventTimes: make([]time.Time, 0, n), OrphanedAfters: make([]int32, 0, n), FailureCounts: make([]int32, 0, n),
	}
	for at, i := range order {
		st := &states[i]
		if at+1 < n && states[order[at+1]].Resource == st.Resource {
			continue
		}
		typ, agent, value, ok := splitID(st.Resource)
		if !ok {
			return fmt.Errorf("resource id %q is not of the form ns::Type[agent,attribute=value]: %w", st.Resource, model.ErrInvalid)
		}
		p.Ids = append(p.Ids, string(st.Resource))
		p.Types = append(p.Types, typ)
		p.Agents = append(p.Agents, agent)
		p.Values = append(p.Values, value)
		p.Compliances = append(p.Compliances, cmp.Or(string(st.Compliance), string(model.HasUpdate)))
		p.LastRuns = append(p.LastRuns, cmp.Or(string(st.LastRun), string(model.RunNew)))
		p.Blocked = append(p.Blocked, cmp.Or(string(st.Blocked), string(model.NotBlocked)))
		p.Deploying = append(p.Deploying, st.Deploying)
		p.IntentHashes = append(p.IntentHashes, st.IntentHash)
		p.DeployedHashes = append(p.DeployedHashes, st.DeployedHash)
		p.DeployedVersions = append(p.DeployedVersions, int32Of(st.DeployedVersion))
		p.LastOutcomes = append(p.LastOutcomes, string(st.LastOutcome))
		p.RunTimes = append(p.RunTimes, st.LastRunAt)
		p.SuccessTimes = append(p.SuccessTimes, st.LastSuccess)
		p.EventTimes = append(p.EventTimes, st.LastProducedEvents)
		p.OrphanedAfters = append(p.OrphanedAfters, int32Of(st.OrphanedAfter))
		p.FailureCounts = append(p.FailureCounts, int32Of(st.Failures))
	}
	p.NoTime = noTime
	return q.SaveStates(ctx, p)
}

func (q *pipeline) startActions(ctx context.Context, env model.EnvironmentID, actions []model.Action) error {
	if len(actions) == 0 {
		return nil
	}
	p := sqlgen.StartActionsParams{Environment: env.UUID}
	for i := range actions {
		a := &actions[i]
		p.Ids = append(p.Ids, a.ID.UUID)
		p.Versions = append(p.Versions, int32Of(a.Version))
		p.Resources = append(p.Resources, string(a.Resource))
		p.Kinds = append(p.Kinds, string(a.Kind))
		p.Reasons = append(p.Reasons, text(a.Reason))
		p.StartedAt = append(p.StartedAt, a.StartedAt)
		p.Traces = append(p.Traces, text(string(a.Trace)))
		p.Logs = append(p.Logs, encodeLog(a.Log))
	}
	return q.StartActions(ctx, p)
}

func (q *pipeline) abandonActions(ctx context.Context, env model.EnvironmentID, tasks []model.TaskID, now time.Time) error {
	if len(tasks) == 0 {
		return nil
	}
	p := sqlgen.AbandonActionsParams{Environment: env.UUID, Now: now, Log: encodeLog([]model.LogLine{{
		Level: model.LevelWarning, Time: now,
		Message: "The agent or the server was lost before it reported how this ended; the resource will be looked at again",
	}})}
	for _, t := range tasks {
		p.Ids = append(p.Ids, t.UUID)
	}
	return q.AbandonActions(ctx, p)
}

// actionKind is the kind of action that a task makes.
func actionKind(k model.TaskKind) model.ActionKind {
	switch k {
	case model.TaskDeploy, model.TaskRepair:
		return model.ActionDeploy
	case model.TaskDryRun:
		return model.ActionDryRun
	case model.TaskFacts:
		return model.ActionGetFact
	}
	return model.ActionOther
}

// finishActions stores results and returns those that were not stored before.
func (tx *Tx) finishActions(ctx context.Context, env model.EnvironmentID, results []model.Result) ([]*model.Result, error) {
	if len(results) == 0 {
		return nil, nil
	}
	byTask := make(map[uuid.UUID]*model.Result, len(results))
	var tasks []uuid.UUID
	for i := range results {
		r := &results[i]
		if _, twice := byTask[r.Task.UUID]; !twice {
			byTask[r.Task.UUID] = r
			tasks = append(tasks, r.Task.UUID)
		}
	}
	ended, err := tx.EndActions(ctx, env.UUID, tasks)
	if err != nil {
		return nil, err
	}
	begun := make(map[uuid.UUID]*sqlgen.EndActionsRow, len(ended))
	for i := range ended {
		begun[ended[i].ID] = &ended[i]
	}
	p := sqlgen.FinishActionsParams{Environment: env.UUID, Ids: tasks}
	for _, id := range tasks {
		r := byTask[id]
		a := begun[id]
		log := encodeLog(r.Log)
		switch {
		case a == nil: // it was not seen to begin, or has ended before
			a = &sqlgen.EndActionsRow{
				Version: int32Of(r.Version), ResourceID: string(r.Resource), Kind: string(actionKind(r.Kind)), StartedAt: r.StartedAt, Trace: text(string(r.Trace)),
			}
		case a.Log != "" && log != "":
			log = a.Log + "\n" + log
		default:
			log = a.Log + log
		}
		changes, err := encode(r.Changes, "{}")
		if err != nil {
			return nil, err
		}
		p.Versions = append(p.Versions, a.Version)
		p.Resources = append(p.Resources, a.ResourceID)
		p.Kinds = append(p.Kinds, a.Kind)
		p.Reasons = append(p.Reasons, a.Reason)
		p.StartedAt = append(p.StartedAt, a.StartedAt)
		p.FinishedAt = append(p.FinishedAt, r.FinishedAt)
		p.Outcomes = append(p.Outcomes, string(r.Outcome))
		p.Changes = append(p.Changes, string(r.Change))
		p.Diffs = append(p.Diffs, string(changes))
		p.Traces = append(p.Traces, a.Trace)
		p.Codes = append(p.Codes, text(r.Code))
		p.Logs = append(p.Logs, log)
	}
	ids, err := tx.FinishActions(ctx, p)
	if err != nil {
		return nil, err
	}
	fresh := make([]*model.Result, len(ids))
	for i, id := range ids {
		fresh[i] = byTask[id]
	}
	return fresh, nil
}

// saveFacts stores the facts of new results, resolves the unknowns that waited for them, and queues the compile that uses them.
func (tx *Tx) saveFacts(ctx context.Context, env model.EnvironmentID, results []*model.Result, now time.Time) error {
	type key struct{ resource, name string }
	facts := map[key]model.Fact{}
	var (
		purged []string
		trace  model.TraceID
	)
	for _, r := range results {
		if r.Change == model.ChangePurged && r.Outcome == model.OutcomeDeployed {
			purged = append(purged, string(r.Resource))
		}
		for _, f := range r.Facts {
			facts[key{string(r.Resource), text(f.Name)}] = f
			trace = r.Trace
		}
	}
	if len(purged) > 0 {
		if err := tx.DeleteFactsOf(ctx, env.UUID, purged); err != nil {
			return err
		}
	}
	if len(facts) == 0 {
		return nil
	}
	keys := make([]key, 0, len(facts))
	for k := range facts {
		if k.name != "" {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name))
	})
	p := sqlgen.SaveFactsParams{Environment: env.UUID, Now: now}
	for _, k := range keys {
		p.Ids = append(p.Ids, newID())
		p.Names = append(p.Names, k.name)
		p.Resources = append(p.Resources, k.resource)
		p.Values = append(p.Values, text(facts[k].Value))
		p.Expires = append(p.Expires, facts[k].Expires)
	}
	stored, err := tx.StoredFacts(ctx, p.Names, p.Resources, env.UUID)
	if err != nil {
		return err
	}
	known := make(map[key]string, len(stored))
	for _, f := range stored {
		known[key{f.ResourceID, f.Name}] = f.Value
	}
	if err := tx.SaveFacts(ctx, p); err != nil {
		return err
	}
	// Only news can make something known: otherwise a model that asks in vain would be compiled for ever.
	var names, resources, shown []string
	for i, k := range keys {
		if value, ok := known[k]; !ok || value != p.Values[i] {
			names, resources, shown = append(names, k.name), append(resources, k.resource), append(shown, k.resource+"/"+k.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	tx.hint(model.TopicParameter, env, "")
	resolved, err := tx.ResolveUnknowns(ctx, env.UUID, names, resources)
	if err != nil || resolved == 0 {
		return err
	}
	row, err := tx.GetEnvironment(ctx, env.UUID)
	if err != nil {
		return err
	}
	e, err := environmentOf(row)
	if err != nil || !model.ParseSettings(e.Settings).ServerCompile {
		return err
	}
	_, err = tx.follow(ctx, factJob(env, now, trace, shown))
	return err
}
