package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/python/executor"
)

// options lists every setting of the program, in the order in which `intendant config` prints them.
func options() []config.Option {
	o := []config.Option{
		{Section: "config", Name: "state-dir", Default: defaultStateDir(), Doc: "Everything that the server keeps outside the database: built-in PostgreSQL, git mirrors, agents' state, the master key."},
		{Section: "config", Name: "environment", Doc: "The environment that commands speak of when none is named."},
		{Section: "config", Name: "node-name", Default: hostname(), Doc: "The name of this machine; an agent's default name."},

		{Section: "server", Name: "bind-address", Default: "127.0.0.1", Doc: "Address to listen on."},
		{Section: "server", Name: "bind-port", Default: "8888", Check: config.CheckPort, Doc: "Port to listen on."},
		{Section: "server", Name: "server-address", Default: "localhost", Doc: "Address that agents elsewhere and webhooks reach the server under."},
		{Section: "server", Name: "allow-insecure", Default: "false", Check: config.CheckBool, Doc: "Listen beyond loopback although calls are not authenticated yet: only behind a proxy that does it."},
		{Section: "server", Name: "ssl-cert-file", Doc: "Certificate chain in PEM form; with ssl-key-file it turns TLS on."},
		{Section: "server", Name: "ssl-key-file", Doc: "Private key of the certificate, in PEM form."},
		{Section: "server", Name: "max-request-body-size", Default: strconv.Itoa(100 << 20), Check: config.CheckInt, Doc: "Largest request body, in bytes, before and after decompression."},
		{Section: "server", Name: "access-control-allow-origin", Doc: "Origin that browsers may call the API from, besides the console's own."},
		{Section: "server", Name: "compiler-report-retention", Default: "604800", Check: config.CheckDuration, Doc: "Age at which compile reports are deleted."},
		{Section: "server", Name: "fact-expire", Default: "3600", Check: config.CheckDuration, Doc: "Age at which a fact that expires is not used any more."},
		{Section: "server", Name: "fact-renew", Default: "1200", Check: config.CheckDuration, Doc: "Age at which a fact that expires is read again."},
		{Section: "server", Name: "fact-resource-block", Default: "60", Check: config.CheckDuration, Doc: "How long a resource is not asked for its facts again."},
		{Section: "server", Name: "master-key-file", Doc: "Key of 32 bytes (64 hexadecimal digits) that encrypts credentials in the database; empty: master.key in state-dir, made at first use."},

		{Section: "database", Name: "url", Secret: true, Doc: "Connection URL of a PostgreSQL of your own; empty: the built-in one, or host and name below."},
		{Section: "database", Name: "host", Doc: "Host of a PostgreSQL of your own, if there is no url."},
		{Section: "database", Name: "port", Default: "5432", Check: config.CheckPort, Doc: "Its port."},
		{Section: "database", Name: "name", Default: "intendant", Doc: "Name of the database."},
		{Section: "database", Name: "username", Default: "postgres", Doc: "Role to connect as."},
		{Section: "database", Name: "password", Secret: true, Doc: "Its password."},
		{Section: "database", Name: "dir", Doc: "Directory of the built-in PostgreSQL; empty: postgres in state-dir."},
		{Section: "database", Name: "bin-dir", Doc: "Directory with postgres and initdb for the built-in one; bundle: those inside this program; empty: look for them."},
		{Section: "database", Name: "wait-time", Default: "0", Check: config.CheckDuration, Doc: "How long to keep trying to connect at start."},

		{Section: "git", Name: "poll-interval", Default: "60", Check: config.CheckDuration, Doc: "How often a repository is asked for news unless it has its own interval."},
		{Section: "git", Name: "timeout", Default: "120", Check: config.CheckDuration, Doc: "Longest time for one fetch."},
		{Section: "git", Name: "allow-local", Default: "true", Check: config.CheckBool, Doc: "Allow repositories on this machine (file:// and paths)."},
		{Section: "git", Name: "block-private-networks", Default: "false", Check: config.CheckBool, Doc: "Refuse repositories at private addresses; link-local ones are always refused."},

		{Section: "compiler", Name: "workers", Default: "2", Check: config.CheckInt, Doc: "How many compiles this server runs at once; 0 leaves them to other servers."},
		{Section: "compiler", Name: "timeout", Default: "600", Check: config.CheckDuration, Doc: "Longest time for one compile."},
		{Section: "compiler", Name: "memory-limit", Default: strconv.Itoa(4 << 30), Check: config.CheckInt, Doc: "Most memory for one compile, in bytes."},
		{Section: "compiler", Name: "python", Doc: "Python interpreter (3.9 or later) that runs the code of modules while compiling, and that their environments are made of; empty: python3 of the PATH."},

		{Section: "python", Name: "index-url", Secret: true, Doc: "Package index for projects that name none in project.yml."},
		{Section: "python", Name: "extra-index-url", Secret: true, Doc: "Further package indexes, separated by commas."},
		{Section: "python", Name: "find-links", Doc: "Directories with wheels, separated by commas, for every project."},
		{Section: "python", Name: "no-index", Default: "false", Check: config.CheckBool, Doc: "Take packages from find-links only."},
		{Section: "python", Name: "only-binary", Default: "false", Check: config.CheckBool, Doc: "Refuse packages without a wheel: installing those runs their build scripts as the user of this program."},
		{Section: "python", Name: "use-system-config", Default: "false", Check: config.CheckBool, Doc: "For projects that name no index: use the one that pip is set up with on this machine."},

		{Section: "agent", Name: "state-dir", Doc: "Where an agent keeps results not yet acknowledged and its last desired state; empty: agent in state-dir."},
		{Section: "agent", Name: "task-timeout", Default: "600", Check: config.CheckDuration, Doc: "Longest time for one task unless its resource says otherwise."},
		{Section: "agent", Name: "prefetch", Default: "32", Check: config.CheckInt, Doc: "How many resources the server hands to an agent ahead; the agent still works on as many at once as its parallelism says."},
		{Section: "agent", Name: "parallelism", Default: "1", Check: config.CheckInt, Doc: "How many resources of one agent are worked on at once."},
		{Section: "agent", Name: "handler-programs", Doc: "Programs with handlers in Go or another language, and directories of such, separated by colons; see the guide on handlers."},

		{Section: "agent", Name: "map", Doc: "The machines that agents work on, as name=address,…: an address is local: or ssh://[user@]host[:port]; agents without an entry are where the environment's setting autostart_agent_map says, else on their own machine. Handlers of modules that use SSH look at it; built-in ones refuse to work for an agent elsewhere."},
		{Section: "agent", Name: "python", Doc: "Python interpreter for handlers of modules: a path, a command or a version such as 3.12; empty: the first one of the PATH."},
		{Section: "agent", Name: "executor-cap", Default: "3", Check: config.CheckInt, Doc: "How many processes with handlers of modules one agent keeps; beyond them idle ones are stopped."},
		{Section: "agent", Name: "executor-processes", Default: "64", Check: config.CheckInt, Doc: "How many such processes all agents of one agent process keep together."},
		{Section: "agent", Name: "executor-retention-time", Default: "60", Check: config.CheckDuration, Doc: "How long such a process is kept when it has nothing to do."},
		{Section: "agent", Name: "executor-venv-retention-time", Default: "3600", Check: config.CheckDuration, Doc: "How long a Python environment is kept that nobody uses; those that the present desired state needs are always kept."},
		{Section: "agent", Name: "executor-memory-limit", Default: "2147483648", Check: config.CheckInt, Doc: "Most memory that one such process and all that it started may hold together, in bytes; beyond it they are killed and the resource fails. 0 is no limit."},
		{Section: "agent", Name: "executor-grace", Default: "5", Check: config.CheckDuration, Doc: "How long a handler that was interrupted at its deadline may take to end before its process is killed."},
		{Section: "agent", Name: "pip-index-url", Secret: true, Doc: "Package index for handlers of modules whose project names none; empty: none."},
		{Section: "agent", Name: "pip-find-links", Doc: "Directories with wheels, separated by colons, that are searched besides any index."},
		{Section: "agent", Name: "pip-use-system-config", Default: "false", Check: config.CheckBool, Doc: "Whether the machine's own configuration of pip counts when the project names no index."},
		{Section: "agent", Name: "ssh-key", Doc: "Private keys, separated by colons, to log in to other machines with; empty: those of the user, besides the user's SSH agent."},
		{Section: "agent", Name: "ssh-known-hosts", Doc: "Files of known machines, separated by colons; empty: the user's, and the system's."},
		{Section: "agent", Name: "ssh-host-keys", Default: "strict", Check: checkHostKeys, Doc: "What to do about a machine that is not known: strict refuses it, accept-new notes its key."},

		{Section: "logging", Name: "level", Default: "info", Check: checkLevel, Doc: "debug, info, warn or error."},
		{Section: "logging", Name: "format", Default: "auto", Check: checkFormat, Doc: "text, json, or auto: text on a terminal, json elsewhere."},
	}
	for _, t := range []string{"client", "cmdline", "compiler", "agent"} {
		section := t + "_rest_transport"
		o = append(o,
			config.Option{Section: section, Name: "host", Default: "localhost", Doc: "Server to speak to."},
			config.Option{Section: section, Name: "port", Default: "8888", Check: config.CheckPort, Doc: "Its port."},
			config.Option{Section: section, Name: "ssl", Default: "false", Check: config.CheckBool, Doc: "Whether it speaks TLS."},
			config.Option{Section: section, Name: "ssl-ca-cert-file", Doc: "Certificates to verify it with, in PEM form, besides the system's."},
			config.Option{Section: section, Name: "token", Secret: true, Doc: "Token to identify with."},
			config.Option{Section: section, Name: "request-timeout", Default: "120", Check: config.CheckDuration, Doc: "Longest time for one call."},
		)
	}
	return o
}

// defaultStateDir is the machine's for root, the user's own otherwise.
func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/intendant"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "intendant")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "data"
	}
	return filepath.Join(home, ".local", "share", "intendant")
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

func checkLevel(s string) error {
	var l slog.Level
	if l.UnmarshalText([]byte(s)) != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

func checkHostKeys(s string) error {
	switch s {
	case executor.HostKeysStrict, executor.HostKeysAcceptNew:
		return nil
	}
	return fmt.Errorf("must be %s or %s", executor.HostKeysStrict, executor.HostKeysAcceptNew)
}

func checkFormat(s string) error {
	switch s {
	case "auto", "text", "json":
		return nil
	}
	return errors.New("must be auto, text or json")
}
