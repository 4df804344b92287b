package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/agents/programs"
	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// agentFlags are the flags of the agent command.
type agentFlags struct {
	names         []string
	environment   string
	server        string
	stateDir      string
	enroll        string
	autostarted   bool
	credentialsFD int
	parallel      int
}

// newAgentCommand runs an agent process until it is told to stop.
func newAgentCommand(g *globals) *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run an agent: bring resources on this machine to their desired state",
		Long: "Run an agent process. It connects to the server, offers its agent names, runs what it is given, and reports.\n" +
			"While the server is away it repairs by the last desired state that it knows.\n\n" +
			"The token is read from the setting token in [agent_rest_transport]. A machine that has none yet is enrolled once with\n" +
			"a one-time token (--enroll FILE, or - for standard input); the lasting token is kept in the state directory.",
		Example: "  intendant agent --environment 8e4d… --server https://intendant.example.org:8888 --name web1 --enroll token.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAgent(cmd.Context(), g, &f, cmd.InOrStdin())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.names, "name", nil, "agent to offer; may be given several times (default: the setting node-name)")
	flags.StringVarP(&f.environment, "environment", "e", "", "environment (default: the setting environment)")
	flags.StringVar(&f.server, "server", "", "the server's URL (default: the settings of agent_rest_transport)")
	flags.StringVar(&f.stateDir, "state-dir", "", "directory of the agent (default: the setting state-dir in [agent])")
	flags.StringVar(&f.enroll, "enroll", "", "file with a one-time token to enroll this machine with; - is standard input")
	flags.IntVar(&f.parallel, "parallelism", 0, "how many resources of one agent are worked on at once (default: the setting parallelism)")
	flags.BoolVar(&f.autostarted, "autostarted", false, "run as the process of a server on this machine")
	flags.IntVar(&f.credentialsFD, "credentials-fd", hub.CredentialsFD, "descriptor to read the credentials of an autostarted agent from")
	for _, internal := range []string{"autostarted", "credentials-fd"} {
		if err := flags.MarkHidden(internal); err != nil {
			panic(err) // the flag was defined above
		}
	}
	return cmd
}

// runAgent puts the configuration together and runs the agent.
func runAgent(ctx context.Context, g *globals, f *agentFlags, stdin io.Reader) error {
	c, err := g.load(nil)
	if err != nil {
		return err
	}
	log := g.logger(c, os.Stderr)
	cfg, err := agentConfig(c, f)
	if err != nil {
		return err
	}
	cfg.Logger = log
	if f.autostarted {
		credentials, err := readCredentials(f.credentialsFD)
		if err != nil {
			return err
		}
		cfg.Token, cfg.Key, cfg.Names = model.Secret(credentials.Token), model.Secret(credentials.Key), nil
		if cfg.Transport, err = pinnedTransport(cfg.Transport, credentials.Certificate); err != nil {
			return err
		}
	} else if cfg.Token, err = agentToken(ctx, c, cfg, f.enroll, stdin, log); err != nil {
		return err
	}
	cfg.Registry = sdk.NewRegistry()
	addresses, err := agentMap(c.String("agent", "map"))
	if err != nil {
		return agentUsage("the setting map in [agent]: %w", err)
	}
	var a *agents.Agent // made below; no task comes before it runs
	address := func(name model.AgentName) string {
		if address, ok := addresses[name]; ok {
			return address
		}
		return a.Address(name)
	}
	handlers := builtin.Config{
		Address: address,
		EditAgentMap: func(ctx context.Context, edit func(map[model.AgentName]string) bool) error {
			return editAgentMap(ctx, a.Call, edit)
		},
	}
	if err := builtin.Register(cfg.Registry, handlers); err != nil {
		return err
	}
	external, err := handlerPrograms(ctx, c, cfg)
	if err != nil {
		return err
	}
	defer external.Close()
	if a, err = agents.New(cfg); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	python, err := pythonHandlers(c, cfg, a, address)
	if err != nil {
		return err
	}
	run, ctx := errgroup.WithContext(ctx)
	// The handlers outlive the agent, which lets tasks end when it stops.
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	run.Go(func() error {
		defer stop()
		return a.Run(ctx)
	})
	run.Go(func() error { return python.Run(stopped) })
	return run.Wait() //nolint:wrapcheck // both say what they did
}

// handlerPrograms starts the handler programs of the settings.
func handlerPrograms(ctx context.Context, c *config.Config, cfg agents.Config) (*programs.Programs, error) {
	p, err := programs.Register(ctx, cfg.Registry, programs.Config{
		Paths: filepath.SplitList(c.String("agent", "handler-programs")), Dir: filepath.Join(cfg.StateDir, "programs"),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("the setting handler-programs in [agent]: %w", err)}
	}
	return p, nil
}

// agentConfig makes the agent's configuration, but for token and handlers, of settings and flags.
func agentConfig(c *config.Config, f *agentFlags) (agents.Config, error) {
	cfg := agents.Config{
		URL: f.server, StateDir: f.stateDir, PerAgent: f.parallel, Hostname: hostname(), Build: buildVersion(),
	}
	text := f.environment
	if text == "" {
		text = c.String("config", "environment")
	}
	env, err := uuid.Parse(text)
	if err != nil {
		return cfg, agentUsage("an agent needs the id of its environment: --environment, or environment in [config]; got %q", text)
	}
	cfg.Environment = model.EnvironmentID{UUID: env}
	const transport = "agent_rest_transport"
	if cfg.URL == "" {
		cfg.URL = transportURL(c, "agent")
	}
	if cfg.StateDir == "" {
		if cfg.StateDir = c.String("agent", "state-dir"); cfg.StateDir == "" {
			cfg.StateDir = filepath.Join(c.String("config", "state-dir"), "agent")
		}
	}
	if cfg.PerAgent == 0 {
		cfg.PerAgent = c.Int("agent", "parallelism")
	}
	names := f.names
	if len(names) == 0 {
		names = []string{c.String("config", "node-name")}
	}
	for _, name := range names {
		cfg.Names = append(cfg.Names, model.AgentName(name))
	}
	t, err := agentTransport(c.String(transport, "ssl-ca-cert-file"))
	if err != nil {
		return cfg, err
	}
	cfg.Transport = t
	return cfg, nil
}

func agentUsage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// agentTransport trusts the certificates of a file besides the system's.
func agentTransport(caFile string) (*http.Transport, error) {
	trust, err := trusting(caFile)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 8,
	}, nil
}

// pinnedTransport makes a transport that accepts one certificate, and no other, whatever names it has: that of the server
// which started this process on its own machine. Without a certificate it returns the other transport.
func pinnedTransport(otherwise http.RoundTripper, certificate string) (http.RoundTripper, error) {
	if certificate == "" {
		return otherwise, nil
	}
	block, _ := pem.Decode([]byte(certificate))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, agentUsage("the server's certificate, handed over with the credentials, is not in PEM form")
	}
	transport, err := agentTransport("")
	if err != nil {
		return nil, err
	}
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // the certificate is compared as a whole, below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("the server's certificate is not that of the server which started this agent")
			}
			return nil
		},
	}
	return transport, nil
}

// readCredentials reads what a server hands to the process that it has started.
func readCredentials(fd int) (hub.Credentials, error) {
	var credentials hub.Credentials
	in := os.NewFile(uintptr(fd), "credentials")
	if in == nil {
		return credentials, agentUsage("--autostarted is for processes that a server starts: there is no descriptor %d", fd)
	}
	defer func() { _ = in.Close() }()
	if err := json.NewDecoder(io.LimitReader(in, 64<<10)).Decode(&credentials); err != nil {
		return credentials, agentUsage("--autostarted is for processes that a server starts: reading credentials from descriptor %d: %w", fd, err)
	}
	if credentials.Token == "" || credentials.Key == "" {
		return credentials, agentUsage("the credentials on descriptor %d are incomplete", fd)
	}
	return credentials, nil
}

// agentToken returns the agent's token: of the settings, of an earlier enrolment, or of one made now.
func agentToken(ctx context.Context, c *config.Config, cfg agents.Config, enroll string, stdin io.Reader, log *slog.Logger) (model.Secret, error) {
	if token := c.String("agent_rest_transport", "token"); token != "" {
		return model.Secret(token), nil
	}
	kept := filepath.Join(cfg.StateDir, "token")
	raw, err := os.ReadFile(kept)
	switch {
	case err == nil:
		return model.Secret(bytes.TrimSpace(raw)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("reading the agent's token: %w", err)
	case enroll == "":
		return "", agentUsage("the agent has no token: set token in [agent_rest_transport], or enroll this machine with a one-time token (--enroll FILE)")
	case enroll == "-":
		raw, err = io.ReadAll(io.LimitReader(stdin, 4<<10))
	default:
		raw, err = os.ReadFile(enroll)
	}
	if err != nil {
		return "", fmt.Errorf("reading the one-time token: %w", err)
	}
	token, err := enrollAgent(ctx, cfg, model.Secret(bytes.TrimSpace(raw)))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return "", fmt.Errorf("keeping the agent's token: %w", err)
	}
	if err := os.WriteFile(kept, []byte(token.Reveal()+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keeping the agent's token: %w", err)
	}
	log.InfoContext(ctx, "this machine is enrolled", "environment", cfg.Environment, "server", cfg.URL)
	return token, nil
}

// enrollAgent exchanges a one-time token for a lasting one. It is not tried again when the server has answered: the one-time
// token may be used up.
func enrollAgent(ctx context.Context, cfg agents.Config, oneTime model.Secret) (model.Secret, error) {
	body, err := json.Marshal(map[string]string{"hostname": cfg.Hostname})
	if err != nil {
		return "", fmt.Errorf("enrolling this machine: %w", err)
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, cfg.URL+wire.EnrollPath, body)
	if err != nil {
		return "", fmt.Errorf("enrolling this machine: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+oneTime.Reveal())
	req.Header.Set(wire.EnvironmentHeader, cfg.Environment.String())
	req.Header.Set("Content-Type", "application/json")
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.RetryMax = 5
	client.HTTPClient = &http.Client{Transport: cfg.Transport, Timeout: time.Minute}
	client.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if resp != nil {
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("enrolling this machine at %s: %w", cfg.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("enrolling this machine at %s: the server answers %s; a one-time token works once", cfg.URL, resp.Status)
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("enrolling this machine at %s: the server's answer has no token", cfg.URL)
	}
	return model.Secret(answer.Token), nil
}
