package broadcast

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// FuzzMessages gives an internal node any messages, from its parent, its child
// and a stranger, beside a broadcast that goes its way. Nothing leaks, no
// request runs twice, and what it sends can be read.
func FuzzMessages(f *testing.F) {
	for _, flags := range []byte{0, 64} {
		seed := newClusterOf(&cluster{shape: binomial, keys: flags != 0}, 4)
		if err := seed.create(0, true); err != nil {
			f.Fatal(err)
		}
		if _, err := seed.node(0).send(Broadcast{Payload: []byte("hello"), Bulk: 10}); err != nil {
			f.Fatal(err)
		}
		for moves := true; moves; moves = seed.next() {
			for i, name := range seed.names {
				for _, p := range seed.nodes[name].queue {
					f.Add(append([]byte{byte(i), flags}, p.bytes...))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		c := newClusterOf(&cluster{shape: binomial, keys: data[1]&64 != 0}, 4)
		c.world = c.members()
		if err := c.create(0, true); err != nil {
			t.Fatal(err)
		}
		if _, err := c.node(0).send(Broadcast{Payload: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		m := c.node(2)
		from := []broadcastmsg.Node{"n0", "n3", "stranger", "n1"}[data[0]%4]
		for range data[1] % 6 {
			c.next()
		}
		m.step(Input{Kind: Message, Node: from, Bytes: data[2:]}, Input{Kind: Message, Node: from, Bytes: data[2:]})
		for _, p := range m.queue {
			_, request := decodeRequest(p.bytes)
			_, reply := decodeReply(p.bytes)
			question, answer := new(broadcastmsg.Question).Decode(p.bytes), new(broadcastmsg.Answer).Decode(p.bytes)
			if request != nil && reply != nil && question != nil && answer != nil {
				t.Errorf("it sends %x", p.bytes)
			}
		}
		m.queue = keepKnown(c, m.queue)
		c.pass(2 * broadcastmsg.MaxPatience)
		if m.Deadline() < 1<<62 {
			t.Errorf("it waits for %v", m.Deadline())
		}
		if leak := m.leaks(); leak != "" && len(data) < 2+broadcastmsg.MaxRequest {
			t.Error(leak)
		}
	})
}

// keepKnown drops messages for nodes that are not there.
func keepKnown(c *cluster, queue []packet) (kept []packet) {
	for _, p := range queue {
		if c.nodes[p.to] != nil {
			kept = append(kept, p)
		}
	}
	return kept
}

// TestInvariants: whatever happens to a cluster, in whatever order, what holds
// between two steps holds; at the end nothing is held, and each request of a
// root has ended once.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		shape := rapid.SampledFrom([]broadcastmsg.Tree{binomial, {Kind: broadcastmsg.KAry, Radix: 2}, {Kind: broadcastmsg.Flat}}).Draw(t, "tree")
		c := newClusterOf(&cluster{shape: shape, keys: rapid.Bool().Draw(t, "proven")}, n)
		c.world = c.members()
		if err := c.create(0, rapid.Bool().Draw(t, "delayed")); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			node := c.node(rapid.IntRange(0, n-1).Draw(t, "node"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				if _, err := c.node(0).send(Broadcast{Bulk: uint64(rapid.IntRange(0, 1).Draw(t, "bulk"))}); err == nil || errors.Is(err, ErrDead) {
					sent++
				}
			case 2, 3, 4:
				c.next()
			case 5:
				c.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "ms")) * time.Millisecond)
			case 6:
				node.held[rapid.SampledFrom([]CallKind{PreRequest, IncomingRequest, IncomingReply, PostReply, ReplyOut}).Draw(t, "held")] = true
			case 7:
				node.release()
			case 8:
				if all := slices.Sorted(maps.Keys(node.requests)); len(all) > 0 {
					if err := node.Abort(c.clock, all[0], &node.out); err != nil {
						t.Fatal(err)
					}
					node.settleOutput()
				}
			case 9:
				about := c.names[rapid.IntRange(0, n-1).Draw(t, "about")]
				kind := rapid.SampledFrom([]InputKind{Up, Down}).Draw(t, "news")
				node.step(Input{Kind: kind, Node: about, Incarnation: rapid.Uint64Range(1, 2).Draw(t, "life")})
			}
			for _, name := range c.names {
				if wrong := c.nodes[name].invariant(); wrong != "" {
					t.Fatalf("%s: %s", name, wrong)
				}
			}
		}
		for _, name := range c.names {
			c.nodes[name].release()
		}
		c.pass(time.Hour)
		roots := 0
		for _, e := range c.node(0).ends {
			if e.Root {
				roots++
			}
		}
		if roots < sent {
			t.Errorf("%d broadcasts, %d ends", sent, roots)
		}
		for _, name := range c.names {
			if leak := c.nodes[name].leaks(); leak != "" {
				t.Error(leak)
			}
		}
	})
}

// invariant counts anew, the slow way, what the core counts as it goes.
func (n *testNode) invariant() string {
	posted, exposed := 0, 0
	for id, r := range n.requests {
		open := 0
		for i := range r.children {
			k := &r.children[i]
			if k.state != over {
				open++
			}
			if k.posted {
				posted++
			}
			if k.posted && k.state == over || k.state == waiting && r.phase != running {
				return "a child is in a state that its request does not allow"
			}
		}
		if r.exposed != 0 {
			exposed++
		}
		switch {
		case id != r.id || r.open != open:
			return "children are miscounted"
		case r.phase > running && (open > 0 || r.asked):
			return "post-reply before the others have returned"
		case r.exposed != 0 && r.phase != running:
			return "memory is exposed out of time"
		case r.phase > queued && n.active[r.key] != r:
			return "a request cannot be found"
		}
	}
	others, made, members := 0, map[string]int{}, map[string]int{}
	for _, r := range n.requests {
		if !r.root {
			others++
		}
	}
	for _, g := range n.groups {
		if g.by != "" {
			if made[hostOf(g.by)]++; g.bytes > 0 {
				members[hostOf(g.by)] += g.bytes
			}
		}
	}
	if n.quotas.all != others || !maps.Equal(made, n.quotas.groups) || !maps.Equal(members, n.quotas.members) {
		return "what others have this node keep is miscounted"
	}
	waiting := 0
	for root, a := range n.proofs.asked {
		if waiting += len(a.parked); len(a.parked) == 0 || a.root != root {
			return "a root is asked for nobody"
		}
	}
	if waiting != n.proofs.waiting || waiting > parkedMost {
		return "requests that wait for their roots are miscounted"
	}
	if posted != n.counters.Posted || exposed != n.counters.Exposed || len(n.memory) != exposed {
		return "buffers are miscounted"
	}
	refs := map[*buffer]int32{}
	for _, o := range n.sends {
		refs[o.buf]++
	}
	for b, count := range refs {
		if b.refs != count {
			return "a message's buffer has more holders than sends"
		}
	}
	return ""
}
