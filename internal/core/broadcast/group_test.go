package broadcast

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
	"github.com/tributary-fabric/tributary/ranktree"
)

func TestPoint38Identity(t *testing.T) {
	c := made(t, 4, binomial)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	var ids []groupKey
	for key := range c.node(3).groups {
		ids = append(ids, key)
	}
	if len(ids) != 2 || ids[0].digest != ids[1].digest || ids[0].index == ids[1].index {
		t.Errorf("two groups of the same members: %v", ids)
	}
	n := c.node(0)
	if _, err := n.send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	good, err := decodeRequest(n.queue[0].bytes)
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	m := c.node(2)
	for name, tt := range map[string]struct {
		change func(r *broadcastmsg.Request)
		want   broadcastmsg.Status
	}{
		"forged index":  {func(r *broadcastmsg.Request) { r.Index[0]++ }, broadcastmsg.NoGroup},
		"forged digest": {func(r *broadcastmsg.Request) { r.Digest[0]++ }, broadcastmsg.NoGroup},
		"another tree":  {func(r *broadcastmsg.Request) { r.Tree.Radix = 4 }, broadcastmsg.NoTree},
		"not a member":  {func(r *broadcastmsg.Request) { r.Root = "stranger" }, broadcastmsg.NotMember},
		"other members": {func(r *broadcastmsg.Request) { // with the identity of these
			r.Index[23] = 9
			r.Flags, r.Creation = broadcastmsg.Creates, &broadcastmsg.Creation{Targets: c.targets()[:3]}
		}, broadcastmsg.Disagree},
		"another's index": {func(r *broadcastmsg.Request) {
			r.Index = broadcastmsg.MakeIndex("n1", 1, 9)
			r.Flags, r.Creation = broadcastmsg.Creates, &broadcastmsg.Creation{Targets: c.targets()}
		}, broadcastmsg.NoGroup},
	} {
		r := *good
		r.Sequence += 100
		tt.change(&r)
		m.queue = nil
		m.step(Input{Kind: Message, Node: "n0", Bytes: r.Append(nil)})
		if len(m.queue) != 1 {
			t.Errorf("%s: no answer", name)
			continue
		}
		if got, _ := decodeReply(m.queue[0].bytes); got.Status != tt.want {
			t.Errorf("%s: %v, want %v", name, got.Status, tt.want)
		}
	}
	m.queue = nil
	if got := m.Counters().Groups; got != 2 {
		t.Errorf("%d groups after forgeries, want 2", got)
	}
	c.noLeaks(t)
}

func TestPoint39DigestOfOutOfBand(t *testing.T) {
	c := outOfBand(t, 8, binomial)
	n, m := c.node(0), c.node(4)
	targets := c.targets()
	slices.Reverse(targets[5:])
	changed, err := NewMembers(testService, targets)
	if err != nil {
		t.Fatal(err)
	}
	if m.Counters().Groups != 0 {
		t.Error("state before the first receipt")
	}
	e := n.end(t, n.must(t, Broadcast{Members: changed}))
	if e.Outcome.Ran != 1 || missing(e.Outcome) != "n1 digests differ, n2 digests differ, n4 digests differ" {
		t.Errorf("%+v", e.Outcome)
	}
	if m.called[PreRequest] != 0 || c.node(5).called[Map] != 0 {
		t.Error("a broadcast over other members is run, or forwarded")
	}
	c.world = changed
	if e := n.end(t, n.must(t, Broadcast{Members: changed})); e.Err != nil {
		t.Errorf("once all agree: %v", e.Err)
	}
	c.world = c.members() // it changes again, beneath the root's feet
	if e := n.end(t, n.must(t, Broadcast{Members: changed})); e.Outcome.Ran != 1 {
		t.Errorf("with the state of before: %+v", e.Outcome)
	}
	if got := m.Counters(); got.Groups != 1 || got.Routes != 1 {
		t.Errorf("%d groups, %d trees", got.Groups, got.Routes)
	}
	for _, g := range m.groups {
		if r := g.roots["n0"].whole; g.members != nil || len(r.children) != 2 {
			t.Errorf("an out-of-band group keeps %v, children %v", g.members, r.children)
		}
	}
	c.noLeaks(t)
}

func TestPoint40SubsetOfTheAlive(t *testing.T) {
	for _, oob := range []bool{false, true} {
		c := made(t, 8, binomial)
		n := c.node(0)
		if oob {
			c = outOfBand(t, 8, binomial)
			n = c.node(0)
		}
		subset, err := n.Subset(n.group)
		if err != nil {
			t.Fatal(err)
		}
		c.notifyAll(Input{Kind: Down, Node: "n4"})
		c.node(4).mute = true
		b := Broadcast{Group: subset, Members: c.world}
		if e := n.end(t, n.must(t, b)); e.Err != nil || e.Outcome.Nodes != 7 || c.node(4).ran != 0 || c.node(5).ran != 1 {
			t.Errorf("%v: %+v", e.Err, e.Outcome)
		}
		if _, err := n.send(Broadcast{Members: c.world}); !errors.Is(err, ErrDead) {
			t.Errorf("over the whole group: %v", err)
		}
		other, err := n.Subset(n.group)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Destroy(c.clock, other, nil, &n.out); err != nil {
			t.Error(err)
		}
		if _, err := n.NewRequest(Broadcast{Group: other, Members: c.world}); !errors.Is(err, ErrGroup) {
			t.Errorf("over a subset that was given back: %v", err)
		}
		// One that believes otherwise drops it.
		c.node(2).step(Input{Kind: Up, Node: "n4", Incarnation: 1})
		if e := n.end(t, n.must(t, b)); missing(e.Outcome) != "n2 digests differ" {
			t.Errorf("%+v", e.Outcome)
		}
		if _, err := n.NewRequest(Broadcast{Group: subset, Members: c.world, Last: true}); !errors.Is(err, ErrGroup) {
			t.Errorf("the last broadcast over a subset: %v", err)
		}
		c.noLeaks(t)
	}
}

func (c *cluster) groupCounts() (counts []int) {
	for _, name := range c.names {
		counts = append(counts, c.nodes[name].Counters().Groups)
	}
	return counts
}

func TestPoint41Destruction(t *testing.T) {
	none, all := []int{0, 0, 0, 0}, []int{1, 1, 1, 1}
	check := func(t *testing.T, c *cluster, want []int) {
		t.Helper()
		if got := c.groupCounts(); !slices.Equal(got, want) {
			t.Errorf("groups %v, want %v", got, want)
		}
		c.noLeaks(t)
	}
	t.Run("last broadcast", func(t *testing.T) {
		c := made(t, 4, binomial)
		check(t, c, all)
		n, m := c.node(0), c.node(2)
		m.held[ReplyOut] = true
		n.must(t, Broadcast{Last: true})
		if m.Counters().Groups != 1 {
			t.Error("freed before the reply was out")
		}
		m.release()
		check(t, c, none)
		if _, err := n.send(Broadcast{}); !errors.Is(err, ErrGroup) {
			t.Errorf("a broadcast after the last: %v", err)
		}
	})
	t.Run("first and last", func(t *testing.T) {
		c := newCluster(4, binomial)
		if err := c.create(0, true); err != nil {
			t.Fatal(err)
		}
		c.node(0).must(t, Broadcast{Last: true})
		check(t, c, none)
	})
	t.Run("destroy", func(t *testing.T) {
		c := made(t, 4, binomial)
		n := c.node(0)
		id, err := n.Destroy(c.clock, n.group, nil, &n.out)
		if err != nil {
			t.Fatal(err)
		}
		n.settleOutput()
		c.settle()
		if n.end(t, id).Err != nil || c.node(2).called[PreRequest] != 0 {
			t.Error("it fails, or a service sees it")
		}
		check(t, c, none)
	})
	t.Run("destroy again", func(t *testing.T) {
		c := made(t, 4, binomial)
		n := c.node(0)
		n.failing = errors.New("the card is on fire")
		for _, failing := range []error{n.failing, nil} {
			n.failing = failing
			if _, err := n.Destroy(c.clock, n.group, nil, &n.out); err != nil {
				t.Fatal(err)
			}
			n.settleOutput()
			c.pass(1e9)
		}
		check(t, c, none)
	})
	t.Run("destroy while the first is under way", func(t *testing.T) {
		c := newCluster(4, binomial)
		if err := c.create(0, true); err != nil {
			t.Fatal(err)
		}
		n := c.node(0)
		if _, err := n.send(Broadcast{}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Destroy(c.clock, n.group, nil, &n.out); !errors.Is(err, ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
		c.settle()
		check(t, c, all)
	})
	t.Run("destroy what was never sent", func(t *testing.T) {
		c := newCluster(4, binomial)
		if err := c.create(0, true); err != nil {
			t.Fatal(err)
		}
		n := c.node(0)
		if _, err := n.Destroy(c.clock, n.group, nil, &n.out); err != nil || len(n.queue) != 0 {
			t.Error(err)
		}
		check(t, c, none)
	})
	t.Run("root dead", func(t *testing.T) {
		c := made(t, 4, binomial)
		c.notifyAll(Input{Kind: Down, Node: "n0"})
		check(t, c, []int{1, 0, 0, 0})
	})
	t.Run("member dead", func(t *testing.T) {
		c := made(t, 4, binomial)
		c.notifyAll(Input{Kind: Down, Node: "n3"})
		check(t, c, all)
	})
	t.Run("root rebooted", func(t *testing.T) {
		c := made(t, 4, binomial)
		c.notifyAll(Input{Kind: Up, Node: "n0", Incarnation: 1})
		check(t, c, all)
		n := c.add("n0", 2) // its new groups come before the news of its reboot
		if err := c.create(0, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		check(t, c, []int{1, 2, 2, 2})
		c.notifyAll(Input{Kind: Up, Node: "n0", Incarnation: 2})
		check(t, c, all)
		if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil {
			t.Errorf("over the group of this incarnation: %v", e.Err)
		}
		c.notifyAll(Input{Kind: Up, Node: "n0", Incarnation: 1}) // old news
		check(t, c, all)
	})
}

// Point 42's half of this core: another incarnation means a reboot, though the
// node was never seen dead.
func TestPoint42QuickReboot(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.notifyAll(Input{Kind: Up, Node: "n2", Incarnation: 1})
	c.node(2).held[IncomingRequest] = true
	id := n.must(t, Broadcast{})
	c.restart(2, 2)
	c.settle()
	if e := n.end(t, id); missing(e.Outcome) != "n2 rebooted" {
		t.Errorf("%+v", e.Outcome)
	}
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n2 no group" {
		t.Errorf("%+v: its groups went with it", e.Outcome)
	}
	// A broadcast of a root's earlier incarnation is not run any more.
	old, err := n.send(Broadcast{})
	if err != nil || old == 0 {
		t.Fatal(err)
	}
	late := n.queue[len(n.queue)-1]
	n.queue = nil
	c.restart(0, 2)
	m := c.nodes[late.to]
	m.step(Input{Kind: Message, Node: "n0", Bytes: late.bytes})
	if got, _ := decodeReply(m.queue[0].bytes); got.Status != broadcastmsg.StaleRoot {
		t.Errorf("it answers %v, want stale root", got.Status)
	}
}

// Point 43: versions belong to services. n2 knows version 1 alone: it replies
// with an error and its version, and forwards all the same; the root tries again
// with the lowest.
func TestPoint43Versions(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	var version byte
	m.noReply = true
	m.after = func(m *testNode, call Call) {
		switch v, _ := m.Request(call.Request); call.Kind {
		case PreRequest:
			version = v.Payload[0]
		case PostReply:
			body := "n2 ok"
			if version > 1 {
				body = "n2 speaks 1"
			}
			if err := m.Reply(m.clock, call.Request, []byte(body), false, &m.out); err != nil {
				t.Error(err)
			}
		}
	}
	id := n.must(t, Broadcast{Payload: []byte{2}})
	if got := string(n.bodies[id][1]); got != "n2 speaks 1" || c.node(3).ran != 1 {
		t.Errorf("reply %q; n3 ran %d", got, c.node(3).ran)
	}
	if id = n.must(t, Broadcast{Payload: []byte{1}}); string(n.bodies[id][1]) != "n2 ok" || n.end(t, id).Err != nil {
		t.Errorf("reply %q", n.bodies[id][1])
	}
}

// Point 45: a tree of the system's own is a function away: here a chain in the
// order of the ranks from the root on, another shape that no kind has.
func TestPoint45PluggableTrees(t *testing.T) {
	const own = broadcastmsg.FirstOwnKind
	chain := func(m *Members, root, _ int) (ranktree.Spanning, error) {
		return ranktree.Rotate(ranktree.KAry(m.Len(), 1), root), nil
	}
	c := newCluster(5, broadcastmsg.Tree{Kind: own})
	for i := range c.names {
		c.node(i).shapes[own] = chain
	}
	if err := c.create(2, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	n := c.node(2)
	id := n.must(t, Broadcast{})
	if got := fmt.Sprintf("%s", n.bodies[id]); n.end(t, id).Err != nil || got != "[n0 n1 n4 n3]" {
		t.Errorf("%v, replies %s", n.end(t, id).Err, got)
	}
	for _, shape := range []broadcastmsg.Tree{{Kind: broadcastmsg.KNomial, Radix: 4}, {Kind: broadcastmsg.KAry, Radix: 3}, {Kind: broadcastmsg.Flat}} {
		c := made(t, 12, shape)
		if e := c.node(0).end(t, c.node(0).must(t, Broadcast{})); e.Err != nil || e.Outcome.Ran != 12 {
			t.Errorf("%v: %v", shape, e.Err)
		}
	}
}

// Point 50, over groups: a root other than rank 0 rotates the tree, not the
// list that the digest is over.
func TestPoint50RotatedRoots(t *testing.T) {
	for _, shape := range []broadcastmsg.Tree{binomial, {Kind: broadcastmsg.KAry, Radix: 3}, {Kind: broadcastmsg.Flat}} {
		c := newCluster(12, shape)
		c.world = c.members()
		for i := range c.names {
			n := c.node(i)
			id, err := n.CreateOutOfBand(testService, broadcastmsg.Index{1}, shape)
			if err != nil {
				t.Fatal(err)
			}
			e := n.end(t, n.must(t, Broadcast{Group: id, Members: c.world}))
			if e.Err != nil || e.Outcome.Ran != 12 {
				t.Errorf("%v from %s: %v", shape, n.name, e.Err)
			}
		}
	}
}

// Point 52: the order of members is the caller's, so that it may match the
// network's topology; any order works, and is kept.
func TestPoint52OrderOfMembers(t *testing.T) {
	c := newCluster(8, binomial)
	targets := c.targets()
	for _, swap := range [][2]int{{1, 7}, {2, 5}, {3, 4}} {
		targets[swap[0]], targets[swap[1]] = targets[swap[1]], targets[swap[0]]
	}
	n := c.node(0)
	if _, err := n.CreateGroup(0, Creation{Service: testService, Targets: targets, Tree: binomial, Delayed: true}, &n.out); err != nil {
		t.Fatal(err)
	}
	n.settleOutput()
	id := n.must(t, Broadcast{})
	got, err := n.Children(n.group, nil)
	if err != nil || n.end(t, id).Err != nil {
		t.Fatal(err, n.end(t, id).Err)
	}
	for i, want := range []broadcastmsg.Node{targets[4].Node, targets[2].Node, targets[1].Node} {
		if got[i].Node != want {
			t.Errorf("child %d is %s, want %s", i, got[i].Node, want)
		}
	}
}
