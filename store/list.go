package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/intendant/intendant/model"
)

// Lists are the one place where SQL is put together while running: each sorts by one of several columns in two directions
// between optional bounds, and only a statement that says so literally finds the index for it. Statements are made of constant
// fragments of this package alone; whatever comes from outside is a parameter.

// kind is the type of a column that lists sort by.
type kind int

const (
	kindText kind = iota
	kindTime
	kindInt
	kindBool
	kindUUID
)

// column is an expression to sort by. It must not be NULL: nulls are the smallest values, so coalesce to such a one.
type column struct {
	expr string
	kind kind
}

// listing is one kind of list.
type listing[T any] struct {
	// name is for errors.
	name string
	// from is the table with its alias; joins are added for the rows of the page only, whose alias is p.
	from  string
	joins string
	// columns are selected from p and the joins, and read by scan.
	columns string
	scan    func(row pgx.CollectableRow) (T, error)
	// id is the column that makes the order total; sorts are the columns to sort by, the first name in byDefault.
	id        column
	sorts     map[string]column
	byDefault string
}

// filter collects conditions and their parameters.
type filter struct {
	where []string
	args  []any
}

// arg adds a parameter and returns its place.
func (f *filter) arg(v any) string {
	f.args = append(f.args, v)
	return "$" + strconv.Itoa(len(f.args))
}

// and adds a condition; each ? in it stands for the next of the values.
func (f *filter) and(condition string, values ...any) {
	for _, v := range values {
		condition = strings.Replace(condition, "?", f.arg(v), 1)
	}
	f.where = append(f.where, condition)
}

// contains keeps rows whose column contains one of the substrings, in whatever case.
func (f *filter) contains(column string, substrings []string) {
	if len(substrings) == 0 {
		return
	}
	escape := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	patterns := make([]string, len(substrings))
	for i, s := range substrings {
		patterns[i] = "%" + escape.Replace(text(s)) + "%"
	}
	f.and(column+" ILIKE ANY(?::text[])", patterns)
}

// oneOf keeps rows whose column has one of the values; no values keep all.
func oneOf[S ~string](f *filter, column string, values []S) {
	if len(values) > 0 {
		f.and(column+" = ANY(?::text[])", strs[string](values))
	}
}

// is keeps rows whose column is as wanted.
func (f *filter) is(column string, want *bool) {
	if want != nil {
		f.and(column+" = ?", *want)
	}
}

// within bounds a time.
func (f *filter) within(column string, r model.TimeRange) {
	for _, b := range []struct {
		op string
		at time.Time
	}{{" > ?", r.After}, {" >= ?", r.From}, {" < ?", r.Before}, {" <= ?", r.Until}} {
		if !b.at.IsZero() {
			f.and(column+b.op, b.at)
		}
	}
}

// between bounds an integer.
func (f *filter) between(column string, r model.IntRange) {
	for _, b := range []struct {
		op string
		n  *int
	}{{" > ?", r.Above}, {" >= ?", r.AtLeast}, {" < ?", r.Below}, {" <= ?", r.AtMost}} {
		if b.n != nil {
			f.and(column+b.op, *b.n)
		}
	}
}

func (f *filter) String() string {
	if len(f.where) == 0 {
		return "true"
	}
	return strings.Join(f.where, " AND ")
}

// clone returns a copy to add other conditions to.
func (f *filter) clone() *filter {
	return &filter{where: slices.Clone(f.where), args: slices.Clone(f.args)}
}

// parse reads a bound's text as a value of the column.
func (c column) parse(s string) (any, error) {
	switch c.kind {
	case kindTime:
		if s == "" {
			return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, nil
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return nil, fmt.Errorf("page bound %q is not a time as 2006-01-02T15:04:05.999999Z: %w", s, model.ErrInvalid)
		}
		return pgtype.Timestamptz{Time: t, Valid: true}, nil
	case kindInt:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("page bound %q is not a number: %w", s, model.ErrInvalid)
		}
		return n, nil
	case kindBool:
		if s == "" {
			return false, nil
		}
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, fmt.Errorf("page bound %q is not true or false: %w", s, model.ErrInvalid)
		}
		return b, nil
	case kindUUID:
		id, err := uuid.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("page bound %q is not an id: %w", s, model.ErrInvalid)
		}
		return id, nil
	case kindText:
	}
	return text(s), nil
}

// holder returns what a value of the column is scanned into.
func (c column) holder() any {
	switch c.kind {
	case kindTime:
		return &pgtype.Timestamptz{}
	case kindInt:
		return new(int64)
	case kindBool:
		return new(bool)
	case kindUUID:
		return new(uuid.UUID)
	case kindText:
	}
	return new(string)
}

// plan is a page turned into SQL.
type plan struct {
	sort, id column
	// forward: rows are read in the requested order; otherwise in the opposite one, and turned round.
	forward    bool
	descending bool
	bound      *model.Bound
	greater    bool // bound is below the rows
}

func (l *listing[T]) plan(p model.Page) (plan, error) {
	name := cmp.Or(p.Sort, l.byDefault)
	sort, ok := l.sorts[name]
	if !ok {
		return plan{}, fmt.Errorf("%s can not be sorted by %q: %w", l.name, name, model.ErrInvalid)
	}
	if p.Limit < 0 {
		return plan{}, fmt.Errorf("%s: a page of %d items: %w", l.name, p.Limit, model.ErrInvalid)
	}
	pl := plan{sort: sort, id: l.id, forward: true, descending: p.Descending}
	switch {
	case p.Lower != nil && p.Upper != nil:
		return plan{}, fmt.Errorf("%s: a page has one bound at most: %w", l.name, model.ErrInvalid)
	case p.Lower != nil:
		pl.bound, pl.greater, pl.forward = p.Lower, true, !p.Descending
	case p.Upper != nil:
		pl.bound, pl.forward = p.Upper, p.Descending
	}
	return pl, nil
}

// beyond adds the condition of the bound.
func (pl plan) beyond(f *filter) error {
	if pl.bound == nil {
		return nil
	}
	op := " < "
	if pl.greater {
		op = " > "
	}
	value, err := pl.sort.parse(pl.bound.Value)
	if err != nil {
		return err
	}
	if pl.bound.ID == "" {
		f.where = append(f.where, pl.sort.expr+op+f.arg(value))
		return nil
	}
	id, err := pl.id.parse(pl.bound.ID)
	if err != nil {
		return err
	}
	f.where = append(f.where, "("+pl.sort.expr+", "+pl.id.expr+")"+op+"("+f.arg(value)+", "+f.arg(id)+")")
	return nil
}

// page reads one page of a list and counts what is around it, in one consistent view.
func page[T any](ctx context.Context, tx *Tx, l *listing[T], f *filter, p model.Page) (model.List[T], error) {
	pl, err := l.plan(p)
	if err != nil {
		return model.List[T]{}, err
	}
	bounded := f.clone()
	if err := pl.beyond(bounded); err != nil {
		return model.List[T]{}, err
	}
	direction := ""
	if pl.forward == pl.descending {
		direction = " DESC"
	}
	limit := "ALL"
	if p.Limit > 0 {
		limit = bounded.arg(p.Limit)
	}
	//nolint:unqueryvet // the columns are chosen outside, after the limit
	query := "SELECT " + l.columns + ", p.sort_value, p.id_value FROM (SELECT *, " + pl.sort.expr + " AS sort_value, " + pl.id.expr + " AS id_value FROM " +
		l.from + " WHERE " + bounded.String() + " ORDER BY " + pl.sort.expr + direction + ", " + pl.id.expr + direction + " LIMIT " + limit + ") p " +
		l.joins + " ORDER BY p.sort_value" + direction + ", p.id_value" + direction
	rows, err := tx.Tx.Query(ctx, query, bounded.args...)
	if err != nil {
		return model.List[T]{}, fmt.Errorf("listing %s: %w", l.name, err)
	}
	sortValue, idValue := pl.sort.holder(), pl.id.holder()
	var first, last [2]any
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) {
		item, err := l.scan(tailRow{CollectableRow: row, tail: []any{sortValue, idValue}})
		if first[0] == nil {
			first = [2]any{deref(sortValue), deref(idValue)}
		}
		last = [2]any{deref(sortValue), deref(idValue)}
		return item, err
	})
	if err != nil {
		return model.List[T]{}, fmt.Errorf("listing %s: %w", l.name, err)
	}
	if !pl.forward {
		slices.Reverse(items)
		first = last
	}
	out := model.List[T]{Items: items}
	return out, pl.count(ctx, tx, l.from, f, first, &out.Total, &out.Before, &out.After, len(items))
}

// count fills in how many rows there are, and how many ahead of and behind the page.
func (pl plan) count(ctx context.Context, tx *Tx, from string, f *filter, first [2]any, total, before, after *int, items int) error {
	f = f.clone()
	ahead := "0"
	if items > 0 {
		op := " < "
		if pl.descending {
			op = " > "
		}
		ahead = "count(*) FILTER (WHERE (" + pl.sort.expr + ", " + pl.id.expr + ")" + op + "(" + f.arg(first[0]) + ", " + f.arg(first[1]) + "))"
	}
	err := tx.Tx.QueryRow(ctx, "SELECT count(*), "+ahead+" FROM "+from+" WHERE "+f.String(), f.args...).Scan(total, before)
	if err != nil {
		return fmt.Errorf("counting: %w", err)
	}
	if items == 0 && pl.forward {
		*before = *total // nothing is behind the bound
	}
	*after = *total - *before - items
	return nil
}

func deref(p any) any {
	switch p := p.(type) {
	case *pgtype.Timestamptz:
		return *p
	case *int64:
		return *p
	case *bool:
		return *p
	case *uuid.UUID:
		return *p
	case *string:
		return *p
	}
	return p
}

// tailRow is a row whose last columns go to the list, the others to whoever scans it.
type tailRow struct {
	pgx.CollectableRow
	tail []any
}

// Scan reads the row.
func (r tailRow) Scan(dest ...any) error {
	return r.CollectableRow.Scan(append(slices.Clip(dest), r.tail...)...)
}

// list reads one page in a snapshot; prepare may look things up for the filter first.
func list[T any](ctx context.Context, s *Store, p model.Page, prepare func(tx *Tx) (*listing[T], *filter, error)) (model.List[T], error) {
	var out model.List[T]
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		l, f, err := prepare(tx)
		if err != nil || l == nil {
			return err
		}
		out, err = page(ctx, tx, l, f, p)
		return err
	})
	if out.Items == nil {
		out.Items = []T{}
	}
	return out, err
}

// pageOf cuts a page out of a short list that is in memory, ascending by time and then id.
func pageOf[T any](items []T, key func(T) (time.Time, string), p model.Page) (model.List[T], error) {
	if p.Lower != nil && p.Upper != nil {
		return model.List[T]{}, fmt.Errorf("a page has one bound at most: %w", model.ErrInvalid)
	}
	compare := func(item T, b *model.Bound) (int, error) {
		at, id := key(item)
		bound, err := (column{kind: kindTime}).parse(b.Value)
		if err != nil {
			return 0, err
		}
		ts, ok := bound.(pgtype.Timestamptz)
		if !ok || ts.InfinityModifier != pgtype.Finite {
			return 1, nil
		}
		c := at.Compare(ts.Time)
		if c == 0 && b.ID != "" {
			c = strings.Compare(id, b.ID)
		}
		return c, nil
	}
	from, to := 0, len(items)
	for i, item := range items {
		if p.Lower != nil {
			c, err := compare(item, p.Lower)
			if err != nil {
				return model.List[T]{}, err
			}
			if c <= 0 {
				from = i + 1
			}
		}
		if p.Upper != nil {
			c, err := compare(item, p.Upper)
			if err != nil {
				return model.List[T]{}, err
			}
			if c >= 0 {
				to = min(to, i)
			}
		}
	}
	from = min(from, to)
	if p.Limit > 0 && to-from > p.Limit {
		// Nearest to the bound; without one, from the front of the requested order.
		if p.Upper != nil || (p.Lower == nil && p.Descending) {
			from = to - p.Limit
		} else {
			to = from + p.Limit
		}
	}
	out := model.List[T]{Items: slices.Clone(items[from:to]), Total: len(items), Before: from, After: len(items) - to}
	if p.Descending {
		slices.Reverse(out.Items)
		out.Before, out.After = out.After, out.Before
	}
	if out.Items == nil {
		out.Items = []T{}
	}
	return out, nil
}

// isNoRows reports whether a query for one row found none.
func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
