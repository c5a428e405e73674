package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"net/netip"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func TestTreesComeAndGo(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	if o := await[dataplane.Offer](b); o.Unusable == "" || o.Capability != (topology.Capability{}) {
		t.Errorf("before there is a connection: %+v", o)
	}
	b.usable()
	if ports, routes := target.Entries(p4.TablePorts), target.Entries(p4.TableRoutes); len(ports) != 2 || len(routes) != 5 {
		t.Errorf("%d ports, %d routes", len(ports), len(routes))
	}
	b.Open(1, 7)
	if o := await[dataplane.Opened](b); o.Err != nil || o.Addr != netip.MustParseAddrPort("0.0.0.0:49152") {
		t.Fatalf("%+v", o)
	}
	b.installs(1, epochOf(7, 2, 8))
	// An epoch, three neighbours both ways, and the tree.
	if n, groups := rows(target), target.Groups(); n != 1+3+3+1 || len(groups) != 3 {
		t.Errorf("%d entries, %d groups", n, len(groups))
	}
	b.installs(1, epochOf(7, 4, 16))
	b.tree(2, 8)
	if err := b.epoch(2, epochOf(8, 2, p4.Slots/2)); !errors.Is(err, ErrFull) {
		t.Errorf("no slots: %v", err)
	}
	b.Retire(1, 2)
	b.Retire(1, 2)
	b.Retire(9, 2)
	if b.counted(); rows(target) != 1+3+3+1 || len(target.Groups()) != 3 {
		t.Errorf("after the first was retired: %d entries", rows(target))
	}
	b.Shut(1)
	b.Shut(1)
	if b.counted(); rows(target) != 0 || len(target.Groups()) != 0 {
		t.Errorf("after all: %d entries, %d groups", rows(target), len(target.Groups()))
	}
	if err := b.epoch(1, epochOf(7, 6, 8)); !errors.Is(err, ErrNoTree) {
		t.Errorf("on a tree that was shut: %v", err)
	}
}

func TestNoWayToANeighbour(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	c := epochOf(7, 2, 8)
	c.Parent = netip.MustParseAddrPort("192.0.2.1:49152")
	if err := b.epoch(1, c); !errors.Is(err, p4.ErrState) {
		t.Errorf("got %v", err)
	}
	b.installs(1, epochOf(7, 4, 8))
}

// TestSweep has a predecessor that dies, and a clock that is behind its.
func TestSweep(t *testing.T) {
	target := newTarget(t)
	first := newBench(t, configOf(target.Address()))
	first.usable()
	first.tree(1, 7)
	ahead := make(chan struct{})
	first.jobs.Put(func(context.Context) { first.driver.ledger.serial += 1 << 40; close(ahead) })
	<-ahead
	first.installs(1, epochOf(7, 2, 8))
	serial := serialIn(t, target)
	first.Close()
	b := newBench(t, configOf(target.Address()))
	b.usable()
	if n := rows(target); n != 0 || len(target.Groups()) != 0 {
		t.Errorf("%d entries are left", n)
	}
	b.tree(1, 8)
	b.installs(1, epochOf(8, 2, 8))
	if next := serialIn(t, target); next <= serial {
		t.Errorf("serial number %d after %d", next, serial)
	}
}

// serialIn returns the serial number of the only epoch of a target.
func serialIn(t *testing.T, target *p4rttest.Target) uint64 {
	t.Helper()
	entries := target.Entries(p4.TableEpochs)
	if len(entries) != 1 {
		t.Fatalf("%d epochs", len(entries))
	}
	var b [8]byte
	value := entries[0].GetAction().GetAction().GetParams()[1].GetValue()
	copy(b[8-len(value):], value)
	return binary.BigEndian.Uint64(b[:])
}

// root returns an epoch without parent and lease.
func root(group, number uint32) *switchreduce.Config {
	c := epochOf(group, number, 8)
	c.Parent, c.Index, c.Lease = netip.AddrPort{}, 0, 0
	return c
}

// contribution returns the frame in which child contributes a float32.
func contribution(c *switchreduce.Config, child int, value float32) []byte {
	h := wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Child: uint16(child), Group: c.Group, Epoch: c.Epoch,
		Cookie: c.Children[child].Cookie, Lowest: c.Children[child].Lowest,
		Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: 1, ChunkElements: 1},
	}
	head := make([]byte, wire.HeaderSize)
	h.Put(head)
	payload := binary.LittleEndian.AppendUint32(head, math.Float32bits(value))
	return framed(c.Children[child].Addr, treeAddress, payload)
}

func TestHandOver(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	c := root(7, 2)
	b.installs(1, c)
	for child, value := range []float32{1.5, 2.25} {
		if err := target.Punt(contribution(c, child, value), uint64(child+1), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	var results []*p4v1.PacketOut
	for len(results) < 2 {
		more, err := target.PacketsOut(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, more...)
	}
	for child, p := range results {
		var h wire.Header
		body, fault := h.Decode(p.GetPayload()[framing:])
		if fault != wire.NoFault || h.Type != wire.Result || math.Float32frombits(binary.LittleEndian.Uint32(body)) != 3.75 {
			t.Errorf("child %d gets %+v with %x, %v", child, h, body, fault)
		}
		if want := build(p4.TreePort(0), c.Children[child].Addr, p.GetPayload()[framing:], nil); !bytes.Equal(p.GetPayload(), want) {
			t.Errorf("child %d gets %x", child, p.GetPayload())
		}
	}
	// What is for no tree, and what is none, is counted.
	for _, f := range []struct {
		frame []byte
		tree  uint64
	}{{contribution(c, 0, 1), 5}, {contribution(c, 0, 1), p4.Trees}, {[]byte("noise"), 0}} {
		if err := target.Punt(f.frame, 1, f.tree, 0); err != nil {
			t.Fatal(err)
		}
	}
	all := b.counted()
	for all.Past.Refused < 3 { // not all have come yet
		all = b.counted()
	}
	n := all.Trees[0]
	if n.Group != 7 || n.Events["taken"] != 2 || n.Events["results"] != 1 || n.Events["handed"] != 2 ||
		n.PacketsIn != 2 || n.BytesIn != 2*(20+8+40+4) || n.PacketsOut != 2 || n.BytesOut != 2*(20+8+40+4) {
		t.Errorf("counted: %+v", n)
	}
	b.Retire(1, 2)
	b.Shut(1)
	if past := b.counted().Past; past.Events["results"] != 1 || past.PacketsOut != 2 {
		t.Errorf("counted when it is over: %+v", past)
	}
}

func TestAnEpochThatNobodyUses(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	c := epochOf(7, 2, 8)
	c.Lease = 100 * time.Millisecond
	b.installs(1, c)
	if e := await[dataplane.Ended](b); e.Socket != 1 || e.Epoch != 2 || e.Err != nil {
		t.Errorf("%+v", e)
	}
	n := b.counted().Trees[0]
	if left := len(target.Entries(p4.TableEpochs)); left != 0 || n.Events["expired"] != 1 {
		t.Errorf("%d epochs are left, counted: %+v", left, n)
	}
	if err := b.epoch(1, c); !errors.Is(err, ErrStale) {
		t.Errorf("again: %v", err)
	}
}

// TestKeepAlive has a child that speaks whenever somebody looks.
func TestKeepAlive(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	c := epochOf(7, 2, 8)
	c.Lease = time.Second
	spoken := int64(0)
	target.Mangle(func(m *p4v1.ReadResponse) {
		for _, e := range m.GetEntities() {
			cell := e.GetCounterEntry()
			if cell.GetCounterId() == p4.CounterTraffic && cell.GetIndex().GetIndex() == int64(p4.TrafficIndex(0, p4.TrafficChild)) {
				spoken++
				cell.Data.PacketCount = spoken
			}
		}
	})
	b.installs(1, c)
	for range 2 {
		packets, err := target.PacketsOut(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		var h wire.Header
		frame := packets[0].GetPayload()
		if _, fault := h.Decode(frame[framing:]); fault != wire.NoFault || h.Type != wire.Probe || h.Flags != wire.Idle ||
			h.Child != c.Index || h.Epoch != 2 || h.Cookie != c.Cookie || !bytes.Equal(frame, build(p4.TreePort(0), c.Parent, frame[framing:], nil)) {
			t.Fatalf("the parent gets %+v, %v", h, fault)
		}
	}
	if n := b.counted().Trees[0]; n.Events["kept"] < 2 || n.Events["expired"] != 0 {
		t.Errorf("counted: %+v", n)
	}
}

func TestCensus(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 9)
	b.tree(2, 8)
	b.installs(2, root(8, 2))
	add := func(tree int, o p4.Outcome, n int64) {
		target.Count(p4.CounterOutcomes, p4.OutcomeIndex(tree, o), n, 0)
	}
	add(1, p4.TakenResult, 5)
	add(1, p4.RelayedLost, 2)
	add(1, p4.DropStale, 3)
	add(1, p4.FaultVersion, 4)
	add(1, p4.Handed, 6) // that the agent did not take
	add(1, p4.Looped, 9)
	add(7, p4.DropGroup, 1) // of a tree that is gone
	target.Count(p4.CounterDiscards, int(p4.DiscardTTL), 8, 0)
	c := b.counted()
	if len(c.Trees) != 2 || c.Trees[0].Group != 8 || c.Trees[1].Group != 9 || len(c.Trees[1].Drops) > 0 {
		t.Fatalf("counted: %+v", c)
	}
	n := c.Trees[0]
	for name, want := range map[string]uint64{"taken": 5, "results": 5, "probes": 2, "losts": 2, "relayed": 2, "looped": 9, "handed": 0} {
		if n.Events[name] != want {
			t.Errorf("%d %s, want %d", n.Events[name], name, want)
		}
	}
	for reason, want := range map[string]uint64{"stale-epoch": 3, "fault": 4, "fault-version": 4} {
		if n.Drops[reason] != want {
			t.Errorf("%d dropped by %s, want %d", n.Drops[reason], reason, want)
		}
	}
	if n.PacketsIn != 14 || n.PacketsOut != 5*2+2*2 || c.Past.PacketsIn != 1 || c.Past.Drops["group"] != 1 || c.Past.Drops["discard-ttl"] != 8 {
		t.Errorf("counted: %+v, %+v", n, c.Past)
	}
	// A successor of a place, or of a target, begins with nothing.
	b.Shut(2)
	if past := b.counted().Past; past.PacketsIn != 15 || past.Events["results"] != 5 {
		t.Errorf("when it is over: %+v", past)
	}
	if err := target.Restart(); err != nil {
		t.Fatal(err)
	}
	b.usable()
	if past := b.counted().Past; past.PacketsIn != 15 {
		t.Errorf("after a restart: %+v", past)
	}
}

func TestConfig(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no address":         func(c *Config) { c.Target.Address = "" },
		"no port":            func(c *Config) { c.Target.Ports = nil },
		"a port twice":       func(c *Config) { c.Target.Ports[1].Number = 1 },
		"a route to nowhere": func(c *Config) { c.Target.Routes[0].Port = 77 },
		"too many slots":     func(c *Config) { c.Capability.Slots = p4.Slots + 1 },
		"a negative number":  func(c *Config) { c.Capability.Children = -1 },
	} {
		c := configOf("unix:/nowhere")
		spoil(&c)
		if p, err := Start(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				p.Close()
			}
		}
	}
}

// TestWindowOfATreeChanges: an epoch with another window is written beside the one
// before, over whose slots it lies where it can, and slots that a smaller window
// leaves are free once that is retired.
func TestWindowOfATreeChanges(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	b.tree(2, 8)
	const most = p4.Slots / 2
	held := func(want map[uint64]region) { // by epoch
		t.Helper()
		b.counted()
		if got := slotsIn(target); !maps.Equal(got, want) {
			t.Fatalf("the target has %v, want %v", got, want)
		}
	}
	b.installs(1, epochOf(7, 2, 16))
	held(map[uint64]region{2: {0, 32}})
	b.installs(1, epochOf(7, 4, most)) // all that there is, the slots of the epoch before included
	held(map[uint64]region{2: {0, 32}, 4: {0, p4.Slots}})
	none := (*dataplane.SlotsError)(nil)
	if err := b.epoch(2, epochOf(8, 102, 8)); !errors.As(err, &none) || none.Need != 16 || none.Free != 0 {
		t.Errorf("beside a window of all slots: %v", err)
	}
	b.Retire(1, 2)
	b.installs(1, epochOf(7, 6, 8))
	held(map[uint64]region{4: {0, p4.Slots}, 6: {0, 16}})
	b.Retire(1, 4)
	held(map[uint64]region{6: {0, 16}})
	if err := b.epoch(2, epochOf(8, 104, most)); !errors.As(err, &none) || none.Need != p4.Slots || none.Free != p4.Slots/2 {
		t.Errorf("beside a window of 8: %v", err)
	}
	b.installs(2, epochOf(8, 106, most/2))
	held(map[uint64]region{6: {0, 16}, 106: {p4.Slots / 2, p4.Slots / 2}})
}

// slotsIn returns the slots of the epochs that a target holds, by their numbers.
func slotsIn(target *p4rttest.Target) map[uint64]region {
	of := func(b []byte) (n uint64) {
		for _, x := range b {
			n = n<<8 | uint64(x)
		}
		return n
	}
	all := map[uint64]region{}
	for _, e := range target.Entries(p4.TableEpochs) {
		params := e.GetAction().GetAction().GetParams() // index, serial, slot_base, slot_mask, ...
		number := of(e.GetMatch()[1].GetExact().GetValue())
		all[number] = region{int(of(params[2].GetValue())), int(of(params[3].GetValue())) + 1}
	}
	return all
}

// TestWindowOfTheTarget: what a target bears is offered with the rest, and a file
// that knows of other queues is believed.
func TestWindowOfTheTarget(t *testing.T) {
	if w := Within(topology.DefaultCapability()).Window; w != Window {
		t.Errorf("where nothing is said a tree may have %d", w)
	}
	said := topology.DefaultCapability()
	said.Window = 4 * Window
	c := configOf(newTarget(t).Address())
	c.Capability = Within(said)
	b := newBench(t, c)
	for {
		if o := await[dataplane.Offer](b); o.Unusable == "" {
			if o.Capability.Window != 4*Window {
				t.Errorf("offered: %+v", o.Capability)
			}
			return
		}
	}
}
