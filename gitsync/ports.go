package gitsync

import (
	"context"
	"time"

	"github.com/intendant/intendant/model"
)

// Recorder is what gitsync needs to be remembered. The store implements it.
type Recorder interface {
	// RecordDelivery stores a delivery before it is answered. fresh is false when the repository already has one of that
	// key: the delivery is a repeat and must not be worked on again.
	RecordDelivery(ctx context.Context, d model.Delivery) (fresh bool, err error)
	// FinishDelivery stores what became of a delivery.
	FinishDelivery(ctx context.Context, repository model.RepositoryName, key string, status model.DeliveryStatus, detail string, at time.Time) error
	// UnfinishedDeliveries lists deliveries that were received and not finished, oldest first: after a crash they are resumed.
	UnfinishedDeliveries(ctx context.Context, limit int) ([]model.Delivery, error)
	// Repositories lists every repository that some environment watches, with its secrets.
	Repositories(ctx context.Context) ([]model.Repository, error)
	// Repository returns one repository with its secrets, or model.ErrNotFound.
	Repository(ctx context.Context, name model.RepositoryName) (model.Repository, error)
	// WatchingEnvironments lists the environments that deploy from a repository and are not halted for compiles.
	WatchingEnvironments(ctx context.Context, name model.RepositoryName) ([]model.Environment, error)
	// Environment returns one environment or model.ErrNotFound. It is asked when a hint says that one changed.
	Environment(ctx context.Context, id model.EnvironmentID) (model.Environment, error)
	// RecordRevision stores the newest revision of an environment and, in the same transaction, queues an exporting compile
	// of it if it differs from the one stored before (or force is set). queued is false when there was nothing new.
	RecordRevision(ctx context.Context, env model.EnvironmentID, rev model.Revision, reason string, trace model.TraceID, force bool) (job model.JobID, queued bool, err error)
	// RecordSync stores the outcome of a fetch: message is empty on success.
	RecordSync(ctx context.Context, name model.RepositoryName, at time.Time, message string) error
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}
