package pipe

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// TooLargeError says that a frame is larger than its [Stream] allows. Who was to write it can go on using the stream; who was to read
// it can not.
type TooLargeError struct {
	// Size and Limit are in bytes.
	Size, Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a frame of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// Frame is a message of either side: a call, its answer, or an event.
type Frame struct {
	// ID numbers a call; its answer has the same.
	ID uint64 `json:"id,omitempty"`
	// Call is the method of a call.
	Call string `json:"call,omitempty"`
	// In is, in a call, the other side's call on whose behalf it is made; 0 for none.
	In uint64 `json:"in,omitempty"`
	// Event is the name of an event.
	Event string `json:"event,omitempty"`
	// Args belong to calls and events, Result or Error to answers.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// Stream is frames over two streams of bytes. One goroutine reads; any number may write.
type Stream struct {
	limit int
	r     *bufio.Reader

	writing sync.Mutex // guards w
	w       io.Writer
}

// NewStream makes a stream whose frames have at most limit bytes each.
func NewStream(r io.Reader, w io.Writer, limit int) *Stream {
	return &Stream{limit: limit, r: bufio.NewReaderSize(r, 1<<16), w: w}
}

// Read waits for the next frame. Its error is [io.EOF] itself when the stream ends in order, between frames.
func (s *Stream) Read() (Frame, error) {
	var head [4]byte
	var f Frame
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return f, err //nolint:wrapcheck // see above
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(s.limit) {
		return f, &TooLargeError{Size: int(n), Limit: s.limit}
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // an end in the midst of a frame is none in order
		}
		return f, fmt.Errorf("a frame is cut short: %w", err)
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("a frame can not be read: %w", err)
	}
	return f, nil
}

// Write sends a frame in one piece.
func (s *Stream) Write(f Frame) error {
	b := f.append(make([]byte, 4, 128+len(f.Args)+len(f.Result)+len(f.Error)))
	if len(b)-4 > s.limit {
		return &TooLargeError{Size: len(b) - 4, Limit: s.limit}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.w.Write(b)
	return err //nolint:wrapcheck // the stream's owner knows what it is
}

// append writes a frame as JSON. Arguments, results and errors are JSON already and go in as they are: encoding/json would check and
// compact them once more.
func (f *Frame) append(b []byte) []byte {
	b = append(b, '{')
	if f.Event != "" {
		b = append(b, `"event":`...)
		b = strconv.AppendQuoteToASCII(b, f.Event)
	} else {
		b = append(b, `"id":`...)
		b = strconv.AppendUint(b, f.ID, 10)
	}
	if f.Call != "" {
		b = append(b, `,"call":`...)
		b = strconv.AppendQuoteToASCII(b, f.Call)
	}
	if f.In != 0 {
		b = append(b, `,"in":`...)
		b = strconv.AppendUint(b, f.In, 10)
	}
	for _, part := range [...]struct {
		name string
		text json.RawMessage
	}{{`,"args":`, f.Args}, {`,"result":`, f.Result}, {`,"error":`, f.Error}} {
		if part.text != nil {
			b = append(append(b, part.name...), part.text...)
		}
	}
	return append(b, '}')
}
