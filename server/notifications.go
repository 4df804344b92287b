package server

import (
	"context"
	"errors"
	"slices"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type notificationListArgs struct {
	Limit   *int                `arg:"limit"`
	FirstID *string             `arg:"first_id"`
	LastID  *string             `arg:"last_id"`
	Start   *string             `arg:"start"`
	End     *string             `arg:"end"`
	Filter  map[string][]string `arg:"filter,optional" doc:"title, message, read, cleared, severity"`
	Sort    string              `arg:"sort" default:"created.desc"`
}

type notificationArgs struct {
	ID model.NotificationID `arg:"notification_id"`
}

type notificationUpdateArgs struct {
	ID      model.NotificationID `arg:"notification_id"`
	Read    *bool                `arg:"read"`
	Cleared *bool                `arg:"cleared"`
}

var notificationListing = listing[model.Notification]{
	sort: map[string]sortColumn[model.Notification]{
		"created": {timeColumn, func(n model.Notification) string { return textTime(n.CreatedAt) }},
	},
	id:      func(n model.Notification) string { return n.ID.String() },
	idKind:  uuidColumn,
	filters: []string{"title", "message", "read", "cleared", "severity"},
}

func (s *Server) notificationList(ctx context.Context, c *call, a notificationListArgs) ([]api.Notification, error) {
	args := pageArgs{limit: a.Limit, first: a.FirstID, last: a.LastID, start: a.Start, end: a.End, filter: a.Filter, sort: a.Sort}
	page, err := notificationListing.page(args)
	if err != nil {
		return nil, err
	}
	f := model.NotificationFilter{
		Titles: a.Filter["title"], Messages: a.Filter["message"], Severities: named[model.Severity](a.Filter["severity"]),
	}
	var errs [2]error
	f.Read, errs[0] = filterBool("read", a.Filter["read"])
	f.Cleared, errs[1] = filterBool("cleared", a.Filter["cleared"])
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	all := []model.Severity{model.SeverityMessage, model.SeverityInfo, model.SeveritySuccess, model.SeverityWarning, model.SeverityError}
	for _, severity := range f.Severities {
		if !slices.Contains(all, severity) {
			return nil, invalidArgument("filter", "value_error", "filter severity: %q is not one of %s", severity, joinTexts(all))
		}
	}
	list, err := s.store.Notifications(ctx, c.env(), f, page)
	if err != nil {
		return nil, err
	}
	notificationListing.describe(c, args, page, list)
	return convertAll(list.Items, notificationOf), nil
}

func (s *Server) notificationGet(ctx context.Context, c *call, a notificationArgs) (api.Notification, error) {
	n, err := s.store.Notification(ctx, c.env(), a.ID)
	return notificationOf(n), err
}

func (s *Server) notificationUpdate(ctx context.Context, c *call, a notificationUpdateArgs) (api.Notification, error) {
	if a.Read == nil && a.Cleared == nil {
		return api.Notification{}, invalidArgument("read", "missing", "at least one of read and cleared must be given")
	}
	n, err := s.store.UpdateNotification(ctx, c.env(), a.ID, a.Read, a.Cleared)
	return notificationOf(n), err
}

func notificationOf(n model.Notification) api.Notification {
	return api.Notification{
		ID: n.ID.String(), Environment: n.Environment.String(), Created: api.OptionalTime(n.CreatedAt), Title: n.Title, Message: n.Message,
		Severity: string(n.Severity), URI: optionalText(n.URI), CompileID: optionalID(n.Job.UUID), Read: n.Read, Cleared: n.Cleared,
	}
}
