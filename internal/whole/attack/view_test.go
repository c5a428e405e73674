package attack_test

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// udpHead is the size of a header of UDP.
const udpHead = 8

// way is where a datagram came from, and where it goes: ports of 127.0.0.1.
type way struct{ from, to uint16 }

// view is the network's: it sees all datagrams on loopback, and sends some from any port.
type view struct {
	conn *net.IPConn
	mu   sync.Mutex
	last map[wire.Type]map[way][]byte // packets of trees by type, the newest of each way
	zone map[way][][]byte             // what else came first
}

// keptDatagrams is how many of each way are kept.
const keptDatagrams = 100

// newView opens a raw socket, for which it needs root: nil without.
func newView(t testing.TB) *view {
	conn, err := net.ListenIP("ip4:udp", &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Log("no attacks with the whole network's view, which needs root: ", err)
		return nil
	}
	v := &view{conn: conn, last: map[wire.Type]map[way][]byte{wire.Contribution: {}, wire.Result: {}}, zone: map[way][][]byte{}}
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for b := make([]byte, 1<<16); ; {
			n, _, err := conn.ReadFromIP(b)
			if err != nil {
				return
			}
			if n >= udpHead {
				v.take(way{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}, slices.Clone(b[udpHead:n]))
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-seen })
	return v
}

func (v *view) take(w way, b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(b) >= wire.HeaderSize && b[0]>>4 == wire.Version {
		if of := v.last[wire.Type(b[0]&15)]; of != nil {
			of[w] = b
			return
		}
	}
	if len(v.zone[w]) < keptDatagrams {
		v.zone[w] = append(v.zone[w], b)
	}
}

// packets returns the newest of a type and group, if they are of an operation of so many elements.
func (v *view) packets(kind wire.Type, group uint32, elements uint32) map[way][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := maps.Clone(v.last[kind])
	maps.DeleteFunc(all, func(_ way, b []byte) bool {
		return binary.BigEndian.Uint32(b[4:]) != group || binary.BigEndian.Uint32(b[24:]) != elements
	})
	return all
}

// send sends a datagram from the port of another process. It has a checksum: switches drop what has none.
func (v *view) send(t *testing.T, w way, b []byte) {
	loopback := []byte{127, 0, 0, 1}
	size := binary.BigEndian.AppendUint16(nil, uint16(udpHead+len(b)))
	head := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, w.from), w.to)
	head = append(append(head, size...), 0, 0)
	pseudo := slices.Concat(loopback, loopback, []byte{0, syscall.IPPROTO_UDP}, size)
	binary.BigEndian.PutUint16(head[6:], internetChecksum(slices.Concat(pseudo, head, b, []byte{0})))
	if _, err := v.conn.WriteToIP(append(head, b...), &net.IPAddr{IP: loopback}); err != nil {
		t.Fatal(err)
	}
}

// internetChecksum is that of RFC 1071 over b, or all of it but its last byte, where their number is odd.
func internetChecksum(b []byte) uint16 {
	sum := uint64(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	if sum == math.MaxUint16 {
		return math.MaxUint16 // 0 would be none
	}
	return ^uint16(sum)
}

// edge is one between two switches, and what was seen on it.
type edge struct {
	up, down   way
	sent, came []byte
	theirs     []byte // what another child has sent to the same switch
}

// edges returns those of a group's tree after an operation of one chunk.
func (f *fabric) edges(v *view, g *group) (all []edge) {
	f.Helper()
	const elements = 10
	f.each(len(g.comms), func(rank int) error {
		x := make([]int64, elements)
		_, err := hostlib.Allreduce(f.ctx, g.comms[rank], reduce.Sum, x, x)
		return err
	})
	find := func() []edge {
		all = nil
		ups, downs := v.packets(wire.Contribution, g.number, elements), v.packets(wire.Result, g.number, elements)
		switches := map[uint16]bool{}
		for w := range ups {
			switches[w.to] = true
		}
		for w, sent := range ups {
			back := way{w.to, w.from}
			if !switches[w.from] || downs[back] == nil {
				continue
			}
			e := edge{up: w, down: back, sent: sent, came: downs[back]}
			for o, b := range ups {
				if o.to == w.to && o.from != w.from {
					e.theirs = b
				}
			}
			all = append(all, e)
		}
		return all
	}
	f.until("packets between switches of "+g.name+" were seen", func() bool { return len(find()) > 0 })
	return all
}

// testEdges: packets of the trees between switches, in both directions.
func (f *fabric) testEdges(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 9))
	v := f.view
	if v == nil {
		t.Skip("it needs root")
	}
	outsider := f.socket(t)
	address := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port) }
	for _, g := range f.groups[:3] {
		all := f.edges(v, g)
		f.under(t, func() {
			for _, e := range all {
				for _, of := range []struct {
					w    way
					seen []byte
				}{{e.up, e.sent}, {e.down, e.came}} {
					var packed []forged
					for _, m := range packets(t, of.seen) {
						packed = append(packed, m.forge(e.theirs, random)...)
						packed = append(packed, forged{what: m.name + " as it was", bytes: m.bytes})
					}
					r := f.matrix.of("nothing", "packets between switches, "+g.name)
					f.atSwitch(t, r, g, packed, func(b []byte) { _, _ = outsider.WriteToUDPAddrPort(b, address(of.w.to)) })
					silent(t, outsider)
					if len(e.theirs) > 0 && of.w == e.up {
						f.asSibling(t, g, e, packed)
					}
					if g.name == "plain" {
						continue // see testPlain
					}
					r = f.matrix.of("the network's view", "packets between switches, "+g.name)
					isCopy := func(x forged) bool { return slices.Equal(x.bytes, of.seen) }
					f.atSwitch(t, r, g, slices.DeleteFunc(packed, isCopy), func(b []byte) { v.send(t, of.w, b) })
				}
			}
		})
	}
}

// asSibling: a switch with its own secrets uses them in the name of another child of the same parent, from
// its own address.
func (f *fabric) asSibling(t *testing.T, g *group, e edge, all []forged) {
	var named []forged
	for _, x := range all {
		if b := slices.Clone(x.bytes); len(b) >= wire.HeaderSize && x.field != "child" && !slices.Equal(b[12:18], e.theirs[12:18]) {
			copy(b[2:4], e.theirs[2:4])
			named = append(named, forged{what: x.what, bytes: b})
		}
	}
	r := f.matrix.of("a switch, as its neighbour", "packets between switches, "+g.name)
	f.atSwitch(t, r, g, named, func(b []byte) { f.view.send(t, e.up, b) })
}

// testReplays: datagrams of the zone and between hosts, as they were, come again, also at another host and from
// another process. No life, group or result changes.
func (f *fabric) testReplays(t *testing.T) {
	v := f.view
	if v == nil {
		t.Skip("it needs root")
	}
	var hosts []uint16
	for _, h := range f.hosts {
		hosts = append(hosts, netip.MustParseAddrPort(h.Addr()).Port())
	}
	captured := func() (n int) {
		v.mu.Lock()
		defer v.mu.Unlock()
		for w, all := range v.zone {
			if slices.Contains(hosts, w.from) && slices.Contains(hosts, w.to) {
				n += len(all)
			}
		}
		return n
	}
	f.until("datagrams between hosts were seen", func() bool { return captured() > 0 })
	v.mu.Lock()
	seen := maps.Clone(v.zone)
	v.mu.Unlock()
	r := f.matrix.of("the network's view", "membership, datagrams that were sent, again")
	f.under(t, func() {
		for w, all := range seen {
			if !slices.Contains(hosts, w.from) || !slices.Contains(hosts, w.to) {
				continue
			}
			for _, b := range all {
				for _, from := range hosts {
					for _, to := range hosts {
						v.send(t, way{from, to}, b)
						r.tried, r.in = r.tried+1, r.in+len(b)
					}
				}
			}
		}
		for _, h := range f.hosts { // each has got what came before
			f.until(h.Name()+" has answered", func() bool { return f.lives(h) == f.zone })
		}
	})
}
