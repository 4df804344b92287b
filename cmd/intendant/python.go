package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python/compilehost"
)

// pythonFlags say how commands that compile run the Python code of modules.
type pythonFlags struct {
	interpreter string
	disabled    bool
	// confined says that whoever started this program ends its whole process group, and sets limits for it.
	confined bool
	exports  []string
	// attach are the descriptors to and from a Python process that serves already: the tests of a module.
	attach []int
}

func (f *compileFlags) pythonFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.python.interpreter, "python", "", "Python interpreter for the code of modules (default: the setting compiler.python)")
	fl.BoolVar(&f.python.disabled, "no-python", false, "refuse modules with Python code")
	fl.BoolVar(&f.python.confined, "confined", false, "leave what is started in this process group")
	_ = fl.MarkHidden("confined")
	fl.IntSliceVar(&f.python.attach, "attach-python", nil, "descriptors to and from a running Python process")
	_ = fl.MarkHidden("attach-python")
	fl.StringSliceVar(&f.python.exports, "export-plugin", nil, "run this export function of a module when all resources are made")
}

// pythonArguments are the arguments with which the server's compiler runs Python as it is set.
func pythonArguments(c *config.Config) []string {
	if p := c.String("compiler", "python"); p != "" {
		return []string{"--python", p}
	}
	return nil
}

// pythonHost makes what runs the Python code of the project in dir: with the interpreter of the project's environment, if it has
// one.
func (f *compileFlags) pythonHost(dir string, opts lang.Options, environment string) (*compilehost.Host, error) {
	cfg := compilehost.Config{
		Interpreter: f.python.interpreter, Disabled: f.python.disabled, ProjectDir: dir, Env: os.Environ(),
		Environment: opts.Inputs.Environment.ID, Stdout: opts.Stdout, ShareGroup: f.python.confined,
		Exports: f.python.exports,
	}
	if a := f.python.attach; len(a) == 2 {
		cfg.Attach = [2]*os.File{os.NewFile(uintptr(a[0]), "to-python"), os.NewFile(uintptr(a[1]), "from-python")}
	}
	for _, section := range []string{"compiler_rest_transport", "client_rest_transport"} {
		for name, setting := range map[string]string{"host": "server-address", "port": "server-port", "ssl": "server-ssl", "ssl-ca-cert-file": "server-ca"} {
			if v := opts.Inputs.Settings[setting]; v != "" {
				cfg.Settings = append(cfg.Settings, [3]string{section, name, v})
			}
		}
	}
	if environment != "" {
		cfg.Interpreter = environment
	}
	if cfg.Interpreter == "" && f.g != nil {
		c, err := f.g.load(nil)
		if err != nil {
			return nil, err
		}
		cfg.Interpreter = c.String("compiler", "python")
	}
	// Who has no home keeps nothing.
	if dir, err := cacheDir(); err == nil {
		cfg.Cache = filepath.Join(dir, "python")
	}
	cfg.Stderr = func(line string) { _, _ = fmt.Fprintln(os.Stderr, line) }
	return compilehost.New(cfg), nil
}
