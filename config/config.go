// Package config loads the program's settings: INI files as the reference has them, environment variables, flags.
//
// From weakest to strongest: the option's default; /etc/intendant/intendant.cfg (and /etc/inmanta/inmanta.cfg);
// *.cfg below /etc/intendant/intendant.d in order of their names; ~/.intendant.cfg; .inmanta and .intendant in the working
// directory; the file given with -c; environment variables INMANTA_<SECTION>_<OPTION>, then INTENDANT_<SECTION>_<OPTION>;
// flags. Option names are the same with dash and underscore, in any case. Each value remembers where it came from.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Option describes one setting.
type Option struct {
	// Section and Name say where it stands in a file; both lower case, Name with dashes.
	Section, Name string
	// Default is the value in force when nothing sets the option.
	Default string
	// Doc is one sentence for people.
	Doc string
	// Secret hides the value when the settings are printed.
	Secret bool
	// Check refuses a bad value when the settings are loaded. Nil accepts any text.
	Check func(string) error
}

// key identifies an option.
type key struct{ section, name string }

func normal(section, name string) key {
	return key{strings.ToLower(section), strings.ReplaceAll(strings.ToLower(name), "_", "-")}
}

// Value is a setting in force.
type Value struct {
	Option Option
	Text   string
	// Origin is where the value came from: a file, a variable, a flag, or default.
	Origin string
}

// Config is the set of settings in force.
type Config struct {
	options []Option
	values  map[key]Value
	// Warnings lists what was odd but not fatal: unknown options, unreadable files.
	Warnings []string
}

// Sources say where [Load] looks. The zero value looks nowhere; see [System].
type Sources struct {
	// Files are read in order, later ones win. Missing ones are skipped.
	Files []string
	// Dirs hold *.cfg files, read in order of their names, at the place of the Dirs entry after Files[0:DirsAfter].
	Dirs []string
	// DirsAfter is how many of Files come before Dirs.
	DirsAfter int
	// Explicit is the file that the user named; it must exist.
	Explicit string
	// Environ is in the form of os.Environ.
	Environ []string
	// Flags are values set on the command line, by "section.name".
	Flags map[string]string
}

// System returns the sources of a program on this machine: see the package comment.
func System(explicit string, flags map[string]string) Sources {
	s := Sources{
		Files:     []string{"/etc/inmanta/inmanta.cfg", "/etc/intendant/intendant.cfg"},
		Dirs:      []string{"/etc/inmanta/inmanta.d", "/etc/intendant/intendant.d"},
		DirsAfter: 2,
		Explicit:  explicit,
		Environ:   os.Environ(),
		Flags:     flags,
	}
	if home, err := os.UserHomeDir(); err == nil {
		s.Files = append(s.Files, filepath.Join(home, ".inmanta.cfg"), filepath.Join(home, ".intendant.cfg"))
	}
	s.Files = append(s.Files, ".inmanta", ".inmanta.cfg", ".intendant")
	return s
}

// Load reads the settings. Unknown options only warn, since one file serves programs of several ages; a bad value, or an
// explicit file that can not be read, is an error that names the place.
func Load(options []Option, from Sources) (*Config, error) {
	c := &Config{options: options, values: make(map[key]Value, len(options))}
	known := make(map[key]Option, len(options))
	for _, o := range options {
		k := normal(o.Section, o.Name)
		known[k] = o
		c.values[k] = Value{Option: o, Text: o.Default, Origin: "default"}
	}
	files, err := c.list(from)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) && f != from.Explicit {
			continue
		}
		if err != nil {
			if f == from.Explicit {
				return nil, fmt.Errorf("reading the configuration: %w", err)
			}
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s is skipped: %v", f, err))
			continue
		}
		entries, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("configuration file %s: %w", f, err)
		}
		for _, e := range entries {
			origin := f + ":" + strconv.Itoa(e.line)
			k := normal(e.section, e.name)
			o, ok := known[k]
			if !ok {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s: unknown option %s.%s", origin, e.section, e.name))
				continue
			}
			c.values[k] = Value{Option: o, Text: e.value, Origin: origin}
		}
	}
	c.environment(from.Environ)
	for name, text := range from.Flags {
		section, option, _ := strings.Cut(name, ".")
		k := normal(section, option)
		o, ok := known[k]
		if !ok {
			return nil, fmt.Errorf("there is no option %s", name)
		}
		c.values[k] = Value{Option: o, Text: text, Origin: "flag"}
	}
	return c, c.check()
}

// list names the files to read, weakest first.
func (c *Config) list(from Sources) ([]string, error) {
	files := slices.Clone(from.Files[:from.DirsAfter])
	for _, d := range from.Dirs {
		found, err := filepath.Glob(filepath.Join(d, "*.cfg"))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", d, err)
		}
		sort.Strings(found)
		files = append(files, found...)
	}
	files = append(files, from.Files[from.DirsAfter:]...)
	if from.Explicit != "" {
		files = append(files, from.Explicit)
	}
	return files, nil
}

// environment applies the variables; those with our own prefix win.
func (c *Config) environment(environ []string) {
	prefixes := []string{"INMANTA_", "INTENDANT_"}
	vars := map[string]string{}
	for _, e := range environ {
		name, value, ok := strings.Cut(e, "=")
		if ok && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			vars[name] = value
		}
	}
	if len(vars) == 0 {
		return
	}
	clean := strings.NewReplacer("-", "_", ".", "_")
	for k, v := range c.values {
		for _, prefix := range prefixes {
			name := prefix + strings.ToUpper(clean.Replace(k.section+"_"+k.name))
			if text, ok := vars[name]; ok {
				v.Text, v.Origin = text, "environment variable "+name
				c.values[k] = v
			}
		}
	}
}

func (c *Config) check() error {
	var errs []error
	for _, v := range c.All() {
		if v.Option.Check == nil {
			continue
		}
		if err := v.Option.Check(v.Text); err != nil {
			shown := strconv.Quote(v.Text)
			if v.Option.Secret {
				shown = "the given value"
			}
			errs = append(errs, fmt.Errorf("option %s.%s (%s): %s: %w", v.Option.Section, v.Option.Name, v.Origin, shown, err))
		}
	}
	return errors.Join(errs...)
}

// All lists every setting in force, in the order of the options.
func (c *Config) All() []Value {
	out := make([]Value, 0, len(c.options))
	for _, o := range c.options {
		out = append(out, c.values[normal(o.Section, o.Name)])
	}
	return out
}

// Get returns a setting. It panics on an option that does not exist: that is a mistake in the program.
func (c *Config) Get(section, name string) Value {
	v, ok := c.values[normal(section, name)]
	if !ok {
		panic("config: no option " + section + "." + name)
	}
	return v
}

// String returns a setting's text.
func (c *Config) String(section, name string) string { return c.Get(section, name).Text }

// Int returns a setting that was checked with [CheckInt].
func (c *Config) Int(section, name string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(c.String(section, name)))
	return n
}

// Bool returns a setting that was checked with [CheckBool].
func (c *Config) Bool(section, name string) bool {
	b, _ := parseBool(c.String(section, name))
	return b
}

// Duration returns a setting that was checked with [CheckDuration]: seconds, or a Go duration.
func (c *Config) Duration(section, name string) time.Duration {
	d, _ := parseDuration(c.String(section, name))
	return d
}

// List returns a comma-separated setting without empty items.
func (c *Config) List(section, name string) []string {
	var out []string
	for s := range strings.SplitSeq(c.String(section, name), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// CheckInt accepts whole numbers from 0.
func CheckInt(s string) error {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err != nil || n < 0 {
		return errors.New("must be a whole number from 0")
	}
	return nil
}

// CheckPort accepts port numbers; 0 lets the system choose.
func CheckPort(s string) error {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err != nil || n < 0 || n > 65535 {
		return errors.New("must be a port number from 0 to 65535")
	}
	return nil
}

// CheckBool accepts true, false, yes, no, on, off, 1 and 0 in any case.
func CheckBool(s string) error {
	_, err := parseBool(s)
	return err
}

// CheckDuration accepts seconds ("60", "0.5") and Go durations ("5m").
func CheckDuration(s string) error {
	_, err := parseDuration(s)
	return err
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

func parseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= 0 && f < 1e9 {
		return time.Duration(f * float64(time.Second)), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, errors.New("must be a number of seconds or a duration such as 5m")
}
