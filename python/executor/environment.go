package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/venv"
)

// environment returns the interpreter for a blueprint, with its virtual environment built, and what gives up the hold on it. Code
// without requirements needs no environment of its own.
func (m *Manager) environment(ctx context.Context, b *blueprint, say func(string)) (interpreter string, release func(), err error) {
	if len(b.spec.Requirements) == 0 {
		interpreter, err = python.Find(m.cfg.Python)
		if err != nil {
			return "", nil, &UnavailableError{Err: err}
		}
		return interpreter, func() {}, nil
	}
	spec := b.spec.Digest()
	wanted := venv.Redact(strings.Join(b.spec.Requirements, ", ")) // a requirement may be an address
	m.mu.Lock()
	failed, again := m.failed[spec]
	m.mu.Unlock()
	if again && m.cfg.Now().Sub(failed.at) < m.cfg.RetryBuild {
		return "", nil, failed.err
	}
	if _, there := m.venvs.Lookup(b.spec); !there {
		say("Building a Python environment with " + wanted)
	}
	var output bytes.Buffer
	env, err := m.venvs.Ensure(ctx, b.spec, &output)
	if err != nil {
		if ctx.Err() != nil {
			return "", nil, fmt.Errorf("building a Python environment: %w", err)
		}
		m.log.WarnContext(ctx, "a Python environment could not be built", "requirements", wanted, "error", err, "output", tail(output.String()))
		unavailable := &UnavailableError{
			Retry: errors.Is(err, model.ErrUnavailable),
			Err:   fmt.Errorf("the packages that the code needs (%s) can not be installed: %w", wanted, err),
		}
		m.mu.Lock()
		m.failed[spec] = buildFailure{err: unavailable, at: m.cfg.Now()}
		m.mu.Unlock()
		return "", nil, unavailable
	}
	release, err = m.venvs.Hold(ctx, env)
	if err != nil {
		return "", nil, fmt.Errorf("holding a Python environment: %w", err)
	}
	return env.Python, release, nil
}

// tail returns the last lines of an output.
func tail(output string) string {
	const most = 4000
	if len(output) > most {
		output = "…" + strings.ToValidUTF8(output[len(output)-most:], "")
	}
	return output
}

// passed are the variables of the agent that executors get; secrets are none of their business.
var passed = []string{
	"PATH", "HOME", "PYENV_ROOT", "PYENV_VERSION", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
}

func passedOn(environ []string) []string {
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains(passed, name) {
			out = append(out, e)
		}
	}
	return out
}
