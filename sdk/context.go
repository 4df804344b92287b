package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/intendant/intendant/model"
)

// Limits of what one run may report. What is beyond them is cut, and the log says so.
const (
	// MaxLogLines is the number of log lines of a run.
	MaxLogLines = 1000
	// MaxLogBytes is the size of all log lines of a run together.
	MaxLogBytes = 1 << 20
	// MaxMessageBytes is the size of one message with its arguments.
	MaxMessageBytes = 64 << 10
	// MaxChangeBytes is the size of one value in a diff; a larger one is replaced by a note.
	MaxChangeBytes = 64 << 10
	// MaxFacts is the number of facts of a run.
	MaxFacts = 1000
)

// Files gives handlers the contents of the server's file storage.
type Files interface {
	// Open returns a content by its SHA-1 in hex and its size in bytes. The content has been verified. The caller closes it.
	// It fails with [model.ErrNotFound] when the server has no such content.
	Open(ctx context.Context, hash string) (io.ReadCloser, int64, error)
}

// Context is one run of a task: its deadline, what is known about it, and where the handler reports to. It is a
// [context.Context] and may be used by the goroutines of one run, but not after the run.
type Context struct {
	context.Context //nolint:containedctx // a run is its context; it lives exactly as long as the call

	task  model.Task
	files Files
	now   func() time.Time
	live  func(model.LogLine)
	only  bool

	// mu guards all below.
	mu       sync.Mutex
	outcome  model.Outcome
	change   model.Change
	diff     model.Diff
	lines    []model.LogLine
	logBytes int
	cut      bool
	facts    []model.Fact
	scratch  map[string]any
	// hidden are attributes that came of references, secrets the texts among their values: neither is shown.
	hidden  map[string]bool
	secrets []string
}

// ContextConfig configures a [Context].
type ContextConfig struct {
	// Task is the task that runs. Required.
	Task model.Task
	// Files is the file storage. With nil there are no files.
	Files Files
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Live, when set, is handed every log line as it is written. It must not block.
	Live func(model.LogLine)
	// ReportOnly forbids changes.
	ReportOnly bool
}

// NewContext makes the context of a run. The agent calls it; handlers are given the result.
func NewContext(ctx context.Context, cfg ContextConfig) *Context {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Context{
		Context: ctx, task: cfg.Task, files: cfg.Files, now: cfg.Now, live: cfg.Live, only: cfg.ReportOnly,
		change: model.ChangeNone,
	}
}

// Task returns the task that runs.
func (c *Context) Task() model.Task { return c.task }

// DryRun tells whether the run must change nothing because only the difference is asked for.
func (c *Context) DryRun() bool { return c.task.Kind == model.TaskDryRun }

// ReportOnly tells whether the run must change nothing because the resource is only watched.
func (c *Context) ReportOnly() bool { return c.only }

// OpenFile returns a content of the file storage by its SHA-1 in hex, verified, and its size in bytes. The caller closes it.
func (c *Context) OpenFile(hash string) (io.ReadCloser, int64, error) {
	if c.files == nil {
		return nil, 0, fmt.Errorf("opening content %s: the agent has no file storage: %w", hash, model.ErrUnavailable)
	}
	return c.files.Open(c, hash)
}

// SetChange says what the run did. The last word counts.
func (c *Context) SetChange(change model.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change = change
}

// SetOutcome says how the run ends when the handler returns nil. Without it a run ends as deployed, a dry run as dry.
func (c *Context) SetOutcome(o model.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcome = o
}

// Outcome returns what SetOutcome was last told; empty when it was not called.
func (c *Context) Outcome() model.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcome
}

// AddChange adds one attribute to the difference that the run reports.
func (c *Context) AddChange(attribute string, current, desired any) {
	c.AddDiff(model.Diff{attribute: change(current, desired)})
}

// AddDiff adds attributes to the difference that the run reports.
func (c *Context) AddDiff(d model.Diff) {
	if len(d) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.diff == nil {
		c.diff = model.Diff{}
	}
	for name, ch := range d {
		if c.hidden[name] {
			c.diff[name] = change(hidden, hidden+" and different")
			continue
		}
		c.diff[name] = model.AttributeChange{Current: cutValue(ch.Current), Desired: cutValue(ch.Desired)}
	}
}

func cutValue(raw json.RawMessage) json.RawMessage {
	switch {
	case len(raw) == 0:
		return json.RawMessage("null")
	case len(raw) > MaxChangeBytes:
		return json.RawMessage(strconv.Quote(fmt.Sprintf("(%d bytes, too long to be shown)", len(raw))))
	}
	return raw
}

// minSecret is the length below which a text is too common to be hidden wherever it stands.
const minSecret = 4

// hide keeps an attribute that came of a reference, and its value, out of everything that is reported.
func (c *Context) hide(attribute string, value json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden == nil {
		c.hidden = map[string]bool{}
	}
	c.hidden[attribute] = true
	var text string
	if json.Unmarshal(value, &text) == nil && len(text) >= minSecret {
		c.secrets = append(c.secrets, text)
	}
}

// Hide keeps an attribute out of the differences that are reported, and texts out of the log: for executors that resolve
// references themselves.
func (c *Context) Hide(attribute string, texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden == nil {
		c.hidden = map[string]bool{}
	}
	c.hidden[attribute] = true
	for _, text := range texts {
		if len(text) >= minSecret {
			c.secrets = append(c.secrets, text)
		}
	}
}

// withoutSecrets returns a text without the values of references.
func (c *Context) withoutSecrets(s string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range c.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	return s
}

// rawWithoutSecrets does the same to JSON, in which texts are escaped.
func (c *Context) rawWithoutSecrets(raw json.RawMessage) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range c.secrets {
		escaped := encodeOrText(secret)
		raw = bytes.ReplaceAll(raw, escaped[1:len(escaped)-1], []byte(hidden))
	}
	return raw
}

// AddFact reports a fact about the resource.
func (c *Context) AddFact(f model.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.facts) < MaxFacts {
		c.facts = append(c.facts, f)
	}
}

// Set keeps a value for later calls of the same run.
func (c *Context) Set(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scratch == nil {
		c.scratch = map[string]any{}
	}
	c.scratch[key] = value
}

// Get returns a value kept by Set.
func (c *Context) Get(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.scratch[key]
	return v, ok
}

// Log writes one line to the resource's log. kwargs are the values that the message mentions.
func (c *Context) Log(level model.LogLevel, message string, kwargs map[string]any) {
	line := model.LogLine{Level: level, Message: cleanText(c.withoutSecrets(message)), Time: c.now()}
	if len(kwargs) > 0 {
		line.Kwargs = c.rawWithoutSecrets(encodeKwargs(kwargs))
	}
	if len(line.Kwargs) > MaxMessageBytes {
		line.Kwargs = nil
	}
	if len(line.Message) > MaxMessageBytes {
		line.Message = strings.ToValidUTF8(line.Message[:MaxMessageBytes], "") + " … (cut)"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	size := len(line.Message) + len(line.Kwargs)
	if len(c.lines) >= MaxLogLines || c.logBytes+size > MaxLogBytes {
		if !c.cut {
			c.cut = true
			c.lines = append(c.lines, model.LogLine{
				Level: model.LevelWarning, Time: line.Time, Message: "The log of this run is too long; what follows is left out.",
			})
		}
		return
	}
	c.logBytes += size
	c.lines = append(c.lines, line)
	if c.live != nil {
		c.live(line)
	}
}

// cleanText makes a text that every store and every terminal takes.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func encodeKwargs(kwargs map[string]any) json.RawMessage {
	raw, err := encode(kwargs)
	if err == nil {
		return raw
	}
	safe := map[string]json.RawMessage{}
	for k, v := range kwargs {
		safe[k] = encodeOrText(v)
	}
	raw, _ = json.Marshal(safe) //nolint:errchkjson // texts and JSON
	return raw
}

// Debugf writes one line of level DEBUG to the resource's log.
func (c *Context) Debugf(format string, args ...any) { c.logf(model.LevelDebug, format, args) }

// Infof writes one line of level INFO to the resource's log.
func (c *Context) Infof(format string, args ...any) { c.logf(model.LevelInfo, format, args) }

// Warnf writes one line of level WARNING to the resource's log.
func (c *Context) Warnf(format string, args ...any) { c.logf(model.LevelWarning, format, args) }

// Errorf writes one line of level ERROR to the resource's log.
func (c *Context) Errorf(format string, args ...any) { c.logf(model.LevelError, format, args) }

func (c *Context) logf(level model.LogLevel, format string, args []any) {
	c.Log(level, fmt.Sprintf(format, args...), nil)
}

// Logger returns a logger that writes to the resource's log; attributes become the line's arguments.
func (c *Context) Logger() *slog.Logger { return slog.New(&logHandler{c: c}) }

// codeOf is the stable reason of an outcome that the handler has set without one.
func codeOf(o model.Outcome) string {
	switch o {
	case model.OutcomeFailed:
		return CodeHandlerError
	case model.OutcomeSkipped:
		return CodeSkipped
	case model.OutcomeSkippedForDependency:
		return CodeRequirement
	case model.OutcomeUnavailable:
		return CodeUnavailable
	case model.OutcomeDeployed, model.OutcomeNonCompliant, model.OutcomeDryRun, model.OutcomeCancelled:
	}
	return ""
}

// Result puts together what the run reported, given what the handler returned.
func (c *Context) Result(err error, started, finished time.Time) model.Result {
	c.mu.Lock()
	change, outcome, diff, facts := c.change, c.outcome, maps.Clone(c.diff), c.facts
	c.mu.Unlock()
	r := model.Result{
		Task: c.task.ID, Environment: c.task.Environment, Resource: c.task.Intent.Resource, Version: c.task.Version,
		Kind: c.task.Kind, AttributeHash: c.task.Intent.AttributeHash, Change: change, Changes: diff, Facts: facts,
		StartedAt: started, FinishedAt: finished, Trace: c.task.Trace, DryRun: c.task.DryRun,
	}
	var instruction *Instruction
	switch {
	case err == nil && outcome != "":
		r.Outcome, r.Code = outcome, codeOf(outcome)
	case err == nil && c.DryRun():
		r.Outcome = model.OutcomeDryRun
	case err == nil:
		r.Outcome = model.OutcomeDeployed
	case errors.As(err, &instruction):
		r.Outcome, r.Code, r.Retry = instruction.Outcome, instruction.Code, instruction.Retry
		c.Log(levelOf(r.Outcome), err.Error(), nil)
	case errors.Is(c.Err(), context.DeadlineExceeded):
		r.Outcome, r.Code, r.Retry = model.OutcomeFailed, CodeDeadline, model.RetryLater
		c.Log(model.LevelError, "The run was ended at its deadline: "+err.Error(), nil)
	case errors.Is(err, model.ErrInvalid):
		r.Outcome, r.Code, r.Retry = model.OutcomeFailed, CodeInvalid, model.RetryPerson
		c.Log(model.LevelError, err.Error(), nil)
	default:
		r.Outcome, r.Code = model.OutcomeFailed, CodeHandlerError
		c.Log(model.LevelError, err.Error(), nil)
	}
	c.mu.Lock()
	r.Log = c.lines
	c.mu.Unlock()
	return r
}

func levelOf(o model.Outcome) model.LogLevel {
	switch o {
	case model.OutcomeSkipped:
		return model.LevelWarning
	case model.OutcomeSkippedForDependency, model.OutcomeCancelled:
		return model.LevelInfo
	case model.OutcomeDeployed, model.OutcomeDryRun, model.OutcomeFailed, model.OutcomeNonCompliant, model.OutcomeUnavailable:
	}
	return model.LevelError
}

// logHandler makes log lines of slog records.
type logHandler struct {
	c      *Context
	attrs  map[string]any
	prefix string
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	kwargs := maps.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		kwargs = addAttr(kwargs, h.prefix, a)
		return true
	})
	level := model.LevelDebug
	switch {
	case r.Level >= slog.LevelError:
		level = model.LevelError
	case r.Level >= slog.LevelWarn:
		level = model.LevelWarning
	case r.Level >= slog.LevelInfo:
		level = model.LevelInfo
	}
	h.c.Log(level, r.Message, kwargs)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := &logHandler{c: h.c, attrs: maps.Clone(h.attrs), prefix: h.prefix}
	for _, a := range attrs {
		n.attrs = addAttr(n.attrs, h.prefix, a)
	}
	return n
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{c: h.c, attrs: h.attrs, prefix: h.prefix + name + "."}
}

func addAttr(to map[string]any, prefix string, a slog.Attr) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		for _, g := range v.Group() {
			to = addAttr(to, prefix+a.Key+".", g)
		}
		return to
	}
	value := v.Any()
	if err, ok := value.(error); ok {
		value = err.Error()
	}
	to[prefix+a.Key] = value
	return to
}
