package std

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"

	"github.com/intendant/intendant/lang/value"
)

func addressPlugins() []*value.Plugin {
	onInterface := func(name, returns, param string, f func(network) value.Value) *value.Plugin {
		return plugin(name, returns, func(_ value.Context, a []value.Value) (value.Value, error) {
			n, err := parseNetwork(text(a[0]), 0)
			if err != nil {
				return nil, err
			}
			return f(n), nil
		}, arg(param, "std::ipv_any_interface"))
	}
	return []*value.Plugin{
		plugin("prefixlength_to_netmask", "std::ipv4_address", prefixToMask, arg("prefixlen", "int")),
		onInterface("prefixlen", "int", "addr", func(n network) value.Value { return value.Int(n.bits) }),
		onInterface("network_address", "std::ipv_any_address", "addr", func(n network) value.Value { return addressText(n.first()) }),
		onInterface("netmask", "std::ipv_any_address", "addr", func(n network) value.Value { return addressText(n.mask()) }),
		onInterface("ip_address_from_interface", "std::ipv_any_address", "ip_interface", func(n network) value.Value { return addressText(n.addr) }),
		plugin("ipindex", "string", ipIndex, arg("addr", "std::ipv_any_network"), arg("position", "int"), opt("keep_prefix", "bool", value.Bool(false))),
		plugin("add_to_ip", "std::ipv_any_address", addToIP, arg("addr", "std::ipv_any_address"), arg("n", "int")),
	}
}

func addressText(a netip.Addr) value.Value { return value.String(a.String()) }

func prefixToMask(_ value.Context, a []value.Value) (value.Value, error) {
	n, err := parseNetwork("255.255.255.255/"+value.Str(a[0]), 4)
	if err != nil {
		return nil, err
	}
	return addressText(n.mask()), nil
}

// bigInteger reads an int argument of any size.
func bigInteger(v value.Value) *big.Int {
	switch x := v.(type) {
	case value.Int:
		return big.NewInt(int64(x))
	case *value.BigInt:
		return x.V
	case value.Bool:
		if x {
			return big.NewInt(1)
		}
	}
	return new(big.Int)
}

func ipIndex(_ value.Context, a []value.Value) (value.Value, error) {
	n, err := parseNetwork(text(a[0]), 0)
	if err != nil {
		return nil, err
	}
	if !n.strict() {
		return nil, fmt.Errorf("%s has host bits set", text(a[0]))
	}
	index := bigInteger(a[1])
	if index.Sign() < 0 {
		index = new(big.Int).Add(index, n.size())
	}
	if index.Sign() < 0 || index.Cmp(n.size()) >= 0 {
		return nil, errors.New("address out of range")
	}
	ip, ok := add(n.addr, index)
	if !ok {
		return nil, errors.New("address out of range")
	}
	s := ip.WithZone("").String()
	if value.Truth(a[2]) {
		s += "/" + strconv.Itoa(n.bits)
	}
	return value.String(s), nil
}

func addToIP(_ value.Context, a []value.Value) (value.Value, error) {
	ip, err := parseAddr(text(a[0]), 0)
	if err != nil {
		return nil, err
	}
	sum, ok := add(ip, bigInteger(a[1]))
	if !ok {
		return nil, fmt.Errorf("%s plus %s is not an address", ip, value.Str(a[1]))
	}
	return addressText(sum.WithZone("")), nil
}
