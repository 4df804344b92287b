package venv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/lazyregexp"
	"github.com/intendant/intendant/model"
)

// builder makes one environment. It is used by one goroutine.
type builder struct {
	cache *Cache
	spec  Spec
	py    interpreter
	dir   string
	// temp holds what the installer reads; it is removed afterwards.
	temp  string
	uv    string
	creds credentials
	log   *output
	// requirements is the file that the installer reads.
	requirements string
	constraints  string
	report       string
	environ      []string
}

// build makes the environment of a digest. The caller holds its lock.
func (c *Cache) build(ctx context.Context, s Spec, py interpreter, digest string, log io.Writer) (err error) {
	dir, err := filepath.Abs(c.dir(digest))
	if err != nil {
		return fmt.Errorf("building: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an unfinished environment: %w", err)
	}
	temp, err := os.MkdirTemp("", "intendant-venv-")
	if err != nil {
		return fmt.Errorf("building: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	limit := cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	b := &builder{cache: c, spec: s, py: py, dir: dir, temp: temp, uv: c.findUV()}
	if b.uv != "" && s.Index.UseSystemConfig && c.configuresPip() && (py.Pip != "" || py.Ensurepip) {
		b.uv = "" // it does not read what pip reads
	}
	b.log = &output{to: log, creds: &b.creds}
	defer b.log.flush()
	st, err := b.make(ctx)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	st.Digest = digest
	return st.write(dir)
}

func (c *Cache) findUV() string {
	if c.UV == "-" {
		return ""
	}
	path, err := exec.LookPath(cmp.Or(c.UV, "uv"))
	if err != nil {
		return ""
	}
	return path
}

// index variables of pip and of uv: who sets those of uv wants uv.
var (
	pipIndex = lazyregexp.New(`^PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CONFIG_FILE)=.`)
	uvIndex  = lazyregexp.New(`^UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CONFIG_FILE)=.`)
)

// configuresPip reports whether the machine says to pip, and not to uv, where packages come from.
func (c *Cache) configuresPip() bool {
	if slices.ContainsFunc(c.Environ, uvIndex().MatchString) {
		return false
	}
	if slices.ContainsFunc(c.Environ, pipIndex().MatchString) {
		return true
	}
	value := func(name string) string {
		for _, kv := range c.Environ {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
	// The places of pip's configuration, see pip's documentation.
	files := []string{"/etc/pip.conf"}
	for _, dir := range filepath.SplitList(cmp.Or(value("XDG_CONFIG_DIRS"), "/etc/xdg")) {
		files = append(files, filepath.Join(dir, "pip", "pip.conf"))
	}
	if home := value("HOME"); home != "" {
		files = append(files, filepath.Join(home, ".pip", "pip.conf"),
			filepath.Join(cmp.Or(value("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "pip", "pip.conf"))
	}
	return slices.ContainsFunc(files, func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	})
}

// make creates the environment and installs into it.
func (b *builder) make(ctx context.Context) (status, error) {
	st := status{Builder: "pip", BuiltAt: time.Now().UTC(), Python: b.py.Version, Platform: b.py.Platform}
	if b.uv != "" {
		st.Builder = "uv"
	}
	if err := b.prepare(); err != nil {
		return st, err
	}
	install := b.installPip
	if b.uv != "" {
		install = b.installUV
	}
	if err := b.create(ctx); err != nil {
		return st, err
	}
	var err error
	if st.Sites, err = b.sites(ctx); err != nil {
		return st, err
	}
	brought, err := b.packages(st.Sites) // the tools of an environment with a pip of its own
	if err != nil {
		return st, err
	}
	if len(b.spec.Requirements) > 0 {
		if err := install(ctx); err != nil {
			return st, err
		}
	}
	if st.Packages, err = b.packages(st.Sites); err != nil {
		return st, err
	}
	st.Packages = slices.DeleteFunc(st.Packages, func(p Package) bool {
		return slices.Contains(brought, p) && !slices.ContainsFunc(b.spec.Requirements, func(r string) bool {
			m := requirementForm().FindStringSubmatch(strings.TrimSpace(r))
			return m != nil && Normalise(m[1]) == p.Name
		})
	})
	return st, nil
}

// prepare writes what the installer reads.
func (b *builder) prepare() error {
	var req, con strings.Builder
	index := b.spec.Index
	option := func(name, raw string) error {
		clean, err := b.creds.strip(raw)
		if err != nil {
			return err
		}
		fmt.Fprintf(&req, "%s %s\n", name, clean)
		return nil
	}
	if index.URL != "" {
		if err := option("--index-url", index.URL); err != nil {
			return err
		}
	}
	for _, u := range index.Extra {
		if err := option("--extra-index-url", u); err != nil {
			return err
		}
	}
	for _, l := range index.FindLinks {
		if strings.Contains(l, "://") {
			if err := option("--find-links", l); err != nil {
				return err
			}
		}
	}
	if index.NoIndex || index.URL == "" && len(index.Extra) == 0 && !index.UseSystemConfig {
		req.WriteString("--no-index\n")
	}
	for _, r := range b.spec.Requirements {
		clean, err := b.stripRequirement(r)
		if err != nil {
			return err
		}
		req.WriteString(clean + "\n")
	}
	for _, c := range b.spec.Constraints {
		con.WriteString(c + "\n")
	}
	if len(b.spec.Provided) > 0 {
		stubs, err := writeStubs(filepath.Join(b.temp, "provided"), b.spec.Provided, b.spec.ProvidedRequires)
		if err != nil {
			return err
		}
		hashed := slices.ContainsFunc(b.spec.Requirements, hashOption().MatchString)
		for _, s := range stubs {
			con.WriteString(s.Name + "==" + s.Version + "\n")
			switch {
			case b.spec.NoDeps && hashed:
				req.WriteString(s.Name + "==" + s.Version + " --hash=sha256:" + s.SHA256 + "\n")
			case b.spec.NoDeps:
				req.WriteString(s.Name + "==" + s.Version + "\n")
			}
		}
	}
	b.requirements = filepath.Join(b.temp, "requirements.txt")
	b.constraints = filepath.Join(b.temp, "constraints.txt")
	b.report = filepath.Join(b.temp, "report.json")
	for name, text := range map[string]string{b.requirements: req.String(), b.constraints: con.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the requirements: %w", err)
		}
	}
	return b.environment()
}

// stripRequirement moves the credentials of a requirement with an address to where they belong.
func (b *builder) stripRequirement(r string) (string, error) {
	name, at, ok := strings.Cut(r, "@")
	if !ok || !strings.Contains(at, "://") {
		return r, nil
	}
	fields := strings.Fields(at)
	clean, err := b.creds.strip(fields[0])
	if err != nil {
		return "", err
	}
	return name + "@ " + strings.Join(append([]string{clean}, fields[1:]...), " "), nil
}

// steering matches the variables that change what Python, pip and uv do.
var steering = lazyregexp.New(`^(?:PIP_|UV_|PYTHON|VIRTUAL_ENV|CONDA_|NETRC=|__PYVENV)`)

// network matches those of them that say how the machine reaches others, whatever they are.
var network = lazyregexp.New(`^(?:PIP_CERT|PIP_CLIENT_CERT|PIP_PROXY|UV_NATIVE_TLS|UV_SYSTEM_CERTS)=`)

// forBuilders matches the variables of [Environ].
var forBuilders = lazyregexp.New(`^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|XDG_CONFIG_HOME|XDG_CONFIG_DIRS|PYENV_ROOT|PYENV_VERSION|` +
	`(?i:(?:http|https|all|no)_proxy)|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NETRC|PIP_[A-Z_]+|UV_[A-Z_]+)=`)

// Environ chooses those variables of a process that whoever installs packages is to get: where programs, proxies, certificates
// and the configuration of pip and uv are. Packages may run build scripts, which must not see the others: some hold secrets.
func Environ(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(kv string) bool { return !forBuilders().MatchString(kv) })
}

// system matches those of them that belong to the system's configuration of indexes.
var system = lazyregexp.New(`^(?:PIP_|UV_|NETRC=)`)

// environment makes the variables of the builder.
func (b *builder) environment() error {
	use := b.spec.Index.UseSystemConfig
	if len(b.cache.Environ) == 0 {
		b.environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + b.temp}
	}
	for _, kv := range b.cache.Environ {
		if steering().MatchString(kv) && !network().MatchString(kv) && (!use || !system().MatchString(kv)) {
			continue
		}
		b.environ = append(b.environ, kv)
	}
	b.environ = append(b.environ, "PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", "PYTHONNOUSERSITE=1", "UV_NO_PROGRESS=1")
	if !use {
		b.environ = append(b.environ, "PIP_CONFIG_FILE="+os.DevNull, "UV_NO_CONFIG=1")
	}
	if len(b.creds.hosts) > 0 {
		name, err := b.creds.write(b.temp)
		if err != nil {
			return err
		}
		b.environ = append(b.environ, "NETRC="+name)
	}
	return nil
}

// create makes an empty environment.
func (b *builder) create(ctx context.Context) error {
	if b.uv != "" {
		args := []string{"venv", "--quiet", "--python", b.py.Executable}
		if b.spec.SystemSite {
			args = append(args, "--system-site-packages")
		}
		return b.run(ctx, "creating the environment with uv", b.uv, append(args, b.dir)...)
	}
	args := []string{"-I", "-m", "venv"}
	if b.spec.SystemSite {
		args = append(args, "--system-site-packages")
	}
	if !b.withOwnPip() {
		args = append(args, "--without-pip") // installing pip takes seconds
	}
	return b.run(ctx, "creating the environment with "+b.py.Executable, b.py.Executable, append(args, b.dir)...)
}

// withOwnPip reports whether pip has to be part of the environment: that of the interpreter can not install elsewhere.
func (b *builder) withOwnPip() bool {
	return len(b.spec.Requirements) > 0 && !pipAtLeast(b.py.Pip, 22, 3)
}

func (b *builder) python() string { return filepath.Join(b.dir, "bin", "python") }

func (b *builder) installPip(ctx context.Context) error {
	command := []string{b.py.Executable, "-m", "pip", "--python", b.python()}
	if b.withOwnPip() {
		if !b.py.Ensurepip {
			return fmt.Errorf("the Python %s has neither pip nor the means to install it: install uv, or python3-pip and python3-venv: %w", b.py.Executable, model.ErrInvalid)
		}
		command = []string{b.python(), "-m", "pip"}
	}
	command = append(command, "install", "--no-color", "--progress-bar", "off", "--no-warn-script-location", "-r", b.requirements)
	if b.spec.Index.Pre {
		command = append(command, "--pre")
	}
	command = append(command, b.sources()...)
	if !b.withOwnPip() {
		command = append(command, "--report", b.report)
	}
	return b.run(ctx, "installing packages with pip", command[0], command[1:]...)
}

func (b *builder) installUV(ctx context.Context) error {
	args := []string{"pip", "install", "--no-color", "--python", b.python(), "-r", b.requirements}
	if b.spec.Index.Pre {
		args = append(args, "--prerelease", "allow")
	}
	return b.run(ctx, "installing packages with uv", b.uv, append(args, b.sources()...)...)
}

// sources are the options for constraints and for directories with wheels.
func (b *builder) sources() []string {
	var args []string
	if len(b.spec.Constraints)+len(b.spec.Provided) > 0 {
		args = append(args, "-c", b.constraints)
	}
	if b.spec.NoDeps {
		args = append(args, "--no-deps")
	}
	if b.spec.Index.OnlyBinary {
		args = append(args, "--only-binary", ":all:")
	}
	for _, l := range b.spec.Index.FindLinks {
		if !strings.Contains(l, "://") {
			args = append(args, "--find-links", l)
		}
	}
	if len(b.spec.Provided) > 0 {
		args = append(args, "--find-links", filepath.Join(b.temp, "provided"))
	}
	return args
}

const sitesScript = `
import json, sysconfig
paths = sysconfig.get_paths()
print(json.dumps([paths["purelib"], paths["platlib"]]))
`

// sites asks the environment where its packages are, relative to it.
func (b *builder) sites(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, b.python(), "-I", "-c", sitesScript)
	cmd.Env = b.environ
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("starting the Python of the new environment: %w", err)
	}
	var all []string
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("asking the new environment for its paths: %w", err)
	}
	var sites []string
	for _, s := range all {
		rel, err := filepath.Rel(b.dir, s)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("the new environment %s installs packages outside of itself, in %s", b.dir, s)
		}
		if !slices.Contains(sites, rel) {
			sites = append(sites, rel)
		}
	}
	return sites, nil
}

// run runs a program of the build.
func (b *builder) run(ctx context.Context, what, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = b.temp
	cmd.Env = b.environ
	cmd.Stdout, cmd.Stderr = b.log, b.log
	// Installers start others; all of them end together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	b.log.mark()
	err := cmd.Run()
	b.log.flush()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", what, cause)
	}
	reason, kind := b.log.reason()
	return fmt.Errorf("%s: %s: %w", what, cmp.Or(b.named(reason), err.Error()), kind)
}

// requirementPlace matches how pip names a line of a file with requirements.
var requirementPlace = lazyregexp.New(`-r (\S+) \(line (\d+)\)`)

// named puts requirements in place of their lines in a file that is gone by the time somebody reads it.
func (b *builder) named(reason string) string {
	return requirementPlace().ReplaceAllStringFunc(reason, func(place string) string {
		m := requirementPlace().FindStringSubmatch(place)
		raw, err := os.ReadFile(b.requirements)
		n, bad := strconv.Atoi(m[2])
		lines := strings.Split(string(raw), "\n")
		if m[1] != b.requirements || err != nil || bad != nil || n < 1 || n > len(lines) {
			return place
		}
		name, _, _ := strings.Cut(lines[n-1], " --hash")
		return name
	})
}

// write says that an environment is complete.
func (st status) write(dir string) error {
	raw, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("finishing the environment: %w", err)
	}
	name := filepath.Join(dir, statusName)
	if err := os.WriteFile(name+".tmp", append(raw, '\n'), 0o644); err != nil { //nolint:gosec // executors of other users read it
		return fmt.Errorf("finishing the environment: %w", err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return fmt.Errorf("finishing the environment: %w", err)
	}
	return nil
}

// output hands lines on without secrets, and keeps the last ones for the reason of a failure.
type output struct {
	to    io.Writer
	creds *credentials

	mu    sync.Mutex
	part  []byte
	lines []string // since the last mark
}

// keptLines bounds what is kept to find the reason.
const keptLines = 200

// maxPart bounds a line that does not end.
const maxPart = 64 << 10

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		i := bytes.IndexByte(o.part, '\n')
		if i < 0 && len(o.part) <= maxPart {
			return len(p), nil
		}
		if i < 0 {
			i = len(o.part) - 1
		}
		o.line(string(o.part[:i+1]))
		o.part = o.part[i+1:]
	}
}

func (o *output) line(s string) {
	s = o.creds.clean(strings.ToValidUTF8(strings.TrimRight(s, "\r\n"), "\uFFFD"))
	if len(o.lines) >= keptLines {
		o.lines = slices.Delete(o.lines, 0, 1)
	}
	o.lines = append(o.lines, s)
	_, _ = fmt.Fprintln(o.to, s)
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.line(string(o.part))
		o.part = nil
	}
}

func (o *output) mark() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = nil
}

// unreachable recognises what installers say when an index does not answer.
var unreachable = lazyregexp.New(`(?i)NewConnectionError|ConnectTimeoutError|ReadTimeoutError|Max retries exceeded|Temporary failure in name resolution|` +
	`Network is unreachable|Connection refused|error sending request|dns error|ProxyError|timed out|50[234] Server Error`)

// reason finds what an installer gave as its reason, and whether trying again may help.
func (o *output) reason() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := model.ErrInvalid
	if slices.ContainsFunc(o.lines, unreachable().MatchString) {
		kind = model.ErrUnavailable
	}
	text := strings.Join(pipReason(o.lines), "; ")
	if text == "" {
		text = strings.Join(uvReason(o.lines), " ")
	}
	if text == "" {
		text = strings.Join(o.lines[max(len(o.lines)-3, 0):], "; ")
	}
	const most = 2000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text, kind
}

// pipReason are the errors of pip, and the lines with which it explains conflicts.
func pipReason(lines []string) []string {
	var said []string
	hashes := false
	for _, l := range lines {
		l = strings.TrimSpace(l)
		text, isError := strings.CutPrefix(l, "ERROR:")
		hashes = hashes || isError && strings.Contains(l, "DO NOT MATCH THE HASHES")
		switch {
		case strings.Contains(l, "ResolutionImpossible"): // the lines before it say why
		case hashes && l != "": // which file, and what was expected
			said = append(said, strings.Join(strings.Fields(text), " "))
		case isError, strings.Contains(l, " depends on "), strings.HasPrefix(l, "The user requested"):
			said = append(said, strings.TrimSpace(text))
		}
	}
	return said
}

// uvReason is all from the first error of uv on, without its drawing.
func uvReason(lines []string) []string {
	var said []string
	for _, l := range lines {
		t := strings.TrimSpace(strings.TrimLeft(l, " ×╰─▶│├"))
		text, isError := strings.CutPrefix(t, "error:")
		if !isError && !strings.HasPrefix(strings.TrimSpace(l), "×") && len(said) == 0 {
			continue
		}
		if text = strings.TrimSpace(strings.TrimPrefix(text, "cause:")); text != "" {
			said = append(said, text)
		}
	}
	return said
}
