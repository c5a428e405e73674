package broadcast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// slowly lets time pass until a moment; the callbacks that a node holds return
// takes after they began. Messages take no time.
func (c *cluster) slowly(until time.Duration, takes func(n *testNode, kind CallKind) time.Duration) {
	begun := map[*testNode]core.Time{}
	for c.clock < core.Time(until) {
		c.settle()
		for _, name := range c.names {
			n := c.nodes[name]
			if len(n.calls) == 0 {
				delete(begun, n)
				continue
			}
			since, there := begun[n]
			if !there {
				begun[n] = c.clock
				continue
			}
			if c.clock.Sub(since) >= takes(n, n.calls[0].Kind) {
				delete(begun, n)
				calls := n.calls
				n.calls = nil
				for _, call := range calls {
					n.run(call)
				}
				n.settleOutput()
			}
		}
		c.pass(time.Millisecond)
	}
}

// TestTimeBeforeForwarding: in a chain of 8 in which every pre-request takes 25
// ms, which is more than all the R along it, the slow leaf is notified, by who waits
// for it, and the seven others have run; as long as P covers what the nodes take
// beyond what the root has taken.
func TestTimeBeforeForwarding(t *testing.T) {
	for _, tt := range []struct {
		name string
		root time.Duration // pre-request of the root
		p    time.Duration
	}{
		{"the root takes as long", 25 * time.Millisecond, 50 * time.Millisecond},
		{"P covers it", 0, 200 * time.Millisecond},
		{"half and half", 12 * time.Millisecond, 130 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := made(t, 8, broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 1})
			n := c.node(0)
			for i := range c.names {
				c.node(i).held[PreRequest] = true
			}
			c.node(7).held[IncomingRequest] = true
			id := n.must(t, Broadcast{Patience: tt.p})
			c.slowly(3*time.Second, func(at *testNode, kind CallKind) time.Duration {
				switch {
				case kind == IncomingRequest && at == c.node(7):
					return time.Hour
				case kind == IncomingRequest:
					return 0
				case at == n:
					return tt.root
				}
				return 25 * time.Millisecond
			})
			if e := n.end(t, id); missing(e.Outcome) != "n7 expired" || e.Outcome.Ran != 7 {
				t.Errorf("%+v, want all but n7", e.Outcome)
			}
			if heard := fmt.Sprintf("%s", n.bodies[id]); !strings.Contains(heard, "n6") {
				t.Errorf("replies %s", heard)
			}
		})
	}
}

// TestTimeOfBulkData: along a chain of 10, each of which takes 600 ms to pull 64
// MiB, nobody's time is up, though P is 0 and R 10 ms.
func TestTimeOfBulkData(t *testing.T) {
	c := made(t, 10, broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 1})
	n := c.node(0)
	type pull struct {
		at core.Time
		p  Pull
	}
	var under []pull
	for i := range c.names {
		to := c.node(i)
		to.slowPull = func(p Pull) { under = append(under, pull{c.clock.Add(600 * time.Millisecond), p}) }
	}
	id, err := n.send(Broadcast{Bulk: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.bulk[id] = nil // nobody looks at it
	for i := 0; len(under) > 0 || i == 0; i++ {
		c.settle()
		next := under[0]
		under = under[1:]
		c.pass(next.at.Sub(c.clock))
		c.node(i + 1).step(Input{Kind: Pulled, Request: next.p.Request})
		c.settle()
	}
	if e := n.end(t, id); e.Err != nil || e.Outcome.Ran != 10 {
		t.Errorf("%v", e.Err)
	}
	c.noLeaks(t)
}

// TestBudgetsFall: whatever nodes take before they forward, nobody gives a child up
// before all beneath it have been given up and could report, if P covers what is
// taken beyond the root's own.
func TestBudgetsFall(t *testing.T) {
	const depth, r = 6, 10 * time.Millisecond
	for seed := range 200 {
		at, p := time.Duration(0), time.Duration(0)
		took := make([]time.Duration, depth)
		for i := range took {
			took[i] = time.Duration(seed*(i+3)*7919%50) * time.Millisecond
			if i > 0 {
				p += took[i]
			}
		}
		level, late := time.Duration(0), time.Duration(0)
		before := time.Duration(1<<62 - 1)
		for i := range took {
			k := &Core{cfg: DefaultConfig("n", 1), now: core.Time(at + took[i])}
			k.cfg.RoundTrip = r
			q := &request{root: i == 0, since: core.Time(at), patience: p, level: level, late: late, route: &route{reach: depth - i}}
			k.budget(q)
			until := at + took[i] + time.Duration(depth-i)*q.forLevel + q.wait
			if until > before-r && i > 0 {
				t.Fatalf("%v: node %d waits until %v, its parent until %v", took, i, until, before)
			}
			before, level, late, at = until, q.forLevel, q.behind, at+took[i]
		}
	}
}
