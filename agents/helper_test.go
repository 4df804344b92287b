package agents_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// helperVariable tells the test binary to run as an agent: URL, environment, token and state directory, divided by spaces.
const helperVariable = "AGENTS_TEST_HELPER"

// runHelper runs the process that a test started from its own binary, and tells whether this is one.
func runHelper() bool {
	args := strings.Fields(os.Getenv(helperVariable))
	if len(args) == 0 {
		return false
	}
	registry := sdk.NewRegistry()
	_ = registry.Execute("test::Thing", executor(noop))
	a, err := agents.New(agents.Config{
		URL: args[0], Environment: model.EnvironmentID{UUID: uuid.MustParse(args[1])}, Token: model.Secret(args[2]),
		StateDir: args[3], Names: []model.AgentName{"one"}, Registry: registry,
	})
	if err == nil {
		err = a.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return true
}

// proxy is a TCP proxy that can lose its connections.
type proxy struct {
	address string
	target  string

	// mu guards all below.
	mu     sync.Mutex
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

func (p *proxy) url() string { return "http://" + p.address }

func (p *proxy) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	var dialer net.Dialer
	d, err := dialer.DialContext(context.Background(), "tcp", p.target)
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
