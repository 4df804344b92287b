package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/intendant/intendant/model"
)

// Resource is the desired state of one resource as a handler sees it.
type Resource struct {
	// ID is the resource's id, Parts are its parts.
	ID    model.ResourceID
	Parts model.ResourceIDParts
	// Version is the version of the desired state that the task belongs to.
	Version int
	// Attributes are the values by name, each with its exact JSON text.
	Attributes map[string]json.RawMessage

	raw json.RawMessage
	// resolved are the attributes that came of references.
	resolved map[string]bool
}

// NewResource makes the handler's view of an intent. It fails with [model.ErrInvalid] when the id or the attributes are malformed.
func NewResource(i model.Intent, version int) (*Resource, error) {
	id, parts, _, err := model.ParseResourceID(string(i.Resource))
	if err != nil {
		return nil, err
	}
	r := &Resource{ID: id, Parts: parts, Version: version, raw: i.Attributes}
	if err := json.Unmarshal(i.Attributes, &r.Attributes); err != nil {
		return nil, fmt.Errorf("attributes of %s: %w: %w", i.Resource, model.ErrInvalid, err)
	}
	return r, nil
}

// Decode fills a struct, by its json tags, from the attributes. It fails with [model.ErrInvalid] on a value of the wrong type.
func (r *Resource) Decode(into any) error {
	d := json.NewDecoder(bytes.NewReader(r.raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("attributes of %s: %w: %w", r.ID, model.ErrInvalid, err)
	}
	return nil
}

// Raw returns the attributes as the JSON object they came in.
func (r *Resource) Raw() json.RawMessage { return r.raw }

// Bool returns a boolean attribute; false when it is absent or of another type.
func (r *Resource) Bool(name string) bool {
	return string(bytes.TrimSpace(r.Attributes[name])) == "true"
}

// String returns a text attribute; empty when it is absent or of another type.
func (r *Resource) String(name string) string {
	var s string
	if json.Unmarshal(r.Attributes[name], &s) != nil {
		return ""
	}
	return s
}

// Purged tells whether the resource is to be absent.
func (r *Resource) Purged() bool { return r.Bool("purged") }

// ReportOnly tells whether the resource is to be looked at only.
func (r *Resource) ReportOnly() bool { return r.Bool("report_only") }
