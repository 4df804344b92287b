package api

// Repository is a git repository that environments deploy from. Its secrets are never shown.
type Repository struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Provider string `json:"provider"`
	// WebhookSecrets is the number of secrets that are accepted; WebhookPath is where deliveries go.
	WebhookSecrets int    `json:"webhook_secrets"`
	WebhookPath    string `json:"webhook_path"`
	Username       string `json:"username"`
	HasPassword    bool   `json:"has_password"`
	HasSSHKey      bool   `json:"has_ssh_key"`
	KnownHosts     string `json:"known_hosts"`
	Poll           string `json:"poll"`
	LastSynced     *Time  `json:"last_synced"`
	LastError      string `json:"last_error"`
	// Environments lists the environments that deploy from it.
	Environments []string `json:"environments"`
}

// RepositoryWrite creates or changes a repository; what is nil stays as it is. Secrets go in and never come out.
type RepositoryWrite struct {
	URL              *string   `json:"url,omitempty"`
	Provider         *string   `json:"provider,omitempty"`
	WebhookSecrets   *[]string `json:"webhook_secrets,omitempty"`
	Username         *string   `json:"username,omitempty"`
	Password         *string   `json:"password,omitempty"`
	SSHKey           *string   `json:"ssh_key,omitempty"`
	SSHKeyPassphrase *string   `json:"ssh_key_passphrase,omitempty"`
	KnownHosts       *string   `json:"known_hosts,omitempty"`
	Poll             *string   `json:"poll,omitempty"`
}

// Delivery is a webhook delivery.
type Delivery struct {
	Key        string `json:"key"`
	Repository string `json:"repository"`
	Provider   string `json:"provider"`
	Event      string `json:"event"`
	Ref        string `json:"ref"`
	Before     string `json:"before"`
	After      string `json:"after"`
	Trace      string `json:"trace_id"`
	ReceivedAt *Time  `json:"received_at"`
	// Status is received, ignored, synced or failed; Detail says why.
	Status     string            `json:"status"`
	Detail     string            `json:"detail"`
	FinishedAt *Time             `json:"finished_at"`
	Headers    map[string]string `json:"headers,omitempty"`
	// Body is the text that was received, possibly cut.
	Body string `json:"body,omitempty"`
}

// Journey follows one commit from push to reality.
type Journey struct {
	Environment string    `json:"environment"`
	Revision    *Revision `json:"revision"`
	Trace       string    `json:"trace_id"`
	// Phase is pushed, compiling, candidate, deploying, converged, failed or superseded.
	Phase         string `json:"phase"`
	Reason        string `json:"reason"`
	ReceivedAt    *Time  `json:"received_at"`
	RequestedAt   *Time  `json:"requested_at"`
	CompileID     string `json:"compile_id"`
	CompileStatus string `json:"compile_status"`
	StartedAt     *Time  `json:"started_at"`
	FinishedAt    *Time  `json:"finished_at"`
	Version       int    `json:"version"`
	StoredAt      *Time  `json:"stored_at"`
	ReleasedAt    *Time  `json:"released_at"`
	Total         int    `json:"total"`
	Deployed      int    `json:"deployed"`
	Failed        int    `json:"failed"`
	Waiting       int    `json:"waiting"`
	Blocked       int    `json:"blocked"`
	FirstDeployAt *Time  `json:"first_deploy_at"`
	LastDeployAt  *Time  `json:"last_deploy_at"`
	ConvergedAt   *Time  `json:"converged_at"`
	Error         string `json:"error"`
	// Seconds is how long it took from the push until it converged, or until now.
	Seconds float64 `json:"seconds"`
}

// TraceStep is one thing that carries a trace id.
type TraceStep struct {
	Kind        string `json:"kind"`
	Environment string `json:"environment"`
	ID          string `json:"id"`
	Resource    string `json:"resource,omitempty"`
	Text        string `json:"text"`
	Status      string `json:"status"`
	At          *Time  `json:"at"`
	EndedAt     *Time  `json:"ended_at"`
}
