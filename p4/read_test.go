package p4

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrProgram is wrapped by the errors of Read: what the pipeline holds is none
// of what Translate makes.
var ErrProgram = errors.New("p4: entries that do not belong together")

// Read is Translate's way back: it returns the state of which p is the
// translation. Lists are in the order of what names their elements: ports by
// number, routes by prefix, trees and epochs by index. Of entries and groups it
// takes any order, and of values any length. An error wraps ErrProgram, or
// ErrState where the state itself is invalid.
func Read(p Program) (State, error) {
	var r reader
	for i := range p.Entries {
		if err := r.take(&p.Entries[i]); err != nil {
			return State{}, err
		}
	}
	if err := r.finish(); err != nil {
		return State{}, err
	}
	again, err := Translate(&r.state)
	if err != nil {
		return State{}, err
	}
	if !same(again, p) {
		return State{}, fmt.Errorf("%w: %d entries and %d groups, where what they say takes %d and %d, or they contradict each other",
			ErrProgram, len(p.Entries), len(p.Groups), len(again.Entries), len(again.Groups))
	}
	return r.state, nil
}

// reader collects a state from its entries.
type reader struct {
	state    State
	children map[uint64]map[uint64]Child // by index of the epoch, then of the child
	parents  map[uint64]parent
}

// parent is what the entry of an epoch's parent says.
type parent struct {
	addr   netip.AddrPort
	cookie uint64
}

// take reads what an entry alone says. The local routes and the rewriting
// repeat what others say, and are compared at the end.
func (r *reader) take(e *Entry) error {
	v := values{entry: e}
	switch e.Action {
	case ActionPort:
		r.state.Ports = append(r.state.Ports, Port{Number: uint16(v.key(0)), MAC: v.mac(0), Addr: v.ip(v.param(1))})
	case ActionForward:
		prefix := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if len(e.Match) > 0 {
			prefix = netip.PrefixFrom(v.ip(v.key(0)), e.Match[0].Prefix)
		}
		r.state.Routes = append(r.state.Routes, Route{Prefix: prefix, Port: uint16(v.param(0)), MAC: v.mac(1)})
	case ActionTree:
		r.state.Trees = append(r.state.Trees, Tree{
			Index: int(v.param(0)), Group: uint32(v.param(1)), Newest: uint32(v.param(2)),
		})
	case ActionEpoch:
		r.state.Epochs = append(r.state.Epochs, Epoch{
			Tree: int(v.key(0)), Epoch: uint32(v.key(1)), Index: int(v.param(0)), Serial: v.param(1),
			SlotBase: int(v.param(2)), Window: uint32(v.param(3)+1) / 2, ChunkBytes: int(v.param(6)),
			Probes: int(v.param(7)), Own: uint16(v.param(8)),
		})
	case ActionChild:
		at := v.key(0)
		if r.children == nil {
			r.children = map[uint64]map[uint64]Child{}
		}
		if r.children[at] == nil {
			r.children[at] = map[uint64]Child{}
		}
		r.children[at][v.param(0)] = Child{Addr: v.neighbour(), Lowest: uint32(v.param(3)), Cookie: v.param(4)}
	case ActionParent:
		if r.parents == nil {
			r.parents = map[uint64]parent{}
		}
		r.parents[v.key(0)] = parent{v.neighbour(), v.param(0)}
	case ActionLocal, ActionNeighbour:
	default:
		return fmt.Errorf("%w: an entry of table %#x with action %#x", ErrProgram, e.Table, e.Action)
	}
	if v.bad {
		return fmt.Errorf("%w: an entry of table %#x with action %#x has other fields than that has", ErrProgram, e.Table, e.Action)
	}
	return nil
}

// finish gives each epoch its neighbours, and sorts.
func (r *reader) finish() error {
	for i := range r.state.Epochs {
		e := &r.state.Epochs[i]
		children := r.children[uint64(e.Index)]
		for n := range uint64(len(children)) {
			c, ok := children[n]
			if !ok {
				return fmt.Errorf("%w: epoch %d at index %d has %d children, and none of index %d", ErrProgram, e.Epoch, e.Index, len(children), n)
			}
			e.Children = append(e.Children, c)
		}
		p := r.parents[uint64(e.Index)]
		e.Parent, e.Cookie = p.addr, p.cookie
	}
	slices.SortFunc(r.state.Ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(r.state.Routes, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	slices.SortFunc(r.state.Trees, func(a, b Tree) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortFunc(r.state.Epochs, func(a, b Epoch) int { return cmp.Compare(a.Index, b.Index) })
	return nil
}

// values reads an entry's fields; bad reports that one was not there.
type values struct {
	entry *Entry
	bad   bool
}

func (v *values) key(i int) uint64 {
	if i >= len(v.entry.Match) {
		v.bad = true
		return 0
	}
	return v.number(v.entry.Match[i].Value)
}

func (v *values) param(i int) uint64 {
	if i >= len(v.entry.Params) {
		v.bad = true
		return 0
	}
	return v.number(v.entry.Params[i])
}

func (v *values) number(b []byte) uint64 {
	n, ok := number(b)
	v.bad = v.bad || !ok
	return n
}

func (v *values) mac(i int) (m MAC) {
	n := v.param(i)
	for j := range m {
		m[j] = byte(n >> (40 - 8*j))
	}
	return m
}

func (v *values) ip(n uint64) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// neighbour returns the address in the key of an entry of the neighbours.
func (v *values) neighbour() netip.AddrPort {
	return netip.AddrPortFrom(v.ip(v.key(2)), uint16(v.key(3)))
}

// number returns a value of up to 64 bits, whatever zeros it begins with.
func number(b []byte) (uint64, bool) {
	n := uint64(0)
	for _, v := range b {
		if n>>56 != 0 {
			return 0, false
		}
		n = n<<8 | uint64(v)
	}
	return n, len(b) > 0
}

// same reports whether a and b are equal as sets.
func same(a, b Program) bool {
	return slices.Equal(texts(a), texts(b))
}

// texts returns the entries and groups in a form that can be compared, sorted.
func texts(p Program) []string {
	var all []string
	short := func(b []byte) []byte { return bytes.TrimLeft(b, "\x00") }
	for i := range p.Entries {
		e := &p.Entries[i]
		text := fmt.Sprintf("entry %d %d %d:", e.Table, e.Priority, e.Action)
		for _, m := range e.Match {
			text += fmt.Sprintf(" %d=%x/%d", m.ID, short(m.Value), m.Prefix)
		}
		for _, b := range e.Params {
			text += fmt.Sprintf(" %x.", short(b))
		}
		all = append(all, text)
	}
	for _, g := range p.Groups {
		replicas := slices.Clone(g.Replicas)
		slices.SortFunc(replicas, func(a, b Replica) int {
			return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Port, b.Port))
		})
		all = append(all, fmt.Sprintf("group %d: %v", g.ID, replicas))
	}
	slices.Sort(all)
	return all
}
