package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// The defaults of [ClientConfig].
const (
	DefaultTimeout    = 2 * time.Minute
	DefaultMaxRetries = 4
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 1 << 30
)

// ClientConfig says which server a [Client] speaks to.
type ClientConfig struct {
	// BaseURL is the server's address: https://host:port. Required.
	BaseURL string
	// Token identifies the caller; empty sends none.
	Token string
	// Environment is the id sent with every call that is about one; [Client.In] gives a client for another.
	Environment string
	// Timeout bounds one call, its retries included. Defaults to DefaultTimeout.
	Timeout time.Duration
	// MaxRetries is how often a call that may be repeated is repeated. Defaults to DefaultMaxRetries; negative is never.
	MaxRetries int
	// TLS is for certificates of one's own. Defaults to the system's trust.
	TLS *tls.Config
	// UserAgent names the program. Defaults to "intendant".
	UserAgent string
}

// Client speaks to one server. Its methods may be called from any goroutine.
type Client struct {
	config ClientConfig
	http   *retryablehttp.Client
	// once sends calls that must not be repeated, and streams.
	once *http.Client
}

// NewClient returns a client. It does no I/O.
func NewClient(c ClientConfig) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:8888", c.BaseURL)
	}
	c.BaseURL = strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/")
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxRetries == 0 {
		c.MaxRetries = DefaultMaxRetries
	}
	if c.UserAgent == "" {
		c.UserAgent = "intendant"
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig: c.TLS, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
	}
	once := &http.Client{Transport: transport}
	retry := retryablehttp.NewClient()
	retry.HTTPClient, retry.Logger = once, nil
	retry.RetryMax, retry.RetryWaitMin, retry.RetryWaitMax = max(c.MaxRetries, 0), 100*time.Millisecond, 2*time.Second
	retry.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return &Client{config: c, http: retry, once: once}, nil
}

// In returns the same client for another environment.
func (c *Client) In(environment string) *Client {
	other := *c
	other.config.Environment = environment
	return &other
}

// Environment is the id sent with each call; empty for none.
func (c *Client) Environment() string { return c.config.Environment }

// BaseURL is the server's address without a trailing slash.
func (c *Client) BaseURL() string { return c.config.BaseURL }

// Segment escapes an id so that it stands as one segment of a path.
func Segment(id string) string { return url.PathEscape(id) }

// Do calls an endpoint. body is encoded as JSON unless it is nil; the answer is decoded into out unless that is nil. An answer that
// is not a success is an [*Error]. GET, HEAD, PUT and DELETE are repeated when the server can not be reached or is busy; other
// calls are not.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return decodeError(resp.StatusCode, text)
	}
	if out == nil || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("decoding the server's answer to %s %s: %w", method, path, err)
	}
	return nil
}

// Data calls an endpoint of the second or third API version and returns what is in its envelope.
func Data[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, error) {
	var e Envelope[T]
	err := c.Do(ctx, method, path, query, body, &e)
	return e.Data, err
}

// All reads a list to its end, page by page.
func All[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	var all []T
	for next := withQuery(path, query); next != ""; {
		var page Envelope[[]T]
		if err := c.Do(ctx, http.MethodGet, next, nil, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		next = ""
		if page.Links != nil {
			next = page.Links.Next
		}
	}
	return all, nil
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
	}
	var reader io.Reader
	if raw != nil {
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.config.BaseURL+withQuery(path, query), reader)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.config.UserAgent)
	if raw != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.config.Environment != "" {
		req.Header.Set(EnvironmentHeader, c.config.Environment)
	}
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	var resp *http.Response
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		var again *retryablehttp.Request
		if again, err = retryablehttp.FromRequest(req); err == nil {
			resp, err = c.http.Do(again)
		}
	default:
		resp, err = c.once.Do(req)
	}
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return resp, nil
}

// unreachable says in words that the server did not answer, without repeating the request's address with its query.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", c.config.BaseURL, context.Cause(ctx))
	}
	if inner := new(url.Error); errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("the server at %s can not be reached: %w", c.config.BaseURL, err)
}
