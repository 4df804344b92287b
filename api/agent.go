package api

// Agent is an agent of an environment.
type Agent struct {
	Environment     string  `json:"environment"`
	Name            string  `json:"name"`
	Paused          bool    `json:"paused"`
	ProcessID       *string `json:"process_id"`
	ProcessName     *string `json:"process_name"`
	UnpauseOnResume *bool   `json:"unpause_on_resume"`
	// Status is up, down or paused.
	Status   string `json:"status"`
	Hostname string `json:"hostname"`
	// Since is when it came up or went down.
	Since *Time `json:"since"`
}

// AgentV1 is an agent of the first API version.
type AgentV1 struct {
	Environment  string `json:"environment"`
	Name         string `json:"name"`
	Paused       bool   `json:"paused"`
	State        string `json:"state"`
	LastFailover string `json:"last_failover"`
	Primary      string `json:"primary"`
}

// AgentListV1 is the list of agents of the first API version.
type AgentListV1 struct {
	Agents     []AgentV1 `json:"agents"`
	Servertime *Time     `json:"servertime"`
}

// AgentProcess is a process that hosts agents.
type AgentProcess struct {
	SID         string   `json:"sid"`
	Hostname    string   `json:"hostname"`
	Environment string   `json:"environment"`
	FirstSeen   *Time    `json:"first_seen"`
	Expired     *Time    `json:"expired"`
	Process     string   `json:"process"`
	Agents      []string `json:"agents"`
	Version     string   `json:"version"`
	Autostarted bool     `json:"autostarted"`
}

// AgentToken is the record of a token that lets agents in.
type AgentToken struct {
	ID          string `json:"id"`
	Environment string `json:"environment"`
	Description string `json:"description"`
	OneTime     bool   `json:"one_time"`
	CreatedAt   *Time  `json:"created_at"`
	UsedAt      *Time  `json:"used_at"`
	RevokedAt   *Time  `json:"revoked_at"`
}

// IssuedToken is a new token; its text is shown this once.
type IssuedToken struct {
	Token       string `json:"token"`
	Environment string `json:"environment"`
	Description string `json:"description"`
	OneTime     bool   `json:"one_time"`
}
