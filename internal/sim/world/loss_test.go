package world

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// lossy is an allreduce of eight members on two leaves and a spine, over links
// that have a rate, and each of which loses a share of all that is sent.
type lossy struct {
	bytes int
	hop   time.Duration // that a packet takes beside its own length and the queue
	loss  float64       // share of the packets that each node sends
	seed  uint64
}

// The links carry lossyRate bits a second in each direction; Ethernet, IPv4 and
// UDP add frameBytes to a packet.
const (
	lossyRate    = 200e6
	lossyMembers = 8
	lossyWindow  = 64
	lossyChunk   = 1432
	lossyProbes  = 8 // of switches
	frameBytes   = 14 + 20 + 8
)

// outcome is what became of it.
type outcome struct {
	took   time.Duration
	lost   int // packets
	repair int // packets sent that are neither the first contribution nor the first result of a chunk on their link
	most   int // of these, to and from the switch that had most
}

// lossyWorld is a world in which one allreduce runs.
type lossyWorld struct {
	*sim.World
	members []*leafNode
	out     [][]byte
	want    []byte
	first   sim.NodeID // of the members; those before are switches
	outcome outcome
	repairs map[sim.NodeID]int
}

// run returns what comes of c.
func (c lossy) run(tb testing.TB) outcome {
	tb.Helper()
	w := c.world(tb)
	w.link(c)
	finished := func() bool {
		done := true
		for _, m := range w.members {
			if m.lost {
				return true // and the others would wait for it for ever
			}
			done = done && m.done > 0
		}
		return done
	}
	if err := w.Await(time.Hour, finished); err != nil {
		tb.Fatal(err)
	}
	for r, m := range w.members {
		if m.lost {
			tb.Fatalf("rank %d takes the tree for lost", r)
		}
		if string(w.out[r]) != string(w.want) {
			tb.Errorf("rank %d has a wrong result", r)
		}
	}
	w.outcome.took = time.Duration(w.Now())
	for _, n := range w.repairs {
		w.outcome.most = max(w.outcome.most, n)
	}
	return w.outcome
}

// world makes switches and members, who begin at once.
func (c lossy) world(tb testing.TB) *lossyWorld {
	tb.Helper()
	sw, err := sim.New(sim.Config{Seed: c.seed, Budget: 20_000_000})
	if err != nil {
		tb.Fatal(err)
	}
	w := &lossyWorld{World: sw, repairs: map[sim.NodeID]int{}}
	f := shape{on: []int{0, 1, 2}, parents: []int{0, 0}}
	var ids []sim.NodeID
	for range f.on {
		ids = append(ids, w.Add("", &Switch{}))
	}
	g := &Group{World: sw}
	for r := range lossyMembers {
		s, err := session.New(session.Config{Rank: uint32(r), ChunkBytes: lossyChunk, Window: lossyWindow}, 0)
		if err != nil {
			tb.Fatal(err)
		}
		m := &leafNode{session: s}
		w.members = append(w.members, m)
		g.Nodes = append(g.Nodes, w.Add("", m))
		f.leaves = append(f.leaves, 1+2*r/lossyMembers)
	}
	w.first = g.Nodes[0]
	links := g.Install(f.tree(), Terms{
		Config: switchreduce.Config{Group: 1, Epoch: 2, Window: lossyWindow, ChunkBytes: lossyChunk, Probes: lossyProbes},
		Port:   treePort, Switches: ids,
	})
	for r, m := range w.members {
		if err := m.session.Enter(0, links[r], session.Decision{}, &session.Output{}); err != nil {
			tb.Fatal(err)
		}
	}
	w.begin(c.bytes, g.Nodes)
	return w
}

// begin has every member sum a vector of that many bytes.
func (w *lossyWorld) begin(size int, nodes []sim.NodeID) {
	w.want = make([]byte, size)
	for r, id := range nodes {
		in, out := make([]byte, size), make([]byte, size)
		for i := 0; i < size; i += 4 {
			v := uint32(i * (r + 1))
			binary.LittleEndian.PutUint32(in[i:], v)
			binary.LittleEndian.PutUint32(w.want[i:], binary.LittleEndian.Uint32(w.want[i:])+v)
		}
		w.out = append(w.out, out)
		w.Command(id, session.Operation{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: size / 4,
			In: in, Out: out,
		})
	}
}

// link gives every way its rate, a queue without end, and its losses.
func (w *lossyWorld) link(c lossy) {
	rng := rand.New(rand.NewPCG(c.seed, 0x1055))
	free := map[[2]sim.NodeID]core.Time{}
	seen := map[[3]uint32]bool{}
	w.Intercept(func(_ sim.Kind, from, to sim.Addr, b []byte, fate *sim.Fate) {
		p := packet{from: from.Node, to: to.Node, offload: true}
		if _, fault := p.Decode(b); fault != wire.NoFault {
			panic(fault)
		}
		w.count(&p, seen)
		if rng.Float64() < c.loss {
			w.outcome.lost++
			fate.Lose = true
			return
		}
		way := [2]sim.NodeID{from.Node, to.Node}
		free[way] = max(free[way], w.Now()).Add(time.Duration(8 * float64(len(b)+frameBytes) / lossyRate * 1e9))
		fate.Delay = free[way].Sub(w.Now()) + c.hop
	})
}

func (w *lossyWorld) count(p *packet, seen map[[3]uint32]bool) {
	way := [3]uint32{uint32(p.from), uint32(p.to), p.Chunk}
	if (p.Type == wire.Contribution || p.Type == wire.Result) && !seen[way] {
		seen[way] = true
		return
	}
	w.outcome.repair++
	for _, id := range []sim.NodeID{p.from, p.to} {
		if id < w.first {
			w.repairs[id]++
		}
	}
}

// TestLossCostsLittle: what is lost is repaired while the rest goes on, with
// about two packets a child and lost packet at each switch.
func TestLossCostsLittle(t *testing.T) {
	const children = 4 + 1 // and the parent, of a leaf
	for _, row := range []struct{ loss, ratio float64 }{{0.001, 1.1}, {0.01, 1.3}, {0.1, 4}} {
		var with, without time.Duration
		for seed := range uint64(4) {
			c := lossy{bytes: 2 << 20, hop: 20 * time.Microsecond, seed: seed}
			without += c.run(t).took
			c.loss = row.loss
			o := c.run(t)
			with += o.took
			if o.most > 2*children*o.lost {
				t.Errorf("loss %v, seed %d: %d packets of repair at a switch, %d were lost", row.loss, seed, o.most, o.lost)
			}
		}
		if ratio := float64(with) / float64(without); ratio > row.ratio {
			t.Errorf("loss %v: %.2f of the time without, want at most %v", row.loss, ratio, row.ratio)
		}
	}
}

// BenchmarkLoss reports what losses cost, in the world's time, which is the same
// on every machine: the time as a share of that without, and the packets of
// repair for each packet lost.
//
//	go test -run '^$' -bench 'Loss$' -benchtime 3x ./internal/sim/world
func BenchmarkLoss(b *testing.B) {
	for _, size := range []int{1 << 20, 16 << 20} {
		for _, hop := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond} {
			for _, loss := range []float64{0.001, 0.01, 0.1} {
				b.Run(fmt.Sprintf("%dMiB/hop=%v/loss=%v", size>>20, hop, loss), func(b *testing.B) {
					benchmarkLoss(b, lossy{bytes: size, hop: hop, loss: loss})
				})
			}
		}
	}
}

func benchmarkLoss(b *testing.B, c lossy) {
	clean := c
	clean.loss = 0
	without := clean.run(b).took
	var all outcome
	for i := range b.N {
		c.seed = uint64(i)
		o := c.run(b)
		all.took, all.lost, all.repair = all.took+o.took, all.lost+o.lost, all.repair+o.repair
	}
	mean := all.took / time.Duration(b.N)
	b.ReportMetric(float64(mean)/float64(without), "ratio")
	b.ReportMetric(float64(mean)/1e6, "ms")
	b.ReportMetric(float64(all.repair)/float64(max(all.lost, 1)), "repairs/loss")
	b.ReportMetric(0, "ns/op")
}
