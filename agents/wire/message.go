package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/intendant/intendant/model"
)

// Epoch numbers the elections of an agent name's primary.
type Epoch uint64

// Hello is an agent process's first frame.
type Hello struct {
	// Protocol is the newest version the agent speaks.
	Protocol int `json:"protocol"`
	// Build is the version of the agent's program.
	Build    string `json:"build,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	// Process identifies the process's state directory: it outlives restarts, and no two live processes share it.
	Process     string `json:"process"`
	Autostarted bool   `json:"autostarted,omitempty"`
	// Key is the secret that a server hands to the process it starts; it proves Autostarted.
	Key string `json:"key,omitempty"`
	// Agents are the names that the process offers.
	Agents []model.AgentName `json:"agents,omitempty"`
	// Session and Resume name the session to go on with, if the process had one.
	Session string `json:"session,omitempty"`
	Resume  string `json:"resume,omitempty"`
	// Held are the tasks that the process still has: waiting, running, or with a result not yet acknowledged.
	Held []model.TaskID `json:"held,omitempty"`
	// Desired holds the digests of the desired states that the process has on disk.
	Desired map[model.AgentName]string `json:"desired,omitempty"`
	// Epochs holds the highest epoch that the process has seen for each name.
	Epochs map[model.AgentName]Epoch `json:"epochs,omitempty"`
}

// Welcome answers a hello.
type Welcome struct {
	Protocol int    `json:"protocol"`
	Session  string `json:"session"`
	// Resume is a secret with which the session can be resumed within ResumeWindow milliseconds of a loss.
	Resume       string `json:"resume"`
	ResumeWindow int64  `json:"resume_window_ms"`
	// Resumed is true when the session named in the hello goes on; otherwise tasks that wait are void.
	Resumed bool   `json:"resumed"`
	Server  string `json:"server,omitempty"`
	// StreamLogs asks for log lines while tasks run.
	StreamLogs bool `json:"stream_logs,omitempty"`
}

// Host tells an autostarted process the names to offer, all of them.
type Host struct {
	Agents []model.AgentName `json:"agents"`
	// Addresses are the machines that agents work on other than that of the process.
	Addresses map[model.AgentName]string `json:"addresses,omitempty"`
}

// Names tells the hub the names that the process offers now, all of them.
type Names struct {
	Agents []model.AgentName `json:"agents"`
}

// Primary tells a process which names are its own to act for.
type Primary struct {
	Agents []PrimaryAgent `json:"agents"`
}

// PrimaryAgent is one name's election as one process is to know it.
type PrimaryAgent struct {
	Agent   model.AgentName `json:"agent"`
	Epoch   Epoch           `json:"epoch"`
	Primary bool            `json:"primary"`
	// Standbys is the number of other processes that can take over. A process that has standbys does not repair by itself
	// while it can not reach the server: another may be acting for the name.
	Standbys int `json:"standbys,omitempty"`
}

// Paused tells which of the process's agents are paused, all of them.
type Paused struct {
	Agents []model.AgentName `json:"agents"`
}

// Desired is a part of an agent's desired state.
type Desired struct {
	Agent   model.AgentName `json:"agent"`
	Version int             `json:"version"`
	// Digest is of the whole: [model.StateDigest].
	Digest string `json:"digest"`
	// Repair is the repair interval: seconds, or a cron expression; "0" is off.
	Repair string `json:"repair"`
	// Code is the SHA-1 of the manifest of the Python code that the agent needs, a content of the file storage.
	Code string `json:"code,omitempty"`
	// First and Last mark the ends of a state that travels in several frames.
	First   bool     `json:"first"`
	Last    bool     `json:"last"`
	Intents []Intent `json:"intents,omitempty"`
}

// Assign hands over tasks.
type Assign struct {
	Tasks []Task `json:"tasks"`
}

// Cancel withdraws tasks that have not begun.
type Cancel struct {
	Tasks []model.TaskID `json:"tasks"`
}

// Log is what a running task has logged since the last such frame. The report repeats it.
type Log struct {
	Task     model.TaskID     `json:"task"`
	Resource model.ResourceID `json:"resource"`
	Lines    []LogLine        `json:"lines"`
}

// Report hands over results. The agent keeps them until they are acknowledged.
type Report struct {
	Results []Result `json:"results"`
}

// Ack answers reports.
type Ack struct {
	// Stored are safe: the agent forgets them.
	Stored []model.TaskID `json:"stored,omitempty"`
	// Refused will never be taken: the agent forgets them and says so in its log.
	Refused []Refusal `json:"refused,omitempty"`
	// Later could not be stored now: the agent sends them again after a while.
	Later []Refusal `json:"later,omitempty"`
}

// Refusal says why a result was not taken.
type Refusal struct {
	Task    model.TaskID `json:"task"`
	Code    Code         `json:"code"`
	Message string       `json:"message,omitempty"`
}

// Heartbeat tells how busy the agent is.
type Heartbeat struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Spooled int `json:"spooled"`
}

// Bye says that the process stops; everything it has not reported is lost or will be reported by its successor.
type Bye struct {
	Reason string `json:"reason,omitempty"`
}

// Error ends a session.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Intent is a [model.Intent] on the wire.
type Intent struct {
	Resource      model.ResourceID   `json:"resource"`
	Attributes    json.RawMessage    `json:"attributes"`
	AttributeHash string             `json:"hash"`
	Requires      []model.ResourceID `json:"requires,omitempty"`
	Set           string             `json:"set,omitempty"`
	Undefined     bool               `json:"undefined,omitempty"`
	Blocked       bool               `json:"blocked,omitempty"`
}

// Task is a [model.Task] on the wire; the environment is the session's.
type Task struct {
	ID      model.TaskID    `json:"id"`
	Agent   model.AgentName `json:"agent"`
	Epoch   Epoch           `json:"epoch"`
	Kind    model.TaskKind  `json:"kind"`
	Intent  Intent          `json:"intent"`
	Version int             `json:"version"`
	Reason  string          `json:"reason,omitempty"`
	Trace   model.TraceID   `json:"trace,omitempty"`
	// Timeout is the time left until the deadline in milliseconds; 0 is no deadline.
	Timeout  int64                             `json:"timeout_ms,omitempty"`
	DryRun   *model.DryRunID                   `json:"dry_run,omitempty"`
	Requires map[model.ResourceID]model.Status `json:"requires,omitempty"`
	Reload   bool                              `json:"reload,omitempty"`
	// Code is the SHA-1 of the manifest of the Python code that the agent needs, a content of the file storage.
	Code string `json:"code,omitempty"`
}

// LogLine is a [model.LogLine] on the wire.
type LogLine struct {
	Level   model.LogLevel  `json:"level"`
	Message string          `json:"msg"`
	Kwargs  json.RawMessage `json:"kwargs,omitempty"`
	Time    time.Time       `json:"time"`
}

// Fact is a [model.Fact] on the wire.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Expires bool   `json:"expires,omitempty"`
}

// Result is a [model.Result] on the wire; the environment is the session's.
type Result struct {
	Task          model.TaskID     `json:"task"`
	Agent         model.AgentName  `json:"agent"`
	Epoch         Epoch            `json:"epoch"`
	Resource      model.ResourceID `json:"resource"`
	Version       int              `json:"version"`
	Kind          model.TaskKind   `json:"kind"`
	AttributeHash string           `json:"hash,omitempty"`
	Outcome       model.Outcome    `json:"outcome"`
	Change        model.Change     `json:"change"`
	Changes       model.Diff       `json:"changes,omitempty"`
	Log           []LogLine        `json:"log,omitempty"`
	Facts         []Fact           `json:"facts,omitempty"`
	StartedAt     time.Time        `json:"started"`
	FinishedAt    time.Time        `json:"finished"`
	Trace         model.TraceID    `json:"trace,omitempty"`
	DryRun        *model.DryRunID  `json:"dry_run,omitempty"`
	Code          string           `json:"code,omitempty"`
	Retry         model.RetryHint  `json:"retry,omitempty"`
	// Offline is true for a repair that the agent did by itself while the server was away.
	Offline bool `json:"offline,omitempty"`
}

// Kind implements Body.
func (*Hello) Kind() Kind { return KindHello }

// Kind implements Body.
func (*Welcome) Kind() Kind { return KindWelcome }

// Kind implements Body.
func (*Host) Kind() Kind { return KindHost }

// Kind implements Body.
func (*Names) Kind() Kind { return KindNames }

// Kind implements Body.
func (*Primary) Kind() Kind { return KindPrimary }

// Kind implements Body.
func (*Paused) Kind() Kind { return KindPaused }

// Kind implements Body.
func (*Desired) Kind() Kind { return KindDesired }

// Kind implements Body.
func (*Assign) Kind() Kind { return KindAssign }

// Kind implements Body.
func (*Cancel) Kind() Kind { return KindCancel }

// Kind implements Body.
func (*Log) Kind() Kind { return KindLog }

// Kind implements Body.
func (*Report) Kind() Kind { return KindReport }

// Kind implements Body.
func (*Ack) Kind() Kind { return KindAck }

// Kind implements Body.
func (*Heartbeat) Kind() Kind { return KindHeartbeat }

// Kind implements Body.
func (*Bye) Kind() Kind { return KindBye }

// Kind implements Body.
func (*Error) Kind() Kind { return KindError }

func (h *Hello) check() error {
	if h.Process == "" {
		return fmt.Errorf("process is missing: %w", model.ErrInvalid)
	}
	if err := limit("held tasks", len(h.Held), MaxHeld); err != nil {
		return err
	}
	if err := limit("desired states", len(h.Desired), MaxNames); err != nil {
		return err
	}
	if err := limit("epochs", len(h.Epochs), MaxNames); err != nil {
		return err
	}
	if err := texts(h.Build, h.Hostname, h.Process, h.Session, h.Resume, h.Key); err != nil {
		return err
	}
	return names(h.Agents)
}

func (w *Welcome) check() error {
	if w.Session == "" {
		return fmt.Errorf("session is missing: %w", model.ErrInvalid)
	}
	return texts(w.Session, w.Resume, w.Server)
}

func (h *Host) check() error {
	if err := limit("addresses", len(h.Addresses), model.MaxAgentMap); err != nil {
		return err
	}
	for name, address := range h.Addresses {
		if err := texts(string(name), address); err != nil {
			return err
		}
	}
	return names(h.Agents)
}

func (n *Names) check() error { return names(n.Agents) }

func (p *Primary) check() error {
	for _, a := range p.Agents {
		if err := names([]model.AgentName{a.Agent}); err != nil {
			return err
		}
	}
	return limit("agents", len(p.Agents), MaxNames)
}

func (p *Paused) check() error { return names(p.Agents) }

func (d *Desired) check() error {
	if err := texts(d.Digest, d.Repair, d.Code); err != nil {
		return err
	}
	if err := names([]model.AgentName{d.Agent}); err != nil {
		return err
	}
	return limit("intents", len(d.Intents), MaxBatch)
}

func (a *Assign) check() error {
	for i := range a.Tasks {
		t := &a.Tasks[i]
		if t.Intent.Resource == "" || t.Agent == "" {
			return fmt.Errorf("task %s without a resource or an agent: %w", t.ID, model.ErrInvalid)
		}
		if t.Timeout < 0 {
			return fmt.Errorf("task %s: timeout %d: %w", t.ID, t.Timeout, model.ErrInvalid)
		}
	}
	return limit("tasks", len(a.Tasks), MaxBatch)
}

func (c *Cancel) check() error { return limit("tasks", len(c.Tasks), MaxHeld) }
func (l *Log) check() error    { return limit("lines", len(l.Lines), MaxBatch) }

func (r *Report) check() error {
	for i := range r.Results {
		if r.Results[i].Resource == "" || r.Results[i].Outcome == "" {
			return fmt.Errorf("result of %s without a resource or an outcome: %w", r.Results[i].Task, model.ErrInvalid)
		}
	}
	return limit("results", len(r.Results), MaxBatch)
}

func (a *Ack) check() error {
	return limit("results", len(a.Stored)+len(a.Refused)+len(a.Later), MaxHeld)
}

func (h *Heartbeat) check() error {
	if h.Waiting < 0 || h.Running < 0 || h.Spooled < 0 {
		return fmt.Errorf("negative count: %w", model.ErrInvalid)
	}
	return nil
}

func (b *Bye) check() error   { return texts(b.Reason) }
func (e *Error) check() error { return nil }

func limit(what string, n, most int) error {
	if n > most {
		return fmt.Errorf("%d %s, at most %d: %w", n, what, most, model.ErrInvalid)
	}
	return nil
}

func texts(values ...string) error {
	for _, v := range values {
		if len(v) > MaxText {
			return fmt.Errorf("text of %d bytes, at most %d: %w", len(v), MaxText, model.ErrInvalid)
		}
	}
	return nil
}

func names(agents []model.AgentName) error {
	for _, a := range agents {
		if a == "" {
			return fmt.Errorf("agent without a name: %w", model.ErrInvalid)
		}
		if err := texts(string(a)); err != nil {
			return err
		}
	}
	return limit("agents", len(agents), MaxNames)
}
