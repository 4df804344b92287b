package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/api"
)

func (r *remote) environmentWait() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait ENVIRONMENT", Short: "Wait until the newest commit has converged or failed; for scripts", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("the environment has not converged after %s", timeout))
			defer cancel()
			return follow(ctx, s, io.Discard, false)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "give up after this time")
	return cmd
}

func (r *remote) environmentWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch ENVIRONMENT", Short: "Follow the newest commit until it has converged or failed", Args: cobra.ExactArgs(1), ValidArgsFunction: r.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := r.named(cmd, args[0])
			if err != nil {
				return err
			}
			f, ok := s.out.(*os.File)
			return follow(cmd.Context(), s, s.out, ok && term.IsTerminal(int(f.Fd())))
		},
	}
}

// follow shows the newest journey of an environment until it ends: redrawn in place on a terminal, one line for each change
// elsewhere. It fails when the journey does.
func follow(ctx context.Context, s *session, out io.Writer, live bool) error {
	last := ""
	var failure error
	_, err := api.Await(ctx, s.Client, journeyEvents, func(ctx context.Context) (struct{}, bool, error) {
		none := struct{}{}
		journeys, err := s.Journeys(ctx, 1)
		if err != nil || len(journeys) == 0 {
			return none, false, err
		}
		j := journeys[0]
		if line := describe(j); line != last || live {
			if live {
				_, err = fmt.Fprintf(out, "\r\x1b[2K%s %s", spinner(j), line)
			} else {
				_, err = fmt.Fprintln(out, line)
			}
			last = line
		}
		var ended bool
		ended, failure = outcome(j)
		if ended && live {
			_, _ = fmt.Fprintln(out)
		}
		return none, ended, err
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return failure
}

// journeyEvents are the kinds of events that move a journey.
var journeyEvents = []string{api.EventCompile, api.EventVersion, api.EventResource, api.EventAgent, api.EventEnvironment, api.EventRepository}

// describe says in one line how far a journey is.
func describe(j api.Journey) string {
	parts := []string{shortCommit(j.Revision)}
	if parts[0] == "" {
		parts[0] = j.Reason
	}
	switch j.Phase {
	case "pushed":
		parts = append(parts, "waits for the compiler")
	case "compiling":
		parts = append(parts, "compiling")
	case "candidate":
		parts = append(parts, fmt.Sprintf("version %d waits for its release", j.Version))
	case "deploying":
		parts = append(parts, fmt.Sprintf("version %d: %d/%d deployed", j.Version, j.Deployed, j.Total))
		if j.Failed > 0 {
			parts = append(parts, fmt.Sprintf("%d failed", j.Failed))
		}
		if j.Blocked > 0 {
			parts = append(parts, fmt.Sprintf("%d blocked", j.Blocked))
		}
	case "converged":
		parts = append(parts, fmt.Sprintf("version %d: %d/%d deployed, converged in %s", j.Version, j.Deployed, j.Total, shortDuration(time.Duration(j.Seconds*float64(time.Second)))))
	case "failed":
		parts = append(parts, "failed: "+oneLine(j.Error))
	case "superseded":
		parts = append(parts, "superseded by a newer commit")
	}
	return strings.Join(parts, " · ")
}

// spinner is a mark that moves with the clock, or the final one.
func spinner(j api.Journey) string {
	switch ended, err := outcome(j); {
	case ended && err != nil:
		return "✗"
	case ended:
		return "✓"
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return string(frames[time.Now().UnixMilli()/100%int64(len(frames))])
}

// outcome tells whether nothing more will happen by itself, and why if it went wrong.
func outcome(j api.Journey) (ended bool, err error) {
	switch j.Phase {
	case "converged", "superseded":
		return true, nil
	case "candidate":
		return true, nil
	case "failed":
		return true, fmt.Errorf("the compile of %s failed: %s", shortCommit(j.Revision), oneLine(j.Error))
	case "deploying":
		if j.Waiting == 0 && j.Total > 0 && j.Failed+j.Blocked > 0 && j.Deployed+j.Failed+j.Blocked >= j.Total {
			return true, fmt.Errorf("version %d: %d of %d resources failed, %d are blocked: see intendant resource list --status failed", j.Version, j.Failed, j.Total, j.Blocked)
		}
	}
	return false, nil
}

func newStatusCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "Show how the server is",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			if wait > 0 {
				if err := awaitReady(cmd.Context(), s.BaseURL(), wait); err != nil {
					return err
				}
			}
			st, err := s.Status(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := s.value(st); done {
				return err
			}
			pairs := [][2]string{{"Product", st.Product + " " + st.Version}, {"Status", st.Status}}
			for _, sl := range st.Slices {
				pairs = append(pairs, [2]string{sl.Name, sl.ReportedStatus})
			}
			return s.facts(pairs...)
		},
	}
	r.serverFlags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for the server to be ready")
	return cmd
}

// awaitReady asks the server until it is ready for work.
func awaitReady(ctx context.Context, base string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client := &http.Client{Timeout: 5 * time.Second}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was never asked")
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("asking the server: %w", err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			last = fmt.Errorf("it answers %s", resp.Status)
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server at %s is not ready after %s: %w", base, limit, last)
		case <-tick.C:
		}
	}
}
