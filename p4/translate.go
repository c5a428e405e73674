package p4

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Translate returns the groups and entries of s, in the order of TableOrder. An
// error wraps ErrState.
func Translate(s *State) (Program, error) {
	if err := s.Validate(); err != nil {
		return Program{}, err
	}
	p := Program{Groups: s.groups()}
	add := func(e ...Entry) { p.Entries = append(p.Entries, e...) }
	for i := range s.Ports {
		add(portEntry(&s.Ports[i]))
	}
	for i := range s.Ports {
		add(localEntry(s.Ports[i].Addr))
	}
	for i := range s.Routes {
		add(routeEntry(&s.Routes[i]))
	}
	for i := range s.Epochs {
		add(s.rewriteEntries(&s.Epochs[i])...)
	}
	for i := range s.Epochs {
		add(s.neighbourEntries(&s.Epochs[i])...)
	}
	for i := range s.Epochs {
		add(s.epochEntry(&s.Epochs[i]))
	}
	for i := range s.Trees {
		add(treeEntry(&s.Trees[i]))
	}
	return p, nil
}

// groups returns the groups of each epoch. A root has one, to all others the
// parent belongs, too.
func (s *State) groups() []Group {
	var all []Group
	for i := range s.Epochs {
		e := &s.Epochs[i]
		var children []Replica
		for n, c := range e.Children {
			children = append(children, Replica{Port: s.portTo(c.Addr), Instance: instance(n)})
		}
		id := uint32(e.Index * GroupsPerEpoch)
		all = append(all, Group{ID: id + GroupChildren, Replicas: children})
		if e.root() {
			continue
		}
		parent := Replica{Port: s.portTo(e.Parent), Instance: Parent}
		all = append(all,
			Group{ID: id + GroupAll, Replicas: slices.Concat(children, []Replica{parent})},
			Group{ID: id + GroupPair, Replicas: []Replica{children[0], parent}})
	}
	return all
}

// portTo returns the port by which packets to a neighbour leave.
func (s *State) portTo(a netip.AddrPort) uint16 {
	way, _ := s.way(a) // s is valid
	return way.Port
}

// rewriteEntries say to egress how to address packets to each neighbour.
func (s *State) rewriteEntries(e *Epoch) []Entry {
	var all []Entry
	for i, c := range e.Children {
		way, _ := s.way(c.Addr)
		all = append(all, rewriteEntry(e, instance(i), c.Addr, way.MAC, uint16(i), c.Cookie))
	}
	if !e.root() {
		way, _ := s.way(e.Parent)
		all = append(all, rewriteEntry(e, Parent, e.Parent, way.MAC, e.Own, e.Cookie))
	}
	return all
}

// neighbourEntries report whose a source address is. Packets of a neighbour come in by
// the port by which packets to it leave.
func (s *State) neighbourEntries(e *Epoch) []Entry {
	var all []Entry
	for i, c := range e.Children {
		port := s.portTo(c.Addr)
		all = append(all, Entry{
			Table: TableNeighbours, Match: neighbourKey(e, port, c.Addr),
			Action: ActionChild, Params: [][]byte{u16(uint16(i)), u32(1 << i), u16(port), u24(c.Lowest), u48(c.Cookie)},
		})
	}
	if !e.root() {
		all = append(all, Entry{
			Table: TableNeighbours, Match: neighbourKey(e, s.portTo(e.Parent), e.Parent),
			Action: ActionParent, Params: [][]byte{u48(e.Cookie)},
		})
	}
	return all
}

// instance returns the instance of the child of an index.
func instance(child int) uint16 { return uint16(child + 1) }

func portEntry(p *Port) Entry {
	return Entry{
		Table: TablePorts, Match: []Field{{ID: FieldPortsNumber, Value: u16(p.Number)}},
		Action: ActionPort, Params: [][]byte{p.MAC[:], ip(p.Addr)},
	}
}

func localEntry(a netip.Addr) Entry {
	return Entry{
		Table: TableRoutes, Match: []Field{{ID: FieldRoutesPrefix, Value: ip(a), Prefix: 32}},
		Action: ActionLocal,
	}
}

// routeEntry returns the entry of a route. That to all addresses has no key:
// P4Runtime wants a prefix of no bits left out.
func routeEntry(r *Route) Entry {
	e := Entry{Table: TableRoutes, Action: ActionForward, Params: [][]byte{u16(r.Port), r.MAC[:]}}
	if r.Prefix.Bits() > 0 {
		e.Match = []Field{{ID: FieldRoutesPrefix, Value: ip(r.Prefix.Addr()), Prefix: r.Prefix.Bits()}}
	}
	return e
}

func treeEntry(t *Tree) Entry {
	return Entry{
		Table: TableTrees, Match: []Field{{ID: FieldTreesUDP, Value: u16(TreePort(t.Index))}},
		Action: ActionTree, Params: [][]byte{u16(uint16(t.Index)), u32(t.Group), u32(t.Newest)},
	}
}

func (s *State) epochEntry(e *Epoch) Entry {
	root, parent := byte(1), uint16(0)
	if !e.root() {
		root, parent = 0, s.portTo(e.Parent)
	}
	return Entry{
		Table: TableEpochs,
		Match: []Field{
			{ID: FieldEpochsTree, Value: u16(uint16(e.Tree))},
			{ID: FieldEpochsNumber, Value: u32(e.Epoch)},
		},
		Action: ActionEpoch,
		Params: [][]byte{
			u16(uint16(e.Index)), u48(e.Serial), u32(uint32(e.SlotBase)), u32(2*e.Window - 1),
			u32(1<<len(e.Children) - 1), {root}, u16(uint16(e.ChunkBytes)), {byte(e.Probes)}, u16(e.Own),
			u24(e.Children[0].Lowest), u16(parent),
		},
	}
}

func neighbourKey(e *Epoch, port uint16, a netip.AddrPort) []Field {
	return []Field{
		{ID: FieldNeighboursEpoch, Value: u16(uint16(e.Index))},
		{ID: FieldNeighboursPort, Value: u16(port)},
		{ID: FieldNeighboursAddress, Value: ip(a.Addr())},
		{ID: FieldNeighboursUDP, Value: u16(a.Port())},
	}
}

// rewriteEntry is about one neighbour; child is the index that packets to it
// carry, and cookie their secret.
func rewriteEntry(e *Epoch, instance uint16, a netip.AddrPort, mac MAC, child uint16, cookie uint64) Entry {
	return Entry{
		Table: TableRewrite,
		Match: []Field{
			{ID: FieldRewriteEpoch, Value: u16(uint16(e.Index))},
			{ID: FieldRewriteInstance, Value: u16(instance)},
		},
		Action: ActionNeighbour, Params: [][]byte{mac[:], ip(a.Addr()), u16(a.Port()), u16(child), u48(cookie)},
	}
}

func u16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }
func u24(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v)[1:] }
func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func u48(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v)[2:] }

func ip(a netip.Addr) []byte {
	b := a.As4()
	return b[:]
}
