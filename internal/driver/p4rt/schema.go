package p4rt

import (
	"fmt"
	"slices"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Schema is what a program has that a control plane can write or read, by its
// P4Info. It does not change, and is safe for concurrent use.
type Schema struct {
	info     *p4config.P4Info
	tables   map[uint32]*table
	actions  map[uint32]*action
	counters map[uint32]*p4config.Counter
	in, out  header // of packets
}

type table struct {
	id     uint32
	name   string
	rank   int // in the order of writing
	size   int64
	fixed  bool // the program has its entries, and nobody may change them
	fields []field
	// actions that an entry may have
	actions []uint32
}

type field struct {
	id    uint32
	name  string
	width int32 // bits
	kind  p4config.MatchField_MatchType
	look  look
}

type action struct {
	id     uint32
	name   string
	params []param
}

type param struct {
	id    uint32
	name  string
	width int32 // bits
	look  look
}

// The headers of packets from and to the target have these names.
const (
	packetInHeader  = "packet_in"
	packetOutHeader = "packet_out"
)

type header []param

// NewSchema returns the Schema of a P4Info, whose tables are written in an
// order as Pipeline reports. Errors wrap ErrProgram: besides what is broken, that
// is what this package cannot write: action profiles, keys matched by range or
// by a mask, in tables that are not constant.
func NewSchema(info *p4config.P4Info, order []uint32) (*Schema, error) {
	s := &Schema{
		info:     info,
		tables:   make(map[uint32]*table),
		actions:  make(map[uint32]*action),
		counters: make(map[uint32]*p4config.Counter),
	}
	for _, a := range info.GetActions() {
		if err := s.addAction(a); err != nil {
			return nil, err
		}
	}
	for i, t := range info.GetTables() {
		if err := s.addTable(t, len(order)+i); err != nil {
			return nil, err
		}
	}
	for i, id := range order {
		t := s.tables[id]
		if t == nil {
			return nil, fmt.Errorf("%w: table %#x in the order of writing is not in the P4Info", ErrProgram, id)
		}
		t.rank = i
	}
	for _, c := range info.GetCounters() {
		if c.GetSize() < 0 || c.GetSize() > maxCells {
			return nil, fmt.Errorf("%w: counter %s has %d cells", ErrProgram, c.GetPreamble().GetName(), c.GetSize())
		}
		s.counters[c.GetPreamble().GetId()] = c
	}
	return s, s.addHeaders()
}

// Bounds of what a program may have, so that a broken file is no excuse for a
// large allocation.
const (
	maxWidth = 1 << 16 // bits of a value
	maxCells = 1 << 24 // of a counter
)

func (s *Schema) addAction(a *p4config.Action) error {
	added := &action{id: a.GetPreamble().GetId(), name: a.GetPreamble().GetName()}
	if s.actions[added.id] != nil {
		return fmt.Errorf("%w: two actions have the id %#x", ErrProgram, added.id)
	}
	for _, p := range a.GetParams() {
		if err := checkWidth(p.GetBitwidth(), "action", added.name, p.GetName()); err != nil {
			return err
		}
		added.params = append(added.params, param{p.GetId(), p.GetName(), p.GetBitwidth(), lookOf(p.GetName(), p.GetAnnotations())})
	}
	s.actions[added.id] = added
	return nil
}

func (s *Schema) addTable(t *p4config.Table, rank int) error {
	added := &table{
		id: t.GetPreamble().GetId(), name: t.GetPreamble().GetName(), rank: rank,
		size: t.GetSize(), fixed: t.GetIsConstTable(),
	}
	if added.id == 0 || s.tables[added.id] != nil {
		return fmt.Errorf("%w: table %s has the id %#x, which is 0 or another's", ErrProgram, added.name, added.id)
	}
	for _, r := range t.GetActionRefs() {
		if s.actions[r.GetId()] == nil {
			return fmt.Errorf("%w: table %s has an action %#x that is not in the P4Info", ErrProgram, added.name, r.GetId())
		}
		if r.GetScope() != p4config.ActionRef_DEFAULT_ONLY {
			added.actions = append(added.actions, r.GetId())
		}
	}
	for _, m := range t.GetMatchFields() {
		if err := checkWidth(m.GetBitwidth(), "table", added.name, m.GetName()); err != nil {
			return err
		}
		f := field{m.GetId(), m.GetName(), m.GetBitwidth(), m.GetMatchType(), lookOf(m.GetName(), m.GetAnnotations())}
		if !added.fixed && !writable(f.kind) {
			return fmt.Errorf("%w: table %s matches %s by %v, which cannot be written here", ErrProgram, added.name, f.name, f.kind)
		}
		added.fields = append(added.fields, f)
	}
	if !added.fixed && t.GetImplementationId() != 0 {
		return fmt.Errorf("%w: table %s has an action profile, which cannot be written here", ErrProgram, added.name)
	}
	s.tables[added.id] = added
	return nil
}

func writable(kind p4config.MatchField_MatchType) bool {
	switch kind {
	case p4config.MatchField_EXACT, p4config.MatchField_LPM, p4config.MatchField_OPTIONAL:
		return true
	default:
		return false
	}
}

func (s *Schema) addHeaders() error {
	for _, h := range s.info.GetControllerPacketMetadata() {
		name := h.GetPreamble().GetName()
		var fields header
		for _, m := range h.GetMetadata() {
			if err := checkWidth(m.GetBitwidth(), "header", name, m.GetName()); err != nil {
				return err
			}
			if m.GetBitwidth() > 64 {
				return fmt.Errorf("%w: header %s: %s of %d bits is above 64", ErrProgram, name, m.GetName(), m.GetBitwidth())
			}
			fields = append(fields, param{m.GetId(), m.GetName(), m.GetBitwidth(), asNumber})
		}
		switch name {
		case packetInHeader:
			s.in = fields
		case packetOutHeader:
			s.out = fields
		}
	}
	return nil
}

func checkWidth(bits int32, kind, of, name string) error {
	if bits < 1 || bits > maxWidth {
		return fmt.Errorf("%w: %s %s: %s of %d bits", ErrProgram, kind, of, name, bits)
	}
	return nil
}

// written returns the tables whose entries a control plane writes, in order.
func (s *Schema) written() []*table {
	var all []*table
	for _, t := range s.tables {
		if !t.fixed {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *table) int { return a.rank - b.rank })
	return all
}

// prioritised reports whether entries of t need a priority.
func (t *table) prioritised() bool {
	return slices.ContainsFunc(t.fields, func(f field) bool { return f.kind == p4config.MatchField_OPTIONAL })
}
