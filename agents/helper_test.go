package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// helperVariable tells the test binary to run as an agent: with URL, environment, token and state directory, divided by
// spaces, or with one word, as a process that a hub has started.
const helperVariable = "AGENTS_TEST_HELPER"

// runHelper runs the process that a test started from its own binary, and tells whether this is one.
func runHelper() bool {
	args := strings.Fields(os.Getenv(helperVariable))
	if len(args) == 0 {
		return false
	}
	if len(args) == 1 {
		runAutostarted(os.Args)
		return true
	}
	helper(agents.Config{
		URL: args[0], Environment: model.EnvironmentID{UUID: uuid.MustParse(args[1])}, Token: model.Secret(args[2]),
		StateDir: args[3], Names: []model.AgentName{"one"},
	})
	return true
}

// runAutostarted runs as the process that a hub starts.
func runAutostarted(args []string) {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	var credentials hub.Credentials
	_ = json.NewDecoder(os.NewFile(hub.CredentialsFD, "credentials")).Decode(&credentials)
	helper(agents.Config{
		URL: value("--server"), Environment: model.EnvironmentID{UUID: uuid.MustParse(value("--environment"))},
		Token: model.Secret(credentials.Token), Key: model.Secret(credentials.Key), StateDir: value("--state-dir"),
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
}

// helper runs an agent whose handler tells the process that it runs in.
func helper(cfg agents.Config) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg.Registry = sdk.NewRegistry()
	var a *agents.Agent
	_ = cfg.Registry.Execute("test::Thing", executor(func(c *sdk.Context, _ *sdk.Resource) error {
		c.AddFact(model.Fact{Name: "pid", Value: strconv.Itoa(os.Getpid())})
		c.AddFact(model.Fact{Name: "arguments", Value: strings.Join(os.Args, " ")})
		c.AddFact(model.Fact{Name: "environment", Value: strings.Join(os.Environ(), " ")})
		c.AddFact(model.Fact{Name: "address", Value: a.Address(c.Task().Agent)})
		return nil
	}))
	var err error
	if a, err = agents.New(cfg); err == nil {
		err = a.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// proxy is a TCP proxy that can lose its connections.
type proxy struct {
	address string

	// mu guards all below.
	mu     sync.Mutex
	target string
	cut    bool
	conns  map[net.Conn]bool
	closed sync.WaitGroup
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), target: strings.TrimPrefix(url, "http://"), conns: map[net.Conn]bool{}}
	p.closed.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.closed.Go(func() { p.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.block()
		p.closed.Wait()
	})
	return p
}

func (p *proxy) setTarget(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = strings.TrimPrefix(url, "http://")
}

func (p *proxy) url() string { return "http://" + p.address }

func (p *proxy) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	var dialer net.Dialer
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	d, err := dialer.DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	p.mu.Lock()
	if p.cut {
		p.mu.Unlock()
		return
	}
	p.conns[c], p.conns[d] = true, true
	p.mu.Unlock()
	var wg sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	}
	wg.Go(func() { pipe(c, d) })
	wg.Go(func() { pipe(d, c) })
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	delete(p.conns, d)
}

// block loses all connections and lets none through until unblock.
func (p *proxy) block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}
