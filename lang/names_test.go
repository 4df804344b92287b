package lang

import (
	"maps"
	"strings"
	"testing"
	"testing/iotest"
)

// TestNamesInPieces looks at a text piece by piece, with names at every place where a piece can end.
func TestNamesInPieces(t *testing.T) {
	t.Parallel()
	const end = readAtOnce
	for at := end - 12; at < end+3; at++ {
		text := strings.Repeat(" ", at) + "std::File x std::Service" + strings.Repeat("\n", end) + "std::reload"
		want := map[string]bool{"File": true, "Service": true, "reload": true}
		for name, r := range map[string]*strings.Reader{"at once": strings.NewReader(text), "bit by bit": strings.NewReader(text)} {
			seen := names{}
			if name == "at once" {
				seen.read(r, make([]byte, 0, readAtOnce))
			} else {
				seen.read(iotest.HalfReader(r), make([]byte, 0, readAtOnce))
			}
			if !maps.Equal(seen, want) {
				t.Errorf("%s, with a name %d bytes before the end of a piece: %v", name, end-at, seen)
			}
		}
	}
}
