package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

// maxDiscovered is how many resources one call reports; it is as much as one page of work for the database.
const maxDiscovered = 10_000

type discoveredCreateArgs struct {
	Resource  string                     `arg:"discovered_resource_id"`
	Discovery string                     `arg:"discovery_resource_id" doc:"The resource whose handler found it."`
	Values    map[string]json.RawMessage `arg:"values,optional"`
}

type discoveredBatchArgs struct {
	Resources []api.DiscoveredResourceInput `arg:"discovered_resources"`
}

type discoveredArgs struct {
	Resource string `arg:"discovered_resource_id"`
}

type discoveredListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"managed, resource_type, agent, resource_id_value"`
	Sort    string              `arg:"sort" default:"discovered_resource_id.asc"`
}

type discoveredDeleteArgs struct {
	Resources []string `arg:"discovered_resource_ids"`
}

var discoveredListing = listing[model.DiscoveredResource]{
	sort: map[string]sortColumn[model.DiscoveredResource]{
		"discovered_resource_id": {textColumn, func(d model.DiscoveredResource) string { return string(d.Resource) }},
		"resource_type":          {textColumn, func(d model.DiscoveredResource) string { return d.Resource.Parts().Type }},
		"agent":                  {textColumn, func(d model.DiscoveredResource) string { return string(d.Resource.Parts().Agent) }},
		"resource_id_value":      {textColumn, func(d model.DiscoveredResource) string { return d.Resource.Parts().Value }},
	},
	id:      func(d model.DiscoveredResource) string { return string(d.Resource) },
	filters: []string{"managed", "resource_type", "agent", "resource_id_value"},
}

// newDiscovered checks one report.
func newDiscovered(in api.DiscoveredResourceInput) (model.DiscoveredResource, error) {
	id, _, err := resourceID(in.DiscoveredResourceID)
	if err != nil {
		return model.DiscoveredResource{}, err
	}
	discovery, _, err := resourceID(in.DiscoveryResourceID)
	if err != nil {
		return model.DiscoveredResource{}, err
	}
	values := bytes.TrimSpace(in.Values)
	if len(values) == 0 {
		values = []byte("{}")
	}
	if values[0] != '{' {
		return model.DiscoveredResource{}, invalidArgument("values", "type_error", "the values of discovered resource %s are not an object", id)
	}
	return model.DiscoveredResource{Resource: id, Values: values, Discovery: discovery}, nil
}

func (s *Server) discoveredCreate(ctx context.Context, c *call, a discoveredCreateArgs) (none, error) {
	values, err := marshal(a.Values)
	if err != nil {
		return none{}, err
	}
	return s.discoveredBatch(ctx, c, discoveredBatchArgs{[]api.DiscoveredResourceInput{{
		DiscoveredResourceID: a.Resource, DiscoveryResourceID: a.Discovery, Values: values,
	}}})
}

func (s *Server) discoveredBatch(ctx context.Context, c *call, a discoveredBatchArgs) (none, error) {
	if len(a.Resources) > maxDiscovered {
		return none{}, invalidArgument("discovered_resources", "value_error", "%d resources at once, at most %d", len(a.Resources), maxDiscovered)
	}
	found := make([]model.DiscoveredResource, len(a.Resources))
	for i, in := range a.Resources {
		var err error
		if found[i], err = newDiscovered(in); err != nil {
			return none{}, err
		}
	}
	return none{}, s.store.SaveDiscovered(ctx, c.env(), found, c.now)
}

func discoveredOf(d model.DiscoveredResource) api.DiscoveredResource {
	parts := d.Resource.Parts()
	out := api.DiscoveredResource{
		DiscoveredResourceInput: api.DiscoveredResourceInput{
			DiscoveredResourceID: string(d.Resource), Values: d.Values, DiscoveryResourceID: string(d.Discovery),
		},
		DiscoveryResourceURI: resourceURI(d.Discovery), ResourceType: parts.Type, Agent: string(parts.Agent), ResourceIDValue: parts.Value,
	}
	if d.Managed {
		uri := resourceURI(d.Resource)
		out.ManagedResourceURI = &uri
	}
	return out
}

func resourceURI(id model.ResourceID) string { return "/api/v2/resource/" + url.PathEscape(string(id)) }

func (s *Server) discoveredGet(ctx context.Context, c *call, a discoveredArgs) (api.DiscoveredResource, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return api.DiscoveredResource{}, err
	}
	d, err := s.store.Discovered(ctx, c.env(), id)
	return discoveredOf(d), err
}

func (s *Server) discoveredList(ctx context.Context, c *call, a discoveredListArgs) ([]api.DiscoveredResource, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := discoveredListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.DiscoveryFilter{Types: a.Filter["resource_type"], Agents: a.Filter["agent"], Values: a.Filter["resource_id_value"]}
	if f.Managed, err = filterBool("managed", a.Filter["managed"]); err != nil {
		return nil, err
	}
	list, err := s.store.DiscoveredResources(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	discoveredListing.describe(c, args, page, list)
	return convertAll(list.Items, discoveredOf), nil
}

func (s *Server) discoveredDelete(ctx context.Context, c *call, a discoveredArgs) (none, error) {
	id, _, err := resourceID(a.Resource)
	if err != nil {
		return none{}, err
	}
	n, err := s.store.DeleteDiscovered(ctx, c.env(), []model.ResourceID{id})
	if err == nil && n == 0 {
		err = fmt.Errorf("discovered resource %s: %w", id, model.ErrNotFound)
	}
	return none{}, err
}

func (s *Server) discoveredDeleteBatch(ctx context.Context, c *call, a discoveredDeleteArgs) (none, error) {
	ids := make([]model.ResourceID, len(a.Resources))
	for i, text := range a.Resources {
		var err error
		if ids[i], _, err = resourceID(text); err != nil {
			return none{}, err
		}
	}
	_, err := s.store.DeleteDiscovered(ctx, c.env(), ids)
	return none{}, err
}
