package p4

import (
	"encoding/binary"
	"net/netip"
)

// Translate returns the groups and entries of s. An error wraps ErrState.
func Translate(s *State) (Program, error) {
	if err := s.Validate(); err != nil {
		return Program{}, err
	}
	var p Program
	for i := range s.Ports {
		p.Entries = append(p.Entries, portEntry(&s.Ports[i]), localEntry(s.Ports[i].Addr))
	}
	for i := range s.Routes {
		p.Entries = append(p.Entries, routeEntry(&s.Routes[i]))
	}
	for i := range s.Epochs {
		s.translateEpoch(&s.Epochs[i], &p)
	}
	// Last, so that no packet of an epoch is looked at before all of it is there.
	for i := range s.Epochs {
		p.Entries = append(p.Entries, s.epochEntry(&s.Epochs[i]))
	}
	for i := range s.Trees {
		p.Entries = append(p.Entries, treeEntry(&s.Trees[i]))
	}
	return p, nil
}

// translateEpoch adds what is written of an epoch before its own entry.
func (s *State) translateEpoch(e *Epoch, p *Program) {
	var children []Replica
	for i, c := range e.Children {
		way, _ := s.way(c.Addr) // validated
		children = append(children, Replica{Port: way.Port, Instance: instance(i)})
		p.Entries = append(p.Entries, childEntry(e, i, way.Port), neighbourEntry(e, instance(i), c.Addr, way.MAC, uint16(i)))
	}
	id := uint32(e.Index * GroupsPerEpoch)
	p.Groups = append(p.Groups, Group{ID: id + GroupChildren, Replicas: children})
	if e.root() {
		return
	}
	way, _ := s.way(e.Parent)
	parent := Replica{Port: way.Port, Instance: Parent}
	p.Groups = append(p.Groups,
		Group{ID: id + GroupAll, Replicas: append(children[:len(children):len(children)], parent)},
		Group{ID: id + GroupPair, Replicas: []Replica{children[0], parent}})
	p.Entries = append(p.Entries, parentEntry(e), neighbourEntry(e, Parent, e.Parent, way.MAC, e.Own))
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
		Action: ActionTree, Params: [][]byte{u16(uint16(t.Index)), u32(t.Group), {t.Number}, u32(t.Newest)},
	}
}

func (s *State) epochEntry(e *Epoch) Entry {
	root, parent := byte(1), uint16(0)
	if !e.root() {
		way, _ := s.way(e.Parent)
		root, parent = 0, way.Port
	}
	return Entry{
		Table: TableEpochs,
		Match: []Field{
			{ID: FieldEpochsTree, Value: u16(uint16(e.Tree))},
			{ID: FieldEpochsNumber, Value: u32(e.Epoch)},
		},
		Action: ActionEpoch,
		Params: [][]byte{
			u16(uint16(e.Index)), u48(e.Serial), u48(e.Cookie), u32(uint32(e.SlotBase)), u32(2*e.Window - 1),
			u32(1<<len(e.Children) - 1), {root}, u16(uint16(e.ChunkBytes)), {byte(e.Probes)}, u16(e.Own),
			u24(e.Children[0].Lowest), u16(parent),
		},
	}
}

func childEntry(e *Epoch, i int, port uint16) Entry {
	return Entry{
		Table: TableNeighbours, Match: neighbourKey(e, e.Children[i].Addr),
		Action: ActionChild, Params: [][]byte{u16(uint16(i)), u32(1 << i), u16(port), u24(e.Children[i].Lowest)},
	}
}

func parentEntry(e *Epoch) Entry {
	return Entry{Table: TableNeighbours, Match: neighbourKey(e, e.Parent), Action: ActionParent}
}

func neighbourKey(e *Epoch, a netip.AddrPort) []Field {
	return []Field{
		{ID: FieldNeighboursEpoch, Value: u16(uint16(e.Index))},
		{ID: FieldNeighboursAddress, Value: ip(a.Addr())},
		{ID: FieldNeighboursUDP, Value: u16(a.Port())},
	}
}

// neighbourEntry tells egress how to address a packet to a neighbour; child is
// the index that the packet carries.
func neighbourEntry(e *Epoch, instance uint16, a netip.AddrPort, mac MAC, child uint16) Entry {
	return Entry{
		Table: TableRewrite,
		Match: []Field{
			{ID: FieldRewriteEpoch, Value: u16(uint16(e.Index))},
			{ID: FieldRewriteInstance, Value: u16(instance)},
		},
		Action: ActionNeighbour, Params: [][]byte{mac[:], ip(a.Addr()), u16(a.Port()), u16(child)},
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
