package world

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// leafNode is a member that has the host's side of the data plane and nothing
// else, so that there can be very many of them.
type leafNode struct {
	session *session.Session
	in      []session.Input
	out     session.Output
	result  [4]byte
	done    int
	lost    bool
}

func (l *leafNode) Deadline() core.Time { return l.session.Deadline() }

func (l *leafNode) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	l.in = l.in[:0]
	for i := range batch {
		d := &batch[i]
		if d.Kind == sim.Datagram {
			l.in = append(l.in, session.Input{From: AddrPort(d.From), Packet: d.Bytes})
		} else if err := l.session.Start(d.Value.(session.Operation)); err != nil {
			panic(err)
		}
	}
	l.out.Reset()
	l.session.Step(now, l.in, &l.out)
	for i := range l.out.Sends {
		s := &l.out.Sends[i]
		to, _ := AddrOf(s.To)
		h.Send(DataPort, to, s.Head[:], s.Body)
	}
	l.done += len(l.out.Completions)
	l.lost = l.lost || l.out.Loss != nil
}

// TestChunkLostOnEachLevelOf40Children: "a chunk lost on each level of a
// three-level tree with 40 children each (repair packets counted per switch: at
// most about two a child; no storm)". There are 1 + 40 + 1,600 switches and
// 64,000 members. One contribution, and then one result, is lost on each level.
func TestChunkLostOnEachLevelOf40Children(t *testing.T) {
	const fan = 40
	forest := newForest(t, fan)
	// A member, its leaf switch, and the switch above it: not the first ones.
	leaf := forest.group.Nodes[777]
	edge := forest.switches[1+fan+777/fan]
	middle := forest.switches[1+777/fan/fan]
	root := forest.switches[0]
	for _, lost := range []struct {
		what     string
		from, to sim.NodeID
	}{
		{"the contribution of a member", leaf, edge},
		{"the partial of a leaf switch", edge, middle},
		{"the partial of a middle switch", middle, root},
		{"the result for a middle switch", root, middle},
		{"the result for a leaf switch", middle, edge},
		{"the result for a member", edge, leaf},
	} {
		t.Run(lost.what, func(t *testing.T) { forest.lose(t, lost.from, lost.to, fan) })
	}
}

type forest struct {
	w        *sim.World
	switches []sim.NodeID
	cores    []*Switch
	group    *Group
	members  []*leafNode
	repair   map[sim.NodeID]int // packets of repair that a switch has taken or sent
	cut      func(from, to sim.NodeID) bool
	rounds   int
}

func newForest(t *testing.T, fan int) *forest {
	t.Helper()
	w, err := sim.New(sim.Config{Seed: 1, Link: sim.Link{Delay: hop}, Budget: 3_000_000})
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{w: w, group: &Group{World: w}, repair: map[sim.NodeID]int{}}
	tree := Regular(3, fan)
	for range tree.Vertices {
		s := &Switch{}
		f.cores = append(f.cores, s)
		f.switches = append(f.switches, w.Add("", s))
	}
	slow := timing()
	slow.Initial, slow.Min = 500*time.Microsecond, 500*time.Microsecond // a result takes six hops
	for r := range tree.Leaves {
		s, err := session.New(session.Config{Rank: uint32(r), ChunkBytes: chunkBytes, Window: 1, Timing: slow}, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := &leafNode{session: s}
		f.members = append(f.members, m)
		f.group.Nodes = append(f.group.Nodes, w.Add("", m))
	}
	links := f.group.Install(tree, Terms{
		Config: switchreduce.Config{Group: 1, Epoch: 2, Window: 1, ChunkBytes: chunkBytes, Probes: 4},
		Port:   treePort, Switches: f.switches,
	})
	for r, m := range f.members {
		if err := m.session.Enter(0, links[r], session.Decision{}, &session.Output{}); err != nil {
			t.Fatal(err)
		}
	}
	intercept(w, f.watch)
	return f
}

// watch counts the packets of repair, contributions and results that are sent
// again included, and loses one.
func (f *forest) watch(p *packet, fate *sim.Fate) {
	first := p.Type == wire.Contribution || p.Type == wire.Result
	if first && f.cut(p.from, p.to) {
		fate.Lose = true
		return
	}
	if !first {
		f.repair[p.from]++
		f.repair[p.to]++
	}
}

// lose has all members reduce a chunk, of which one packet is lost.
func (f *forest) lose(t *testing.T, from, to sim.NodeID, fan int) {
	lost := 0
	f.cut = func(a, b sim.NodeID) bool {
		if a != from || b != to {
			return false
		}
		lost++
		return lost == 1
	}
	clear(f.repair)
	f.rounds++
	before := f.w.Total(sim.Datagrams).Sent.Packets
	for r, m := range f.members {
		op := session.Operation{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: 1,
			In: []byte{byte(r), byte(r >> 8), 0, 0}, Out: m.result[:],
		}
		f.w.Command(f.group.Nodes[r], op)
	}
	finished := func() bool { return f.members[777].done == f.rounds && f.members[0].done == f.rounds }
	if err := f.w.Await(patience, finished); err != nil {
		t.Fatal(err)
	}
	if err := f.w.RunFor(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	n := uint32(len(f.members))
	sum := n * (n - 1) / 2
	for r, m := range f.members {
		if m.done != f.rounds || m.lost || !bytes.Equal(m.result[:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}) {
			t.Fatalf("rank %d has %x after %d operations, lost %v", r, m.result, m.done, m.lost)
		}
	}
	most := 0
	for _, id := range f.switches {
		most = max(most, f.repair[id])
	}
	sent := f.w.Total(sim.Datagrams).Sent.Packets - before
	t.Logf("%d packets, at most %d of repair at a switch", sent, most)
	if lost < 2 {
		t.Error("what was lost was not sent again")
	}
	// A probe and its answer a child, and the same towards the parent.
	if limit := 2*fan + 2; most > limit {
		t.Errorf("%d packets of repair at a switch, want at most %d", most, limit)
	}
}

// TestMemberAnHourLate: "a member an hour late (quiet meanwhile)". With the
// timing of production a member that waits asks once a second, and so does each
// switch for its lowest child; leases hold.
func TestMemberAnHourLate(t *testing.T) {
	const size, late = 8, time.Hour
	s := newSceneFrom(t, 3, endpoint.Config{Group: 1, Cookie: 7, Size: size, ChunkBytes: chunkBytes, Window: 4})
	s.enter(shape{on: []int{0, 1, 2}, parents: []int{0, 0}, leaves: []int{1, 1, 1, 1, 2, 2, 2, 2}}, 2, 4)
	k := s.sum(3)
	for r := range uint32(size - 1) {
		s.start(k, r)
	}
	s.run(10 * time.Second) // the periods have grown to their cap
	before := s.w.Total(sim.Datagrams).Sent.Packets
	s.run(late)
	sent := s.w.Total(sim.Datagrams).Sent.Packets - before
	seconds := uint64(late / time.Second)
	// Of a member a probe and an answer; of switch B, which is complete, too.
	limit := 2 * (size - 1 + 1) * seconds
	t.Logf("%d packets in an hour", sent)
	if sent > limit+limit/100 {
		t.Errorf("%d packets in an hour, want at most about %d", sent, limit)
	}
	s.start(k, size-1)
	s.finish()
	s.inSwitchTree(k, 2)
	if !s.allIn(2) || s.total(func(c session.Counters) uint64 { return c.Resent }) > 0 {
		t.Error("the tree was lost, or a contribution sent again")
	}
}

// TestMemberAnHourLateLease: the same while switches free what is not renewed:
// whoever waits renews the whole tree.
func TestMemberAnHourLateLease(t *testing.T) {
	s := newSceneFrom(t, 3, endpoint.Config{Group: 1, Cookie: 7, Size: 4, ChunkBytes: chunkBytes, Window: 4})
	f := shape{on: []int{0, 1, 2}, parents: []int{0, 0}, leaves: []int{1, 1, 2, 2}}
	links := s.Install(f.tree(), Terms{
		Config: switchreduce.Config{
			Group: s.number, Epoch: 2, Cookie: 1, Window: 4, ChunkBytes: chunkBytes, Probes: 4,
			Lease: 500 * time.Millisecond, // less than the period of probes
		},
		Port: treePort, Switches: s.ids,
	})
	s.OfferAll(links)
	s.until("all have entered", func() bool { return s.allIn(2) })
	k := s.sum(3)
	s.start(k, 0)
	s.start(k, 2)
	s.run(time.Hour / 4)
	s.start(k, 1)
	s.run(time.Hour / 4)
	s.start(k, 3)
	s.finish()
	if !s.allIn(2) || s.sw[0].Expired+s.sw[1].Expired+s.sw[2].Expired > 0 {
		t.Error("the tree was lost")
	}
}

// TestMemberAnHourLateOnHosts: the same on the tree of hosts, where a member
// probes its own node, and that asks its parent.
func TestMemberAnHourLateOnHosts(t *testing.T) {
	const size = 8
	s := newSceneFrom(t, 0, endpoint.Config{Group: 1, Cookie: 7, Size: size, ChunkBytes: chunkBytes, Window: 4})
	k := s.sum(3)
	for r := range uint32(size - 1) {
		s.start(k, r)
	}
	s.run(10 * time.Second)
	before := s.w.Total(sim.Connections).Sent.Packets
	s.run(time.Hour)
	sent := s.w.Total(sim.Connections).Sent.Packets - before
	t.Logf("%d frames in an hour", sent)
	if limit := uint64(2 * size * 3600); sent > limit {
		t.Errorf("%d frames in an hour, want at most %d", sent, limit)
	}
	s.start(k, size-1)
	s.finish()
	for r, h := range s.Hosts {
		if c := h.Completions[0]; c.OffloadDone != 0 || c.LastEpoch != endpoint.FirstEpoch {
			t.Error(fmt.Sprintf("rank %d: ", r), c)
		}
	}
}
