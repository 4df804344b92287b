package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler"
	"github.com/intendant/intendant/scheduler/engine"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/embedded"
	"github.com/intendant/intendant/web"
)

func newServerCommand(g *globals) *cobra.Command {
	var port, address, stateDir string
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server: API, console, compiler, scheduler and, unless told otherwise, PostgreSQL and agents",
		Long: `Run the server. Without any setting it listens on 127.0.0.1:8888, keeps its data in the state directory
(intendant config shows which) and starts a PostgreSQL of its own there.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			for name, value := range map[string]string{"server.bind-port": port, "server.bind-address": address, "config.state-dir": stateDir} {
				if value != "" {
					flags[name] = value
				}
			}
			c, err := g.load(flags)
			if err != nil {
				return err
			}
			return runServer(cmd.Context(), c, g.logger(c, os.Stderr))
		},
	}
	cmd.Flags().StringVar(&port, "port", "", "port to listen on (server.bind-port)")
	cmd.Flags().StringVar(&address, "address", "", "address to listen on (server.bind-address)")
	cmd.Flags().StringVar(&stateDir, "state-dir", "", "directory for everything that the server keeps (config.state-dir)")
	return cmd
}

// stopTimeout bounds how long the database may take to stop at the end.
const stopTimeout = 30 * time.Second

// runServer composes the server and runs it until ctx ends.
func runServer(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	for _, w := range c.Warnings {
		log.Warn("configuration", "problem", w)
	}
	stateDir, err := filepath.Abs(c.String("config", "state-dir"))
	if err != nil {
		return fmt.Errorf("resolving the state directory: %w", err)
	}
	if err := os.MkdirAll(stateDir, 0o755); err != nil { // PostgreSQL's account must pass through; what lies in it is closed
		return fmt.Errorf("creating the state directory: %w", err)
	}
	id, unlock, err := lockState(stateDir)
	if err != nil {
		return err
	}
	defer unlock()
	key, err := masterKey(c, stateDir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	dbURL := databaseURL(c)
	if dbURL == "" {
		pg, startErr := startDatabase(ctx, c, stateDir, log)
		if startErr != nil {
			return startErr
		}
		defer func() {
			stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
			defer done()
			err = errors.Join(err, pg.Stop(stop))
		}()
		dbURL = pg.URL(databaseName)
		go func() { // ends with the database, which ends before runServer returns
			<-pg.Done()
			cancel(fmt.Errorf("the built-in PostgreSQL has ended: %w", errors.Join(pg.Err(), errDatabaseGone)))
		}()
	}
	wait := max(c.Duration("database", "wait-time"), store.DefaultConnectTimeout)
	st, err := store.Open(ctx, store.Config{URL: dbURL, MasterKey: key, Migrate: true, ConnectTimeout: wait, Logger: log.With("part", "store")})
	if err != nil {
		return err
	}
	defer st.Close()

	s, err := compose(c, st, stateDir, id, log)
	if err != nil {
		return err
	}
	err = s.run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errDatabaseGone) {
		err = errors.Join(cause, err)
	}
	return err
}

// errDatabaseGone ends the server when its database has ended by itself.
var errDatabaseGone = errors.New("a supervisor should start the server again")

// databaseName is the database of the built-in PostgreSQL.
const databaseName = "intendant"

// startDatabase brings up the built-in PostgreSQL.
func startDatabase(ctx context.Context, c *config.Config, stateDir string, log *slog.Logger) (*embedded.Server, error) {
	dir := c.String("database", "dir")
	if dir == "" {
		dir = filepath.Join(stateDir, "postgres")
	}
	begun := time.Now()
	pg, err := embedded.Start(ctx, embedded.Config{Dir: dir, BinDir: c.String("database", "bin-dir"), Logger: log.With("part", "postgres")})
	if err != nil {
		return nil, err
	}
	if err := pg.EnsureDatabase(ctx, databaseName); err != nil {
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		return nil, errors.Join(err, pg.Stop(stop))
	}
	log.Info("the built-in PostgreSQL is up", "dir", dir, "took", time.Since(begun).Round(time.Millisecond))
	return pg, nil
}

// databaseURL is the URL of the operator's own PostgreSQL; empty when there is none.
func databaseURL(c *config.Config) string {
	if u := c.String("database", "url"); u != "" {
		return u
	}
	host := c.String("database", "host")
	if host == "" {
		return ""
	}
	u := url.URL{Scheme: "postgres", Host: net.JoinHostPort(host, c.String("database", "port")), Path: "/" + c.String("database", "name")}
	if name, password := c.String("database", "username"), c.String("database", "password"); password != "" {
		u.User = url.UserPassword(name, password)
	} else {
		u.User = url.User(name)
	}
	return u.String()
}

// parts are the running pieces of a server.
type parts struct {
	log       *slog.Logger
	store     *store.Store
	hub       *hub.Hub
	git       *gitsync.Service
	compiler  *compilerd.Service
	modules   *serverModules
	timer     *compilerd.Timer
	scheduler *scheduler.Scheduler
	server    *server.Server
	// factRenew is the age at which facts are read again.
	factRenew time.Duration
}

// compose builds every part and plugs them together. Nothing runs yet.
func compose(c *config.Config, st *store.Store, stateDir, id string, log *slog.Logger) (*parts, error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	owner := c.String("config", "node-name") + ":" + id
	p := &parts{log: log, store: st, factRenew: c.Duration("server", "fact-renew")}
	part := func(name string) *slog.Logger { return log.With("part", name) }

	scheme := "http"
	if c.String("server", "ssl-cert-file") != "" {
		scheme = "https"
	}
	local := c.String("server", "bind-address")
	if ip := net.ParseIP(local); ip != nil && ip.IsUnspecified() {
		local = "127.0.0.1"
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program itself: %w", err)
	}
	p.hub, err = hub.New(hub.Config{
		Registry: st,
		Autostart: &hub.Autostart{
			Executable:      executable,
			URL:             scheme + "://" + net.JoinHostPort(local, c.String("server", "bind-port")),
			StateDir:        filepath.Join(stateDir, "agents"),
			Names:           autostartNames(st),
			Addresses:       agentAddresses(st),
			Args:            []string{"agent"},
			Env:             append(hub.ChildEnvironment(os.Environ()), agentVariables(c)...),
			CertificateFile: c.String("server", "ssl-cert-file"),
		},
		RepairInterval: func(ctx context.Context, env model.EnvironmentID) (string, error) {
			e, err := st.Environment(ctx, env)
			if err != nil {
				return "", err
			}
			return model.ParseSettings(e.Settings).RepairInterval, nil
		},
		// The scheduler is made below, before the hub runs.
		Elsewhere:  func(env model.EnvironmentID) bool { return p.scheduler.Elsewhere(env) },
		Server:     owner,
		Registerer: reg,
		Logger:     part("hub"),
	})
	if err != nil {
		return nil, err
	}
	p.scheduler, err = scheduler.New(scheduler.Config{
		Store: st, Dispatcher: p.hub, Owner: owner, Logger: part("scheduler"), Registerer: reg,
		Engine: engine.Config{TaskDeadline: c.Duration("agent", "task-timeout"), TasksPerAgent: max(c.Int("agent", "prefetch"), c.Int("agent", "parallelism"))},
	})
	if err != nil {
		return nil, err
	}
	p.hub.SetSink(p.scheduler)
	git := gitsync.Config{
		Dir: filepath.Join(stateDir, "git"), Recorder: st, Logger: part("gitsync"), Registerer: reg,
		AllowLocal: c.Bool("git", "allow-local"), BlockPrivateNetworks: c.Bool("git", "block-private-networks"),
		PollInterval: c.Duration("git", "poll-interval"), FetchTimeout: c.Duration("git", "timeout"),
	}
	p.git, err = gitsync.New(git)
	if err != nil {
		return nil, err
	}
	if workers := c.Int("compiler", "workers"); workers > 0 {
		git.Registerer = nil // its figures are those of the projects
		p.modules, err = newServerModules(c, stateDir, git, st.Repository)
		if err != nil {
			return nil, err
		}
		p.compiler, err = compilerd.New(compilerd.Config{
			Queue: st, Sources: p.git, Modules: p.modules, Command: append([]string{executable, "compile", "--confined"}, pythonArguments(c)...), Dir: filepath.Join(stateDir, "compile"), Workers: workers,
			Limits:          compilerd.Limits{Time: c.Duration("compiler", "timeout"), Memory: int64(c.Int("compiler", "memory-limit"))},
			ReportRetention: c.Duration("server", "compiler-report-retention"), Logger: part("compiler"), Registerer: reg,
		})
		if err != nil {
			return nil, err
		}
	}
	p.timer, err = compilerd.NewTimer(compilerd.TimerConfig{Timetable: st, Cron: scheduler.NextCron, Logger: part("compiler")})
	if err != nil {
		return nil, err
	}
	var allowed []string
	if name := c.String("server", "server-address"); name != "" {
		allowed = append(allowed, name)
	}
	p.server, err = server.New(server.Config{
		Store: st,
		SettingChanged: func(ctx context.Context, env model.EnvironmentID, name string) {
			if name == model.SettingAgentMap {
				p.hub.RefreshAddresses(ctx, env)
			}
		},
		Addresses:     []string{net.JoinHostPort(c.String("server", "bind-address"), c.String("server", "bind-port"))},
		TLSCertFile:   c.String("server", "ssl-cert-file"),
		TLSKeyFile:    c.String("server", "ssl-key-file"),
		AllowInsecure: c.Bool("server", "allow-insecure"),
		AllowedHosts:  allowed,
		AllowOrigin:   c.String("server", "access-control-allow-origin"),
		Webhooks:      p.git.WebhookHandler(),
		Agents:        p.hub.Handler(),
		Explainer:     p.scheduler,
		Console:       web.Files(),
		Registerer:    reg,
		Gatherer:      reg,
		ValidateCron:  scheduler.ValidateCron,
		FactExpire:    c.Duration("server", "fact-expire"),

		FactResourceBlock: c.Duration("server", "fact-resource-block"),
		Version:           buildVersion(),
		MaxBody:           int64(c.Int("server", "max-request-body-size")),
		OnListen: func(a net.Addr) {
			log.Info("listening", "address", a.String(), "console", scheme+"://"+a.String()+"/console")
		},
		Logger: part("server"),
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// run works until ctx ends or a part fails; the others are then stopped too.
func (p *parts) run(ctx context.Context) error {
	defer func() {
		if err := p.git.Close(); err != nil {
			p.log.Warn("closing the git mirrors", "error", err)
		}
		if p.modules != nil {
			if err := p.modules.git.Close(); err != nil {
				p.log.Warn("closing the git mirrors of modules", "error", err)
			}
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	runs := map[string]func(context.Context) error{"server": p.server.Run, "hub": p.hub.Run, "scheduler": p.scheduler.Run, "gitsync": p.git.Run, "housekeeping": p.housekeep, "facts": p.renewFacts, "timer": p.timer.Run}
	if p.compiler != nil {
		runs["compiler"] = p.compiler.Run
	}
	for name, run := range runs {
		g.Go(func() error {
			if err := run(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	err := g.Wait()
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		p.log.Info("stopped")
		return nil
	}
	return err
}

// housekeepingInterval is how often what has outlived its retention is deleted.
const housekeepingInterval = time.Hour

// housekeep deletes old versions, logs and records now and then. A failure waits for the next time.
func (p *parts) housekeep(ctx context.Context) error {
	tick := time.NewTicker(housekeepingInterval)
	defer tick.Stop()
	for {
		if _, err := p.store.Housekeep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.log.Warn("housekeeping", "error", err)
		}
		if p.modules != nil {
			if err := p.modules.sweep(); err != nil {
				p.log.Warn("housekeeping", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// renewFacts has facts read again that have come to an age, and those that compiles wait for.
func (p *parts) renewFacts(ctx context.Context) error {
	if p.factRenew <= 0 {
		return nil
	}
	tick := time.NewTicker(p.factRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := p.store.RenewFacts(ctx, time.Now(), p.factRenew); err != nil && ctx.Err() == nil {
			p.log.Warn("asking for facts", "error", err)
		}
	}
}

// agentVariables are the agents' settings as variables of the environment: the server's own agent processes are to have them
// wherever the server has them from. The directory of an agent's state is not among them: each process has its own.
func agentVariables(c *config.Config) []string {
	var out []string
	for _, o := range options() {
		if o.Section == "agent" && o.Name != "state-dir" {
			name := strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
			out = append(out, "INTENDANT_AGENT_"+name+"="+c.String(o.Section, o.Name))
		}
	}
	return out
}

// autostartNames lets the server's own process host the agents of environments whose setting says so.
func autostartNames(st *store.Store) func(context.Context, model.EnvironmentID, []model.AgentName) ([]model.AgentName, error) {
	return func(ctx context.Context, env model.EnvironmentID, names []model.AgentName) ([]model.AgentName, error) {
		e, err := st.Environment(ctx, env)
		if err != nil {
			return nil, err
		}
		if !model.ParseSettings(e.Settings).AutostartAgents {
			return nil, nil
		}
		return names, nil
	}
}

// agentAddresses reads the machines of agents that work on another one than the server's.
func agentAddresses(st *store.Store) func(context.Context, model.EnvironmentID) (map[model.AgentName]string, error) {
	return func(ctx context.Context, env model.EnvironmentID) (map[model.AgentName]string, error) {
		e, err := st.Environment(ctx, env)
		if err != nil {
			return nil, err
		}
		all := model.ParseAgentMap(json.RawMessage(model.ParseSettings(e.Settings).AgentMap))
		maps.DeleteFunc(all, func(_ model.AgentName, address string) bool { return address == "" })
		return all, nil
	}
}
