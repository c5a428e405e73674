package attack_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// headerFields are those of every packet of a tree, and what follows.
var headerFields = []field{
	{"version, type", 0, 1},
	{"flags", 1, 1},
	{"child", 2, 2},
	{"group", 4, 4},
	{"epoch", 8, 4},
	{"cookie", 12, 6},
	{"reserved", 18, 1},
	{"exponent", 19, 1},
	{"chunk", 20, 4},
	{"elements", 24, 4},
	{"operation", 28, 2},
	{"chunk elements", 30, 2},
	{"collective, function, root", 32, 4},
	{"element type, lowest rank", 36, 4},
	{"payload", 40, 8},
}

// packetTypes are the packets' types.
var packetTypes = []wire.Type{wire.Contribution, wire.Result, wire.Probe, wire.Heard, wire.Want, wire.Lost, wire.Error}

var typeNames = []string{"", "contribution", "result", "probe", "heard", "want", "lost", "error"}

// packets returns valid packets of all types for the edge of one that was seen: with its header, and of
// its chunk. What followed the payload of a protected packet follows theirs.
func packets(t *testing.T, seen []byte) (all []message) {
	t.Helper()
	overhead := wire.Authenticated.Overhead()
	var h wire.Header
	payload, fault := h.Decode(seen)
	isPlain := fault == wire.NoFault
	if !isPlain {
		if payload, fault = h.Decode(seen[:len(seen)-overhead]); fault != wire.NoFault {
			t.Fatalf("a packet that was seen has the fault %v: %x", fault, seen)
		}
	}
	if h.Type != wire.Contribution && h.Type != wire.Result {
		t.Fatalf("a packet of type %d was seen", h.Type)
	}
	s := h.Signature
	for _, kind := range packetTypes {
		h := h
		if h.Type, h.Flags = kind, 0; kind != wire.Contribution && kind != wire.Result {
			h.Signature = wire.Signature{}
		} else {
			h.Flags = wire.Sink
		}
		b := make([]byte, wire.HeaderSize)
		h.Put(b)
		switch kind {
		case wire.Contribution, wire.Result:
			b = append(b, payload...)
		case wire.Error:
			body := make([]byte, wire.ErrorBodySize)
			(&wire.ErrorBody{Kind: wire.Mismatch, Rank: [2]uint32{0, 1}, Says: [2]wire.Signature{s, s}}).Put(body)
			b = append(b, body...)
		default: // a header alone
		}
		m := message{name: typeNames[kind], fields: slices.Clone(headerFields)}
		if !isPlain {
			m.fields = append(m.fields, field{"tag", len(b), wire.TagSize}, field{"counter", len(b) + wire.TagSize, wire.CounterSize})
			b = append(b, seen[len(seen)-overhead:]...)
		}
		m.bytes = b
		all = append(all, m)
	}
	if testing.Short() {
		return all[:2]
	}
	return all
}

// outside are the reasons for which a switch drops what comes from no neighbour of a tree: a packet
// that is dropped for one of them has no effect.
var outside = []string{"fault", "group", "epoch", "stale-epoch", "address", "child", "cookie", "unauthentic"}

// dropped returns the packets of a group that all switches have dropped for these reasons, and those
// that they counted as forged, by child or parent.
func (f *fabric) dropped(group uint32) (drops, forged int) {
	f.Helper()
	for name, a := range f.agents {
		c, err := a.Counters(f.ctx)
		if f.ctx.Err() != nil {
			return 0, 0 // which until reports
		}
		if err != nil {
			f.Fatal(name, err)
		}
		for _, tree := range c.Trees {
			for _, reason := range outside {
				if tree.Group == group {
					drops += int(tree.Drops[reason])
				}
			}
		}
		for _, e := range c.Epochs {
			if e.Group != group {
				continue
			}
			for _, child := range e.Children {
				forged += int(child.Forged)
			}
			if e.Parent != nil {
				forged += int(e.Parent.Forged)
			}
		}
	}
	return drops, forged
}

// burst is how many packets are on their way at once, so that none is lost.
const burst = 50

// atSwitch sends packets of a group to a switch, each of which has to be dropped as from outside, and
// to be counted; it returns how many were counted as forged.
func (f *fabric) atSwitch(t *testing.T, r *tally, g *group, all []forged, send func(b []byte)) (wereForged int) {
	t.Helper()
	before, forgedBefore := f.dropped(g.number)
	for chunk := range slices.Chunk(all, burst) {
		for _, x := range chunk {
			send(x.bytes)
			r.in += len(x.bytes)
		}
		r.tried += len(chunk)
		before += len(chunk)
		f.until(fmt.Sprintf("%s: switches have dropped %s and %d others, %d in all", r.protocol, chunk[0].what, len(chunk)-1, before), func() bool { n, _ := f.dropped(g.number); return n >= before })
	}
	now, forgedNow := f.dropped(g.number)
	if now != before {
		t.Errorf("%s: switches have dropped %d packets more than there were", g.name, now-before)
	}
	r.refused += len(all)
	return forgedNow - forgedBefore
}

// atMember delivers packets to a member, which has to discard all.
func (f *fabric) atMember(t *testing.T, r *tally, g *group, rank int, from netip.AddrPort, all []forged) {
	t.Helper()
	p, before := g.taps[rank], g.comms[rank].Stats().Session.Discarded
	for chunk := range slices.Chunk(all, burst) {
		var packets [][]byte
		for _, x := range chunk {
			packets = append(packets, slices.Clone(x.bytes))
			r.in += len(x.bytes)
		}
		p.deliver(from, packets)
		r.tried += len(chunk)
		before += uint64(len(chunk))
		f.until(fmt.Sprintf("%s: the member has discarded %s and %d others", r.protocol, chunk[0].what, len(chunk)-1), func() bool { return g.comms[rank].Stats().Session.Discarded >= before })
	}
	if now := g.comms[rank].Stats().Session.Discarded; now != before {
		t.Errorf("%s, rank %d: it has discarded %d packets more than there were", g.name, rank, now-before)
	}
	r.refused += len(all)
}

// silent checks that nothing has come to a socket.
func silent(t *testing.T, conn *net.UDPConn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now()) // what has been answered is there
	b := make([]byte, 1<<16)
	if n, from, err := conn.ReadFromUDP(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v has answered with %d bytes, %v", from, n, err)
	}
}

// testPackets: packets of trees. Ranks 0 and 1 of each group are children of one leaf.
func (f *fabric) testPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 1))
	f.under(t, func() {}) // so that packets were seen
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	outsider := socket.LocalAddr().(*net.UDPAddr).AddrPort()
	for _, g := range f.groups[:3] {
		isPlain := g.name == "plain"
		protocol := "packets, " + g.name
		f.under(t, func() {
			own, leaf, came := g.taps[0].seen()
			theirs, _, _ := g.taps[1].seen()
			var up, down []forged
			for _, m := range packets(t, own) {
				up = append(up, m.forge(theirs, random)...)
				up = append(up, forged{what: m.name + " as it was", bytes: m.bytes})
			}
			for _, m := range packets(t, came) {
				down = append(down, m.forge(theirs, random)...)
				down = append(down, forged{what: m.name + " as it was", bytes: m.bytes})
			}

			// Who knows all of a packet, its cookie included, but has another address.
			r := f.matrix.of("nothing", protocol)
			f.atSwitch(t, r, g, up, func(b []byte) { _, _ = socket.WriteToUDPAddrPort(b, leaf) })
			f.atMember(t, r, g, 0, outsider, down)
			silent(t, socket)

			// Who has the network's view, and sends from the member's address. See testPlain.
			if !isPlain {
				r = f.matrix.of("the network's view", protocol)
				// A copy of a packet changes nothing, and is not counted as forged.
				isCopy := func(x forged) bool { return slices.Equal(x.bytes, own) || slices.Equal(x.bytes, came) }
				f.atSwitch(t, r, g, slices.DeleteFunc(slices.Clone(up), isCopy), func(b []byte) { g.taps[0].send(leaf, b) })
				f.atMember(t, r, g, 0, leaf, slices.DeleteFunc(slices.Clone(down), isCopy))
			}

			// A member with its own secrets, which it uses in its neighbour's name, from its address.
			r = f.matrix.of("a member, as its neighbour", protocol)
			named := slices.Clone(up)
			for i := range named {
				b := slices.Clone(named[i].bytes)
				if len(b) >= wire.HeaderSize && named[i].field != "child" {
					copy(b[2:4], theirs[2:4])
				}
				named[i].bytes = b
			}
			if isPlain { // another cookie by chance, or on purpose, would be the neighbour's
				named = slices.DeleteFunc(named, func(x forged) bool { return len(x.bytes) >= 18 && slices.Equal(x.bytes[12:18], theirs[12:18]) })
			}
			if wereForged := f.atSwitch(t, r, g, named, func(b []byte) { g.taps[1].send(leaf, b) }); wereForged == 0 {
				t.Errorf("%s: no packet is counted as forged", g.name)
			}
		})
	}
}

// testPlain: who has the network's view of a group whose packets are plain, its cookies included, forges
// its packets. It changes that group's results, or ends it, and nothing else.
func (f *fabric) testPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 7))
	lost := f.form("given up", []int{0, 1, 3, 4})
	r := f.matrix.of("the network's view", "packets, plain")
	run := func(ranks []int) (requests []*hostlib.Request) {
		for _, rank := range ranks {
			v := make([]int64, elements)
			requests = append(requests, hostlib.StartAllreduce(lost.comms[rank], reduce.Sum, v, v))
		}
		return requests
	}
	for _, q := range run([]int{0, 1, 2, 3}) {
		if _, err := q.Wait(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	f.under(t, func() {
		requests := run([]int{0, 1, 2}) // rank 3 never comes
		own, leaf, came := lost.taps[0].seen()
		theirs, _, _ := lost.taps[1].seen()
		var up, down []forged
		for _, m := range packets(t, own) {
			up = append(up, m.forge(theirs, random)...)
		}
		for _, m := range packets(t, came) {
			down = append(down, m.forge(theirs, random)...)
		}
		for _, x := range up {
			lost.taps[0].send(leaf, x.bytes)
			r.in += len(x.bytes)
		}
		for _, x := range down {
			lost.taps[0].deliver(leaf, [][]byte{slices.Clone(x.bytes)})
			r.in += len(x.bytes)
		}
		r.tried += len(up) + len(down)
		f.until("the member has got all", func() bool { return lost.taps[0].taken.Load() == int64(len(down)) || lost.comms[0].Err() != nil })
		refused, _ := f.dropped(lost.number)
		r.refused += refused + int(lost.comms[0].Stats().Session.Discarded) // of which are some by its own doing
		for _, c := range lost.comms {
			c.Abort("it is given up")
		}
		for _, q := range requests {
			_, _ = q.Wait(f.ctx) // whatever came of it
		}
		f.until("the manager has released the group", func() bool { return len(f.summaries()) == len(f.list) })
	})
}
