package p4_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// uncounted is the outcome of frames that are dropped without a word: links carry them
// all the time.
const uncounted = "none"

// TestForwardingOnBMv2 sends packets of all kinds from port 2. Those to the
// parent's host leave by port 1 with a smaller time to live and nothing else
// changed but what depends upon it; others are discarded for a reason.
func TestForwardingOnBMv2(t *testing.T) {
	if !live(t) {
		return
	}
	p := newPipeline(t)
	p.begin()
	p.install(&switchreduce.Config{
		Group: 9, Epoch: 2, Cookie: 7, Window: 4, ChunkBytes: 64,
		Children: []switchreduce.Child{{Addr: addr('a'), Cookie: 8}}, Parent: addr('p'),
	})
	host, own := addr('p').Addr(), p.state.Ports[1].Addr
	tree := p4.TreePort(p.tree().Index)
	probe := wire.Header{Type: wire.Probe, Group: 9, Epoch: 2, Cookie: 8, Chunk: 5}
	header := make([]byte, wire.HeaderSize)
	probe.Put(header)
	udp := func(to netip.Addr, port uint16, b []byte) []byte {
		return udpPacket(addr('a'), netip.AddrPortFrom(to, port), b, true)
	}
	for _, c := range []struct {
		name    string
		packet  []byte
		change  func(packet []byte) // before its IPv4 checksum is made anew
		kind    uint16              // 0: IPv4
		outcome string              // "": it is forwarded
	}{
		{name: "UDP", packet: udp(host, 7, []byte("abc"))},
		{name: "UDP, no payload", packet: udp(host, 7, nil)},
		{name: "UDP, large", packet: udp(host, 7, make([]byte, 2000))},
		{name: "to another switch's tree", packet: udp(host, tree, header)},
		{name: "to another switch's tree, no packet", packet: udp(host, tree, header[:20])},
		{name: "TCP", packet: udp(host, 7, make([]byte, 20)), change: func(b []byte) { b[9] = unix.IPPROTO_TCP }},
		{name: "first fragment", packet: udp(host, tree, header), change: func(b []byte) { b[6] = 0x20 }},
		{name: "later fragment", packet: udp(host, tree, header), change: func(b []byte) { b[7] = 9 }},
		{name: "options", packet: slices.Insert(udp(host, 7, []byte("abc")), ipBytes, 1, 1, 1, 1), change: func(b []byte) { b[0], b[3] = 0x46, b[3]+4 }},
		{name: "checksum that carries", packet: udp(host, 7, nil), change: func(b []byte) { binary.BigEndian.PutUint16(b[4:], 0) }},
		{name: "time to live 2", packet: udp(host, 7, nil), change: func(b []byte) { b[8] = 2 }},
		{name: "time to live 1", packet: udp(host, 7, nil), change: func(b []byte) { b[8] = 1 }, outcome: "discard ttl"},
		{name: "time to live 0", packet: udp(host, 7, nil), change: func(b []byte) { b[8] = 0 }, outcome: "discard ttl"},
		{name: "no route", packet: udp(netip.MustParseAddr("11.0.0.1"), 7, nil), outcome: "discard route"},
		{name: "ARP", packet: make([]byte, 28), kind: 0x0806, outcome: uncounted},
		{name: "LLDP", packet: make([]byte, 46), kind: 0x88cc, outcome: uncounted},
		{name: "a check of the loop from a link", packet: make([]byte, 46), kind: p4.CheckType, outcome: "discard protocol"},
		{name: "IPv6", packet: make([]byte, 60), kind: 0x86dd, outcome: "discard protocol"},
		{name: "not IPv4", packet: udp(host, 7, nil), change: func(b []byte) { b[0] = 0x55 }, outcome: "discard parser"},
		{name: "short", packet: udp(host, 7, nil)[:ipBytes-1], outcome: "discard parser"},
		{name: "to the switch, TCP", packet: udp(own, 7, make([]byte, 20)), change: func(b []byte) { b[9] = unix.IPPROTO_TCP }, outcome: "discard local"},
		{name: "to the switch, no tree", packet: udp(own, tree+1, header), outcome: "discard local"},
		{name: "to the switch, fragment", packet: udp(own, tree, header), change: func(b []byte) { b[6] = 0x20 }, outcome: "discard local"},
		{name: "longer than it says", packet: append(udp(own, tree, header), 0, 0), outcome: "discard length"},
		{name: "IPv4 is longer than UDP", packet: append(udp(own, tree, header), 0, 0), change: func(b []byte) { b[3] += 2 }, outcome: "discard length"},
		{name: "no UDP checksum", packet: udp(own, tree, header), change: func(b []byte) { clear(b[ipBytes+6 : ipBytes+8]) }, outcome: "discard checksum"},
		{name: "to another switch's tree, no UDP checksum", packet: udp(host, tree, header), change: func(b []byte) { clear(b[ipBytes+6 : ipBytes+8]) }},
		{name: "a tree's, with nothing", packet: udp(own, tree, nil), outcome: "fault-truncated"},
	} {
		frame := frameOf(c.packet)
		ip := frame[linkBytes:]
		if c.kind != 0 {
			binary.BigEndian.PutUint16(frame[12:], c.kind)
		} else if len(ip) >= ipBytes {
			if c.change != nil {
				c.change(ip)
			}
			sum(ip)
		}
		p.must(unix.Send(p.sockets[2], frame, 0))
		frames := p.frames(func(frame []byte, _ int) { p.must(unix.Send(p.sockets[2], frame, 0)) })
		got := p.outcomes()
		if c.outcome == uncounted {
			for port, all := range frames {
				if len(all) > 0 || len(got) > 0 {
					t.Errorf("%s: %v, and %x leaves by port %d", c.name, got, all, port)
				}
			}
			continue
		}
		if c.outcome != "" {
			if !slices.Equal(got, []string{c.outcome}) {
				t.Errorf("%s: %v, want %s", c.name, got, c.outcome)
			}
			continue
		}
		want := slices.Clone(frame)
		want[linkBytes+8]--
		sum(want[linkBytes:])
		next, from := p.state.Routes[0].MAC, p.state.Ports[0].MAC
		copy(want, next[:])
		copy(want[6:], from[:])
		if len(frames[1]) != 1 || !slices.Equal(frames[1][0], want) {
			t.Errorf("%s: it leaves as\n%x, want\n%x", c.name, frames[1], want)
		}
	}
}

// sum makes the checksum of an IPv4 header.
func sum(ip []byte) {
	clear(ip[10:12])
	words := min(int(ip[0]&15), len(ip)/4)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:4*words], 0))
}
