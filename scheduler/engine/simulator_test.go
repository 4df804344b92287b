package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run the simulator with this seed alone")
	simRuns  = flag.Int("sim.runs", 30, "number of seeds that the simulator tries")
	simSteps = flag.Int("sim.steps", 400, "events of one run of the simulator")
)

// sim drives an engine with virtual time through whatever choose says, as a shell, a store, a hub and agents would, and
// checks after each step what must always hold.
type sim struct {
	fail   func(format string, args ...any)
	choose func(n int) int

	cfg   engine.Config
	s     *engine.State
	now   time.Time
	timer time.Time
	seed  uint64

	// The store.
	version  int
	versions [][]model.Intent
	saved    int // the version processed
	states   map[model.ResourceID]model.ResourceState
	open     map[model.TaskID]model.Action
	commands []model.Command
	dryLeft  map[model.DryRunID]map[model.ResourceID]bool
	settings model.Settings
	paused   map[model.AgentName]bool
	halted   bool

	// The agents. up says whether there is a session; running are tasks that an agent has, ghosts those that it lost the
	// session of but may still report.
	up      map[model.AgentName]bool
	running []model.Task
	ghosts  []model.Task
	old     []model.Result
	healthy bool

	// What the engine waits for, and whether it knows that the agent was lost.
	flight  map[model.ResourceID]model.TaskID
	lost    map[model.TaskID]bool
	kinds   map[model.TaskID]model.Task
	good    map[model.ResourceID]map[string]bool
	current map[model.ResourceID]model.Intent

	snap    model.Snapshot
	log     []logged
	effects [][]engine.Effect
}

type logged struct {
	at time.Time
	e  engine.Event
}

const (
	simResources = 24
	simAgents    = 4
)

func newSim(choose func(int) int, fail func(string, ...any)) *sim {
	m := &sim{
		fail: fail, choose: choose, now: epoch, states: map[model.ResourceID]model.ResourceState{}, open: map[model.TaskID]model.Action{},
		dryLeft: map[model.DryRunID]map[model.ResourceID]bool{}, settings: settings("60", "3600"), paused: map[model.AgentName]bool{},
		up: map[model.AgentName]bool{}, good: map[model.ResourceID]map[string]bool{}, versions: [][]model.Intent{nil},
		current: map[model.ResourceID]model.Intent{},
		cfg:     engine.Config{TasksPerAgent: 1 + choose(3), FairShare: 1 + choose(6), TimersPerStep: 1 + choose(10)},
	}
	m.start()
	return m
}

func simAgent(k int) model.AgentName { return model.AgentName(fmt.Sprintf("agent%d", k)) }

func simName(k int) model.ResourceID { return id(string(simAgent(k%simAgents)), fmt.Sprint(k)) }

// start makes a state from what is stored, as a new owner does. Work with agents goes on.
func (m *sim) start() {
	m.seed++
	m.cfg.Seed = m.seed
	m.flight, m.lost, m.kinds = map[model.ResourceID]model.TaskID{}, map[model.TaskID]bool{}, map[model.TaskID]model.Task{}
	m.snap = model.Snapshot{Version: m.version, Processed: m.saved, Intents: m.versions[m.version], Settings: m.settings, Paused: map[model.AgentName]bool{}}
	m.snap.Environment.Halted = m.halted
	for k := range simAgents {
		m.snap.Paused[simAgent(k)] = m.paused[simAgent(k)]
	}
	for k := range simResources {
		if st, ok := m.states[simName(k)]; ok {
			m.snap.States = append(m.snap.States, st)
		}
	}
	m.current = map[model.ResourceID]model.Intent{}
	for _, x := range m.snap.Intents {
		m.current[x.Resource] = x
	}
	var ids []model.TaskID
	for id := range m.open {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b model.TaskID) int { return slices.Compare(a.UUID[:], b.UUID[:]) })
	if m.choose(4) > 0 {
		for _, id := range ids {
			a := m.open[id]
			m.snap.Running = append(m.snap.Running, a)
			if _, ok := m.current[a.Resource]; ok && a.Kind == model.ActionDeploy {
				m.flight[a.Resource] = id
				m.lost[id] = true
			}
		}
	} else {
		// A store that does not tell of open actions: the engine knows from the states alone that something runs.
		for id, a := range m.open {
			if _, ok := m.current[a.Resource]; ok && a.Kind == model.ActionDeploy {
				m.flight[a.Resource] = model.TaskID{}
			}
			delete(m.open, id)
		}
	}
	m.s = engine.New(m.cfg, m.snap)
	m.log, m.effects, m.timer = nil, nil, time.Time{}
	m.step(engine.Started{})
	for k := range simAgents {
		if m.up[simAgent(k)] {
			m.step(engine.AgentUp{Agent: simAgent(k)})
		}
	}
	for _, c := range slices.Clone(m.commands) {
		m.deliver(c)
	}
}

func (m *sim) deliver(c model.Command) {
	switch {
	case c.Kind == model.CommandDryRun:
		m.step(engine.DryRunVersion{Command: c, Intents: m.versions[c.Version]})
	case c.Kind == model.CommandFacts && c.Version != 0:
		m.step(engine.FactsRequested{Command: c, Intents: m.versions[c.Version]})
	default:
		m.step(engine.CommandReceived{Command: c})
	}
}

// step feeds one event and plays the shell: everything that is to be stored is, in order.
func (m *sim) step(e engine.Event) {
	m.now = m.now.Add(time.Millisecond)
	m.log = append(m.log, logged{m.now, e})
	effects := m.s.Step(m.now, e)
	m.effects = append(m.effects, effects)
	begun := map[model.TaskID]bool{}
	var started []model.Task
	for _, f := range effects {
		switch f := f.(type) {
		case engine.SaveState:
			if len(started) > 0 {
				m.fail("%T: a task was started before the state was saved", e)
			}
			for _, a := range f.Started {
				begun[a.ID] = true
			}
			m.store(f)
		case engine.SaveDryRun:
			for _, r := range f.Results {
				delete(m.dryLeft[f.DryRun], r.Resource)
			}
		case engine.DoneCommand:
			m.done(f.Command)
		case engine.StartTask:
			if !begun[f.Task.ID] {
				m.fail("%T: task of %s started without an action", e, f.Task.Intent.Resource)
			}
			started = append(started, f.Task)
			m.begin(f.Task)
		case engine.SetTimer:
			m.timer = f.At
		}
	}
	m.check(e, started)
}

func (m *sim) store(f engine.SaveState) {
	for _, st := range f.States {
		m.states[st.Resource] = st
	}
	if f.Processed != 0 {
		m.saved = f.Processed
	}
	for _, a := range f.Started {
		m.open[a.ID] = a
		if t, ok := m.flight[a.Resource]; ok && t == (model.TaskID{}) {
			// A run that was known from the state alone has no id by which its end could be told.
			delete(m.flight, a.Resource)
		}
	}
	end := func(id model.TaskID, r model.ResourceID) {
		delete(m.open, id)
		delete(m.lost, id)
		delete(m.kinds, id)
		for x, t := range m.flight {
			if t == id || x == r && t == (model.TaskID{}) {
				delete(m.flight, x)
			}
		}
	}
	for _, r := range f.Finished {
		end(r.Task, r.Resource)
	}
	for _, id := range f.Abandoned {
		end(id, "")
	}
	for x, t := range m.flight {
		// A run that is known from its state alone ends with that.
		if t == (model.TaskID{}) && !m.states[x].Deploying {
			delete(m.flight, x)
		}
	}
}

func (m *sim) done(id model.CommandID) {
	k := slices.IndexFunc(m.commands, func(c model.Command) bool { return c.ID == id })
	if k < 0 {
		m.fail("command %s is done, but was not pending", id)
		return
	}
	c := m.commands[k]
	m.commands = slices.Delete(m.commands, k, k+1)
	switch c.Kind {
	case model.CommandDryRun:
		if left := m.dryLeft[c.DryRun]; len(left) > 0 {
			m.fail("the dry run is done, but %d resources have no result", len(left))
		}
	case model.CommandRepair:
		// A repair is done when everything in its scope has been run since it was asked for, or can not be run.
		blocked := m.blocked()
		for x := range m.current {
			if st := m.states[x]; !blocked[x] && inScope(c, x) && st.LastRunAt.Before(c.CreatedAt) && m.existed(c, x) {
				m.fail("the repair is done, but %s was last run at %s, before %s", x, st.LastRunAt, c.CreatedAt)
			}
		}
	default:
	}
}

// existed tells whether a resource is of the version that a repair was asked for in, and could be run since.
func (m *sim) existed(c model.Command, x model.ResourceID) bool {
	for v := c.Version; v <= m.version; v++ {
		k := slices.IndexFunc(m.versions[v], func(y model.Intent) bool { return y.Resource == x })
		if k < 0 || closure(m.versions[v])[x] {
			return false
		}
	}
	return true
}

func inScope(c model.Command, x model.ResourceID) bool {
	return (len(c.Agents) == 0 || slices.Contains(c.Agents, x.Parts().Agent)) && (len(c.Resources) == 0 || slices.Contains(c.Resources, x))
}

func (m *sim) blocked() map[model.ResourceID]bool { return closure(m.versions[m.s.Version()]) }

// closure lists what is undefined or requires something that is, by the definition.
func closure(xs []model.Intent) map[model.ResourceID]bool {
	blocked := map[model.ResourceID]bool{}
	for grown := true; grown; {
		grown = false
		for _, x := range xs {
			if blocked[x.Resource] {
				continue
			}
			if x.Undefined || slices.ContainsFunc(x.Requires, func(q model.ResourceID) bool { return blocked[q] }) {
				blocked[x.Resource], grown = true, true
			}
		}
	}
	return blocked
}

// begin hands a task to its agent, and checks that it may be.
func (m *sim) begin(t model.Task) {
	x := t.Intent.Resource
	if other, ok := m.flight[x]; ok {
		m.fail("%s is started while task %s of it is in flight", x, other)
	}
	m.flight[x] = t.ID
	m.kinds[t.ID] = t
	if m.halted || m.paused[t.Agent] || !m.up[t.Agent] {
		m.fail("%s is started although its agent may not run it", x)
	}
	n := 0
	for id, k := range m.kinds {
		if k.Agent == t.Agent && !m.lost[id] {
			n++
		}
	}
	if n > m.cfg.TasksPerAgent {
		m.fail("agent %s has %d tasks, at most %d", t.Agent, n, m.cfg.TasksPerAgent)
	}
	m.running = append(m.running, t)
}

// check holds what must be true after every step.
func (m *sim) check(e engine.Event, started []model.Task) {
	if err := m.s.Check(); err != nil {
		m.fail("after %T: %v", e, err)
	}
	blocked := m.blocked()
	for _, t := range started {
		x := t.Intent.Resource
		if extra(t) {
			continue
		}
		now, ok := m.current[x]
		if !ok || now.AttributeHash != t.Intent.AttributeHash || blocked[x] {
			m.fail("after %T: %s is started, but it is gone, blocked, or its intent is another", e, x)
		}
		for _, q := range now.Requires {
			if id, ok := m.flight[q]; ok && !extra(m.kinds[id]) || !m.s.Idle(q) {
				m.fail("after %T: %s is started before its requirement %s is settled", e, x, q)
			}
			if got := t.Requires[q]; got != m.states[q].Status() {
				m.fail("after %T: %s is told that %s is %s, which is %s", e, x, q, got, m.states[q].Status())
			}
		}
	}
	for x, now := range m.current {
		st, ok := m.states[x]
		if !ok {
			m.fail("after %T: nothing is stored of %s", e, x)
			continue
		}
		if st.OrphanedAfter != 0 || st.IntentHash != now.AttributeHash || blocked[x] != (st.Blocked == model.IsBlocked) {
			m.fail("after %T: state of %s is %+v, blocked should be %v", e, x, st, blocked[x])
		}
		if st.Compliance == model.Compliant && !m.good[x][now.AttributeHash] {
			m.fail("after %T: %s counts as compliant, but no run of this intent has succeeded", e, x)
		}
	}
	for x, st := range m.states {
		if _, ok := m.current[x]; !ok && st.OrphanedAfter == 0 {
			m.fail("after %T: %s is in no version, but is no orphan", e, x)
		}
	}
}

// extra tells whether a task changes nothing.
func extra(t model.Task) bool { return t.Kind == model.TaskDryRun || t.Kind == model.TaskFacts }

// release makes a new version out of the current one.
func (m *sim) release() {
	xs := slices.Clone(m.versions[m.version])
	for range 1 + m.choose(4) {
		k := m.choose(simResources)
		at := slices.IndexFunc(xs, func(x model.Intent) bool { return x.Resource == simName(k) })
		if at >= 0 && m.choose(4) == 0 {
			gone := xs[at].Resource
			xs = slices.Delete(xs, at, at+1)
			for i := range xs {
				xs[i].Requires = slices.DeleteFunc(slices.Clone(xs[i].Requires), func(q model.ResourceID) bool { return q == gone })
			}
			continue
		}
		var requires []model.ResourceID
		for range m.choose(4) {
			// Only of lower numbers: there are no cycles.
			if q := m.choose(k + 1); q < k && slices.ContainsFunc(xs, func(x model.Intent) bool { return x.Resource == simName(q) }) {
				requires = append(requires, simName(q))
			}
		}
		attributes := fmt.Sprintf(`{"v":%d,"send_event":%v,"receive_events":%v}`, m.choose(3), m.choose(3) == 0, m.choose(4) > 0)
		x, err := model.NewIntent(simName(k), []byte(attributes), requires, "", m.choose(8) == 0)
		if err != nil {
			m.fail("%v", err)
		}
		if at >= 0 {
			xs[at] = x
		} else {
			xs = append(xs, x)
		}
	}
	m.publish(xs)
}

func (m *sim) publish(xs []model.Intent) {
	old := map[model.ResourceID]model.Intent{}
	for _, x := range m.versions[m.version] {
		old[x.Resource] = x
	}
	var changed []model.Intent
	var removed []model.ResourceID
	m.current = map[model.ResourceID]model.Intent{}
	for _, x := range xs {
		m.current[x.Resource] = x
		if o, ok := old[x.Resource]; !ok || model.BodyHash(o) != model.BodyHash(x) {
			changed = append(changed, x)
		}
		delete(old, x.Resource)
	}
	for k := range simResources {
		if _, ok := old[simName(k)]; ok {
			removed = append(removed, simName(k))
		}
	}
	m.version++
	m.versions = append(m.versions, xs)
	m.step(engine.VersionReleased{Version: m.version, Changed: changed, Removed: removed})
}

// report ends a task of an agent.
func (m *sim) report(t model.Task) {
	outcome, change := model.OutcomeDeployed, model.ChangeNone
	if m.choose(3) == 0 {
		change = model.ChangeUpdated
	}
	for _, status := range t.Requires {
		if status != model.StatusDeployed {
			outcome = model.OutcomeSkippedForDependency
		}
	}
	if !m.healthy && outcome == model.OutcomeDeployed {
		outcome = []model.Outcome{
			outcome, outcome, outcome, outcome, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeUnavailable, model.OutcomeNonCompliant,
			model.OutcomeCancelled,
		}[m.choose(9)]
	}
	if t.Kind == model.TaskDryRun && outcome != model.OutcomeCancelled {
		outcome = model.OutcomeDryRun
	}
	x := t.Intent.Resource
	if outcome == model.OutcomeDeployed {
		if m.good[x] == nil {
			m.good[x] = map[string]bool{}
		}
		m.good[x][t.Intent.AttributeHash] = true
	}
	r := model.Result{
		Task: t.ID, Resource: x, Version: t.Version, Kind: t.Kind, AttributeHash: t.Intent.AttributeHash, Outcome: outcome, Change: change,
		StartedAt: m.now, FinishedAt: m.now, DryRun: t.DryRun,
	}
	if outcome == model.OutcomeFailed && m.choose(4) == 0 {
		r.Retry = model.RetryPerson
	}
	m.old = append(m.old, r)
	m.step(engine.TaskFinished{Result: r})
}

func take(list *[]model.Task, k int) model.Task {
	t := (*list)[k]
	*list = slices.Delete(*list, k, k+1)
	return t
}

func (m *sim) tick() {
	if m.timer.IsZero() {
		return
	}
	if m.timer.After(m.now) {
		m.now = m.timer
	}
	m.step(engine.TimerFired{})
}

// chaos does one thing that may happen.
func (m *sim) chaos() {
	a := simAgent(m.choose(simAgents))
	switch m.choose(24) {
	case 0, 1:
		m.release()
	case 2, 3, 4, 5, 6, 7, 8, 9:
		if n := len(m.running); n > 0 {
			m.report(take(&m.running, m.choose(n)))
		}
	case 10, 11:
		if !m.up[a] {
			m.up[a] = true
			m.step(engine.AgentUp{Agent: a})
		}
	case 12:
		m.lose(a)
	case 13:
		if n := len(m.ghosts); n > 0 {
			m.report(take(&m.ghosts, m.choose(n)))
		}
	case 14:
		if n := len(m.old); n > 0 {
			m.step(engine.TaskFinished{Result: m.old[m.choose(n)]})
		}
	case 15:
		m.paused[a] = !m.paused[a]
		if m.paused[a] {
			m.step(engine.AgentPaused{Agents: []model.AgentName{a}})
		} else {
			m.step(engine.AgentResumed{Agents: []model.AgentName{a}})
		}
	case 16, 17:
		m.ask(a)
	case 18, 19, 20:
		m.tick()
	case 21:
		m.now = m.now.Add(time.Duration(m.choose(600)) * time.Second)
		m.step(engine.GlobalRepair{Since: m.now})
	case 22:
		switch m.choose(3) {
		case 0:
			m.halted = !m.halted
			if m.halted {
				m.step(engine.Halted{})
			} else {
				m.step(engine.Resumed{})
			}
		case 1:
			m.settings = settings([]string{"60", "0", "*/5 * * * *"}[m.choose(3)], []string{"3600", "30", "0"}[m.choose(3)])
			// Without any timer what failed waits for a person, and that is not what is tested here.
			if m.settings.RepairInterval == "0" {
				m.settings.DeployInterval = "60"
			}
			m.step(engine.SettingsChanged{Settings: m.settings})
		case 2:
			m.step(engine.GlobalDeploy{})
		}
	case 23:
		if m.choose(3) == 0 {
			m.start()
		} else if n := len(m.running); n > 0 && m.up[a] {
			// A task that could not be delivered: the session has just gone.
			k := slices.IndexFunc(m.running, func(t model.Task) bool { return t.Agent == a && m.kinds[t.ID].Agent == a })
			if k >= 0 {
				t := take(&m.running, k)
				m.up[a] = false
				m.step(engine.DispatchFailed{Task: t.ID})
			}
		}
	}
}

// lose ends the session of an agent. Some of its tasks are gone, some go on and may be reported late, some are kept by the
// process and known to be.
func (m *sim) lose(a model.AgentName) {
	if !m.up[a] {
		return
	}
	m.up[a] = false
	var lost []model.TaskID
	for k := 0; k < len(m.running); {
		if m.running[k].Agent != a || m.choose(4) == 0 {
			k++
			continue
		}
		t := take(&m.running, k)
		lost = append(lost, t.ID)
		if _, waited := m.kinds[t.ID]; waited {
			m.lost[t.ID] = true
		}
		if m.choose(2) == 0 {
			m.ghosts = append(m.ghosts, t)
		}
	}
	m.step(engine.AgentDown{Agent: a, Lost: lost})
}

func (m *sim) ask(a model.AgentName) {
	c := model.Command{Version: m.version, CreatedAt: m.now.Add(time.Millisecond / 2)}
	c.ID.UUID[0], c.ID.UUID[1] = byte(len(m.log)), byte(len(m.log)>>8)
	c.ID.UUID[2] = byte(m.seed)
	c.DryRun.UUID = c.ID.UUID
	c.Kind = []model.CommandKind{model.CommandDeploy, model.CommandRepair, model.CommandRepair, model.CommandDryRun, model.CommandFacts}[m.choose(5)]
	switch {
	case c.Kind == model.CommandDryRun:
		c.Version = m.choose(len(m.versions))
		left := map[model.ResourceID]bool{}
		for _, x := range m.versions[c.Version] {
			left[x.Resource] = true
		}
		m.dryLeft[c.DryRun] = left
	case c.Kind == model.CommandFacts:
		c.Version = m.choose(len(m.versions))
		c.Resources = []model.ResourceID{simName(m.choose(simResources)), simName(m.choose(simResources))}
	case m.choose(3) == 0:
		c.Agents = []model.AgentName{a}
	case m.choose(3) == 0: //nolint:gocritic // another choice
		c.Resources = []model.ResourceID{simName(m.choose(simResources)), simName(m.choose(simResources))}
	}
	m.commands = append(m.commands, c)
	m.deliver(c)
}

// calm ends all faults; then everything that can be deployed must be, and everything asked for done.
func (m *sim) calm() {
	m.healthy = true
	m.ghosts = nil
	m.settings = settings("60", "3600")
	m.step(engine.SettingsChanged{Settings: m.settings})
	if m.halted {
		m.halted = false
		m.step(engine.Resumed{})
	}
	for k := range simAgents {
		a := simAgent(k)
		if m.paused[a] {
			m.paused[a] = false
			m.step(engine.AgentResumed{Agents: []model.AgentName{a}})
		}
		if !m.up[a] {
			m.up[a] = true
			m.step(engine.AgentUp{Agent: a})
		}
	}
	// What a person must act on waits for that.
	m.step(engine.GlobalRepair{Since: m.now})
	until := m.now.Add(3 * time.Hour)
	why := ""
	for n := 0; ; n++ {
		if m.settled() {
			return
		}
		if n > 20_000 || m.now.After(until) {
			m.fail("work does not settle: %s", why)
			return
		}
		if w := m.unsettled(); m.s.Stats().Running == 0 {
			why = w
		}
		if len(m.running) > 0 {
			m.report(take(&m.running, 0))
			continue
		}
		m.tick()
	}
}

func (m *sim) settled() bool { return m.unsettled() == "" }

func (m *sim) unsettled() string {
	st := m.s.Stats()
	if st.Waiting+st.Running > 0 || st.Queued != [engine.Priorities]int{} {
		return fmt.Sprintf("%+v at %s, timer %s, in flight %v", st, m.now, m.timer, m.flight)
	}
	if len(m.commands) > 0 {
		return fmt.Sprintf("command %+v is not done", m.commands[0])
	}
	blocked := m.blocked()
	for k := range simResources {
		x := simName(k)
		if _, ok := m.current[x]; ok && !blocked[x] && m.states[x].Compliance != model.Compliant {
			return fmt.Sprintf("%s: %+v: %s", x, m.states[x], m.s.Explain(x).Summary)
		}
	}
	if len(m.open) > 0 {
		return fmt.Sprintf("actions are open: %v", m.open)
	}
	return ""
}

// replay feeds the events since the last start to a new state: the effects must be the same.
func (m *sim) replay() {
	s := engine.New(m.cfg, m.snap)
	for k, l := range m.log {
		if diff := cmp.Diff(m.effects[k], s.Step(l.at, l.e)); diff != "" {
			m.fail("replaying event %d, %T, gives other effects (-first +second):\n%s", k, l.e, diff)
			return
		}
	}
}

func TestSimulator(t *testing.T) {
	t.Parallel()
	seeds := []uint64{*simSeed}
	if *simSeed == 0 {
		seeds = seeds[:0]
		first := rand.Uint64()
		for k := range *simRuns {
			seeds = append(seeds, first+uint64(k))
		}
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		m := newSim(rng.IntN, func(format string, args ...any) {
			t.Fatalf("seed %d (run again with -sim.seed=%d): %s", seed, seed, fmt.Sprintf(format, args...))
		})
		for range *simSteps {
			m.chaos()
		}
		m.calm()
		m.replay()
	}
}

// TestProperties lets rapid choose what happens, so that a failure shrinks to the few events that matter.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }, t.Fatalf)
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			m.chaos()
		}
		m.calm()
		m.replay()
	})
}

// TestRepairUnderChurn holds that a repair ends however fast versions arrive, on random graphs.
func TestRepairUnderChurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }, t.Fatalf)
		m.healthy = true
		for k := range simAgents {
			m.up[simAgent(k)] = true
			m.step(engine.AgentUp{Agent: simAgent(k)})
		}
		for range 12 {
			m.release()
		}
		m.calm()
		// Resources with odd numbers change all the time, and nothing that does not change requires them.
		var steady []model.Intent
		for k := range simResources {
			var requires []model.ResourceID
			if q := m.choose(k + 1); q < k && q%2 == 0 {
				requires = append(requires, simName(q))
			}
			x, err := model.NewIntent(simName(k), []byte(`{}`), requires, "", false)
			if err != nil {
				t.Fatal(err)
			}
			steady = append(steady, x)
		}
		m.publish(steady)
		m.calm()
		c := model.Command{Kind: model.CommandRepair, Version: m.version, CreatedAt: m.now}
		c.ID.UUID[0] = 1
		m.commands = append(m.commands, c)
		m.deliver(c)
		for n := 0; len(m.commands) > 0; n++ {
			if n > 3000 {
				t.Fatalf("the repair is not done after %d versions", n)
			}
			next := slices.Clone(steady)
			for range 2 {
				k := 1 + 2*m.choose(simResources/2)
				x, err := model.NewIntent(next[k].Resource, fmt.Appendf(nil, `{"v":%d}`, n), next[k].Requires, "", false)
				if err != nil {
					t.Fatal(err)
				}
				next[k] = x
			}
			steady = next
			m.publish(next)
			if len(m.running) > 0 {
				m.report(take(&m.running, 0))
			}
		}
	})
}
