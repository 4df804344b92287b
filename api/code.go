package api

import "encoding/json"

// ModuleVersion is the code of one module as an exporter uploads it.
type ModuleVersion struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Files   []ModuleFile `json:"files_in_module"`
	// Requirements are packages, as requirement strings of PEP 508.
	Requirements []string `json:"requirements"`
	// ForAgents names the agents that need the module.
	ForAgents []string `json:"for_agents"`
	// Types, an addition of ours, names the resource types, references and mutators of the module; agents whose resources have one
	// of them get the module too.
	Types []string `json:"types,omitempty"`
}

// ModuleFile is one source of a module; its content is a file by its hash.
type ModuleFile struct {
	Name       string `json:"name"`
	Hash       string `json:"hash_value"`
	IsByteCode bool   `json:"is_byte_code"`
	// IsPackage, an addition of ours, is true for the __init__.py of a package.
	IsPackage bool `json:"is_package,omitempty"`
}

// CodeSource is one source that a type of resource needs.
type CodeSource struct {
	Hash         string   `json:"hash"`
	IsByteCode   bool     `json:"is_byte_code"`
	ModuleName   string   `json:"module_name"`
	Requirements []string `json:"requirements"`
}

// CodeV1 are the sources that a type of resource needs, in the form of the first version of the API.
type CodeV1 struct {
	Version     int    `json:"version"`
	Environment string `json:"environment"`
	Resource    string `json:"resource"`
	// Sources are by the SHA-1 of their content.
	Sources map[string]CodeSourceV1 `json:"sources"`
}

// CodeSourceV1 is a source as three values: its file (text), its module of Python (text), and its requirements (list of texts).
type CodeSourceV1 [3]any

// PipConfig says where packages come from.
type PipConfig struct {
	IndexURL        string   `json:"index_url,omitempty"`
	ExtraIndexURL   []string `json:"extra_index_url,omitempty"`
	FindLinks       []string `json:"find_links,omitempty"`
	Pre             bool     `json:"pre,omitempty"`
	UseSystemConfig bool     `json:"use_system_config"`
}

// DiscoveredResourceInput is a report of a resource that exists.
type DiscoveredResourceInput struct {
	DiscoveredResourceID string `json:"discovered_resource_id"`
	// Values is a JSON object.
	Values              json.RawMessage `json:"values"`
	DiscoveryResourceID string          `json:"discovery_resource_id"`
}

// DiscoveredResource is a resource that was found to exist.
type DiscoveredResource struct {
	DiscoveredResourceInput
	// ManagedResourceURI is where the resource can be read when the model has it.
	ManagedResourceURI   *string `json:"managed_resource_uri"`
	DiscoveryResourceURI string  `json:"discovery_resource_uri"`
	ResourceType         string  `json:"resource_type"`
	Agent                string  `json:"agent"`
	ResourceIDValue      string  `json:"resource_id_value"`
}
