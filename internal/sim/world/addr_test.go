package world

import (
	"encoding/binary"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/sim"
)

// network is the first byte of all addresses of a world; the other three are
// the node's number.
const network = 10

// AddrPort returns the address of a port of a node.
func AddrPort(a sim.Addr) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], network<<24|uint32(a.Node))
	return netip.AddrPortFrom(netip.AddrFrom4(ip), a.Port)
}

// AddrOf is the inverse of AddrPort; it is false for an address of no node.
func AddrOf(a netip.AddrPort) (sim.Addr, bool) {
	if !a.Addr().Is4() {
		return sim.Addr{}, false
	}
	ip := a.Addr().As4()
	n := binary.BigEndian.Uint32(ip[:])
	return sim.Addr{Node: sim.NodeID(n & (1<<24 - 1)), Port: a.Port()}, n>>24 == network
}
