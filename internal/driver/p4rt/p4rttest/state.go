package p4rttest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// state is what a target holds beside its program.
type state struct {
	entries map[string]*p4v1.TableEntry // by key
	groups  map[uint32]*p4v1.MulticastGroupEntry
	cells   map[uint32][]*p4v1.CounterData // of indexed counters, by id
}

func newState(info *p4config.P4Info) state {
	s := state{
		entries: make(map[string]*p4v1.TableEntry),
		groups:  make(map[uint32]*p4v1.MulticastGroupEntry),
		cells:   make(map[uint32][]*p4v1.CounterData),
	}
	for _, c := range info.GetCounters() {
		cells := make([]*p4v1.CounterData, c.GetSize())
		for i := range cells {
			cells[i] = new(p4v1.CounterData)
		}
		s.cells[c.GetPreamble().GetId()] = cells
	}
	return s
}

// setPipeline is SetForwardingPipelineConfig; t.mu is held. The wedged caller
// waits outside.
func (t *Target) setPipeline(m *p4v1.SetForwardingPipelineConfigRequest) (wedged bool, err error) {
	if err := t.primary(m.GetElectionId()); err != nil {
		return false, err
	}
	switch m.GetAction() {
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY:
		return false, nil
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT:
	case p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
		t.wedge()
		return true, nil
	default:
		return false, status.Error(codes.InvalidArgument, "Invalid SetForwardingPipeline action")
	}
	if !json.Valid(m.GetConfig().GetP4DeviceConfig()) {
		t.wedge()
		return false, status.Error(codes.Unknown, "Error in first phase of device update")
	}
	t.config = proto.CloneOf(m.GetConfig())
	t.state = newState(t.config.GetP4Info())
	return false, nil
}

// change carries out one update; t.mu is held.
func (t *Target) change(u *p4v1.Update) error {
	t.updates = append(t.updates, proto.CloneOf(u))
	if t.refuse != nil {
		if err := t.refuse(u); err != nil {
			return err
		}
	}
	if e := u.GetEntity().GetTableEntry(); e != nil {
		return t.changeEntry(u.GetType(), e)
	}
	if g := u.GetEntity().GetPacketReplicationEngineEntry().GetMulticastGroupEntry(); g != nil {
		return t.changeGroup(u.GetType(), g)
	}
	return status.Error(codes.Unknown, "Incorrect entity type")
}

func (t *Target) changeEntry(op p4v1.Update_Type, e *p4v1.TableEntry) error {
	info, err := checkEntry(t.config.GetP4Info(), e, op != p4v1.Update_DELETE)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	key := keyOf(e)
	held := t.state.entries[key]
	if err := there(op, held != nil); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		delete(t.state.entries, key)
		return nil
	}
	if held == nil && t.entriesIn(e.GetTableId()) >= info.GetSize() {
		return status.Error(codes.Unknown, "")
	}
	t.state.entries[key] = proto.CloneOf(e)
	return nil
}

func (t *Target) entriesIn(table uint32) int64 {
	n := int64(0)
	for _, e := range t.state.entries {
		if e.GetTableId() == table {
			n++
		}
	}
	return n
}

func (t *Target) changeGroup(op p4v1.Update_Type, g *p4v1.MulticastGroupEntry) error {
	if err := checkGroup(g, t.version); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	id := g.GetMulticastGroupId()
	if err := there(op, t.state.groups[id] != nil); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		delete(t.state.groups, id)
	} else {
		t.state.groups[id] = proto.CloneOf(g)
	}
	return nil
}

// there returns why an operation cannot be, on what is there or not.
func there(op p4v1.Update_Type, is bool) error {
	switch {
	case op == p4v1.Update_INSERT && is:
		return status.Error(codes.AlreadyExists, "Match entry exists, use MODIFY if you wish to change action")
	case op != p4v1.Update_INSERT && !is:
		return status.Error(codes.NotFound, "Cannot find match entry")
	case op == p4v1.Update_UNSPECIFIED:
		return status.Error(codes.InvalidArgument, "Update type is not set")
	}
	return nil
}

// keyOf distinguishes an entry from others: table, priority and fields in the order of
// their ids, whatever order they were sent in.
func keyOf(e *p4v1.TableEntry) string {
	key := &p4v1.TableEntry{TableId: e.GetTableId(), Priority: e.GetPriority(), Match: slices.Clone(e.GetMatch())}
	slices.SortFunc(key.Match, func(a, b *p4v1.FieldMatch) int { return cmp.Compare(a.GetFieldId(), b.GetFieldId()) })
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(key)
	if err != nil {
		return err.Error() // what was received can be sent
	}
	return string(b)
}

// Entries returns the entries of a table, 0 of all, as they were written.
func (t *Target) Entries(table uint32) []*p4v1.TableEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.ofTable(table)
	for i, e := range all {
		all[i] = proto.CloneOf(e)
	}
	return all
}

// Groups returns the multicast groups, as they were written.
func (t *Target) Groups() []*p4v1.MulticastGroupEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*p4v1.MulticastGroupEntry
	for _, id := range slices.Sorted(maps.Keys(t.state.groups)) {
		all = append(all, proto.CloneOf(t.state.groups[id]))
	}
	return all
}

// Count adds to a cell of an indexed counter, which the program must have.
func (t *Target) Count(counter uint32, cell int, packets, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.state.cells[counter][cell]
	d.PacketCount += packets
	d.ByteCount += bytes
}

// canonical returns a number as P4Runtime has it on the wire.
func canonical(n uint64) []byte {
	var b []byte
	for ; n > 0 || len(b) == 0; n >>= 8 {
		b = append(b, byte(n))
	}
	slices.Reverse(b)
	return b
}

func hexadecimal(id uint32) string { return "0x" + strconv.FormatUint(uint64(id), 16) }
