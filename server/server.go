package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/intendant/intendant/model"
)

// The defaults of [Config].
const (
	DefaultAddress         = "127.0.0.1:8888"
	DefaultMaxBody         = 100 << 20
	DefaultRequestTimeout  = time.Minute
	DefaultShutdownTimeout = 10 * time.Second
	DefaultFactExpire      = time.Hour
	DefaultFactBlock       = time.Minute
	DefaultMaxConnections  = 4096
	DefaultMaxEventStreams = 512
	DefaultHeartbeat       = 15 * time.Second
)

// AgentPath is the prefix of everything that agents call: sessions, files, enrolment.
const AgentPath = "/api/v3/agent/"

// Explainer knows why resources wait. The scheduler implements it.
type Explainer interface {
	// Explain says why a resource is not what it should be. It fails with model.ErrNotFound when the resource is not managed
	// and with model.ErrUnavailable when this server does not own the environment.
	Explain(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) (model.Explanation, error)
}

// Check tells whether a part of the server is ready for work.
type Check struct {
	// Name is shown by /readyz and in the server's status.
	Name string
	// Run returns nil when the part is ready. It has two seconds.
	Run func(ctx context.Context) error
}

// Config is what a server is made of.
type Config struct {
	// Store keeps everything. Required.
	Store Store
	// SettingChanged is told after a setting of an environment was stored and before the request is answered. Nil tells nobody.
	SettingChanged func(ctx context.Context, env model.EnvironmentID, name string)
	// Addresses are where to listen, as host:port. Defaults to DefaultAddress.
	Addresses []string
	// TLSCertFile and TLSKeyFile turn TLS on; both or neither are given.
	TLSCertFile string
	TLSKeyFile  string
	// Authenticator decides who may do what. Nil lets everybody do everything, which is refused for addresses that other
	// machines can reach unless AllowInsecure is set.
	Authenticator Authenticator
	AllowInsecure bool
	// AllowedHosts are names, without ports, that requests may be addressed to besides IP addresses and localhost while there is no
	// Authenticator: a page of another site could otherwise reach a server on this machine by a name that it owns.
	AllowedHosts []string
	// AllowOrigin is the one foreign origin, such as https://console.example.com, whose pages may call the API. Defaults to none.
	AllowOrigin string
	// Webhooks serves everything under /hooks/, Agents everything under AgentPath. Nil answers 404. Both authenticate by
	// themselves.
	Webhooks http.Handler
	Agents   http.Handler
	// Explainer answers why a resource waits. Nil explains from stored state alone.
	Explainer Explainer
	// Console holds the console's files with index.html at its root. Nil serves a page that says there is none.
	Console fs.FS
	// Registerer takes the server's own metrics, Gatherer is served at /metrics. Nil means none.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Ready lists what /readyz asks besides the database.
	Ready []Check
	// Features are switches that clients look up, by slice and name.
	Features map[string]map[string]any
	// ValidateCron checks cron expressions in settings. Nil accepts any text.
	ValidateCron model.CronValidator
	// Version is the program's version. Defaults to "dev".
	Version string
	// MaxBody limits request bodies in bytes, packed and unpacked. Defaults to DefaultMaxBody.
	MaxBody int64
	// RequestTimeout ends requests that take longer, event streams excepted; large bodies are given more. Defaults to
	// DefaultRequestTimeout.
	RequestTimeout time.Duration
	// ShutdownTimeout is how long requests may go on after the stop. Defaults to DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// FactExpire is the age at which a fact is stale. Defaults to DefaultFactExpire.
	FactExpire time.Duration
	// FactResourceBlock is how long a resource is not asked for its facts again. Defaults to DefaultFactBlock.
	FactResourceBlock time.Duration
	// MaxConnections limits the open connections of each address, MaxEventStreams the event streams of all. Default to
	// DefaultMaxConnections and DefaultMaxEventStreams.
	MaxConnections  int
	MaxEventStreams int
	// Heartbeat is the pause between two comments on an idle event stream. Defaults to DefaultHeartbeat.
	Heartbeat time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// OnListen is told each address that is listened on, once it is. Nil writes it to the log.
	OnListen func(net.Addr)
	// Logger defaults to one that discards.
	Logger *slog.Logger
}

// Server serves the API. Make one with [New].
type Server struct {
	config   Config
	store    Store
	log      *slog.Logger
	handler  http.Handler
	table    []endpoint
	events   *broker
	metrics  *metrics
	guard    *http.CrossOriginProtection
	openapi  []byte
	docs     []byte
	draining atomic.Bool
	started  time.Time
}

// New checks the configuration and builds the router. It does no I/O.
func New(c Config) (*Server, error) {
	if c.Store == nil {
		return nil, errors.New("server: a store is required")
	}
	if len(c.Addresses) == 0 {
		c.Addresses = []string{DefaultAddress}
	}
	for _, address := range c.Addresses {
		loopback, err := isLoopback(address)
		if err != nil {
			return nil, err
		}
		if !loopback && c.Authenticator == nil && !c.AllowInsecure {
			return nil, fmt.Errorf("server: %s can be reached by other machines and no authentication is configured: "+
				"configure it, listen on 127.0.0.1, or allow insecure access explicitly", address)
		}
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return nil, errors.New("server: TLS needs both a certificate file and a key file")
	}
	defaults(&c)
	s := &Server{config: c, store: c.Store, log: c.Logger, started: c.Now(), guard: http.NewCrossOriginProtection()}
	if c.AllowOrigin != "" {
		if err := s.guard.AddTrustedOrigin(c.AllowOrigin); err != nil {
			return nil, fmt.Errorf("server: the allowed origin %q: %w", c.AllowOrigin, err)
		}
	}
	s.events = newBroker(c.Store, c.MaxEventStreams)
	var err error
	if s.metrics, err = newMetrics(c.Registerer, s.events); err != nil {
		return nil, fmt.Errorf("server: registering metrics: %w", err)
	}
	s.table = s.routes()
	if s.openapi, err = s.document(); err != nil {
		return nil, fmt.Errorf("server: making the API document: %w", err)
	}
	if s.docs, err = s.page(); err != nil {
		return nil, fmt.Errorf("server: making the API page: %w", err)
	}
	s.handler = s.wrap(s.router())
	return s, nil
}

func defaults(c *Config) {
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = DefaultShutdownTimeout
	}
	if c.FactExpire == 0 {
		c.FactExpire = DefaultFactExpire
	}
	if c.FactResourceBlock == 0 {
		c.FactResourceBlock = DefaultFactBlock
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.MaxEventStreams == 0 {
		c.MaxEventStreams = DefaultMaxEventStreams
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("server: the address %q is not host:port: %w", address, err)
	}
	if strings.EqualFold(host, "localhost") {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback(), nil
}

// Handler serves everything. Streams of events carry nothing unless [Server.Run] runs, or [Server.RunEvents].
func (s *Server) Handler() http.Handler { return s.handler }

// RunEvents feeds the streams of events until ctx ends. [Server.Run] does so itself.
func (s *Server) RunEvents(ctx context.Context) { s.events.run(ctx) }

// Run listens and serves until ctx ends; then it lets requests finish within ShutdownTimeout. It returns nil on a clean stop.
func (s *Server) Run(ctx context.Context) error {
	listeners := make([]net.Listener, 0, len(s.config.Addresses))
	for _, address := range s.config.Addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return fmt.Errorf("listening on %s: %w", address, err)
		}
		listeners = append(listeners, netutil.LimitListener(l, s.config.MaxConnections))
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	h := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
		BaseContext:       func(net.Listener) context.Context { return streams },
	}
	h.RegisterOnShutdown(s.events.close)
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.events.run(running)
		return nil
	})
	for _, l := range listeners {
		g.Go(func() error {
			if s.config.OnListen != nil {
				s.config.OnListen(l.Addr())
			} else {
				s.log.Info("listening", "address", l.Addr().String(), "tls", s.config.TLSCertFile != "")
			}
			var err error
			if s.config.TLSCertFile != "" {
				err = h.ServeTLS(l, s.config.TLSCertFile, s.config.TLSKeyFile)
			} else {
				err = h.Serve(l)
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return fmt.Errorf("serving on %s: %w", l.Addr(), err)
		})
	}
	g.Go(func() error {
		<-running.Done()
		s.draining.Store(true)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownTimeout)
		defer cancel()
		err := h.Shutdown(stop)
		endStreams()
		if errors.Is(err, context.DeadlineExceeded) {
			s.log.Warn("requests were cut off by the stop", "timeout", s.config.ShutdownTimeout.String())
			return h.Close()
		}
		return err
	})
	return g.Wait()
}

// router puts the table into the router. It and the adapter in adapter.go are all that knows gin.
func (s *Server) router() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.UseRawPath = true
	g.UnescapePathValues = false
	g.RedirectTrailingSlash = false
	g.RedirectFixedPath = false
	g.HandleMethodNotAllowed = true
	g.ForwardedByClientIP = false
	g.NoRoute(func(c *gin.Context) {
		writeError(c.Writer, c.Request, notFound(c.Request))
	})
	g.NoMethod(func(c *gin.Context) {
		writeError(c.Writer, c.Request, methodNotAllowed(c.Request))
	})
	for i := range s.table {
		e := &s.table[i]
		path, names := ginPath(e.path)
		g.Handle(e.method, path, func(c *gin.Context) {
			values := make(map[string]string, len(names))
			for i, name := range names {
				values[name] = c.Params[i].Value
			}
			s.answer(e, c.Writer, c.Request, values)
		})
	}
	for _, o := range s.others() {
		g.Handle(o.method, o.path, gin.WrapH(o.handler))
	}
	return g
}

// ginPath writes <id> as gin wants it. Variables are named by their place, since routes that share a prefix must agree.
func ginPath(path string) (string, []string) {
	segments := strings.Split(path, "/")
	names := variables(path)
	for i, segment := range segments {
		if strings.HasPrefix(segment, "<") {
			segments[i] = fmt.Sprintf(":p%d", i)
		}
	}
	return strings.Join(segments, "/"), names
}
