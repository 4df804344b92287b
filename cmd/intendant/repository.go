package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/intendant/intendant/api"
)

func newRepositoryCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "repository", Aliases: []string{"repo"}, Short: "Git repositories: credentials, polling, webhooks"}
	r.serverFlags(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the repositories",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			all, err := s.Repositories(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, x := range all {
				rows = append(rows, []string{x.Name, x.URL, x.Provider, x.Poll, when(x.LastSynced), x.LastError})
			}
			return s.table([]string{"Name", "URL", "Webhooks", "Poll", "Last looked at", "Error"}, rows, "There are no repositories.")
		},
	}, r.repositoryOne("show", "Show a repository", func(cmd *cobra.Command, s *session, name string) error {
		x, err := s.Repository(cmd.Context(), name)
		if err != nil {
			return err
		}
		return s.repository(x)
	}), r.repositoryWrite("create", "Create a repository"), r.repositoryWrite("modify", "Change a repository; what is not given stays"),
		r.repositoryOne("sync", "Look for news now", func(cmd *cobra.Command, s *session, name string) error {
			return s.SyncRepository(cmd.Context(), name)
		}), r.repositoryOne("delete", "Delete a repository that no environment uses", func(cmd *cobra.Command, s *session, name string) error {
			return s.DeleteRepository(cmd.Context(), name)
		}))
	return cmd
}

// repositoryOne is a command about one repository, named by its argument.
func (r *remote) repositoryOne(use, short string, run func(cmd *cobra.Command, s *session, name string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			return run(cmd, s, args[0])
		},
	}
}

func (s *session) repository(x api.Repository) error {
	if done, err := s.value(x); done {
		return err
	}
	return s.facts([2]string{"Name", x.Name}, [2]string{"URL", x.URL}, [2]string{"Webhooks", x.Provider},
		[2]string{"Webhook address", s.BaseURL() + x.WebhookPath}, [2]string{"Webhook secrets", strconv.Itoa(x.WebhookSecrets)},
		[2]string{"Username", x.Username}, [2]string{"Password", yesNo(x.HasPassword)}, [2]string{"SSH key", yesNo(x.HasSSHKey)},
		[2]string{"Poll", x.Poll}, [2]string{"Last looked at", when(x.LastSynced)}, [2]string{"Error", x.LastError},
		[2]string{"Environments", strings.Join(x.Environments, ", ")})
}

func (r *remote) repositoryWrite(use, short string) *cobra.Command {
	var repoURL, provider, username, poll, passwordFile, keyFile, passphraseFile, hostsFile string
	var secretFiles []string
	cmd := &cobra.Command{
		Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			var w api.RepositoryWrite
			for flag, v := range map[string]struct {
				text string
				to   **string
			}{"url": {repoURL, &w.URL}, "provider": {provider, &w.Provider}, "username": {username, &w.Username}, "poll": {poll, &w.Poll}} {
				if cmd.Flags().Changed(flag) {
					*v.to = &v.text
				}
			}
			for flag, v := range map[string]struct {
				file string
				to   **string
			}{
				"password-file": {passwordFile, &w.Password}, "ssh-key-file": {keyFile, &w.SSHKey},
				"ssh-key-passphrase-file": {passphraseFile, &w.SSHKeyPassphrase}, "known-hosts-file": {hostsFile, &w.KnownHosts},
			} {
				if !cmd.Flags().Changed(flag) {
					continue
				}
				text, err := secretFile(v.file)
				if err != nil {
					return fmt.Errorf("--%s: %w", flag, err)
				}
				*v.to = &text
			}
			if cmd.Flags().Changed("webhook-secret-file") {
				secrets := []string{}
				for _, f := range secretFiles {
					text, err := secretFile(f)
					if err != nil {
						return fmt.Errorf("--webhook-secret-file: %w", err)
					}
					secrets = append(secrets, strings.TrimSpace(text))
				}
				w.WebhookSecrets = &secrets
			}
			write := s.UpdateRepository
			if use == "create" {
				write = s.CreateRepository
			}
			x, err := write(cmd.Context(), args[0], w)
			if err != nil {
				return err
			}
			return s.repository(x)
		},
	}
	f := cmd.Flags()
	f.StringVar(&repoURL, "url", "", "URL of the repository")
	f.StringVar(&provider, "provider", "", "whose webhooks to accept: github, gitlab, gitea, forgejo, bitbucket, bitbucket-dc, generic")
	f.StringArrayVar(&secretFiles, "webhook-secret-file", nil, "file with a webhook secret; give it twice while rotating")
	f.StringVar(&username, "username", "", "user for HTTPS")
	f.StringVar(&passwordFile, "password-file", "", "file with the password or token for HTTPS")
	f.StringVar(&keyFile, "ssh-key-file", "", "file with the private key for SSH")
	f.StringVar(&passphraseFile, "ssh-key-passphrase-file", "", "file with the key's passphrase")
	f.StringVar(&hostsFile, "known-hosts-file", "", "file with the host keys to accept, as ~/.ssh/known_hosts")
	f.StringVar(&poll, "poll", "", "how often to look for news: seconds, a cron expression, 0 for never")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions([]string{"github", "gitlab", "gitea", "forgejo", "bitbucket", "bitbucket-dc", "generic"}, cobra.ShellCompDirectiveNoFileComp))
	if use == "create" {
		_ = cmd.MarkFlagRequired("url")
	}
	return cmd
}

// secretFile reads a secret. It is never an argument: those are seen by everybody on the machine.
func secretFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return string(b), nil
}

func newDeliveryCommand(g *globals) *cobra.Command {
	r := &remote{g: g}
	cmd := &cobra.Command{Use: "delivery", Short: "Webhook deliveries: what forges sent, and what became of it"}
	r.serverFlags(cmd)
	var repository string
	list := &cobra.Command{
		Use: "list", Short: "List the newest deliveries",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			all, err := s.Deliveries(cmd.Context(), api.ListOptions{Limit: 100, Filter: filters("repository", repository)})
			if err != nil {
				return err
			}
			if done, err := s.value(all); done {
				return err
			}
			var rows [][]string
			for _, d := range all {
				rows = append(rows, []string{when(d.ReceivedAt), d.Repository, d.Key, d.Event, d.Ref, d.Status, d.Detail})
			}
			return s.table([]string{"Received", "Repository", "Key", "Event", "Ref", "Status", "Detail"}, rows, "There are no deliveries.")
		},
	}
	list.Flags().StringVar(&repository, "repository", "", "only those of this repository")
	cmd.AddCommand(list, &cobra.Command{
		Use: "show REPOSITORY KEY", Short: "Show a delivery with its body", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			d, err := s.Delivery(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if done, err := s.value(d); done {
				return err
			}
			if err := s.facts([2]string{"Repository", d.Repository}, [2]string{"Key", d.Key}, [2]string{"Provider", d.Provider}, [2]string{"Event", d.Event},
				[2]string{"Ref", d.Ref}, [2]string{"Received", when(d.ReceivedAt)}, [2]string{"Status", d.Status}, [2]string{"Detail", d.Detail}, [2]string{"Trace", d.Trace}); err != nil {
				return err
			}
			return s.say("\n%s", d.Body)
		},
	}, &cobra.Command{
		Use: "replay REPOSITORY KEY", Short: "Work on a delivery again", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.plain(cmd)
			if err != nil {
				return err
			}
			return s.ReplayDelivery(cmd.Context(), args[0], args[1])
		},
	})
	return cmd
}
