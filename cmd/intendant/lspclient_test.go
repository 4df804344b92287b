package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// editor is a client of the Language Server Protocol which speaks to the real program over its standard input and output.
type editor struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	nextID  int
	answers map[int]answer
	faults  map[string]published // by URI
	asked   []string             // methods of requests of the server
	shown   []string             // messages to the user
	broken  error
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type published struct {
	URI         string          `json:"uri"`
	Version     *int            `json:"version"`
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// patience is how long a test waits for the server.
const patience = time.Minute

// newEditor starts the program.
func newEditor(t *testing.T, args ...string) *editor {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	e := &editor{
		t: t, cmd: exec.CommandContext(ctx, bin, append([]string{"lsp"}, args...)...), ended: make(chan struct{}),
		answers: map[int]answer{}, faults: map[string]published{},
	}
	e.changed = sync.NewCond(&e.mu)
	e.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	e.cmd.Stderr = t.Output()
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go e.listen(out)
	t.Cleanup(func() {
		cancel()
		<-e.ended
		_ = e.cmd.Wait()
	})
	return e
}

func (e *editor) listen(out io.Reader) {
	defer close(e.ended)
	r := bufio.NewReader(out)
	for {
		err := e.hear(r)
		if err != nil {
			e.mu.Lock()
			e.broken = err
			e.changed.Broadcast()
			e.mu.Unlock()
			return
		}
	}
}

func (e *editor) hear(r *bufio.Reader) error {
	size := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if size, err = strconv.Atoi(strings.TrimSpace(n)); err != nil {
				return err
			}
		}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	var m struct {
		answer
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed.Broadcast()
	switch {
	case m.Method == "textDocument/publishDiagnostics":
		var p published
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		e.faults[p.URI] = p
	case m.Method == "window/showMessage":
		var p struct{ Message string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		e.shown = append(e.shown, p.Message)
	case m.Method != "" && len(m.ID) > 0:
		e.asked = append(e.asked, m.Method)
		reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":null}`, m.ID)
		return e.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(reply), reply))
	case m.Method == "":
		id, err := strconv.Atoi(string(m.ID))
		if err != nil {
			id = -1 // the answer to a message that the server could not read
		}
		e.answers[id] = m.answer
	}
	return nil
}

func (e *editor) raw(text string) error {
	_, err := io.WriteString(e.in, text)
	return err
}

func (e *editor) write(m any) {
	e.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)); err != nil {
		e.t.Fatalf("writing to the server: %v", err)
	}
}

// send sends a request and returns its number.
func (e *editor) send(method string, params any) int {
	e.t.Helper()
	e.mu.Lock()
	e.nextID++
	id := e.nextID
	e.mu.Unlock()
	e.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	e.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// await waits until cond holds; the lock is held while it is asked.
func (e *editor) await(what string, cond func() bool) {
	e.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		e.mu.Lock()
		late = true
		e.changed.Broadcast()
		e.mu.Unlock()
	})
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !cond() {
		if e.broken != nil && !errors.Is(e.broken, io.EOF) || late || errors.Is(e.broken, io.EOF) {
			e.t.Fatalf("waiting for %s: late %v, the connection: %v", what, late, e.broken)
		}
		e.changed.Wait()
	}
}

// answer waits for the answer to a request.
func (e *editor) answer(id int) answer {
	e.t.Helper()
	var a answer
	e.await(fmt.Sprintf("the answer to %d", id), func() bool {
		var ok bool
		a, ok = e.answers[id]
		return ok
	})
	return a
}

// call makes a request whose result is decoded into out. It returns the error that the server answered with.
func (e *editor) call(method string, params, out any) error {
	e.t.Helper()
	a := e.answer(e.send(method, params))
	if a.Error != nil {
		return fmt.Errorf("error %d: %s", a.Error.Code, a.Error.Message)
	}
	if out != nil {
		if err := json.Unmarshal(a.Result, out); err != nil {
			e.t.Fatalf("%s: %v in %s", method, err, a.Result)
		}
	}
	return nil
}

// initialize opens the conversation, and returns what the server can do.
func (e *editor) initialize(folders []string, encodings ...string) map[string]any {
	e.t.Helper()
	var list []map[string]string
	for _, f := range folders {
		list = append(list, map[string]string{"uri": "file://" + f, "name": f})
	}
	var out struct {
		Capabilities map[string]any `json:"capabilities"`
	}
	err := e.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": nil, "workspaceFolders": list,
		"capabilities": map[string]any{
			"general":      map[string]any{"positionEncodings": encodings},
			"workspace":    map[string]any{"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}},
			"textDocument": map[string]any{"documentSymbol": map[string]any{"hierarchicalDocumentSymbolSupport": true}},
		},
	}, &out)
	if err != nil {
		e.t.Fatal(err)
	}
	e.notify("initialized", map[string]any{})
	return out.Capabilities
}

// leave ends the conversation as the protocol wants it, and returns the exit status.
func (e *editor) leave() int {
	e.t.Helper()
	if err := e.call("shutdown", nil, nil); err != nil {
		e.t.Fatal(err)
	}
	e.notify("exit", nil)
	return e.status()
}

// status waits for the program to end and returns its exit status.
func (e *editor) status() int {
	e.t.Helper()
	select {
	case <-e.ended:
	case <-time.After(patience):
		e.t.Fatal("the server does not end")
	}
	_ = e.cmd.Wait()
	return e.cmd.ProcessState.ExitCode()
}
