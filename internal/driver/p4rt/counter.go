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

// Cells reads some cells of an indexed counter, in the order of their indices. It
// fails with ErrEntry if the program has none of that id, or not all of the cells.
func (c *Client) Cells(ctx context.Context, id uint32, indices []int) ([]Count, error) {
	operation := fmt.Sprintf("reading %d cells of counter %#x", len(indices), id)
	known := c.schema.counters[id]
	if known == nil {
		return nil, c.fail(operation, fmt.Errorf("%w: no such counter", ErrEntry))
	}
	l, err := c.ready()
	if err != nil {
		return nil, c.fail(operation, err)
	}
	some := someCells{id: id, at: make(map[int64]int, len(indices)), counts: make([]Count, len(indices))}
	asked := make([]*p4v1.Entity, len(indices))
	for n, index := range indices {
		if index < 0 || int64(index) >= known.GetSize() {
			return nil, c.fail(operation, fmt.Errorf("%w: cell %d, of %d", ErrEntry, index, known.GetSize()))
		}
		some.at[int64(index)] = n
		asked[n] = &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
			CounterId: id, Index: &p4v1.Index{Index: int64(index)},
		}}}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	if err := c.entities(ctx, l, asked, some.take); err != nil {
		return nil, c.fail(operation, err)
	}
	return some.counts, nil
}

// someCells collects some cells of a counter.
type someCells struct {
	id     uint32
	at     map[int64]int // by index, the place in counts
	counts []Count
}

func (c *someCells) take(m *p4v1.Entity) error {
	cell := m.GetCounterEntry()
	place, asked := c.at[cell.GetIndex().GetIndex()]
	if cell.GetCounterId() != c.id || !asked {
		return fmt.Errorf("%w: cell %d of counter %#x, which nobody asked for", ErrMalformed, cell.GetIndex().GetIndex(), cell.GetCounterId())
	}
	count, err := countOf(cell.GetData())
	c.counts[place] = count
	return err
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
