package compilerd

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/intendant/intendant/model"
)

// Queue is where compile jobs wait and end. The store implements it.
type Queue interface {
	// ClaimCompileJob takes the oldest job that may run: its environment has no running one, is not halted, and its backoff
	// has passed. Queued jobs of the environment that ask for the same are merged into it. It is nil when there is none.
	// The claim ends at now+lease unless it is extended; a job whose lease has ended is claimed again.
	ClaimCompileJob(ctx context.Context, worker string, now time.Time, lease time.Duration) (*model.CompileJob, error)
	// ExtendCompileJob prolongs a claim and reports whether somebody asked to cancel the job. It returns model.ErrFenced when
	// the worker no longer holds it.
	ExtendCompileJob(ctx context.Context, id model.JobID, worker string, now time.Time, lease time.Duration) (cancel bool, err error)
	// SetCompileRevision records which commit is being compiled, once it is resolved.
	SetCompileRevision(ctx context.Context, id model.JobID, worker string, rev model.Revision) error
	// SaveCompileStage inserts or replaces a stage by its ordinal: when it starts, now and then with more output, when it ends.
	SaveCompileStage(ctx context.Context, id model.JobID, worker string, stage model.CompileStage) error
	// FinishCompileJob ends a job in one transaction: the report, and if there is a state the version with all its intents,
	// released when the environment's auto_deploy says so. It returns the version's number, 0 if none. A second call for the
	// same job changes nothing and returns the same number; model.ErrFenced when the worker no longer holds the job.
	FinishCompileJob(ctx context.Context, worker string, outcome model.CompileOutcome, now time.Time) (version int, err error)
	// CompileInputs returns what the compile may read: facts by "<resource id>/<name>", parameters by name, settings.
	CompileInputs(ctx context.Context, env model.EnvironmentID) (Inputs, error)
	// Environment returns one environment or model.ErrNotFound.
	Environment(ctx context.Context, id model.EnvironmentID) (model.Environment, error)
	// PurgeCompileReports deletes reports that ended before a time and returns how many.
	PurgeCompileReports(ctx context.Context, before time.Time) (int64, error)
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}

// Inputs are the inputs of a compile besides its source.
type Inputs = model.CompileInputs

// Sources gives out source trees. gitsync implements it.
type Sources interface {
	// Resolve fetches the environment's branch and returns its newest revision. It fails with model.ErrUnavailable when the
	// repository can not be reached, model.ErrNotFound when the branch does not exist.
	Resolve(ctx context.Context, env model.Environment) (model.Revision, error)
	// Checkout returns the directory of an immutable tree of a revision, including the environment's path inside the
	// repository. The caller must not write there and calls release when done.
	Checkout(ctx context.Context, env model.Environment, rev model.Revision) (dir string, release func(), err error)
}

// Modules brings what a project needs from elsewhere: modules from git and Python packages.
type Modules interface {
	// Prepare makes sure that everything the project in dir needs is on this machine. update chooses anew what the project itself
	// does not lock. Each part of the work is given to stage, which shows it to people under a name and may call it again when it
	// fails with model.ErrUnavailable. It fails with model.ErrInvalid when the project has to change, with model.ErrConflict when
	// a source has another content than before.
	Prepare(ctx context.Context, env model.Environment, dir string, update bool, stage ModuleStage) (Prepared, error)
}

// ModuleStage runs a part of the work of [Modules] as a stage of the report.
type ModuleStage func(name, command string, work func(ctx context.Context, out io.Writer) error) error

// Prepared is what a project needs and where it is.
type Prepared struct {
	// Placement is the file that the compiler reads: which modules are in which directories. Whatever it names stays until
	// Release is called.
	Placement []byte
	Release   func()
	// Lock lists the modules and packages exactly, as JSON; null when the project needs none. It is one of the inputs of the
	// compile.
	Lock json.RawMessage
	// Notes are for people.
	Notes []string
}
