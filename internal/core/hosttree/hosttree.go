package hosttree

import (
	"encoding/binary"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// Config places a member in the group's tree of hosts.
type Config struct {
	Group      uint32
	Cookie     wire.Cookie // equal at all members
	Rank       uint32
	Tree       ranktree.Tree
	ChunkBytes int
	Window     uint32
}

// Input is a packet from another member, or, with From the member's own rank,
// from its session.
type Input struct {
	From   uint32
	Packet []byte // read during Step only
}

// Send is a packet for another member, or for the member's own session.
type Send struct {
	To   uint32
	Head [wire.HeaderSize]byte
	Body []byte // lent until the next Step
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct{ Sends []Send }

// Reset empties o and keeps its memory.
func (o *Output) Reset() { o.Sends = o.Sends[:0] }

// Core is a member's node in the tree of hosts.
type Core struct {
	cfg   Config
	agg   *switchreduce.Core
	epoch uint32 // the last one entered, 0: none
	in    []switchreduce.Input
	out   switchreduce.Output
}

// New returns a node without an epoch.
func New(cfg Config) *Core { return &Core{cfg: cfg, agg: switchreduce.New()} }

// Addr returns the address that stands for a rank inside a tree of hosts. It
// lies in 0.0.0.0/8, which no packet of a network comes from.
func Addr(rank uint32) netip.AddrPort {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], rank&wire.MaxRank)
	return netip.AddrPortFrom(netip.AddrFrom4(a), 0)
}

func rankOf(a netip.AddrPort) uint32 {
	b := a.Addr().As4()
	return binary.BigEndian.Uint32(b[:])
}

// Enter begins an epoch on the tree of hosts, and returns the session's link
// to its own node.
func (c *Core) Enter(now core.Time, epoch uint32) session.Link {
	t, rank := c.cfg.Tree, int(c.cfg.Rank)
	cfg := switchreduce.Config{
		Group: c.cfg.Group, Epoch: epoch, Cookie: c.cfg.Cookie,
		Window: c.cfg.Window, ChunkBytes: c.cfg.ChunkBytes,
		Children: []switchreduce.Child{{Addr: Addr(c.cfg.Rank), Lowest: c.cfg.Rank, Cookie: c.cfg.Cookie}},
	}
	for _, r := range t.Children(rank) {
		cfg.Children = append(cfg.Children, switchreduce.Child{Addr: Addr(uint32(r)), Lowest: uint32(r), Cookie: c.cfg.Cookie})
	}
	if parent, ok := t.Parent(rank); ok {
		cfg.Parent = Addr(uint32(parent))
		for i, r := range t.Children(parent) {
			if r == rank {
				cfg.Index = uint16(i + 1) // the parent itself is its own first child
			}
		}
	}
	// Whoever enters an epoch knows that every member has left the one before.
	// It would not go by itself if this one sees no packet, and the aggregate
	// holds a few only.
	c.out.Reset()
	c.agg.Step(now, []switchreduce.Input{
		{Kind: switchreduce.Install, Config: &cfg},
		{Kind: switchreduce.Retire, Epoch: c.epoch},
	}, &c.out)
	c.epoch = epoch
	return session.Link{
		Group: c.cfg.Group, Epoch: epoch, Cookie: c.cfg.Cookie,
		Window: c.cfg.Window, Parent: Addr(c.cfg.Rank),
	}
}

// Step takes packets. There are no timers: the members' probes repair.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.in = c.in[:0]
	for _, i := range in {
		c.in = append(c.in, switchreduce.Input{Kind: switchreduce.Packet, From: Addr(i.From), Packet: i.Packet})
	}
	c.out.Reset()
	c.agg.Step(now, c.in, &c.out)
	for i := range c.out.Sends {
		s := &c.out.Sends[i]
		out.Sends = append(out.Sends, Send{To: rankOf(s.To), Head: s.Head, Body: s.Body})
	}
}

// Forget gives back what is kept of the numbers before n, which nobody asks for
// any more.
func (c *Core) Forget(n uint32) {
	c.agg.Forget(n)
	c.in, c.out = nil, switchreduce.Output{}
}
