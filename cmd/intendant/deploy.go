package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// embeddedEnvironment is the environment that an embedded deployment uses; it is kept with its history.
const embeddedEnvironment = "embedded"

// newDeployCommand compiles and deploys a project without a server.
func newDeployCommand(g *globals) *cobra.Command {
	f := &compileFlags{format: "text", g: g}
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "deploy [DIR]",
		Short: "Compile a project and deploy it from here, without a server",
		Long: `Start a server with its own PostgreSQL and agents for as long as it takes, compile the project in DIR (default: the current
directory), deploy it on this machine, show the progress and the outcome, and stop. State and history are kept in data/deploy below
the project, so that the next run deploys only what has changed. The exit status is 0 when everything was deployed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return deployEmbedded(cmd, g, f, dir, dryRun)
		},
	}
	f.pythonFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	return cmd
}

func deployEmbedded(cmd *cobra.Command, g *globals, f *compileFlags, dir string, dryRun bool) (err error) {
	compile := func(facts map[string]string) (*lang.Result, error) {
		return f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), lang.Inputs{Seed: embeddedEnvironment, Facts: facts})
	}
	res, err := compile(nil) // a model with faults needs no server
	if err != nil {
		return err
	}
	state, err := filepath.Abs(filepath.Join(dir, "data", "deploy"))
	if err != nil {
		return fmt.Errorf("resolving the project: %w", err)
	}
	port, err := freePort(cmd.Context())
	if err != nil {
		return err
	}
	c, err := g.load(map[string]string{"config.state-dir": state, "server.bind-port": port, "server.bind-address": "127.0.0.1", "database.dir": "", "compiler.workers": "0"})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("intendant-deploy-%d.log", os.Getpid())), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	defer func() {
		_ = log.Close()
		if err == nil {
			_ = os.Remove(log.Name())
		} else {
			err = fmt.Errorf("%w\nthe log is in %s", err, log.Name())
		}
	}()
	serving, stop := context.WithCancel(cmd.Context())
	ended := make(chan error, 1)
	go func() { ended <- runServer(serving, c, g.logger(c, log)) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	client, err := api.NewClient(api.ClientConfig{BaseURL: "http://127.0.0.1:" + port, UserAgent: "intendant/" + buildVersion()})
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() { ready <- awaitReady(serving, client.BaseURL(), 2*time.Minute) }()
	select {
	case err := <-ready:
		if err != nil {
			return err
		}
	case err := <-ended:
		ended <- nil // the deferred wait
		return fmt.Errorf("the embedded server ended: %w", err)
	}
	s := &session{client, &printer{out: cmd.OutOrStdout(), format: "table"}}
	if s.Client, err = embeddedClient(cmd.Context(), client); err != nil {
		return err
	}
	return s.deploy(cmd.Context(), res, compile, "Deployed from "+dir, dryRun)
}

// maxRounds bounds how often one run deploys: the facts of a model may depend on what is deployed with them and never settle.
const maxRounds = 8

// deploy stores and deploys what was compiled. While agents report facts that the model got otherwise, or not at all, it is
// compiled and deployed once more, as a server does. A dry run uses the facts of earlier runs.
func (s *session) deploy(ctx context.Context, res *lang.Result, compile func(facts map[string]string) (*lang.Result, error), message string, dryRun bool) error {
	if facts, stale, err := s.staleFacts(ctx, res); err != nil {
		return err
	} else if stale {
		if res, err = compile(facts); err != nil {
			return err
		}
	}
	for round := 1; ; round++ {
		number, err := s.upload(ctx, res.State, message, partialFlags{})
		if err != nil {
			return err
		}
		if dryRun {
			id, err := s.RequestDryRun(ctx, number)
			if err != nil {
				return err
			}
			rep, err := s.WaitDryRun(ctx, number, id, nil)
			if err != nil {
				return err
			}
			return s.dryRunReport(rep)
		}
		if err := s.ensureReleased(ctx, number); err != nil {
			return err
		}
		d, err := s.settle(ctx, number)
		if err != nil {
			return err
		}
		if err := s.awaitFacts(ctx, number, res.State); err != nil {
			return err
		}
		facts, stale, err := s.staleFacts(ctx, res)
		if err != nil {
			return err
		}
		if !stale {
			return s.outcome(ctx, d)
		}
		if round == maxRounds {
			return errors.Join(fmt.Errorf("the facts that the model asks for still change after %d deployments: run the command again, or see what it makes of them", maxRounds), s.outcome(ctx, d))
		}
		if err := s.say("The agents have reported facts that the model asks for: compiling it again."); err != nil {
			return err
		}
		if res, err = compile(facts); err != nil {
			return err
		}
	}
}

// staleFacts returns the facts of the environment by <resource id>/<fact>, and whether a compile that used others would differ.
func (s *session) staleFacts(ctx context.Context, res *lang.Result) (map[string]string, bool, error) {
	asked := func(u lang.InputUse) bool { return u.Kind == value.InputFact }
	if !slices.ContainsFunc(res.Inputs, asked) {
		return nil, false, nil
	}
	all, err := s.Facts(ctx, api.ListOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("reading facts: %w", err)
	}
	facts := make(map[string]string, len(all))
	for _, f := range all {
		facts[f.ResourceID+"/"+f.Name] = f.Value
	}
	return facts, slices.ContainsFunc(res.Inputs, func(u lang.InputUse) bool {
		now, found := facts[u.Name]
		return asked(u) && (found != u.Found || now != u.Value)
	}), nil
}

// factWait bounds the wait for handlers that are asked for facts, which deployments do not wait for.
const factWait = 15 * time.Second

// awaitFacts waits until the handlers of the resources whose facts a version lacks have answered. The server asks them when the
// version is released. A handler that does not answer in time is no error: what waits for its facts is told as undefined.
func (s *session) awaitFacts(ctx context.Context, number int, state model.DesiredState) error {
	deployable := map[string]bool{}
	for _, in := range state.Intents {
		deployable[string(in.Resource)] = !in.Undefined
	}
	waiting := map[string]bool{}
	for _, u := range state.Unknowns {
		if u.Source == string(model.SourceFact) && deployable[u.Resource] {
			waiting[u.Resource] = true
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, factWait)
	defer cancel()
	_, err := api.Await(bounded, s.Client, []string{api.EventResource}, func(ctx context.Context) (bool, bool, error) {
		for id := range waiting {
			actions, err := s.ResourceActions(ctx, id, 20)
			if err != nil {
				return false, false, err
			}
			if slices.ContainsFunc(actions, func(a api.ResourceAction) bool {
				return a.Action == string(model.ActionGetFact) && a.Version == number && a.Finished != nil
			}) {
				delete(waiting, id)
			}
		}
		return true, len(waiting) == 0, nil
	})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return nil
	}
	return err
}

// embeddedClient finds or makes the environment of embedded deployments.
func embeddedClient(ctx context.Context, c *api.Client) (*api.Client, error) {
	all, err := c.Environments(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Name == embeddedEnvironment {
			return c.In(e.ID), nil
		}
	}
	off := json.RawMessage("false") // a version is released here, after its dry run was or was not asked for
	e, err := c.CreateEnvironment(ctx, api.EnvironmentWrite{Project: embeddedEnvironment, Name: embeddedEnvironment, Settings: map[string]json.RawMessage{"auto_deploy": off}})
	if err != nil {
		return nil, err
	}
	return c.In(e.ID), nil
}

// settle shows the deployment until nothing moves any more.
func (s *session) settle(ctx context.Context, number int) (api.DeploySummary, error) {
	f, ok := s.out.(*os.File)
	live := ok && term.IsTerminal(int(f.Fd()))
	last := ""
	d, err := s.WaitSettled(ctx, func(d api.DeploySummary) {
		line := fmt.Sprintf("version %d: %s", number, summary(d))
		if line == last {
			return
		}
		last = line
		if live {
			line = "\r\x1b[2K" + line
		} else {
			line += "\n"
		}
		_, _ = io.WriteString(s.out, line)
	})
	if live {
		_, _ = io.WriteString(s.out, "\n")
	}
	return d, err
}

// outcome says what was not deployed and why, and fails if there is something.
func (s *session) outcome(ctx context.Context, d api.DeploySummary) error {
	if d.ByState["deployed"] == d.Total {
		return nil
	}
	bad, err := s.Resources(ctx, api.ListOptions{Filter: map[string][]string{"status": {"!deployed", "!orphaned"}}})
	if err != nil {
		return err
	}
	for _, r := range bad {
		why, err := s.Explain(ctx, r.ResourceID)
		if err != nil {
			return err
		}
		if err := s.say("%s: %s: %s", r.Status, r.ResourceID, why.Summary); err != nil {
			return err
		}
		logs, err := s.ResourceLogs(ctx, r.ResourceID, api.ListOptions{Limit: 3, Filter: map[string][]string{"minimal_log_level": {"ERROR"}}})
		if err != nil {
			return err
		}
		for _, l := range logs {
			if err := s.say("    %s", strings.ReplaceAll(l.Msg, "\n", "\n    ")); err != nil {
				return err
			}
		}
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("%d of %d resources were not deployed", d.Total-d.ByState["deployed"], d.Total)}
}

// freePort asks the system for a port that nobody listens on.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
