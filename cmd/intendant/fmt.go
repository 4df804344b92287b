package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// formatFlags are the flags of intendant fmt.
type formatFlags struct {
	list  bool
	diff  bool
	check bool
}

// newFormatCommand gives source files their usual layout.
func newFormatCommand() *cobra.Command {
	f := &formatFlags{}
	cmd := &cobra.Command{
		Use:   "fmt [FILE|DIR]...",
		Short: "Give source files their usual layout",
		Long: `Rewrite source files in their usual layout; comments stay, and so does the meaning.

Of a directory (default: the current one) all .cf files are taken, but for those in hidden directories. The name - stands for
standard input, which is formatted to standard output. With -l, -d or --check nothing is written. A file with syntax errors
is left alone and reported, and the exit status is 1.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return f.run(args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.list, "list", "l", false, "list the files whose layout differs, and write nothing")
	fl.BoolVarP(&f.diff, "diff", "d", false, "show what would change, and write nothing")
	fl.BoolVar(&f.check, "check", false, "list the files whose layout differs, write nothing, and exit with status 1 if there are any")
	return cmd
}

func (f *formatFlags) run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	failed := false
	for _, arg := range args {
		names, err := sourceFiles(arg)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		for _, name := range names {
			ok, err := f.file(name, stdin, stdout, stderr)
			if err != nil {
				return &exitError{code: exitInternal, err: err}
			}
			failed = failed || !ok
		}
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// sourceFiles lists the files that an argument stands for.
func sourceFiles(arg string) ([]string, error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("looking for files to format: %w", err)
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	var names []string
	err = filepath.WalkDir(arg, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != arg && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.Type().IsRegular() && filepath.Ext(name) == ".cf":
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for files to format: %w", err)
	}
	return names, nil
}

// file formats one file. It is false when the file has syntax errors, or when its layout differs and that was the question.
func (f *formatFlags) file(name string, stdin io.Reader, stdout, stderr io.Writer) (bool, error) {
	title, read := name, func() ([]byte, error) { return os.ReadFile(name) }
	if name == "-" {
		title, read = "<stdin>", func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	src, err := read()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", title, err)
	}
	out, err := syntax.Format(src)
	if bad, ok := errors.AsType[*syntax.FormatError](err); ok {
		return false, printFormatFaults(stderr, title, src, bad.Diags)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", title, err)
	}
	same := bytes.Equal(src, out)
	dry := f.list || f.diff || f.check
	if !same && (f.list || f.check) {
		if _, err := fmt.Fprintln(stdout, title); err != nil {
			return false, fmt.Errorf("listing files: %w", err)
		}
	}
	if !same && f.diff {
		if _, err := stdout.Write(diff.Diff(title+".orig", src, title, out)); err != nil {
			return false, fmt.Errorf("showing differences: %w", err)
		}
	}
	switch {
	case dry:
		return same || !f.check, nil
	case name == "-":
		if _, err := stdout.Write(out); err != nil {
			return false, fmt.Errorf("writing the result: %w", err)
		}
	case !same:
		if err := replaceFile(name, out); err != nil {
			return false, err
		}
	}
	return true, nil
}

// printFormatFaults reports why a text can not be formatted, under the name by which the user knows it.
func printFormatFaults(w io.Writer, title string, src []byte, ds diag.List) error {
	for i := range ds {
		ds[i].Range.File = title
		for j := range ds[i].Related {
			ds[i].Related[j].Range.File = title
		}
	}
	p := diag.Printer{Source: func(file string) ([]byte, bool) { return src, file == title }}
	if file, ok := w.(*os.File); ok {
		p.Color = term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	}
	if err := p.Print(w, ds); err != nil {
		return fmt.Errorf("writing diagnostics: %w", err)
	}
	return nil
}

// replaceFile gives a file another content at once: a reader sees the old one or the new one. Its mode stays, and a symbolic
// link stays a link.
func replaceFile(name string, content []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}()
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
