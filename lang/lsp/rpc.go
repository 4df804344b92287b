package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// The limits of messages.
const (
	maxMessage    = 64 << 20 // bytes of a message unless the configuration says otherwise
	maxHeaderLine = 4 << 10
	maxHeaders    = 32
)

// The codes of errors that the server answers with.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNotInitialized = -32002
	codeCancelled      = -32800
	codeRequestFailed  = -32803
)

// message is any message of JSON-RPC: a request has an ID and a method, a notification a method, a response an ID.
type message struct {
	Version string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id,omitempty"`
	Method  string           `json:"method,omitempty"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Result  any              `json:"result,omitempty"`
	Error   *rpcError        `json:"error,omitempty"`
}

// rpcError is a failed request. It is also the Go error by which handlers choose the code of their answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func failf(code int, format string, args ...any) error {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// conn reads and writes messages. Writing may be done from several goroutines.
type conn struct {
	in    *bufio.Reader
	limit int64

	mu  sync.Mutex // guards out
	out io.Writer
}

func newConn(in io.Reader, out io.Writer, limit int64) *conn {
	if limit <= 0 {
		limit = maxMessage
	}
	return &conn{in: bufio.NewReaderSize(in, maxHeaderLine), out: out, limit: limit}
}

// errFraming says that the stream makes no sense any more: where the next message starts is not known.
var errFraming = errors.New("the stream of messages is broken")

// read reads a message. A *rpcError says that this one is unfit; the next may be read. io.EOF is the end of the stream between
// messages.
func (c *conn) read() (*message, error) {
	size, err := c.header()
	if err != nil {
		return nil, err
	}
	if size > c.limit {
		if _, err := io.CopyN(io.Discard, c.in, size); err != nil {
			return nil, fmt.Errorf("reading a message: %w", err)
		}
		return nil, failf(codeInvalidRequest, "a message of %d bytes is larger than the limit of %d", size, c.limit)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	m := &message{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, failf(codeParse, "the message is not valid: %v", err)
	}
	return m, nil
}

// header reads the header of a message and returns the size of its body, in bytes.
func (c *conn) header() (int64, error) {
	size := int64(-1)
	for n := 0; ; n++ {
		line, err := c.in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && n == 0 && len(line) == 0:
			return 0, io.EOF
		case errors.Is(err, bufio.ErrBufferFull), n > maxHeaders:
			return 0, fmt.Errorf("%w: the header is too long", errFraming)
		case err != nil:
			return 0, fmt.Errorf("reading a header: %w", err)
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return 0, fmt.Errorf("%w: %q is no header", errFraming, text)
		}
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if size, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || size < 0 {
				return 0, fmt.Errorf("%w: the Content-Length is %q", errFraming, value)
			}
		}
	}
	if size < 0 {
		return 0, fmt.Errorf("%w: there is no Content-Length", errFraming)
	}
	return size, nil
}

// write writes a message.
func (c *conn) write(m any) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	return nil
}

var null = json.RawMessage("null")

// reply answers a request. id is nil for a message that could not be read.
func (c *conn) reply(id *json.RawMessage, result any, err error) error {
	if id == nil {
		id = &null
	}
	if err == nil {
		if result == nil {
			result = null
		}
		return c.write(struct {
			Version string           `json:"jsonrpc"`
			ID      *json.RawMessage `json:"id"`
			Result  any              `json:"result"`
		}{"2.0", id, result})
	}
	var re *rpcError
	if !errors.As(err, &re) {
		re = &rpcError{codeInternal, err.Error()}
	}
	return c.write(message{Version: "2.0", ID: id, Error: re})
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	return c.write(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}
