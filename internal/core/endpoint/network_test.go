package endpoint

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	chunkBytes   = 16
	leafSize     = 3 // members beneath one leaf switch
	notifyProbes = 3
)

// A network runs the members of one group, their host connections, and switches
// in two levels for the even epochs, in virtual time. While faults is set it
// loses, repeats and reorders datagrams, breaks connections, kills switches,
// and a manager offers trees and takes them back, notifying some members only.
type network struct {
	t       *rapid.T
	rng     *rand.Rand
	cfg     Config
	now     core.Time
	faults  bool
	members []*node
	edges   []*edge
	packets []datagram
	offers  []offerInput
	fabric  map[netip.AddrPort]*device
	nextTo  uint16 // port of the next device
	newest  uint32 // newest epoch offered
	steps   int
}

// node is a member and all that it has reported.
type node struct {
	core    *Core
	rank    uint32
	out     Output
	plan    []session.Operation
	next    int
	done    map[uint64]session.Completion
	refused map[uint64]error
	entered []Entered
	ended   *wire.Fail
	notice  *wire.Notice
	left    bool
	gone    bool
	dead    bool
	edges   map[uint32]*edge // by neighbour
}

// edge is a host connection between a parent (side 0) and a child (side 1).
type edge struct {
	ranks [2]uint32
	open  [2]bool     // what that side sends goes into the present connection
	queue [2][][]byte // to that side; nil means: the connection is new
}

type datagram struct {
	from, to netip.AddrPort
	packet   []byte
}

type offerInput struct {
	rank uint32
	in   Input
}

// device is a switch of one tree in one epoch.
type device struct {
	core *switchreduce.Core
	out  switchreduce.Output
	dead bool
}

func newNetwork(t *rapid.T, seed uint64, cfg Config) *network {
	n := &network{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), cfg: cfg,
		fabric: map[netip.AddrPort]*device{}, newest: FirstEpoch,
	}
	for r := range cfg.Size {
		cfg.Rank = uint32(r)
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.members = append(n.members, &node{
			core: c, rank: uint32(r), done: map[uint64]session.Completion{}, refused: map[uint64]error{},
			edges: map[uint32]*edge{},
		})
	}
	tree := cfg.Tree()
	for r := range cfg.Size {
		if p, ok := tree.Parent(r); ok {
			e := &edge{ranks: [2]uint32{uint32(p), uint32(r)}, queue: [2][][]byte{{nil}, {nil}}}
			n.edges = append(n.edges, e)
			n.members[p].edges[uint32(r)], n.members[r].edges[uint32(p)] = e, e
		}
	}
	return n
}

func memberAddr(r uint32) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(r)}), 4791)
}

// takeBack returns a copy of a finished operation's result, and spoils its
// vectors, which are the caller's again: nothing may be kept in them.
func takeBack(o session.Operation) []byte {
	out := bytes.Clone(o.Out)
	for _, v := range [][]byte{o.In, o.Out} {
		for i := range v {
			v[i] = 0xEE
		}
	}
	return out
}

// step gives one member an input, or none, and takes what it puts out.
func (n *network) step(m *node, in ...Input) {
	if m.dead {
		return
	}
	m.out.Reset()
	m.core.Step(n.now, in, &m.out)
	for i := range m.out.Datagrams {
		d := &m.out.Datagrams[i]
		n.send(datagram{memberAddr(m.rank), d.To, append(bytes.Clone(d.Head[:]), d.Body...)})
	}
	for i := range m.out.Messages {
		f := &m.out.Messages[i]
		e := m.edges[f.To]
		if e == nil {
			n.t.Fatalf("rank %d sends a frame to rank %d", m.rank, f.To)
		}
		if to := e.side(f.To); e.open[1-to] {
			e.queue[to] = append(e.queue[to], append(bytes.Clone(f.Head), f.Body...))
		}
	}
	for _, c := range m.out.Completions {
		if _, twice := m.done[c.ID]; twice {
			n.t.Fatalf("rank %d completes operation %d twice", m.rank, c.ID)
		}
		m.done[c.ID] = c
		if c.ID < uint64(len(m.plan)) {
			m.plan[c.ID].Out = takeBack(m.plan[c.ID])
		}
	}
	for _, r := range m.out.Refused {
		m.refused[r.ID] = r.Err
	}
	m.entered = append(m.entered, m.out.Entered...)
	if m.out.Ended != nil {
		m.ended = m.out.Ended
	}
	if m.out.Notice != nil {
		m.notice = m.out.Notice
	}
	m.left, m.gone = m.left || m.out.Left, m.gone || m.out.Gone
}

func (e *edge) side(rank uint32) int {
	if e.ranks[0] == rank {
		return 0
	}
	return 1
}

func (n *network) send(d datagram) {
	copies := 1
	if n.faults {
		copies = []int{0, 1, 1, 1, 1, 1, 2}[n.rng.IntN(7)]
	}
	for range copies {
		n.packets = append(n.packets, d)
	}
}

// deliverDatagram takes any datagram, while there are no faults the oldest.
func (n *network) deliverDatagram() {
	i := 0
	if n.faults {
		i = n.rng.IntN(len(n.packets))
	}
	d := n.packets[i]
	n.packets = slices.Delete(n.packets, i, i+1)
	if dev := n.fabric[d.to]; dev != nil {
		n.work(d.to, dev, switchreduce.Input{Kind: switchreduce.Packet, From: d.from, Packet: d.packet})
		return
	}
	for _, m := range n.members {
		if memberAddr(m.rank) == d.to {
			n.step(m, Input{Kind: Packet, From: d.from, Bytes: d.packet})
		}
	}
}

// work steps a switch.
func (n *network) work(at netip.AddrPort, d *device, in ...switchreduce.Input) {
	if d.dead {
		return
	}
	d.out.Reset()
	d.core.Step(n.now, in, &d.out)
	for i := range d.out.Sends {
		s := &d.out.Sends[i]
		n.send(datagram{at, s.To, append(bytes.Clone(s.Head[:]), s.Body...)})
	}
}

// deliverFrame takes the oldest frame of any connection in any direction.
func (n *network) deliverFrame() bool {
	var ready []int
	for i, e := range n.edges {
		for side := range 2 {
			if len(e.queue[side]) > 0 {
				ready = append(ready, 2*i+side)
			}
		}
	}
	if len(ready) == 0 {
		return false
	}
	k := ready[n.rng.IntN(len(ready))]
	e, side := n.edges[k/2], k%2
	frame := e.queue[side][0]
	e.queue[side] = e.queue[side][1:]
	m, from := n.members[e.ranks[side]], e.ranks[1-side]
	if frame == nil {
		e.open[side] = true
		n.step(m, Input{Kind: Connected, Rank: from})
	} else {
		n.step(m, Input{Kind: Frame, Rank: from, Bytes: frame})
	}
	return true
}

// breakEdge ends a connection: of what is under way, some arrives; what is sent
// before a side knows of the new connection is lost.
func (n *network) breakEdge(e *edge) {
	for side := range 2 {
		q := e.queue[side]
		keep := n.rng.IntN(len(q) + 1)
		q = slices.DeleteFunc(slices.Clone(q[:keep]), func(f []byte) bool { return f == nil })
		e.queue[side] = append(q, nil)
		e.open[side] = false
	}
}

// offer makes a tree of switches for the next even epoch and offers it to the members
// of it, one after the other.
func (n *network) offer() {
	n.newest = 2 * (max(n.newest, n.latest())/2 + 1)
	window := uint32(1) << n.rng.IntN(1+log2(n.cfg.Window))
	leaves := (n.cfg.Size + leafSize - 1) / leafSize
	spine := n.device()
	root := n.tree(window)
	for l := range leaves {
		leaf := n.device()
		cfg := n.tree(window)
		cfg.Parent, cfg.Index, cfg.Cookie = spine, uint16(l), wire.Cookie(n.newest)<<16+1<<15+wire.Cookie(l)
		root.Children = append(root.Children, switchreduce.Child{Addr: leaf, Lowest: uint32(l * leafSize), Cookie: cfg.Cookie})
		for r := l * leafSize; r < min((l+1)*leafSize, n.cfg.Size); r++ {
			cookie := wire.Cookie(n.newest)<<16 + wire.Cookie(r)
			cfg.Children = append(cfg.Children, switchreduce.Child{Addr: memberAddr(uint32(r)), Lowest: uint32(r), Cookie: cookie})
			link := session.Link{
				Group: cfg.Group, Epoch: cfg.Epoch, Cookie: cookie, Window: window,
				Parent: leaf, Index: uint16(r % leafSize), Probes: notifyProbes,
			}
			n.offers = append(n.offers, offerInput{uint32(r), Input{Kind: Offer, News: &News{Link: link}}})
		}
		n.work(leaf, n.fabric[leaf], switchreduce.Input{Kind: switchreduce.Install, Config: cfg})
	}
	n.work(spine, n.fabric[spine], switchreduce.Input{Kind: switchreduce.Install, Config: root})
}

func (n *network) tree(window uint32) *switchreduce.Config {
	return &switchreduce.Config{
		Group: 77, Epoch: n.newest, Window: window,
		ChunkBytes: chunkBytes, Probes: notifyProbes,
	}
}

func (n *network) device() netip.AddrPort {
	n.nextTo++
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, 1}), n.nextTo)
	n.fabric[at] = &device{core: switchreduce.New()}
	return at
}

// latest returns the newest epoch that any member is in.
func (n *network) latest() uint32 {
	e := uint32(0)
	for _, m := range n.members {
		e = max(e, m.core.Epoch())
	}
	return e
}

func log2(n uint32) int {
	l := 0
	for ; n > 1; n /= 2 {
		l++
	}
	return l
}

// kill kills a switch, or lets it start again with nothing.
func (n *network) kill() {
	if n.nextTo == 0 {
		return
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, 1}), uint16(1+n.rng.IntN(int(n.nextTo))))
	d := n.fabric[at]
	d.dead = n.rng.IntN(2) == 0
	d.core = switchreduce.New()
}

// fault does one thing that goes wrong, or that the manager does.
func (n *network) fault() {
	switch n.rng.IntN(8) {
	case 6:
		n.step(n.members[n.rng.IntN(len(n.members))], Input{Kind: Rest})
	case 7:
		for _, m := range n.members {
			n.step(m, Input{Kind: Rest})
		}
	case 0, 1:
		if len(n.edges) > 0 {
			n.breakEdge(n.edges[n.rng.IntN(len(n.edges))])
		}
	case 2:
		n.kill()
	case 3:
		n.offer()
		if n.rng.IntN(4) == 0 { // the manager dies in the middle of reporting
			n.offers = n.offers[:n.rng.IntN(len(n.offers)+1)]
		}
	case 4:
		if len(n.offers) > 0 { // another order
			n.rng.Shuffle(len(n.offers), func(i, j int) { n.offers[i], n.offers[j] = n.offers[j], n.offers[i] })
		}
	case 5:
		m := n.members[n.rng.IntN(len(n.members))]
		n.step(m, Input{Kind: Withdraw, News: &News{Epoch: n.newest, Reason: "test"}})
	}
}

// run does one random thing. It returns false when nothing is left that could
// happen.
func (n *network) run() bool {
	n.steps++
	if n.faults && n.rng.IntN(50) == 0 {
		n.fault()
		return true
	}
	m := n.members[n.rng.IntN(len(n.members))]
	switch k := n.rng.IntN(8); {
	case k == 0 && m.next < len(m.plan) && !m.dead:
		m.next++
		n.step(m, Input{Kind: Start, Operation: &m.plan[m.next-1]})
		return true
	case k == 1 && len(n.offers) > 0:
		o := n.offers[0]
		n.offers = n.offers[1:]
		n.step(n.members[o.rank], o.in)
		return true
	case k < 5 && len(n.packets) > 0:
		n.deliverDatagram()
		return true
	case n.deliverFrame():
		return true
	case len(n.packets) > 0:
		n.deliverDatagram()
		return true
	}
	return n.tick()
}

// tick lets time pass until a deadline.
func (n *network) tick() bool {
	at := core.Never
	more := len(n.offers) > 0
	for _, m := range n.members {
		if !m.dead {
			at = at.Earlier(m.core.Deadline())
			more = more || m.next < len(m.plan)
		}
	}
	if at == core.Never {
		return more
	}
	n.now = max(n.now, at)
	for _, m := range n.members {
		if m.core.Deadline() <= n.now {
			n.step(m)
		}
	}
	return true
}

// String reports where each member is.
func (n *network) String() string {
	text := fmt.Sprintf("step %d, time %v", n.steps, n.now)
	for _, m := range n.members {
		text += fmt.Sprintf("; rank %d epoch %d done=%d/%d left=%v gone=%v ended=%v",
			m.rank, m.core.Epoch(), len(m.done), len(m.plan), m.left, m.gone, m.ended)
	}
	return text
}
