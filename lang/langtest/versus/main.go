// Command versus compiles generated models with intendant and with the reference implementation, one after the other on the same
// machine, and prints a table of both as Markdown.
//
//	go run ./lang/langtest/versus -python /path/to/python -intendant bin/intendant
//
// The Python must be able to import the package inmanta. All times are processor time, user and system, of all threads: what else
// the machine does changes them little. What the reference spends on importing its packages is listed apart from the compile itself;
// for intendant the compile is the process less what it takes to start and to print its help.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/intendant/intendant/lang/langtest"
)

//go:embed reference.py
var reference []byte

// measurement is what a compile took, in processor time.
type measurement struct {
	Import    time.Duration // of the reference's packages
	Compile   time.Duration // from the first file to the end
	Whole     time.Duration // the process
	Peak      int64         // resident memory, in KiB
	Instances int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if len(os.Args) > 1 && chores[os.Args[1]] != nil {
		err = chores[os.Args[1]](os.Args[2:])
	} else {
		err = run(ctx)
	}
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

// chores are what this program does in processes of their own, by the name that is their first argument. Linux counts to the peak of a
// process that of the one that started it (setup_new_exec), so the one that measures must stay small.
var chores = map[string]func(args []string) error{
	"write": write,
	"count": count,
}

// chore runs one of them, and returns what it prints.
func chore(ctx context.Context, args ...string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	out, _, err := output(exec.CommandContext(ctx, self, args...))
	return out, err
}

// write writes a model: its kind, the number of instances, the directory.
func write(args []string) error {
	if len(args) != 3 {
		return errors.New("a kind, a number of instances and a directory are needed")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("the number of instances: %w", err)
	}
	for _, s := range langtest.Shapes() {
		if s.Name == args[0] {
			return os.CopyFS(args[2], s.Project(n))
		}
	}
	return fmt.Errorf("there is no kind of model %q", args[0])
}

// count prints the number of instances of a compile's result, a file.
func count(args []string) error {
	if len(args) != 1 {
		return errors.New("a file is needed")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var r struct {
		Stats struct{ Instances int }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, r.Stats.Instances)
	return err
}

func run(ctx context.Context) error {
	python := flag.String("python", os.Getenv("REFERENCE_PYTHON"), "a Python that has the reference's package")
	intendant := flag.String("intendant", "bin/intendant", "the program")
	sizes := flag.String("sizes", "100,1000,10000,100000", "numbers of instances")
	shapes := flag.String("shapes", "", "kinds of models, separated by commas; empty for all")
	runs := flag.Int("runs", 3, "how often the reference compiles a small model, and a third of how often intendant does; the least time counts")
	flag.Parse()
	if *python == "" {
		return errors.New("name a Python that has the reference's package, by -python or REFERENCE_PYTHON")
	}
	dir, err := os.MkdirTemp("", "versus-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	v := &versus{python: *python, intendant: *intendant, dir: dir, script: filepath.Join(dir, "reference.py")}
	if err := os.WriteFile(v.script, reference, 0o600); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	start, err := best(5*max(1, *runs), func() (measurement, error) { return v.start(ctx) })
	if err != nil {
		return fmt.Errorf("starting intendant: %w", err)
	}
	v.started = start.Whole
	_, _ = fmt.Fprintf(os.Stdout, "Intendant starts and prints its help in %s.\n\n", seconds(v.started))
	_, _ = fmt.Fprintln(os.Stdout, "| model | instances | reference: imports | compile | process | peak | intendant: compile | process | peak | compile × | process × |")
	_, _ = fmt.Fprintln(os.Stdout, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, s := range langtest.Shapes() {
		if *shapes != "" && !slices.Contains(strings.Split(*shapes, ","), s.Name) {
			continue
		}
		for size := range strings.SplitSeq(*sizes, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				return fmt.Errorf("-sizes: %w", err)
			}
			if err := v.row(ctx, s, n, *runs); err != nil {
				return err
			}
		}
	}
	return nil
}

type versus struct {
	python, intendant, dir, script string
	started                        time.Duration // what intendant takes to start
}

// large is the number of instances from which the reference compiles a model once only.
const large = 10_000

// row compares both on one model.
func (v *versus) row(ctx context.Context, s langtest.Shape, n, runs int) error {
	dir := filepath.Join(v.dir, fmt.Sprintf("%s-%d", s.Name, n))
	if _, err := chore(ctx, "write", s.Name, strconv.Itoa(n), dir); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	theirRuns := runs
	if n >= large {
		theirRuns = 1
	}
	theirs, err := best(theirRuns, func() (measurement, error) { return v.reference(ctx, dir) })
	if err != nil {
		return fmt.Errorf("the reference on %s: %w", dir, err)
	}
	ours, err := best(3*runs, func() (measurement, error) { return v.ours(ctx, dir) })
	if err != nil {
		return fmt.Errorf("intendant on %s: %w", dir, err)
	}
	if ours.Instances != theirs.Instances {
		return fmt.Errorf("%s: intendant makes %d instances and the reference %d: they did not do the same work", dir, ours.Instances, theirs.Instances)
	}
	_, _ = fmt.Fprintf(os.Stdout, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", s.Name, ours.Instances,
		seconds(theirs.Import), seconds(theirs.Compile), seconds(theirs.Whole), mebibytes(theirs.Peak),
		seconds(ours.Compile), seconds(ours.Whole), mebibytes(ours.Peak),
		ratio(theirs.Compile, ours.Compile), ratio(theirs.Whole, ours.Whole))
	return nil
}

// best is the fastest of several runs.
func best(runs int, measure func() (measurement, error)) (measurement, error) {
	var out measurement
	for i := range max(1, runs) {
		m, err := measure()
		if err != nil {
			return m, err
		}
		if i == 0 || m.Whole < out.Whole {
			out = m
		}
	}
	return out, nil
}

func (v *versus) reference(ctx context.Context, dir string) (measurement, error) {
	out, state, err := output(exec.CommandContext(ctx, v.python, v.script, dir))
	if err != nil {
		return measurement{}, err
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var r struct {
		Import, Compile float64
		Peak            int64
		Instances       int
	}
	if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
		return measurement{}, fmt.Errorf("reading what it took: %w", err)
	}
	return measurement{
		Import: time.Duration(r.Import * float64(time.Second)), Compile: time.Duration(r.Compile * float64(time.Second)),
		Whole: state.UserTime() + state.SystemTime(),
		Peak:  r.Peak, Instances: r.Instances,
	}, nil
}

func (v *versus) ours(ctx context.Context, dir string) (measurement, error) {
	result := dir + ".json"
	_, state, err := output(exec.CommandContext(ctx, v.intendant, "compile", dir, "--result", result))
	if err != nil {
		return measurement{}, err
	}
	counted, err := chore(ctx, "count", result)
	if err != nil {
		return measurement{}, fmt.Errorf("reading the result: %w", err)
	}
	instances, err := strconv.Atoi(string(bytes.TrimSpace(counted)))
	if err != nil {
		return measurement{}, fmt.Errorf("reading the result: %w", err)
	}
	whole := state.UserTime() + state.SystemTime()
	m := measurement{Whole: whole, Compile: max(whole-v.started, time.Microsecond), Instances: instances}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		m.Peak = usage.Maxrss
	}
	return m, nil
}

// start measures a process that does nothing but to start.
func (v *versus) start(ctx context.Context) (measurement, error) {
	_, state, err := output(exec.CommandContext(ctx, v.intendant, "compile", "--help"))
	if err != nil {
		return measurement{}, err
	}
	return measurement{Whole: state.UserTime() + state.SystemTime()}, nil
}

// output runs a command.
func output(cmd *exec.Cmd) ([]byte, *os.ProcessState, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return stdout.Bytes(), cmd.ProcessState, nil
}

func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func mebibytes(kib int64) string { return fmt.Sprintf("%d MiB", kib>>10) }

func ratio(theirs, ours time.Duration) string {
	return fmt.Sprintf("%.0f", float64(theirs)/float64(ours))
}
