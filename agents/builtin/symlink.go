package builtin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// symlinkHandler handles std::Symlink: target is the link itself, source is where it leads to.
type symlinkHandler struct{}

type symlinkResource struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Read implements [sdk.Handler].
func (symlinkHandler) Read(_ *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	var want symlinkResource
	if err := r.Decode(&want); err != nil {
		return sdk.Observed{}, err
	}
	if err := checkPath("target", want.Target); err != nil {
		return sdk.Observed{}, err
	}
	if want.Source == "" || strings.ContainsRune(want.Source, 0) {
		return sdk.Observed{}, fmt.Errorf("source %q is not a path: %w", want.Source, model.ErrInvalid)
	}
	s, err := lstat(want.Target)
	if err != nil || !s.exists {
		return sdk.Observed{Private: want}, err
	}
	if s.mode&fs.ModeSymlink == 0 {
		return sdk.Observed{}, sdk.Permanent(fmt.Errorf("%s is there and is no symbolic link but %s; remove it first", want.Target, kindOf(s.mode)))
	}
	source, err := os.Readlink(want.Target)
	if err != nil {
		return sdk.Observed{}, fmt.Errorf("looking at %s: %w", want.Target, err)
	}
	return sdk.Observed{Exists: true, Attributes: map[string]any{"source": source}, Private: want}, nil
}

// Change implements [sdk.Handler].
func (symlinkHandler) Change(_ *sdk.Context, _ *sdk.Resource, action model.Change, o sdk.Observed, _ model.Diff) error {
	want, ok := o.Private.(symlinkResource)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	dir := filepath.Dir(want.Target)
	if action == model.ChangePurged {
		if err := os.Remove(want.Target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the link: %w", err)
		}
		return syncDir(dir)
	}
	if err := checkParent(want.Target); err != nil {
		return err
	}
	temporary := filepath.Join(dir, ".intendant-"+rand.Text())
	if err := os.Symlink(want.Source, temporary); err != nil {
		return fmt.Errorf("making a link in %s: %w", dir, err)
	}
	if err := os.Rename(temporary, want.Target); err != nil {
		return errors.Join(fmt.Errorf("putting %s in place: %w", want.Target, err), os.Remove(temporary))
	}
	return syncDir(dir)
}

var _ sdk.Handler = symlinkHandler{}
