package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/config"
)

// remote is what the commands that speak to a server have in common.
type remote struct {
	g *globals
	// host and port are flags; empty means the section cmdline_rest_transport.
	host, port string
	output     *string
	// environment is the flag -e.
	environment string
}

// serverFlags gives a command group the flags of its server and its output.
func (r *remote) serverFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&r.host, "host", "", "server to speak to (cmdline_rest_transport.host)")
	cmd.PersistentFlags().StringVar(&r.port, "port", "", "its port (cmdline_rest_transport.port)")
	r.output = outputFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// environmentFlag gives a command and those below it the flag -e.
func (r *remote) environmentFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&r.environment, "environment", "e", "", "name or id of the environment (config.environment)")
	_ = cmd.RegisterFlagCompletionFunc("environment", r.completeEnvironments)
}

func (r *remote) flags() map[string]string {
	f := map[string]string{}
	if r.host != "" {
		f["cmdline_rest_transport.host"] = r.host
	}
	if r.port != "" {
		f["cmdline_rest_transport.port"] = r.port
	}
	return f
}

// transportURL is the address in a section <kind>_rest_transport.
func transportURL(c *config.Config, kind string) string {
	section, scheme := kind+"_rest_transport", "http"
	if c.Bool(section, "ssl") {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(c.String(section, "host"), c.String(section, "port"))
}

// trusting accepts the system's certificates and those of a file; nil, the default of transports, when there is no file.
func trusting(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil //nolint:nilnil // see above
	}
	certificates, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, fmt.Errorf("reading the certificates to trust: %s holds none in PEM form", caFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// client makes the client of a command.
func (r *remote) client() (*api.Client, *config.Config, error) {
	c, err := r.g.load(r.flags())
	if err != nil {
		return nil, nil, err
	}
	trust, err := trusting(c.String("cmdline_rest_transport", "ssl-ca-cert-file"))
	if err != nil {
		return nil, nil, err
	}
	client, err := api.NewClient(api.ClientConfig{
		BaseURL: transportURL(c, "cmdline"), Token: c.String("cmdline_rest_transport", "token"), TLS: trust,
		Timeout: c.Duration("cmdline_rest_transport", "request-timeout"), UserAgent: "intendant/" + buildVersion(),
	})
	if err != nil {
		return nil, nil, &exitError{code: exitUsage, err: err}
	}
	return client, c, nil
}

// session is one command at work.
type session struct {
	*api.Client
	*printer
}

// plain connects without an environment.
func (r *remote) plain(cmd *cobra.Command) (*session, error) {
	s, _, err := r.connect(cmd)
	return s, err
}

// connect makes the session of a command, and returns the settings that it was made from.
func (r *remote) connect(cmd *cobra.Command) (*session, *config.Config, error) {
	p, err := newPrinter(cmd, *r.output)
	if err != nil {
		return nil, nil, err
	}
	client, c, err := r.client()
	if err != nil {
		return nil, nil, err
	}
	return &session{client, p}, c, nil
}

// scoped connects to the environment of -e, or else of the configuration.
func (r *remote) scoped(cmd *cobra.Command) (*session, error) {
	s, c, err := r.connect(cmd)
	if err != nil {
		return nil, err
	}
	name := r.environment
	if name == "" {
		if name = c.String("config", "environment"); name == "" {
			return nil, &exitError{code: exitUsage, err: errors.New("which environment? give -e NAME, or set config.environment")}
		}
	}
	e, err := findEnvironment(cmd.Context(), s.Client, name)
	if err != nil {
		return nil, err
	}
	s.Client = s.In(e.ID)
	return s, nil
}

// findEnvironment finds an environment by id, or by a name that only one has.
func findEnvironment(ctx context.Context, c *api.Client, name string) (api.EnvironmentDetails, error) {
	all, err := c.Environments(ctx, false)
	if err != nil {
		return api.EnvironmentDetails{}, err
	}
	var found []api.EnvironmentDetails
	for _, e := range all {
		if e.ID == name {
			return e, nil
		}
		if e.Name == name {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.EnvironmentDetails{}, fmt.Errorf("there is no environment %q; see: intendant environment list", name)
	}
	var in []string
	for _, e := range found {
		in = append(in, fmt.Sprintf("%s in %s", e.ID, e.ProjectName))
	}
	return api.EnvironmentDetails{}, fmt.Errorf("%d environments are called %q: give the id: %s", len(found), name, strings.Join(in, ", "))
}

// findProject finds a project by id or name.
func findProject(ctx context.Context, c *api.Client, name string) (api.Project, error) {
	all, err := c.Projects(ctx)
	if err != nil {
		return api.Project{}, err
	}
	for _, p := range all {
		if p.ID == name || p.Name == name {
			return p, nil
		}
	}
	return api.Project{}, fmt.Errorf("there is no project %q; see: intendant project list", name)
}

func (r *remote) completeEnvironments(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	client, _, err := r.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	all, err := client.Environments(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, e := range all {
		if strings.HasPrefix(e.Name, prefix) {
			out = append(out, e.Name+"\t"+e.ProjectName)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// say writes a sentence for people.
func (s *session) say(format string, args ...any) error {
	_, err := fmt.Fprintf(s.out, format+"\n", args...)
	return err
}

// when renders a moment; empty when it has not come.
func when(t *api.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// took renders the time between two moments.
func took(from, to *api.Time) string {
	if from == nil || from.IsZero() || to == nil || to.IsZero() {
		return ""
	}
	return shortDuration(to.Sub(from.Time))
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// shortCommit is a commit as people know it.
func shortCommit(r *api.Revision) string {
	if r == nil || r.Commit == "" {
		return ""
	}
	first, _, _ := strings.Cut(r.Message, "\n")
	return r.Commit[:min(8, len(r.Commit))] + " " + first
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// filters builds the filters of a list from pairs, leaving out empty values.
func filters(pairs ...string) map[string][]string {
	f := map[string][]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			f[pairs[i]] = append(f[pairs[i]], pairs[i+1])
		}
	}
	return f
}

// isID reports whether a text is an id of the API.
func isID(s string) bool {
	_, err := uuid.Parse(s)
	return err == nil
}
