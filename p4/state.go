package p4

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

// ErrState is wrapped by all errors of State.Validate.
var ErrState = errors.New("p4: invalid state")

// Bounds of an epoch that stages/limits.p4 does not give.
const (
	MaxSerial = 1<<SerialBits - 1
	MaxRank   = 1<<24 - 1
	MinChunk  = 16 // bytes: one element of any kind

	maxCookie = 1<<48 - 1
)

// MAC is an address of a link.
type MAC [6]byte

// Port is a port of the switch that has an address.
type Port struct {
	Number uint16     // of the target, 1 to MaxPort
	Addr   netip.Addr // IPv4; packets to it are for the switch, its own packets there come from it
	MAC    MAC
}

// Route reports where packets to a prefix leave.
type Route struct {
	Prefix netip.Prefix // IPv4, masked
	Port   uint16       // Number of a Port
	MAC    MAC          // of the next hop
}

// Tree is a tree of a group that the switch takes part in.
type Tree struct {
	Index  int // its place among the switch's trees, 0 to Trees-1
	Group  uint32
	Newest uint32 // largest epoch that was ever installed; never 0
}

// Child is a host or switch that contributes to this one.
type Child struct {
	Addr   netip.AddrPort // where it sends from, and gets its results
	Lowest uint32         // lowest rank beneath it, its own if it is a host
	Cookie uint64         // the secret of the two, 48 bits, in packets of both directions
}

// Epoch is one epoch of a tree. It has the fields of an aggregate.Config that a
// pipeline has a use for, and where it lies in the pipeline.
type Epoch struct {
	Tree  int // Index of a Tree
	Index int // its place among the switch's epochs, 0 to Epochs-1
	// Serial orders the epochs of a switch: it is above that of every epoch
	// ever written since the program was pushed, also by another agent. The
	// pipeline cannot be made to forget a slot; a larger serial takes it over.
	Serial   uint64 // not 0; 48 bits
	SlotBase int    // first of its 2*Window slots

	Epoch      uint32
	Window     uint32         // in chunks, a power of two
	ChunkBytes int            // largest payload of a packet, in bytes, up to Chunk
	Children   []Child        // in rising order of Lowest, up to Children; no address twice
	Parent     netip.AddrPort // zero value: this switch is the root
	Own        uint16         // this switch's own child index at its parent
	Cookie     uint64         // the secret of this switch and its parent, as a Child's; of no use to the root
	Probes     int            // unanswered probes to the parent after which it counts as lost, up to MaxProbes; 0: never
}

// State is all that a pipeline is configured with.
type State struct {
	Ports  []Port
	Routes []Route
	Trees  []Tree
	Epochs []Epoch
}

// TreePort returns the UDP port of a tree.
func TreePort(index int) uint16 { return uint16(TreePorts + index) }

// Validate reports what is wrong with s; the error wraps ErrState.
func (s *State) Validate() error {
	if err := s.validatePorts(); err != nil {
		return err
	}
	if err := s.validateTrees(); err != nil {
		return err
	}
	taken := map[int]bool{}
	for i := range s.Epochs {
		e := &s.Epochs[i]
		if taken[e.Index] {
			return fmt.Errorf("%w: two epochs at index %d", ErrState, e.Index)
		}
		taken[e.Index] = true
		if err := s.validateEpoch(e); err != nil {
			return err
		}
	}
	return s.validateSlots()
}

func (s *State) validatePorts() error {
	numbers, addresses := map[uint16]bool{}, map[netip.Addr]bool{}
	for _, p := range s.Ports {
		switch {
		case p.Number == 0 || p.Number > Ports:
			return fmt.Errorf("%w: port %d, want 1 to %d", ErrState, p.Number, Ports)
		case !p.Addr.Is4():
			return fmt.Errorf("%w: port %d has address %v, want IPv4", ErrState, p.Number, p.Addr)
		case numbers[p.Number]:
			return fmt.Errorf("%w: port %d twice", ErrState, p.Number)
		case addresses[p.Addr]:
			return fmt.Errorf("%w: address %v at two ports", ErrState, p.Addr)
		}
		numbers[p.Number], addresses[p.Addr] = true, true
	}
	if n := len(s.Ports) + len(s.Routes); n > Routes {
		return fmt.Errorf("%w: %d prefixes and own addresses, there is room for %d", ErrState, n, Routes)
	}
	prefixes := map[netip.Prefix]bool{}
	for _, r := range s.Routes {
		switch {
		case !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || r.Prefix != r.Prefix.Masked():
			return fmt.Errorf("%w: route to %v, want a masked IPv4 prefix", ErrState, r.Prefix)
		case prefixes[r.Prefix]:
			return fmt.Errorf("%w: two routes to %v", ErrState, r.Prefix)
		case r.Prefix.IsSingleIP() && addresses[r.Prefix.Addr()]:
			return fmt.Errorf("%w: a route to the switch's own address %v", ErrState, r.Prefix.Addr())
		case !numbers[r.Port]:
			return fmt.Errorf("%w: route to %v by port %d, which has no address", ErrState, r.Prefix, r.Port)
		}
		prefixes[r.Prefix] = true
	}
	return nil
}

func (s *State) validateTrees() error {
	taken := map[int]bool{}
	for _, t := range s.Trees {
		switch {
		case t.Index < 0 || t.Index >= Trees:
			return fmt.Errorf("%w: group %d: tree at index %d, there is room for %d", ErrState, t.Group, t.Index, Trees)
		case taken[t.Index]:
			return fmt.Errorf("%w: two trees at index %d", ErrState, t.Index)
		case t.Newest == 0:
			return fmt.Errorf("%w: group %d: tree without an epoch", ErrState, t.Group)
		}
		taken[t.Index] = true
	}
	return nil
}

// tree returns the tree at an index, or nil.
func (s *State) tree(index int) *Tree {
	i := slices.IndexFunc(s.Trees, func(t Tree) bool { return t.Index == index })
	if i < 0 {
		return nil
	}
	return &s.Trees[i]
}

func (s *State) validateEpoch(e *Epoch) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: epoch %d at index %d: %s", ErrState, e.Epoch, e.Index, fmt.Sprintf(format, args...))
	}
	t := s.tree(e.Tree)
	switch {
	case e.Index < 0 || e.Index >= Epochs:
		return bad("there is room for %d", Epochs)
	case t == nil:
		return bad("no tree at index %d", e.Tree)
	case e.Epoch == 0 || e.Epoch > t.Newest:
		return bad("want 1 to %d, the newest of its tree", t.Newest)
	case e.Serial == 0 || e.Serial > MaxSerial:
		return bad("serial number %d, want 1 to %d", e.Serial, uint64(MaxSerial))
	case e.Cookie > maxCookie:
		return bad("cookie of more than 48 bits")
	case bits.OnesCount32(e.Window) != 1 || e.Window > Slots/2:
		return bad("window %d, want a power of two up to %d", e.Window, Slots/2)
	case e.SlotBase < 0 || e.SlotBase > Slots-2*int(e.Window):
		return bad("slots from %d, want 0 to %d", e.SlotBase, Slots-2*int(e.Window))
	case e.ChunkBytes < MinChunk || e.ChunkBytes > Chunk:
		return bad("chunk of %d bytes, want %d to %d", e.ChunkBytes, MinChunk, Chunk)
	case e.Probes < 0 || e.Probes > MaxProbes:
		return bad("%d probes, want 0 to %d", e.Probes, MaxProbes)
	case len(e.Children) == 0 || len(e.Children) > Children:
		return bad("%d children, want 1 to %d", len(e.Children), Children)
	}
	if err := s.validateNeighbours(e); err != nil {
		return bad("%v", err)
	}
	return nil
}

func (s *State) validateNeighbours(e *Epoch) error {
	seen := map[netip.AddrPort]bool{}
	if !e.root() {
		if _, err := s.way(e.Parent); err != nil {
			return fmt.Errorf("parent: %w", err)
		}
		seen[e.Parent] = true
	}
	for i, c := range e.Children {
		switch {
		case c.Lowest > MaxRank:
			return fmt.Errorf("child %d has lowest rank %d, largest is %d", i, c.Lowest, MaxRank)
		case i > 0 && c.Lowest <= e.Children[i-1].Lowest:
			return fmt.Errorf("child %d has lowest rank %d after %d", i, c.Lowest, e.Children[i-1].Lowest)
		case c.Cookie > maxCookie:
			return fmt.Errorf("child %d has a cookie of more than 48 bits", i)
		case seen[c.Addr]:
			return fmt.Errorf("child %d has another neighbour's address %v", i, c.Addr)
		}
		seen[c.Addr] = true
		if _, err := s.way(c.Addr); err != nil {
			return fmt.Errorf("child %d: %w", i, err)
		}
	}
	return nil
}

// validateSlots reports epochs of two trees that would use the same slots, and
// serial numbers and epochs that do not report which is later.
func (s *State) validateSlots() error {
	for i := range s.Epochs {
		for j := range i {
			a, b := &s.Epochs[i], &s.Epochs[j]
			switch {
			case a.Serial == b.Serial:
				return fmt.Errorf("%w: epochs at index %d and %d have serial number %d", ErrState, a.Index, b.Index, a.Serial)
			case a.Tree == b.Tree && a.Epoch == b.Epoch:
				return fmt.Errorf("%w: epoch %d of the tree at index %d twice", ErrState, a.Epoch, a.Tree)
			case a.Tree == b.Tree && (a.Epoch > b.Epoch) != (a.Serial > b.Serial):
				return fmt.Errorf("%w: epochs %d and %d of the tree at index %d have serial numbers %d and %d", ErrState, a.Epoch, b.Epoch, a.Tree, a.Serial, b.Serial)
			case a.Tree != b.Tree && a.SlotBase < b.SlotBase+2*int(b.Window) && b.SlotBase < a.SlotBase+2*int(a.Window):
				return fmt.Errorf("%w: epochs at index %d and %d, of two trees, share slots", ErrState, a.Index, b.Index)
			}
		}
	}
	return nil
}

func (e *Epoch) root() bool { return !e.Parent.IsValid() }

// way returns the route to a neighbour.
func (s *State) way(to netip.AddrPort) (*Route, error) {
	if !to.IsValid() || !to.Addr().Is4() || to.Port() == 0 {
		return nil, fmt.Errorf("address %v, want IPv4 and a port", to)
	}
	best := -1
	for i, r := range s.Routes {
		if r.Prefix.Contains(to.Addr()) && (best < 0 || r.Prefix.Bits() > s.Routes[best].Prefix.Bits()) {
			best = i
		}
	}
	if best < 0 || slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Addr == to.Addr() }) {
		return nil, fmt.Errorf("no route to %v", to.Addr())
	}
	return &s.Routes[best], nil
}
