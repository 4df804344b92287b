package gitsync

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/intendant/intendant/model"
)

// metadataAddresses are where clouds serve the credentials of the machine outside of the link-local range.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	carrier   = netip.MustParsePrefix("100.64.0.0/10")
	thisNet   = netip.MustParsePrefix("0.0.0.0/8")
)

// checkAddress reports whether the server may connect to an address on behalf of somebody who chose the URL.
func checkAddress(a netip.Addr, blockPrivate bool) error {
	a = a.WithZone("").Unmap()
	if a.Is6() {
		// Addresses that carry an IPv4 one reach it through a translator.
		b := a.As16()
		switch {
		case nat64.Contains(a):
			a = netip.AddrFrom4([4]byte(b[12:16]))
		case sixToFour.Contains(a):
			a = netip.AddrFrom4([4]byte(b[2:6]))
		}
	}
	refuse := func(what string) error {
		return fmt.Errorf("connecting to %s is refused: %s: %w", a, what, model.ErrForbidden)
	}
	switch {
	case a.IsLinkLocalUnicast():
		return refuse("link-local addresses serve machine credentials, not repositories")
	case a.IsUnspecified(), thisNet.Contains(a):
		return refuse("it is not a host's address")
	case a.IsMulticast(), a.IsInterfaceLocalMulticast():
		return refuse("it is a multicast address")
	}
	if slices.Contains(metadataAddresses, a) {
		return refuse("it serves machine credentials, not repositories")
	}
	if blockPrivate && (a.IsPrivate() || a.IsLoopback() || carrier.Contains(a)) {
		return refuse("private networks are blocked in the server's configuration")
	}
	return nil
}

// guardedDialer checks each address after the name is resolved and right before the connection is made, so that neither a
// redirect nor a name that changes its address gets past it.
func guardedDialer(blockPrivate bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout:   10 * time.Second,
		KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("address %q: %w", address, model.ErrForbidden)
			}
			return checkAddress(ap.Addr(), blockPrivate)
		},
	}
	return d.DialContext
}
