package engine

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
)

// State is all that an engine knows of one environment. It is not safe for use by several goroutines.
type State struct {
	cfg  Config
	env  model.EnvironmentID
	now  time.Time
	halt bool
	// version is the version absorbed last, trace the trace of the change that made it.
	version int
	trace   model.TraceID
	// deployEvery and repairEvery are the intervals for single resources, 0 when off or given as a cron expression.
	deployEvery time.Duration
	repairEvery time.Duration

	// seq numbers requests: it breaks every tie. ids numbers tasks.
	seq uint64
	ids uint64

	// Slots are dense tables: everything refers to a resource, agent, task or extra by its index. Free ones are reused.
	byID      map[model.ResourceID]int32
	res       []resource
	freeRes   []int32
	managed   int
	agentByID map[model.AgentName]int32
	agents    []agent
	taskByID  map[model.TaskID]int32
	tasks     []task
	freeTasks []int32
	extras    []extra
	freeExtra []int32
	dryRuns   map[model.DryRunID]*dryRun
	repairs   []repair
	commands  map[model.CommandID]struct{}

	// dirty lists the dirty resources; resource.dirtyAt is the index in it, plus one.
	dirty []int32
	// persons lists the resources that wait for a person, and some that did.
	persons []int32

	resTimers   timers
	taskTimers  timers
	agentTimers timers
	// timerSet is the time of the last SetTimer.
	timerSet int64

	depth   [Priorities]int
	waiting int
	running int
	busy    bool

	// What the current step has gathered.
	ready   []int32
	touched []int32
	gone    []int32
	flipped []int32
	stack   []int32
	mark    uint64
	out     output

	// recovered are the open actions of a predecessor until Started has dealt with them, absorbed whether the snapshot had a
	// version that was not processed.
	recovered []model.Action
	absorbed  bool
}

// output is what a step has gathered for its effects.
type output struct {
	processed int
	started   []model.Action
	finished  []model.Result
	abandoned []model.TaskID
	dry       []SaveDryRun
	done      []model.CommandID
	cancel    []model.TaskID
	start     []model.Task
	ensure    []model.AgentName
}

type phase uint8

const (
	idle phase = iota
	waiting
	queued
	running
)

// ask is a request for a resource to be run.
type ask struct {
	prio   Priority
	kind   model.TaskKind
	reason string
	trace  model.TraceID
	seq    uint64
}

type resource struct {
	state  model.ResourceState
	intent model.Intent
	agent  int32
	// requires and provides are the edges of the graph, both ways.
	requires []int32
	provides []int32
	// repairs are the users' repairs that wait for this resource to be verified.
	repairs []int32

	ask ask
	// again is the request that follows the run in progress, if hasAgain.
	again    ask
	hasAgain bool
	phase    phase
	// wait counts the direct requirements that are not idle, while the phase is waiting or queued.
	wait int32
	// blockers counts the direct requirements that are impeded; impeded is undefined or any blockers, as told to dependants.
	blockers int32
	impeded  bool
	managed  bool
	// life tells apart incarnations: it grows when a resource is deleted.
	life uint32
	// task is the slot of the run in progress, -1 when there is none.
	task int32
	// extras counts dry runs and fact refreshes that refer to the slot; extraBusy is true while one is in flight.
	extras    int32
	extraBusy bool
	dirtyAt   int32
	mark      uint64
	touched   bool

	sendEvent    bool
	receiveEvent bool
	reportOnly   bool
	timeout      time.Duration
	// quiet leaves a resource that is not compliant out of the dirty set: nothing will change by trying again; person is
	// quiet because a person must act.
	quiet  bool
	person bool
	// listed is true while the resource is in State.persons.
	listed bool
	// event is true while an event of a requirement has not been handled by a run.
	event bool
	// retryAt is the time, in nanoseconds, of a try that does not depend on intervals, 0 when there is none.
	retryAt   int64
	timerPrio Priority
}

type agent struct {
	name     model.AgentName
	up       bool
	paused   bool
	ready    bool
	inFlight int
	// passed counts the turns in which the oldest request was passed over.
	passed int
	queues [Priorities]queue
	// parked are requests whose resource has another kind of task in flight; they come back when a task ends.
	parked []parked
	// ensureAt is when the agent is asked for again, dryAt when dry runs give up waiting for it; never when not set.
	ensureAt int64
	dryAt    int64
}

type parked struct {
	entry
	prio Priority
}

type task struct {
	id       model.TaskID
	used     bool
	res      int32
	extra    int32
	agent    int32
	life     uint32
	hash     string
	version  int
	ask      ask
	started  time.Time
	counted  bool
	lost     bool
	event    bool
	recovery bool
}

type repair struct {
	command model.CommandID
	left    int
}

// New makes the state of an environment from a snapshot. Its first event must be Started.
func New(cfg Config, snap model.Snapshot) *State {
	s := &State{
		cfg: cfg.withDefaults(), env: snap.Environment.ID, halt: snap.Environment.Halted, version: snap.Version,
		byID: make(map[model.ResourceID]int32, len(snap.Intents)), agentByID: map[model.AgentName]int32{},
		taskByID: map[model.TaskID]int32{}, dryRuns: map[model.DryRunID]*dryRun{}, commands: map[model.CommandID]struct{}{},
		timerSet: never, res: make([]resource, 0, len(snap.Intents)), recovered: snap.Running,
		absorbed: snap.Version != snap.Processed,
	}
	s.deployEvery, s.repairEvery = interval(snap.Settings.DeployInterval), interval(snap.Settings.RepairInterval)
	for _, in := range snap.Intents {
		i := s.slot(in.Resource)
		s.adopt(i, in)
	}
	s.loadStates(snap)
	for i := range s.res {
		s.link(int32(i))
	}
	for i := range s.res {
		s.impede(int32(i))
	}
	s.flipped = s.flipped[:0] // load draws the consequences
	for i := range s.res {
		s.load(int32(i))
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Paused)) {
		if snap.Paused[name] {
			s.agents[s.agentSlot(name)].paused = true
		}
	}
	return s
}

// loadStates puts stored states in their slots. States of resources that are no longer there become orphans.
func (s *State) loadStates(snap model.Snapshot) {
	for _, st := range snap.States {
		i, ok := s.byID[st.Resource]
		switch {
		case ok && st.OrphanedAfter != 0:
			// It has come back: it is as good as new.
		case ok && snap.Settings.ResetDeployProgressOnStart:
			s.res[i].state.Deploying = st.Deploying
		case ok:
			r := &s.res[i]
			fresh := st.IntentHash != r.state.IntentHash
			st.IntentHash = r.state.IntentHash
			if fresh {
				st.Blocked = model.NotBlocked
				st.Failures = 0
				s.touch(i)
			}
			r.state = st
		case st.OrphanedAfter == 0:
			i = s.slot(st.Resource)
			s.res[i].state = st
			s.res[i].state.Deploying = false
			s.res[i].state.OrphanedAfter = max(snap.Processed, snap.Version-1, 1)
			s.touch(i)
			s.gone = append(s.gone, i)
		}
	}
}

// load derives what is not stored of a resource from what is.
func (s *State) load(i int32) {
	r := &s.res[i]
	if !r.managed {
		return
	}
	before := r.state
	switch {
	case r.impeded:
		r.state.Blocked = model.IsBlocked
	case r.state.Blocked != model.TemporarilyBlocked || !s.badRequirement(i):
		r.state.Blocked = model.NotBlocked
	}
	s.comply(i)
	for _, q := range r.requires {
		if r.receiveEvent && s.res[q].sendEvent && s.res[q].state.LastProducedEvents.After(r.state.LastSuccess) && r.state.LastRun != model.RunNew {
			r.event = true
		}
	}
	if r.state != before {
		s.touch(i)
	}
	s.refresh(i)
}

// interval reads an interval setting: a number of seconds; anything else is for the shell.
func interval(setting string) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(setting), 10, 64)
	if err != nil || n < 0 || n > int64(math.MaxInt64/time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// Version returns the version absorbed last.
func (s *State) Version() int { return s.version }

// Paused tells whether an agent is paused.
func (s *State) Paused(name model.AgentName) bool {
	a, ok := s.agentByID[name]
	return ok && s.agents[a].paused
}

// PausedAgents lists the paused agents, in the order in which they were first named.
func (s *State) PausedAgents() []model.AgentName {
	var names []model.AgentName
	for a := range s.agents {
		if s.agents[a].paused {
			names = append(names, s.agents[a].name)
		}
	}
	return names
}

// Halted tells whether everything is stopped.
func (s *State) Halted() bool { return s.halt }

// Manages tells whether the newest released version has a resource.
func (s *State) Manages(id model.ResourceID) bool {
	i, ok := s.byID[id]
	return ok && s.res[i].managed
}

// InFlight tells whether a task is one that the state waits for.
func (s *State) InFlight(id model.TaskID) bool {
	_, ok := s.taskByID[id]
	return ok
}

// AgentsWaitedFor lists the agents that have work and are down, in the order in which they were first named.
func (s *State) AgentsWaitedFor() []model.AgentName {
	var names []model.AgentName
	for a := range s.agents {
		if !s.agents[a].up && s.hasWork(int32(a)) {
			names = append(names, s.agents[a].name)
		}
	}
	return names
}

// Stats counts what the state is doing.
type Stats struct {
	Queued    [Priorities]int
	Waiting   int
	Running   int
	Resources int
	Dirty     int
}

// Stats returns the numbers of requests and resources.
func (s *State) Stats() Stats {
	return Stats{Queued: s.depth, Waiting: s.waiting, Running: s.running, Resources: s.managed, Dirty: len(s.dirty)}
}

// slot returns the slot of a resource id, a new one if it has none.
func (s *State) slot(id model.ResourceID) int32 {
	if i, ok := s.byID[id]; ok {
		return i
	}
	a := s.agentSlot(agentOf(id))
	var i int32
	if n := len(s.freeRes); n > 0 {
		i = s.freeRes[n-1]
		s.freeRes = s.freeRes[:n-1]
	} else {
		i = int32(len(s.res))
		s.res = append(s.res, resource{})
	}
	s.res[i] = resource{agent: a, task: -1, state: model.ResourceState{Resource: id}}
	s.byID[id] = i
	return i
}

// agentOf cuts the agent's name from a resource id.
func agentOf(id model.ResourceID) model.AgentName {
	t := string(id)
	_, rest, _ := strings.Cut(t, "[")
	name, _, _ := strings.Cut(rest, ",")
	return model.AgentName(name)
}

func (s *State) agentSlot(name model.AgentName) int32 {
	if a, ok := s.agentByID[name]; ok {
		return a
	}
	a := int32(len(s.agents))
	s.agents = append(s.agents, agent{name: name, ensureAt: never, dryAt: never})
	s.agentByID[name] = a
	return a
}

// reap frees the slots of resources that nothing refers to any more.
func (s *State) reap() {
	for _, i := range s.gone {
		r := &s.res[i]
		if r.managed || r.task >= 0 || r.extras > 0 || r.state.Resource == "" || len(r.requires)+len(r.provides) > 0 {
			continue
		}
		delete(s.byID, r.state.Resource)
		s.res[i] = resource{task: -1}
		s.freeRes = append(s.freeRes, i)
	}
	s.gone = s.gone[:0]
}

// adopt makes a resource managed with an intent, as if it had never been run.
func (s *State) adopt(i int32, in model.Intent) {
	r := &s.res[i]
	if !r.managed {
		s.managed++
	}
	r.managed = true
	r.state = model.ResourceState{Resource: in.Resource, LastRun: model.RunNew, Blocked: model.NotBlocked, Deploying: r.task >= 0}
	s.setIntent(i, in)
}

func (s *State) setIntent(i int32, in model.Intent) {
	r := &s.res[i]
	r.intent = in
	r.state.IntentHash = in.AttributeHash
	var a struct {
		SendEvent     *bool           `json:"send_event"`
		ReceiveEvents *bool           `json:"receive_events"`
		ReportOnly    *bool           `json:"report_only"`
		Timeout       json.RawMessage `json:"timeout"`
	}
	// Attributes of another type than expected are left at their defaults: they are the handler's to judge.
	_ = json.Unmarshal(in.Attributes, &a)
	r.sendEvent = a.SendEvent != nil && *a.SendEvent
	r.receiveEvent = a.ReceiveEvents == nil || *a.ReceiveEvents
	r.reportOnly = a.ReportOnly != nil && *a.ReportOnly
	r.timeout = 0
	if sec, err := strconv.ParseFloat(string(a.Timeout), 64); err == nil && sec > 0 && sec < float64(math.MaxInt64/int64(time.Second)) {
		r.timeout = time.Duration(sec * float64(time.Second))
	}
}

// touch notes that a resource's state must be stored.
func (s *State) touch(i int32) {
	if !s.res[i].touched {
		s.res[i].touched = true
		s.touched = append(s.touched, i)
	}
}

// comply derives the compliance of a resource (server reference, section 8.2).
func (s *State) comply(i int32) {
	r := &s.res[i]
	st := &r.state
	c := model.NonCompliant
	switch {
	case r.intent.Undefined:
		c = model.Undefined
	case st.DeployedHash == "" || st.DeployedHash != st.IntentHash:
		c = model.HasUpdate
	case st.LastOutcome == model.OutcomeDeployed:
		c = model.Compliant
	}
	st.Compliance = c
}

// refresh puts a resource in the dirty set or takes it out.
func (s *State) refresh(i int32) {
	r := &s.res[i]
	d := r.managed && r.state.Blocked == model.NotBlocked &&
		(r.state.Compliance == model.HasUpdate || r.state.Compliance == model.NonCompliant && !r.quiet || r.event)
	switch {
	case d && r.dirtyAt == 0:
		s.dirty = append(s.dirty, i)
		r.dirtyAt = int32(len(s.dirty))
	case !d && r.dirtyAt != 0:
		last := s.dirty[len(s.dirty)-1]
		s.dirty[r.dirtyAt-1] = last
		s.res[last].dirtyAt = r.dirtyAt
		s.dirty = s.dirty[:len(s.dirty)-1]
		r.dirtyAt = 0
	}
}

func (s *State) nextSeq() uint64 {
	s.seq++
	return s.seq
}

// newTaskID makes an id of version 8 from the seed and a counter.
func (s *State) newTaskID() model.TaskID {
	s.ids++
	var t model.TaskID
	binary.BigEndian.PutUint64(t.UUID[:8], s.cfg.Seed)
	binary.BigEndian.PutUint64(t.UUID[8:], s.ids)
	t.UUID[6] = t.UUID[6]&0x0f | 0x80
	t.UUID[8] = t.UUID[8]&0x3f | 0x80
	return t
}
