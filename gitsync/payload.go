package gitsync

import (
	"encoding/json"
	"mime"
	"net/url"
	"strings"

	"github.com/intendant/intendant/model"
)

// A Push is what a payload says of a push. It is shown to people and decides nothing: what is deployed is what is fetched.
type Push struct {
	Repository model.RepositoryName
	// Ref is the full name of the branch or tag; Before and After are commits. Each may be empty.
	Ref    string
	Before string
	After  string
	// More is the number of further refs in the same push.
	More int
}

// parsePush reads a verified payload of any shape. What is not there, or not of the expected type, stays empty.
func parsePush(p model.Provider, contentType string, body []byte) Push {
	body = jsonBody(contentType, body)
	var out Push
	switch p {
	case model.ProviderBitbucket:
		var v struct {
			Push struct {
				Changes []struct {
					New, Old *bitbucketRef
				} `json:"changes"`
			} `json:"push"`
		}
		if json.Unmarshal(body, &v) != nil || len(v.Push.Changes) == 0 {
			return Push{}
		}
		c := v.Push.Changes[0]
		out.More = len(v.Push.Changes) - 1
		if c.Old != nil {
			out.Before, out.Ref = c.Old.Target.Hash, c.Old.ref()
		}
		if c.New != nil {
			out.After, out.Ref = c.New.Target.Hash, c.New.ref()
		}
	case model.ProviderBitbucketDC:
		var v struct {
			Changes []struct {
				Ref struct {
					ID string `json:"id"`
				} `json:"ref"`
				RefID    string `json:"refId"`
				FromHash string `json:"fromHash"`
				ToHash   string `json:"toHash"`
			} `json:"changes"`
		}
		if json.Unmarshal(body, &v) != nil || len(v.Changes) == 0 {
			return Push{}
		}
		c := v.Changes[0]
		out.More = len(v.Changes) - 1
		if out.Ref = c.RefID; out.Ref == "" {
			out.Ref = c.Ref.ID
		}
		out.Before, out.After = c.FromHash, c.ToHash
	default: // GitHub, GitLab, Gitea, Forgejo and the generic form agree
		var v struct {
			Ref         string `json:"ref"`
			RefType     string `json:"ref_type"`
			Before      string `json:"before"`
			After       string `json:"after"`
			CheckoutSHA string `json:"checkout_sha"`
		}
		if json.Unmarshal(body, &v) != nil {
			return Push{}
		}
		out.Ref, out.Before, out.After = v.Ref, v.Before, v.After
		if !strings.HasPrefix(out.Ref, "refs/") && out.Ref != "" {
			switch v.RefType {
			case "branch":
				out.Ref = "refs/heads/" + out.Ref
			case "tag":
				out.Ref = "refs/tags/" + out.Ref
			}
		}
	}
	if CheckBranch(out.Ref) != nil {
		out.Ref = ""
	}
	if !commitForm().MatchString(out.Before) {
		out.Before = ""
	}
	if !commitForm().MatchString(out.After) {
		out.After = ""
	}
	return out
}

type bitbucketRef struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Target struct {
		Hash string `json:"hash"`
	} `json:"target"`
}

func (b bitbucketRef) ref() string {
	switch {
	case b.Name == "":
		return ""
	case b.Type == "tag":
		return "refs/tags/" + b.Name
	}
	return "refs/heads/" + b.Name
}

// jsonBody is the JSON of a payload: the body, or the field that GitHub and Gitea put it into when they send forms.
func jsonBody(contentType string, body []byte) []byte {
	if t, _, err := mime.ParseMediaType(contentType); err == nil && t == "application/x-www-form-urlencoded" {
		if v, err := url.ParseQuery(string(body)); err == nil {
			return []byte(v.Get("payload"))
		}
	}
	return body
}
