package api

// Event says that something has changed; whoever hears it fetches what it shows again.
type Event struct {
	// Kind is compile, version, resource, agent, environment, repository, delivery, dryrun, notification, parameter, command or
	// resync, the last when events may have been missed.
	Kind        string `json:"kind"`
	Environment string `json:"environment,omitempty"`
	// ID is what changed, when that is one thing.
	ID string `json:"id,omitempty"`
}

// The kinds of events.
const (
	EventCompile      = "compile"
	EventVersion      = "version"
	EventResource     = "resource"
	EventAgent        = "agent"
	EventEnvironment  = "environment"
	EventRepository   = "repository"
	EventDelivery     = "delivery"
	EventDryRun       = "dryrun"
	EventNotification = "notification"
	EventParameter    = "parameter"
	EventCommand      = "command"
	EventResync       = "resync"
)
