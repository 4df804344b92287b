package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/spf13/cobra"
)

// newHookCommand is what a git server without a forge runs after each push.
func newHookCommand(g *globals) *cobra.Command {
	var serverURL, repository, secretFile string
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Tell a server about a push: for the post-receive hook of a plain git repository",
		Long: `Reads what git gives a post-receive hook (one line for each updated ref: old commit, new commit, ref) and sends one signed
webhook for each ref to a repository whose provider is generic. Make it the hook with a file hooks/post-receive:

  #!/bin/sh
  exec intendant hook --server https://intendant.example.com --repository infra --secret-file /etc/intendant/hook.secret

A push is never refused because the server could not be told: the hook then says so, and the server's next poll finds the push.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.load(nil)
			if err != nil {
				return err
			}
			if serverURL == "" {
				serverURL = transportURL(c, "cmdline")
			}
			secret, err := os.ReadFile(secretFile)
			if err != nil {
				return fmt.Errorf("reading the webhook's secret: %w", err)
			}
			h := hook{url: strings.TrimRight(serverURL, "/") + "/hooks/" + url.PathEscape(repository), secret: bytes.TrimSpace(secret)}
			return h.send(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&serverURL, "server", "", "address of the server (default: cmdline_rest_transport)")
	cmd.Flags().StringVar(&repository, "repository", "", "name of the repository at the server")
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "file with the webhook's secret")
	for _, name := range []string{"repository", "secret-file"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// hook sends generic webhooks: a JSON body {ref, before, after}, signed with HMAC-SHA-256 in X-Intendant-Signature.
type hook struct {
	url    string
	secret []byte
}

// hookTimeout bounds all that a push waits for.
const hookTimeout = 10 * time.Second

// send reads lines of a post-receive hook and sends each. What goes wrong is told, not returned: the push has happened.
func (h hook) send(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 3 {
			return &exitError{code: exitUsage, err: fmt.Errorf("a line of a post-receive hook is <old> <new> <ref>, not %q", lines.Text())}
		}
		if err := h.post(ctx, f[0], f[1], f[2]); err != nil {
			_, _ = fmt.Fprintf(out, "intendant: could not tell the server of %s (%v); it will find the push when it polls\n", f[2], err)
			continue
		}
		_, _ = fmt.Fprintf(out, "intendant: the server knows of %s\n", f[2])
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading what git pushed: %w", err)
	}
	return nil
}

func (h hook) post(ctx context.Context, before, after, ref string) error {
	body, err := json.Marshal(map[string]string{"ref": ref, "before": before, "after": after})
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, h.secret)
	mac.Write(body)
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, h.url, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Intendant-Event", "push")
	req.Header.Set("X-Intendant-Delivery", rand.Text()) // the same in every retry: the server takes it once
	req.Header.Set("X-Intendant-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	client := retryablehttp.NewClient()
	client.Logger, client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = nil, 3, 100*time.Millisecond, time.Second
	resp, err := client.Do(req)
	if err != nil {
		return errors.New("it does not answer")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
