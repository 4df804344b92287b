package builtin

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// maxTextDiff is the size of the largest file whose difference is shown as text.
const maxTextDiff = 64 << 10

// fileHandler handles std::File and its kin.
type fileHandler struct{}

// fileResource are the attributes of a file. The content is named by its hash, or given inline.
type fileResource struct {
	ownership
	Path    string  `json:"path"`
	Hash    string  `json:"hash"`
	Content *string `json:"content"`
}

// fileFound is what Read hands on.
type fileFound struct {
	want fileResource
	stat stat
	hash string
	link string
}

func (fileHandler) decode(r *sdk.Resource) (fileResource, error) {
	var f fileResource
	if err := r.Decode(&f); err != nil {
		return f, err
	}
	if err := checkPath("path", f.Path); err != nil {
		return f, err
	}
	if r.Resolved("hash") {
		// The content was a reference: what came of it is the text itself.
		content := f.Hash
		f.Content, f.Hash = &content, ""
	}
	if f.Hash == "" && f.Content != nil {
		sum := sha1.Sum([]byte(*f.Content))
		f.Hash = hex.EncodeToString(sum[:])
	}
	if f.Hash == "" && !r.Purged() {
		return f, fmt.Errorf("%s has neither a hash nor a content: %w", r.ID, model.ErrInvalid)
	}
	return f, nil
}

// Read implements [sdk.Handler].
func (h fileHandler) Read(c *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	want, err := h.decode(r)
	if err != nil {
		return sdk.Observed{}, err
	}
	found := fileFound{want: want}
	if found.stat, err = lstat(want.Path); err != nil || !found.stat.exists {
		return sdk.Observed{Private: found}, err
	}
	switch {
	case found.stat.mode.IsRegular():
		if r.Purged() {
			break
		}
		if found.hash, err = hashFile(c, want.Path); err != nil {
			return sdk.Observed{}, err
		}
	case found.stat.mode&fs.ModeSymlink != 0:
		// It will be replaced by a file, or removed; where it leads to is not touched.
		if found.link, err = os.Readlink(want.Path); err != nil {
			return sdk.Observed{}, fmt.Errorf("looking at %s: %w", want.Path, err)
		}
	default:
		return sdk.Observed{}, sdk.Permanent(fmt.Errorf("%s is there and is no file but %s; remove it first", want.Path, kindOf(found.stat.mode)))
	}
	return sdk.Observed{Exists: true, Private: found}, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Diff implements [sdk.Differ].
func (fileHandler) Diff(c *sdk.Context, r *sdk.Resource, o sdk.Observed) (model.Diff, error) {
	found, ok := o.Private.(fileFound)
	if !ok {
		return nil, errors.New("the observed state is of another handler")
	}
	d := model.Diff{}
	s := found.stat
	if found.link != "" {
		d["type"] = sdk.Changed("symbolic link to "+found.link, "file")
		s.exists = false
	}
	found.want.diff(d, s)
	if found.hash != found.want.Hash {
		var current any
		if found.hash != "" {
			current = found.hash
		}
		d["hash"] = sdk.Changed(current, found.want.Hash)
		if (c.DryRun() || c.ReportOnly()) && !r.Resolved("hash") && !r.Resolved("content") {
			showTextDiff(c, found)
		}
	}
	return d, nil
}

// Change implements [sdk.Handler].
func (h fileHandler) Change(c *sdk.Context, _ *sdk.Resource, action model.Change, o sdk.Observed, diff model.Diff) error {
	found, ok := o.Private.(fileFound)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	want := found.want
	if action == model.ChangePurged {
		if err := os.Remove(want.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the file: %w", err)
		}
		return syncDir(filepath.Dir(want.Path))
	}
	if _, content := diff["hash"]; content || action == model.ChangeCreated || found.link != "" {
		return h.replace(c, found)
	}
	return want.applyTo(want.Path)
}

// replace puts a new file in the place of the old, in one step: whoever opens the path finds either the old one or the new.
func (fileHandler) replace(c *sdk.Context, found fileFound) (err error) {
	want := found.want
	if err := checkParent(want.Path); err != nil {
		return err
	}
	content, err := want.open(c)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	// What the resource leaves open stays as it was.
	regular := found.stat.exists && found.link == ""
	if !want.mode().set {
		want.Mode = fileMode{set: true, bits: 0o644}
		if regular {
			want.Mode.bits = found.stat.bits
		}
	}
	if want.Owner == nil && regular {
		owner := fmt.Sprint(found.stat.uid)
		want.Owner = &owner
	}
	if want.Group == nil && regular {
		group := fmt.Sprint(found.stat.gid)
		want.Group = &group
	}
	dir := filepath.Dir(want.Path)
	f, err := os.CreateTemp(dir, ".intendant-*")
	if err != nil {
		return fmt.Errorf("making a file in %s: %w", dir, err)
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, readerWith(c, content)); err != nil {
		return fmt.Errorf("writing %s: %w", want.Path, err)
	}
	if err := want.apply(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("writing %s: %w", want.Path, err)
	}
	if err := os.Rename(f.Name(), want.Path); err != nil {
		return fmt.Errorf("putting %s in place: %w", want.Path, err)
	}
	return syncDir(dir)
}

// open returns the desired content.
func (f fileResource) open(c *sdk.Context) (io.ReadCloser, error) {
	if f.Content != nil {
		return io.NopCloser(bytes.NewReader([]byte(*f.Content))), nil
	}
	content, _, err := c.OpenFile(f.Hash)
	if err != nil {
		return nil, fmt.Errorf("getting the content of %s: %w", f.Path, err)
	}
	return content, nil
}

// hashFile returns the SHA-1 of a file in hex.
func hashFile(ctx context.Context, path string) (string, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha1.New()
	if _, err := io.Copy(sum, readerWith(ctx, f)); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// readerWith makes a reader that ends with its context.
func readerWith(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// showTextDiff logs what would change in a small text file. A file that not everybody may read is not shown: it may hold secrets.
func showTextDiff(c *sdk.Context, found fileFound) {
	secret := found.want.mode().set && found.want.mode().bits&0o004 == 0 || found.hash != "" && found.stat.bits&0o004 == 0
	if secret {
		c.Infof("The content of %s differs; it is not shown because not everybody may read the file.", found.want.Path)
		return
	}
	var current string
	if found.hash != "" {
		f, err := openNoFollow(found.want.Path)
		if err != nil {
			c.Warnf("The difference can not be shown: %v", err)
			return
		}
		defer func() { _ = f.Close() }()
		text, ok := smallText(f)
		if !ok {
			c.Infof("The content of %s differs; it is not a small text and not shown.", found.want.Path)
			return
		}
		current = text
	}
	content, err := found.want.open(c)
	if err != nil {
		c.Warnf("The difference can not be shown: %v", err)
		return
	}
	defer func() { _ = content.Close() }()
	desired, ok := smallText(content)
	if !ok {
		c.Infof("The content of %s differs; it is not a small text and not shown.", found.want.Path)
		return
	}
	diff := unifiedDiff(found.want.Path, current, desired)
	c.Log(model.LevelInfo, "The content of "+found.want.Path+" differs:\n"+diff, map[string]any{"diff": diff})
}

// smallText reads a text that is small enough to be shown.
func smallText(r io.Reader) (string, bool) {
	raw, err := io.ReadAll(io.LimitReader(r, maxTextDiff+1))
	if err != nil || len(raw) > maxTextDiff || !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return "", false
	}
	return string(raw), true
}

var (
	_ sdk.Handler = fileHandler{}
	_ sdk.Differ  = fileHandler{}
)
