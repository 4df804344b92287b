package compilerd

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/model"
)

// Config is what a [Service] is made of. Every zero value but those of Queue, Sources and Dir stands for the default.
type Config struct {
	Queue   Queue
	Sources Sources
	// Modules brings what projects need from elsewhere; nil for nothing.
	Modules Modules
	// Dir is where workspaces are made; what a killed process left there is removed.
	Dir string

	// Logger receives operators' events; nothing by default. Registerer receives the metrics; none by default.
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// Worker names this process among all workers. Default: the host's name, the process id and a random part.
	Worker string
	// Workers is how many compiles run at once. Default: the number of processors.
	Workers int
	// Command starts the compiler; the directory and the flags follow. Default: this very program with "compile".
	Command []string
	// Environment are variables that every compiler gets besides PATH, HOME, TMPDIR, LC_ALL and TZ. Nothing is inherited.
	Environment map[string]string
	// Path is the PATH of the compiler. Default "/usr/local/bin:/usr/bin:/bin".
	Path string

	// Lease is how long a claim holds without being prolonged. Default 30 s. PollInterval is how often the queue is asked
	// though no hint came. Default 5 s.
	Lease        time.Duration
	PollInterval time.Duration
	// ReportRetention is how long reports are kept. Default 7 days; negative is for ever.
	ReportRetention time.Duration
	// FetchAttempts is how often a repository that can not be reached is tried within one job. Default 3.
	FetchAttempts int

	Limits Limits
}

// Limits bound one compile.
type Limits struct {
	// Time is how long the compiler may run. Default 10 min. CPUTime is its processor time. Default 30 min.
	Time    time.Duration
	CPUTime time.Duration
	// Grace is how long a compiler that is asked to stop may take before it is killed. Default 3 s.
	Grace time.Duration
	// Memory is how much the compiler and all its children may use, in bytes. Default 4 GiB.
	Memory int64
	// File is the largest file it may write. Default 2 GiB.
	File int64
	// Output is how much of standard output, and how much of standard error, is kept: the beginning and the end. Default 1 MiB.
	Output int
	// Result is the largest result that is read. Default 1 GiB. Resources bounds the resources in it. Default 2,000,000.
	Result    int64
	Resources int
	// Files bounds the files of an export, FilesBytes their sizes together. Default 100,000 and 1 GiB.
	Files      int
	FilesBytes int64
	// Diagnostics is how many diagnostics are kept. Default 1,000.
	Diagnostics int
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Queue == nil {
		errs = append(errs, errors.New("compilerd: Queue is not set"))
	}
	if c.Sources == nil {
		errs = append(errs, errors.New("compilerd: Sources is not set"))
	}
	if c.Dir == "" {
		errs = append(errs, errors.New("compilerd: Dir is not set"))
	} else if dir, err := filepath.Abs(c.Dir); err != nil {
		errs = append(errs, fmt.Errorf("compilerd: Dir: %w", err))
	} else {
		c.Dir = dir
	}
	if len(c.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			errs = append(errs, fmt.Errorf("compilerd: finding this program; set Command: %w", err))
		}
		c.Command = []string{self, "compile"}
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Worker == "" {
		host, _ := os.Hostname()
		c.Worker = fmt.Sprintf("%s:%d:%s", cmp.Or(host, "host"), os.Getpid(), rand.Text()[:6])
	}
	c.Workers = cmp.Or(max(c.Workers, 0), runtime.GOMAXPROCS(0))
	c.Path = cmp.Or(c.Path, "/usr/local/bin:/usr/bin:/bin")
	c.Lease = cmp.Or(max(c.Lease, 0), 30*time.Second)
	c.PollInterval = cmp.Or(max(c.PollInterval, 0), 5*time.Second)
	c.ReportRetention = cmp.Or(c.ReportRetention, 7*24*time.Hour)
	c.FetchAttempts = cmp.Or(max(c.FetchAttempts, 0), 3)

	l := &c.Limits
	l.Time = cmp.Or(max(l.Time, 0), 10*time.Minute)
	l.CPUTime = cmp.Or(max(l.CPUTime, 0), 30*time.Minute)
	l.Grace = cmp.Or(max(l.Grace, 0), 3*time.Second)
	l.Memory = cmp.Or(max(l.Memory, 0), 4<<30)
	l.File = cmp.Or(max(l.File, 0), 2<<30)
	l.Output = cmp.Or(max(l.Output, 0), 1<<20)
	l.Result = cmp.Or(max(l.Result, 0), 1<<30)
	l.Resources = cmp.Or(max(l.Resources, 0), 2_000_000)
	l.Files = cmp.Or(max(l.Files, 0), 100_000)
	l.FilesBytes = cmp.Or(max(l.FilesBytes, 0), 1<<30)
	l.Diagnostics = cmp.Or(max(l.Diagnostics, 0), 1000)
	return c, nil
}
