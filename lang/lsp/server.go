package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
)

// Config is what a server needs.
type Config struct {
	// Version is that of the program, for the editor to show.
	Version string
	// Log takes what goes wrong; nil discards it.
	Log *slog.Logger
	// Open opens the tree of a directory, an absolute path with forward slashes. It must not lead out of it.
	Open func(dir string) (fs.FS, error)
	// Stat describes a file by its absolute path with forward slashes.
	Stat func(path string) (fs.FileInfo, error)
	// Builtin makes the source of a built-in module a file that an editor can show, and returns its path; nil when that is not
	// possible: then definitions within built-in modules are not found.
	Builtin func(name string, text []byte) (path string, err error)
	// Modules says where the modules of the project in a directory are, besides its module path: their trees must have a place on
	// this machine. It is called for each project, and again when its lock changes; nil for none.
	Modules func(dir string) (sites []module.Site, fetched []module.Place, err error)
	// Inputs are what models get to see when they are run to find faults; nil for none.
	Inputs func() lang.Inputs
	// Delay is the time without changes after which a project is checked. Defaults to 150 milliseconds.
	Delay time.Duration
	// MaxMessage is the size of the largest message taken, in bytes. Defaults to 64 MiB.
	MaxMessage int64
}

// ErrNoShutdown says that the editor left without saying so: the protocol wants another exit status then.
var ErrNoShutdown = errors.New("the editor left without the request shutdown")

// maxWorkers bounds how many requests are answered at the same time.
const maxWorkers = 8

// Server serves one editor.
type Server struct {
	cfg  Config
	log  *slog.Logger
	conn *conn

	work sync.WaitGroup // requests and background checks
	slot chan struct{}  // holds a token for each request that is being answered

	mu       sync.Mutex // guards what follows
	phase    phase
	enc      encoding
	snippets bool
	watches  bool // the editor lets servers ask for changes of files
	outline  bool // the editor shows symbols as a tree
	folders  []string
	docs     map[string]*document // by URI
	homes    map[string]*project  // of documents, by URI; nil for none
	projects map[string]*project  // by root
	pending  map[string]context.CancelFunc
	builtins map[string]string // paths of built-in files on this machine, by name
	nextID   int               // of requests to the editor
}

// phase is how far the conversation is.
type phase uint8

const (
	fresh phase = iota
	running
	closing
)

// New returns a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Delay <= 0 {
		cfg.Delay = 150 * time.Millisecond
	}
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = maxMessage
	}
	return &Server{
		cfg: cfg, log: cfg.Log, enc: utf16Units, slot: make(chan struct{}, maxWorkers),
		docs: map[string]*document{}, homes: map[string]*project{}, projects: map[string]*project{},
		pending: map[string]context.CancelFunc{}, builtins: map[string]string{},
	}
}

// Run serves until the editor sends exit, the stream ends or ctx is done. It returns [ErrNoShutdown] when the editor has not
// asked to shut down before, and nil when all went as it should. Reading from in ends only when in does: who cancels ctx
// closes it too.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	s.conn = newConn(in, out, s.cfg.MaxMessage)
	for {
		m, err := s.conn.read()
		var unfit *rpcError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &unfit):
			s.log.Warn("a message was unfit", "error", err)
			err = s.conn.reply(nil, nil, err)
		case errors.Is(err, io.EOF):
			return s.farewell()
		case err != nil:
			return err
		default:
			var done bool
			if done, err = s.take(ctx, m); done {
				return s.farewell()
			}
		}
		if err != nil {
			return err
		}
	}
}

func (s *Server) farewell() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != closing {
		return ErrNoShutdown
	}
	return nil
}

// take deals with a message. done says that it was the last one. The error is one of writing.
func (s *Server) take(ctx context.Context, m *message) (done bool, err error) {
	switch {
	case m.Method == "exit":
		return true, nil
	case m.Method == "" && m.ID != nil:
		return false, nil // an answer to a request of ours; none matters
	case m.Method == "":
		return false, s.conn.reply(nil, nil, failf(codeInvalidRequest, "the message has neither a method nor an id"))
	case m.ID == nil:
		s.notified(ctx, m)
		return false, nil
	}
	s.mu.Lock()
	state := s.phase
	s.mu.Unlock()
	switch {
	case m.Method == "initialize" && state == fresh:
		result, err := s.initialize(m.Params)
		return false, s.conn.reply(m.ID, result, err)
	case state == fresh:
		return false, s.conn.reply(m.ID, nil, failf(codeNotInitialized, "the server has not been initialized"))
	case state == closing:
		return false, s.conn.reply(m.ID, nil, failf(codeInvalidRequest, "the server has been shut down"))
	case m.Method == "initialize":
		return false, s.conn.reply(m.ID, nil, failf(codeInvalidRequest, "the server has been initialized already"))
	case m.Method == "shutdown":
		s.mu.Lock()
		s.phase = closing
		s.mu.Unlock()
		return false, s.conn.reply(m.ID, nil, nil)
	}
	h, ok := handlers[m.Method]
	if !ok {
		return false, s.conn.reply(m.ID, nil, failf(codeNoMethod, "the method %s is not supported", m.Method))
	}
	s.answer(ctx, m, h)
	return false, nil
}

// handler answers a request. The state of documents and projects at the time at which the request came is in the request.
type handler func(ctx context.Context, r *request) (any, error)

// request is a request with the state that it is about.
type request struct {
	server *Server
	params json.RawMessage
	doc    *document // that the request is about; nil when it is not open
	home   *project  // of the document; nil when there is none
	snap   *snapshot // of the project; nil when there is none
	all    []*snapshot
	enc    encoding
}

// bind reads the parameters.
func (r *request) bind(p any) error {
	if err := json.Unmarshal(r.params, p); err != nil {
		return failf(codeInvalidParams, "the parameters are not valid: %v", err)
	}
	return nil
}

// answer works on a request in a goroutine of its own.
func (s *Server) answer(ctx context.Context, m *message, h handler) {
	ctx, cancel := context.WithCancel(ctx)
	id := string(*m.ID)
	r := &request{server: s, params: m.Params}
	var about documentParams
	_ = json.Unmarshal(m.Params, &about) // handlers complain about parameters
	s.mu.Lock()
	s.pending[id] = cancel
	r.enc = s.enc
	if d := s.docs[about.TextDocument.URI]; d != nil && d.model() {
		r.doc = d
	}
	r.home = s.homes[about.TextDocument.URI]
	if r.home != nil && r.home.state != nil {
		r.snap = s.snapshot(r.home)
	}
	s.mu.Unlock()
	s.work.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.pending, id)
			s.mu.Unlock()
		}()
		var result any
		err := ctx.Err()
		select {
		case s.slot <- struct{}{}:
			result, err = s.guarded(ctx, m.Method, h, r)
			<-s.slot
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			result, err = nil, failf(codeCancelled, "the request was cancelled")
		}
		if err := s.conn.reply(m.ID, result, err); err != nil {
			s.log.Warn("an answer could not be sent", "method", m.Method, "error", err)
		}
	})
}

// guarded runs a handler. A fault of ours fails the request and not the server.
func (s *Server) guarded(ctx context.Context, method string, h handler, r *request) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a request failed", "method", method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, failf(codeInternal, "%s failed: this is a fault of the server", method)
		}
	}()
	if r.home != nil && r.snap == nil {
		select {
		case <-r.home.loaded:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	if r.home != nil && r.snap == nil {
		r.snap = s.snapshot(r.home)
		if r.doc != nil && s.docs[r.doc.uri] != nil {
			r.doc = s.docs[r.doc.uri] // it may have got another name when modules were found
		}
	}
	for _, p := range s.sorted() {
		r.all = append(r.all, s.snapshot(p))
	}
	s.mu.Unlock()
	return h(ctx, r)
}

// notified deals with a notification. Nobody is told of faults in them.
func (s *Server) notified(ctx context.Context, m *message) {
	s.mu.Lock()
	state := s.phase
	s.mu.Unlock()
	if state != running {
		return
	}
	var err error
	switch m.Method {
	case "textDocument/didOpen":
		err = bound(m, func(p didOpenParams) error { return s.opened(ctx, p) })
	case "textDocument/didChange":
		err = bound(m, s.changed)
	case "textDocument/didClose":
		err = bound(m, s.closed)
	case "textDocument/didSave", "workspace/didChangeConfiguration":
		s.refresh(false)
	case "workspace/didChangeWatchedFiles":
		s.resettle(ctx)
		s.refresh(bytes.Contains(m.Params, []byte(module.LockFile)))
	case "workspace/didChangeWorkspaceFolders":
		err = bound(m, func(p foldersParams) error { return s.moved(ctx, p) })
	case "$/cancelRequest":
		err = bound(m, s.cancelled)
	case "initialized":
		s.register()
		s.openFolders(ctx)
	}
	if err != nil {
		s.log.Warn("a notification was unfit", "method", m.Method, "error", err)
	}
}

func bound[P any](m *message, f func(P) error) error {
	var p P
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	return f(p)
}

func (s *Server) cancelled(p cancelParams) error {
	s.mu.Lock()
	cancel := s.pending[string(p.ID)]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return nil
}

// register asks the editor to tell of changes of files that are not open.
func (s *Server) register() {
	s.mu.Lock()
	watches := s.watches
	s.nextID++
	id := json.RawMessage(fmt.Sprint(s.nextID))
	s.mu.Unlock()
	if !watches {
		return
	}
	watchers := []map[string]any{}
	for _, glob := range []string{"**/*.cf", "**/project.yml", "**/module.yml", "**/" + module.LockFile, "**/plugins/**/*.py", "**/inmanta_plugins/**/*.py"} {
		watchers = append(watchers, map[string]any{"globPattern": glob})
	}
	params, err := json.Marshal(map[string]any{"registrations": []any{map[string]any{
		"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": map[string]any{"watchers": watchers},
	}}})
	if err != nil {
		return
	}
	if err := s.conn.write(message{Version: "2.0", ID: &id, Method: "client/registerCapability", Params: params}); err != nil {
		s.log.Warn("files could not be watched", "error", err)
	}
}

// initialize agrees with the editor on what both can do.
func (s *Server) initialize(params json.RawMessage) (any, error) {
	var p initializeParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failf(codeInvalidParams, "the parameters are not valid: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range p.Capabilities.General.PositionEncodings {
		if e := encoding(e); e == utf8Units || e == utf16Units || e == utf32Units {
			s.enc = e
			break
		}
	}
	s.snippets = p.Capabilities.TextDocument.Completion.CompletionItem.SnippetSupport
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	s.outline = p.Capabilities.TextDocument.DocumentSymbol.Hierarchical
	for _, f := range p.WorkspaceFolders {
		if name, ok := pathOf(f.URI); ok {
			s.folders = append(s.folders, name)
		}
	}
	if len(p.WorkspaceFolders) == 0 && p.RootURI != nil {
		if name, ok := pathOf(*p.RootURI); ok {
			s.folders = append(s.folders, name)
		}
	}
	s.phase = running
	return map[string]any{
		"serverInfo": map[string]any{"name": "intendant", "version": s.cfg.Version},
		"capabilities": map[string]any{
			"positionEncoding":           s.enc,
			"textDocumentSync":           map[string]any{"openClose": true, "change": 2, "save": map[string]any{"includeText": false}},
			"hoverProvider":              true,
			"definitionProvider":         true,
			"typeDefinitionProvider":     true,
			"implementationProvider":     true,
			"referencesProvider":         true,
			"documentHighlightProvider":  true,
			"documentSymbolProvider":     true,
			"workspaceSymbolProvider":    true,
			"documentFormattingProvider": true,
			"foldingRangeProvider":       true,
			"codeActionProvider":         map[string]any{"codeActionKinds": []string{"quickfix"}},
			"completionProvider":         map[string]any{"triggerCharacters": []string{".", ":", "(", "["}},
			"signatureHelpProvider":      map[string]any{"triggerCharacters": []string{"(", ",", "["}},
			"renameProvider":             map[string]any{"prepareProvider": true},
			"semanticTokensProvider": map[string]any{
				"legend": map[string]any{"tokenTypes": tokenTypes, "tokenModifiers": tokenModifiers}, "full": true,
			},
			"workspace": map[string]any{"workspaceFolders": map[string]any{"supported": true, "changeNotifications": true}},
		},
	}, nil
}
