package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// The defaults of [ClientConfig].
const (
	DefaultBaseURL    = "http://localhost:8888"
	DefaultTimeout    = 2 * time.Minute
	DefaultMaxRetries = 4
	DefaultPoll       = 2 * time.Second
	packFrom          = 1024
	maxAnswer         = 1 << 30
	idempotencyName   = "Idempotency-Key"
)

// ClientConfig says which server a [Client] speaks to, and how.
type ClientConfig struct {
	// BaseURL is the server's address, such as https://intendant.example.com:8888. Defaults to DefaultBaseURL.
	BaseURL string
	// Token is sent as a bearer token. Empty sends none.
	Token string
	// Environment is the id of the environment that requests are about. It may be changed with [Client.In].
	Environment string
	// Trace is the trace id that requests carry on, 32 hexadecimal digits. Empty lets the server begin one for each.
	Trace string
	// TLS is used for https; nil trusts the machine's roots.
	TLS *tls.Config
	// Transport replaces the whole transport, for tests. Nil makes one with TLS.
	Transport http.RoundTripper
	// Timeout ends one call, its repetitions included, event streams excepted. Defaults to DefaultTimeout.
	Timeout time.Duration
	// MaxRetries is how often a call that may be repeated is. Defaults to DefaultMaxRetries; negative means never.
	MaxRetries int
	// Poll is the longest pause between two looks while waiting for something. Defaults to DefaultPoll.
	Poll time.Duration
	// UserAgent defaults to "intendant".
	UserAgent string
	// Logger hears of retries. Defaults to one that discards.
	Logger *slog.Logger
}

// Client calls the REST API. Its methods may be called by many goroutines; they return [*Error] for what the server refuses.
type Client struct {
	config ClientConfig
	base   *url.URL
	http   *retryablehttp.Client
	stream *http.Client
}

// NewClient checks the configuration. It does no I/O.
func NewClient(c ClientConfig) (*Client, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(strings.TrimRight(c.BaseURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the server's address %q is not of the form http://host:port", c.BaseURL)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxRetries == 0 {
		c.MaxRetries = DefaultMaxRetries
	}
	if c.Poll == 0 {
		c.Poll = DefaultPoll
	}
	if c.UserAgent == "" {
		c.UserAgent = "intendant"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	transport := c.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     c.TLS,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 8,
			IdleConnTimeout:     time.Minute,
			TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	retry := retryablehttp.NewClient()
	retry.HTTPClient = &http.Client{Transport: transport, CheckRedirect: refuseRedirect}
	retry.RetryMax = max(c.MaxRetries, 0)
	retry.RetryWaitMin = 100 * time.Millisecond
	retry.RetryWaitMax = 5 * time.Second
	retry.Logger = nil
	retry.CheckRetry = mayRetry
	retry.ErrorHandler = retryablehttp.PassthroughErrorHandler
	retry.RequestLogHook = func(_ retryablehttp.Logger, r *http.Request, attempt int) {
		if attempt > 0 {
			c.Logger.Debug("request is sent again", "method", r.Method, "path", r.URL.Path, "attempt", attempt)
		}
	}
	return &Client{config: c, base: base, http: retry, stream: &http.Client{Transport: transport, CheckRedirect: refuseRedirect}}, nil
}

// refuseRedirect keeps credentials from following a redirection; the API has none.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Environment is the id of the environment that requests are about.
func (c *Client) Environment() string { return c.config.Environment }

// BaseURL is the server's address.
func (c *Client) BaseURL() string { return c.base.String() }

// In returns a client for another environment on the same connections.
func (c *Client) In(environment string) *Client {
	other := *c
	other.config.Environment = environment
	return &other
}

// mayRetry lets a request be sent again only if that can not do its work twice: it only reads, it carries an idempotency key, or
// it never reached the server.
func mayRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return true, nil
		}
		again, _ := ctx.Value(repeatableKey{}).(bool)
		var tlsFault *tls.CertificateVerificationError
		return again && !errors.As(err, &tlsFault), nil
	}
	again, _ := ctx.Value(repeatableKey{}).(bool)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return again, nil
	}
	return false, nil
}

type repeatableKey struct{}

// request is one call.
type request struct {
	method string
	path   string
	query  url.Values
	body   any
	// key makes a write repeatable.
	key string
}

// escape makes one path segment of a text.
func escape(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// newKey makes an idempotency key.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// headers sets what every request has.
func (c *Client) headers(h http.Header) {
	h.Set("Accept", "application/json")
	h.Set("User-Agent", c.config.UserAgent)
	if c.config.Environment != "" {
		h.Set(EnvironmentHeader, c.config.Environment)
	}
	if c.config.Token != "" {
		h.Set("Authorization", "Bearer "+c.config.Token)
	}
	if c.config.Trace != "" {
		h.Set("Traceparent", "00-"+c.config.Trace+"-"+newKey()[:16]+"-01")
	}
}

// send makes the call and returns the body of a success.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	var body []byte
	packed := false
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("encoding the request %s %s: %w", r.method, r.path, err)
		}
		if packed = len(body) >= packFrom; packed {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(body) // a bytes.Buffer does not fail
			_ = z.Close()
			body = b.Bytes()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	if r.method == http.MethodGet || r.method == http.MethodHead || r.key != "" {
		ctx = context.WithValue(ctx, repeatableKey{}, true)
	}
	address := c.base.String() + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	c.headers(req.Header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if packed {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if r.key != "" {
		req.Header.Set(idempotencyName, r.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, decodeError(resp.StatusCode, answer)
	}
	return answer, nil
}

// unreachable says in words that the server did not answer, without the request's address: a query may hold what is nobody's
// business.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", c.base, context.Cause(ctx))
	}
	if inner := new(url.Error); errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("the server at %s can not be reached: %w", c.base, err)
}

// Segment escapes an id so that it stands as one segment of a path.
func Segment(id string) string { return url.PathEscape(id) }

// Do calls an endpoint for which the client has no method of its own. body is encoded as JSON unless it is nil; the whole answer
// is decoded into out unless that is nil or the answer is empty.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, out any) error {
	answer, err := c.send(ctx, request{method: method, path: path, query: query, body: body})
	if err != nil || out == nil || len(answer) == 0 {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("decoding the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// Data calls an endpoint and returns what is in the envelope of its answer; see [Client.Do].
func Data[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, error) {
	return value[T](ctx, c, request{method: method, path: path, query: query, body: body})
}

// All reads a list to its end, page by page.
func All[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	items, _, err := list[T](ctx, c, path, ListOptions{Extra: query})
	return items, err
}

// fetch makes a call whose answer has the envelope.
func fetch[T any](ctx context.Context, c *Client, r request) (Envelope[T], error) {
	var out Envelope[T]
	answer, err := c.send(ctx, r)
	if err != nil || len(answer) == 0 {
		return out, err
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("decoding the answer to %s %s: %w", r.method, r.path, err)
	}
	return out, nil
}

// value makes a call and returns its data alone.
func value[T any](ctx context.Context, c *Client, r request) (T, error) {
	e, err := fetch[T](ctx, c, r)
	return e.Data, err
}

// plain makes a call whose answer has no envelope.
func plain[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	answer, err := c.send(ctx, r)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("decoding the answer to %s %s: %w", r.method, r.path, err)
	}
	return out, nil
}

// do makes a call whose answer does not matter.
func (c *Client) do(ctx context.Context, r request) error {
	_, err := fetch[json.RawMessage](ctx, c, r)
	return err
}

// ListOptions narrow and order a list. Nil fields leave the server's defaults.
type ListOptions struct {
	// Limit is the size of the page, at most 1000; 0 follows all pages.
	Limit int
	// Sort is <column>.asc or <column>.desc.
	Sort string
	// Filter has the values of each filter.
	Filter map[string][]string
	// Extra has further arguments.
	Extra url.Values
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	maps.Copy(q, o.Extra)
	if o.Limit > 0 {
		q.Set("limit", fmt.Sprint(o.Limit))
	}
	if o.Sort != "" {
		q.Set("sort", o.Sort)
	}
	for k, v := range o.Filter {
		q["filter."+k] = v
	}
	return q
}

// list reads one page, or with no limit all of them.
func list[T any](ctx context.Context, c *Client, path string, o ListOptions) ([]T, *Metadata, error) {
	e, err := fetch[[]T](ctx, c, request{method: http.MethodGet, path: path, query: o.query()})
	if err != nil {
		return nil, nil, err
	}
	items := e.Data
	for o.Limit == 0 && e.Links != nil && e.Links.Next != "" {
		next, err := url.Parse(e.Links.Next)
		if err != nil {
			return nil, nil, fmt.Errorf("the server's link to the next page of %s is broken: %w", path, err)
		}
		metadata := e.Metadata
		e, err = fetch[[]T](ctx, c, request{method: http.MethodGet, path: next.EscapedPath(), query: next.Query()})
		if err != nil {
			return nil, nil, err
		}
		items = append(items, e.Data...)
		e.Metadata = metadata
	}
	return items, e.Metadata, nil
}

// IsNotFound reports whether an error says that something does not exist.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// IsConflict reports whether an error says that something is in a state that forbids the request.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}
