//go:build linux

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// treeBytes is the size of struct tree of bpf/tree.h, neighbourBytes that of struct neighbour.
const (
	neighbourBytes = 16
	treeBytes      = 32 + (1+maxChildren)*neighbourBytes
)

// servable reports why the program cannot reduce for an epoch.
func servable(c *switchreduce.Config, own netip.Addr) error {
	switch {
	case !own.IsUnspecified() && !own.Unmap().Is4():
		return fmt.Errorf("the data address %v is none of IPv4", own)
	case c.Protection != wire.Plain:
		return fmt.Errorf("packets are %v", c.Protection)
	case len(c.Children) > maxChildren:
		return fmt.Errorf("%d children, at most %d can be served", len(c.Children), maxChildren)
	case c.ChunkBytes > maxPacket-wire.HeaderSize:
		return fmt.Errorf("chunks of %d bytes, at most %d can be served", c.ChunkBytes, maxPacket-wire.HeaderSize)
	case c.Parent.IsValid() && !c.Parent.Addr().Is4():
		return errors.New("the parent has no IPv4 address")
	}
	for i := range c.Children {
		if !c.Children[i].Addr.Addr().Is4() {
			return fmt.Errorf("child %d has no IPv4 address", i)
		}
	}
	return nil
}

// encode returns the tree of an epoch, with its socket at a port.
func encode(c *switchreduce.Config, port uint16, own netip.Addr) ([]byte, error) {
	b := make([]byte, treeBytes)
	big, native := binary.BigEndian, binary.NativeEndian
	big.PutUint32(b, c.Group)
	big.PutUint32(b[4:], c.Epoch)
	big.PutUint32(b[8:], c.Children[0].Lowest)
	native.PutUint32(b[12:], 2*c.Window-1)
	native.PutUint32(b[16:], uint32(len(c.Children)))
	big.PutUint16(b[20:], port)
	native.PutUint32(b[24:], uint32(c.ChunkBytes))
	if c.Parent.IsValid() {
		native.PutUint16(b[22:], 1)
		from, err := source(own, c.Parent)
		if err != nil {
			return nil, err
		}
		neighbour(b[32:], c.Parent, from, c.Cookie)
	}
	big.PutUint16(b[30:], c.Index)
	for i := range c.Children {
		child := &c.Children[i]
		neighbour(b[32+(1+i)*neighbourBytes:], child.Addr, netip.IPv4Unspecified(), child.Cookie)
	}
	return b, nil
}

func neighbour(b []byte, at netip.AddrPort, own netip.Addr, cookie wire.Cookie) {
	addr, from := at.Addr().As4(), own.As4()
	copy(b, addr[:])
	copy(b[4:], from[:])
	binary.BigEndian.PutUint16(b[8:], at.Port())
	var secret [8]byte
	binary.BigEndian.PutUint64(secret[:], uint64(cookie)<<16)
	copy(b[10:], secret[:6])
}

// source returns the address from which the kernel would send to a neighbour.
func source(own netip.Addr, to netip.AddrPort) (netip.Addr, error) {
	if !own.IsUnspecified() {
		return own.Unmap(), nil
	}
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to)) // sends nothing
	if err != nil {
		return netip.Addr{}, fmt.Errorf("kernel: no way to the parent: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
