package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Network is where a node's sockets come from. Tests put one in between that
// counts, or loses.
type Network interface {
	// Listen opens a listener and a socket for datagrams on the same address and
	// port, "host:port"; port 0 takes one that is free for both.
	Listen(ctx context.Context, address string) (net.Listener, Datagrams, error)
	// Dial connects to another node's listener, until ctx ends.
	Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Datagrams is a socket for datagrams, such as a *net.UDPConn.
type Datagrams interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// System returns the system's Network, which a Config without one has.
func System() Network { return system{} }

type system struct{}

// attempts at a port that is free for TCP and, by chance, not for UDP.
const attempts = 32

// Listen implements Network.
func (system) Listen(ctx context.Context, address string) (net.Listener, Datagrams, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	for try := 0; ; try++ {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, nil, err
		}
		at := l.Addr().(*net.TCPAddr)
		p, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(at.Port)))
		if err == nil {
			return l, p.(*net.UDPConn), nil
		}
		err = errors.Join(fmt.Errorf("port %d is free for TCP, but not for UDP, and a node takes one number for both: %w", at.Port, err), l.Close())
		if port != "0" || try == attempts {
			return nil, nil, err
		}
	}
}

// Dial implements Network.
func (system) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
}

// locate returns the addresses that "host:port" stands for.
func locate(ctx context.Context, all []string) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	for _, text := range all {
		if a, err := netip.ParseAddrPort(text); err == nil {
			out = append(out, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
			continue
		}
		host, service, err := net.SplitHostPort(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, text, err)
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, text, err)
		}
		for _, ip := range ips {
			out = append(out, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
		}
	}
	return out, nil
}
