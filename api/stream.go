package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// maxEventLine bounds a line of an event stream.
const maxEventLine = 64 << 10

// Events reads the server's event stream until ctx ends, the connection breaks, or handle returns false. It returns nil in the
// last case only. Events say only what has changed; whoever hears one reads it again, and also looks now and then without one.
func (c *Client) Events(ctx context.Context, handle func(Event) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.BaseURL+"/api/v3/events", nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", c.config.UserAgent)
	if c.config.Environment != "" {
		req.Header.Set(EnvironmentHeader, c.config.Environment)
	}
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	resp, err := c.once.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return decodeError(resp.StatusCode, nil)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 4096), maxEventLine)
	var data strings.Builder
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" && data.Len() > 0:
			var e Event
			if err := json.Unmarshal([]byte(data.String()), &e); err != nil {
				return fmt.Errorf("decoding an event: %w", err)
			}
			data.Reset()
			if !handle(e) {
				return nil
			}
		case strings.HasPrefix(line, "data:"):
			data.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " "))
		}
	}
	if err := lines.Err(); err != nil {
		return c.unreachable(ctx, err)
	}
	return fmt.Errorf("the server at %s closed the event stream", c.config.BaseURL)
}
