package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// maxBody is how much of a webhook's body is kept, in bytes.
const maxBody = 1 << 20

// place names one secret of a repository for the sealer.
func place(name, column string) string { return "repository " + name + " " + column }

func (s *Store) repositoryOf(r sqlgen.Repository) (model.Repository, error) {
	out := model.Repository{
		Name: model.RepositoryName(r.Name), URL: r.Url, Provider: model.Provider(r.Provider), Username: r.Username, KnownHosts: r.KnownHosts,
		Poll: r.Poll, SyncRequested: timeOf(r.SyncRequestedAt), LastSynced: timeOf(r.LastSyncedAt), LastError: r.LastError,
	}
	for i, sealed := range r.WebhookSecrets {
		secret, err := s.seal.open(sealed, place(r.Name, "webhook secret "+strconv.Itoa(i)))
		if err != nil {
			return model.Repository{}, err
		}
		out.WebhookSecrets = append(out.WebhookSecrets, secret)
	}
	for _, f := range []struct {
		to     *model.Secret
		sealed []byte
		column string
	}{{&out.Password, r.Password, "password"}, {&out.SSHKey, r.SshKey, "ssh key"}, {&out.SSHKeyPassphrase, r.SshKeyPassphrase, "ssh key passphrase"}} {
		secret, err := s.seal.open(f.sealed, place(r.Name, f.column))
		if err != nil {
			return model.Repository{}, err
		}
		*f.to = secret
	}
	return out, nil
}

func (s *Store) repositoriesOf(rows []sqlgen.Repository) ([]model.Repository, error) {
	out := make([]model.Repository, len(rows))
	for i, row := range rows {
		r, err := s.repositoryOf(row)
		if err != nil {
			// One that can not be opened must not hide the others.
			s.log.Error("the secrets of a repository can not be read", "repository", row.Name, "error", err)
			row.WebhookSecrets, row.Password, row.SshKey, row.SshKeyPassphrase, row.LastError = nil, nil, nil, nil, err.Error()
			if r, err = s.repositoryOf(row); err != nil {
				return nil, err
			}
		}
		out[i] = r
	}
	return out, nil
}

func (s *Store) sealWebhookSecrets(name string, secrets []model.Secret) ([][]byte, error) {
	out := make([][]byte, len(secrets))
	for i, secret := range secrets {
		sealed, err := s.seal.seal(secret, place(name, "webhook secret "+strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		out[i] = sealed
	}
	return out, nil
}

// CreateRepository stores a repository, its secrets sealed. [model.ErrConflict]: the name or the URL is taken.
func (s *Store) CreateRepository(ctx context.Context, r model.Repository) error {
	name := string(r.Name)
	p := sqlgen.InsertRepositoryParams{
		Name: name, Url: text(r.URL), Provider: string(r.Provider), Username: text(r.Username), KnownHosts: text(r.KnownHosts), Poll: text(r.Poll),
	}
	var err error
	if p.WebhookSecrets, err = s.sealWebhookSecrets(name, r.WebhookSecrets); err != nil {
		return err
	}
	if p.Password, err = s.seal.seal(r.Password, place(name, "password")); err != nil {
		return err
	}
	if p.SshKey, err = s.seal.seal(r.SSHKey, place(name, "ssh key")); err != nil {
		return err
	}
	if p.SshKeyPassphrase, err = s.seal.seal(r.SSHKeyPassphrase, place(name, "ssh key passphrase")); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.InsertRepository(ctx, p); err != nil {
			return conflict(err, "repository %s (%s): the name or the URL is taken", r.Name, r.URL)
		}
		tx.hint(model.TopicRepository, model.EnvironmentID{}, name)
		return nil
	})
}

// UpdateRepository changes the fields set in the patch and returns the result. A new URL is carried to the environments that
// use the repository. [model.ErrNotFound]; [model.ErrConflict]: the URL is taken.
func (s *Store) UpdateRepository(ctx context.Context, name model.RepositoryName, patch model.RepositoryPatch) (model.Repository, error) {
	var out model.Repository
	err := s.InTx(ctx, func(tx *Tx) error {
		r, err := tx.LockRepository(ctx, string(name))
		if err != nil {
			return notFound(err, "repository %s", name)
		}
		for to, from := range map[*string]*string{
			&r.Url: patch.URL, &r.Username: patch.Username, &r.KnownHosts: patch.KnownHosts, &r.Poll: patch.Poll,
		} {
			if from != nil {
				*to = text(*from)
			}
		}
		if patch.Provider != nil {
			r.Provider = string(*patch.Provider)
		}
		if patch.WebhookSecrets != nil {
			if r.WebhookSecrets, err = s.sealWebhookSecrets(r.Name, *patch.WebhookSecrets); err != nil {
				return err
			}
		}
		for _, f := range []struct {
			to     *[]byte
			secret *model.Secret
			column string
		}{{&r.Password, patch.Password, "password"}, {&r.SshKey, patch.SSHKey, "ssh key"}, {&r.SshKeyPassphrase, patch.SSHKeyPassphrase, "ssh key passphrase"}} {
			if f.secret == nil {
				continue
			}
			if *f.to, err = s.seal.seal(*f.secret, place(r.Name, f.column)); err != nil {
				return err
			}
		}
		err = tx.Queries.UpdateRepository(ctx, sqlgen.UpdateRepositoryParams{
			Url: r.Url, Provider: r.Provider, WebhookSecrets: r.WebhookSecrets, Username: r.Username, Password: r.Password, SshKey: r.SshKey,
			SshKeyPassphrase: r.SshKeyPassphrase, KnownHosts: r.KnownHosts, Poll: r.Poll, Name: r.Name,
		})
		if err != nil {
			return conflict(err, "repository %s: the URL %s is taken", name, r.Url)
		}
		if patch.URL != nil {
			moved, err := tx.SetRepositoryURLOfEnvironments(ctx, r.Url, &r.Name)
			if err != nil {
				return err
			}
			for _, env := range moved {
				tx.hint(model.TopicEnvironment, model.EnvironmentID{UUID: env}, "")
			}
		}
		tx.hint(model.TopicRepository, model.EnvironmentID{}, r.Name)
		out, err = s.repositoryOf(r)
		return err
	})
	return out, err
}

// DeleteRepository removes a repository with its deliveries. [model.ErrNotFound]; [model.ErrConflict]: environments use it.
func (s *Store) DeleteRepository(ctx context.Context, name model.RepositoryName) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.DeleteRepository(ctx, string(name))
		if err != nil {
			return conflict(err, "repository %s is used by environments; point them elsewhere first", name)
		}
		if n == 0 {
			return fmt.Errorf("repository %s: %w", name, model.ErrNotFound)
		}
		tx.hint(model.TopicRepository, model.EnvironmentID{}, string(name))
		return nil
	})
}

// Repository returns one repository with its secrets, or [model.ErrNotFound].
func (s *Store) Repository(ctx context.Context, name model.RepositoryName) (model.Repository, error) {
	r, err := s.read().GetRepository(ctx, string(name))
	if err != nil {
		return model.Repository{}, notFound(err, "repository %s", name)
	}
	return s.repositoryOf(r)
}

// Repositories lists all repositories by name, with their secrets. One whose secrets can not be opened comes without any, and
// with LastError saying why.
func (s *Store) Repositories(ctx context.Context) ([]model.Repository, error) {
	rows, err := s.read().ListRepositories(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return s.repositoriesOf(rows)
}

// RequestSync stores the wish that a repository be fetched now, or fails with [model.ErrNotFound].
func (s *Store) RequestSync(ctx context.Context, name model.RepositoryName, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.RequestSync(ctx, now, string(name))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("repository %s: %w", name, model.ErrNotFound)
		}
		tx.hint(model.TopicRepository, model.EnvironmentID{}, string(name))
		return nil
	})
}

// RecordSync stores the outcome of a fetch: message is empty on success.
func (s *Store) RecordSync(ctx context.Context, name model.RepositoryName, at time.Time, message string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.RecordSync(ctx, text(message), at, string(name))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("repository %s: %w", name, model.ErrNotFound)
		}
		return nil
	})
}

// WatchingEnvironments lists the environments that deploy from a repository and are not halted.
func (s *Store) WatchingEnvironments(ctx context.Context, name model.RepositoryName) ([]model.Environment, error) {
	repository := string(name)
	rows, err := s.read().WatchingEnvironments(ctx, &repository)
	if err != nil {
		return nil, classify(err)
	}
	return environmentsOf(rows)
}

func deliveryOf(d sqlgen.Delivery) (model.Delivery, error) {
	out := model.Delivery{
		Key: d.Key, Repository: model.RepositoryName(d.Repository), Provider: model.Provider(d.Provider), Event: d.Event, Ref: d.Ref,
		Before: d.Before, After: d.After, Trace: model.TraceID(d.Trace), ReceivedAt: d.ReceivedAt.UTC(), Status: model.DeliveryStatus(d.Status),
		Detail: d.Detail, FinishedAt: timeOf(d.FinishedAt), Body: d.Body,
	}
	if err := decode(d.Headers, &out.Headers, "the headers of delivery "+d.Key); err != nil {
		return model.Delivery{}, err
	}
	return out, nil
}

// RecordDelivery stores a delivery before it is answered. fresh is false when the repository already has one of that key.
// It fails with [model.ErrNotFound] for an unknown repository.
func (s *Store) RecordDelivery(ctx context.Context, d model.Delivery) (fresh bool, err error) {
	headers, err := encode(d.Headers, "{}")
	if err != nil {
		return false, err
	}
	if d.Status == "" {
		d.Status = model.DeliveryReceived
	}
	if d.Status != model.DeliveryReceived && d.FinishedAt.IsZero() {
		d.FinishedAt = d.ReceivedAt
	}
	body := d.Body
	if body == nil {
		body = []byte{}
	}
	err = s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.InsertDelivery(ctx, sqlgen.InsertDeliveryParams{
			Repository: string(d.Repository), Key: text(d.Key), Provider: string(d.Provider), Event: text(d.Event), Ref: text(d.Ref),
			Before: text(d.Before), After: text(d.After), Trace: text(string(d.Trace)), ReceivedAt: d.ReceivedAt, Status: string(d.Status),
			Detail: text(d.Detail), FinishedAt: timeOrNil(d.FinishedAt), Headers: headers, Body: body[:min(len(body), maxBody)],
		})
		if violates(err, "delivery_repository_fkey") {
			return fmt.Errorf("repository %s: %w", d.Repository, model.ErrNotFound)
		}
		if err != nil {
			return err
		}
		fresh = n > 0
		if fresh {
			tx.hint(model.TopicDelivery, model.EnvironmentID{}, string(d.Repository)+"/"+d.Key)
		}
		return nil
	})
	return fresh, err
}

// FinishDelivery stores what became of a delivery, or fails with [model.ErrNotFound].
func (s *Store) FinishDelivery(ctx context.Context, repository model.RepositoryName, key string, status model.DeliveryStatus, detail string, at time.Time) error {
	if status == model.DeliveryReceived {
		return fmt.Errorf("finishing delivery %s/%s as %q: %w", repository, key, status, model.ErrInvalid)
	}
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.FinishDelivery(ctx, sqlgen.FinishDeliveryParams{
			Status: string(status), Detail: text(detail), FinishedAt: &at, Repository: string(repository), Key: text(key),
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("delivery %s/%s: %w", repository, key, model.ErrNotFound)
		}
		tx.hint(model.TopicDelivery, model.EnvironmentID{}, string(repository)+"/"+key)
		return nil
	})
}

// UnfinishedDeliveries lists deliveries that were received and not finished, oldest first.
func (s *Store) UnfinishedDeliveries(ctx context.Context, limit int) ([]model.Delivery, error) {
	rows, err := s.read().UnfinishedDeliveries(ctx, int32Of(limit))
	if err != nil {
		return nil, classify(err)
	}
	return deliveriesOf(rows)
}

func deliveriesOf(rows []sqlgen.Delivery) ([]model.Delivery, error) {
	out := make([]model.Delivery, len(rows))
	for i, row := range rows {
		d, err := deliveryOf(row)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// Delivery returns one delivery with its body, or [model.ErrNotFound].
func (s *Store) Delivery(ctx context.Context, repository model.RepositoryName, key string) (model.Delivery, error) {
	d, err := s.read().GetDelivery(ctx, string(repository), text(key))
	if err != nil {
		return model.Delivery{}, notFound(err, "delivery %s/%s", repository, key)
	}
	return deliveryOf(d)
}

// ReplayDelivery marks a delivery as received again, so that it is worked on. [model.ErrNotFound]; [model.ErrConflict]: it
// has not been finished yet.
func (s *Store) ReplayDelivery(ctx context.Context, repository model.RepositoryName, key string, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.ReplayDelivery(ctx, "replayed at "+now.UTC().Format(time.RFC3339), string(repository), text(key))
		if err != nil {
			return err
		}
		if n == 0 {
			if _, err := tx.GetDelivery(ctx, string(repository), text(key)); err != nil {
				return notFound(err, "delivery %s/%s", repository, key)
			}
			return fmt.Errorf("delivery %s/%s is still being worked on: %w", repository, key, model.ErrConflict)
		}
		tx.hint(model.TopicDelivery, model.EnvironmentID{}, string(repository)+"/"+key)
		tx.hint(model.TopicReplay, model.EnvironmentID{}, string(repository)+"/"+key)
		return nil
	})
}
