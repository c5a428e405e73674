package world

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agree"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/forming"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/topology"
)

// survivor is the node by which a member agrees with others on who lives, and forms with them, as
// hostlib's Shrink does: by the cores of package agree and package forming.
type survivor struct {
	rank  uint32
	agree *agree.Core
	nodes []sim.NodeID // by rank
	ranks map[sim.NodeID]uint32

	forms  *forming.Core // nil: nothing is decided yet
	places []uint32      // ranks of those that form
	early  []early       // what came for forms before that

	in      []agree.Input
	out     agree.Output
	unsent  map[sim.NodeID][][]byte // until there is a connection
	decided []agree.Decision
	formed  bool
}

type early struct {
	from  uint32
	bytes []byte
}

// The first byte of a survivor's message.
const (
	toAgree = iota
	toForm
)

func (s *survivor) Deadline() core.Time {
	at := s.agree.Deadline()
	if s.forms != nil {
		at = at.Earlier(s.forms.Deadline())
	}
	return at
}

func (s *survivor) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	s.in = s.in[:0]
	var forms []early
	for i := range batch {
		d := &batch[i]
		from, isRank := s.ranks[d.From.Node]
		switch {
		case d.Kind == sim.Command:
			s.in = append(s.in, d.Value.([]agree.Input)...)
		case !isRank:
		case d.Kind == sim.Up:
			for _, b := range s.unsent[d.From.Node] {
				h.Write(d.From.Node, b, nil)
			}
			delete(s.unsent, d.From.Node)
		case d.Kind == sim.Message && d.Bytes[0] == toForm:
			forms = append(forms, early{from, slices.Clone(d.Bytes[1:])})
		case d.Kind == sim.Message:
			s.in = append(s.in, agree.Input{Kind: agree.Message, Rank: from, Bytes: d.Bytes[1:]})
		default:
			s.in = append(s.in, agree.Input{Kind: agree.Dead, Rank: from})
		}
	}
	s.out.Reset()
	s.agree.Step(now, s.in, &s.out)
	for _, rank := range s.out.Watch {
		h.Dial(s.nodes[rank])
	}
	for _, m := range s.out.Sends {
		s.send(h, m.To, toAgree, m.Bytes)
	}
	for _, d := range s.out.Decided {
		s.decided = append(s.decided, d)
		if s.forms == nil {
			s.form(h, d.Failed)
		}
	}
	if s.forms != nil {
		forms, s.early = append(s.early, forms...), nil
		s.gather(now, h, forms)
	} else {
		s.early = append(s.early, forms...)
	}
}

func (s *survivor) send(h sim.Handle, to uint32, kind byte, b []byte) {
	b = append([]byte{kind}, b...)
	node := s.nodes[to]
	if len(s.unsent[node]) == 0 && h.Write(node, b, nil) {
		return
	}
	s.unsent[node] = append(s.unsent[node], b)
	h.Dial(node)
}

// form begins to form with those that live.
func (s *survivor) form(h sim.Handle, failed []uint32) {
	for rank := range uint32(len(s.nodes)) {
		if !slices.Contains(failed, rank) {
			s.places = append(s.places, rank)
		}
	}
	own := slices.Index(s.places, s.rank)
	tree := ranktree.KNomial(len(s.places), 2)
	parent, ok := tree.Parent(own)
	if !ok {
		parent = forming.NoParent
	}
	s.forms = forming.New(parent, tree.Children(own), uint64(h.ID())+1, nil)
	for _, next := range append(tree.Children(own), parent) {
		if next >= 0 { // the connection is there, or will be when something is sent
			s.early = append(s.early, early{from: s.places[next]})
		}
	}
}

// gather takes what neighbours say of who is there.
func (s *survivor) gather(now core.Time, h sim.Handle, all []early) {
	var in []forming.Input
	for _, e := range all {
		x := forming.Input{From: uint32(slices.Index(s.places, e.from))}
		if len(e.bytes) > 0 {
			m, err := wire.ReadFrame(e.bytes)
			if err != nil {
				panic(err)
			}
			x.Missing = m.(*wire.Missing)
		}
		in = append(in, x)
	}
	var out forming.Output
	s.forms.Step(now, in, &out)
	for _, m := range out.Sends {
		s.send(h, s.places[m.To], toForm, m.Frame)
	}
	if out.Formed {
		s.formed = true
		h.Note("has formed with %d", len(s.places))
		// The survivors agree that they have.
		s.in = append(s.in[:0], agree.Input{Kind: agree.Start, Flags: 1})
		s.out.Reset()
		s.agree.Step(now, s.in, &s.out)
		for _, m := range s.out.Sends {
			s.send(h, m.To, toAgree, m.Bytes)
		}
		s.decided = append(s.decided, s.out.Decided...)
	}
}

// shrinking is a group that loses members, and the survivors' nodes.
type shrinking struct {
	*testing.T
	world     *sim.World
	fabric    *Fabric
	group     *Group
	hosts     []topology.NodeID
	survivors []*survivor
	nodes     []sim.NodeID // theirs
	dead      []int
	begun     []bool
}

func (s *shrinking) isDead(rank int) bool { return slices.Contains(s.dead, rank) }

// all reports whether something holds for all survivors.
func (s *shrinking) all(holds func(rank int) bool) func() bool {
	next := 0
	return func() bool {
		for ; next < len(s.hosts); next++ {
			if !s.isDead(next) && !holds(next) {
				return false
			}
		}
		return true
	}
}

// until runs until something holds for all survivors, and returns how long that takes.
func (s *shrinking) until(what string, holds func(rank int) bool) time.Duration {
	s.Helper()
	start := s.world.Now()
	if err := s.world.Await(patience, s.all(holds)); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
	return s.world.Now().Sub(start)
}

// newShrinking makes a group of n members, on a tree of switches.
func newShrinking(t *testing.T, n int, dead ...int) *shrinking {
	t.Helper()
	cfg := sim.DefaultConfig(uint64(n))
	cfg.Link = sim.Link{Delay: 10 * time.Microsecond, Jitter: 5 * time.Microsecond}
	cfg.Service = 20 * time.Microsecond
	cfg.Budget = 50_000_000
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	perLeaf := min(n/2, 32)
	g, err := topology.LeafSpine(perLeaf, n/perLeaf, 4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(w, g, FabricConfig{Plan: 5 * time.Millisecond, Store: 2 * time.Millisecond, Redial: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := &shrinking{T: t, world: w, fabric: f, dead: dead, begun: make([]bool, n)}
	for h := range n {
		s.hosts = append(s.hosts, topology.NodeID(h))
	}
	s.group = s.newGroup("before", s.hosts)
	s.until("the group is on a tree", func(rank int) bool { return s.group.isOffloaded(rank) })
	for rank := range n {
		s.nodes = append(s.nodes, sim.NodeID(w.Nodes()+rank))
	}
	ranks := map[sim.NodeID]uint32{}
	for rank, id := range s.nodes {
		ranks[id] = uint32(rank)
	}
	for rank := range uint32(n) {
		c, err := agree.New(agree.Config{Rank: rank, Size: n})
		if err != nil {
			t.Fatal(err)
		}
		v := &survivor{rank: rank, agree: c, nodes: s.nodes, ranks: ranks, unsent: map[sim.NodeID][][]byte{}}
		s.survivors = append(s.survivors, v)
		w.Add(fmt.Sprintf("survivor-%d", rank), v)
	}
	return s
}

func (s *shrinking) newGroup(name string, hosts []topology.NodeID) *Group {
	s.Helper()
	g, err := s.fabric.NewGroup(name, hosts, endpoint.Config{Group: 1, Cookie: 7, ChunkBytes: 1024, Window: 64, Timing: session.DefaultTiming()})
	if err != nil {
		s.Fatal(err)
	}
	return g
}

func (g *Group) isOffloaded(rank int) bool {
	e := g.Hosts[rank].Entered
	return len(e) > 0 && e[len(e)-1].Offload
}

// TestShrinkTakesLittle: the survivors of a member's death have a tree of their own within 100 ms of
// simulated time after all have heard of it. Messages take 10 to 35 us each, of which up to 20 us are
// the hosts'; the manager chooses a tree in 5 ms and stores what it does in 2 ms.
func TestShrinkTakesLittle(t *testing.T) {
	for _, n := range []int{8, 64, 512} {
		for _, dead := range [][]int{{n - 1}, {0}, {0, 1, n / 2}} {
			t.Run(fmt.Sprint(n, dead), func(t *testing.T) {
				s := newShrinking(t, n, dead...)
				w := s.world
				for _, rank := range dead {
					w.Crash(s.group.Nodes[rank])
					w.Crash(s.nodes[rank])
				}
				detection := s.until("all have heard", func(rank int) bool { return s.group.Hosts[rank].Ended != nil })
				heard := w.Now()
				for rank := range n {
					if !s.isDead(rank) {
						w.Command(s.nodes[rank], []agree.Input{{Kind: agree.Dead, Rank: s.group.Hosts[rank].Ended.Rank}, {Kind: agree.Start}})
					}
				}
				agreement := s.until("all have agreed", func(rank int) bool { return len(s.survivors[rank].decided) > 0 })
				formed := s.until("all have formed", func(rank int) bool { return s.survivors[rank].formed })
				confirmed := s.until("all know that", func(rank int) bool { return len(s.survivors[rank].decided) > 1 })
				var left []topology.NodeID
				for _, rank := range s.survivors[s.survivors[n/2+1].places[0]].places {
					left = append(left, s.hosts[rank])
				}
				if len(left) != n-len(dead) {
					t.Fatalf("%d members are left, want %d", len(left), n-len(dead))
				}
				for rank, v := range s.survivors {
					if s.isDead(rank) {
						continue
					}
					for _, d := range v.decided {
						if !slices.Equal(d.Failed, s.survivors[left[0]].decided[0].Failed) {
							t.Fatalf("rank %d decides %v", rank, d)
						}
					}
				}
				after := s.newGroup("after", left)
				start := w.Now()
				next := 0
				if err := w.Await(patience, func() bool {
					for next < len(left) && after.isOffloaded(next) {
						next++
					}
					return next == len(left)
				}); err != nil {
					t.Fatal(err)
				}
				tree := w.Now().Sub(start)
				t.Logf("%d members, %v die: detection %v; agreement %v, forming %v, agreement that all have %v, tree %v: %v in all",
					n, dead, detection, agreement, formed, confirmed, tree, w.Now().Sub(heard))
				if beyond := w.Now().Sub(heard); beyond > 100*time.Millisecond {
					t.Errorf("%v beyond detection", beyond)
				}
			})
		}
	}
}
