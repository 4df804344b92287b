package python

import (
	"bytes"
	"strings"
)

// maxLine is where a line without end is cut.
const maxLine = 64 << 10

// lines is a writer that hands on whole lines.
type lines struct {
	emit func(string)
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	if l.emit == nil {
		return n, nil
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.rest = append(l.rest, b...)
			for len(l.rest) >= maxLine {
				l.put(l.rest[:maxLine])
				l.rest = l.rest[maxLine:]
			}
			break
		}
		l.put(append(l.rest, b[:i]...))
		l.rest, b = l.rest[:0], b[i+1:]
	}
	return n, nil
}

// flush hands on what is left without a line break at the end.
func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.put(l.rest)
		l.rest = nil
	}
}

func (l *lines) put(b []byte) {
	l.emit(strings.ToValidUTF8(string(bytes.TrimSuffix(b, []byte{'\r'})), "\uFFFD"))
}
