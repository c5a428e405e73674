package pipeline

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// network is the ports and routes of a switch with two neighbours' prefixes.
func network() Target {
	return Target{
		Ports: []p4.Port{
			{Number: 1, Addr: netip.MustParseAddr("10.0.0.0"), MAC: p4.MAC{2, 0, 0, 0, 0, 1}},
			{Number: 2, Addr: netip.MustParseAddr("10.0.1.0"), MAC: p4.MAC{2, 0, 0, 0, 0, 2}},
		},
		Routes: []p4.Route{
			{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Port: 1, MAC: p4.MAC{2, 0, 0, 0, 1, 1}},
			{Prefix: netip.MustParsePrefix("10.0.1.1/32"), Port: 2, MAC: p4.MAC{2, 0, 0, 0, 1, 2}},
			{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Port: 2, MAC: p4.MAC{2, 0, 0, 0, 1, 2}},
		},
	}
}

// epochOf returns an epoch of a group with two children and a parent.
func epochOf(group, number, window uint32) *switchreduce.Config {
	return &switchreduce.Config{
		Group: group, Epoch: number, Cookie: 0xfeed, Window: window, ChunkBytes: 1432,
		Children: []switchreduce.Child{
			{Addr: netip.MustParseAddrPort("10.0.0.1:7000"), Lowest: 0, Cookie: 0xf00d},
			{Addr: netip.MustParseAddrPort("10.0.1.1:7000"), Lowest: 1, Cookie: 0xface},
		},
		Parent: netip.MustParseAddrPort("10.9.0.1:49152"), Index: 3, Probes: 4, Lease: 12 * time.Second,
	}
}

func opened(t rapid.TB, l *ledger, socket uint64, group uint32) *tree {
	t.Helper()
	tree, err := l.open(socket, group)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func installed(t rapid.TB, l *ledger, tree *tree, c *switchreduce.Config) *epoch {
	t.Helper()
	e, err := l.install(0, tree, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLedgerRandom opens, installs, retires and shuts at random. Package p4
// reports whether what comes of it is a state that a pipeline can have: no index
// twice, no slots of two trees at once, serial numbers that report what is later.
func TestLedgerRandom(t *testing.T) {
	target := network()
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		sockets, group := uint64(0), uint32(0)
		var trees []*tree
		var highest uint64
		pick := func(t *rapid.T) *tree {
			if len(trees) == 0 {
				t.Skip("no tree")
			}
			return trees[rapid.IntRange(0, len(trees)-1).Draw(t, "tree")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				sockets++
				group++
				tree, err := l.open(sockets, group)
				if full := len(trees) == p4.Trees; full != errors.Is(err, ErrFull) {
					t.Fatalf("with %d trees: %v", len(trees), err)
				}
				if err == nil {
					trees = append(trees, tree)
				}
			},
			"install": func(t *rapid.T) {
				tree := pick(t)
				window := uint32(1) << rapid.IntRange(0, 11).Draw(t, "window")
				c := epochOf(tree.group, tree.newest+2, window)
				e, err := l.install(0, tree, c)
				if err != nil {
					if !errors.Is(err, ErrFull) {
						t.Fatal(err)
					}
					return
				}
				if e.serial <= highest {
					t.Fatalf("serial number %d after %d", e.serial, highest)
				}
				highest = e.serial
			},
			"retire": func(t *rapid.T) {
				tree := pick(t)
				if len(tree.epochs) == 0 {
					t.Skip("no epoch")
				}
				l.retire(tree.epochs[rapid.IntRange(0, len(tree.epochs)-1).Draw(t, "epoch")])
			},
			"shut": func(t *rapid.T) {
				tree := pick(t)
				l.shut(tree)
				for i := range trees {
					if trees[i] == tree {
						trees = append(trees[:i], trees[i+1:]...)
						break
					}
				}
			},
			"": func(t *rapid.T) {
				state := p4.State{Ports: target.Ports, Routes: target.Routes}
				state.Trees, state.Epochs = l.state()
				if err := state.Validate(); err != nil {
					t.Fatal(err)
				}
				if len(l.trees) != len(trees) {
					t.Fatalf("%d trees, want %d", len(l.trees), len(trees))
				}
			},
		})
		for _, tree := range trees {
			l.shut(tree)
		}
		if trees, epochs := l.state(); len(trees)+len(epochs)+len(l.trees) > 0 {
			t.Fatalf("left: %v, %v", trees, epochs)
		}
		installed(t, l, opened(t, l, sockets+1, 1), epochOf(1, 2, p4.Slots/2)) // all slots are free
	})
}

func TestTheNextEpochTakesSlotsOver(t *testing.T) {
	l := newLedger()
	tree := opened(t, l, 1, 7)
	first := installed(t, l, tree, epochOf(7, 2, p4.Slots/2))
	second := installed(t, l, tree, epochOf(7, 4, p4.Slots/2))
	if first.slots != second.slots || first.index == second.index || second.serial <= first.serial {
		t.Errorf("%+v, then %+v", first, second)
	}
	other := opened(t, l, 2, 8)
	if _, err := l.install(0, other, epochOf(8, 2, 1)); !errors.Is(err, ErrFull) {
		t.Errorf("on a full switch: %v", err)
	}
	l.shut(tree)
	installed(t, l, other, epochOf(8, 2, 1))
}

func TestWhatDoesNotFit(t *testing.T) {
	l := newLedger()
	tree := opened(t, l, 1, 7)
	installed(t, l, tree, epochOf(7, 4, 8))
	for name, test := range map[string]struct {
		spoil func(*switchreduce.Config)
		want  error
	}{
		"children": {func(c *switchreduce.Config) {
			c.Children = nil
			for i := range uint32(p4.Children + 1) {
				c.Children = append(c.Children, switchreduce.Child{Addr: netip.AddrPortFrom(netip.MustParseAddr("10.9.0.2"), uint16(i+1)), Lowest: i})
			}
		}, ErrLimit},
		"authenticated": {func(c *switchreduce.Config) { c.Protection = wire.Authenticated }, ErrLimit},
		"encrypted":     {func(c *switchreduce.Config) { c.Protection = wire.Encrypted }, ErrLimit},
		"chunk":         {func(c *switchreduce.Config) { c.ChunkBytes = p4.Chunk + 1 }, ErrLimit},
		"window":        {func(c *switchreduce.Config) { c.Window = p4.Slots }, ErrLimit},
		"invalid":       {func(c *switchreduce.Config) { c.Children = nil }, switchreduce.ErrConfig},
		"group":         {func(c *switchreduce.Config) { c.Group++ }, ErrLimit},
		"stale":         {func(c *switchreduce.Config) { c.Epoch = 4 }, ErrStale},
	} {
		c := epochOf(7, 6, 8)
		test.spoil(c)
		if _, err := l.install(0, tree, c); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	l.serial = p4.MaxSerial
	if _, err := l.install(0, tree, epochOf(7, 6, 8)); !errors.Is(err, ErrFull) {
		t.Errorf("without serial numbers: %v", err)
	}
	if len(tree.epochs) != 1 || tree.newest != 4 {
		t.Errorf("what was refused has left %+v", tree)
	}
}

func TestEpochsOfAllTreesAreCounted(t *testing.T) {
	l := newLedger()
	number := uint32(0)
	for i := range uint32(p4.Trees) {
		tree := opened(t, l, uint64(i+1), i)
		for range p4.Epochs / p4.Trees {
			number += 2
			installed(t, l, tree, epochOf(i, number, 1))
		}
	}
	if _, err := l.install(0, l.places[0], epochOf(0, number+2, 1)); !errors.Is(err, ErrFull) {
		t.Errorf("beyond %d epochs: %v", p4.Epochs, err)
	}
	if _, err := l.open(1000, 1000); !errors.Is(err, ErrFull) {
		t.Errorf("beyond %d trees: %v", p4.Trees, err)
	}
}

// meter is a target's traffic counters.
type meter [p4.Epochs * p4.Traffics]uint64

func (m *meter) count(e *epoch, kind int) { m[p4.TrafficIndex(e.index, kind)]++ }

func TestLeases(t *testing.T) {
	const second = core.Time(time.Second)
	l, m := newLedger(), new(meter)
	m[p4.TrafficIndex(0, p4.TrafficChild)] = 1000 // of whoever was at the index before
	l.baseline(m[:])
	tree := opened(t, l, 1, 7)
	e := installed(t, l, tree, epochOf(7, 2, 8))
	eternal := epochOf(7, 4, 8)
	eternal.Lease = 0
	forever := installed(t, l, tree, eternal)
	check := func(at core.Time, expired, quiet int) {
		t.Helper()
		gone, still := l.read(at, m[:])
		if len(gone) != expired || len(still) != quiet {
			t.Fatalf("at %v: %d epochs have expired, %d are quiet, want %d and %d", time.Duration(at), len(gone), len(still), expired, quiet)
		}
	}
	check(11*second, 0, 0) // nothing was heard, and nothing needs to be said
	m.count(e, p4.TrafficChild)
	check(11*second+1, 0, 1) // a child speaks, and the parent has heard nothing
	m.count(e, p4.TrafficChild)
	check(15*second, 0, 0) // it has, within the last four seconds
	m.count(e, p4.TrafficChild)
	m.count(e, p4.TrafficUp)
	check(18*second, 0, 0)
	m.count(e, p4.TrafficChild)
	check(21*second, 0, 0)
	m.count(e, p4.TrafficParent)
	check(30*second, 0, 0) // the parent renews, too, but needs no answer
	m.count(e, p4.TrafficUp)
	check(42*second-1, 0, 0) // what is sent renews nothing
	check(42*second, 1, 0)
	check(1000*second, 0, 0)
	if tree.find(2) != nil || tree.find(4) != forever {
		t.Errorf("left: %+v", tree.epochs)
	}
}

func TestTheRootKeepsNobodyAlive(t *testing.T) {
	l, m := newLedger(), new(meter)
	c := epochOf(7, 2, 8)
	c.Parent = netip.AddrPort{}
	e := installed(t, l, opened(t, l, 1, 7), c)
	m.count(e, p4.TrafficChild)
	if expired, quiet := l.read(core.Time(11*time.Second), m[:]); len(expired)+len(quiet) > 0 {
		t.Errorf("expired %v, quiet %v", expired, quiet)
	}
}

func TestInterval(t *testing.T) {
	l := newLedger()
	if d := l.interval(); d != maxRead {
		t.Errorf("without epochs: %v", d)
	}
	tree := opened(t, l, 1, 7)
	for i, want := range []struct{ lease, interval time.Duration }{
		{0, maxRead}, {time.Minute, maxRead}, {6 * time.Second, 500 * time.Millisecond}, {time.Millisecond, minRead},
	} {
		c := epochOf(7, uint32(2*i+2), 8)
		c.Lease = want.lease
		installed(t, l, tree, c)
		if d := l.interval(); d != want.interval {
			t.Errorf("lease %v: %v, want %v", want.lease, d, want.interval)
		}
	}
}

func TestPlace(t *testing.T) {
	others := []region{{0, 512}, {1024, 512}, {2048, 1024}}
	for name, test := range map[string]struct {
		size int
		own  []region
		want region
	}{
		"the smallest gap that will do": {512, nil, region{512, 512}},
		"a larger one":                  {1024, nil, region{3072, 1024}},
		"its own":                       {512, []region{{3072, 512}}, region{3072, 512}},
		"more than its own":             {1024, []region{{3584, 512}}, region{3072, 1024}},
	} {
		if got, err := place(test.size, test.own, others); err != nil || got != test.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
	if _, err := place(2048, nil, others); !errors.Is(err, ErrFull) {
		t.Errorf("no gap: %v", err)
	}
}

// TestReducerOfAnEpoch: where an epoch's slots are decides what the target does with
// its sums of block32.
func TestReducerOfAnEpoch(t *testing.T) {
	l := newLedger()
	low := installed(t, l, opened(t, l, 1, 1), epochOf(1, 2, p4.BlockSlots/2))
	high := installed(t, l, opened(t, l, 2, 2), epochOf(2, 2, 64))
	wide := epochOf(3, 2, 64)
	for i := range p4.BlockChildren {
		wide.Children = append(wide.Children, switchreduce.Child{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 2, byte(i)}), 7000), Lowest: uint32(2 + i)})
	}
	for name, test := range map[string]struct {
		e    *epoch
		want topology.Pipeline
	}{
		"in the first slots": {low, topology.P4}, "above them": {high, topology.AgentCPU},
		"of many children": {installed(t, newLedger(), opened(t, newLedger(), 3, 3), wide), topology.AgentCPU},
	} {
		r := test.e.reducer()
		if got := r.Serves(reduce.Sum, reduce.Block32); got != test.want || r.Serves(reduce.Sum, reduce.Int64) != topology.P4 {
			t.Errorf("%s: by %v, %v", name, got, r)
		}
	}
}

// TestWindowsChange has trees whose windows grow and shrink, on a switch that has
// promised as much as an agent does: the sum of the largest window of each tree. A
// window that shrinks stays where it is. What has no place learns how much would
// have; the smallest window has one while any slot is free.
func TestWindowsChange(t *testing.T) {
	const least = 8 // chunks
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger()
		var trees []*tree
		largest := func(t *tree) (n int) {
			for _, e := range t.epochs {
				n = max(n, e.slots.size)
			}
			return n
		}
		promised := func() (n int) {
			for _, t := range trees {
				n += largest(t)
			}
			return n
		}
		change := func(t *rapid.T, tree *tree, window uint32) {
			before, had, need := slices.Clone(tree.epochs), largest(tree), 2*int(window)
			if promised()+max(0, need-had) > p4.Slots {
				return // the agent refuses that
			}
			e, err := l.install(0, tree, epochOf(tree.group, tree.newest+2, window))
			var none *dataplane.SlotsError
			switch {
			case err == nil:
				if need <= had && !slices.ContainsFunc(before, func(b *epoch) bool { return b.slots.meets(e.slots) }) {
					t.Fatalf("%v instead of a part of %v", e.slots, before[0].slots)
				}
				return
			case !errors.Is(err, ErrFull) || !errors.As(err, &none) || none.Need != need:
				t.Fatal(err)
			case need <= had:
				t.Fatalf("%d slots, the tree has %d: %v", need, had, err)
			}
			own, others := l.regions(tree)
			free := p4.Slots
			for _, r := range others {
				if !slices.ContainsFunc(others, func(o region) bool { return o != r && o.meets(r) && o.size > r.size }) {
					free -= r.size // at least, of those that share slots
				}
			}
			if none.Free == 0 && free > 0 {
				t.Fatalf("%v, and %d are free", none, free)
			}
			if none.Free > 0 {
				if _, err := place(none.Free, own, others); err != nil {
					t.Fatalf("%v, and then %v", none, err)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"first": func(t *rapid.T) {
				if len(trees) == p4.Trees {
					t.Skip("full")
				}
				trees = append(trees, opened(t, l, uint64(len(trees)+1), uint32(len(trees)+1)))
				change(t, trees[len(trees)-1], least<<rapid.IntRange(0, 5).Draw(t, "window"))
			},
			"next": func(t *rapid.T) {
				if len(trees) == 0 {
					t.Skip("no tree")
				}
				tree := trees[rapid.IntRange(0, len(trees)-1).Draw(t, "tree")]
				if len(tree.epochs) < 4 {
					change(t, tree, least<<rapid.IntRange(0, 5).Draw(t, "window"))
				}
			},
			"entered": func(t *rapid.T) { // all members have left the epochs before
				for _, tree := range trees {
					for len(tree.epochs) > 1 {
						l.retire(tree.epochs[0])
					}
				}
			},
			"": func(t *rapid.T) {
				state := p4.State{Ports: network().Ports, Routes: network().Routes}
				if state.Trees, state.Epochs = l.state(); state.Validate() != nil {
					t.Fatal(state.Validate())
				}
			},
		})
	})
}
