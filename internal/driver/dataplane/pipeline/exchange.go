package pipeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// ofNeighbours are the counters that have a cell for each epoch and neighbour.
var ofNeighbours = [...]uint32{p4.CounterReceived, p4.CounterSent, p4.CounterShortened, p4.CounterForged}

// exchanged are the cells of one neighbour of an epoch, in the order of ofNeighbours.
type exchanged [len(ofNeighbours)]p4rt.Count

// exchanges returns what epochs have exchanged with their neighbours. It counts from
// the first call that has an epoch on: earlier epochs at its place in the target used
// the same cells.
func (d *driver) exchanges(ctx context.Context) ([]rpc.EpochTraffic, error) {
	epochs := d.ledger.all()
	var cells []int
	for _, e := range epochs {
		cells = append(cells, e.cells()...)
	}
	now := make([]exchanged, len(cells))
	for i, id := range ofNeighbours {
		counts, err := d.plane.client.Cells(ctx, id, cells)
		if err != nil {
			return nil, err
		}
		for n, c := range counts {
			now[n][i] = c
		}
	}
	all := make([]rpc.EpochTraffic, len(epochs))
	for i, e := range epochs {
		n := 1 + len(e.cfg.Children)
		all[i] = rpc.EpochTraffic{Group: e.cfg.Group, EpochTraffic: e.exchange(now[:n])}
		d.plane.hand.sent(e.tree.index, &all[i].EpochTraffic)
		now = now[n:]
	}
	slices.SortFunc(all, func(a, b rpc.EpochTraffic) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all, nil
}

// cells returns the numbers of the cells of e: the parent's, and the children's.
func (e *epoch) cells() []int {
	cells := make([]int, 1+len(e.cfg.Children))
	for i := range cells {
		cells[i] = e.index*p4.Neighbours + i
	}
	return cells
}

// exchange takes the cells of e.
func (e *epoch) exchange(now []exchanged) switchreduce.EpochTraffic {
	if e.before == nil {
		e.before = slices.Clone(now)
	}
	t := switchreduce.EpochTraffic{Epoch: e.cfg.Epoch}
	for i := range now {
		x := now[i].since(&e.before[i])
		if i > 0 {
			t.Children = append(t.Children, x)
		} else if e.cfg.Parent.IsValid() {
			t.Parent = &x
		}
	}
	return t
}

// since returns what was counted after before, in bytes of UDP payloads. Of what was
// sent these are the least that it can be: a copy that is longer than the packet that
// it was made of counts with that packet's length, a shorter one as a header.
func (x *exchanged) since(before *exchanged) switchreduce.Traffic {
	delta := func(i int) (packets, bytes uint64) {
		return x[i].Packets - before[i].Packets, x[i].Bytes - before[i].Bytes
	}
	var t switchreduce.Traffic
	t.PacketsIn, t.BytesIn = delta(0)
	t.PacketsOut, t.BytesOut = delta(1)
	t.BytesIn -= min(t.BytesIn, framing*t.PacketsIn)
	t.BytesOut -= min(t.BytesOut, framing*t.PacketsOut)
	shortened, _ := delta(2)
	t.PacketsOut += shortened
	t.BytesOut += shortened * wire.HeaderSize
	t.Forged, _ = delta(3)
	return t
}

// sent adds to t what the core of a tree has sent in an epoch.
func (h *handover) sent(index int, t *switchreduce.EpochTraffic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, own := range h.trees[index].core.Traffic() {
		if own.Epoch != t.Epoch {
			continue
		}
		for i, c := range own.Children {
			t.Children[i].PacketsOut += c.PacketsOut
			t.Children[i].BytesOut += c.BytesOut
		}
		if t.Parent != nil && own.Parent != nil {
			t.Parent.PacketsOut += own.Parent.PacketsOut
			t.Parent.BytesOut += own.Parent.BytesOut
		}
	}
}
