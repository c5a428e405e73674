package world

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
)

// Group is a communicator in a world.
type Group struct {
	World *sim.World
	Hosts []*Host        // by rank
	Nodes []sim.NodeID   // by rank
	Rails [][]sim.NodeID // by rank; nil: there are no messages
	cfg   endpoint.Config
}

// NewGroup puts the members of a communicator into w and connects each with its
// neighbours in the group's tree of hosts. The rank in cfg does not count.
// There is no manager: Offer and OfferAll offer trees.
func NewGroup(w *sim.World, cfg endpoint.Config) (*Group, error) {
	return newGroup(w, "", cfg, func(uint32) (*control, error) { return nil, nil })
}

func newGroup(w *sim.World, name string, cfg endpoint.Config, of func(rank uint32) (*control, error)) (*Group, error) {
	g := &Group{World: w, cfg: cfg}
	for r := range cfg.Size {
		g.Nodes = append(g.Nodes, sim.NodeID(w.Nodes()+r))
	}
	shared := newPlaces(g.Nodes)
	for r := range cfg.Size {
		cfg.Rank = uint32(r)
		c, err := endpoint.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("world: rank %d: %w", r, err)
		}
		client, err := of(cfg.Rank)
		if err != nil {
			return nil, fmt.Errorf("world: rank %d: %w", r, err)
		}
		h := &Host{core: c, place: shared, client: client, revokes: newRevokes(cfg)}
		g.Hosts = append(g.Hosts, h)
		w.Add(fmt.Sprintf("%srank-%d", name, r), h)
	}
	for _, pair := range g.Pairs() {
		w.Connect(pair[1], pair[0])
	}
	return g, nil
}

// Config returns what all members agree upon.
func (g *Group) Config() endpoint.Config { return g.cfg }

// Pairs returns the nodes that keep a connection: parent and child in the tree
// of hosts.
func (g *Group) Pairs() [][2]sim.NodeID {
	var pairs [][2]sim.NodeID
	t := g.cfg.Tree()
	for r := range t.Size() {
		if parent, ok := t.Parent(r); ok {
			pairs = append(pairs, [2]sim.NodeID{g.Nodes[parent], g.Nodes[r]})
		}
	}
	return pairs
}

// Terms are what the switches and members of one tree agree upon.
type Terms struct {
	switchreduce.Config              // Group, Epoch, Tree, Cookie, Window, ChunkBytes, Probes and Lease count; Probes of members are twice those of switches
	Port                uint16       // of the tree at every switch
	Switches            []sim.NodeID // by the tree's vertices
}

// Install installs a tree at its switches, directly, and returns what is to be
// offered to the members, by rank: with Offer, at once or later.
func (g *Group) Install(t pathsel.Tree, terms Terms) []session.Link {
	configs, links := configure(t, terms, g.Nodes)
	for v, cfg := range configs {
		g.World.Command(terms.Switches[v], Install{terms.Port, cfg})
	}
	return links
}

// Notify gives one member an input, as its next event.
func (g *Group) Notify(r uint32, in endpoint.Input) { g.World.Command(g.Nodes[r], in) }

// Offer offers a tree to one member, as a manager would.
func (g *Group) Offer(r uint32, link session.Link) {
	g.World.Command(g.Nodes[r], endpoint.Input{Kind: endpoint.Offer, News: &endpoint.News{Link: link}})
}

// OfferAll offers a tree to all members.
func (g *Group) OfferAll(links []session.Link) {
	for r, link := range links {
		g.Offer(uint32(r), link)
	}
}

// configure returns the configuration of every vertex, and every member's link.
func configure(t pathsel.Tree, terms Terms, hosts []sim.NodeID) ([]switchreduce.Config, []session.Link) {
	at := func(v int32) netip.AddrPort { return AddrPort(sim.Addr{Node: terms.Switches[v], Port: terms.Port}) }
	configs := slices.Repeat([]switchreduce.Config{terms.Config}, len(t.Vertices))
	links := make([]session.Link, len(t.Leaves))
	for v, children := range t.AllChildren() {
		if v > 0 {
			configs[v].Parent, configs[v].Cookie = at(t.Vertices[v].Parent), cookie(terms.Cookie, ^uint32(v))
		}
		configs[v].Children = nil
		for i, child := range children {
			if child.Vertex >= 0 {
				configs[v].Children = append(configs[v].Children, switchreduce.Child{
					Addr: at(child.Vertex), Lowest: child.Lowest, Cookie: cookie(terms.Cookie, ^uint32(child.Vertex)),
				})
				configs[child.Vertex].Index = uint16(i)
				continue
			}
			addr := AddrPort(sim.Addr{Node: hosts[child.Lowest], Port: DataPort})
			configs[v].Children = append(configs[v].Children, switchreduce.Child{Addr: addr, Lowest: child.Lowest, Cookie: cookie(terms.Cookie, child.Lowest)})
			links[child.Lowest] = session.Link{
				Group: terms.Group, Epoch: terms.Epoch, Cookie: cookie(terms.Cookie, child.Lowest), Window: terms.Window,
				Parent: at(int32(v)), Index: uint16(i), Probes: 2 * terms.Probes, Idle: terms.Lease / 3,
			}
		}
	}
	return configs, links
}

// cookie returns the secret of an edge of a tree: a rank, or the complement of a vertex.
func cookie(of wire.Cookie, edge uint32) wire.Cookie {
	return (of ^ wire.Cookie(edge)*0x9e3779b97f4a7c15) & wire.CookieMask
}

// Edges returns the pairs of nodes between which the packets of a tree travel.
func (g *Group) Edges(t pathsel.Tree, switches []sim.NodeID) [][2]sim.NodeID {
	var edges [][2]sim.NodeID
	for v, vertex := range t.Vertices {
		if v > 0 {
			edges = append(edges, [2]sim.NodeID{switches[vertex.Parent], switches[v]})
		}
	}
	for r, leaf := range t.Leaves {
		edges = append(edges, [2]sim.NodeID{switches[leaf.Vertex], g.Nodes[r]})
	}
	return edges
}

// Regular returns a tree of the given number of switch levels in which every
// switch has fan children: fan to the power of levels members. Its nodes are of
// no fabric.
func Regular(levels, fan int) pathsel.Tree {
	t := pathsel.Tree{Vertices: []pathsel.Vertex{{Parent: -1}}}
	first := 0
	for range levels - 1 {
		end := len(t.Vertices)
		for v := first; v < end; v++ {
			for range fan {
				t.Vertices = append(t.Vertices, pathsel.Vertex{Parent: int32(v)})
			}
		}
		first = end
	}
	for v := first; v < len(t.Vertices); v++ {
		for range fan {
			t.Leaves = append(t.Leaves, pathsel.Leaf{Vertex: int32(v)})
		}
	}
	return t
}
