package sdktest

import (
	"net"
	"testing"
)

// listen takes an address that was in use before.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("listening on %s: %v", address, err)
	}
	return l
}
