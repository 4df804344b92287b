package server

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// maxSecret is the greatest length of one secret in bytes, and maxSecrets how many webhook secrets may be live.
const (
	maxSecret  = 64 << 10
	maxSecrets = 8
)

type repositoryArgs struct {
	Name string `arg:"name"`
}

type repositoryCreateArgs struct {
	Name             string    `arg:"name" doc:"Lower-case letters, digits, dots, dashes and underscores."`
	URL              string    `arg:"url"`
	Provider         *string   `arg:"provider" enum:",github,gitlab,gitea,forgejo,bitbucket,bitbucket-dc,generic" doc:"Whose webhooks are accepted; empty for none."`
	WebhookSecrets   *[]string `arg:"webhook_secrets" doc:"Any of them verifies a delivery. Write only."`
	Username         *string   `arg:"username"`
	Password         *string   `arg:"password" doc:"A password or token for HTTP(S). Write only."`
	SSHKey           *string   `arg:"ssh_key" doc:"A private key in PEM form. Write only."`
	SSHKeyPassphrase *string   `arg:"ssh_key_passphrase" doc:"Write only."`
	KnownHosts       *string   `arg:"known_hosts" doc:"The accepted host keys, as in the file known_hosts."`
	Poll             *string   `arg:"poll" doc:"Seconds or a cron expression; 0 for never."`
}

type repositoryUpdateArgs struct {
	Name             string    `arg:"name"`
	URL              *string   `arg:"url"`
	Provider         *string   `arg:"provider" enum:",github,gitlab,gitea,forgejo,bitbucket,bitbucket-dc,generic" doc:"Whose webhooks are accepted; empty for none."`
	WebhookSecrets   *[]string `arg:"webhook_secrets" doc:"Any of them verifies a delivery. Replaces those there are. Write only."`
	Username         *string   `arg:"username"`
	Password         *string   `arg:"password" doc:"A password or token for HTTP(S). Write only."`
	SSHKey           *string   `arg:"ssh_key" doc:"A private key in PEM form. Write only."`
	SSHKeyPassphrase *string   `arg:"ssh_key_passphrase" doc:"Write only."`
	KnownHosts       *string   `arg:"known_hosts" doc:"The accepted host keys, as in the file known_hosts."`
	Poll             *string   `arg:"poll" doc:"Seconds or a cron expression; 0 for never."`
}

// repositoryPatch checks what is given and makes what the store takes.
func (s *Server) repositoryPatch(a repositoryUpdateArgs) (model.RepositoryPatch, error) {
	p := model.RepositoryPatch{Username: a.Username, KnownHosts: a.KnownHosts}
	if a.URL != nil {
		address, err := repositoryURL(*a.URL)
		if err == nil && address == "" {
			err = invalidArgument("url", "value_error", "the address of a repository must not be empty")
		}
		if err != nil {
			return p, err
		}
		p.URL = &address
	}
	if a.Provider != nil {
		provider := model.Provider(*a.Provider)
		p.Provider = &provider
	}
	if a.WebhookSecrets != nil {
		if len(*a.WebhookSecrets) > maxSecrets {
			return p, invalidArgument("webhook_secrets", "value_error", "at most %d secrets may be live at once", maxSecrets)
		}
		secrets := named[model.Secret](*a.WebhookSecrets)
		for _, secret := range secrets {
			if len(secret) < 8 || len(secret) > maxSecret {
				return p, invalidArgument("webhook_secrets", "value_error", "a webhook secret must have at least 8 bytes")
			}
		}
		p.WebhookSecrets = &secrets
	}
	for _, x := range []struct {
		name string
		text *string
		into **model.Secret
	}{{"password", a.Password, &p.Password}, {"ssh_key", a.SSHKey, &p.SSHKey}, {"ssh_key_passphrase", a.SSHKeyPassphrase, &p.SSHKeyPassphrase}} {
		if x.text == nil {
			continue
		}
		if len(*x.text) > maxSecret {
			return p, invalidArgument(x.name, "value_error", "%s must not be larger than %d bytes", x.name, maxSecret)
		}
		secret := model.Secret(*x.text)
		*x.into = &secret
	}
	if a.Poll != nil {
		poll := strings.TrimSpace(*a.Poll)
		if n, err := strconv.Atoi(poll); err != nil || n < 0 {
			switch {
			case poll == "" || err == nil:
				return p, invalidArgument("poll", "value_error", "poll must be a number of seconds, a cron expression, or 0 for never")
			case s.config.ValidateCron != nil:
				if err := s.config.ValidateCron(poll); err != nil {
					return p, invalidArgument("poll", "value_error", "poll %q is neither a number of seconds nor a cron expression: %v", poll, err)
				}
			}
		}
		p.Poll = &poll
	}
	return p, nil
}

func (s *Server) repositoryCreate(ctx context.Context, _ *call, a repositoryCreateArgs) (api.Repository, error) {
	if !repositoryID().MatchString(a.Name) {
		return api.Repository{}, invalidArgument("name", "value_error",
			"the name of a repository begins with a letter or digit and has lower-case letters, digits, dots, dashes and underscores only")
	}
	p, err := s.repositoryPatch(repositoryUpdateArgs{
		URL: &a.URL, Provider: a.Provider, WebhookSecrets: a.WebhookSecrets, Username: a.Username, Password: a.Password, SSHKey: a.SSHKey,
		SSHKeyPassphrase: a.SSHKeyPassphrase, KnownHosts: a.KnownHosts, Poll: a.Poll,
	})
	if err != nil {
		return api.Repository{}, err
	}
	r := model.Repository{Name: model.RepositoryName(a.Name), URL: *p.URL, Poll: "60"}
	if p.Provider != nil {
		r.Provider = *p.Provider
	}
	if p.WebhookSecrets != nil {
		r.WebhookSecrets = *p.WebhookSecrets
	}
	for _, x := range []struct {
		from *model.Secret
		into *model.Secret
	}{{p.Password, &r.Password}, {p.SSHKey, &r.SSHKey}, {p.SSHKeyPassphrase, &r.SSHKeyPassphrase}} {
		if x.from != nil {
			*x.into = *x.from
		}
	}
	for _, x := range []struct {
		from *string
		into *string
	}{{p.Username, &r.Username}, {p.KnownHosts, &r.KnownHosts}, {p.Poll, &r.Poll}} {
		if x.from != nil {
			*x.into = *x.from
		}
	}
	if err := s.store.CreateRepository(ctx, r); err != nil {
		return api.Repository{}, err
	}
	return s.repositoryGet(ctx, nil, repositoryArgs{Name: a.Name})
}

func (s *Server) repositoryUpdate(ctx context.Context, _ *call, a repositoryUpdateArgs) (api.Repository, error) {
	p, err := s.repositoryPatch(a)
	if err != nil {
		return api.Repository{}, err
	}
	if _, err := s.store.UpdateRepository(ctx, model.RepositoryName(a.Name), p); err != nil {
		return api.Repository{}, err
	}
	return s.repositoryGet(ctx, nil, repositoryArgs{Name: a.Name})
}

func (s *Server) repositoryGet(ctx context.Context, _ *call, a repositoryArgs) (api.Repository, error) {
	r, err := s.store.Repository(ctx, model.RepositoryName(a.Name))
	if err != nil {
		return api.Repository{}, err
	}
	environments, err := s.store.Environments(ctx, nil)
	return repositoryOf(r, environments), err
}

func (s *Server) repositoryList(ctx context.Context, _ *call, _ struct{}) ([]api.Repository, error) {
	list, err := s.store.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	environments, err := s.store.Environments(ctx, nil)
	return convertAll(list, func(r model.Repository) api.Repository { return repositoryOf(r, environments) }), err
}

func (s *Server) repositoryDelete(ctx context.Context, _ *call, a repositoryArgs) (none, error) {
	return none{}, s.store.DeleteRepository(ctx, model.RepositoryName(a.Name))
}

func (s *Server) repositorySync(ctx context.Context, c *call, a repositoryArgs) (none, error) {
	return none{}, s.store.RequestSync(ctx, model.RepositoryName(a.Name), c.now)
}

func repositoryOf(r model.Repository, environments []model.Environment) api.Repository {
	out := api.Repository{
		Name: string(r.Name), URL: r.URL, Provider: string(r.Provider), WebhookSecrets: len(r.WebhookSecrets), WebhookPath: "/hooks/" + string(r.Name),
		Username: r.Username, HasPassword: r.Password != "", HasSSHKey: r.SSHKey != "", KnownHosts: r.KnownHosts, Poll: r.Poll,
		LastSynced: api.OptionalTime(r.LastSynced), LastError: r.LastError, Environments: []string{},
	}
	for _, e := range environments {
		if e.Repository == r.Name {
			out.Environments = append(out.Environments, e.ID.String())
		}
	}
	return out
}

type deliveryListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"repository, status"`
	Sort    string              `arg:"sort" default:"received.desc"`
}

type deliveryArgs struct {
	Repository string `arg:"repository"`
	Key        string `arg:"key"`
}

var deliveryListing = listing[model.Delivery]{
	sort: map[string]sortColumn[model.Delivery]{
		"received": {timeColumn, func(d model.Delivery) string { return textTime(d.ReceivedAt) }},
	},
	id:      func(d model.Delivery) string { return d.Key },
	filters: []string{"repository", "status"},
}

func (s *Server) deliveryList(ctx context.Context, c *call, a deliveryListArgs) ([]api.Delivery, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := deliveryListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.DeliveryFilter{Statuses: named[model.DeliveryStatus](a.Filter["status"])}
	all := []model.DeliveryStatus{model.DeliveryReceived, model.DeliveryIgnored, model.DeliverySynced, model.DeliveryFailed}
	for _, status := range f.Statuses {
		if !slices.Contains(all, status) {
			return nil, invalidArgument("filter", "value_error", "filter status: %q is not one of %s", status, joinTexts(all))
		}
	}
	switch names := a.Filter["repository"]; len(names) {
	case 0:
	case 1:
		f.Repository = model.RepositoryName(names[0])
	default:
		return nil, invalidArgument("filter", "value_error", "filter repository takes one name")
	}
	list, err := s.store.Deliveries(ctx, f, page)
	if err != nil {
		return nil, err
	}
	deliveryListing.describe(c, args, page, list)
	return convertAll(list.Items, deliveryOf), nil
}

func (s *Server) deliveryGet(ctx context.Context, _ *call, a deliveryArgs) (api.Delivery, error) {
	d, err := s.store.Delivery(ctx, model.RepositoryName(a.Repository), a.Key)
	return deliveryOf(d), err
}

func (s *Server) deliveryReplay(ctx context.Context, c *call, a deliveryArgs) (none, error) {
	return none{}, s.store.ReplayDelivery(ctx, model.RepositoryName(a.Repository), a.Key, c.now)
}

func deliveryOf(d model.Delivery) api.Delivery {
	out := api.Delivery{
		Key: d.Key, Repository: string(d.Repository), Provider: string(d.Provider), Event: d.Event, Ref: d.Ref, Before: d.Before, After: d.After,
		Trace: string(d.Trace), ReceivedAt: api.OptionalTime(d.ReceivedAt), Status: string(d.Status), Detail: d.Detail,
		FinishedAt: api.OptionalTime(d.FinishedAt), Headers: d.Headers, Body: string(d.Body),
	}
	if !utf8.Valid(d.Body) {
		out.Body = base64.StdEncoding.EncodeToString(d.Body)
	}
	return out
}

type journeyListArgs struct {
	Before *string `arg:"before" doc:"Only requests made before this time."`
	Limit  int     `arg:"limit" default:"20"`
}

func (s *Server) journeyList(ctx context.Context, c *call, a journeyListArgs) ([]api.Journey, error) {
	if a.Limit < 1 || a.Limit > maxPage {
		return nil, invalidArgument("limit", "value_error", "limit must be between 1 and %d", maxPage)
	}
	var before time.Time
	if a.Before != nil {
		var err error
		if before, err = api.ParseTime(*a.Before); err != nil {
			return nil, invalidArgument("before", "type_error", "%v", err)
		}
	}
	list, err := s.store.Journeys(ctx, c.env(), before, a.Limit)
	return convertAll(list, func(j model.Journey) api.Journey { return journeyOf(j, c.now) }), err
}

// journeyOf shows a journey and how long it has taken until now, or until it ended.
func journeyOf(j model.Journey, now time.Time) api.Journey {
	out := api.Journey{
		Environment: j.Environment.String(), Revision: revisionOf(j.Revision), Trace: string(j.Trace), Phase: string(j.Phase), Reason: j.Reason,
		ReceivedAt: api.OptionalTime(j.ReceivedAt), RequestedAt: api.OptionalTime(j.RequestedAt), CompileID: j.Job.String(),
		CompileStatus: string(j.Compile), StartedAt: api.OptionalTime(j.StartedAt), FinishedAt: api.OptionalTime(j.FinishedAt), Version: j.Version,
		StoredAt: api.OptionalTime(j.StoredAt), ReleasedAt: api.OptionalTime(j.ReleasedAt), Total: j.Total, Deployed: j.Deployed, Failed: j.Failed,
		Waiting: j.Waiting, Blocked: j.Blocked, FirstDeployAt: api.OptionalTime(j.FirstDeployAt), LastDeployAt: api.OptionalTime(j.LastDeployAt),
		ConvergedAt: api.OptionalTime(j.ConvergedAt), Error: j.Error,
	}
	from, to := j.ReceivedAt, now
	if from.IsZero() {
		from = j.RequestedAt
	}
	switch {
	case !j.ConvergedAt.IsZero():
		to = j.ConvergedAt
	case j.Phase == model.JourneyCandidate: // it waits for a person
		to = j.StoredAt
	case j.Phase == model.JourneyFailed || j.Phase == model.JourneySuperseded:
		to = j.FinishedAt
	}
	if !from.IsZero() && to.After(from) {
		out.Seconds = to.Sub(from).Seconds()
	}
	return out
}
