package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/intendant/intendant/model"
)

// streamSession speaks the pack protocol with a git-upload-pack at the other end of two pipes: a child process or an SSH
// channel.
type streamSession struct {
	in  io.WriteCloser
	out *limitedBody
	// maxPack bounds out once the refs are through.
	maxPack int64
	stderr  *tail
	// stop ends the other end at once; wait returns when it has ended. Both may be called again.
	stop func()
	wait func() error
}

// guard ends the other end when ctx does; the function it returns takes that back.
func (s *streamSession) guard(ctx context.Context) func() bool { return context.AfterFunc(ctx, s.stop) }

func (s *streamSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	defer s.guard(ctx)()
	ar := packp.NewAdvRefs()
	if err := ar.Decode(s.out); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing refs: %w", context.Cause(ctx))
		}
		if errors.Is(err, packp.ErrEmptyAdvRefs) {
			return nil, transport.ErrEmptyRemoteRepository
		}
		if errors.Is(err, packp.ErrEmptyInput) {
			_ = s.wait()
			if text := s.stderr.String(); text != "" {
				return nil, fmt.Errorf("listing refs: the remote says %q", text)
			}
			return nil, fmt.Errorf("listing refs: the remote closed the connection: %w", io.ErrUnexpectedEOF)
		}
		return nil, fmt.Errorf("listing refs: %w", err)
	}
	if ar.IsEmpty() {
		return nil, transport.ErrEmptyRemoteRepository
	}
	transport.FilterUnsupportedCapabilities(ar.Capabilities)
	return ar, nil
}

func (s *streamSession) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	stop := s.guard(ctx)
	fail := func(err error) (io.ReadCloser, error) {
		stop()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if text := s.stderr.String(); text != "" {
			err = fmt.Errorf("%w; the remote says %q", err, text)
		}
		return nil, fmt.Errorf("fetching objects: %w", err)
	}
	if req.IsEmpty() {
		return fail(transport.ErrEmptyUploadPackRequest)
	}
	if err := req.Validate(); err != nil {
		return fail(err)
	}
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return fail(err)
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return fail(err)
	}
	if err := pktline.NewEncoder(s.in).Encodef("done\n"); err != nil {
		return fail(err)
	}
	if err := s.in.Close(); err != nil {
		return fail(err)
	}
	s.out.left = s.maxPack
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(io.NopCloser(s.out)); err != nil {
		return fail(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{res, closerFunc(func() error { stop(); return nil })}, nil
}

func (s *streamSession) close() {
	_ = s.in.Close()
	s.stop()
	_ = s.wait()
}

type closerFunc func() error

// Close implements [io.Closer].
func (f closerFunc) Close() error { return f() }

// openLocal runs git-upload-pack on a directory. It gets a clean environment: neither the server's variables nor the
// configuration of its user take part.
func (t *transports) openLocal(ctx context.Context, r remote) (session, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("local repositories need the git program; install it: %w", err)
	}
	if fi, err := os.Stat(r.path); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("%s is not a directory on this machine: %w", r.path, transport.ErrRepositoryNotFound)
	}
	// Not bound to ctx, which is that of opening: guard watches each step.
	//nolint:noctx // see above
	cmd := exec.Command(git, "-c", "safe.directory=*", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null",
		"upload-pack", "--timeout=60", r.path)
	cmd.Env = []string{
		"PATH=" + filepath.Dir(git) + ":/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1",
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	s := &streamSession{stderr: &tail{}, maxPack: t.maxPack}
	cmd.Stderr = s.stderr
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting git: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting git: %w", err)
	}
	cmd.Stdout, s.out = in, &limitedBody{ReadCloser: out, left: t.maxRefs}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting git: %w", err), in.Close(), out.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting git: %w", err), in.Close(), out.Close())
	}
	_ = in.Close()
	s.stop = func() {
		if cmd.Process.Signal(syscall.SIGKILL) == nil { // else it is gone, and its number may be another's
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	s.wait = sync.OnceValue(func() error {
		defer out.Close()
		return cmd.Wait()
	})
	return s, nil
}

func (t *transports) openSSH(ctx context.Context, r remote, repo model.Repository) (session, error) {
	if repo.SSHKey == "" {
		return nil, fmt.Errorf("the repository has no SSH key: give it one, or use an https URL: %w", model.ErrInvalid)
	}
	var signer ssh.Signer
	var err error
	if repo.SSHKeyPassphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(repo.SSHKey.Reveal()), []byte(repo.SSHKeyPassphrase.Reveal()))
	} else {
		signer, err = ssh.ParsePrivateKey([]byte(repo.SSHKey.Reveal()))
	}
	if err != nil {
		if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
			return nil, fmt.Errorf("the repository's SSH key is encrypted: give its passphrase: %w", model.ErrInvalid)
		}
		return nil, fmt.Errorf("the repository's SSH key can not be read: it must be a private key in PEM form, with the right passphrase: %w", model.ErrInvalid)
	}
	callback, algorithms, err := t.hostKeys(r, repo.KnownHosts)
	if err != nil {
		return nil, err
	}
	user := r.user
	if user == "" {
		user = repo.Username
	}
	if user == "" {
		user = "git"
	}
	conn, err := guardedDialer(t.blockPrivate)(ctx, "tcp", r.address())
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	c, chans, reqs, err := ssh.NewClientConn(conn, r.address(), &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   callback,
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-intendant",
	})
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if strings.Contains(err.Error(), "unable to authenticate") {
			return nil, fmt.Errorf("%w: the host does not accept the key %s of user %s: add the public key to the repository as a deploy key",
				transport.ErrAuthenticationRequired, ssh.FingerprintSHA256(signer.PublicKey()), user)
		}
		return nil, fmt.Errorf("SSH handshake: %w", err)
	}
	client := ssh.NewClient(c, chans, reqs)
	return t.startSSH(ctx, client, r.path)
}

func (t *transports) startSSH(ctx context.Context, client *ssh.Client, path string) (session, error) {
	fail := func(err error) (session, error) {
		_ = client.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("starting git-upload-pack: %w", err)
	}
	ch, err := client.NewSession()
	if err != nil {
		return fail(err)
	}
	s := &streamSession{stderr: &tail{}, maxPack: t.maxPack, stop: func() { _ = client.Close() }}
	ch.Stderr = s.stderr
	if s.in, err = ch.StdinPipe(); err != nil {
		return fail(err)
	}
	out, err := ch.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	s.out = &limitedBody{ReadCloser: io.NopCloser(out), left: t.maxRefs}
	if err := ch.Start("git-upload-pack " + shellQuote(path)); err != nil {
		return fail(err)
	}
	s.wait = sync.OnceValue(ch.Wait)
	return s, nil
}

// shellQuote quotes a text for the remote's shell. The exclamation mark is for shells that expand history.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

// hostKeys makes the check of the host's key from a repository's known_hosts text. A key that is not listed is refused
// with the line that would accept it.
func (t *transports) hostKeys(r remote, known string) (ssh.HostKeyCallback, []string, error) {
	f, err := os.CreateTemp(t.temp, "known_hosts-") // knownhosts reads files only
	if err != nil {
		return nil, nil, fmt.Errorf("preparing known_hosts: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(known)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, nil, fmt.Errorf("preparing known_hosts: %w", err)
	}
	check, err := knownhosts.New(f.Name())
	if err != nil {
		return nil, nil, fmt.Errorf("the repository's known_hosts can not be read (%s): each line is \"host type key\" as ssh-keyscan prints it: %w",
			strings.ReplaceAll(err.Error(), f.Name(), "known_hosts"), model.ErrInvalid)
	}
	callback := func(host string, addr net.Addr, key ssh.PublicKey) error {
		err := check(host, addr, key)
		if err == nil {
			return nil
		}
		line := knownhosts.Line([]string{host}, key)
		if ke, ok := errors.AsType[*knownhosts.KeyError](err); ok && len(ke.Want) == 0 {
			return fmt.Errorf("the key of host %s is not known: it offers %s %s; if its administrator confirms that, add this line to the repository's known_hosts: %s: %w",
				r.host, key.Type(), ssh.FingerprintSHA256(key), line, model.ErrForbidden)
		} else if ok {
			return fmt.Errorf("the key of host %s is not the one in the repository's known_hosts: it offers %s %s; somebody may be listening in, or the host was renewed: then replace its lines by: %s: %w",
				r.host, key.Type(), ssh.FingerprintSHA256(key), line, model.ErrForbidden)
		}
		if _, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
			return fmt.Errorf("the key %s of host %s is revoked in the repository's known_hosts: %w", ssh.FingerprintSHA256(key), r.host, model.ErrForbidden)
		}
		return fmt.Errorf("checking the key of host %s: %w", r.host, err)
	}
	return callback, knownAlgorithms(check, r), nil
}

// knownAlgorithms are those of the keys that are listed for a host: a host offers one key only, and it should be one that
// can be checked. It is nil, for the defaults, when none is listed.
func knownAlgorithms(check ssh.HostKeyCallback, r remote) []string {
	err := check(r.address(), &net.TCPAddr{IP: net.IPv4zero}, unlistedKey{})
	ke, ok := errors.AsType[*knownhosts.KeyError](err)
	if !ok {
		return nil
	}
	var out []string
	for _, k := range ke.Want {
		switch t := k.Key.Type(); t {
		case ssh.KeyAlgoRSA:
			out = append(out, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			out = append(out, t)
		}
	}
	return out
}

// unlistedKey is a key that no known_hosts can list.
type unlistedKey struct{}

// Type implements [ssh.PublicKey].
func (unlistedKey) Type() string { return "none" }

// Marshal implements [ssh.PublicKey].
func (unlistedKey) Marshal() []byte { return []byte("none") }

// Verify implements [ssh.PublicKey]; nothing verifies.
func (unlistedKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

// tail keeps the first kilobytes of what a remote writes to its standard error.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer] and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 2 << 10
	if left := most - t.buf.Len(); left > 0 {
		t.buf.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
