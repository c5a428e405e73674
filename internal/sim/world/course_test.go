package world

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// course is a row of sums by eight members on a tree of three levels of
// switches with two children each, with the timing of production. All links
// have a rate and a queue, and lose, repeat and delay packets.
type course struct {
	rate   float64       // of each link, bits a second
	uphill float64       // towards the root, the rate is this part of that
	room   time.Duration // longest wait in a queue: what would wait longer is dropped; 0: any
	packet time.Duration // that a switch takes for a packet

	up, down float64       // share of the packets that is lost towards the root, and from it
	double   float64       // share of the packets that come twice
	stray    time.Duration // what a tenth of the packets, and all copies, take longer at most
	pause    time.Duration // that a switch stops for, now and then, and runs for at least as long before; 0: none does

	window uint32
	sums   []int // bytes of each
	seed   uint64
}

const courseLimit = 20 * time.Minute

// courseNode is a member that does one sum after the other, with pauses of
// different lengths before each.
type courseNode struct {
	leafNode
	rng     *rand.Rand
	rest    []session.Operation
	vectors [][]byte  // of all, in place
	next    core.Time // when the first of rest begins
	loss    *session.Loss
}

func (n *courseNode) Deadline() core.Time { return n.leafNode.Deadline().Earlier(n.next) }

func (n *courseNode) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	if now >= n.next {
		n.next = core.Never
		if err := n.session.Start(n.rest[0]); err != nil {
			panic(err)
		}
		n.rest = n.rest[1:]
	}
	done := n.done
	n.leafNode.Step(now, batch, h)
	if n.out.Loss != nil {
		loss := *n.out.Loss
		n.loss = &loss
	}
	if n.done > done && len(n.rest) > 0 {
		n.next = now.Add(n.pause())
	}
}

// pause returns how long the member takes between two operations: most are
// soon, some are late.
func (n *courseNode) pause() time.Duration {
	longest := time.Millisecond
	switch n.rng.IntN(20) {
	case 0:
		longest = 10 * time.Second
	case 1:
		longest = 300 * time.Millisecond
	}
	return time.Duration(n.rng.Int64N(int64(longest)))
}

// courseWorld is a world in which a course is run.
type courseWorld struct {
	*sim.World
	course
	members  []*courseNode
	nodes    []sim.NodeID       // of members
	switches []sim.NodeID       // in the order of their levels, the root first
	level    map[sim.NodeID]int // of switches from 0, of members 3
	free     map[[2]sim.NodeID]core.Time
	busy     map[sim.NodeID]core.Time
	rng      *rand.Rand
}

func newCourse(tb testing.TB, c course) *courseWorld {
	tb.Helper()
	sw, err := sim.New(sim.Config{Seed: c.seed, Budget: 200_000_000})
	if err != nil {
		tb.Fatal(err)
	}
	w := &courseWorld{
		World: sw, course: c, rng: rand.New(rand.NewPCG(c.seed, 0xC0)),
		level: map[sim.NodeID]int{}, free: map[[2]sim.NodeID]core.Time{}, busy: map[sim.NodeID]core.Time{},
	}
	tree := Regular(3, 2)
	for v := range tree.Vertices {
		id := sw.Add("", &Switch{})
		w.switches = append(w.switches, id)
		if w.level[id] = 0; v > 0 {
			w.level[id] = w.level[w.switches[tree.Vertices[v].Parent]] + 1
		}
	}
	g := &Group{World: sw}
	for r := range tree.Leaves {
		m := w.member(tb, uint32(r))
		id := sw.Add("", m)
		g.Nodes, w.level[id] = append(g.Nodes, id), 3
	}
	w.nodes = g.Nodes
	links := g.Install(tree, Terms{
		Config: switchreduce.Config{Group: 1, Epoch: 2, Window: c.window, ChunkBytes: lossyChunk, Probes: manager.DefaultConfig().SwitchProbes()},
		Port:   treePort, Switches: w.switches,
	})
	for r, m := range w.members {
		if err := m.session.Enter(0, links[r], session.Decision{}, &session.Output{}); err != nil {
			tb.Fatal(err)
		}
	}
	w.Intercept(w.fate)
	if c.pause > 0 {
		w.stop()
	}
	return w
}

func (w *courseWorld) member(tb testing.TB, rank uint32) *courseNode {
	tb.Helper()
	s, err := session.New(session.Config{Rank: rank, ChunkBytes: lossyChunk, Window: w.window}, 0)
	if err != nil {
		tb.Fatal(err)
	}
	m := &courseNode{leafNode: leafNode{session: s}, rng: w.rng, next: core.Time(w.rng.Int64N(int64(time.Millisecond)))}
	for _, size := range w.sums {
		v := make([]byte, size)
		for i := 0; i < size; i += 4 {
			binary.LittleEndian.PutUint32(v[i:], uint32(i)*(rank+1))
		}
		m.vectors = append(m.vectors, v)
		m.rest = append(m.rest, session.Operation{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: size / 4, In: v, Out: v,
		})
	}
	w.members = append(w.members, m)
	return m
}

// fate gives every packet its time on its link, and loses, repeats and delays
// some.
func (w *courseWorld) fate(_ sim.Kind, from, to sim.Addr, b []byte, fate *sim.Fate) {
	rate, loss := w.rate, w.down
	if w.level[from.Node] > w.level[to.Node] {
		rate, loss = w.rate*w.uphill, w.up
	}
	way := [2]sim.NodeID{from.Node, to.Node}
	begin := max(w.free[way], w.Now())
	if w.rng.Float64() < loss || w.room > 0 && begin.Sub(w.Now()) > w.room {
		fate.Lose = true
		return
	}
	w.free[way] = begin.Add(time.Duration(8 * float64(len(b)+frameBytes) / rate * 1e9))
	at := w.free[way].Add(20 * time.Microsecond)
	if w.level[to.Node] < 3 && w.packet > 0 {
		at = max(w.busy[to.Node], at).Add(w.packet)
		w.busy[to.Node] = at
	}
	fate.Delay = at.Sub(w.Now())
	if w.rng.Float64() < w.double {
		fate.Copy, fate.CopyDelay = true, fate.Delay+w.upTo(w.stray)
	}
	if w.rng.IntN(10) == 0 {
		fate.Delay += w.upTo(w.stray)
	}
}

func (w *courseWorld) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(d) + 1))
}

// stop has switches stop, one after the other.
func (w *courseWorld) stop() {
	w.After(2*w.pause+w.upTo(8*w.pause), "a switch stops", func() {
		w.Pause(w.switches[w.rng.IntN(len(w.switches))], w.pause)
		w.stop()
	})
}

// lost returns a member that has found the tree lost; nil if none has.
func (w *courseWorld) lost() *courseNode {
	for _, m := range w.members {
		if m.loss != nil {
			return m
		}
	}
	return nil
}

// run runs the course to its end, or to the loss of the tree, which it returns.
func (w *courseWorld) run(tb testing.TB) *session.Loss {
	tb.Helper()
	err := w.Await(courseLimit, func() bool {
		done := true
		for _, m := range w.members {
			done = done && m.done == len(w.sums)
		}
		return done || w.lost() != nil
	})
	if err != nil {
		tb.Fatalf("%+v: %v", w.course, err)
	}
	if m := w.lost(); m != nil {
		return m.loss
	}
	return nil
}
