package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// listenAt returns where a node listens. Where that is not said, it is a free port
// of the address from which it reaches the others.
func listenAt(ctx context.Context, c *Config, others []netip.AddrPort) (string, error) {
	if c.Listen != "" {
		return c.Listen, nil
	}
	from, err := towards(ctx, others)
	if err != nil {
		return "", fmt.Errorf("%w; say where the node listens (Listen)", err)
	}
	return netip.AddrPortFrom(from, 0).String(), nil
}

// advertised returns the address by which others know a node that listens at an
// address. It must be one that they can reach.
func advertised(ctx context.Context, c *Config, listens net.Addr, others []netip.AddrPort) (netip.AddrPort, error) {
	if c.Advertise != "" {
		all, err := locate(ctx, []string{c.Advertise})
		if err != nil {
			return netip.AddrPort{}, err
		}
		return all[0], nil
	}
	at, err := netip.ParseAddrPort(listens.String())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: it listens at %v: others need an address (Advertise)", ErrConfig, listens)
	}
	addr := at.Addr().Unmap()
	remote, any := foreign(others)
	switch {
	case addr.IsUnspecified() && !any:
		return netip.AddrPort{}, fmt.Errorf("%w: it listens at %v: others need one address (Advertise)", ErrConfig, listens)
	case addr.IsUnspecified():
		if addr, err = towards(ctx, others); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%w; others need one address (Advertise)", err)
		}
	case addr.IsLoopback() && any:
		return netip.AddrPort{}, fmt.Errorf("%w: it listens at %v, where %v cannot reach it: set Listen to an address of this host, or Advertise to the one that others reach", ErrConfig, listens, remote)
	}
	if len(others) > 0 && !at.Addr().IsUnspecified() && !slices.ContainsFunc(others, func(a netip.AddrPort) bool { return a.Addr().Is4() == addr.Is4() }) {
		return netip.AddrPort{}, fmt.Errorf("%w: it listens at %v, and %v is of the other family: IPv4 and IPv6 do not reach each other", ErrConfig, listens, others[0])
	}
	return netip.AddrPortFrom(addr, at.Port()), nil
}

// foreign returns the first address that is not of the loopback interface.
func foreign(others []netip.AddrPort) (netip.AddrPort, bool) {
	for _, a := range others {
		if !a.Addr().IsLoopback() {
			return a, true
		}
	}
	return netip.AddrPort{}, false
}

// towards returns the address from which this host reaches the others: that of
// the loopback interface where they are on it, or nobody is named.
func towards(ctx context.Context, others []netip.AddrPort) (netip.Addr, error) {
	to, any := foreign(others)
	if !any {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", to.String()) // sends nothing
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%w: no way to %v: %w", ErrConfig, to, err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
