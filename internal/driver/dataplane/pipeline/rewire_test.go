package pipeline

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// ofTrees returns the entries and groups of trees.
func ofTrees(target *p4rttest.Target) (all []proto.Message) {
	for _, table := range append(ofEpochs, p4.TableTrees) {
		for _, e := range target.Entries(table) {
			all = append(all, e)
		}
	}
	for _, g := range target.Groups() {
		all = append(all, g)
	}
	return all
}

func same(x, y []proto.Message) bool { return slices.EqualFunc(x, y, proto.Equal) }

// TestPortsAndRoutesChange: what no tree uses comes and goes without a word to the
// target about trees; a neighbour that moves is followed; an epoch with one that is out
// of reach ends, and no other.
func TestPortsAndRoutesChange(t *testing.T) {
	target := newTarget(t)
	c := configOf(target.Address())
	n := network()
	c.Target.Ports, c.Target.Routes = nil, nil
	b := newBench(t, c)
	b.unusable(ErrNoPorts.Error())
	b.Network(n.Ports, n.Routes)
	b.usable()
	b.tree(1, 7)
	b.installs(1, epochOf(7, 2, 8))
	b.tree(2, 8)
	b.installs(2, root(8, 2))
	held := ofTrees(target)
	target.Updates()

	third := p4.Port{Number: 3, Addr: netip.MustParseAddr("10.0.2.0"), MAC: p4.MAC{2, 0, 0, 0, 0, 3}}
	further := p4.Route{Prefix: netip.MustParsePrefix("10.0.2.1/32"), Port: 3, MAC: p4.MAC{2, 0, 0, 0, 1, 3}}
	b.Network(append(slices.Clone(n.Ports), third), append(slices.Clone(n.Routes), further))
	b.counted()
	if len(target.Entries(p4.TablePorts)) != 3 || len(target.Entries(p4.TableRoutes)) != 3+4 {
		t.Errorf("%d ports and %d routes", len(target.Entries(p4.TablePorts)), len(target.Entries(p4.TableRoutes)))
	}
	b.Network(n.Ports, n.Routes)
	b.counted()
	for _, u := range target.Updates() {
		if e := u.GetEntity().GetTableEntry(); e == nil || e.GetTableId() != p4.TablePorts && e.GetTableId() != p4.TableRoutes {
			t.Errorf("it was asked to change %v", u)
		}
	}
	if !same(ofTrees(target), held) {
		t.Error("trees have changed")
	}

	moved := slices.Clone(n.Routes)
	moved[1].MAC = p4.MAC{2, 0, 0, 0, 9, 9}
	b.Network(n.Ports, moved)
	b.counted()
	follows := func(e *p4v1.TableEntry) bool {
		return string(e.GetAction().GetAction().GetParams()[0].GetValue()) == string(moved[1].MAC[:])
	}
	if rewrites := target.Entries(p4.TableRewrite); !slices.ContainsFunc(rewrites, follows) || len(ofTrees(target)) != len(held) {
		t.Errorf("a neighbour that has moved is at %v", rewrites)
	}

	// Packets of a neighbour that is reached by another port now come in there, and by
	// the port before in nobody's name.
	moved[1].Port = 1
	b.Network(n.Ports, moved)
	b.counted()
	expects := func(port byte) func(e *p4v1.TableEntry) bool {
		return func(e *p4v1.TableEntry) bool {
			is := func(i int, value ...byte) bool { return slices.Equal(e.GetMatch()[i].GetExact().GetValue(), value) }
			return is(1, port) && is(2, 10, 0, 1, 1)
		}
	}
	if from := target.Entries(p4.TableNeighbours); !slices.ContainsFunc(from, expects(1)) || slices.ContainsFunc(from, expects(2)) || len(from) != 3+2 {
		t.Errorf("a neighbour behind another port is at %v", from)
	}

	// The parent of the first epoch is behind the last route, and nobody else.
	b.Network(n.Ports, n.Routes[:2])
	if e := await[dataplane.Ended](b); e.Socket != 1 || e.Epoch != 2 || !errors.Is(e.Err, p4.ErrState) {
		t.Errorf("ended: %+v", e)
	}
	b.counted()
	if len(target.Entries(p4.TableEpochs)) != 1 {
		t.Errorf("%d epochs are left", len(target.Entries(p4.TableEpochs)))
	}
	b.Network(n.Ports, n.Routes)
	b.installs(1, epochOf(7, 4, 8))
}

// TestRoutesChangeWhileApart: what changes while there is no session is written in the
// next one, over epochs that go on.
func TestRoutesChangeWhileApart(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	b.installs(1, epochOf(7, 2, 8))
	hung := target.Hang(p4rttest.Stream)
	if err := target.Disconnect(); err != nil {
		t.Fatal(err)
	}
	b.unusable("")
	n := network()
	n.Routes[1].Port, n.Routes[1].MAC = 1, p4.MAC{2, 0, 0, 0, 9, 9}
	b.Network(n.Ports, n.Routes)
	b.counted()
	hung.Release()
	b.usable() // and no epoch has ended
	b.counted()
	if rows(target) != 1+3+3+1 {
		t.Errorf("%d entries", rows(target))
	}
	follows := func(e *p4v1.TableEntry) bool {
		return string(e.GetAction().GetAction().GetParams()[0].GetValue()) == string(n.Routes[1].MAC[:])
	}
	if !slices.ContainsFunc(target.Entries(p4.TableRewrite), follows) {
		t.Error("the neighbour's new address is not written")
	}
}

// TestANetworkThatCannotBe changes nothing.
func TestANetworkThatCannotBe(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	n := network()
	b.Network(n.Ports, append(n.Routes, n.Routes[0]))
	b.counted()
	if routes := target.Entries(p4.TableRoutes); len(routes) != 5 {
		t.Errorf("%d routes", len(routes))
	}
}
