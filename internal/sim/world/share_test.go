package world

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// shared is a fabric of two leaves and a spine with two hosts at each leaf, on
// which some groups of all hosts, and perhaps a TCP stream, have always
// something to send. Every link has a queue that drops what it has no room for.
type shared struct {
	*sim.World
	room   time.Duration // most that a packet waits on a link
	places map[sim.NodeID]int
	free   map[[2]int]core.Time
	queued map[[2]int]*waits
	groups [][]*busyNode
	tcp    *tcpNode
	drops  int
}

// waits are how long packets have waited on a link.
type waits struct {
	n   int
	sum time.Duration
}

const (
	sharedHosts = 4
	sharedChunk = 1432
	smallQueue  = 2 * 64 << 10 / 1514 // packets of a stream in its host's queue: two buffers of 64 KiB
)

// The places of a fabric: its switches, then its hosts.
const (
	spinePlace = iota
	leftPlace
	rightPlace
	firstHostPlace
)

// busyNode is a member that sums the same vector for ever.
type busyNode struct {
	leafNode
	operation session.Operation
}

func (b *busyNode) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	before := b.done
	b.leafNode.Step(now, batch, h)
	if b.done > before {
		if err := b.session.Start(b.operation); err != nil {
			panic(err)
		}
		b.leafNode.Step(now, nil, h)
	}
}

// newShared makes a fabric in which groups of the given windows begin one after
// the other. hops are the times that packets of each take on a link beside
// queue and length.
func newShared(tb testing.TB, seed uint64, windows []uint32, hops []time.Duration) *shared {
	tb.Helper()
	sw, err := sim.New(sim.Config{Seed: seed, Budget: 100_000_000})
	if err != nil {
		tb.Fatal(err)
	}
	s := &shared{
		World: sw, room: 50 * time.Millisecond,
		places: map[sim.NodeID]int{}, free: map[[2]int]core.Time{}, queued: map[[2]int]*waits{},
	}
	f := shape{on: []int{0, 1, 2}, parents: []int{0, 0}, leaves: []int{1, 1, 2, 2}}
	var ids []sim.NodeID
	for i := range f.on {
		ids = append(ids, sw.Add("", &Switch{}))
		s.places[ids[i]] = i
	}
	group := map[sim.NodeID]int{}
	for k, window := range windows {
		g := &Group{World: sw}
		var members []*busyNode
		for r := range sharedHosts {
			m := newBusy(tb, uint32(r), window)
			members = append(members, m)
			id := sw.Add("", m)
			g.Nodes = append(g.Nodes, id)
			s.places[id], group[id] = firstHostPlace+r, k
		}
		links := g.Install(f.tree(), Terms{
			Config: switchreduce.Config{Group: uint32(k), Epoch: 2, Window: window, ChunkBytes: sharedChunk, Probes: lossyProbes},
			Port:   treePort + uint16(k), Switches: ids,
		})
		for r, m := range members {
			if err := m.session.Enter(0, links[r], session.Decision{}, &session.Output{}); err != nil {
				tb.Fatal(err)
			}
			start := time.Duration(k)*100*time.Millisecond + time.Duration(sw.Rand().Int64N(int64(time.Millisecond)))
			sw.After(start, "begins", func() { sw.Command(g.Nodes[r], m.operation) })
		}
		s.groups = append(s.groups, members)
	}
	s.link(func(from, to sim.NodeID) time.Duration {
		k, ok := group[from]
		if !ok {
			k = group[to]
		}
		return hops[k%len(hops)]
	})
	return s
}

func newBusy(tb testing.TB, rank, window uint32) *busyNode {
	tb.Helper()
	c, err := session.New(session.Config{Rank: rank, ChunkBytes: sharedChunk, Window: window}, 0)
	if err != nil {
		tb.Fatal(err)
	}
	v := make([]byte, 8000*sharedChunk)
	return &busyNode{leafNode: leafNode{session: c}, operation: session.Operation{
		Collective: wire.Allreduce, Function: reduce.BOr, Element: reduce.Uint32, Elements: len(v) / 4, In: v, Out: v,
	}}
}

// link gives every link its rate and its queue.
func (s *shared) link(hop func(from, to sim.NodeID) time.Duration) {
	s.Intercept(func(_ sim.Kind, from, to sim.Addr, b []byte, fate *sim.Fate) {
		size := len(b)
		if size == tcpHeader {
			size = tcpPacket
		} else if size == tcpAck {
			fate.Delay = 100 * time.Microsecond // acknowledgements have a way of their own
			return
		}
		way := [2]int{s.places[from.Node], s.places[to.Node]}
		begin := max(s.free[way], s.Now())
		wait := begin.Sub(s.Now())
		if wait > s.room {
			s.drops++
			fate.Lose = true
			return
		}
		w := s.queued[way]
		if w == nil {
			w = &waits{}
			s.queued[way] = w
		}
		w.n, w.sum = w.n+1, w.sum+wait
		s.free[way] = begin.Add(time.Duration(8 * float64(size+frameBytes) / lossyRate * 1e9))
		fate.Delay = s.free[way].Sub(s.Now()) + hop(from.Node, to.Node)
	})
}

// measure lets time pass and returns what each group, and the stream at the
// end, had of a link, and the longest mean wait on a link.
func (s *shared) measure(tb testing.TB, d time.Duration) (shares []float64, queue time.Duration) {
	tb.Helper()
	clear(s.queued)
	var before []uint64
	for _, g := range s.groups {
		before = append(before, g[0].session.Counters().Results)
	}
	tcp := 0
	if s.tcp != nil {
		tcp = s.tcp.acked
	}
	s.pass(tb, d)
	packets := lossyRate * d.Seconds() / 8 / (sharedChunk + wire.HeaderSize + frameBytes)
	for i, g := range s.groups {
		shares = append(shares, float64(g[0].session.Counters().Results-before[i])/packets)
	}
	if s.tcp != nil {
		shares = append(shares, float64(s.tcp.acked-tcp)/packets)
	}
	for _, w := range s.queued {
		queue = max(queue, w.sum/time.Duration(w.n))
	}
	return shares, queue
}

func (s *shared) pass(tb testing.TB, d time.Duration) {
	tb.Helper()
	over := false
	s.After(d, "over", func() { over = true })
	if err := s.Await(d+time.Second, func() bool { return over }); err != nil {
		tb.Fatal(err)
	}
	for k, g := range s.groups {
		for r, m := range g {
			if m.lost {
				tb.Fatalf("rank %d of group %d takes the tree for lost", r, k)
			}
		}
	}
}

// stream adds a TCP stream from the first host to its leaf, on the link of the
// host's contributions, with so many packets on their way at most, unless that
// is 0.
func (s *shared) stream(small uint32) {
	s.tcp = &tcpNode{size: 10, threshold: math.Inf(1), small: small}
	id := s.Add("", s.tcp)
	to := s.Add("", tcpSink{})
	s.tcp.to = sim.Addr{Node: to}
	s.places[id], s.places[to] = firstHostPlace, leftPlace
	s.Command(id, nil)
}

// fairness is Jain's index.
func fairness(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// TestGroupsShareAFabric: groups of all windows get like shares of the links,
// which they fill with queues of a few milliseconds; nothing is lost.
func TestGroupsShareAFabric(t *testing.T) {
	for _, row := range []struct {
		windows []uint32
		hops    []time.Duration // of the groups in turn
		index   float64
	}{
		{[]uint32{64}, []time.Duration{20 * time.Microsecond}, 1},
		{[]uint32{512}, []time.Duration{20 * time.Microsecond}, 1},
		{[]uint32{64, 64}, []time.Duration{20 * time.Microsecond}, 0.98},
		{[]uint32{256, 256}, []time.Duration{20 * time.Microsecond}, 0.98},
		{[]uint32{512, 64}, []time.Duration{20 * time.Microsecond}, 0.98},
		{[]uint32{256, 256}, []time.Duration{20 * time.Microsecond, 100 * time.Microsecond}, 0.95},
		{[]uint32{256, 256, 256, 256}, []time.Duration{20 * time.Microsecond, 60 * time.Microsecond}, 0.95},
	} {
		for seed := range uint64(3) {
			s := newShared(t, seed, row.windows, row.hops)
			s.pass(t, time.Second)
			shares, queue := s.measure(t, time.Second)
			sum := 0.0
			for _, v := range shares {
				sum += v
			}
			announced := fmt.Sprintf("windows %d, hops %v, seed %d: shares %.3f, queue %v, %d dropped", row.windows, row.hops, seed, shares, queue, s.drops)
			if sum < 0.97 || fairness(shares) < row.index || queue > 11*time.Millisecond || s.drops > 0 {
				t.Error(announced)
			}
		}
	}
}

// TestGroupBesideTCP: neither a group nor a TCP stream on one of its links gets
// less than a third, once both have found their shares, whether the stream fills
// the queue or its host keeps it from that (TCP small queues); and when the
// stream has ended, the group has the link, and a short queue.
func TestGroupBesideTCP(t *testing.T) {
	for _, row := range []struct {
		window uint32
		small  uint32 // packets that the stream's host lets into its queue; 0: any number
	}{{512, 0}, {256, smallQueue}} {
		for seed := range uint64(3) {
			s := newShared(t, seed, []uint32{row.window}, []time.Duration{20 * time.Microsecond})
			s.After(time.Duration(seed)*time.Second, "stream", func() { s.stream(row.small) })
			s.pass(t, 5*time.Second+time.Duration(seed)*time.Second)
			if shares, _ := s.measure(t, 10*time.Second); shares[0] < 1./3 || shares[1] < 1./3 {
				t.Errorf("window %d, seed %d: shares %.2f", row.window, seed, shares)
			}
			s.tcp.ended = true
			s.pass(t, 7*time.Second)
			if shares, queue := s.measure(t, time.Second); shares[0] < 0.97 || queue > 6*time.Millisecond {
				t.Errorf("window %d, seed %d: alone again it has %.2f, with a queue of %v", row.window, seed, shares[0], queue)
			}
		}
	}
}

// BenchmarkShares reports, in the world's time, what groups, and a TCP stream if
// there is one, have of the links that they share: the smallest share, Jain's
// index of all, what they fill, and the longest mean wait on a link.
//
//	go test -run '^$' -bench Shares -benchtime 3x ./internal/sim/world
func BenchmarkShares(b *testing.B) {
	for _, row := range []struct {
		windows []uint32
		isTCP   bool
		small   uint32
	}{
		{[]uint32{64}, false, 0}, {[]uint32{256}, false, 0}, {[]uint32{256, 256}, false, 0}, {[]uint32{512, 64}, false, 0},
		{[]uint32{256, 256, 256, 256}, false, 0}, {[]uint32{256}, true, 0}, {[]uint32{512}, true, 0}, {[]uint32{512, 512}, true, 0},
		{[]uint32{256}, true, smallQueue},
	} {
		b.Run(fmt.Sprintf("windows=%v/tcp=%v/small=%d", row.windows, row.isTCP, row.small), func(b *testing.B) {
			var index, sum, least, queue float64
			for i := range b.N {
				s := newShared(b, uint64(i), row.windows, []time.Duration{20 * time.Microsecond})
				if row.isTCP {
					s.After(time.Second, "stream", func() { s.stream(row.small) })
				}
				s.pass(b, 5*time.Second)
				shares, wait := s.measure(b, 5*time.Second)
				smallest := 1.0
				for _, v := range shares {
					sum += v
					smallest = min(smallest, v)
				}
				index, least, queue = index+fairness(shares), least+smallest, queue+wait.Seconds()
			}
			n := float64(b.N)
			b.ReportMetric(least/n, "least")
			b.ReportMetric(index/n, "jain")
			b.ReportMetric(sum/n, "filled")
			b.ReportMetric(1e3*queue/n, "queue-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
