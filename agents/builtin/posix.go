package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// fileMode is a mode as models write it: decimal digits that read as octal, so that 644 means 0644. JSON numbers and texts
// are both taken.
type fileMode struct {
	set  bool
	bits uint32
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *fileMode) UnmarshalJSON(raw []byte) error {
	text := string(bytes.Trim(raw, `"`))
	if text == "null" || text == "" {
		*m = fileMode{}
		return nil
	}
	text = strings.TrimSuffix(text, ".0")
	bits, err := strconv.ParseUint(text, 8, 32)
	if err != nil || bits > 0o7777 {
		return fmt.Errorf("mode %s is not made of up to four digits from 0 to 7: %w", raw, model.ErrInvalid)
	}
	*m = fileMode{set: true, bits: uint32(bits)}
	return nil
}

// decimal is the mode as models write it.
func (m fileMode) decimal() int {
	n, err := strconv.Atoi(strconv.FormatUint(uint64(m.bits), 8))
	if err != nil {
		return 0
	}
	return n
}

// ownership are the attributes that all kinds of files have.
type ownership struct {
	Mode        fileMode `json:"mode"`
	Permissions fileMode `json:"permissions"`
	Owner       *string  `json:"owner"`
	Group       *string  `json:"group"`
}

// mode returns the mode under either of its names.
func (o ownership) mode() fileMode {
	if o.Mode.set {
		return o.Mode
	}
	return o.Permissions
}

// modeName is the name under which the resource has its mode.
func (o ownership) modeName() string {
	if o.Mode.set {
		return "mode"
	}
	return "permissions"
}

// stat is what the machine says of a path, without following a link in its last component.
type stat struct {
	exists bool
	mode   fs.FileMode
	bits   uint32
	uid    uint32
	gid    uint32
	size   int64
}

func lstat(path string) (stat, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return stat{}, nil
	}
	if err != nil {
		return stat{}, fmt.Errorf("looking at %s: %w", path, err)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}, fmt.Errorf("looking at %s: this system does not tell owners", path)
	}
	return stat{exists: true, mode: info.Mode(), bits: sys.Mode & 0o7777, uid: sys.Uid, gid: sys.Gid, size: info.Size()}, nil
}

// diff adds to d where mode and owners differ.
func (o ownership) diff(d model.Diff, s stat) {
	if m := o.mode(); m.set && (!s.exists || m.bits != s.bits) {
		d[o.modeName()] = sdk.Changed(orNull(s.exists, fileMode{bits: s.bits}.decimal()), m.decimal())
	}
	if o.Owner != nil {
		if uid, err := userID(*o.Owner); !s.exists || err != nil || uid != int(s.uid) {
			d["owner"] = sdk.Changed(orNull(s.exists, userName(s.uid)), *o.Owner)
		}
	}
	if o.Group != nil {
		if gid, err := groupID(*o.Group); !s.exists || err != nil || gid != int(s.gid) {
			d["group"] = sdk.Changed(orNull(s.exists, groupName(s.gid)), *o.Group)
		}
	}
}

func orNull(exists bool, v any) any {
	if !exists {
		return nil
	}
	return v
}

// apply sets owners and mode through an open file, in this order: a change of owner clears the set-id bits.
func (o ownership) apply(f *os.File) error {
	uid, gid := -1, -1
	var err error
	if o.Owner != nil {
		if uid, err = userID(*o.Owner); err != nil {
			return err
		}
	}
	if o.Group != nil {
		if gid, err = groupID(*o.Group); err != nil {
			return err
		}
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &now); err != nil {
		return fmt.Errorf("looking at %s: %w", f.Name(), err)
	}
	if uid == int(now.Uid) {
		uid = -1
	}
	if gid == int(now.Gid) {
		gid = -1
	}
	if uid >= 0 || gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return fmt.Errorf("setting the owner of %s: %w", f.Name(), err)
		}
	}
	if m := o.mode(); m.set {
		if err := unix.Fchmod(int(f.Fd()), m.bits); err != nil {
			return fmt.Errorf("setting the mode of %s: %w", f.Name(), err)
		}
	}
	return nil
}

// applyTo does the same to what is at a path, unless that is a symbolic link.
func (o ownership) applyTo(path string) error {
	f, err := openNoFollow(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return o.apply(f)
}

// openNoFollow opens what is at a path for reading. It does not wait for a pipe's other end, and fails at a symbolic link.
func openNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("opening %s: it is a symbolic link, which is not followed: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return f, nil
}

func userID(name string) (int, error) {
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("owner %q: this machine has no such user: %w", name, err)
	}
	return strconv.Atoi(u.Uid)
}

func groupID(name string) (int, error) {
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("group %q: this machine has no such group: %w", name, err)
	}
	return strconv.Atoi(g.Gid)
}

func userName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

func groupName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	return text
}

// checkPath refuses paths that do not name one place.
func checkPath(attribute, path string) error {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%s %q is not an absolute path: %w", attribute, path, model.ErrInvalid)
	}
	return nil
}

// checkParent fails when the directory that is to hold path is not there.
func checkParent(path string) error {
	parent := filepath.Dir(path)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sdk.Coded("parent-missing", fmt.Errorf("the directory %s does not exist: have the model make it, and require it here", parent))
	case err != nil:
		return fmt.Errorf("looking at %s: %w", parent, err)
	case !info.IsDir():
		return sdk.Coded("parent-missing", fmt.Errorf("%s is not a directory", parent))
	}
	return nil
}

// syncDir has a change of a directory's entries reach the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flushing %s: %w", dir, err)
	}
	defer func() { _ = f.Close() }()
	// Some file systems can not flush directories; there is nothing to be done about that.
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("flushing %s: %w", dir, err)
	}
	return nil
}

var _ json.Unmarshaler = (*fileMode)(nil)
