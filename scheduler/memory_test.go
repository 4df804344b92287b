package scheduler_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/intendant/intendant/model"
)

// memory is a store of any number of environments. A test may make it fail.
type memory struct {
	mu       sync.Mutex
	envs     map[model.EnvironmentID]*environment
	subs     []chan model.Hint
	silent   bool // no hints
	fail     error
	saves    int
	snaps    int
	queries  int
	refuse   map[model.TaskID]error
	released []model.EnvironmentID
	slow     time.Duration // what a transaction takes
	code     map[int]map[model.AgentName]string
	coded    map[int]int // how often the code of versions was read
	codeless error       // why the code can not be read
}

type environment struct {
	snap     model.Snapshot
	versions map[int][]model.Intent
	released int
	states   map[model.ResourceID]model.ResourceState
	lease    model.Lease
	commands []model.Command
	finished map[model.TaskID]model.Result
	open     map[model.TaskID]model.Action
	lost     []model.TaskID
	dry      map[model.ResourceID]model.DryRunResult
}

func newMemory() *memory {
	return &memory{envs: map[model.EnvironmentID]*environment{}, refuse: map[model.TaskID]error{}, coded: map[int]int{}}
}

func (m *memory) add(n byte, intents ...model.Intent) model.EnvironmentID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var env model.EnvironmentID
	env.UUID[0], env.UUID[15] = 0xee, n
	e := &environment{
		versions: map[int][]model.Intent{}, states: map[model.ResourceID]model.ResourceState{}, finished: map[model.TaskID]model.Result{},
		open: map[model.TaskID]model.Action{}, dry: map[model.ResourceID]model.DryRunResult{},
	}
	e.snap.Environment.ID = env
	e.snap.Settings = model.Settings{DeployInterval: "600", RepairInterval: "86400"}
	e.snap.Paused = map[model.AgentName]bool{}
	m.envs[env] = e
	if len(intents) > 0 {
		e.versions[1], e.released = intents, 1
	}
	return env
}

// change alters an environment and sends a hint.
func (m *memory) change(env model.EnvironmentID, topic model.Topic, f func(*environment)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.envs[env])
	m.hint(model.Hint{Topic: topic, Environment: env})
}

func (m *memory) hint(h model.Hint) {
	if m.silent {
		return
	}
	for _, c := range m.subs {
		c <- h
	}
}

func (m *memory) read(env model.EnvironmentID, f func(*environment)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.envs[env])
}

func (m *memory) status(env model.EnvironmentID, r model.ResourceID) (s model.Status) {
	m.read(env, func(e *environment) { s = e.states[r].Status() })
	return s
}

// begin takes the lock for one call, or returns the failure that a test wants.
func (m *memory) begin() (func(), error) {
	m.mu.Lock()
	m.queries++
	if m.fail != nil {
		defer m.mu.Unlock()
		return nil, m.fail
	}
	return m.mu.Unlock, nil
}

func (m *memory) AcquireLeases(_ context.Context, envs []model.EnvironmentID, owner string, now time.Time, ttl time.Duration) ([]model.Lease, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	var held []model.Lease
	for _, env := range envs {
		e := m.envs[env]
		if e == nil {
			continue
		}
		if e.lease.Owner != owner {
			if e.lease.Owner != "" && now.Before(e.lease.ExpiresAt) {
				continue
			}
			e.lease = model.Lease{Environment: env, Owner: owner, Token: e.lease.Token + 1}
		}
		e.lease.ExpiresAt = now.Add(ttl)
		held = append(held, e.lease)
	}
	return held, nil
}

func (m *memory) ReleaseLease(_ context.Context, lease model.Lease) error {
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	if e := m.envs[lease.Environment]; e != nil && e.lease.Token == lease.Token {
		e.lease.Owner = ""
		m.released = append(m.released, lease.Environment)
	}
	return nil
}

func (m *memory) SchedulableEnvironments(context.Context) ([]model.EnvironmentID, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	var ids []model.EnvironmentID
	for id, e := range m.envs {
		if len(e.versions) > 0 && !e.snap.Environment.Halted {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (m *memory) Snapshot(_ context.Context, env model.EnvironmentID) (model.Snapshot, error) {
	end, err := m.begin()
	if err != nil {
		return model.Snapshot{}, err
	}
	defer end()
	m.snaps++
	e := m.envs[env]
	if e == nil {
		return model.Snapshot{}, model.ErrNotFound
	}
	s := e.snap
	s.Version, s.Intents, s.Paused = e.released, e.versions[e.released], maps.Clone(e.snap.Paused)
	for _, st := range e.states {
		s.States = append(s.States, st)
	}
	for _, a := range e.open {
		s.Running = append(s.Running, a)
	}
	return s, nil
}

func (m *memory) ChangesSince(_ context.Context, env model.EnvironmentID, from int) (int, []model.Intent, []model.ResourceID, error) {
	end, err := m.begin()
	if err != nil {
		return 0, nil, nil, err
	}
	defer end()
	e := m.envs[env]
	old := map[model.ResourceID]model.Intent{}
	for _, x := range e.versions[from] {
		old[x.Resource] = x
	}
	var changed []model.Intent
	for _, x := range e.versions[e.released] {
		if o, ok := old[x.Resource]; !ok || model.BodyHash(o) != model.BodyHash(x) {
			changed = append(changed, x)
		}
		delete(old, x.Resource)
	}
	return e.released, changed, slices.Sorted(maps.Keys(old)), nil
}

func (m *memory) IntentsOf(_ context.Context, env model.EnvironmentID, version int) ([]model.Intent, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	xs, ok := m.envs[env].versions[version]
	if !ok {
		return nil, model.ErrNotFound
	}
	return xs, nil
}

func (m *memory) VersionResource(ctx context.Context, env model.EnvironmentID, version int, id model.ResourceID) (model.Intent, error) {
	xs, err := m.IntentsOf(ctx, env, version)
	for _, x := range xs {
		if x.Resource == id {
			return x, nil
		}
	}
	if err == nil {
		err = model.ErrNotFound
	}
	return model.Intent{}, err
}

func (m *memory) SaveProgress(_ context.Context, lease model.Lease, p model.Progress) error {
	time.Sleep(m.slow)
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	e := m.envs[lease.Environment]
	if e.lease.Token != lease.Token || e.lease.Owner != lease.Owner {
		return model.ErrFenced
	}
	for _, r := range p.Finished {
		if err := m.refuse[r.Task]; err != nil {
			return err
		}
	}
	m.saves++
	for _, st := range p.States {
		e.states[st.Resource] = st
	}
	if p.Processed != 0 {
		e.snap.Processed = p.Processed
	}
	for _, a := range p.Started {
		e.open[a.ID] = a
	}
	for _, r := range p.Finished {
		e.finished[r.Task] = r
		delete(e.open, r.Task)
	}
	for _, id := range p.Abandoned {
		delete(e.open, id)
		e.lost = append(e.lost, id)
	}
	e.commands = slices.DeleteFunc(e.commands, func(c model.Command) bool { return slices.Contains(p.DoneCommands, c.ID) })
	return nil
}

func (m *memory) PendingCommands(_ context.Context, env model.EnvironmentID) ([]model.Command, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	return slices.Clone(m.envs[env].commands), nil
}

func (m *memory) SaveDryRunResults(_ context.Context, lease model.Lease, _ model.DryRunID, results []model.DryRunResult) error {
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	for _, r := range results {
		m.envs[lease.Environment].dry[r.Resource] = r
	}
	return nil
}

func (m *memory) Subscribe(ctx context.Context, _ ...model.Topic) <-chan model.Hint {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The capacity is for more hints than any test sends at once.
	c := make(chan model.Hint, 1000)
	m.subs = append(m.subs, c)
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.subs = slices.DeleteFunc(m.subs, func(x chan model.Hint) bool { return x == c })
		close(c)
	})
	return c
}

func (m *memory) SchedulerNews(_ context.Context, envs []model.EnvironmentID) ([]model.SchedulerNews, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	var news []model.SchedulerNews
	for _, id := range envs {
		if e := m.envs[id]; e != nil {
			news = append(news, model.SchedulerNews{
				Environment: id, Released: e.released, Halted: e.snap.Environment.Halted, Settings: e.snap.Settings,
				Paused: maps.Clone(e.snap.Paused), Commands: slices.Clone(e.commands),
			})
		}
	}
	return news, nil
}

func (m *memory) AgentCode(_ context.Context, _ model.EnvironmentID, version int) (map[model.AgentName]string, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	m.coded[version]++
	return m.code[version], m.codeless
}
