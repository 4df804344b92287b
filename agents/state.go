package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

// lockRetry is how often a lock that another process holds is tried again.
const lockRetry = 100 * time.Millisecond

// stateDir is the agent's directory, locked.
type stateDir struct {
	dir  string
	lock *os.File
	// process identifies the directory.
	process string
}

// keptAgent is what agents.json says of one name.
type keptAgent struct {
	Epoch      wire.Epoch `json:"epoch"`
	Primary    bool       `json:"primary"`
	Standbys   int        `json:"standbys"`
	Paused     bool       `json:"paused"`
	RepairedAt time.Time  `json:"repaired_at"`
}

// desiredState is the last desired state of an agent, as it is kept on disk.
type desiredState struct {
	Agent      model.AgentName `json:"agent"`
	Version    int             `json:"version"`
	Digest     string          `json:"digest"`
	Repair     string          `json:"repair"`
	Code       string          `json:"code,omitempty"`
	ReceivedAt time.Time       `json:"received_at"`
	Intents    []wire.Intent   `json:"intents"`
}

// openState locks the directory, waiting for another process that holds it, and reads who it is.
func openState(ctx context.Context, dir string, log *slog.Logger) (*stateDir, error) {
	if err := os.MkdirAll(filepath.Join(dir, "desired"), 0o700); err != nil {
		return nil, fmt.Errorf("making the agent's state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the agent's state directory: %w", err)
	}
	for said := false; ; said = true {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = lock.Close()
			return nil, fmt.Errorf("locking the agent's state directory %s: %w", dir, err)
		}
		if !said {
			log.WarnContext(ctx, "another agent process holds the state directory; waiting for it to end", "directory", dir)
		}
		select {
		case <-ctx.Done():
			_ = lock.Close()
			return nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
	s := &stateDir{dir: dir, lock: lock}
	if s.process, err = s.identity(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stateDir) close() { _ = s.lock.Close() }

func (s *stateDir) identity() (string, error) {
	path := filepath.Join(s.dir, "process")
	raw, err := os.ReadFile(path)
	if err == nil {
		if id, err := uuid.ParseBytes(bytes.TrimSpace(raw)); err == nil {
			return id.String(), nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the agent's identity: %w", err)
	}
	id := uuid.NewString()
	return id, writeAtomic(path, []byte(id+"\n"))
}

func (s *stateDir) loadAgents() (map[model.AgentName]keptAgent, error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, "agents.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent's state: %w", err)
	}
	var kept map[model.AgentName]keptAgent
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, fmt.Errorf("reading the agent's state: agents.json in %s is damaged, remove it: %w", s.dir, err)
	}
	return kept, nil
}

func (s *stateDir) saveAgents(kept map[model.AgentName]keptAgent) error {
	raw, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding the agent's state: %w", err)
	}
	return writeAtomic(filepath.Join(s.dir, "agents.json"), raw)
}

// desiredPath names the file of an agent's desired state: any name becomes one path element.
func (s *stateDir) desiredPath(name model.AgentName) string {
	return filepath.Join(s.dir, "desired", "@"+url.PathEscape(string(name))+".json")
}

// loadDesired reads a kept desired state. It fails with [model.ErrNotFound] when there is none.
func (s *stateDir) loadDesired(name model.AgentName) (*desiredState, error) {
	raw, err := os.ReadFile(s.desiredPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("desired state of %s: %w", name, model.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the desired state of %s: %w", name, err)
	}
	var d desiredState
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("reading the desired state of %s: %w", name, err)
	}
	return &d, nil
}

func (s *stateDir) saveDesired(d *desiredState) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encoding the desired state of %s: %w", d.Agent, err)
	}
	return writeAtomic(s.desiredPath(d.Agent), raw)
}

// writeAtomic replaces a file so that it has, whatever happens, either the old content or the new. Only the owner may read it.
func writeAtomic(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// saveState writes what has changed until ctx ends.
func (a *Agent) saveState(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.save:
			a.saveNow()
		}
	}
}

// dirty asks for the state to be written.
func (a *Agent) dirty() {
	select {
	case a.save <- struct{}{}:
	default:
	}
}

func (a *Agent) saveNow() {
	a.mu.Lock()
	kept := make(map[model.AgentName]keptAgent, len(a.agents))
	var desired []*desiredState
	for name, n := range a.agents {
		if !n.offered {
			continue
		}
		kept[name] = keptAgent{Epoch: n.epoch, Primary: n.primary, Standbys: n.standbys, Paused: n.paused, RepairedAt: n.repairedAt}
		if n.unsaved {
			n.unsaved = false
			desired = append(desired, n.desired)
		}
	}
	a.mu.Unlock()
	for _, d := range desired {
		if err := a.state.saveDesired(d); err != nil {
			a.log.Error("keeping the desired state", "agent", d.Agent, "error", err)
		}
	}
	if err := a.state.saveAgents(kept); err != nil {
		a.log.Error("keeping the agent's state", "error", err)
	}
}
