package executor

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// The policies for machines whose key is not known.
const (
	// HostKeysStrict refuses them. It is the default.
	HostKeysStrict = "strict"
	// HostKeysAcceptNew notes the key of a machine that was never seen, and refuses one that has changed.
	HostKeysAcceptNew = "accept-new"
)

// SSHConfig says how other machines are reached.
type SSHConfig struct {
	// KeyFiles are private keys without a passphrase. Empty means those of the user with the usual names. The user's SSH agent, if
	// SSH_AUTH_SOCK names one, is asked first.
	KeyFiles []string
	// KnownHosts are files of known machines; the first one takes new ones. Empty means the user's, and that of the system.
	KnownHosts []string
	// HostKeys is the policy for others: [HostKeysStrict] or [HostKeysAcceptNew].
	HostKeys string
}

const (
	sshDialTimeout = 30 * time.Second
	// maxSSHOutput bounds what a command may print, in bytes.
	maxSSHOutput = 64 << 20
	maxSSHTries  = 100
)

// sshPool keeps a connection per user and machine. A connection that breaks is made again by the next command.
type sshPool struct {
	cfg SSHConfig

	// mu guards what follows, knownMu the files of known machines.
	mu      sync.Mutex
	clients map[string]*ssh.Client
	closed  bool
	knownMu sync.Mutex
}

func newSSHPool(cfg SSHConfig) *sshPool {
	home, _ := os.UserHomeDir()
	if len(cfg.KeyFiles) == 0 && home != "" {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			cfg.KeyFiles = append(cfg.KeyFiles, filepath.Join(home, ".ssh", name))
		}
	}
	if len(cfg.KnownHosts) == 0 {
		if home != "" {
			cfg.KnownHosts = append(cfg.KnownHosts, filepath.Join(home, ".ssh", "known_hosts"))
		}
		cfg.KnownHosts = append(cfg.KnownHosts, "/etc/ssh/ssh_known_hosts")
	}
	return &sshPool{cfg: cfg, clients: map[string]*ssh.Client{}}
}

func (p *sshPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.clients {
		_ = c.Close()
	}
	clear(p.clients)
}

type sshArgs struct {
	User      string  `json:"user"`
	Host      string  `json:"host"`
	Port      int     `json:"port"`
	Retries   int     `json:"retries"`
	RetryWait float64 `json:"retry_wait"`
	Script    string  `json:"script"`
	Stdin     string  `json:"stdin"`
	Timeout   float64 `json:"timeout"`
	Sudo      bool    `json:"sudo"`
	// Probe only connects.
	Probe bool `json:"probe"`
}

// sshAnswer is what a script did, or in Problem why it could not be run: connect, login, timeout or other.
type sshAnswer struct {
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Code    int    `json:"code"`
	Problem string `json:"problem,omitempty"`
	Message string `json:"message,omitempty"`
}

// errLogin says that a machine does not let the agent in, or is not the one that it was.
var errLogin = errors.New("login refused")

// run runs a script on another machine.
func (p *sshPool) run(ctx context.Context, a sshArgs) (sshAnswer, error) {
	problem := func(kind string, err error) (sshAnswer, error) {
		return sshAnswer{Problem: kind, Message: err.Error()}, nil
	}
	stdin, err := base64.StdEncoding.DecodeString(a.Stdin)
	if err != nil {
		return sshAnswer{}, fmt.Errorf("standard input: %w", err)
	}
	client, err := p.connect(ctx, a)
	switch {
	case errors.Is(err, errLogin):
		return problem("login", err)
	case err != nil:
		return problem("connect", err)
	case a.Probe:
		return sshAnswer{}, nil
	}
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.Timeout*float64(time.Second)))
		defer cancel()
	}
	answer, err := p.execute(ctx, client, a, stdin)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return problem("timeout", fmt.Errorf("the command on %s did not end within %g seconds", a.Host, a.Timeout))
	case err != nil:
		p.drop(a, client)
		return problem("other", err)
	}
	return answer, nil
}

// execute runs a script in a session of its own.
func (p *sshPool) execute(ctx context.Context, client *ssh.Client, a sshArgs, stdin []byte) (sshAnswer, error) {
	session, err := client.NewSession()
	if err != nil {
		return sshAnswer{}, fmt.Errorf("opening a session on %s: %w", a.Host, err)
	}
	defer func() { _ = session.Close() }()
	stdout, stderr := &bounded{}, &bounded{}
	session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(stdin), stdout, stderr
	command := "sh -c " + quoted(a.Script)
	if a.Sudo {
		command = "sudo -n -- " + command
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Run(command) }() // ends with the session
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = session.Signal(ssh.SIGKILL)
		_ = session.Close()
		return sshAnswer{}, fmt.Errorf("running a command on %s: %w", a.Host, context.Cause(ctx))
	}
	answer := sshAnswer{
		Stdout: base64.StdEncoding.EncodeToString(stdout.Bytes()), Stderr: base64.StdEncoding.EncodeToString(stderr.Bytes()),
	}
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		answer.Code = exit.ExitStatus()
		if exit.Signal() != "" {
			answer.Code = -1
		}
		err = nil
	}
	if err != nil {
		return sshAnswer{}, fmt.Errorf("running a command on %s: %w", a.Host, err)
	}
	if stdout.over || stderr.over {
		return sshAnswer{}, fmt.Errorf("the command on %s printed more than %d bytes", a.Host, maxSSHOutput)
	}
	return answer, nil
}

// bounded keeps what is written to it up to a bound.
type bounded struct {
	bytes.Buffer

	over bool
}

// Write implements [io.Writer]; what is beyond the bound is lost.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxSSHOutput {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p) //nolint:wrapcheck // a buffer does not fail
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (a sshArgs) key() string { return a.User + "@" + a.address() }

func (a sshArgs) address() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// drop forgets a connection.
func (p *sshPool) drop(a sshArgs, client *ssh.Client) {
	p.mu.Lock()
	if p.clients[a.key()] == client {
		delete(p.clients, a.key())
	}
	p.mu.Unlock()
	_ = client.Close()
}

// connect returns a connection that works, trying as often as the address says.
func (p *sshPool) connect(ctx context.Context, a sshArgs) (*ssh.Client, error) {
	p.mu.Lock()
	client, closed := p.clients[a.key()], p.closed
	p.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if client != nil {
		if _, _, err := client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
			return client, nil
		}
		p.drop(a, client)
	}
	tries := min(max(a.Retries, 1), maxSSHTries)
	for n := 1; ; n++ {
		client, err := p.dial(ctx, a)
		if err == nil {
			return p.keep(a, client)
		}
		if errors.Is(err, errLogin) || n >= tries {
			return nil, err
		}
		timer := time.NewTimer(time.Duration(max(a.RetryWait, 0.1) * float64(time.Second)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// keep puts a new connection in the pool, unless another one was faster.
func (p *sshPool) keep(a sshArgs, client *ssh.Client) (*ssh.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = client.Close()
		return nil, errClosed
	}
	if other := p.clients[a.key()]; other != nil {
		_ = client.Close()
		return other, nil
	}
	p.clients[a.key()] = client
	return client, nil
}

func (p *sshPool) dial(ctx context.Context, a sshArgs) (*ssh.Client, error) {
	callback, algorithms, err := p.hostKeys(a.address())
	if err != nil {
		return nil, err
	}
	methods, done := p.credentials(ctx)
	defer done()
	if len(methods) == 0 {
		return nil, fmt.Errorf("%w: there is no key to log in to %s with: set ssh-key in [agent], or have an SSH agent", errLogin, a.Host)
	}
	cfg := &ssh.ClientConfig{
		User: a.User, Auth: methods, HostKeyCallback: callback, HostKeyAlgorithms: algorithms, Timeout: sshDialTimeout,
	}
	conn, err := (&net.Dialer{Timeout: sshDialTimeout}).DialContext(ctx, "tcp", a.address())
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", a.address(), err)
	}
	_ = conn.SetDeadline(time.Now().Add(sshDialTimeout))
	c, channels, requests, err := ssh.NewClientConn(conn, a.address(), cfg)
	if err != nil {
		_ = conn.Close()
		if strings.Contains(err.Error(), "unable to authenticate") || errors.Is(err, errLogin) {
			return nil, fmt.Errorf("%w: %s at %s: %w", errLogin, a.User, a.address(), err)
		}
		return nil, fmt.Errorf("connecting to %s: %w", a.address(), err)
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}

// credentials are the keys to log in with, and what closes the connection to the SSH agent.
func (p *sshPool) credentials(ctx context.Context) (methods []ssh.AuthMethod, done func()) {
	done = func() {}
	if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			methods = append(methods, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
			done = func() { _ = conn.Close() }
		}
	}
	var signers []ssh.Signer
	for _, name := range p.cfg.KeyFiles {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // of the usual names most are not there
		}
		if signer, err := ssh.ParsePrivateKey(raw); err == nil {
			signers = append(signers, signer)
		}
	}
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	return methods, done
}

// hostKeys returns what judges a machine's key, and the kinds of keys that are known of it: a machine that has several shows the one
// that is known.
func (p *sshPool) hostKeys(address string) (ssh.HostKeyCallback, []string, error) {
	var files []string
	for _, name := range p.cfg.KnownHosts {
		if _, err := os.Stat(name); err == nil {
			files = append(files, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("%w: reading known hosts: %w", errLogin, err)
		}
	}
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: reading known hosts: %w", errLogin, err)
	}
	judge := func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := known(host, remote, key)
		unknown, ok := errors.AsType[*knownhosts.KeyError](err)
		switch {
		case err == nil:
			return nil
		case !ok:
			return fmt.Errorf("%w: %w", errLogin, err)
		case len(unknown.Want) > 0:
			return fmt.Errorf("%w: the key of %s has changed (it is now %s); if that is as it should be, remove the old one from %s",
				errLogin, host, ssh.FingerprintSHA256(key), unknown.Want[0].Filename)
		case p.cfg.HostKeys == HostKeysAcceptNew:
			return p.note(host, key)
		}
		return fmt.Errorf("%w: the key of %s (%s) is not known; add it to %s if it is right, for example with ssh-keyscan, or set ssh-host-keys in [agent] to %s",
			errLogin, host, ssh.FingerprintSHA256(key), p.cfg.KnownHosts[0], HostKeysAcceptNew)
	}
	return judge, p.algorithms(known, address), nil
}

// algorithms lists the kinds of keys that are known of a machine; none when it is unknown.
func (p *sshPool) algorithms(known ssh.HostKeyCallback, address string) []string {
	err := known(address, &net.TCPAddr{}, unknownKey{})
	e, ok := errors.AsType[*knownhosts.KeyError](err)
	if !ok {
		return nil
	}
	var kinds []string
	for _, k := range e.Want {
		kind := k.Key.Type()
		if kind == ssh.KeyAlgoRSA {
			kinds = append(kinds, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// unknownKey is a key that no machine has: asking for it tells which ones are known.
type unknownKey struct{}

// Type implements [ssh.PublicKey].
func (unknownKey) Type() string { return "unknown" }

// Marshal implements [ssh.PublicKey].
func (unknownKey) Marshal() []byte { return []byte("unknown") }

// Verify implements [ssh.PublicKey].
func (unknownKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// note adds a machine to the known ones.
func (p *sshPool) note(host string, key ssh.PublicKey) error {
	p.knownMu.Lock()
	defer p.knownMu.Unlock()
	name := p.cfg.KnownHosts[0]
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("%w: noting the key of %s: %w", errLogin, host, err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%w: noting the key of %s: %w", errLogin, host, err)
	}
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{knownhosts.Normalize(host)}, key))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%w: noting the key of %s: %w", errLogin, host, err)
	}
	return nil
}
