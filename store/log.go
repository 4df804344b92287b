package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
)

// logLine is a line of an action's log as it is stored. The log is one text, a JSON object a line: it enters the database with its
// action, whatever number of lines it has.
type logLine struct {
	Level   model.LogLevel `json:"level"`
	Time    time.Time      `json:"time"`
	Message string         `json:"message"`
	// Kwargs is the text of an object. As a string it may have escapes in it that PostgreSQL does not take in text.
	Kwargs string `json:"kwargs,omitempty"`
}

func encodeLog(lines []model.LogLine) string {
	var out strings.Builder
	for i, l := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		stored := logLine{Level: cmp.Or(l.Level, model.LevelInfo), Time: l.Time.UTC().Truncate(time.Microsecond), Message: text(l.Message)}
		if len(l.Kwargs) > 0 && json.Valid(l.Kwargs) {
			stored.Kwargs = text(string(l.Kwargs))
		}
		line, err := json.Marshal(stored)
		if err != nil {
			// Years that RFC 3339 does not have are all that can not be encoded.
			stored.Time = time.Time{}
			line, _ = json.Marshal(stored) //nolint:errchkjson // see above
		}
		out.Write(line)
	}
	return out.String()
}

func decodeLog(log, what string) ([]model.LogLine, error) {
	if log == "" {
		return nil, nil
	}
	var out []model.LogLine
	for line := range strings.SplitSeq(log, "\n") {
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, fmt.Errorf("reading the log of %s: %w", what, err)
		}
		out = append(out, model.LogLine{Level: l.Level, Message: l.Message, Kwargs: kwargs(l.Kwargs), Time: l.Time.UTC()})
	}
	return out, nil
}

// kwargs is the object that a log line has; one without any has an empty one.
func kwargs(stored string) json.RawMessage {
	return json.RawMessage(cmp.Or(stored, "{}"))
}
