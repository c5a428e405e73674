package broadcast

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// destroy destroys n's group and returns the end.
func (n *testNode) destroy(t *testing.T) End {
	t.Helper()
	id, err := n.Destroy(n.clock, n.group, nil, &n.out)
	if err != nil {
		t.Fatal(err)
	}
	n.settleOutput()
	n.pass(n.cfg.Patience + time.Second)
	return n.end(t, id)
}

// TestDestroyIsCompleted: what a destruction did not reach is reached by the next,
// through those that have freed the group already; whether the members fit into a
// message or are to be pulled.
func TestDestroyIsCompleted(t *testing.T) {
	for _, size := range []int{8, 300} {
		c := made(t, size, binomial)
		n, m := c.node(0), c.node(4)
		m.failing = errors.New("the card is on fire")
		if e := n.destroy(t); e.Err == nil {
			t.Error("n4 could reach nobody, and nobody says so")
		}
		if k := c.groupCounts(); k[4] != 0 || k[5] != 1 || k[0] != 1 {
			t.Fatalf("groups %v: want none at n4, but beneath it", k[:8])
		}
		m.failing = nil
		// A member that begins again has never heard of the group.
		c.restart(2, 2)
		if e := n.destroy(t); e.Err != nil || e.Outcome.Ran != size {
			t.Errorf("again: %v", e.Err)
		}
		if k := c.groupCounts(); slices.Max(k) != 0 {
			t.Errorf("groups %v", k)
		}
		c.noLeaks(t)
	}
}

// TestDestroyAfterAPartialLast: the same where a last broadcast reached a part.
func TestDestroyAfterAPartialLast(t *testing.T) {
	c := made(t, 8, binomial)
	n, m := c.node(0), c.node(4)
	m.failing = errors.New("the card is on fire")
	id := n.must(t, Broadcast{Last: true})
	c.pass(time.Second)
	if e := n.end(t, id); e.Err == nil || c.groupCounts()[4] != 0 || c.groupCounts()[5] != 1 {
		t.Fatalf("%v, groups %v: want a part of it", e.Err, c.groupCounts())
	}
	m.failing = nil
	if e := n.destroy(t); e.Err != nil || slices.Max(c.groupCounts()) != 0 {
		t.Errorf("%v, groups %v", e.Err, c.groupCounts())
	}
	c.noLeaks(t)
}

// TestDestroyWithDeadMembers: those beneath the dead are reached, and nobody waits
// for who is dead.
func TestDestroyWithDeadMembers(t *testing.T) {
	c := made(t, 16, binomial)
	n := c.node(0)
	for _, name := range []broadcastmsg.Node{"n8", "n4"} {
		c.nodes[name].mute = true
		n.step(Input{Kind: Down, Node: name}) // the others have not heard of it
	}
	e := n.destroy(t)
	if e.Err != nil || e.Outcome.Ran != 14 {
		t.Errorf("%v, %+v", e.Err, e.Outcome)
	}
	for i, k := range c.groupCounts() {
		if dead := i == 8 || i == 4; (k == 1) != dead {
			t.Errorf("n%d has %d groups", i, k)
		}
	}
}

// rootsOver has node i broadcast over the group of n0's next broadcast as soon as
// it runs that, before others have it, and returns the end. What n0 sends to those
// that are not above node i lags.
func (c *cluster) rootsOver(t *testing.T, i int, b Broadcast) End {
	t.Helper()
	n, m := c.node(0), c.node(i)
	above := broadcastmsg.Node(fmt.Sprint("n", 1<<(bits.Len(uint(i))-1)))
	c.lags = func(from broadcastmsg.Node, p packet) bool { return from == n.name && p.to != above }
	defer func() { c.lags = nil }()
	var id uint64
	var sent error
	m.after = func(m *testNode, call Call) {
		if v, _ := m.Request(call.Request); call.Kind != IncomingRequest || v.Root != "n0" {
			return
		}
		group, err := m.GroupOf(call.Request)
		if err != nil {
			t.Error(err)
			return
		}
		m.group, b.Group = group, group
		if id, sent = m.NewRequest(b); sent == nil {
			sent = m.Core.Send(m.clock, id, &m.out)
		}
	}
	n.must(t, Broadcast{})
	m.after = nil
	if sent != nil {
		t.Fatal(sent)
	}
	return m.end(t, id)
}

// TestGroupOfAnothersFirstBroadcast: a member that uses the group of the first
// broadcast over it while that is on its way reaches everybody, however the
// messages race, whatever the size of its own, and brings the members along once.
func TestGroupOfAnothersFirstBroadcast(t *testing.T) {
	for root := 1; root < 16; root++ {
		for _, b := range []Broadcast{{}, {Payload: make([]byte, 3900)}, {Except: []broadcastmsg.Node{"n9"}}} {
			c := newCluster(16, binomial)
			if err := c.create(0, true); err != nil {
				t.Fatal(err)
			}
			if e := c.rootsOver(t, root, b); e.Err != nil || e.Outcome.Ran != e.Outcome.Nodes || e.Outcome.Nodes < 15 {
				t.Fatalf("from n%d: %v", root, e.Err)
			}
			m := c.node(root)
			if _, err := m.send(Broadcast{}); err != nil {
				t.Fatal(err)
			}
			if creating, all := m.creating(); creating > 0 || all == 0 {
				t.Errorf("n%d brings the members along again", root)
			}
			c.settle()
			for _, i := range []int{0, root} { // each may end it
				n := c.node(i)
				if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil {
					t.Errorf("n%d: %v", i, e.Err)
				}
			}
			if e := m.destroy(t); e.Err != nil || slices.Max(c.groupCounts()) != 0 {
				t.Errorf("%v, groups %v", e.Err, c.groupCounts())
			}
			c.noLeaks(t)
		}
	}
}

// TestSubsetBeforeTheFirstBroadcast: the first over a delayed group may be for
// some members; all get the group before.
func TestSubsetBeforeTheFirstBroadcast(t *testing.T) {
	for _, alive := range []bool{false, true} {
		c := newCluster(8, binomial)
		if err := c.create(0, true); err != nil {
			t.Fatal(err)
		}
		n := c.node(0)
		b := Broadcast{Except: []broadcastmsg.Node{"n4"}}
		if alive {
			c.notifyAll(Input{Kind: Down, Node: "n4"})
			subset, err := n.Subset(n.group)
			if err != nil {
				t.Fatal(err)
			}
			b = Broadcast{Group: subset}
		}
		if e := n.end(t, n.must(t, b)); e.Err != nil || e.Outcome.Ran != 7 {
			t.Errorf("%v", e.Err)
		}
		if alive {
			c.notifyAll(Input{Kind: Up, Node: "n4", Incarnation: 1}) // a false alarm
		}
		if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil {
			t.Errorf("over all: %v", e.Err)
		}
		c.noLeaks(t)
	}
}

// TestPoint41OtherRootsLive: the death of a group's creator frees its trees. What
// other members broadcast over goes on, over those that live, until the last root
// is dead; also where one has only ever reached a subset.
func TestPoint41OtherRootsLive(t *testing.T) {
	for name, first := range map[string]Broadcast{"all": {}, "some": {Only: []broadcastmsg.Node{"n0", "n3"}}} {
		for _, news := range []Input{{Kind: Down, Node: "n0"}, {Kind: Up, Node: "n0", Incarnation: 2}} {
			t.Run(fmt.Sprint(name, news.Incarnation), func(t *testing.T) {
				c := made(t, 4, binomial)
				c.notifyAll(Input{Kind: Up, Node: "n0", Incarnation: 1})
				if e := c.rootsOver(t, 2, first); e.Err != nil {
					t.Fatal(e.Err)
				}
				m := c.node(2)
				other := c.node(3) // has no group of its own doing
				c.add("n0", 2).mute = news.Kind == Down
				c.notifyAll(news)
				want := []int{0, 1, 1, 1}
				if name == "some" {
					want = []int{0, 0, 1, 1} // n1 has nothing to do with n2's tree
				}
				if got := c.groupCounts(); !slices.Equal(got, want) {
					t.Fatalf("groups %v, want %v", got, want)
				}
				e := m.end(t, m.must(t, Broadcast{Only: []broadcastmsg.Node{"n2", "n3"}}))
				if e.Err != nil || other.ran != 3 {
					t.Errorf("%v, n3 ran %d", e.Err, other.ran)
				}
				c.notifyAll(Input{Kind: Down, Node: "n2"})
				if got := c.groupCounts(); got[1]+got[3] != 0 {
					t.Errorf("groups %v after the last root's death", got)
				}
			})
		}
	}
}
