package pipeline

import (
	"net/netip"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// handover has an aggregate core for each tree, for the chunks that the target
// hands over. It is safe for concurrent use.
type handover struct {
	mu    sync.Mutex
	trees [p4.Trees]*handed // by index
	lost  uint64            // packets that could not be given to the target, or were for no tree
	in    [1]switchreduce.Input
	out   switchreduce.Output
}

// handed is the core of a tree.
type handed struct {
	core     *switchreduce.Core
	parents  map[uint32]netip.AddrPort // by epoch
	toParent map[uint32]bool           // epochs of which something went to the parent since it was asked
	// Packets and their bytes, with IP and UDP headers.
	took, tookBytes uint64
	sentOut, bytes  uint64
}

// open makes the core of a tree.
func (h *handover) open(index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trees[index] = &handed{
		core: switchreduce.New(), parents: map[uint32]netip.AddrPort{}, toParent: map[uint32]bool{},
	}
}

// shut throws the core of a tree away and returns what it has counted.
func (h *handover) shut(index int) rpc.TreeCounters {
	h.mu.Lock()
	defer h.mu.Unlock()
	counted := h.trees[index].counters()
	h.trees[index] = nil
	return counted
}

// install lets an epoch begin. Leases and keep-alives are the driver's: the core
// sees only some of the packets.
func (h *handover) install(now core.Time, index int, c *switchreduce.Config) {
	own := *c
	own.Lease = 0
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[index]
	t.parents[c.Epoch] = plain(c.Parent)
	h.in[0] = switchreduce.Input{Kind: switchreduce.Install, Config: &own}
	t.core.Step(now, h.in[:], &h.out)
	h.out.Reset()
}

// retire ends an epoch.
func (h *handover) retire(now core.Time, index int, epoch uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[index]
	delete(t.parents, epoch)
	delete(t.toParent, epoch)
	h.in[0] = switchreduce.Input{Kind: switchreduce.Retire, Epoch: epoch}
	t.core.Step(now, h.in[:], &h.out)
	h.out.Reset()
}

// take takes packets from the target, and returns those that are to be given to
// it.
func (h *handover) take(now core.Time, packets []p4rt.Packet) []p4rt.Packet {
	h.mu.Lock()
	defer h.mu.Unlock()
	var answers []p4rt.Packet
	for i := range packets {
		from, payload, ok := parse(packets[i].Payload)
		index := treeOf(&packets[i])
		if !ok || index >= len(h.trees) || h.trees[index] == nil {
			h.lost++
			continue
		}
		t := h.trees[index]
		t.took++
		t.tookBytes += uint64(len(packets[i].Payload) - ethernetSize)
		h.in[0] = switchreduce.Input{Kind: switchreduce.Packet, From: from, Packet: payload}
		t.core.Step(now, h.in[:], &h.out)
		for j := range h.out.Sends {
			answers = append(answers, t.packet(index, &h.out.Sends[j]))
		}
		h.out.Reset()
	}
	return answers
}

// treeOf returns the index of the tree that a packet from the target is for.
func treeOf(p *p4rt.Packet) int {
	for _, m := range p.Header {
		if m.ID == p4.PacketInTree {
			return int(m.Value)
		}
	}
	return p4.Trees
}

// packet returns s as it is given to the target, which routes it.
func (t *handed) packet(index int, s *switchreduce.Send) p4rt.Packet {
	to := plain(s.To)
	frame := build(p4.TreePort(index), to, s.Head[:], s.Body)
	var head wire.Header
	if _, fault := head.Decode(frame[framing:]); fault == wire.NoFault && t.parents[head.Epoch] == to {
		t.toParent[head.Epoch] = true
	}
	t.sentOut++
	t.bytes += uint64(len(frame) - ethernetSize)
	return p4rt.Packet{Header: []p4rt.Meta{{ID: p4.PacketOutPort}}, Payload: frame}
}

// sentUp reports whether something went to an epoch's parent since it was asked
// last.
func (h *handover) sentUp(index int, epoch uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[index]
	sent := t.toParent[epoch]
	delete(t.toParent, epoch)
	return sent
}

// lose counts packets that could not be given to the target.
func (h *handover) lose(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost += uint64(n)
}

// lostPackets returns how many were lost between the target and the cores.
func (h *handover) lostPackets() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// counters returns what the core of a tree has counted.
func (h *handover) counters(index int) rpc.TreeCounters {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trees[index].counters()
}

func (t *handed) counters() rpc.TreeCounters {
	c := rpc.TreeCounters{PacketsIn: t.took, BytesIn: t.tookBytes, PacketsOut: t.sentOut, BytesOut: t.bytes}
	n := t.core.Counters()
	dataplane.Count(&c, &n)
	dataplane.AddEvent(&c, "handed", t.took)
	return c
}

// keepAlive returns the idle probe that reports an epoch's parent that it is in
// use.
func keepAlive(e *epoch) p4rt.Packet {
	c := e.cfg
	h := wire.Header{
		Type: wire.Probe, Flags: wire.Idle, Child: c.Index, Group: c.Group, Epoch: c.Epoch, Cookie: c.Cookie,
		Lowest: c.Children[0].Lowest,
	}
	var head [wire.HeaderSize]byte
	h.Put(head[:])
	return p4rt.Packet{
		Header:  []p4rt.Meta{{ID: p4.PacketOutPort}},
		Payload: build(p4.TreePort(e.tree.index), plain(c.Parent), head[:], nil),
	}
}
