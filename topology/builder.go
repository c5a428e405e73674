package topology

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Ref refers to a node of a Builder; the zero value is the first host's. Its
// NodeID is known after Build, by Graph.Lookup of its name.
type Ref int32

func (r Ref) host() bool { return r >= 0 }

// MaxPort is the highest port of a node.
const MaxPort = 1<<16 - 1

// MaxLayer is the highest layer that a switch can be put in.
const MaxLayer = 200

// The errors of a Builder, beside ErrName, ErrLink and ErrCapability.
var (
	ErrDuplicateName = errors.New("two nodes have the same name")
	ErrPortUsed      = errors.New("a port has two links")
	ErrNoPort        = errors.New("a node has no port left")
	ErrLayer         = errors.New("invalid layer")
)

// Builder collects nodes and links for a Graph. The zero value is ready to use.
type Builder struct {
	// Fabric is the name of the fabric; it may be empty.
	Fabric string

	hosts, switches nameTable
	caps            []Capability
	layers          []int // of the switches; 0: find out
	hostSpeeds      map[NodeID]Speed
	links           []builtLink

	addresses map[LinkID][2]netip.Addr
	addressed map[netip.Addr]LinkID // whose end has it
}

type builtLink struct {
	ends  [2]Ref
	ports [2]Port // 0: the lowest that is free
	spec  LinkSpec
}

// LinkError is an error of Build about one link: End says which of its ends.
type LinkError struct {
	Link LinkID
	End  int
	Err  error
}

// Error says which link, by number, and what is wrong.
func (e *LinkError) Error() string { return fmt.Sprintf("link %d: %v", e.Link, e.Err) }

// Unwrap returns the sentinel beneath.
func (e *LinkError) Unwrap() error { return e.Err }

// AddHost adds a host. It fails for an invalid name or one that is taken.
func (b *Builder) AddHost(name string) (Ref, error) {
	if err := b.add(&b.hosts, name); err != nil {
		return 0, fmt.Errorf("add host: %w", err)
	}
	return Ref(len(b.hosts.ends) - 1), nil
}

// AddSwitch adds a switch. It fails for an invalid name or one that is taken,
// and for an invalid capability.
func (b *Builder) AddSwitch(name string, c Capability) (Ref, error) {
	if err := c.Validate(); err != nil {
		return 0, fmt.Errorf("add switch %s: %w", name, err)
	}
	if err := b.add(&b.switches, name); err != nil {
		return 0, fmt.Errorf("add switch: %w", err)
	}
	b.caps = append(b.caps, c)
	b.layers = append(b.layers, 0)
	return ^Ref(len(b.switches.ends) - 1), nil
}

func (b *Builder) add(to *nameTable, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, taken := b.Find(name); taken {
		return fmt.Errorf("%q: %w", name, ErrDuplicateName)
	}
	to.add(name)
	return nil
}

// Find returns the node of that name.
func (b *Builder) Find(name string) (Ref, bool) {
	if n, ok := b.hosts.lookup(name); ok {
		return Ref(n), true
	}
	n, ok := b.switches.lookup(name)
	if !ok {
		return 0, false
	}
	return ^Ref(n), true
}

// SetLayer puts switch s in a layer, from 1 to MaxLayer, where its distance to
// the nearest host would not do.
func (b *Builder) SetLayer(s Ref, layer int) error {
	if s.host() || layer < 1 || layer > MaxLayer {
		return fmt.Errorf("set layer: %d is not within 1 and %d, or not of a switch: %w", layer, MaxLayer, ErrLayer)
	}
	b.layers[^s] = layer
	return nil
}

// SetSpeed says how fast host h reduces. Of a switch its capability says so.
func (b *Builder) SetSpeed(h Ref, s Speed) error {
	err := s.Validate()
	if !h.host() {
		err = fmt.Errorf("not of a host: %w", ErrSpeed)
	}
	if err != nil {
		return fmt.Errorf("set speed: %w", err)
	}
	if b.hostSpeeds == nil {
		b.hostSpeeds = map[NodeID]Speed{}
	}
	b.hostSpeeds[NodeID(h)] = s
	return nil
}

// Connect adds a link between a port of x and one of y; port 0 is the lowest
// that no link names. It fails for a link between two hosts, from a node to
// itself, and for a spec out of range. Whether a port is used twice, Build says.
func (b *Builder) Connect(x Ref, xPort Port, y Ref, yPort Port, spec LinkSpec) (LinkID, error) {
	if err := spec.Validate(); err != nil {
		return NoLink, fmt.Errorf("connect: %w", err)
	}
	switch {
	case x == y:
		return NoLink, fmt.Errorf("connect: both ends are the same node: %w", ErrLink)
	case x.host() && y.host():
		return NoLink, fmt.Errorf("connect: both ends are hosts: %w", ErrLink)
	}
	b.links = append(b.links, builtLink{ends: [2]Ref{x, y}, ports: [2]Port{xPort, yPort}, spec: spec})
	return LinkID(len(b.links) - 1), nil
}

// Build returns the graph: hosts and switches numbered in the order they were
// added, hosts first, links as Connect numbered them. Its errors are *LinkError
// joined, one for each end of a link whose port is taken, or one ErrName for the
// fabric's own name.
func (b *Builder) Build() (*Graph, error) {
	if err := validFabric(b.Fabric); err != nil {
		return nil, fmt.Errorf("build fabric: %w", err)
	}
	hosts, switches := len(b.hosts.ends), len(b.switches.ends)
	g := &Graph{
		fabric: b.Fabric, hosts: int32(hosts), names: b.joinNames(),
		ends: make([][2]NodeID, len(b.links)), ports: make([][2]Port, len(b.links)), spec: make([]uint32, len(b.links)),
		caps: make([]uint32, switches), addresses: b.joinAddresses(), hostSpeeds: maps.Clone(b.hostSpeeds),
	}
	specs, caps := map[LinkSpec]uint32{}, map[Capability]uint32{}
	for i, l := range b.links {
		for end, r := range l.ends {
			g.ends[i][end] = NodeID(r)
			if !r.host() {
				g.ends[i][end] = NodeID(hosts + int(^r))
			}
		}
		g.ports[i] = l.ports
		g.spec[i] = intern(specs, &g.specs, l.spec)
	}
	for i, c := range b.caps {
		g.caps[i] = intern(caps, &g.capSets, c)
	}
	if err := g.assignPorts(hosts + switches); err != nil {
		return nil, fmt.Errorf("build fabric: %w", err)
	}
	g.index(hosts + switches)
	g.layers = g.layersFromHosts()
	for i, layer := range b.layers {
		if layer > 0 {
			g.layers[hosts+i] = uint8(layer)
		}
	}
	return g, nil
}

// joinNames returns one exact-sized table of all names, hosts first.
func (b *Builder) joinNames() *nameTable {
	all := &nameTable{}
	all.reserve(len(b.hosts.ends)+len(b.switches.ends), len(b.hosts.text)+len(b.switches.text))
	for _, t := range []*nameTable{&b.hosts, &b.switches} {
		for i := range t.ends {
			all.add(t.name(NodeID(i)))
		}
	}
	return all
}

func intern[T comparable](known map[T]uint32, list *[]T, x T) uint32 {
	i, ok := known[x]
	if !ok {
		i = uint32(len(*list))
		known[x] = i
		*list = append(*list, x)
	}
	return i
}

// assignPorts gives the ends with port 0 the lowest free ports of their nodes,
// and finds ports that are used twice.
func (g *Graph) assignPorts(nodes int) error {
	g.index(nodes)
	var errs []error
	for n := range NodeID(nodes) {
		// By ascending port: those without a number come first.
		links := g.Adjacent(n)
		named := slices.IndexFunc(links, func(l LinkID) bool { return *g.portOf(l, n) != 0 })
		if named < 0 {
			named = len(links)
		}
		for i := named + 1; i < len(links); i++ {
			if port := *g.portOf(links[i], n); port == *g.portOf(links[i-1], n) {
				errs = append(errs, &LinkError{Link: links[i], End: g.endOf(links[i], n),
					Err: fmt.Errorf("port %d of %s: %w", port, g.Name(n), ErrPortUsed)})
			}
		}
		free, taken := 1, links[named:]
		for _, l := range links[:named] {
			for len(taken) > 0 && int(*g.portOf(taken[0], n)) <= free {
				if int(*g.portOf(taken[0], n)) == free {
					free++
				}
				taken = taken[1:]
			}
			if free > MaxPort {
				errs = append(errs, &LinkError{Link: l, End: g.endOf(l, n), Err: fmt.Errorf("%s: %w", g.Name(n), ErrNoPort)})
				break
			}
			*g.portOf(l, n) = Port(free)
			free++
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Compare(a.(*LinkError).Link, b.(*LinkError).Link)
	})
	return errors.Join(errs...)
}

func (g *Graph) endOf(l LinkID, n NodeID) int {
	if g.ends[l][0] == n {
		return 0
	}
	return 1
}

func (g *Graph) portOf(l LinkID, n NodeID) *Port { return &g.ports[l][g.endOf(l, n)] }
