package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// maxOutput is how much of each of a command's outputs is kept: the beginning and the end.
const maxOutput = 32 << 10

// waitDelay is how long a command's outputs may stay open after it has ended, held by what it left running.
const waitDelay = 2 * time.Second

// commands runs programs.
type commands struct {
	path string
	env  []string
}

// command is one run of a program.
type command struct {
	args []string
	// path and env override those of the agent; dir is the working directory, empty for the root.
	path string
	env  map[string]string
	dir  string
}

// output is what came of a command.
type output struct {
	code           int
	stdout, stderr string
}

// commandEnvironment leaves out the variables that configure the agent, since some hold secrets.
func commandEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), isOwnVariable)
}

// isOwnVariable tells whether a variable configures the agent.
func isOwnVariable(v string) bool {
	return strings.HasPrefix(v, "INTENDANT_") || strings.HasPrefix(v, "INMANTA_")
}

// run runs a command to its end. It returns an error only when there was no exit status: the program was not found, or did
// not end in time, when it is killed with everything in its process group.
func (c *commands) run(ctx context.Context, cmd command) (output, error) {
	if len(cmd.args) == 0 {
		return output{}, fmt.Errorf("the command is empty: %w", model.ErrInvalid)
	}
	path := cmd.path
	if path == "" {
		path = c.path
	}
	program, err := lookPath(cmd.args[0], path)
	if err != nil {
		return output{}, err
	}
	var stdout, stderr capture
	x := exec.CommandContext(ctx, program, cmd.args[1:]...)
	x.Args[0] = cmd.args[0]
	x.Dir = cmd.dir
	if x.Dir == "" {
		x.Dir = "/"
	}
	x.Env = append(slices.DeleteFunc(slices.Clone(c.env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, over := cmd.env[name]
		return over || name == "PATH"
	}), "PATH="+path)
	for k, v := range cmd.env {
		x.Env = append(x.Env, k+"="+v)
	}
	slices.Sort(x.Env)
	x.Stdout, x.Stderr = &stdout, &stderr
	// A group of its own, so that it can be ended with all it started; the kernel ends it when the agent dies.
	x.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	x.WaitDelay = waitDelay
	x.Cancel = func() error { return syscall.Kill(-x.Process.Pid, syscall.SIGKILL) }

	// The kernel ends the command when the thread that started it ends. A thread of its own that lives until the command
	// has ended makes that the end of the agent.
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- x.Run()
	}()
	err = <-done
	out := output{code: -1, stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("the command did not end in time and was killed: %w", ctx.Err())
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		out.code = 0
		return out, nil
	case errors.As(err, &exit):
		out.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			out.code = 128 + int(status.Signal())
		}
		return out, nil
	}
	return out, fmt.Errorf("starting %s: %w", program, err)
}

// has tells whether a program can be found.
func (c *commands) has(name string) bool {
	_, err := lookPath(name, c.path)
	return err == nil
}

// lookPath finds a program in the directories of a PATH. It fails with [model.ErrNotFound].
func lookPath(name, path string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	for dir := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Stat(full)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTDIR) {
			return "", fmt.Errorf("looking for %s: %w", name, err)
		}
	}
	return "", fmt.Errorf("the program %s was not found in %s: %w", name, path, model.ErrNotFound)
}

// capture keeps the beginning and the end of what is written to it.
type capture struct {
	mu   sync.Mutex
	head bytes.Buffer
	tail []byte
	left int
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if room := maxOutput/2 - c.head.Len(); room > 0 {
		room = min(room, len(p))
		c.head.Write(p[:room])
		p = p[room:]
	}
	c.tail = append(c.tail, p...)
	if over := len(c.tail) - maxOutput/2; over > 0 {
		c.left += over
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	return n, nil
}

// String returns what was kept.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.head.String()
	if c.left > 0 {
		text += fmt.Sprintf("\n… (%d bytes left out)\n", c.left)
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text+string(c.tail), "\uFFFD"), "\x00", "\uFFFD")
}

// logOutput writes a command's outputs to the log, if there are any.
func logOutput(c *sdk.Context, level model.LogLevel, what string, out output) {
	kwargs := map[string]any{"exit_status": out.code}
	message := fmt.Sprintf("%s ended with status %d", what, out.code)
	if out.stdout != "" {
		kwargs["stdout"] = out.stdout
		message += "\nstdout: " + strings.TrimRight(out.stdout, "\n")
	}
	if out.stderr != "" {
		kwargs["stderr"] = out.stderr
		message += "\nstderr: " + strings.TrimRight(out.stderr, "\n")
	}
	c.Log(level, message, kwargs)
}

// split divides a command line into words as a POSIX shell does, without any expansion: quotes and backslashes count.
func split(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; ch {
		case ' ', '\t', '\n', '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("command %q: a ' is not closed: %w", text, model.ErrInvalid)
			}
			word.WriteString(text[i+1 : i+1+end])
			i += end + 1
			inWord = true
		case '"':
			end, err := quoted(text, i+1, &word)
			if err != nil {
				return nil, err
			}
			i = end
			inWord = true
		case '\\':
			if i+1 == len(text) {
				return nil, fmt.Errorf("command %q ends in a backslash: %w", text, model.ErrInvalid)
			}
			i++
			word.WriteByte(text[i])
			inWord = true
		default:
			word.WriteByte(ch)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted reads what is between double quotes, from after the first, and returns where the second is.
func quoted(text string, from int, word *strings.Builder) (int, error) {
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return i, nil
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
		}
		word.WriteByte(text[i])
	}
	return 0, fmt.Errorf("command %q: a \" is not closed: %w", text, model.ErrInvalid)
}
