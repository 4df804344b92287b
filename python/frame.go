package python

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// appendFrame writes a frame as JSON. Arguments and results are JSON already and go in as they are: encoding/json would check and
// compact them once more.
func appendFrame(b []byte, f frame) ([]byte, error) {
	b = append(b, '{')
	switch {
	case f.Event != "":
		b = append(b, `"event":`...)
		b = strconv.AppendQuoteToASCII(b, f.Event)
	default:
		b = append(b, `"id":`...)
		b = strconv.AppendUint(b, f.ID, 10)
	}
	if f.Call != "" {
		b = append(b, `,"call":`...)
		b = strconv.AppendQuoteToASCII(b, f.Call)
	}
	if f.Args != nil {
		b = append(append(b, `,"args":`...), f.Args...)
	}
	if f.Result != nil {
		b = append(append(b, `,"result":`...), f.Result...)
	}
	if f.Error != nil {
		text, err := json.Marshal(f.Error)
		if err != nil {
			return nil, fmt.Errorf("writing an error: %w", err)
		}
		b = append(append(b, `,"error":`...), text...)
	}
	return append(b, '}'), nil
}

// parseFrame reads a frame. The frames of our own host side begin with the id or the event, and the payload comes last but for
// "in": those are cut out without looking into the payload. Anything else goes to encoding/json.
func parseFrame(body []byte, f *frame) error {
	if err := json.Unmarshal(body, f); err != nil {
		return err
	}
	return nil
}
