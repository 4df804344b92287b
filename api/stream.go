package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxEvent is the greatest length of a line of the event stream, and silence how long it may say nothing: the server sends a
// comment several times in that time.
const (
	maxEvent = 64 << 10
	silence  = time.Minute
)

// Events calls handle for each event about the environment of the client (about all when it has none) until handle returns false
// (Events then returns nil) or ctx ends. The first event is always [EventResync], once the stream is open: what is read after it
// misses nothing. A stream that breaks is opened again; what was missed then comes as events or as another EventResync. A
// refusal by the server is returned.
func (c *Client) Events(ctx context.Context, handle func(Event) bool) error {
	last := ""
	pause := 100 * time.Millisecond
	for first := true; ; first = false {
		opened, err := c.follow(ctx, &last, first, handle)
		var refused *Error
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
			return err
		}
		if opened {
			pause = 100 * time.Millisecond
		}
		c.config.Logger.Debug("the event stream broke and is opened again", "error", err, "pause", pause.String())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// follow reads one stream until it ends; the error is nil when handle wants no more.
func (c *Client) follow(ctx context.Context, last *string, first bool, handle func(Event) bool) (opened bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	address := c.base.String() + "/api/v3/events"
	if c.config.Environment != "" {
		address += "?" + url.Values{"environment": {c.config.Environment}}.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	c.headers(req.Header)
	req.Header.Set("Accept", "text/event-stream")
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := c.stream.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // what could be read says enough
		return false, decodeError(resp.StatusCode, body)
	}
	if first || *last == "" { // without an id there is nothing to go on from
		if !handle(Event{Kind: EventResync}) {
			return true, nil
		}
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	id, data := "", ""
	for lines.Scan() {
		quiet.Reset(silence)
		line := lines.Text()
		field, text, _ := strings.Cut(line, ":")
		text = strings.TrimPrefix(text, " ")
		switch {
		case line == "":
			if data == "" {
				continue
			}
			var e Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return true, fmt.Errorf("an event is not JSON: %w", err)
			}
			*last, data = id, ""
			if !handle(e) {
				return true, nil
			}
		case field == "id":
			id = text
		case field == "data":
			data += text
		}
	}
	if err := lines.Err(); err != nil {
		return true, err
	}
	return true, io.EOF
}

// Await calls look until it says that what is waited for has happened, after every event of the given kinds and at least every
// [ClientConfig].Poll. It returns what look returned last; when ctx ends while look is at it, that is what it returned before.
func Await[T any](ctx context.Context, c *Client, kinds []string, look func(context.Context) (value T, done bool, err error)) (T, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Without the stream there is still the timer: an error ends nothing.
		_ = c.Events(waiting, func(e Event) bool {
			if e.Kind == EventResync || slices.Contains(kinds, e.Kind) {
				select {
				case news <- struct{}{}:
				default: // one look for many events
				}
			}
			return true
		})
	}()
	defer func() { cancel(); <-ended }()
	timer := time.NewTicker(c.config.Poll)
	defer timer.Stop()
	var last T
	for {
		v, done, err := look(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return last, err
		case err != nil || done:
			return v, err
		}
		last = v
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-news:
		case <-timer.C:
		}
	}
}

// WaitCompile follows a compile until it has ended. progress, if not nil, is called with every state that is seen.
func (c *Client) WaitCompile(ctx context.Context, id string, progress func(CompileAnalysis)) (CompileAnalysis, error) {
	return Await(ctx, c, []string{EventCompile}, func(ctx context.Context) (CompileAnalysis, bool, error) {
		r, err := c.Compile(ctx, id)
		if err != nil {
			return r, false, err
		}
		if progress != nil {
			progress(r)
		}
		return r, r.Completed != nil, nil
	})
}

// WaitSettled follows a deployment until nothing waits or runs any more. It returns the last count, which tells whether resources
// have failed.
func (c *Client) WaitSettled(ctx context.Context, progress func(DeploySummary)) (DeploySummary, error) {
	return Await(ctx, c, []string{EventResource, EventVersion, EventAgent, EventEnvironment}, func(ctx context.Context) (DeploySummary, bool, error) {
		d, err := c.DeploySummary(ctx)
		if err != nil {
			return d, false, err
		}
		if progress != nil {
			progress(d)
		}
		return d, d.Settled(), nil
	})
}

// Settled reports whether nothing waits or runs.
func (d DeploySummary) Settled() bool {
	return d.ByState["available"] == 0 && d.ByState["deploying"] == 0
}

// WaitJourney follows the journey of one compile until it has converged, failed or was superseded. A version that waits for
// its release ends the wait too.
func (c *Client) WaitJourney(ctx context.Context, compile string, progress func(Journey)) (Journey, error) {
	kinds := []string{EventCompile, EventVersion, EventResource, EventAgent, EventEnvironment}
	return Await(ctx, c, kinds, func(ctx context.Context) (Journey, bool, error) {
		list, err := c.Journeys(ctx, 100)
		if err != nil {
			return Journey{}, false, err
		}
		i := slices.IndexFunc(list, func(j Journey) bool { return j.CompileID == compile })
		if i < 0 {
			return Journey{}, false, nil
		}
		if progress != nil {
			progress(list[i])
		}
		switch list[i].Phase {
		case "converged", "failed", "superseded", "candidate":
			return list[i], true, nil
		}
		return list[i], false, nil
	})
}

// WaitDryRun follows a dry run until every resource was looked at.
func (c *Client) WaitDryRun(ctx context.Context, version int, id string, progress func(DryRun)) (DryRunReport, error) {
	return Await(ctx, c, []string{EventDryRun}, func(ctx context.Context) (DryRunReport, bool, error) {
		r, err := c.DryRun(ctx, version, id)
		if err != nil {
			return r, false, err
		}
		if progress != nil {
			progress(r.Summary)
		}
		return r, r.Summary.Todo <= 0, nil
	})
}
