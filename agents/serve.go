package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// maxAnswer is the size of the largest answer of the API that a handler is given, in bytes.
const maxAnswer = 64 << 20

// Files returns the server's file storage, as handlers see it.
func (a *Agent) Files() sdk.Files { return a.files }

// Code lists the manifests of the Python code that the kept desired states need, sorted.
func (a *Agent) Code() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var codes []string
	for _, n := range a.agents {
		if n.desired != nil && n.desired.Code != "" {
			codes = append(codes, n.desired.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Upload adds a content to the server's file storage. It fails with [model.ErrInvalid] when the server does not want it, with
// [model.ErrUnavailable] when it can not be reached.
func (a *Agent) Upload(ctx context.Context, hash string, content []byte) error {
	status, body, err := a.request(ctx, http.MethodPut, wire.FilePath+hash, nil, content)
	switch {
	case err != nil:
		return fmt.Errorf("uploading content %s: %w", hash, err)
	case status == http.StatusNoContent || status == http.StatusOK:
		return nil
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("uploading content %s: the server answers %d: %.200s: %w", hash, status, body, model.ErrUnavailable)
	}
	return fmt.Errorf("uploading content %s: the server answers %d: %.200s: %w", hash, status, body, model.ErrInvalid)
}

// Call calls the server's API with the agent's credentials, which are for its environment. path begins with a slash and has the
// query. It fails with [model.ErrUnavailable] when the server can not be reached.
func (a *Agent) Call(ctx context.Context, method, path string, header http.Header, body []byte) (status int, answer []byte, err error) {
	return a.request(ctx, method, path, header, body)
}

// Address returns the machine that an agent works on as the server says: empty for that of this process, else an address such as
// ssh://root@web1:22.
func (a *Agent) Address(name model.AgentName) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.addresses[name]
}

func (a *Agent) request(ctx context.Context, method, path string, header http.Header, body []byte) (int, []byte, error) {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	maps.Copy(header, headers(a.cfg))
	resp, err := a.send(ctx, method, a.cfg.URL+path, header, body)
	if err != nil {
		return 0, nil, fmt.Errorf("calling the server: %w: %w", model.ErrUnavailable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the server's answer: %w: %w", model.ErrUnavailable, err)
	}
	if len(answer) > maxAnswer {
		return 0, nil, fmt.Errorf("the server's answer has more than %d bytes: %w", maxAnswer, model.ErrInvalid)
	}
	return resp.StatusCode, answer, nil
}

// send sends a request. Only what can be done twice is tried again: whoever calls decides about the rest.
func (a *Agent) send(ctx context.Context, method, url string, header http.Header, body []byte) (*http.Response, error) {
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodPut {
		req, err := retryablehttp.NewRequestWithContext(ctx, method, url, body)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller says what was tried
		}
		req.Header = header
		return a.files.client.Do(req) //nolint:wrapcheck // likewise
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	req.Header = header
	return a.files.client.HTTPClient.Do(req) //nolint:wrapcheck // likewise
}
