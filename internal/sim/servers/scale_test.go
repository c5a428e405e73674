package servers

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
	"github.com/tributary-fabric/tributary/ranktree"
)

// The published model: o is the time between two sends, l that from send to
// receipt.
const (
	o = 1 * time.Microsecond
	l = 3 * time.Microsecond
)

// row is what one broadcast over n servers took.
type row struct {
	lastLeaf  time.Duration // from the root's send to the last receipt
	completed time.Duration // to the root's end
	sent      uint64        // messages of the root
	taken     uint64
	routes    int // places in trees that all servers together keep
}

// scale broadcasts over an out-of-band group of n perfect servers in a network
// of o and l.
func scale(tb testing.TB, n int, shape broadcastmsg.Tree, o, l time.Duration) row {
	tb.Helper()
	cfg := sim.Config{Seed: 1, Link: sim.Link{Delay: l}}
	w, err := sim.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	c := NewCrowd(w, n, Habits{Gap: o})
	c.Config = func(node broadcastmsg.Node, life uint64) broadcast.Config {
		cfg := broadcast.DefaultConfig(node, life)
		cfg.Receive, cfg.RoundTrip = 0, time.Second
		return cfg
	}
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	members := make([]sim.NodeID, n)
	for i := range members {
		members[i] = sim.NodeID(i)
	}
	all, err := broadcast.NewMembers(service, c.Targets(members))
	if err != nil {
		tb.Fatal(err)
	}
	index := broadcastmsg.Index{1}
	c.mapping[index] = all
	var began, ended core.Time
	w.Command(0, func(s *Server) {
		group, err := s.core.CreateOutOfBand(service, index, shape)
		if err != nil {
			panic(err)
		}
		began = s.now
		c.Send(s, members, broadcast.Broadcast{Group: group, Members: all})
	})
	done := func() bool { return len(c.broadcasts) > 0 && c.broadcasts[0].ends > 0 }
	if err := w.Await(time.Second, done); err != nil {
		tb.Fatal(err)
	}
	ended = w.Now()
	if b := &c.broadcasts[0]; b.err != nil || len(c.wrong) > 0 || len(b.runs) != n {
		tb.Fatalf("%v, %v, %d of %d ran", b.err, c.wrong, len(b.runs), n)
	}
	sent, taken := w.NodeTraffic(0, sim.Datagrams)
	r := row{lastLeaf: c.LastRun.Sub(began), completed: ended.Sub(began), sent: sent.Packets, taken: taken.Packets}
	for _, s := range c.servers {
		r.routes += s.core.Counters().Routes
	}
	return r
}

// formula is when the last leaf of a full k-nomial tree of a depth has the
// message: the greatest (K-1) k o + (l-o) x of its leaves, which are on the
// levels x = 1 to k. With K = 2 it is the published one; at every level below a
// node on the way, its K-1 sends are waited for, or one of them is taken.
func formula(radix, depth int, o, l time.Duration) time.Duration {
	sends := time.Duration((radix-1)*depth) * o
	return max(sends+(l-o), sends+(l-o)*time.Duration(depth))
}

// levels is when the last leaf of a complete k-ary tree of a depth has the
// message, if its last level is full: on each level the last of K sends.
func levels(arity, depth int, o, l time.Duration) time.Duration {
	return time.Duration(depth) * (time.Duration(arity)*o + (l - o))
}

// TestPoint44And49GrowAsLogN: the last leaf has the message when the published
// formula says, the root handles as many messages as it has children, a server
// keeps its own place in the tree, and all of that grows as log n.
func TestPoint44And49GrowAsLogN(t *testing.T) {
	for _, ol := range [][2]time.Duration{{o, l}, {l, o}, {o, o}} {
		for k := 2; k <= 12; k += 2 {
			n := 1 << k
			r := scale(t, n, broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: 2}, ol[0], ol[1])
			want := formula(2, k, ol[0], ol[1])
			t.Logf("binomial, o=%v l=%v n=%d: last leaf %v, formula %v; completed %v; root sent %d, took %d", ol[0], ol[1], n, r.lastLeaf, want, r.completed, r.sent, r.taken)
			if r.lastLeaf != want || r.sent != uint64(k) || r.taken != uint64(k) || r.routes != n {
				t.Errorf("n=%d: %+v, want %v, %d messages each way and one place a server", n, r, want, k)
			}
			if bound := 2*want + time.Duration(k)*ol[0]; r.completed > bound {
				t.Errorf("n=%d: completed after %v, more than %v", n, r.completed, bound)
			}
		}
	}
}

// TestPoint49Formulas: the same for other radices, and for complete trees.
func TestPoint49Formulas(t *testing.T) {
	for _, ol := range [][2]time.Duration{{o, l}, {l, o}, {o, o}} {
		for _, radix := range []int{3, 4, 8} {
			nomial, ary := 1, 1
			for depth := 1; depth <= 3; depth++ {
				nomial *= radix
				ary = ary*radix + 1
				r := scale(t, nomial, broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: uint16(radix)}, ol[0], ol[1])
				if want := formula(radix, depth, ol[0], ol[1]); r.lastLeaf != want {
					t.Errorf("%d-nomial, o=%v l=%v n=%d: last leaf %v, formula %v", radix, ol[0], ol[1], nomial, r.lastLeaf, want)
				}
				r = scale(t, ary, broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: uint16(radix)}, ol[0], ol[1])
				if want := levels(radix, depth, ol[0], ol[1]); r.lastLeaf != want {
					t.Errorf("%d-ary, o=%v l=%v n=%d: last leaf %v, formula %v", radix, ol[0], ol[1], ary, r.lastLeaf, want)
				}
			}
		}
	}
}

// TestOverheadOfEveryTree: the root of a tree of radix K handles at most
// (K-1) log_K n messages each way in a k-nomial tree, K in a k-ary one.
func TestOverheadOfEveryTree(t *testing.T) {
	for _, radix := range []int{2, 3, 4, 8} {
		for _, n := range []int{1, 9, 100, 1000} {
			levels := 0
			for m := 1; m < n; m *= radix {
				levels++
			}
			for kind, most := range map[broadcastmsg.Kind]int{broadcastmsg.KNomial: (radix - 1) * levels, broadcastmsg.KAry: radix} {
				r := scale(t, n, broadcastmsg.Tree{Kind: kind, Radix: uint16(radix)}, o, l)
				if r.sent > uint64(most) || r.taken > uint64(most) {
					t.Errorf("kind %d, radix %d, n=%d: %d and %d messages, at most %d", kind, radix, n, r.sent, r.taken, most)
				}
			}
		}
	}
}

// published returns the formula for a tree of n; of a complete tree whose last
// level is not full, an upper bound.
func published(shape broadcastmsg.Tree, n int) time.Duration {
	radix := int(shape.Radix)
	if shape.Kind == broadcastmsg.KNomial {
		depth := 0
		for m := 1; m < n; m *= radix {
			depth++
		}
		return formula(radix, depth, o, l)
	}
	return levels(radix, ranktree.CompleteKAry(n, radix).Height(), o, l)
}

// BenchmarkLastLeaf measures, in virtual time, from the root's send to the last
// leaf's receipt and to the completed reply:
//
//	go test -run '^$' -bench LastLeaf -benchtime 1x ./internal/sim/servers
func BenchmarkLastLeaf(b *testing.B) {
	for _, shape := range []broadcastmsg.Tree{{Kind: broadcastmsg.KNomial, Radix: 2}, {Kind: broadcastmsg.KNomial, Radix: 4}, {Kind: broadcastmsg.KAry, Radix: 4}} {
		for _, n := range []int{16, 256, 4096, 65536} {
			b.Run(fmt.Sprintf("kind=%d/radix=%d/n=%d", shape.Kind, shape.Radix, n), func(b *testing.B) {
				var r row
				for b.Loop() {
					r = scale(b, n, shape, o, l)
				}
				b.ReportMetric(float64(r.lastLeaf)/1e3, "lastleaf-us")
				b.ReportMetric(float64(r.completed)/1e3, "completed-us")
				b.ReportMetric(float64(r.sent+r.taken), "rootmessages")
				b.ReportMetric(float64(published(shape, n))/1e3, "formula-us")
				b.ReportMetric(float64(r.routes)/float64(n), "places/server")
			})
		}
	}
}

// TestThousandAtOnce: 1,000 broadcasts are under way at once, from every server
// of 64, and all succeed.
func TestThousandAtOnce(t *testing.T) {
	const n, each = 64, 16
	w, err := sim.New(sim.Config{Seed: 1, Link: sim.Link{Delay: 10 * time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCrowd(w, n, Habits{Gap: o, Callback: 5 * time.Microsecond})
	c.Config = func(node broadcastmsg.Node, life uint64) broadcast.Config {
		cfg := broadcast.DefaultConfig(node, life)
		cfg.RoundTrip = time.Second // nothing expires but what is lost
		return cfg
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var members []sim.NodeID
	for i := range n {
		members = append(members, sim.NodeID(i))
	}
	all, err := broadcast.NewMembers(service, c.Targets(members))
	if err != nil {
		t.Fatal(err)
	}
	index := broadcastmsg.Index{1}
	c.mapping[index] = all
	for i := range n {
		w.Command(sim.NodeID(i), func(s *Server) {
			group, err := s.core.CreateOutOfBand(service, index, broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: 2})
			if err != nil {
				panic(err)
			}
			for range each {
				c.Send(s, members, broadcast.Broadcast{Group: group, Members: all})
			}
		})
	}
	most := 0
	peak := func() bool {
		requests := c.servers[0].core.Counters().Requests
		most = max(most, requests)
		return false
	}
	_ = w.Await(900*time.Microsecond, peak) // it is never done: it looks
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i := range c.broadcasts {
		if b := &c.broadcasts[i]; b.err != nil || b.ends != 1 {
			t.Fatalf("broadcast %d: %d ends, %v", i, b.ends, b.err)
		}
	}
	if len(c.wrong) > 0 || len(c.broadcasts) != n*each || most < n*each/2 {
		t.Errorf("%d broadcasts, %d at once on a server; wrong: %v", len(c.broadcasts), most, c.wrong)
	}
	t.Logf("%d broadcasts over %d servers: %v, at most %d at once on a server, %d messages", len(c.broadcasts), n, time.Duration(w.Now()), most, w.Total(sim.Datagrams).Sent.Packets)
	for i, s := range c.servers {
		if k := s.core.Counters(); k.LentBuffers+k.Posted+k.Requests != 0 {
			t.Errorf("server %d holds %+v", i, k)
		}
	}
}
