package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
)

func TestCron(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 22, 59, 30, 0, time.UTC)
	tests := []struct {
		expression string
		next       string // empty: refused
		previous   string
	}{
		{"0 23 * * *", "2026-01-31T23:00:00Z", "2026-01-30T23:00:00Z"},
		{"*/15 * * * *", "2026-01-31T23:00:00Z", "2026-01-31T22:45:00Z"},
		{"0 0 1 * *", "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"0 0 * * mon", "2026-02-02T00:00:00Z", "2026-01-26T00:00:00Z"},
		{"0 0 1 1 * 2028", "2028-01-01T00:00:00Z", ""},
		{"0 0 1 1 * 2027-2031/2", "2027-01-01T00:00:00Z", ""},
		{"0 0 * * * 2026,2030", "2026-02-01T00:00:00Z", "2026-01-31T00:00:00Z"},
		{"0 0 * * * *", "2026-02-01T00:00:00Z", "2026-01-31T00:00:00Z"},
		{"15 0 23 * * 6", "2026-01-31T23:00:15Z", "2026-01-24T23:00:15Z"},
		{"15 0 23 * * 6 2027", "2027-01-02T23:00:15Z", ""},
		{"* * * *", "", ""},
		{"60 * * * *", "", ""},
		{"0 0 30 2 *", "", ""},
		{"0 0 1 1 * 1999 x", "", ""},
		{"0 0 0 1 1 * 1966", "", ""},
		{"0 0 0 1 1 * 2030-2029", "", ""},
		{"0 0 0 1 1 * 2030/0", "", ""},
		{"TZ=Europe/Paris 0 0 * * *", "", ""},
		{"@daily", "2026-02-01T00:00:00Z", "2026-01-31T00:00:00Z"},
		{"@every 1h", "2026-01-31T23:59:30Z", ""},
		{"@sometimes", "", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			t.Parallel()
			schedule, err := parseCron(tt.expression)
			if tt.next == "" {
				if !errors.Is(err, model.ErrInvalid) || ValidateCron(tt.expression) == nil {
					t.Fatalf("parseCron = %v, want ErrInvalid", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := schedule.Next(from).Format(time.RFC3339); got != tt.next {
				t.Errorf("next = %s, want %s", got, tt.next)
			}
			got := ""
			if at := previous(schedule, from); !at.IsZero() {
				got = at.Format(time.RFC3339)
			}
			if got != tt.previous {
				t.Errorf("previous = %s, want %s", got, tt.previous)
			}
		})
	}
}
