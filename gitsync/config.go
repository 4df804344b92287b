package gitsync

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/model"
)

// Config is what a [Service] is made of. Every zero value but those of Dir and Recorder stands for the default.
type Config struct {
	// Dir is where mirrors and trees are kept; all in it can be deleted while no server runs. Several processes may name
	// the same directory: each takes a part of its own.
	Dir      string
	Recorder Recorder

	// Logger receives operators' events; nothing by default. Registerer receives the metrics; none by default.
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// AllowLocal permits file:// URLs and absolute paths. They need the git program. Default false.
	AllowLocal bool
	// BlockPrivateNetworks refuses hosts in private, loopback and carrier networks. Default false, since forges inside an
	// intranet are the rule. Link-local addresses and those of cloud metadata services are always refused.
	BlockPrivateNetworks bool
	// RootCAs verify HTTPS servers; the system's by default.
	RootCAs *x509.CertPool
	// Proxy chooses the proxy of an HTTP request, as in [http.Transport]; none by default.
	Proxy func(*http.Request) (*url.URL, error)

	// PollInterval is how often a repository is polled that does not say so itself. Default 60 s; negative is never.
	PollInterval time.Duration
	// PollJitter is the part of the interval by which polls are spread, from 0 to 1. Default 0.2; negative is none.
	PollJitter float64

	// PeekTimeout bounds asking a remote for its refs. Default 30 s. FetchTimeout bounds a transfer. Default 10 min.
	PeekTimeout  time.Duration
	FetchTimeout time.Duration
	// Peeks and Fetches bound how many of each run at once. Default 32 and 4.
	Peeks   int
	Fetches int
	// MaxAdvertisement bounds a remote's list of refs, in bytes. Default 64 MiB. MaxPack bounds one transfer. Default 2 GiB.
	MaxAdvertisement int64
	MaxPack          int64
	// MaxPacks is how many packs a mirror may have before they are put together. Default 10.
	MaxPacks int

	// Tree bounds the trees that are unpacked; CacheBytes is the size of all unpacked trees above which unused ones are
	// removed, oldest use first. Default 4 GiB.
	Tree       TreeLimits
	CacheBytes int64

	Hooks HookLimits
	// ClientAddress tells who sent a webhook, for rate limits; the connection's address by default. Behind a proxy that
	// can be trusted it should read what the proxy says.
	ClientAddress func(*http.Request) string
}

// TreeLimits bound what a commit may contain.
type TreeLimits struct {
	// Entries is the number of files, links and directories. Default 100,000.
	Entries int
	// FileBytes is the size of one file. Default 128 MiB. TotalBytes is the size of all. Default 1 GiB.
	FileBytes  int64
	TotalBytes int64
	// PathBytes is the length of a path. Default 1,024. Depth is the nesting of directories. Default 64.
	PathBytes int
	Depth     int
}

// HookLimits bound what senders of webhooks may ask for.
type HookLimits struct {
	// Body is the largest body that is read, in bytes. Default 10 MiB. StoredBody is how much of it is kept. Default 64 KiB.
	Body       int64
	StoredBody int
	// BodyTimeout is how long a body may take to arrive. Default 10 s.
	BodyTimeout time.Duration
	// Concurrent is how many requests are read and verified at once; the others are answered 503. Default 32.
	Concurrent int
	// SourceRate is how many requests that fail verification a source may send per second, SourceBurst at once.
	// Default 5 and 50.
	SourceRate  float64
	SourceBurst int
	// RepositoryRate is how many verified deliveries a repository may send per second, RepositoryBurst at once.
	// Default 20 and 200.
	RepositoryRate  float64
	RepositoryBurst int
	// Tolerance is how far the time in a signed delivery may be off. Default 5 min.
	Tolerance time.Duration
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("gitsync: Dir is not set"))
	}
	if c.Recorder == nil {
		errs = append(errs, errors.New("gitsync: Recorder is not set"))
	}
	if c.PollJitter > 1 {
		errs = append(errs, fmt.Errorf("gitsync: PollJitter is %v, want at most 1", c.PollJitter))
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.PollInterval = cmp.Or(c.PollInterval, time.Minute)
	if c.PollJitter < 0 {
		c.PollJitter = 0
	} else {
		c.PollJitter = cmp.Or(c.PollJitter, 0.2)
	}
	c.PeekTimeout = cmp.Or(max(c.PeekTimeout, 0), 30*time.Second)
	c.FetchTimeout = cmp.Or(max(c.FetchTimeout, 0), 10*time.Minute)
	c.Peeks = cmp.Or(max(c.Peeks, 0), 32)
	c.Fetches = cmp.Or(max(c.Fetches, 0), 4)
	c.MaxAdvertisement = cmp.Or(max(c.MaxAdvertisement, 0), 64<<20)
	c.MaxPack = cmp.Or(max(c.MaxPack, 0), 2<<30)
	c.MaxPacks = cmp.Or(max(c.MaxPacks, 0), 10)
	c.CacheBytes = cmp.Or(max(c.CacheBytes, 0), 4<<30)

	t := &c.Tree
	t.Entries = cmp.Or(max(t.Entries, 0), 100_000)
	t.FileBytes = cmp.Or(max(t.FileBytes, 0), 128<<20)
	t.TotalBytes = cmp.Or(max(t.TotalBytes, 0), 1<<30)
	t.PathBytes = cmp.Or(max(t.PathBytes, 0), 1024)
	t.Depth = cmp.Or(max(t.Depth, 0), 64)

	h := &c.Hooks
	h.Body = cmp.Or(max(h.Body, 0), 10<<20)
	h.StoredBody = cmp.Or(max(h.StoredBody, 0), 64<<10)
	h.BodyTimeout = cmp.Or(max(h.BodyTimeout, 0), 10*time.Second)
	h.Concurrent = cmp.Or(max(h.Concurrent, 0), 32)
	h.SourceRate = cmp.Or(max(h.SourceRate, 0), 5)
	h.SourceBurst = cmp.Or(max(h.SourceBurst, 0), 50)
	h.RepositoryRate = cmp.Or(max(h.RepositoryRate, 0), 20)
	h.RepositoryBurst = cmp.Or(max(h.RepositoryBurst, 0), 200)
	h.Tolerance = cmp.Or(max(h.Tolerance, 0), 5*time.Minute)
	if c.ClientAddress == nil {
		c.ClientAddress = connectionAddress
	}
	return c, nil
}
