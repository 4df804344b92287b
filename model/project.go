package model

import (
	"encoding/json"
	"time"
)

// Project is a named group of environments.
type Project struct {
	ID   ProjectID
	Name string
}

// Environment is one model's home: where its source is, how it is deployed, and what it has reached.
type Environment struct {
	ID          EnvironmentID
	Project     ProjectID
	Name        string
	Description string
	Icon        string
	// RepoURL and RepoBranch say what is watched. An empty URL means that models are pushed by clients; an empty branch
	// means the repository's default.
	RepoURL    string
	RepoBranch string
	// RepoPath is the directory of the project inside the repository; empty for its root.
	RepoPath string
	// Repository is the record of the URL: webhooks, credentials, polling. Empty when RepoURL is.
	Repository RepositoryName
	// Settings holds only what was set; see [Settings] for the meaning and defaults.
	Settings map[string]json.RawMessage
	// LastVersion is the version counter: the highest number ever handed out.
	LastVersion int
	Halted      bool
	// Revision is the newest commit that was seen on the branch; zero before the first fetch.
	Revision Revision
}

// Provider is the kind of forge that sends webhooks for a repository.
type Provider string

// The providers of webhooks. ProviderGeneric takes X-Intendant-Signature: sha256=<hex HMAC of the body>.
const (
	ProviderGitHub       Provider = "github"
	ProviderGitLab       Provider = "gitlab"
	ProviderGitea        Provider = "gitea"
	ProviderForgejo      Provider = "forgejo"
	ProviderBitbucket    Provider = "bitbucket"
	ProviderBitbucketDC  Provider = "bitbucket-dc"
	ProviderGeneric      Provider = "generic"
	ProviderUnconfigured Provider = ""
)

// Repository is a git repository that environments deploy from. Several environments may share one.
type Repository struct {
	Name RepositoryName
	URL  string
	// Provider is whose webhooks are accepted at /hooks/<name>; unconfigured means that none are.
	Provider Provider
	// WebhookSecrets verify deliveries; several may be live at once, so that a secret can be rotated.
	WebhookSecrets []Secret
	// Username and Password (or token) authenticate HTTP(S).
	Username string
	Password Secret
	// SSHKey is a private key in PEM form, SSHKeyPassphrase opens it, KnownHosts lists the accepted host keys.
	SSHKey           Secret
	SSHKeyPassphrase Secret
	KnownHosts       string
	// Poll is how often the repository is asked for news: a duration in seconds ("60"), a cron expression, or "0" for never.
	Poll string
	// SyncRequested is when somebody last asked for a fetch that has not happened yet; zero when nobody did.
	SyncRequested time.Time
	// LastSynced is when a fetch last succeeded, LastError what the last one said if it failed.
	LastSynced time.Time
	LastError  string
}

// Revision is a commit of a watched repository.
type Revision struct {
	Repository RepositoryName
	// Ref is the full name of the branch or tag: refs/heads/main.
	Ref string
	// Commit is the full object id in hex.
	Commit      string
	Author      string
	Message     string
	CommittedAt time.Time
}

// Delivery is a webhook delivery as it was received, stored before it is answered.
type Delivery struct {
	// Key identifies the delivery within its repository: the provider's delivery id, or a digest of the body.
	Key        string
	Repository RepositoryName
	Provider   Provider
	Event      string
	Ref        string
	Before     string
	After      string
	Trace      TraceID
	ReceivedAt time.Time
	// Status is received, then ignored, synced or failed.
	Status     DeliveryStatus
	Detail     string
	FinishedAt time.Time
	// Headers (without secrets) and Body are kept for replay and inspection; Body is cut at the stored limit.
	Headers map[string]string
	Body    []byte
}

// DeliveryStatus says what became of a webhook delivery.
type DeliveryStatus string

// The states of a delivery.
const (
	DeliveryReceived DeliveryStatus = "received"
	DeliveryIgnored  DeliveryStatus = "ignored"
	DeliverySynced   DeliveryStatus = "synced"
	DeliveryFailed   DeliveryStatus = "failed"
)
