package broadcast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestFilteredBroadcasts holds broadcasts to some of a group's members against a
// plain list of them: each of those runs it once and nobody else, the outcome
// counts them, the replies are theirs, and the root's children are those of a tree
// over them and the root. Groups are immediate, delayed and out-of-band; roots are
// creators and other members, among those chosen and not; members die.
func TestFilteredBroadcasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 24).Draw(t, "members")
		shape := rapid.SampledFrom([]broadcastmsg.Tree{binomial, {Kind: broadcastmsg.KNomial, Radix: 3}, {Kind: broadcastmsg.KAry, Radix: 2}, {Kind: broadcastmsg.Flat}}).Draw(t, "tree")
		c := newCluster(size, shape)
		c.world = c.members()
		root := c.node(rapid.IntRange(0, size-1).Draw(t, "root"))
		group := c.groupAt(t, root, rapid.SampledFrom([]string{"immediate", "delayed", "out-of-band"}).Draw(t, "group"))
		some := func(label string) (nodes []broadcastmsg.Node) {
			for _, name := range c.names {
				if rapid.IntRange(0, 3).Draw(t, label) == 0 {
					nodes = append(nodes, name)
				}
			}
			return nodes
		}
		alive := rapid.Bool().Draw(t, "alive")
		dead := map[broadcastmsg.Node]bool{}
		if alive {
			if _, err := root.send(Broadcast{Group: group, Members: c.world}); err != nil { // so that the group outlives its creator
				t.Fatal(err)
			}
			c.settle()
			for _, name := range some("dead") {
				if name != root.name {
					dead[name] = true
					c.nodes[name].mute = true
				}
			}
			for name := range dead {
				c.notifyAll(Input{Kind: Down, Node: name})
			}
			var err error
			if group, err = root.Subset(group); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // the same filter twice and another, or not
			b := Broadcast{Group: group, Except: some("except"), Members: c.world}
			if rapid.Bool().Draw(t, "by name") {
				b.Only = some("only")
			}
			c.checkFiltered(t, root, b, dead)
		}
	})
}

// groupAt makes a group of a kind and returns the root's handle to it.
func (c *cluster) groupAt(t *rapid.T, root *testNode, kind string) uint64 {
	if kind == "out-of-band" {
		group, err := root.CreateOutOfBand(testService, broadcastmsg.Index{1}, c.shape)
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	creator := c.node(0)
	if err := c.create(0, kind == "delayed"); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if root == creator {
		return creator.group
	}
	var group uint64
	root.after = func(n *testNode, call Call) {
		if call.Kind == IncomingRequest {
			group, _ = n.GroupOf(call.Request)
		}
	}
	if _, err := creator.send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	c.settle()
	root.after = nil
	return group
}

func (c *cluster) checkFiltered(t *rapid.T, root *testNode, b Broadcast, dead map[broadcastmsg.Node]bool) {
	var want []string
	var inTree []broadcastmsg.Target
	for _, target := range c.targets() {
		name := target.Node
		chosen := (b.Only == nil || slices.Contains(b.Only, name)) && !slices.Contains(b.Except, name)
		if chosen && !dead[name] {
			want = append(want, string(name))
		}
		if chosen && !dead[name] || name == root.name {
			inTree = append(inTree, target)
		}
	}
	before := map[broadcastmsg.Node]int{}
	for _, name := range c.names {
		before[name] = c.nodes[name].ran
	}
	id, err := root.send(b)
	if errors.Is(err, ErrFilter) {
		if len(want) > 0 {
			t.Fatalf("%v, and there are %v", err, want)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	for _, name := range c.names {
		ran := c.nodes[name].ran - before[name]
		if wanted := slices.Contains(want, string(name)); (ran == 1) != wanted || ran > 1 {
			t.Fatalf("only %v, except %v: %s ran it %d times, the root is %s", b.Only, b.Except, name, ran, root.name)
		}
	}
	e := root.ends[len(root.ends)-1]
	if e.Request != id || e.Err != nil || e.Outcome.Nodes != len(want) || e.Outcome.Ran != len(want) {
		t.Fatalf("%+v, want %d nodes", e, len(want))
	}
	all, err := NewMembers(testService, inTree)
	if err != nil {
		t.Fatal(err)
	}
	oracle, _ := newRoute(all, broadcastmsg.Digest{}, root.shapes[c.shape.Kind], c.shape, root.name, root.name)
	var heard []string
	var children, wantChildren []broadcastmsg.Node
	for _, body := range root.bodies[id] {
		heard = append(heard, strings.Fields(string(body))...)
	}
	if slices.Contains(want, string(root.name)) {
		heard = append(heard, string(root.name))
	}
	slices.Sort(heard)
	slices.Sort(want)
	if !slices.Equal(heard, want) {
		t.Fatalf("replies of %v, want %v", heard, want)
	}
	for _, reply := range root.seen[len(root.seen)-len(oracle.children):] {
		children = append(children, reply.Source)
	}
	for _, child := range oracle.children {
		wantChildren = append(wantChildren, child.Node)
	}
	slices.Sort(children)
	slices.Sort(wantChildren)
	if !slices.Equal(children, wantChildren) {
		t.Fatalf("children %v, want %v", children, wantChildren)
	}
	for _, name := range c.names {
		if leak := c.nodes[name].leaks(); leak != "" && !dead[name] {
			t.Fatal(leak)
		}
	}
}

// TestFilterLeavesOutTheRoot: it has no entities then, runs nothing, and gathers
// the replies all the same; the second time nobody works out its place again.
func TestFilterLeavesOutTheRoot(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	tags := -1
	n.after = func(n *testNode, call Call) {
		if call.Kind == PreRequest {
			v, _ := n.Request(call.Request)
			tags = len(v.Tags)
		}
	}
	b := Broadcast{Except: []broadcastmsg.Node{"n0"}, Bulk: 100}
	for range 2 {
		e := n.end(t, n.must(t, b))
		if e.Err != nil || e.Outcome.Nodes != 7 || e.Outcome.Ran != 7 || n.ran != 0 || tags != 0 || n.called[IncomingRequest] != 0 {
			t.Errorf("%+v, it ran %d with %d entities", e, n.ran, tags)
		}
	}
	if n.called[PostReply] != 2 || n.called[PreRequest] != 2 {
		t.Errorf("called %v", n.called)
	}
	for _, g := range c.node(4).groups {
		part := g.roots["n0"].part
		n.must(t, b)
		if g.roots["n0"].part != part || part == nil {
			t.Error("its place is worked out again")
		}
		n.must(t, Broadcast{Except: []broadcastmsg.Node{"n1"}})
		if g.roots["n0"].part == part {
			t.Error("it is in the place of another filter")
		}
	}
	// Whom it does not reach is reported as ever, and counts as they do.
	c.node(4).mute = true
	id := n.must(t, b)
	c.pass(1e9)
	if e := n.end(t, id); missing(e.Outcome) != "n4 expired" || e.Outcome.Nodes != 7 || e.Outcome.Ran != 3 {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

// TestFiltersThatAreNone: who is not a member, and nobody at all.
func TestFiltersThatAreNone(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	for name, tt := range map[string]struct {
		b    Broadcast
		want error
	}{
		"a stranger":            {Broadcast{Only: []broadcastmsg.Node{"n1", "stranger"}}, ErrFilter},
		"without a stranger":    {Broadcast{Except: []broadcastmsg.Node{"stranger"}}, ErrFilter},
		"nobody":                {Broadcast{Only: []broadcastmsg.Node{}}, ErrFilter},
		"nobody is left":        {Broadcast{Only: []broadcastmsg.Node{"n1"}, Except: []broadcastmsg.Node{"n1"}}, ErrFilter},
		"the last":              {Broadcast{Only: []broadcastmsg.Node{"n1"}, Last: true}, ErrGroup},
		"too large beside it":   {Broadcast{Only: []broadcastmsg.Node{"n1"}, Payload: make([]byte, broadcastmsg.MaxRequest-114)}, ErrTooLarge},
		"all, as if there were": {Broadcast{Only: []broadcastmsg.Node{"n0", "n1", "n2", "n3"}, Payload: make([]byte, broadcastmsg.MaxRequest-114)}, nil},
	} {
		tt.b.Group = n.group
		id, err := n.NewRequest(tt.b)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if err == nil {
			if err := n.Abort(c.clock, id, &n.out); err != nil {
				t.Error(err)
			}
		}
	}
	c.notifyAll(Input{Kind: Down, Node: "n3"})
	if _, err := n.send(Broadcast{Only: []broadcastmsg.Node{"n2", "n3"}}); !errors.Is(err, ErrDead) {
		t.Errorf("with a dead one: %v", err)
	}
	if e := n.end(t, n.must(t, Broadcast{Except: []broadcastmsg.Node{"n3"}})); e.Err != nil {
		t.Errorf("without the dead one: %v", e.Err)
	}
	c.noLeaks(t)
}

// TestForgedFilters: a filter of a group of another size is no agreement.
func TestForgedFilters(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	if _, err := n.send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	good, err := decodeRequest(n.queue[0].bytes)
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	for i, tt := range []struct {
		filter broadcastmsg.Filter
		want   string
	}{
		{broadcastmsg.Filter{0, 4}, "digests differ"}, {broadcastmsg.Filter{1, 0x20, 0}, "digests differ"},
		{broadcastmsg.Filter{0, 1, 1}, "not a member"}, // n1 alone
		{broadcastmsg.Filter{0, 2, 1}, "taken"},        // n2 alone: it hangs beneath the root
	} {
		r := *good
		r.Sequence += uint64(100 + i)
		r.Subset, r.Filter = broadcastmsg.Filtered, tt.filter
		m.queue = nil
		m.step(Input{Kind: Message, Node: "n0", Bytes: r.Append(nil)})
		got := "taken"
		if a, err := decodeReply(m.queue[0].bytes); err == nil && a.Status != broadcastmsg.OK {
			got = fmt.Sprint(a.Status)
		}
		if got != tt.want {
			t.Errorf("%x: %s, want %s", tt.filter, got, tt.want)
		}
	}
	m.queue = nil
	c.noLeaks(t)
}
