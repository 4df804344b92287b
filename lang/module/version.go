package module

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
)

// Version is a version of PEP 440. The zero value is not one; [ParseVersion] makes them.
type Version struct {
	epoch   uint64
	release []uint64
	// pre is the phase (a, b or rc) with its number; post and dev are numbers. nil for none.
	phase     string
	pre       uint64
	post, dev *uint64
	local     []string
	text      string
}

// versionForm is the grammar of PEP 440 with all the spellings that it accepts.
var versionForm = lazyregexp.New(`(?i)^\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
	`(?:[-_.]?(alpha|beta|preview|pre|rc|a|b|c)[-_.]?(\d*))?` +
	`(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?` +
	`(?:[-_.]?(dev)[-_.]?(\d*))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*$`)

// maxVersion bounds the text of a version, in bytes.
const maxVersion = 256

// phases are the spellings of pre-releases.
var phases = map[string]string{"alpha": "a", "a": "a", "beta": "b", "b": "b", "c": "rc", "rc": "rc", "pre": "rc", "preview": "rc"}

// ParseVersion reads a version.
func ParseVersion(text string) (Version, error) {
	m := versionForm().FindStringSubmatch(text)
	if m == nil || len(text) > maxVersion {
		return Version{}, fmt.Errorf("%.80q is no version of PEP 440, such as 1.2.0", text)
	}
	v := Version{text: strings.TrimSpace(text)}
	var errs []error
	number := func(s string) uint64 {
		if s == "" {
			return 0
		}
		n, err := strconv.ParseUint(s, 10, 64)
		errs = append(errs, err)
		return n
	}
	v.epoch = number(m[1])
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	if m[3] != "" {
		v.phase, v.pre = phases[strings.ToLower(m[3])], number(m[4])
	}
	if m[5] != "" || m[6] != "" {
		n := number(m[5] + m[7])
		v.post = &n
	}
	if m[8] != "" {
		n := number(m[9])
		v.dev = &n
	}
	for _, part := range strings.FieldsFunc(strings.ToLower(m[10]), func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		if isNumber(part) {
			part = strconv.FormatUint(number(part), 10)
		}
		v.local = append(v.local, part)
	}
	if errors.Join(errs...) != nil {
		return Version{}, fmt.Errorf("version %.80q contains a number that is too large", text)
	}
	return v, nil
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" && s != "" }

// Text is the version as it was written.
func (v Version) Text() string { return v.text }

// String is the version in its normal form.
func (v Version) String() string {
	if len(v.local) == 0 {
		return v.public()
	}
	return v.public() + "+" + strings.Join(v.local, ".")
}

// public is the normal form without the local part.
func (v Version) public() string {
	s := v.base()
	if v.phase != "" {
		s += v.phase + strconv.FormatUint(v.pre, 10)
	}
	if v.post != nil {
		s += ".post" + strconv.FormatUint(*v.post, 10)
	}
	if v.dev != nil {
		s += ".dev" + strconv.FormatUint(*v.dev, 10)
	}
	return s
}

// base is the release with its epoch.
func (v Version) base() string {
	var b strings.Builder
	if v.epoch > 0 {
		b.WriteString(strconv.FormatUint(v.epoch, 10) + "!")
	}
	for i, n := range v.release {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.FormatUint(n, 10))
	}
	return b.String()
}

// Prerelease reports whether the version is one that comes before a release: alpha, beta, candidate or development.
func (v Version) Prerelease() bool { return v.phase != "" || v.dev != nil }

// Compare orders versions as PEP 440 does: negative when v is lower than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.comparePublic(w), compareLocal(v.local, w.local))
}

func (v Version) comparePublic(w Version) int {
	return cmp.Or(
		cmp.Compare(v.epoch, w.epoch),
		slices.Compare(trimZeros(v.release), trimZeros(w.release)),
		cmp.Compare(v.phaseRank(), w.phaseRank()), cmp.Compare(v.pre, w.pre),
		compareOptional(v.post, w.post, -1), compareOptional(v.dev, w.dev, 1),
	)
}

// phaseRank orders what comes before a release: a mere development version, then the phases, then the release itself.
func (v Version) phaseRank() int {
	switch v.phase {
	case "a":
		return 1
	case "b":
		return 2
	case "rc":
		return 3
	}
	if v.post == nil && v.dev != nil {
		return 0
	}
	return 4
}

// compareOptional orders numbers that may be missing; missing says where one that is missing goes.
func compareOptional(a, b *uint64, missing int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return missing
	case b == nil:
		return -missing
	}
	return cmp.Compare(*a, *b)
}

func trimZeros(release []uint64) []uint64 {
	for len(release) > 1 && release[len(release)-1] == 0 {
		release = release[:len(release)-1]
	}
	return release
}

// compareLocal orders local parts: numbers above texts, and what is longer above its beginning.
func compareLocal(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		switch nx, ny := isNumber(x), isNumber(y); {
		case nx && ny:
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) // without leading zeros the longer one is larger
		case nx:
			return 1
		case ny:
			return -1
		}
		return cmp.Compare(x, y)
	})
}
