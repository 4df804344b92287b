package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/model"
)

// newExportCommand compiles here and uploads the result as a version.
func newExportCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	f := &compileFlags{format: "text", g: g}
	var deploy bool
	var jsonFile, metadata string
	cmd := &cobra.Command{
		Use:   "export [DIR]",
		Short: "Compile a project here and upload the result to a server as a version",
		Long: `Compile the project in DIR (default: the current directory) and upload its resources and files. The environment is that of
-e, or of .inmanta or .intendant in the working directory, as environment save writes it. Nothing is uploaded when the model has faults.
With -d the version is released even if the environment does not release versions by itself. With -j the resources are
written to a file and nothing is uploaded.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if jsonFile != "" {
				res, err := f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), lang.Inputs{})
				if err != nil {
					return err
				}
				return writeResources(jsonFile, res.State)
			}
			s, err := r.scoped(cmd)
			if err != nil {
				return err
			}
			inputs, err := s.compileInputs(cmd.Context())
			if err != nil {
				return err
			}
			res, err := f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), inputs)
			if err != nil {
				return err
			}
			number, err := s.upload(cmd.Context(), res.State, metadata)
			if err != nil {
				return err
			}
			if err := s.say("Committed resources with version %d", number); err != nil {
				return err
			}
			if !deploy {
				return nil
			}
			return s.ensureReleased(cmd.Context(), number)
		},
	}
	r.serverFlags(cmd)
	r.environmentFlag(cmd)
	f.pythonFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.main, "file", "f", "main.cf", "the main file")
	cmd.Flags().BoolVarP(&deploy, "deploy", "d", false, "release the version")
	cmd.Flags().StringVarP(&jsonFile, "json", "j", "", "write the resources to this file instead of uploading them")
	cmd.Flags().StringVar(&metadata, "metadata", "", "message to show with the version, or a JSON object")
	return cmd
}

// compile runs the compiler in this process and fails, with the diagnostics written, when the model has faults.
func (f *compileFlags) compile(ctx context.Context, dir string, stdout, stderr io.Writer, inputs lang.Inputs) (*lang.Result, error) {
	out := bufio.NewWriter(stdout)
	defer func() { _ = out.Flush() }() // what was printed before a fault of ours
	inputs.Env = os.LookupEnv
	var made *lang.Result
	err := f.project(ctx, dir, lang.Options{Inputs: inputs, Stdout: out}, func(res *lang.Result, ds diag.List) error {
		made = res
		return errors.Join(out.Flush(), f.report(stderr, res, ds))
	})
	return made, err
}

// compileInputs reads facts and parameters of the environment from the server.
func (s *session) compileInputs(ctx context.Context) (lang.Inputs, error) {
	in := lang.Inputs{Facts: map[string]string{}, Parameters: map[string]string{}}
	e, err := s.EnvironmentDetails(ctx, s.Client.Environment())
	if err != nil {
		return in, err
	}
	in.Environment.ID, in.Environment.Name = e.ID, e.Name
	in.Seed = e.ID
	params, err := s.Parameters(ctx, api.ListOptions{})
	if err != nil {
		return in, err
	}
	for _, p := range params {
		in.Parameters[p.Name] = p.Value
	}
	facts, err := s.Facts(ctx, api.ListOptions{})
	if err != nil {
		return in, err
	}
	for _, f := range facts {
		in.Facts[f.ResourceID+"/"+f.Name] = f.Value
	}
	return in, nil
}

// upload stores a desired state under a new version and returns its number.
func (s *session) upload(ctx context.Context, state model.DesiredState, metadata string) (int, error) {
	files := make(map[string][]byte, len(state.Files))
	for _, f := range state.Files {
		files[f.Hash] = f.Content
	}
	if _, err := s.UploadFiles(ctx, files); err != nil {
		return 0, fmt.Errorf("uploading files: %w", err)
	}
	number, err := s.ReserveVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("reserving a version: %w", err)
	}
	v := api.UploadedVersion{Version: number, ResourceState: map[string]string{}, ResourceSets: map[string]*string{}}
	for _, in := range state.Intents {
		body, err := uploadedResource(in, number)
		if err != nil {
			return 0, err
		}
		v.Resources = append(v.Resources, body)
		v.ResourceState[string(in.Resource)] = "available"
		if in.Undefined {
			v.ResourceState[string(in.Resource)] = "undefined"
		}
		if in.Set != "" {
			v.ResourceSets[string(in.Resource)] = &in.Set
		}
	}
	for _, u := range state.Unknowns {
		text, err := json.Marshal(map[string]string{"resource": u.Resource, "parameter": u.Name, "source": u.Source})
		if err != nil {
			return 0, fmt.Errorf("encoding an unknown: %w", err)
		}
		var one map[string]json.RawMessage
		if err := json.Unmarshal(text, &one); err != nil {
			return 0, fmt.Errorf("encoding an unknown: %w", err)
		}
		v.Unknowns = append(v.Unknowns, one)
	}
	if err := uploadedCode(&v, state); err != nil {
		return 0, err
	}
	if v.VersionInfo, err = versionInfo(metadata); err != nil {
		return 0, err
	}
	if err := s.UploadVersion(ctx, v); err != nil {
		return 0, fmt.Errorf("storing version %d: %w", number, err)
	}
	return number, nil
}

// uploadedCode adds the Python code that agents need, whose contents are among the files.
func uploadedCode(v *api.UploadedVersion, state model.DesiredState) error {
	if len(state.Code) > 0 {
		v.ModuleVersionInfo = map[string]json.RawMessage{}
	}
	for _, m := range state.Code {
		info := api.ModuleVersion{Name: m.Module, Version: m.Digest, Requirements: m.Requirements, ForAgents: []string{}, Types: m.Types}
		for _, f := range m.Files {
			info.Files = append(info.Files, api.ModuleFile{Name: f.Name, Hash: f.Hash, IsPackage: f.Package})
		}
		text, err := json.Marshal(info)
		if err != nil {
			return fmt.Errorf("encoding the code of module %s: %w", m.Module, err)
		}
		v.ModuleVersionInfo[m.Module] = text
	}
	if p := state.Pip; p != nil {
		v.PipConfig = &api.PipConfig{
			IndexURL: p.IndexURL, ExtraIndexURL: p.ExtraIndexURL, FindLinks: p.FindLinks, Pre: p.Pre, UseSystemConfig: p.UseSystemConfig,
		}
		if len(p.Constraints) > 0 {
			constraints := strings.Join(p.Constraints, "\n")
			v.ProjectConstraints = &constraints
		}
	}
	return nil
}

// uploadedResource is a resource as the API takes it: its fields with id and requires among them.
func uploadedResource(in model.Intent, version int) (map[string]json.RawMessage, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(in.Attributes, &body); err != nil {
		return nil, fmt.Errorf("resource %s: %w", in.Resource, err)
	}
	requires := in.Requires
	if requires == nil {
		requires = []model.ResourceID{}
	}
	for name, value := range map[string]any{"id": in.Resource.WithVersion(version), "requires": requires} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", in.Resource, err)
		}
		body[name] = text
	}
	return body, nil
}

// versionInfo is what is shown with a version: who exported it, and why.
func versionInfo(metadata string) (map[string]json.RawMessage, error) {
	meta := map[string]any{"type": "manual", "message": "Exported on the command line", "hostname": hostname(), "cli-user": os.Getenv("USER"), "inmanta:compile:state": "success"}
	if metadata != "" {
		var given map[string]any
		if json.Unmarshal([]byte(metadata), &given) == nil {
			maps.Copy(meta, given)
		} else {
			meta["message"] = metadata
		}
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("encoding the metadata: %w", err)
	}
	return map[string]json.RawMessage{"export_metadata": text}, nil
}

// ensureReleased releases a version unless the environment has done so by itself.
func (s *session) ensureReleased(ctx context.Context, number int) error {
	v, err := s.Version(ctx, number)
	if err != nil || v.Released {
		return err
	}
	if err := s.ReleaseVersion(ctx, number); err != nil && !api.IsConflict(err) {
		return fmt.Errorf("releasing version %d: %w", number, err)
	}
	return nil
}

// writeResources writes resources as the reference's JSON export does.
func writeResources(path string, state model.DesiredState) error {
	list := make([]map[string]json.RawMessage, 0, len(state.Intents))
	for _, in := range state.Intents {
		body, err := uploadedResource(in, 0)
		if err != nil {
			return err
		}
		list = append(list, body)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the resources: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // an export is no secret
		return fmt.Errorf("writing the resources: %w", err)
	}
	return nil
}

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
	res, err := f.compile(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr(), lang.Inputs{Seed: embeddedEnvironment})
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
	number, err := s.upload(cmd.Context(), res.State, "Deployed from "+dir)
	if err != nil {
		return err
	}
	if dryRun {
		id, err := s.RequestDryRun(cmd.Context(), number)
		if err != nil {
			return err
		}
		rep, err := s.WaitDryRun(cmd.Context(), number, id, nil)
		if err != nil {
			return err
		}
		return s.dryRunReport(rep)
	}
	if err := s.ensureReleased(cmd.Context(), number); err != nil {
		return err
	}
	return s.settle(cmd.Context(), number)
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

// settle shows the deployment until nothing moves any more, and fails when something was not deployed.
func (s *session) settle(ctx context.Context, number int) error {
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
	if err != nil {
		return err
	}
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
