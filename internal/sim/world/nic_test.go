package world

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// nic is one rail of a member's host: a node of its own, which keeps a connection with the same rail
// of each other member. It passes on what the member sends, and what comes for it.
type nic struct {
	owner sim.NodeID
	rail  int
	lives map[sim.NodeID]uint32 // of connections, by the other end
	ranks map[sim.NodeID]int    // of all rails
}

// order is what a member has one of its rails do.
type order struct {
	what  orderKind
	to    sim.NodeID // the rail of another
	life  uint32     // of the connection that it is about: another one's frames are lost with it
	bytes []byte
}

type orderKind uint8

const (
	dialRail orderKind = iota
	closeRail
	sendFrame
)

// railNews is what a rail reports to its member.
type railNews struct {
	rail, rank int
	kind       sim.Kind // Up, Message; another: the connection is gone
	life       uint32
	bytes      []byte
}

func (n *nic) Deadline() core.Time { return core.Never }

// Step implements sim.Node. Orders come last: the connection that they are for may have ended meanwhile.
func (n *nic) Step(_ core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range batch {
		d := &batch[i]
		if d.Kind == sim.Control {
			continue
		}
		from := d.From.Node
		if d.Kind != sim.Message {
			n.lives[from]++
		}
		h.Notify(n.owner, railNews{n.rail, n.ranks[from], d.Kind, n.lives[from], slices.Clone(d.Bytes)})
	}
	for i := range batch {
		if o, ok := batch[i].Value.(order); ok {
			n.carryOut(&o, h)
		}
	}
}

func (n *nic) carryOut(o *order, h sim.Handle) {
	switch {
	case o.what == dialRail:
		h.Dial(o.to)
	case o.life != n.lives[o.to]:
	case o.what == closeRail:
		n.lives[o.to]++
		h.Close(o.to)
	default:
		h.Write(o.to, o.bytes, nil)
	}
}

// addRails gives each member of a group so many rails, and messages over them.
func (g *Group) addRails(rails int, cfg messagesConfig) {
	w := g.World
	ranks := map[sim.NodeID]int{}
	g.Rails = make([][]sim.NodeID, len(g.Nodes))
	for rank, owner := range g.Nodes {
		for k := range rails {
			id := w.Add(fmt.Sprintf("%s-rail-%d", w.Name(owner), k), &nic{owner: owner, rail: k, lives: map[sim.NodeID]uint32{}, ranks: ranks})
			w.SetLink(owner, id, sim.Link{})
			w.SetLink(id, owner, sim.Link{})
			g.Rails[rank] = append(g.Rails[rank], id)
			ranks[id] = rank
		}
	}
	for rank := range g.Nodes {
		cfg.rail.Seed++
		g.Hosts[rank].messages = newMessages(rank, g.Rails, cfg)
	}
}
