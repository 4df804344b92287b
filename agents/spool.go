package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

// segmentBytes is the size at which the spool begins another file.
const segmentBytes = 4 << 20

// spool keeps results on disk until the server has acknowledged them. It is a row of append-only files of lines, each a
// checksum and a JSON result; a file is removed when all results in it are acknowledged. A line that is cut off, because
// the machine died while it was written, ends the file that it is in.
//
// A result is with the kernel when append returns: it survives the end of the process. Flushing to the disk itself is done
// at an interval, by syncEvery: after a loss of power the server may have to count the last moments' tasks as lost, which
// it can, and in return the spool costs microseconds.
type spool struct {
	dir string
	log *slog.Logger
	// written is signalled after a write; it has a capacity of 1.
	written chan struct{}

	// mu guards all below.
	mu      sync.Mutex
	entries map[model.TaskID]*entry
	// unsent are entries to be sent in this session, in order.
	unsent []*entry
	// sent counts what was sent in this session and not acknowledged.
	sent, sentBytes int
	segments        map[int]*segment
	active          *segment
	file            *os.File
	// offline is the newest result of a repair without the server, by resource: older ones tell nothing more.
	offline map[model.ResourceID]*entry
}

type entry struct {
	result  wire.Result
	size    int
	segment *segment
	sent    bool
	// dropped is true once the entry has been acknowledged or superseded.
	dropped bool
}

type segment struct {
	number int
	size   int
	live   int
}

func openSpool(dir string, log *slog.Logger) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the agent's spool: %w", err)
	}
	s := &spool{
		dir: dir, log: log, written: make(chan struct{}, 1), entries: map[model.TaskID]*entry{}, segments: map[int]*segment{},
		offline: map[model.ResourceID]*entry{},
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the agent's spool: %w", err)
	}
	var numbers []int
	for _, f := range names {
		if n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".log")); err == nil && strings.HasSuffix(f.Name(), ".log") {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	last := 0
	for _, n := range numbers {
		if err := s.load(n); err != nil {
			return nil, err
		}
		last = n
	}
	if err := s.rotate(last + 1); err != nil {
		return nil, err
	}
	for _, seg := range s.segments {
		s.collect(seg)
	}
	return s, nil
}

func (s *spool) path(number int) string { return filepath.Join(s.dir, fmt.Sprintf("%08d.log", number)) }

// load reads one file.
func (s *spool) load(number int) error {
	f, err := os.Open(s.path(number))
	if err != nil {
		return fmt.Errorf("reading the agent's spool: %w", err)
	}
	defer func() { _ = f.Close() }()
	seg := &segment{number: number}
	s.segments[number] = seg
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				s.log.Warn("the agent's spool ends in a line that was not finished", "file", number)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the agent's spool: %w", err)
		}
		r, err := parseLine(line)
		if err != nil {
			s.log.Error("the agent's spool is damaged; the rest of the file is ignored", "file", number, "error", err)
			return nil
		}
		if s.entries[r.Task] == nil {
			s.insert(&entry{result: r, size: len(line), segment: seg})
		}
	}
}

func parseLine(line []byte) (wire.Result, error) {
	var r wire.Result
	if len(line) < 10 || line[8] != ' ' {
		return r, fmt.Errorf("a line without a checksum: %w", model.ErrInvalid)
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	if err != nil {
		return r, fmt.Errorf("a line without a checksum: %w", model.ErrInvalid)
	}
	body := line[9 : len(line)-1]
	if crc32.ChecksumIEEE(body) != uint32(sum) {
		return r, fmt.Errorf("a line with a wrong checksum: %w", model.ErrInvalid)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("a line that is no result: %w: %w", model.ErrInvalid, err)
	}
	return r, nil
}

// insert adds an entry to the tables. The lock must be held, if others can see the spool.
func (s *spool) insert(e *entry) {
	e.segment.live++
	s.entries[e.result.Task] = e
	s.unsent = append(s.unsent, e)
	if !e.result.Offline {
		return
	}
	if old := s.offline[e.result.Resource]; old != nil && !old.sent {
		s.drop(old)
	}
	s.offline[e.result.Resource] = e
}

// rotate begins another file.
func (s *spool) rotate(number int) error {
	f, err := os.OpenFile(s.path(number), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("beginning a file of the agent's spool: %w", err)
	}
	if s.file != nil {
		_, _ = s.file.Sync(), s.file.Close()
	}
	old := s.active
	s.file, s.active = f, &segment{number: number}
	s.segments[number] = s.active
	if old != nil {
		s.collect(old)
	}
	return nil
}

// collect removes a file that holds nothing any more.
func (s *spool) collect(seg *segment) {
	if seg.live > 0 || seg == s.active {
		return
	}
	delete(s.segments, seg.number)
	if err := os.Remove(s.path(seg.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("removing a file of the agent's spool", "error", err)
	}
}

// append adds a result. When it can not be written the result is kept in memory, and the log says so.
func (s *spool) append(r wire.Result) {
	body, err := json.Marshal(r)
	if err != nil {
		// The result's values came as JSON or were made by encoding; a message that says so is all that is left to send.
		s.log.Error("encoding a result", "task", r.Task, "error", err)
		r.Changes, r.Facts, r.Log = nil, nil, []wire.LogLine{{Level: model.LevelError, Message: err.Error(), Time: r.FinishedAt}}
		r.Outcome = model.OutcomeFailed
		body, _ = json.Marshal(r) //nolint:errchkjson // what could fail has just been taken out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[r.Task] != nil {
		return
	}
	line := make([]byte, 0, len(body)+10)
	line = fmt.Appendf(line, "%08x ", crc32.ChecksumIEEE(body))
	line = append(line, body...)
	line = append(line, '\n')
	if s.active.size > 0 && s.active.size+len(line) > segmentBytes {
		if err := s.rotate(s.active.number + 1); err != nil {
			s.log.Error("the agent's spool can not grow", "error", err)
		}
	}
	if _, err := s.file.Write(line); err != nil {
		s.log.Error("a result is kept in memory only", "task", r.Task, "error", err)
	}
	s.active.size += len(line)
	select {
	case s.written <- struct{}{}:
	default:
	}
	s.insert(&entry{result: r, size: len(line), segment: s.active})
}

func (s *spool) has(id model.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[id] != nil
}

func (s *spool) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// tasks lists the tasks whose results are kept, at most limit.
func (s *spool) tasks(limit int) []model.TaskID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]model.TaskID, 0, min(limit, len(s.entries)))
	for id := range s.entries {
		if len(ids) == limit {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// restart makes everything unsent: a new session has begun.
func (s *spool) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.sentBytes = 0, 0
	all := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		e.sent = false
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *entry) int { return x.result.FinishedAt.Compare(y.result.FinishedAt) })
	s.unsent = all
}

// next takes results to send, as far as the window allows.
func (s *spool) next() []wire.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []wire.Result
	size, taken := 0, 0
	for _, e := range s.unsent {
		if e.dropped || e.sent {
			taken++
			continue
		}
		if len(batch) == wire.MaxBatch/2 || len(batch) > 0 && size+e.size > wire.SoftFrame ||
			s.sent >= wire.MaxUnacknowledged || s.sent > 0 && s.sentBytes+e.size > wire.MaxUnacknowledgedBytes {
			break
		}
		taken++
		e.sent = true
		s.sent++
		s.sentBytes += e.size
		size += e.size
		batch = append(batch, e.result)
	}
	clear(s.unsent[:taken])
	s.unsent = s.unsent[taken:]
	return batch
}

// forget drops results that the server has taken or refused.
func (s *spool) forget(ids ...model.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if e := s.entries[id]; e != nil {
			s.drop(e)
		}
	}
	if len(s.entries) == 0 && s.active.size > segmentBytes/16 {
		if err := s.rotate(s.active.number + 1); err != nil {
			s.log.Warn("the agent's spool can not be emptied", "error", err)
		}
	}
}

func (s *spool) drop(e *entry) {
	if e.sent {
		s.sent--
		s.sentBytes -= e.size
	}
	e.dropped = true
	delete(s.entries, e.result.Task)
	if s.offline[e.result.Resource] == e {
		delete(s.offline, e.result.Resource)
	}
	e.segment.live--
	s.collect(e.segment)
}

// again marks a result as unsent: the server could not store it.
func (s *spool) again(ids []model.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if e := s.entries[id]; e != nil && e.sent {
			e.sent = false
			s.sent--
			s.sentBytes -= e.size
			s.unsent = append(s.unsent, e)
		}
	}
}

// syncEvery flushes what was written to the disk, at most once in an interval, until ctx ends.
func (s *spool) syncEvery(ctx context.Context, interval time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.written:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		s.mu.Lock()
		f := s.file
		s.mu.Unlock()
		if err := f.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) {
			s.log.ErrorContext(ctx, "flushing the agent's spool", "error", err)
		}
	}
}

// close flushes and closes the spool; an empty one leaves no file.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.file.Sync(), s.file.Close()
	if s.active.live == 0 {
		_ = os.Remove(s.path(s.active.number))
	}
}
