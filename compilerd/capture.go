package compilerd

import (
	"fmt"
	"strings"
	"sync"
)

// capture keeps the beginning and the end of an output. It may be written and read by several goroutines.
type capture struct {
	half int

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	next  int
	total int64
}

func newCapture(most int) *capture { return &capture{half: max(most/2, 1)} }

// Write implements [io.Writer] and never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	for len(p) > 0 {
		if len(c.tail) < c.half {
			k := min(c.half-len(c.tail), len(p))
			c.tail = append(c.tail, p[:k]...)
			p = p[k:]
			continue
		}
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % c.half
		p = p[k:]
	}
	return n, nil
}

// written is the number of bytes that came.
func (c *capture) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// String is what was kept, as valid text, with a note where something was left out.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	b.Write(c.head)
	if out := c.total - int64(len(c.head)) - int64(len(c.tail)); out > 0 {
		fmt.Fprintf(&b, "\n… %d bytes left out …\n", out)
	}
	if len(c.tail) == c.half {
		b.Write(c.tail[c.next:])
		b.Write(c.tail[:c.next])
	} else {
		b.Write(c.tail)
	}
	return strings.ReplaceAll(strings.ToValidUTF8(b.String(), "\uFFFD"), "\x00", "\uFFFD")
}
