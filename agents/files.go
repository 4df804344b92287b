package agents

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// maxContent is the size of the largest content that is fetched.
const maxContent = 4 << 30

var sha1Pattern = lazyregexp.New(`^[0-9a-f]{40}$`)

// fileCache fetches contents from the server's file storage and keeps them on disk. It implements [sdk.Files].
type fileCache struct {
	dir    string
	most   int64
	url    string
	header http.Header
	client *retryablehttp.Client

	// mu guards fetching: one fetch of a hash at a time, the channel is closed at its end.
	mu       sync.Mutex
	fetching map[string]chan struct{}
}

func newFileCache(cfg Config, dir string) *fileCache {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: cfg.Transport}
	c.Logger = nil
	c.RetryMax = 4
	c.RetryWaitMin = 200 * time.Millisecond
	c.RetryWaitMax = 5 * time.Second
	return &fileCache{
		dir: dir, most: cfg.CacheBytes, url: cfg.URL + wire.FilePath, header: headers(cfg), client: c,
		fetching: map[string]chan struct{}{},
	}
}

// headers are those of every request to the server.
func headers(cfg Config) http.Header {
	return http.Header{
		"Authorization":        {"Bearer " + cfg.Token.Reveal()},
		wire.EnvironmentHeader: {cfg.Environment.String()},
	}
}

// Open implements [sdk.Files].
func (c *fileCache) Open(ctx context.Context, hash string) (io.ReadCloser, int64, error) {
	if !sha1Pattern().MatchString(hash) {
		return nil, 0, fmt.Errorf("content %q: not a SHA-1 in lower-case hex: %w", hash, model.ErrInvalid)
	}
	for {
		f, size, err := c.openKept(hash)
		if err == nil {
			return f, size, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		c.mu.Lock()
		other := c.fetching[hash]
		mine := make(chan struct{})
		if other == nil {
			c.fetching[hash] = mine
		}
		c.mu.Unlock()
		if other != nil {
			select {
			case <-other:
				continue
			case <-ctx.Done():
				return nil, 0, fmt.Errorf("fetching content %s: %w", hash, ctx.Err())
			}
		}
		f, size, err = c.fetch(ctx, hash)
		c.mu.Lock()
		delete(c.fetching, hash)
		close(mine)
		c.mu.Unlock()
		if err != nil {
			return nil, 0, err
		}
		return f, size, nil
	}
}

func (c *fileCache) path(hash string) string { return filepath.Join(c.dir, hash[:2], hash) }

// openKept opens a kept content and checks that it is still what it was. A damaged one is removed.
func (c *fileCache) openKept(hash string) (*os.File, int64, error) {
	path := c.path(hash)
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("opening kept content %s: %w", hash, err)
	}
	sum := sha1.New()
	size, err := io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) == hash {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // the order in which contents are given up
		return f, size, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, 0, fmt.Errorf("reading kept content %s: %w", hash, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("removing damaged content %s: %w", hash, err)
	}
	return nil, 0, fmt.Errorf("kept content %s was damaged: %w", hash, fs.ErrNotExist)
}

// fetch gets a content from the server, verifies and keeps it.
func (c *fileCache) fetch(ctx context.Context, hash string) (_ *os.File, _ int64, err error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, c.url+hash, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("fetching content %s: %w", hash, err)
	}
	req.Header = c.header.Clone()
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("fetching content %s: %w: %w", hash, model.ErrUnavailable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, 0, fmt.Errorf("fetching content %s: the server does not have it: %w", hash, model.ErrNotFound)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, 0, fmt.Errorf("fetching content %s: the server refuses the agent's token: %w", hash, model.ErrForbidden)
	default:
		return nil, 0, fmt.Errorf("fetching content %s: the server answers %s: %w", hash, resp.Status, model.ErrUnavailable)
	}
	dir := filepath.Dir(c.path(hash))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, fmt.Errorf("keeping content %s: %w", hash, err)
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return nil, 0, fmt.Errorf("keeping content %s: %w", hash, err)
	}
	defer func() {
		if err != nil {
			_, _ = f.Close(), os.Remove(f.Name())
		}
	}()
	sum := sha1.New()
	size, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(resp.Body, maxContent+1))
	if err != nil {
		return nil, 0, fmt.Errorf("fetching content %s: %w: %w", hash, model.ErrUnavailable, err)
	}
	if size > maxContent {
		return nil, 0, fmt.Errorf("fetching content %s: larger than %d bytes: %w", hash, int64(maxContent), model.ErrInvalid)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != hash {
		return nil, 0, fmt.Errorf("fetching content %s: the server sent %s: %w", hash, got, model.ErrInvalid)
	}
	if err = os.Rename(f.Name(), c.path(hash)); err != nil {
		return nil, 0, fmt.Errorf("keeping content %s: %w", hash, err)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("reading content %s: %w", hash, err)
	}
	c.evict(hash)
	return f, size, nil
}

// evict removes the contents that were not used for longest until the rest is within bounds. One that is open stays readable.
func (c *fileCache) evict(keep string) {
	type kept struct {
		path string
		size int64
		used time.Time
	}
	var all []kept
	var total int64
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !sha1Pattern().MatchString(d.Name()) {
			return nil //nolint:nilerr // what can not be read can not be evicted either
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
			all = append(all, kept{path, info.Size(), info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(all, func(x, y kept) int { return x.used.Compare(y.used) })
	for _, k := range all {
		if total <= c.most {
			return
		}
		if filepath.Base(k.path) == keep {
			continue
		}
		if os.Remove(k.path) == nil {
			total -= k.size
		}
	}
}

var _ sdk.Files = (*fileCache)(nil)
