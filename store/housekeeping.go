package store

import (
	"context"
	"errors"
	"time"

	"github.com/intendant/intendant/model"
)

// The ages at which records go that no setting is for.
const (
	// CommandRetention and SessionRetention are for finished commands and for sessions that were lost.
	CommandRetention = 7 * 24 * time.Hour
	SessionRetention = 7 * 24 * time.Hour
	// DeliveryRetention is for finished webhook deliveries.
	DeliveryRetention = 30 * 24 * time.Hour
)

// Purged tells what [Store.Housekeep] has deleted.
type Purged struct {
	Actions       int64
	Commands      int64
	Deliveries    int64
	Notifications int64
	Sessions      int64
	Versions      int64
}

// Housekeep deletes what has outlived the settings of its environment (versions, actions with their logs, notifications) or
// the retention constants of this package. Halted environments are left alone. It may run on several servers at once; what
// went wrong in one environment does not keep it from the others, and the errors are joined.
func (s *Store) Housekeep(ctx context.Context, now time.Time) (Purged, error) {
	var done Purged
	envs, err := s.Environments(ctx, nil)
	if err != nil {
		return done, err
	}
	var errs []error
	for _, e := range envs {
		if e.Halted {
			continue
		}
		errs = append(errs, s.housekeep(ctx, e, now, &done))
	}
	errs = append(errs, s.InTx(ctx, func(tx *Tx) (err error) {
		done.Deliveries, err = tx.PurgeDeliveries(ctx, now.Add(-DeliveryRetention))
		return err
	}))
	return done, errors.Join(errs...)
}

func (s *Store) housekeep(ctx context.Context, e model.Environment, now time.Time, done *Purged) error {
	settings := model.ParseSettings(e.Settings)
	versions, err := s.PurgeVersions(ctx, e.ID, settings.AvailableVersionsToKeep)
	if err != nil {
		return err
	}
	done.Versions += int64(versions)
	const day = 24 * time.Hour
	return s.InTx(ctx, func(tx *Tx) error {
		var counts [4]int64
		for i, purge := range []func() (int64, error){
			func() (int64, error) {
				return tx.PurgeActions(ctx, e.ID.UUID, now.Add(-time.Duration(settings.ResourceActionLogsRetention)*day))
			},
			func() (int64, error) { return tx.PurgeCommands(ctx, e.ID.UUID, now.Add(-CommandRetention)) },
			func() (int64, error) {
				return tx.PurgeNotifications(ctx, e.ID.UUID, now.Add(-time.Duration(settings.NotificationRetention)*day))
			},
			func() (int64, error) { return tx.PurgeSessions(ctx, e.ID.UUID, now.Add(-SessionRetention)) },
		} {
			n, err := purge()
			if err != nil {
				return err
			}
			counts[i] = n
		}
		if err := tx.PurgeCodeUploads(ctx, e.ID.UUID, now.Add(-UploadRetention)); err != nil {
			return err
		}
		tx.onCommit = append(tx.onCommit, func() {
			done.Actions += counts[0]
			done.Commands += counts[1]
			done.Notifications += counts[2]
			done.Sessions += counts[3]
		})
		return nil
	})
}
