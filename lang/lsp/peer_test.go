package lsp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"
)

// peer is an editor in the process of the test.
type peer struct {
	t    testing.TB
	conn *conn
	in   *io.PipeWriter
	done chan error // the result of Run

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	answers map[string]*rpcReply
	faults  map[string]publishParams
	asked   []string // methods of requests to the editor
	gone    bool
	next    int
}

type rpcReply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// newPeer starts a server and a conversation with it.
func newPeer(t testing.TB, cfg Config) *peer {
	t.Helper()
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	p := &peer{t: t, conn: newConn(out, in, 1<<30), in: in, done: make(chan error, 1), answers: map[string]*rpcReply{}, faults: map[string]publishParams{}}
	p.changed = sync.NewCond(&p.mu)
	s := New(cfg)
	go func() {
		err := s.Run(t.Context(), serverIn, serverOut)
		_ = serverOut.Close()
		p.done <- err
	}()
	var listening sync.WaitGroup
	listening.Go(p.listen)
	t.Cleanup(func() {
		_ = in.Close()
		listening.Wait()
	})
	return p
}

func (p *peer) listen() {
	for {
		size, err := p.conn.header()
		body := make([]byte, max(size, 0))
		if err == nil {
			_, err = io.ReadFull(p.conn.in, body)
		}
		r := &rpcReply{}
		if err == nil {
			err = json.Unmarshal(body, r)
		}
		p.mu.Lock()
		switch {
		case err != nil:
			p.gone = true
		case r.Method == "textDocument/publishDiagnostics":
			var params publishParams
			if err := json.Unmarshal(r.Params, &params); err == nil {
				p.faults[params.URI] = params
			}
		case r.Method != "":
			p.asked = append(p.asked, r.Method)
		default:
			p.answers[string(r.ID)] = r
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until cond holds; the lock is held while it is asked.
func (p *peer) await(what string, cond func() bool) {
	p.t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		p.mu.Lock()
		late = true
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if p.gone || late {
			p.t.Fatalf("waiting for %s: the server is gone: %v", what, p.gone)
		}
		p.changed.Wait()
	}
}

func (p *peer) notify(method string, params any) {
	p.t.Helper()
	if err := p.conn.notify(method, params); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) send(method string, params any) string {
	p.t.Helper()
	p.next++
	id := strconv.Itoa(p.next)
	raw := json.RawMessage(id)
	body, err := json.Marshal(params)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.conn.write(message{Version: "2.0", ID: &raw, Method: method, Params: body}); err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *peer) answer(id string) *rpcReply {
	p.t.Helper()
	var r *rpcReply
	p.await("the answer to "+id, func() bool { r = p.answers[id]; return r != nil })
	return r
}

// call makes a request and decodes its result.
func (p *peer) call(method string, params, out any) error {
	p.t.Helper()
	r := p.answer(p.send(method, params))
	if r.Error != nil {
		return r.Error
	}
	if out != nil {
		if err := json.Unmarshal(r.Result, out); err != nil {
			return fmt.Errorf("%s: %w in %s", method, err, r.Result)
		}
	}
	return nil
}

func (p *peer) initialize(capabilities any, folders ...string) {
	p.t.Helper()
	list := []workspaceFolder{}
	for _, f := range folders {
		list = append(list, workspaceFolder{uriOf(f), f})
	}
	if err := p.call("initialize", map[string]any{"capabilities": capabilities, "workspaceFolders": list}, nil); err != nil {
		p.t.Fatal(err)
	}
	p.notify("initialized", struct{}{})
}

func (p *peer) open(file, text string) {
	p.t.Helper()
	p.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uriOf(file), "version": 1, "text": text}})
}

func at(file string, line, character int) map[string]any {
	return map[string]any{"textDocument": textDocument{uriOf(file)}, "position": position{line, character}}
}

// code is the code of an error answer, 0 for none.
func code(err error) int {
	if re, ok := errors.AsType[*rpcError](err); ok {
		return re.Code
	}
	return 0
}
