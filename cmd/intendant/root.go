package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/intendant/intendant/config"
)

// globals are the flags that every command has.
type globals struct {
	configFile string
	verbose    int
	logFormat  string
}

// load reads the settings, with values of a command's own flags by "section.name".
func (g *globals) load(flags map[string]string) (*config.Config, error) {
	c, err := config.Load(options(), config.System(g.configFile, flags))
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return c, nil
}

// logger writes to w: coloured for people on a terminal, JSON lines elsewhere, unless the format is set.
func (g *globals) logger(c *config.Config, w *os.File) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(c.String("logging", "level"))) // checked when loaded
	if g.verbose > 0 {
		level = slog.LevelDebug
	}
	format := g.logFormat
	if format == "" {
		format = c.String("logging", "format")
	}
	terminal := term.IsTerminal(int(w.Fd()))
	if format == "auto" {
		format = "json"
		if terminal {
			format = "text"
		}
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, NoColor: !terminal || os.Getenv("NO_COLOR") != "", TimeFormat: "15:04:05.000"}))
}

// newRootCommand builds the whole command line.
func newRootCommand() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:   "intendant",
		Short: "Push to git, see it deployed: an autonomous orchestrator for declarative models",
		Long: `Push to git, see it deployed: an autonomous orchestrator for declarative models.

For authors of models: project init, check, compile, fmt, eval, graph, lsp, explain, module. For a server: server, agent, and all
others. Every command has the exit status 0 when it did what it was asked for, 1 when that did not work out (a model with faults, a
refused request), 2 when the command line makes no sense, and 3 for a fault of the program itself.`,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVarP(&g.configFile, "config", "c", "", "read this configuration file after the usual ones")
	root.PersistentFlags().CountVarP(&g.verbose, "verbose", "v", "log more")
	root.PersistentFlags().StringVar(&g.logFormat, "log-format", "", "text or json (default: text on a terminal, json elsewhere)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: exitUsage, err: fmt.Errorf("%w\nsee '%s --help'", err, cmd.CommandPath())}
	})
	root.AddCommand(commands(g)...)
	usageErrors(root)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) { // only then, as it would take two fifths of each start
			completions(root)
		}
	}
	return root
}

// commands lists the subcommands in the order of the help.
func commands(g *globals) []*cobra.Command {
	agent := newAgentCommand(g)
	agent.AddCommand(agentCommands(g)...)
	return []*cobra.Command{
		newServerCommand(g),
		newCompileCommand(g),
		newCheckCommand(g),
		newFormatCommand(),
		newLSPCommand(g),
		newExplainCommand(),
		newEvalCommand(g),
		newGraphCommand(g),
		newExportCommand(g),
		newDeployCommand(g),
		agent,
		newStatusCommand(g),
		newModuleCommand(g),
		newProjectCommand(g),
		newEnvironmentCommand(g),
		newRepositoryCommand(g),
		newDeliveryCommand(g),
		newReportCommand(g),
		newVersionCommand(g),
		newResourceCommand(g),
		newDryRunCommand(g),
		newParamCommand(g),
		newActionLogCommand(g),
		newMonitorCommand(g),
		newHookCommand(g),
		newConfigCommand(g),
	}
}

// usageErrors gives wrong arguments the exit status of a wrong command line, in every command, and makes an unknown
// subcommand of a group an error instead of a silent help text.
func usageErrors(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(c *cobra.Command, args []string) error {
		if c.HasAvailableSubCommands() && len(args) > 0 && c.Run == nil {
			text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
			c.SuggestionsMinimumDistance = 2
			if like := c.SuggestionsFor(args[0]); len(like) > 0 {
				text += "; did you mean " + strings.Join(like, " or ") + "?"
			}
			return &exitError{code: exitUsage, err: fmt.Errorf("%s\nsee '%s --help'", text, c.CommandPath())}
		}
		if err := check(c, args); err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("%w\nusage: %s", err, c.UseLine())}
		}
		return nil
	}
	if cmd.HasSubCommands() && cmd.RunE == nil && cmd.Run == nil {
		cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
}

// version is set by the build (-ldflags "-X main.version=1.2.3").
var version = ""

// buildVersion names the build: the release, or the commit that it was made from.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

// newConfigCommand prints the settings in force.
func newConfigCommand(g *globals) *cobra.Command {
	var reference bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force and where each came from",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reference {
				return printReference(cmd.OutOrStdout())
			}
			c, err := g.load(nil)
			if err != nil {
				return err
			}
			return printConfig(cmd.OutOrStdout(), c)
		},
	}
	cmd.Flags().BoolVar(&reference, "reference", false, "print all options with their defaults as a Markdown page instead")
	return cmd
}

// printReference writes docs/operations/configuration.md, which a test holds true.
func printReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Configuration

Settings come, from weakest to strongest, from: the defaults below; ` + "`/etc/intendant/intendant.cfg`" + `; the files ` + "`/etc/intendant/intendant.d/*.cfg`" + `
in order; ` + "`~/.intendant.cfg`; `.inmanta` and `.intendant`" + ` in the working directory; the file given with ` + "`-c`" + `; environment variables
` + "`INMANTA_<SECTION>_<OPTION>` and `INTENDANT_<SECTION>_<OPTION>`" + `; flags. The reference's own places (` + "`/etc/inmanta`, `~/.inmanta.cfg`" + `) are
read too, before ours. ` + "`intendant config`" + ` prints what is in force and where each value came from. Times are in seconds, or with a
unit (` + "`5m`" + `).
`)
	section := ""
	for _, o := range options() {
		if o.Section != section {
			section = o.Section
			fmt.Fprintf(&b, "\n## [%s]\n\n| Option | Default | Meaning |\n|---|---|---|\n", section)
		}
		text := o.Default
		switch o.Section + "." + o.Name {
		case "config.state-dir":
			text = "/var/lib/intendant for root, else ~/.local/share/intendant"
		case "config.node-name":
			text = "the host's name"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, text, o.Doc)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printConfig(w io.Writer, c *config.Config) error {
	section := ""
	for _, v := range c.All() {
		if v.Option.Section != section {
			section = v.Option.Section
			if _, err := fmt.Fprintf(w, "\n[%s]\n", section); err != nil {
				return err
			}
		}
		text := strings.ReplaceAll(v.Text, "\n", "\n    ")
		if v.Option.Secret && text != "" {
			text = "**********"
		}
		if _, err := fmt.Fprintf(w, "# %s (from %s)\n%s = %s\n", v.Option.Doc, v.Origin, v.Option.Name, text); err != nil {
			return err
		}
	}
	return nil
}
