package netlab

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"sync"

	"github.com/tributary-fabric/tributary/topology"
)

// Lab is a fabric of namespaces. Its methods may be called from any goroutine.
type Lab struct {
	plan *plan
	log  *slog.Logger
	lock *os.File

	mu      sync.Mutex
	closed  bool
	places  []*place // by NodeID; nil: not made
	station *place
	down    map[topology.LinkID]bool
}

// Build builds a lab, after it has removed what an earlier process may have
// left of one with that prefix. The caller owns it and must Close it.
func Build(c Config) (*Lab, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: this is user %d", ErrPrivilege, os.Geteuid())
	}
	lock, err := claim(c.Prefix)
	if err != nil {
		return nil, err
	}
	lab := &Lab{plan: p, log: c.Log, lock: lock, places: make([]*place, p.graph.Nodes()), down: map[topology.LinkID]bool{}}
	if lab.log == nil {
		lab.log = slog.New(slog.DiscardHandler)
	}
	if err := sweep(c.Prefix, lab.log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := lab.build(); err != nil {
		return nil, errors.Join(err, lab.Close())
	}
	lab.log.Info("lab built", slog.String("prefix", c.Prefix), slog.String("fabric", p.graph.Fabric()), slog.Int64("rate", c.Rate))
	return lab, nil
}

// build makes the nodes, then the links, then the routes.
func (lab *Lab) build() (err error) {
	g := lab.plan.graph
	if lab.station, err = lab.found(station, false, stationAddr); err != nil {
		return err
	}
	for n := range topology.NodeID(g.Nodes()) {
		if lab.places[n], err = lab.found(g.Name(n), g.IsSwitch(n), lab.plan.loops[n]); err != nil {
			return err
		}
		if err := lab.standBy(n); err != nil {
			return err
		}
	}
	for l := range g.AllLinks() {
		if err := lab.connect(l); err != nil {
			return err
		}
	}
	return lab.direct()
}

// found makes a namespace with its own address.
func (lab *Lab) found(name string, forward bool, own netip.Addr) (*place, error) {
	p, err := enter(lab.plan.cfg.Prefix + "-" + name)
	if err != nil {
		return nil, err
	}
	if err := p.configure(forward); err != nil {
		return p, err
	}
	return p, p.assign("lo", single(own))
}

// standBy joins a node to the station.
func (lab *Lab) standBy(n topology.NodeID) error {
	near, far := aloof(n)
	device, p := fmt.Sprintf("node%d", n), lab.places[n]
	if err := lab.station.joinTo(device, p, station); err != nil {
		return err
	}
	return errors.Join(lab.station.assign(device, netip.PrefixFrom(near, 31)), p.assign(station, netip.PrefixFrom(far, 31)),
		p.gateway(stationAddr, near, netip.Addr{}))
}

// connect makes a link.
func (lab *Lab) connect(l topology.LinkID) error {
	g := lab.plan.graph
	ends := g.Link(l).Ends
	if err := lab.places[ends[0].Node].joinTo(portName(ends[0].Port), lab.places[ends[1].Node], portName(ends[1].Port)); err != nil {
		return err
	}
	for _, end := range ends {
		p, device := lab.places[end.Node], portName(end.Port)
		if err := p.assign(device, netip.PrefixFrom(g.AddressAt(l, end.Node), 31)); err != nil {
			return err
		}
		if rate := lab.plan.cfg.rate(g.IsSwitch(ends[0].Node) && g.IsSwitch(ends[1].Node)); rate > 0 {
			if err := p.shape(device, rate); err != nil {
				return err
			}
		}
	}
	return nil
}

// direct gives all nodes the routes that fit the links that are up.
func (lab *Lab) direct() error {
	up := func(l topology.LinkID) bool { return !lab.down[l] }
	for n := range topology.NodeID(lab.plan.graph.Nodes()) {
		for _, r := range lab.plan.routes(n, up) {
			if err := lab.places[n].direct(lab.plan.graph, n, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Topology returns the fabric, with the addresses of all links' ends.
func (lab *Lab) Topology() *topology.Graph { return lab.plan.graph }

// HostAddr returns the address by which other hosts reach host n: that on its
// link.
func (lab *Lab) HostAddr(n topology.NodeID) netip.Addr {
	return lab.plan.graph.AddressAt(lab.plan.hostLink(n), n)
}

// HostAddrs returns the addresses of host n on its links, by rail.
func (lab *Lab) HostAddrs(n topology.NodeID) (all []string) {
	for r := range lab.plan.cfg.rails() {
		all = append(all, lab.plan.graph.AddressAt(lab.plan.rail(n, r), n).String())
	}
	return all
}

// AloofAddr returns the address by which the station reaches node n without
// using the fabric's links, and StationAddr that by which nodes reach it.
func (lab *Lab) AloofAddr(n topology.NodeID) netip.Addr {
	_, node := aloof(n)
	return node
}

// StationAddr returns the address of the station for all nodes.
func (lab *Lab) StationAddr() netip.Addr { return stationAddr }

// Start starts a process in node n's namespace. The process is killed, at the
// latest, when this one ends or the lab is closed; the caller waits for it.
func (lab *Lab) Start(n topology.NodeID, cmd *exec.Cmd) error {
	if !lab.plan.graph.HasNode(n) {
		return fmt.Errorf("%w: node %d", ErrUnknown, n)
	}
	return lab.open(func() error { return lab.places[n].start(cmd) })
}

// StartAtStation is Start in the station's namespace.
func (lab *Lab) StartAtStation(cmd *exec.Cmd) error {
	return lab.open(func() error { return lab.station.start(cmd) })
}

// Do runs f on a thread in node n's namespace: sockets that it opens are that
// node's. It must not start goroutines that have to be there, too.
func (lab *Lab) Do(n topology.NodeID, f func() error) error {
	if !lab.plan.graph.HasNode(n) {
		return fmt.Errorf("%w: node %d", ErrUnknown, n)
	}
	return lab.open(func() error { return lab.places[n].do(f) })
}

// open runs f unless the lab is closed.
func (lab *Lab) open(f func() error) error {
	lab.mu.Lock()
	defer lab.mu.Unlock()
	if lab.closed {
		return ErrClosed
	}
	return f()
}

// SetLink sets both ends of a link up or down, and directs the routes of the
// fabric over the links that are up, as routing protocols would.
func (lab *Lab) SetLink(l topology.LinkID, up bool) error {
	g := lab.plan.graph
	if !g.HasLink(l) {
		return fmt.Errorf("%w: link %d", ErrUnknown, l)
	}
	return lab.open(func() error {
		for _, end := range g.Link(l).Ends {
			if err := lab.places[end.Node].setLink(portName(end.Port), up); err != nil {
				return err
			}
		}
		lab.down[l] = !up
		lab.log.Info("link set", slog.String("link", g.LinkName(l)), slog.Bool("up", up))
		return lab.direct()
	})
}

// SetFault makes a host's link to a leaf fail in a way, or work again: fault is the
// host's, as of a Rails fabric. Routes of other nodes stay as they are.
func (lab *Lab) SetFault(h topology.NodeID, rail int, fault Fault) error {
	g := lab.plan.graph
	if !g.HasNode(h) || !g.IsHost(h) || rail < 0 || rail >= lab.plan.cfg.rails() || fault == Deleted {
		return fmt.Errorf("%w: %v of rail %d of node %d", ErrUnknown, fault, rail, h)
	}
	l := lab.plan.rail(h, rail)
	return lab.open(func() error {
		host, leaf := lab.places[h], lab.places[g.Across(l, h)]
		here, there := portName(g.PortAt(l, h)), portName(g.PortAt(l, g.Across(l, h)))
		now, rate := railLink{fault: fault}, lab.plan.cfg.rate(false)
		lab.down[l] = fault == Carrier || fault == Disabled
		err := errors.Join(
			send(host, here, rate, now.sends()), send(leaf, there, rate, now.receives()),
			leaf.setLink(there, fault != Carrier), host.setLink(here, fault != Disabled),
		)
		if err != nil || fault == Carrier || fault == Disabled {
			return err
		}
		// Routes over an interface that was down are gone.
		err = errors.Join(host.awaitUp(here), leaf.awaitUp(there), lab.direct())
		lab.log.Info("link changed", slog.String("link", g.LinkName(l)), slog.String("fault", fault.String()))
		return err
	})
}

// Detour has what node n sends to the far end of link l go over other links: by
// those in around, one after the other, which must lead there from n. It keeps
// the sender's address on l. This is what a wrong route does to a tree.
func (lab *Lab) Detour(n topology.NodeID, l topology.LinkID, around ...topology.LinkID) error {
	g := lab.plan.graph
	if !g.HasLink(l) || !g.HasNode(n) {
		return fmt.Errorf("%w: node %d, link %d", ErrUnknown, n, l)
	}
	far := g.Across(l, n)
	return lab.open(func() error {
		from, at := g.AddressAt(l, n), n
		for _, over := range around {
			next := g.Across(over, at)
			if err := lab.places[at].gateway(g.AddressAt(l, far), g.AddressAt(over, next), from); err != nil {
				return err
			}
			from, at = netip.Addr{}, next
		}
		if at != far {
			return fmt.Errorf("%w: the detour ends at %s", ErrUnknown, g.Name(at))
		}
		lab.log.Info("detour made", slog.String("from", g.Name(n)), slog.String("link", g.LinkName(l)), slog.Int("links", len(around)))
		return nil
	})
}

// CountsOf returns what the links of a host have carried so far, both ways together, by
// rail.
func (lab *Lab) CountsOf(h topology.NodeID) (all []Count, err error) {
	g := lab.plan.graph
	err = lab.open(func() error {
		for r := range lab.plan.cfg.rails() {
			var sum Count
			for _, end := range g.Link(lab.plan.rail(h, r)).Ends {
				n, err := lab.places[end.Node].sent(portName(end.Port))
				if err != nil {
					return err
				}
				sum.Bytes, sum.Packets, sum.Dropped = sum.Bytes+n.Bytes, sum.Packets+n.Packets, sum.Dropped+n.Dropped
			}
			all = append(all, sum)
		}
		return nil
	})
	return all, err
}

// Counts returns what every link has carried so far.
func (lab *Lab) Counts() (Counts, error) {
	g := lab.plan.graph
	all := make(Counts, g.Links())
	err := lab.open(func() (err error) {
		for l, link := range g.AllLinks() {
			for i, end := range link.Ends {
				if all[l][i], err = lab.places[end.Node].sent(portName(end.Port)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return all, err
}

// Close removes the lab: its processes are killed, its namespaces and with
// them the links go. It may be called again.
func (lab *Lab) Close() error {
	lab.mu.Lock()
	defer lab.mu.Unlock()
	if lab.closed {
		return nil
	}
	lab.closed = true
	for _, p := range append([]*place{lab.station}, lab.places...) {
		if p != nil {
			p.leave()
		}
	}
	return errors.Join(sweep(lab.plan.cfg.Prefix, lab.log), lab.lock.Close())
}
