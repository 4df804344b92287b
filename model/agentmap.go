package model

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// InternalAgent is the agent that is always there and always works on the server's own machine.
const InternalAgent AgentName = "internal"

// MaxAgentMap bounds the entries of the setting [SettingAgentMap].
const MaxAgentMap = 10_000

// ParseAgentMap reads a stored value of the setting [SettingAgentMap]: the address of each agent that is named. Agents on the
// machine of their process have the address "". What does not fit, and no value, is an empty map.
func ParseAgentMap(stored json.RawMessage) map[AgentName]string {
	var raw map[AgentName]string
	_ = json.Unmarshal(stored, &raw) // it was checked when it was written
	out := make(map[AgentName]string, len(raw))
	for name, address := range raw {
		if CheckAgentAddress(address) != nil {
			continue
		}
		if IsLocalAddress(address) {
			address = ""
		}
		out[name] = address
	}
	return out
}

// IsLocalAddress tells whether an agent with this address works on the machine of its process.
func IsLocalAddress(address string) bool {
	switch strings.TrimSpace(address) {
	case "", "local", "local:", "local://", "localhost":
		return true
	}
	return false
}

// CheckAgentAddress checks the address of the machine that an agent works on (server reference, section 10.9): empty, local: or
// localhost is that of its process; ssh://[user@]host[:port], with the options python, retries and retry_wait, or a bare host name
// is another one. The error is an [ErrInvalid].
func CheckAgentAddress(address string) error {
	bad := func(why string) error {
		return fmt.Errorf("the agent address %q %s; use local: or ssh://[user@]host[:port]: %w", redactAddress(address), why, ErrInvalid)
	}
	if len(address) > MaxSettingText {
		return bad("is too long")
	}
	if IsLocalAddress(address) {
		return nil
	}
	text := strings.TrimSpace(address)
	if !strings.Contains(text, ":/") {
		text = "ssh://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("can not be read")
	case u.Scheme != "ssh":
		return bad("has an unknown scheme")
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return bad("names no host")
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return bad("has a path")
	}
	if _, set := u.User.Password(); set {
		return bad("has a password, which is not used: set up a key")
	}
	if strings.HasPrefix(u.User.Username(), "-") {
		return bad("has a user name that begins with a dash")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return bad("has a port that is none")
		}
	}
	return nil
}

// redactAddress leaves out what might be a password.
func redactAddress(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "…" + address[i:]
	}
	return address
}

// convertAgentMap checks a value of the setting: an object, or a text that is one.
func convertAgentMap(d SettingDefinition, v any, value json.RawMessage) (json.RawMessage, error) {
	if s, ok := v.(string); ok {
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			return nil, settingMismatch(d, value, "an object of agent names and addresses")
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, settingMismatch(d, value, "an object of agent names and addresses")
	}
	if len(m) > MaxAgentMap {
		return nil, fmt.Errorf("setting %s: %d agents, at most %d can be named: %w", d.Name, len(m), MaxAgentMap, ErrInvalid)
	}
	out := make(map[AgentName]string, len(m))
	for name, address := range m {
		text, ok := address.(string)
		if !ok {
			return nil, fmt.Errorf("setting %s: the address of agent %q is no text: %w", d.Name, name, ErrInvalid)
		}
		if name == "" || len(name) > MaxSettingText || strings.ContainsFunc(name, func(r rune) bool { return r == ',' || unicode.IsControl(r) }) {
			return nil, fmt.Errorf("setting %s: %.100q is no name of an agent: %w", d.Name, name, ErrInvalid)
		}
		if err := CheckAgentAddress(text); err != nil {
			return nil, fmt.Errorf("setting %s: agent %q: %w", d.Name, name, err)
		}
		out[AgentName(name)] = text
	}
	if address, ok := out[InternalAgent]; !ok || !IsLocalAddress(address) {
		return nil, fmt.Errorf("setting %s: the agent %q must be there, with the address local:: %w", d.Name, InternalAgent, ErrInvalid)
	}
	return json.Marshal(out)
}
