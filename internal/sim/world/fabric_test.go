package world

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/topology"
)

// FabricConfig is what a Fabric is made of, beside its graph. The zero value is
// usable.
type FabricConfig struct {
	Manager manager.Config
	Slots   int           // of every switch; 0: what the graph says
	Plan    time.Duration // that the choice of a tree takes
	Store   time.Duration // until a manager's record survives a crash
	Redial  time.Duration // pause before who is not there is called again

	// Installed, if not nil, is notified of every epoch that a switch installs, and
	// of the address that it is installed at.
	Installed func(at netip.AddrPort, cfg *switchreduce.Config)
}

// Fabric is a fabric in a world: an agent on every switch, and a manager.
// Hosts of the graph become nodes as members of groups.
type Fabric struct {
	World    *sim.World
	Graph    *topology.Graph
	Manager  sim.NodeID
	Switches []sim.NodeID // by switch index of Graph
	Disk     *Disk        // of the manager, in all its lives

	cfg     FabricConfig
	manager ManagerConfig
	lives   []uint64 // of switches
	agents  []*Switch
	present *Manager
	overlay *topology.Overlay
	members map[topology.NodeID][]sim.NodeID
}

// NewFabric puts a fabric into w.
func NewFabric(w *sim.World, g *topology.Graph, cfg FabricConfig) (*Fabric, error) {
	f := &Fabric{
		World: w, Graph: g, cfg: cfg, Disk: &Disk{}, overlay: topology.NewOverlay(g),
		lives: make([]uint64, g.Switches()), agents: make([]*Switch, g.Switches()),
		members: map[topology.NodeID][]sim.NodeID{},
	}
	for i := range g.Switches() {
		s, err := f.newSwitch(i)
		if err != nil {
			return nil, fmt.Errorf("world: %w", err)
		}
		f.Switches = append(f.Switches, w.Add(g.Name(g.Switch(i)), s))
	}
	f.manager = ManagerConfig{
		Graph: g, Core: cfg.Manager, Switches: f.Switches, Plan: cfg.Plan, Store: cfg.Store, Redial: cfg.Redial,
	}
	m, err := NewManager(f.manager, f.Disk, w.Rand())
	if err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	f.present = m
	f.Manager = w.Add("manager", m)
	return f, nil
}

// newSwitch returns the next life of a switch.
func (f *Fabric) newSwitch(i int) (*Switch, error) {
	f.lives[i]++
	n := f.Graph.Switch(i)
	can := f.Graph.Capability(n)
	if f.cfg.Slots > 0 {
		can.Slots = f.cfg.Slots
	}
	s, err := NewSwitch(agent.Config{Name: f.Graph.Name(n), Incarnation: f.lives[i], Capability: can})
	if err != nil {
		return nil, err
	}
	s.Installed = f.cfg.Installed
	f.agents[i] = s
	return s, nil
}

// Switch returns the i-th switch in its present life, or the last one.
func (f *Fabric) Switch(i int) *Switch { return f.agents[i] }

// ManagerNode returns the manager in its present life, or the last one.
func (f *Fabric) ManagerNode() *Manager { return f.present }

// RestartSwitch begins the next life of the i-th switch, which is empty.
func (f *Fabric) RestartSwitch(i int) {
	s, err := f.newSwitch(i)
	if err != nil {
		panic(err) // the same configuration was valid before
	}
	f.World.Restart(f.Switches[i], s)
}

// RestartManager begins the manager's next life, from its disk. It learns how
// the fabric stands.
func (f *Fabric) RestartManager() {
	m, err := NewManager(f.manager, f.Disk, f.World.Rand())
	if err != nil {
		panic(err) // what a manager has stored it can read
	}
	f.present = m
	f.World.Restart(f.Manager, m)
	f.World.Command(f.Manager, manager.TopologyChanged{View: f.overlay.View()})
}

// NewGroup puts the members of a communicator onto hosts, by rank; rank 0 has
// the manager make the group. Only Radix, ChunkBytes, Window, First, Timing,
// Group and Cookie of cfg count.
func (f *Fabric) NewGroup(name string, hosts []topology.NodeID, cfg endpoint.Config) (*Group, error) {
	cfg.Size, cfg.Linger = len(hosts), endpoint.DefaultLinger
	terms := &manager.Create{
		Name: name, ChunkBytes: cfg.ChunkBytes, Window: cfg.Window,
		Functions: topology.AllFunctions(), Types: topology.AllTypes(),
	}
	for _, h := range hosts {
		terms.Members = append(terms.Members, f.Graph.Name(h))
	}
	binary.BigEndian.PutUint64(terms.Secret[:], f.World.Rand().Uint64()|1)
	g, err := newGroup(f.World, name+"-", cfg, func(r uint32) (*control, error) {
		if len(hosts) == 1 {
			return nil, nil
		}
		return newControl(f.Manager, r, terms, f.cfg.Redial)
	})
	if err != nil {
		return nil, err
	}
	for r, h := range hosts {
		f.members[h] = append(f.members[h], g.Nodes[r])
	}
	return g, nil
}

// downLink cuts a link for a while, and notifies the manager.
func (f *Fabric) downLink(l topology.LinkID, d time.Duration) {
	for _, pair := range f.Edges(l) {
		f.World.Cut(pair[0], pair[1])
	}
	f.notifyLink(l, false)
	f.World.After(d, "link is up again", func() {
		for _, pair := range f.Edges(l) {
			f.World.Repair(pair[0], pair[1])
		}
		f.notifyLink(l, true)
	})
}

func (f *Fabric) notifyLink(l topology.LinkID, up bool) {
	next, err := f.overlay.With(topology.LinkState(l, up))
	if err != nil {
		panic(err) // every graph has its own links
	}
	f.overlay = next
	f.World.Command(f.Manager, manager.TopologyChanged{View: next.View()})
}

// drain has the manager keep off the i-th switch for a while.
func (f *Fabric) drain(i int, d time.Duration) {
	notify := func(on bool) {
		f.World.Command(f.Manager, manager.Drain{Req: uint64(f.Manager), Switch: f.Graph.Name(f.Graph.Switch(i)), On: on})
	}
	notify(true)
	f.World.After(d, "end of drain", func() { notify(false) })
}

// ends returns the nodes at the two ends of a link.
func (f *Fabric) ends(l topology.LinkID) [2][]sim.NodeID {
	var ends [2][]sim.NodeID
	for i, e := range f.Graph.Link(l).Ends {
		if f.Graph.IsSwitch(e.Node) {
			ends[i] = []sim.NodeID{f.Switches[f.Graph.SwitchIndex(e.Node)]}
		} else {
			ends[i] = f.members[e.Node]
		}
	}
	return ends
}

// Edges returns the pairs of nodes that speak over a link.
func (f *Fabric) Edges(l topology.LinkID) [][2]sim.NodeID {
	var pairs [][2]sim.NodeID
	ends := f.ends(l)
	for _, a := range ends[0] {
		for _, b := range ends[1] {
			pairs = append(pairs, [2]sim.NodeID{a, b})
		}
	}
	return pairs
}
