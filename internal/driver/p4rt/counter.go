package p4rt

import (
	"context"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Count is what a counter has counted. Which of the two a counter counts its
// program says; the other is 0.
type Count struct{ Packets, Bytes uint64 }

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

func countOf(d *p4v1.CounterData) (Count, error) {
	if d.GetPacketCount() < 0 || d.GetByteCount() < 0 {
		return Count{}, fmt.Errorf("%w: a count of %d packets, %d bytes", ErrMalformed, d.GetPacketCount(), d.GetByteCount())
	}
	return Count{Packets: uint64(d.GetPacketCount()), Bytes: uint64(d.GetByteCount())}, nil
}
