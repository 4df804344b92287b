package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// directoryHandler handles std::Directory and its kin.
type directoryHandler struct{}

type directoryResource struct {
	ownership
	Path string `json:"path"`
}

type directoryFound struct {
	want directoryResource
	stat stat
}

// Read implements [sdk.Handler].
func (directoryHandler) Read(_ *sdk.Context, r *sdk.Resource) (sdk.Observed, error) {
	var found directoryFound
	if err := r.Decode(&found.want); err != nil {
		return sdk.Observed{}, err
	}
	if err := checkPath("path", found.want.Path); err != nil {
		return sdk.Observed{}, err
	}
	var err error
	if found.stat, err = lstat(found.want.Path); err != nil {
		return sdk.Observed{}, err
	}
	if found.stat.exists && !found.stat.mode.IsDir() {
		return sdk.Observed{}, sdk.Permanent(fmt.Errorf("%s is there and is no directory but %s; remove it first",
			found.want.Path, kindOf(found.stat.mode)))
	}
	return sdk.Observed{Exists: found.stat.exists, Private: found}, nil
}

// Diff implements [sdk.Differ].
func (directoryHandler) Diff(_ *sdk.Context, _ *sdk.Resource, o sdk.Observed) (model.Diff, error) {
	found, ok := o.Private.(directoryFound)
	if !ok {
		return nil, errors.New("the observed state is of another handler")
	}
	d := model.Diff{}
	found.want.diff(d, found.stat)
	return d, nil
}

// Change implements [sdk.Handler]. A directory that is to be absent is removed only when it is empty: what is in it was not
// asked to go.
func (directoryHandler) Change(_ *sdk.Context, _ *sdk.Resource, action model.Change, o sdk.Observed, _ model.Diff) error {
	found, ok := o.Private.(directoryFound)
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	path := found.want.Path
	switch action {
	case model.ChangePurged:
		err := os.Remove(path)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return sdk.Coded("not-empty", fmt.Errorf("the directory %s is not empty: purge what is in it first", path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the directory: %w", err)
		}
		return syncDir(filepath.Dir(path))
	case model.ChangeCreated:
		if err := checkParent(path); err != nil {
			return err
		}
		// Nobody else may look in before the owner and the mode are set.
		if err := os.Mkdir(path, 0o700); err != nil {
			return fmt.Errorf("making the directory: %w", err)
		}
		if !found.want.mode().set {
			found.want.Mode = fileMode{set: true, bits: 0o755}
		}
		if err := found.want.applyTo(path); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	case model.ChangeUpdated:
		return found.want.applyTo(path)
	case model.ChangeNone:
	}
	return nil
}

var (
	_ sdk.Handler = directoryHandler{}
	_ sdk.Differ  = directoryHandler{}
)
