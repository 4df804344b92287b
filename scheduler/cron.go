package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/intendant/intendant/model"
)

// maxYear bounds the search for the next moment of an expression with years.
const maxYear = 2200

// ValidateCron reports what is wrong with a cron expression: five fields with the minute first; six with a year at the end, or
// with seconds first when the last field can not be a year; seven with both; or a name such as @daily. It is a [model.CronValidator].
func ValidateCron(expression string) error {
	_, err := parseCron(expression)
	return err
}

// NextCron reads a cron expression as [ValidateCron] does, and returns what tells its next moment after another; the zero time
// stands for never.
func NextCron(expression string) (next func(after time.Time) time.Time, err error) {
	schedule, err := parseCron(expression)
	if err != nil {
		return nil, err
	}
	if schedule == nil {
		return func(time.Time) time.Time { return time.Time{} }, nil
	}
	return schedule.Next, nil
}

// parseCron reads a cron expression in UTC.
func parseCron(expression string) (cron.Schedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, fmt.Errorf("cron expression %q: time zones are not supported, moments are in UTC: %w", expression, model.ErrInvalid)
	}
	if expression = strings.TrimSpace(expression); strings.HasPrefix(expression, "@") {
		schedule, err := cron.ParseStandard("TZ=UTC " + expression)
		if err != nil {
			return nil, fmt.Errorf("cron expression %q: %w: %w", expression, err, model.ErrInvalid)
		}
		return schedule, nil
	}
	fields := strings.Fields(expression)
	var years map[int]bool
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	switch len(fields) {
	case 5:
	case 6, 7:
		y, err := parseYears(fields[len(fields)-1])
		switch {
		case err == nil:
			years = y
			fields = fields[:len(fields)-1]
		case len(fields) == 7:
			return nil, fmt.Errorf("cron expression %q: %w: %w", expression, err, model.ErrInvalid)
		}
		if len(fields) == 6 {
			parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
		}
	default:
		return nil, fmt.Errorf("cron expression %q has %d fields, want minute, hour, day, month and weekday: %w", expression, len(fields), model.ErrInvalid)
	}
	schedule, err := parser.Parse("TZ=UTC " + strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w: %w", expression, err, model.ErrInvalid)
	}
	if years != nil {
		schedule = yearly{schedule: schedule, years: years}
	}
	if schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron expression %q never comes to pass: %w", expression, model.ErrInvalid)
	}
	return schedule, nil
}

// parseYears reads a year field: *, numbers, ranges and steps in a list. nil stands for every year.
func parseYears(field string) (map[int]bool, error) {
	if field == "*" || field == "?" {
		return nil, nil
	}
	years := map[int]bool{}
	for part := range strings.SplitSeq(field, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q is not a step of years", part)
			}
			step = n
		}
		first, last := 1970, maxYear-1
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			var err error
			if first, err = strconv.Atoi(from); err != nil {
				return nil, fmt.Errorf("%q is not a year", part)
			}
			switch {
			case ranged:
				if last, err = strconv.Atoi(to); err != nil {
					return nil, fmt.Errorf("%q is not a range of years", part)
				}
			case !stepped:
				last = first
			}
		}
		if first < 1970 || last >= maxYear || last < first {
			return nil, fmt.Errorf("%q is not in the years 1970 to %d", part, maxYear-1)
		}
		for y := first; y <= last; y += step {
			years[y] = true
		}
	}
	return years, nil
}

// yearly keeps the moments of a schedule that are in some years.
type yearly struct {
	schedule cron.Schedule
	years    map[int]bool
}

// Next returns the first moment after t, or the zero time.
func (y yearly) Next(t time.Time) time.Time {
	t = t.UTC()
	for {
		t = y.schedule.Next(t)
		if t.IsZero() || y.years[t.Year()] {
			return t
		}
		year := t.Year() + 1
		for ; !y.years[year]; year++ {
			if year >= maxYear {
				return time.Time{}
			}
		}
		t = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
	}
}

// previous returns the last moment of a schedule that is not after t, or the zero time when there was none in a year.
func previous(s cron.Schedule, t time.Time) time.Time {
	if _, ok := s.(cron.ConstantDelaySchedule); ok {
		// Its moments count from whenever it was begun.
		return time.Time{}
	}
	t = t.UTC()
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour} {
		found := time.Time{}
		for at := s.Next(t.Add(-back)); !at.IsZero() && !at.After(t); at = s.Next(at) {
			found = at
		}
		if !found.IsZero() {
			return found
		}
	}
	return time.Time{}
}
