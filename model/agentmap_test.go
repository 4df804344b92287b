package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

func TestCheckAgentAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "", "local:": "", "localhost": "", "web1": "", "web1.example.com:2222": "", "root@web1": "", "ssh://root@10.0.0.1:22": "",
		"ssh://root@[::1]:22": "", "ssh://web1?python=python3&retries=3": "",
		"http://web1": "unknown scheme", "ssh://": "names no host", "ssh://-oProxyCommand=x": "names no host", "ssh://-l@web1": "begins with a dash",
		"ssh://root:hunter22@web1": "has a password", "ssh://web1/etc": "has a path", "ssh://web1:0": "a port that is none", "ssh://web1:99999": "a port that is none",
		"ssh://web1:port": "can not be read", strings.Repeat("x", 2000): "is too long",
	} {
		err := model.CheckAgentAddress(address)
		switch {
		case want == "" && err != nil:
			t.Errorf("CheckAgentAddress(%q) = %v", address, err)
		case want != "" && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22")):
			t.Errorf("CheckAgentAddress(%q) = %v, want %q", address, err, want)
		}
	}
}

func TestAgentMapSetting(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{"internal": "local:", "web1": "ssh://root@web1"}`: `{"internal":"local:","web1":"ssh://root@web1"}`,
		`"{\"internal\": \"localhost\"}"`:                   `{"internal":"localhost"}`,
		`{"web1": "local:"}`:                                "must be there",
		`{"internal": "ssh://root@web1"}`:                   "must be there",
		`{"internal": "local:", "a,b": "local:"}`:           "no name of an agent",
		`{"internal": "local:", "": "local:"}`:              "no name of an agent",
		`{"internal": "local:", "web1": 5}`:                 "is no text",
		`{"internal": "local:", "web1": "ftp://x"}`:         "unknown scheme",
		`"no object"`: "an object of agent names",
		`[]`:          "an object of agent names",
	} {
		got, err := model.ConvertSetting(model.SettingAgentMap, json.RawMessage(value), nil)
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("ConvertSetting(%s) = %v, want %q", value, err, want)
			}
			continue
		}
		if string(got) != want {
			t.Errorf("ConvertSetting(%s) = %s, want %s", value, got, want)
		}
	}
	got := model.ParseAgentMap(json.RawMessage(`{"internal": "local:", "web1": "ssh://root@web1", "old": "gopher://x"}`))
	if diff := cmp.Diff(map[model.AgentName]string{"internal": "", "web1": "ssh://root@web1"}, got); diff != "" {
		t.Errorf("ParseAgentMap() differs (-want +got):\n%s", diff)
	}
	if got := model.ParseAgentMap(nil); len(got) != 0 {
		t.Errorf("ParseAgentMap(nil) = %v", got)
	}
}
