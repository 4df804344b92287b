package model

// SchedulerStats is what the schedulers of one server are doing.
type SchedulerStats struct {
	// Environments is the number of environments that the server owns.
	Environments int
	// Queued counts the tasks ready for an agent, by priority; Waiting those that wait for requirements, Running those that
	// agents have.
	Queued  map[string]int
	Waiting int
	Running int
	// Resources is the number of resources managed.
	Resources int
}

// SchedulerNews is what the scheduler of an environment needs to hear of now and then, without its resources.
type SchedulerNews struct {
	Environment EnvironmentID
	// Released is the newest released version, 0 when there is none.
	Released int
	Halted   bool
	Settings Settings
	Paused   map[AgentName]bool
	// Commands are those not finished, oldest first.
	Commands []Command
}
