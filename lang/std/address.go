package std

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
)

// network is an address with the length of its network's prefix.
type network struct {
	addr netip.Addr
	bits int
}

// parseAddr reads an address as Python's module ipaddress does. version is 4, 6 or 0 for either.
func parseAddr(s string, version int) (netip.Addr, error) {
	fault := fmt.Errorf("%q does not appear to be an IPv4 or IPv6 address", s)
	if strings.Contains(s, "/") {
		return netip.Addr{}, fault
	}
	plain, zone, zoned := strings.Cut(s, "%")
	if zoned && (zone == "" || strings.Contains(zone, "%")) {
		return netip.Addr{}, fault
	}
	a, err := netip.ParseAddr(plain)
	if err != nil || a.Is4() && (version == 6 || zoned) || a.Is6() && version == 4 {
		return netip.Addr{}, fault
	}
	if zoned {
		a = a.WithZone(zone)
	}
	return a, nil
}

// parseNetwork reads an address with an optional mask: a prefix length, or for IPv4 also a netmask or a host mask.
func parseNetwork(s string, version int) (network, error) {
	text, mask, masked := strings.Cut(s, "/")
	a, err := parseAddr(text, version)
	if err != nil {
		return network{}, err
	}
	n := network{addr: a, bits: a.BitLen()}
	if !masked {
		return n, nil
	}
	bits, ok := prefixBits(mask, a)
	if !ok {
		return network{}, fmt.Errorf("%q is not a valid netmask", mask)
	}
	n.bits = bits
	return n, nil
}

func prefixBits(mask string, a netip.Addr) (int, bool) {
	if mask != "" && strings.Trim(mask, "0123456789") == "" {
		n, err := strconv.Atoi(mask)
		return n, err == nil && n <= a.BitLen()
	}
	if !a.Is4() {
		return 0, false
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return 0, false
	}
	raw := m.As4()
	word := uint32(raw[0])<<24 | uint32(raw[1])<<16 | uint32(raw[2])<<8 | uint32(raw[3])
	for n := range 33 {
		net := uint32(0xffffffff) << (32 - n)
		if n == 0 {
			net = 0
		}
		if word == net {
			return n, true
		}
	}
	for n := range 33 {
		if uint64(word) == uint64(1)<<(32-n)-1 {
			return n, true
		}
	}
	return 0, false
}

// strict reports whether no bit of the host is set.
func (n network) strict() bool {
	p, err := n.addr.WithZone("").Prefix(n.bits)
	return err == nil && p.Addr() == n.addr.WithZone("")
}

func (n network) first() netip.Addr {
	p, err := n.addr.WithZone("").Prefix(n.bits)
	if err != nil {
		return n.addr
	}
	return p.Addr()
}

func (n network) mask() netip.Addr {
	raw := make([]byte, n.addr.BitLen()/8)
	for i := range n.bits {
		raw[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// size is the number of addresses in the network.
func (n network) size() *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(n.addr.BitLen()-n.bits))
}

// add gives the address that lies offset after a; ok is false beyond the ends of the address space.
func add(a netip.Addr, offset *big.Int) (netip.Addr, bool) {
	sum := new(big.Int).Add(new(big.Int).SetBytes(a.AsSlice()), offset)
	if sum.Sign() < 0 || sum.BitLen() > a.BitLen() {
		return netip.Addr{}, false
	}
	out, ok := netip.AddrFromSlice(sum.FillBytes(make([]byte, a.BitLen()/8)))
	return out.WithZone(a.Zone()), ok
}
