package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
)

// maxUpload is the size of a content that a handler adds to the file storage, in bytes.
const maxUpload = 256 << 20

// handlers answer what handlers ask of the agent.
func (w *worker) handlers() map[string]python.Handler {
	return map[string]python.Handler{
		"file_get":  answer(w.fileGet),
		"file_stat": answer(w.fileStat),
		"file_put":  answer(w.filePut),
		"rest":      answer(w.rest),
		"ssh":       answer(w.m.ssh.run),
		"hide":      answer(w.hide),
	}
}

// answer makes a handler of a function with typed arguments.
func answer[A, R any](f func(context.Context, A) (R, error)) python.Handler {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("the arguments can not be read: %w", err)
		}
		return f(ctx, args)
	}
}

type fileArgs struct {
	Hash string `json:"hash"`
	Name string `json:"name"`
}

// fileGet hands a content over as a file of its own, which the process removes: contents may be larger than frames.
func (w *worker) fileGet(ctx context.Context, a fileArgs) (path *string, err error) {
	in, _, err := w.m.cfg.Files.Open(ctx, a.Hash)
	if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrInvalid) {
		return nil, nil //nolint:nilnil // no content is an answer
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which content and why
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(w.dir, "content-*")
	if err != nil {
		return nil, fmt.Errorf("handing over content %s: %w", a.Hash, err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(out.Name())
		return nil, fmt.Errorf("handing over content %s: %w", a.Hash, err)
	}
	name := out.Name()
	return &name, nil
}

func (w *worker) fileStat(ctx context.Context, a fileArgs) (bool, error) {
	in, _, err := w.m.cfg.Files.Open(ctx, a.Hash)
	if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrInvalid) {
		return false, nil
	}
	if err != nil {
		return false, err //nolint:wrapcheck // it says which content and why
	}
	return true, in.Close() //nolint:wrapcheck // there is nothing to add
}

// filePut takes a content from a file in the process's directory.
func (w *worker) filePut(ctx context.Context, a fileArgs) (bool, error) {
	if w.m.cfg.Upload == nil {
		return false, errors.New("this agent can not add files to the server's storage")
	}
	if a.Name != filepath.Base(a.Name) || strings.HasPrefix(a.Name, ".") {
		return false, fmt.Errorf("%q is not the name of a file: %w", a.Name, model.ErrInvalid)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return false, fmt.Errorf("taking over a content: %w", err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(a.Name)
	if err != nil {
		return false, fmt.Errorf("taking over a content: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxUpload+1))
	switch {
	case err != nil:
		return false, fmt.Errorf("taking over a content: %w", err)
	case len(content) > maxUpload:
		return false, fmt.Errorf("the content has more than %d bytes: %w", maxUpload, model.ErrInvalid)
	case hashOf(content) != a.Hash:
		return false, fmt.Errorf("the content's SHA-1 is %s, not %s: %w", hashOf(content), a.Hash, model.ErrInvalid)
	}
	return true, w.m.cfg.Upload(ctx, a.Hash, content)
}

type restArgs struct {
	Verb    string            `json:"verb"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Timeout float64           `json:"timeout"`
}

type restAnswer struct {
	Code int    `json:"code"`
	Body string `json:"body"`
}

// environmentHeader names the environment that a call of the API is about.
const environmentHeader = "X-Inmanta-Tid"

// rest calls the server's API as the agent: the credentials stay on this side.
func (w *worker) rest(ctx context.Context, a restArgs) (restAnswer, error) {
	if w.m.cfg.Call == nil {
		return restAnswer{}, errors.New("this agent can not call the server's API")
	}
	if !strings.HasPrefix(a.Path, "/api/") || strings.Contains(a.Path, "..") || strings.ContainsAny(a.Path, " \r\n") {
		return restAnswer{}, fmt.Errorf("%q is not a path of the API: %w", a.Path, model.ErrInvalid)
	}
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.Timeout*float64(time.Second)))
		defer cancel()
	}
	r := Request{Method: a.Verb, Path: a.Path, Header: http.Header{"Accept": {"application/json"}}}
	for name, value := range a.Headers {
		switch key := http.CanonicalHeaderKey(name); key {
		case environmentHeader, "Content-Type", "Accept":
			r.Header.Set(key, value)
		}
	}
	if a.Body != nil {
		r.Body = []byte(*a.Body)
	}
	response, err := w.m.cfg.Call(ctx, r)
	if err != nil {
		return restAnswer{}, err
	}
	return restAnswer{Code: response.Status, Body: string(response.Body)}, nil
}

type hideArgs struct {
	Task   model.TaskID        `json:"task"`
	Hidden map[string][]string `json:"hidden"`
}

// hide keeps the values of references out of what is reported.
func (w *worker) hide(_ context.Context, a hideArgs) (bool, error) {
	c := w.current(a.Task)
	if c == nil {
		return false, errors.New("the task does not run any more")
	}
	for attribute, texts := range a.Hidden {
		c.Hide(attribute, texts...)
	}
	return true, nil
}
