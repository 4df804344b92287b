package pipe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/intendant/intendant/sdk/pipe"
)

// pair connects two ends and runs them until the test is over.
func pair(t *testing.T, a, b pipe.Config) (left, right *pipe.Conn, hangUp func()) {
	t.Helper()
	fromLeft, toRight := io.Pipe()
	fromRight, toLeft := io.Pipe()
	left, right = pipe.New(fromRight, toRight, a), pipe.New(fromLeft, toLeft, b)
	var wg sync.WaitGroup
	for _, c := range []*pipe.Conn{left, right} {
		wg.Go(func() { _ = c.Run(t.Context()) })
	}
	hangUp = sync.OnceFunc(func() {
		_, _ = toRight.Close(), toLeft.Close()
		wg.Wait()
	})
	t.Cleanup(hangUp)
	return left, right, hangUp
}

func double(_ context.Context, args json.RawMessage) (any, error) {
	var n int
	if err := json.Unmarshal(args, &n); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, &pipe.Error{Class: "negative", Message: "too little"}
	}
	return 2 * n, nil
}

func TestCallsBothWays(t *testing.T) {
	t.Parallel()
	left, right, _ := pair(t, pipe.Config{Handlers: map[string]pipe.Handler{"double": double}}, pipe.Config{Handlers: map[string]pipe.Handler{"double": double}})
	var wg sync.WaitGroup
	for i := range 100 {
		for _, c := range []*pipe.Conn{left, right} {
			wg.Go(func() {
				var got int
				if err := c.Call(t.Context(), "double", i, &got); err != nil || got != 2*i {
					t.Errorf("double(%d) = %d, %v", i, got, err)
				}
			})
		}
	}
	wg.Wait()
}

func TestErrors(t *testing.T) {
	t.Parallel()
	left, _, hangUp := pair(t, pipe.Config{}, pipe.Config{Handlers: map[string]pipe.Handler{
		"double": double,
		"hang":   func(ctx context.Context, _ json.RawMessage) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		"odd":    func(context.Context, json.RawMessage) (any, error) { return func() {}, nil },
		"huge":   func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", pipe.MaxFrame), nil },
	}})
	var refused *pipe.Error
	if err := left.Call(t.Context(), "double", -1, nil); !errors.As(err, &refused) || refused.Class != "negative" || refused.Message != "too little" {
		t.Errorf("double(-1) = %v", err)
	}
	for method, want := range map[string]string{
		"nothing": "there is no method nothing", "odd": "unsupported type", "huge": "more than the limit",
	} {
		if err := left.Call(t.Context(), method, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s() = %v, want %q", method, err, want)
		}
	}
	if err := left.Call(t.Context(), "double", 1, new(string)); err == nil || !strings.Contains(err.Error(), "the answer can not be read") {
		t.Errorf("an answer of another type gives %v", err)
	}
	if err := left.Call(t.Context(), "double", func() {}, nil); err == nil {
		t.Error("arguments that have no JSON were sent")
	}
	if err := left.Emit("big", strings.Repeat("x", pipe.MaxFrame)); err == nil || !strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("Emit() of too much = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := left.Call(ctx, "hang", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context is over gives %v", err)
	}
	hangUp()
	if err := left.Call(t.Context(), "double", 1, nil); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("a call after the end gives %v", err)
	}
	if err := left.Emit("late", nil); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("an event after the end gives %v", err)
	}
}

// An answer is not taken before the events that were sent before it.
func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	var got []int
	var right *pipe.Conn
	ready := make(chan struct{})
	left, right, _ := pair(t, pipe.Config{Event: func(_ string, args json.RawMessage) {
		var n int
		if json.Unmarshal(args, &n) == nil {
			got = append(got, n)
		}
	}}, pipe.Config{Handlers: map[string]pipe.Handler{"count": func(context.Context, json.RawMessage) (any, error) {
		<-ready
		for i := range 100 {
			if err := right.Emit("n", i); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}})
	close(ready)
	if err := left.Call(t.Context(), "count", nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(got) != 100 {
		t.Fatalf("%d events before the answer, want 100", len(got))
	}
	for i, n := range got {
		if n != i {
			t.Fatalf("event %d is %d", i, n)
		}
	}
}

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":     {nil, ""},
		"whole":       {frame(`{"event":"x"}`), ""},
		"half a size": {[]byte{0, 0}, "unexpected EOF"},
		"half a body": {frame(`{"event":"x"}`)[:8], "cut short"},
		"too long":    {[]byte{0xff, 0xff, 0xff, 0xff}, "larger than the limit"},
		"no JSON":     {frame(`{`), "can not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := pipe.New(bytes.NewReader(tt.in), io.Discard, pipe.Config{}).Run(t.Context())
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run() = %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzRun feeds a connection with anything: it must answer or end, and never panic.
func FuzzRun(f *testing.F) {
	f.Add(frame(`{"id":1,"call":"double","args":2}`))
	f.Add(frame(`{"id":1,"result":2}`))
	f.Add(append(frame(`{"event":"x","args":{}}`), 0, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) >= 4 && binary.BigEndian.Uint32(in) > 1<<20 {
			t.Skip() // memory for what is announced is bounded by MaxFrame
		}
		var out bytes.Buffer
		c := pipe.New(bytes.NewReader(in), &out, pipe.Config{
			Handlers: map[string]pipe.Handler{"double": double}, Event: func(string, json.RawMessage) {},
		})
		ended := c.Run(context.Background())
		if err := c.Call(context.Background(), "double", 1, nil); !errors.Is(err, pipe.ErrClosed) {
			t.Errorf("Call() after %v = %v, want ErrClosed", ended, err)
		}
	})
}
