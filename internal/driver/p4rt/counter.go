package p4rt

import (
	"context"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// Count is what a counter has counted. Which of the two a counter counts its
// program says; the other is 0.
type Count struct{ Packets, Bytes uint64 }

// EntryCount is the direct counter of an entry.
type EntryCount struct {
	Entry p4.Entry // its key, in the form of Normal; no action
	Count Count
}

// Counter reads all cells of an indexed counter, by its id. It fails with
// ErrEntry if the program has none of that id.
func (c *Client) Counter(ctx context.Context, id uint32) ([]Count, error) {
	operation := fmt.Sprintf("reading counter %#x", id)
	known := c.schema.counters[id]
	if known == nil {
		return nil, c.fail(operation, fmt.Errorf("%w: no such counter", ErrEntry))
	}
	operation = "reading counter " + known.GetPreamble().GetName()
	l, err := c.ready()
	if err != nil {
		return nil, c.fail(operation, err)
	}
	cells := cells{id: id, counts: make([]Count, known.GetSize())}
	asked := &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: id}}}
	if err := c.entities(ctx, l, []*p4v1.Entity{asked}, cells.take); err != nil {
		return nil, c.fail(operation, err)
	}
	return cells.counts, nil
}

// cells collects the cells of a counter.
type cells struct {
	id     uint32
	counts []Count
}

func (c *cells) take(m *p4v1.Entity) error {
	cell := m.GetCounterEntry()
	index := cell.GetIndex().GetIndex()
	if cell.GetCounterId() != c.id || index < 0 || index >= int64(len(c.counts)) {
		return fmt.Errorf("%w: cell %d of counter %#x, where %#x with %d cells was asked for",
			ErrMalformed, index, cell.GetCounterId(), c.id, len(c.counts))
	}
	count, err := countOf(cell.GetData())
	c.counts[index] = count
	return err
}

// EntryCounters reads the direct counters of all entries of a table, by its id.
// It fails with ErrEntry if the program has no table of that id, or the table
// no counter.
func (c *Client) EntryCounters(ctx context.Context, id uint32) ([]EntryCount, error) {
	operation := fmt.Sprintf("reading the counters of table %#x", id)
	t := c.schema.tables[id]
	if t == nil || !t.counts || t.fixed {
		return nil, c.fail(operation, fmt.Errorf("%w: there is none with a direct counter", ErrEntry))
	}
	operation = "reading the counters of table " + t.name
	l, err := c.ready()
	if err != nil {
		return nil, c.fail(operation, err)
	}
	counts := entryCounts{schema: c.schema, table: t}
	asked := &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{
		DirectCounterEntry: &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: id}},
	}}
	if err := c.entities(ctx, l, []*p4v1.Entity{asked}, counts.take); err != nil {
		return nil, c.fail(operation, err)
	}
	return counts.all, nil
}

// entryCounts collects the direct counters of a table.
type entryCounts struct {
	schema *Schema
	table  *table
	all    []EntryCount
}

func (c *entryCounts) take(m *p4v1.Entity) error {
	sent := m.GetDirectCounterEntry()
	if got := sent.GetTableEntry().GetTableId(); got != c.table.id {
		return fmt.Errorf("%w: a counter of table %#x, where table %s was asked for", ErrMalformed, got, c.table.name)
	}
	if sent.GetTableEntry().GetIsDefaultAction() {
		return nil
	}
	key, err := c.schema.decodeKey(sent.GetTableEntry())
	if err != nil {
		return err
	}
	count, err := countOf(sent.GetData())
	c.all = append(c.all, EntryCount{Entry: key, Count: count})
	return err
}

func countOf(d *p4v1.CounterData) (Count, error) {
	if d.GetPacketCount() < 0 || d.GetByteCount() < 0 {
		return Count{}, fmt.Errorf("%w: a count of %d packets, %d bytes", ErrMalformed, d.GetPacketCount(), d.GetByteCount())
	}
	return Count{Packets: uint64(d.GetPacketCount()), Bytes: uint64(d.GetByteCount())}, nil
}
