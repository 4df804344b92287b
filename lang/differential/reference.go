package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed reference.py
var driver string

// maxLine bounds an answer of the reference, in bytes.
const maxLine = 64 << 20

// reference is a running driver of the reference implementation. It is for one goroutine.
type reference struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	// rest is what out has not read yet.
	rest io.Reader
}

// startReference starts the driver with a Python that can import the reference. seed goes to PYTHONHASHSEED; limit is the time
// for one model. Close must be called.
func startReference(ctx context.Context, python string, seed int, limit time.Duration) (*reference, error) {
	cmd := exec.CommandContext(ctx, python, "-c", driver, strconv.Itoa(max(1, int(limit.Seconds()))))
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED="+strconv.Itoa(seed), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the reference: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the reference: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the reference: %w", err)
	}
	r := &reference{cmd: cmd, in: in, out: bufio.NewScanner(out), rest: out}
	r.out.Buffer(nil, maxLine)
	if !r.out.Scan() || !strings.Contains(r.out.Text(), "ready") {
		return nil, errors.Join(fmt.Errorf("starting the reference: %s did not get ready; it must be able to import inmanta "+
			"(pip install inmanta-core inmanta-module-std)", python), r.Close())
	}
	return r, nil
}

// Close ends the driver.
func (r *reference) Close() error {
	err := r.in.Close()
	_, _ = io.Copy(io.Discard, r.rest) // a driver that still writes an answer, perhaps one that was too long, can not end
	if err = errors.Join(err, r.cmd.Wait()); err != nil {
		return fmt.Errorf("ending the reference: %w", err)
	}
	return nil
}

// recorded is an answer of the driver, in the form of a recorded case.
type recorded struct {
	Outcome string         `json:"outcome"`
	Error   *recordedError `json:"error"`
	Stdout  string         `json:"stdout"`
	Model   struct {
		Instances []struct {
			ID    string         `json:"id"`
			Type  string         `json:"type"`
			Locs  []string       `json:"locs"`
			Attrs map[string]any `json:"attrs"`
			Rels  map[string]any `json:"rels"`
		} `json:"instances"`
	} `json:"model"`
	Export struct {
		Outcome   string           `json:"outcome"`
		Error     *recordedError   `json:"error"`
		Resources []map[string]any `json:"resources"`
	} `json:"export"`
}

type recordedError struct {
	Class    string           `json:"class"`
	Message  string           `json:"message"`
	Trace    string           `json:"trace"`
	Causes   []*recordedError `json:"causes"`
	Location *struct {
		File string `json:"file"`
		Line int    `json:"line"`
	} `json:"location"`
}

// compile has the reference compile a project.
func (r *reference) compile(p project) (answer, error) {
	request, err := json.Marshal(map[string]any{"files": p})
	if err != nil {
		return answer{}, fmt.Errorf("asking the reference: %w", err)
	}
	if _, err := r.in.Write(append(request, '\n')); err != nil {
		return answer{}, fmt.Errorf("asking the reference: %w", err)
	}
	if !r.out.Scan() {
		return answer{}, fmt.Errorf("asking the reference: it ended: %w", errors.Join(io.ErrUnexpectedEOF, r.out.Err()))
	}
	return decode[recorded](r.out.Bytes()).answer(), nil
}

func (c recorded) answer() answer {
	a := answer{outcome: c.Outcome, printed: lines(c.Stdout)}
	if c.Error != nil {
		a.errors = []fault{c.Error.fault()}
	}
	if a.outcome != "ok" {
		return a
	}
	a.nodes = map[string]*node{}
	for _, i := range c.Model.Instances {
		n := &node{kind: plainType(i.Type), slots: map[string]any{}}
		for _, at := range i.Locs {
			n.own = n.own || !strings.HasPrefix(at, "{std}")
		}
		for name, v := range i.Attrs {
			n.slots[name] = theirValue(v)
		}
		for name, v := range i.Rels {
			n.slots[name] = relation(v)
		}
		a.nodes[i.ID] = n
	}
	if e := c.Export.Error; e != nil {
		a.exportError = e.Class + ": " + e.Message
	}
	a.resources = map[string]string{}
	for _, res := range c.Export.Resources {
		id, _ := res["id"].(string)
		var requires []string
		list, _ := res["requires"].([]any)
		for _, r := range list {
			requires = append(requires, fmt.Sprint(r))
		}
		a.resources[unversioned(id)] = resourceText(res, requires)
	}
	return a
}

// Faults of values that are never set have no location; the places are in the text.
var placeInText = regexp.MustCompile(`([\w./{}-]+\.cf):(\d+)`)

func (e *recordedError) fault() fault {
	f := fault{message: e.Message, codes: e.codes()}
	f.places = e.places()
	return f
}

func (e *recordedError) codes() []string {
	out := []string{e.Class}
	if i := strings.LastIndexByte(e.Class, '.'); i >= 0 && strings.HasPrefix(e.Class, "inmanta.") {
		out[0] = e.Class[i+1:]
	}
	if out[0] == "MultiException" {
		for _, c := range e.Causes {
			out = append(out, c.codes()...)
		}
	}
	return out
}

func (e *recordedError) places() []place {
	if e.Location != nil {
		return []place{{e.Location.File, e.Location.Line}}
	}
	var out []place
	for _, c := range e.Causes {
		out = append(out, c.places()...)
	}
	if len(out) == 0 {
		text := e.Trace
		if text == "" {
			text = e.Message
		}
		for _, m := range placeInText.FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(m[2])
			out = append(out, place{m[1], n})
		}
	}
	return out
}

// theirValue turns a value of a recorded case into the common form.
func theirValue(v any) any {
	switch x := v.(type) {
	case json.Number:
		return number(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = theirValue(e)
		}
		return out
	case map[string]any:
		if f, ok := x["$float"].(string); ok {
			return number(f)
		}
		if id, ok := x["$ref"].(string); ok {
			return ref(id)
		}
		if _, ok := x["$unknown"]; ok {
			return unknown{}
		}
		if _, ok := x["$reference"]; ok {
			return deferred{}
		}
		if list, ok := x["$dict"].([]any); ok {
			out := pairs{}
			for _, e := range list {
				if kv, ok := e.([]any); ok && len(kv) == 2 {
					out[fmt.Sprint(kv[0])] = theirValue(kv[1])
				}
			}
			return out
		}
		return fmt.Sprint(x)
	}
	return v
}

// relation is [theirValue] where texts are the ids of instances.
func relation(v any) any {
	switch x := v.(type) {
	case string:
		return ref(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = relation(e)
		}
		return out
	}
	return theirValue(v)
}
