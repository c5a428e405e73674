package world

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

const packetBytes = 1432 // a packet's payload in an MTU of 1500

// leafSpine is the shape of a tree with a spine as its root.
func leafSpine(leaves, each int) (f shape) {
	f.on = []int{0}
	for i := range leaves {
		f.on, f.parents = append(f.on, i+1), append(f.parents, 0)
		for range each {
			f.leaves = append(f.leaves, i+1)
		}
	}
	return f
}

// callOf returns a call of pieces of so many bytes, of int64.
func callOf(c schedule.Collective, rank, size, bytes int) *schedule.Call {
	k := &schedule.Call{Collective: c, Rank: rank, Size: size, Width: 8, Count: bytes / 8, Segment: 64 << 10}
	if c.IsRooted() {
		k.Root = 1
	}
	return k
}

// operationOf returns a rank's operation over the tree, as hostlib makes it.
func operationOf(t *schedule.Tree, k *schedule.Call, rank int) session.Operation {
	all, own := session.Range{To: t.Elements}, session.Range{}
	p := &session.Parts{Mark: k.Mark(uint8(reduce.Int64)), Said: t.Elements}
	o := session.Operation{Collective: wire.Reduce, Function: reduce.BOr, Element: reduce.Int64, Elements: t.Elements, Parts: p}
	if t.Each > 0 {
		own.From, own.To = t.Piece(rank)
	}
	p.Holds, p.Wants = all, own
	isRoot := rank == k.Root
	switch {
	case t.Form == schedule.United && (k.Collective == schedule.Allgather || k.Collective == schedule.Gather && isRoot):
		p.Wants = all
	case t.Form == schedule.Copied:
		o.Collective, o.Function = wire.Broadcast, reduce.NoFunction
		if k.Collective != schedule.Allgather {
			p.Skip.From, p.Skip.To = t.Piece(k.Root)
		}
		switch {
		case k.Collective == schedule.Scatter && isRoot:
			p.Wants = session.Range{}
		case k.Collective == schedule.Scatter:
			p.Holds = session.Range{}
		default:
			if p.Each, p.Holds = t.Each, own; k.Collective == schedule.Allgather || isRoot {
				p.Wants = all
			} else {
				p.Wants = session.Range{}
			}
		}
	}
	o.In, o.Out = make([]byte, 8*(p.Holds.To-p.Holds.From)), make([]byte, 8*(p.Wants.To-p.Wants.From))
	return o
}

// carried counts what each link carries of one operation.
type carried map[[2]sim.NodeID]*schedule.Load

func (c carried) add(from, to sim.NodeID, bytes int) {
	l := c[[2]sim.NodeID{from, to}]
	if l == nil {
		l = new(schedule.Load)
		c[[2]sim.NodeID{from, to}] = l
	}
	l.Packets++
	l.Bytes += bytes
}

// overTree runs an operation of all members over a leaf-spine of switches, and returns how the tree
// carries it, the members' work, and what each link has carried.
func overTree(t *testing.T, collective schedule.Collective, leaves, each, bytes int) (schedule.Tree, *scene, carried) {
	t.Helper()
	n := leaves * each
	s := newSceneFrom(t, leaves+1, endpoint.Config{Group: 1, Cookie: 7, Size: n, ChunkBytes: packetBytes, Window: 64, Timing: timing()})
	s.OfferAll(s.Install(leafSpine(leaves, each).tree(), Terms{
		Config: switchreduce.Config{Group: s.number, Epoch: 2, Cookie: 3, Window: 64, ChunkBytes: packetBytes, Probes: 4},
		Port:   treePort, Switches: s.ids,
	}))
	s.until("all have entered", func() bool { return s.allIn(2) })
	s.run(time.Millisecond)
	links := carried{}
	s.rule(func(p *packet, _ *sim.Fate) {
		if !p.offload || p.Type != wire.Contribution && p.Type != wire.Result {
			return
		}
		has := p.Flags&wire.Sink != 0
		if p.Type == wire.Contribution {
			has = !p.Collective.Copies() || p.Flags&wire.Source != 0
		}
		size := 0
		if has {
			size = p.PayloadSize()
		}
		links.add(p.from, p.to, size)
	})
	k := &work{in: make([][]byte, n), out: make([][]byte, n), lent: make([][2][]byte, n), done: make([]bool, n)}
	var tree schedule.Tree
	for rank := range n {
		call := callOf(collective, rank, n, bytes)
		var err error
		if tree, err = schedule.OverTree(call, packetBytes); err != nil {
			t.Fatal(err)
		}
		o := operationOf(&tree, call, rank)
		k.in[rank] = vector(s.rand, o, len(o.In))
		k.lent[rank] = [2][]byte{slices.Clone(k.in[rank]), o.Out}
		if p := o.Parts; o.Collective.Copies() && p.Wants.To-p.Wants.From == o.Elements {
			copy(o.Out[8*p.Holds.From:], k.in[rank]) // the member's own piece
		}
		k.parts = append(k.parts, o.Parts)
		o.In, o.Out, o.Parts = nil, nil, nil
		k.op = o
	}
	s.startAll(s.add(k))
	s.finish()
	return tree, s, links
}

var piecesOverTree = []schedule.Collective{schedule.Gather, schedule.Scatter, schedule.Allgather, schedule.ReduceScatter, schedule.Alltoall}

// TestLoadOfLinks: every link of a tree of switches carries what schedule.Tree says, and nothing
// more.
func TestLoadOfLinks(t *testing.T) {
	for _, size := range []struct{ leaves, each, bytes int }{{4, 2, 8}, {4, 2, 4 << 10}, {8, 8, 8}, {3, 5, 1000}, {4, 2, 64 << 10}} {
		for _, c := range piecesOverTree {
			if c == schedule.Alltoall && size.bytes > 100 {
				continue // not over a tree
			}
			tree, s, links := overTree(t, c, size.leaves, size.each, size.bytes)
			check := func(what string, below, above sim.NodeID, from, to int) {
				up, down := tree.Link(from, to)
				got := [2]schedule.Load{*links[[2]sim.NodeID{below, above}], *links[[2]sim.NodeID{above, below}]}
				if got != [2]schedule.Load{up, down} {
					t.Errorf("%s of %d bytes, %d leaves, %s: %+v, want %+v and %+v", c, size.bytes, size.leaves, what, got, up, down)
				}
			}
			for leaf := range size.leaves {
				from := leaf * size.each
				check(fmt.Sprint("leaf ", leaf), s.ids[leaf+1], s.ids[0], from, from+size.each)
				for rank := from; rank < from+size.each; rank++ {
					check(fmt.Sprint("rank ", rank), s.Nodes[rank], s.ids[leaf+1], rank, rank+1)
				}
			}
		}
	}
}

// busiest returns what the busiest link of a layer carries, up and down, where of says what that
// to some ranks does.
func busiest(n, beneath int, of func(from, to int) (up, down schedule.Load)) (up, down schedule.Load) {
	most := func(l *schedule.Load, k schedule.Load) {
		l.Packets, l.Bytes = max(l.Packets, k.Packets), max(l.Bytes, k.Bytes)
	}
	for from := 0; from < n; from += beneath {
		u, d := of(from, from+beneath)
		most(&up, u)
		most(&down, d)
	}
	return up, down
}

// byHosts returns what links carry by the algorithm of hosts that is chosen: messages as packets.
func byHosts(t *testing.T, c schedule.Collective, n, bytes int) (of func(from, to int) (up, down schedule.Load), by schedule.Algorithm) {
	t.Helper()
	type sent struct{ from, to, bytes int }
	var all []sent
	for rank := range n {
		call := callOf(c, rank, n, bytes)
		by, _ = schedule.Choose(call, pathsel.DefaultCosts())
		s, err := schedule.Make(call, by)
		if err != nil {
			t.Fatal(err)
		}
		for r := range s.Rounds {
			for _, x := range r.Sends {
				all = append(all, sent{rank, x.Peer, x.Size})
			}
		}
	}
	return func(from, to int) (up, down schedule.Load) {
		for _, m := range all {
			isFrom, isTo := from <= m.from && m.from < to, from <= m.to && m.to < to
			if isFrom && !isTo {
				up.Packets, up.Bytes = up.Packets+1, up.Bytes+m.bytes
			}
			if isTo && !isFrom {
				down.Packets, down.Bytes = down.Packets+1, down.Bytes+m.bytes
			}
		}
		return up, down
	}, by
}

// TestTableOfLoads: docs/collectives.md has what the busiest link of each layer carries, by switches
// and by hosts.
func TestTableOfLoads(t *testing.T) {
	page, err := os.ReadFile("../../../docs/collectives.md")
	if err != nil {
		t.Fatal(err)
	}
	amount := func(l schedule.Load) string { return fmt.Sprintf("%d: %d", l.Packets, l.Bytes) }
	for _, bytes := range []int{8, 64 << 10} {
		for _, f := range []struct{ leaves, each int }{{4, 2}, {8, 8}} {
			n := f.leaves * f.each
			for _, c := range piecesOverTree {
				hosts, by := byHosts(t, c, n, bytes)
				over := func(what string, of func(from, to int) (up, down schedule.Load)) {
					row := fmt.Sprintf("| %s | %d | %d | %s |", c, n, bytes, what)
					for _, beneath := range []int{1, f.each} {
						up, down := busiest(n, beneath, of)
						row += fmt.Sprintf(" %s | %s |", amount(up), amount(down))
					}
					if !strings.Contains(string(page), row+"\n") {
						t.Errorf("docs/collectives.md has not the row\n%s", row)
					}
				}
				if tree, err := schedule.OverTree(callOf(c, 0, n, bytes), packetBytes); err == nil {
					over("switches", tree.Link)
				}
				over("`"+goName(by)+"`", hosts)
			}
		}
	}
}

// goName returns the name of an algorithm in package hostlib.
func goName(a schedule.Algorithm) (name string) {
	for word := range strings.SplitSeq(a.String(), "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}
