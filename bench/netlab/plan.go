package netlab

import (
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/topology"
)

// The address plan, in 10.0.0.0/8. A lab's namespaces are joined to nothing
// else, so that all labs have the same.
const (
	hostNet  = 96  // 10.96.LEAF.2I and +1: leaf's and host's end of the link of a leaf's host I
	trunkNet = 97  // 10.97.LEAF.2S and +1: leaf's and spine's end of a link to spine S
	loopNet  = 98  // 10.98.LEAF.I: a host itself; 10.98.128.LEAF: a leaf; 10.98.129.SPINE: a spine
	aloofNet = 100 // 10.100.X.Y and +1: the station's and node's end of the pair that joins them
	standNet = 101 // 10.101.0.1: the station itself
)

func address(net, x, y int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(net), byte(x), byte(y)})
}

// stationAddr is the station's own address, on its loopback interface.
var stationAddr = address(standNet, 0, 1)

// station is the name of the namespace that is no node of the fabric.
const station = "station"

// plan is what a lab is to be: pure reckoning.
type plan struct {
	cfg   Config
	graph *topology.Graph
	loops []netip.Addr // by NodeID
}

// newPlan draws the lab up. Nodes and links are numbered as topology.LeafSpine
// does it.
func newPlan(c Config) (*plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := topology.Builder{Fabric: fmt.Sprintf("leaf-spine:%d,%d,%d", c.HostsPerLeaf, c.Leaves, c.Spines)}
	if pods := c.Leaves / c.rails(); c.rails() > 1 {
		b.Fabric = fmt.Sprintf("rail:%d,%d,%d,%d", c.HostsPerLeaf, c.rails(), pods, c.Spines)
	}
	d := drawing{Builder: &b}
	p := &plan{cfg: c}
	for h := range c.HostsPerLeaf * c.Leaves / c.rails() {
		d.hosts = append(d.hosts, d.node(b.AddHost(fmt.Sprintf("h%d", h))))
		p.loops = append(p.loops, address(loopNet, p.leafOf(h, 0), h%c.HostsPerLeaf))
	}
	for l := range c.Leaves {
		d.leaves = append(d.leaves, d.node(b.AddSwitch(fmt.Sprintf("leaf-%d", l), topology.DefaultCapability())))
		p.loops = append(p.loops, address(loopNet, 128, l))
	}
	for s := range c.Spines {
		d.spines = append(d.spines, d.node(b.AddSwitch(fmt.Sprintf("spine-%d", s), topology.DefaultCapability())))
		p.loops = append(p.loops, address(loopNet, 129, s))
	}
	for h, ref := range d.hosts {
		for r := range c.rails() {
			leaf, i := p.leafOf(h, r), h%c.HostsPerLeaf
			d.link(c.rate(false), ref, r+1, d.leaves[leaf], i+1, address(hostNet, leaf, 2*i+1), address(hostNet, leaf, 2*i))
		}
	}
	for l, leaf := range d.leaves {
		for s, spine := range d.spines {
			d.link(c.rate(true), leaf, c.HostsPerLeaf+s+1, spine, l+1, address(trunkNet, l, 2*s), address(trunkNet, l, 2*s+1))
		}
	}
	if d.err != nil {
		return nil, fmt.Errorf("netlab: %w", d.err)
	}
	var err error
	if p.graph, err = b.Build(); err != nil {
		return nil, fmt.Errorf("netlab: %w", err)
	}
	return p, nil
}

// drawing is a topology in the making; it keeps the first error.
type drawing struct {
	*topology.Builder
	hosts, leaves, spines []topology.Ref
	err                   error
}

func (d *drawing) node(r topology.Ref, err error) topology.Ref {
	d.note(err)
	return r
}

func (d *drawing) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *drawing) link(rate int64, x topology.Ref, xPort int, y topology.Ref, yPort int, xAddr, yAddr netip.Addr) {
	spec := topology.DefaultLink()
	if rate > 0 {
		spec.Bandwidth = rate
	}
	l, err := d.Connect(x, topology.Port(xPort), y, topology.Port(yPort), spec)
	d.note(err)
	if err == nil {
		d.note(d.SetAddresses(l, xAddr, yAddr))
	}
}

// aloof returns the addresses of the pair between the station and node n.
func aloof(n topology.NodeID) (ofStation, ofNode netip.Addr) {
	return address(aloofNet, int(n)>>7, int(n)<<1&0xff), address(aloofNet, int(n)>>7, int(n)<<1&0xff|1)
}

// portName is the name of the interface at a port.
func portName(p topology.Port) string { return fmt.Sprintf("port%d", p) }

// route is one of a node's static routes: to is reached over all of via.
type route struct {
	to  netip.Prefix
	via []topology.LinkID // links of the node, each to a next hop
}

func (p *plan) leaf(i int) topology.NodeID { return p.graph.Switch(i) }

func (p *plan) isLeaf(n topology.NodeID) bool {
	return p.graph.IsSwitch(n) && p.graph.SwitchIndex(n) < p.cfg.Leaves
}

// leafOf returns the leaf of a host's rail.
func (p *plan) leafOf(host, rail int) int { return host/p.cfg.HostsPerLeaf*p.cfg.rails() + rail }

// hostLink, rail and trunk return links by where they are.
func (p *plan) hostLink(h topology.NodeID) topology.LinkID { return p.rail(h, 0) }

func (p *plan) rail(h topology.NodeID, rail int) topology.LinkID {
	return topology.LinkID(int(h)*p.cfg.rails() + rail)
}

func (p *plan) trunk(leaf, spine int) topology.LinkID {
	return topology.LinkID(p.graph.Hosts()*p.cfg.rails() + leaf*p.cfg.Spines + spine)
}

// behind returns what lies behind a leaf: its hosts' links, its hosts, itself.
func behind(leaf int) []netip.Prefix {
	return []netip.Prefix{
		netip.PrefixFrom(address(hostNet, leaf, 0), 24), netip.PrefixFrom(address(loopNet, leaf, 0), 24), single(address(loopNet, 128, leaf)),
	}
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 32) }

// routes returns a node's static routes over the links that are up. Addresses
// of other nodes' links are not among them, those of hosts' links excepted.
func (p *plan) routes(n topology.NodeID, up func(topology.LinkID) bool) (all []route) {
	add := func(to netip.Prefix, via ...topology.LinkID) {
		var live []topology.LinkID
		for _, l := range via {
			if up(l) {
				live = append(live, l)
			}
		}
		if len(live) > 0 {
			all = append(all, route{to, live})
		}
	}
	i := p.graph.SwitchIndex(n)
	switch {
	case p.graph.IsHost(n):
		p.hostRoutes(n, add)
	case p.isLeaf(n):
		p.leafRoutes(i, up, add)
	default:
		for leaf := range p.cfg.Leaves {
			for _, to := range behind(leaf) {
				add(to, p.trunk(leaf, i-p.cfg.Leaves))
			}
		}
	}
	return all
}

// hostRoutes has a host reach others' rails by its own of the same number, and all else by
// any.
func (p *plan) hostRoutes(h topology.NodeID, add func(netip.Prefix, ...topology.LinkID)) {
	var all []topology.LinkID
	for r := range p.cfg.rails() {
		all = append(all, p.rail(h, r))
	}
	add(netip.PrefixFrom(address(0, 0, 0), 8).Masked(), all...)
	for leaf := range p.cfg.Leaves {
		if len(all) > 1 {
			add(behind(leaf)[0], all[leaf%len(all)])
		}
	}
}

func (p *plan) leafRoutes(leaf int, up func(topology.LinkID) bool, add func(netip.Prefix, ...topology.LinkID)) {
	for i := range p.cfg.HostsPerLeaf {
		h := topology.NodeID(leaf/p.cfg.rails()*p.cfg.HostsPerLeaf + i)
		add(single(p.loops[h]), p.rail(h, leaf%p.cfg.rails()))
	}
	for s := range p.cfg.Spines {
		add(single(address(loopNet, 129, s)), p.trunk(leaf, s))
	}
	for other := range p.cfg.Leaves {
		var via []topology.LinkID
		for s := range p.cfg.Spines {
			if up(p.trunk(other, s)) {
				via = append(via, p.trunk(leaf, s))
			}
		}
		if other == leaf || len(via) == 0 {
			continue
		}
		for _, to := range behind(other) {
			add(to, via...)
		}
	}
}
