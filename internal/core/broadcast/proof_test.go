package broadcast

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

var chain = broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 1}

// provenChain is a group of n nodes one behind the other, whose requests are proven.
func provenChain(t *testing.T, n int) *cluster {
	t.Helper()
	return grouped(t, newProven(n, chain))
}

// caught runs a broadcast and returns the request as n1 passes it on to n2, which does
// not get it.
func (c *cluster) caught(t *testing.T, b Broadcast) []byte {
	t.Helper()
	if _, err := c.node(0).send(b); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		for k, p := range c.node(1).queue {
			if p.to == "n2" && !broadcastmsg.IsReply(p.bytes) {
				c.node(1).queue = append(c.node(1).queue[:k:k], c.node(1).queue[k+1:]...)
				return p.bytes
			}
		}
		c.next()
	}
	t.Fatal("n1 passes nothing on")
	return nil
}

// give gives n2 a message of a node's, and returns the status of what it replies to that
// node at once.
func (c *cluster) give(from broadcastmsg.Node, b []byte) broadcastmsg.Status {
	n := c.node(2)
	n.step(Input{Kind: Message, Node: from, Bytes: b})
	for _, p := range n.queue {
		if r, err := decodeReply(p.bytes); err == nil && p.to == from {
			return r.Status
		}
	}
	return broadcastmsg.OK
}

// TestProofsByTagsAndSignatures: the first request is signed; when all have asked there
// are tags; a group of many is signed always; who gets it from the root needs nothing.
func TestProofsByTagsAndSignatures(t *testing.T) {
	proofOf := func(b []byte) *broadcastmsg.Proof {
		m, err := decodeRequest(b)
		if err != nil {
			t.Fatal(err)
		}
		return m.Proof
	}
	c := newProven(4, chain)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	if p := proofOf(c.node(0).queue[0].bytes); p == nil || p.Signature == nil {
		t.Errorf("the first has %+v", p)
	}
	c.settle()
	b := c.caught(t, Broadcast{})
	if p := proofOf(b); p == nil || len(p.Tags) != 2*broadcastmsg.TagSize || p.Floor == 0 {
		t.Errorf("the next has %+v", p)
	}
	c.node(1).queue = append(c.node(1).queue, packet{"n2", b})
	c.settle()
	if c.node(3).ran != 1 {
		t.Errorf("n3 has run %d", c.node(3).ran)
	}

	flat := newProven(4, broadcastmsg.Tree{Kind: broadcastmsg.Flat})
	if err := flat.create(0, true); err != nil {
		t.Fatal(err)
	}
	if _, err := flat.node(0).send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	if p := proofOf(flat.node(0).queue[0].bytes); p != nil {
		t.Errorf("to children alone goes %+v", p)
	}

	many := newProven(200, binomial)
	if err := many.create(0, false); err != nil {
		t.Fatal(err)
	}
	many.settle()
	if _, err := many.node(0).send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	if p := proofOf(many.node(0).queue[0].bytes); p == nil || p.Signature == nil {
		t.Errorf("to many goes %+v", p)
	}
	many.settle()
	for i := range many.names {
		if many.node(i).ran != 1 {
			t.Errorf("n%d has run %d", i, many.node(i).ran)
		}
	}
}

// TestFinding3Altered: whatever a hop alters of a request, the next node does not run it;
// but the times, and the key to bulk data, which are the hop's own.
func TestFinding3Altered(t *testing.T) {
	for _, signed := range []bool{true, false} {
		for name, change := range map[string]func(m *broadcastmsg.Request){
			"payload":             func(m *broadcastmsg.Request) { m.Payload = []byte("hellp") },
			"no payload":          func(m *broadcastmsg.Request) { m.Payload = nil },
			"root":                func(m *broadcastmsg.Request) { m.Root = "n3" },
			"a root of nowhere":   func(m *broadcastmsg.Request) { m.Root = "n9" },
			"incarnation":         func(m *broadcastmsg.Request) { m.Incarnation++ },
			"sequence":            func(m *broadcastmsg.Request) { m.Sequence++ },
			"the last":            func(m *broadcastmsg.Request) { m.Flags |= broadcastmsg.Last },
			"without n3":          func(m *broadcastmsg.Request) { filtered(m, func(rank int) bool { return rank != 3 }) },
			"to n2 alone":         func(m *broadcastmsg.Request) { filtered(m, func(rank int) bool { return rank == 2 }) },
			"to who it says live": func(m *broadcastmsg.Request) { m.Subset, m.SubsetDigest = broadcastmsg.Alive, m.Digest },
			"another group":       func(m *broadcastmsg.Request) { m.Index[23]++ },
			"other members":       func(m *broadcastmsg.Request) { m.Digest[0]++ },
			"another tree":        func(m *broadcastmsg.Request) { m.Tree.Kind, m.Tree.Radix = broadcastmsg.Flat, 0 },
			"P":                   func(m *broadcastmsg.Request) { m.Patience++ },
			"made here":           func(m *broadcastmsg.Request) { m.Flags, m.Creation = m.Flags|broadcastmsg.Creates, fourTargets() },
			"floor":               func(m *broadcastmsg.Request) { m.Proof.Floor-- },
			"no proof":            func(m *broadcastmsg.Request) { m.Flags, m.Proof = m.Flags&^broadcastmsg.Proven, nil },
			"another proof":       func(m *broadcastmsg.Request) { spoil(m.Proof) },
		} {
			t.Run(fmt.Sprintf("signed=%v/%s", signed, name), func(t *testing.T) {
				c := provenChain(t, 4)
				if signed { // as if n3 had not asked
					delete(c.node(0).proofs.readers, "n3")
				}
				b := c.caught(t, Broadcast{Payload: []byte("hello")})
				m, err := decodeRequest(b)
				if err != nil || (m.Proof.Signature != nil) != signed {
					t.Fatalf("%v, %+v", err, m.Proof)
				}
				change(m)
				status := c.give("n1", m.Append(nil))
				c.pass(time.Second)
				k := c.node(2).Counters()
				if c.node(2).ran+c.node(3).ran > 0 || k.Refusals == 0 || len(c.node(2).denials) != 1 && status != broadcastmsg.StaleRoot {
					t.Errorf("n2 has run %d, n3 %d; %v, %+v, %+v", c.node(2).ran, c.node(3).ran, status, k, c.node(2).denials)
				}
			})
		}
	}
	c := provenChain(t, 4)
	m, err := decodeRequest(c.caught(t, Broadcast{Payload: []byte("hello"), Bulk: 10}))
	if err != nil {
		t.Fatal(err)
	}
	m.Level, m.Late = m.Level+1, 0
	if c.give("n1", m.Append(nil)); c.node(2).called[PreRequest] != 1 {
		t.Error("a hop may not set its times")
	}
}

func filtered(m *broadcastmsg.Request, in func(rank int) bool) {
	m.Subset, m.Filter = broadcastmsg.Filtered, broadcastmsg.MakeFilter(4, in)
}

func fourTargets() *broadcastmsg.Creation {
	return &broadcastmsg.Creation{Name: "h", Targets: newCluster(4, chain).targets()}
}

func spoil(p *broadcastmsg.Proof) {
	for _, b := range [][]byte{p.Signature, p.Tags} {
		for i := range b {
			b[i] ^= 0x55
		}
	}
}

// TestFinding3AnyBit: no bit of a request can be another's but those of its times.
func TestFinding3AnyBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newProven(4, chain)
		if err := c.create(0, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		if rapid.Bool().Draw(t, "signed") {
			delete(c.node(0).proofs.readers, "n2")
		}
		if _, err := c.node(0).send(Broadcast{Payload: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(c.node(0).queue[0].bytes)
		c.node(0).queue = nil
		bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		if at := bit / 8; at >= 40 && at < 56 {
			t.Skip("a time of the hop's")
		}
		b[bit/8] ^= 1 << (bit % 8)
		m, err := decodeRequest(b)
		if err == nil && m.Proof != nil && m.Proof.Tags != nil && bit/8 >= len(b)-len("hello")-16 && bit/8 < len(b)-len("hello") {
			t.Skip("maybe n3's tag")
		}
		c.give("n1", b)
		c.pass(time.Second)
		if c.node(2).ran > 0 {
			t.Errorf("n2 runs a request of which bit %d is another's", bit)
		}
	})
}

// TestFinding3Replayed: a request runs once, however much later it comes again, from
// whomever, and also where the receiver has restarted since; its proof is none of another.
func TestFinding3Replayed(t *testing.T) {
	c := provenChain(t, 4)
	old := c.caught(t, Broadcast{Payload: []byte("once")})
	c.node(1).queue = append(c.node(1).queue, packet{"n2", old})
	c.settle()
	if c.node(2).ran != 1 {
		t.Fatalf("n2 has run %d", c.node(2).ran)
	}
	c.pass(2 * broadcastmsg.MaxPatience)
	for range 3 {
		c.give("n1", old)
	}
	if k := c.node(2).Counters(); c.node(2).ran != 1 || k.Copies != 3 {
		t.Errorf("n2 has run %d, %+v", c.node(2).ran, k)
	}
	// Another request with the proof of that one.
	next := c.caught(t, Broadcast{Payload: []byte("next")})
	m, err := decodeRequest(next)
	if err != nil {
		t.Fatal(err)
	}
	was, err := decodeRequest(old)
	if err != nil {
		t.Fatal(err)
	}
	m.Proof = was.Proof
	if status := c.give("n1", m.Append(nil)); status != broadcastmsg.Unproven {
		t.Errorf("with the proof of another: %v", status)
	}
	// A creation, played again to a node that has restarted.
	c = newProven(4, chain)
	if err := c.create(0, true); err != nil {
		t.Fatal(err)
	}
	c.node(0).group = c.node(0).Core.last
	first := c.caught(t, Broadcast{Payload: []byte("first")})
	c.node(1).queue = append(c.node(1).queue, packet{"n2", first})
	c.settle()
	c.restart(2, 2)
	c.give("n1", first)
	c.pass(time.Hour)
	if c.node(2).ran != 0 || c.node(2).Counters().Copies != 1 {
		t.Errorf("n2 has run %d after its restart, %+v", c.node(2).ran, c.node(2).Counters())
	}
	// A request of an earlier life of the root.
	c.restart(0, 2)
	c.restart(2, 3)
	delete(c.node(2).incarnations, "n0") // it has not heard of it
	status := c.give("n1", first)
	c.pass(time.Hour)
	if c.node(2).ran != 0 {
		t.Errorf("n2 has run %d of an earlier life, %v", c.node(2).ran, status)
	}
}

// TestFinding3RootDoesNotAnswer: what waits for a root is refused when it cannot be
// asked, dies, has no collectives, or its sender waits no more; and there is a bound.
func TestFinding3RootDoesNotAnswer(t *testing.T) {
	for name, then := range map[string]func(c *cluster){
		"it cannot be asked": func(c *cluster) { c.pass(time.Second) },
		"it does not answer": func(c *cluster) { c.pass(time.Hour) },
		"it dies":            func(c *cluster) { c.node(2).step(Input{Kind: Down, Node: "n0", Incarnation: 1}) },
		"it takes no part":   func(c *cluster) { c.node(2).step(Input{Kind: Absent, Node: "n0"}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newProven(4, chain)
			if err := c.create(0, false); err != nil {
				t.Fatal(err)
			}
			n := c.node(2)
			if name == "it cannot be asked" {
				n.failing = fmt.Errorf("no route")
			}
			for range 2 { // to n1, and to n2, of which nothing comes to n0
				c.next()
				n.queue = nil
			}
			m := c.node(1).queue
			for _, p := range m {
				n.step(Input{Kind: Message, Node: "n1", Bytes: p.bytes})
			}
			then(c)
			if n.Counters().Unproven != 1 || n.proofs.waiting != 0 || len(n.groups) != 0 {
				t.Errorf("%+v, %d wait", n.Counters(), n.proofs.waiting)
			}
			if leak := n.leaks(); leak != "" {
				t.Error(leak)
			}
		})
	}
	// It is asked again where the connection has ended on which the question went.
	c := newProven(4, chain)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	for len(c.node(2).proofs.asked) == 0 {
		c.next()
	}
	c.node(2).queue = nil
	c.node(2).step(Input{Kind: Cut, Node: "n0"})
	c.pass(time.Second)
	if c.node(0).created == nil || c.node(0).created[0] != nil {
		t.Errorf("no group: %v", c.node(0).created)
	}
	c = provenChain(t, 4)
	m, err := decodeRequest(c.caught(t, Broadcast{}))
	if err != nil {
		t.Fatal(err)
	}
	n := c.node(2)
	n.mute = true
	m.Incarnation++
	for i := range 2 * parkedFrom {
		m.Sequence = uint64(1000 + i)
		n.step(Input{Kind: Message, Node: "n1", Bytes: m.Append(nil)})
	}
	if n.proofs.waiting != parkedFrom || n.Counters().Unproven != parkedFrom {
		t.Errorf("%d wait, %+v", n.proofs.waiting, n.Counters())
	}
	m.Root = "n3"
	n.step(Input{Kind: Message, Node: "n0", Bytes: m.Append(nil)})
	if n.proofs.waiting != parkedFrom+1 {
		t.Errorf("another's waits for those of n1: %d", n.proofs.waiting)
	}
}

// TestAnswersAreTheRootsOwn: nobody answers for another, nor unasked.
func TestAnswersAreTheRootsOwn(t *testing.T) {
	c := newProven(4, chain)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	n := c.node(2)
	answer := broadcastmsg.Answer{Incarnation: 1, Public: [32]byte{1}}
	n.step(Input{Kind: Message, Node: "n0", Bytes: answer.Append(nil)})
	for len(n.proofs.asked) == 0 {
		c.next()
	}
	n.step(Input{Kind: Message, Node: "n1", Bytes: answer.Append(nil)})
	if len(n.proofs.roots) != 0 || n.Counters().Unmatched != 2 {
		t.Errorf("%d are believed, %+v", len(n.proofs.roots), n.Counters())
	}
	c.settle()
	if c.node(0).created[0] != nil || len(n.proofs.roots) != 1 {
		t.Errorf("%v, %d are believed", c.node(0).created, len(n.proofs.roots))
	}
}

// TestMemoryOfProven: against a plain table: what a root has not said to have ended is
// known for ever, and what it has is no more than its floor.
func TestMemoryOfProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(1000 * pageBits)
		l := life{"a", 1}
		m.keep(l)
		floor, ended := uint64(0), map[uint64]bool{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			k := rapid.Uint64Range(0, 5*pageBits).Draw(t, "sequence")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				m.add(broadcastmsg.Key{Root: "a", Incarnation: 1, Sequence: k}, core.Never)
				ended[k] = true
			case 1:
				m.raise(l, k)
				floor = max(floor, k)
			case 2:
				m.forget(core.Never - 1)
			}
			if has := m.has(broadcastmsg.Key{Root: "a", Incarnation: 1, Sequence: k}); has != (ended[k] || k < floor) {
				t.Fatalf("%d: %v", k, has)
			}
			if len(m.pages) > 6 || floor > 0 && len(m.pages) > 0 && (m.pages[0].number+1)*pageBits <= floor && len(m.pages) == 1 && m.pages[0].number < floor/pageBits-1 {
				t.Fatalf("%d pages above %d", len(m.pages), floor)
			}
		}
		m.end(l)
		if len(m.pages)+len(m.pasts) != 0 {
			t.Errorf("%d pages of a life that is over", len(m.pages))
		}
	})
}

// TestFinding3NotTheParent: a member that has a request, and passes it to another's child
// before that one's parent does, does not keep the parent's from being taken.
func TestFinding3NotTheParent(t *testing.T) {
	c := newProven(4, chain)
	c.world = c.members()
	if _, err := c.node(0).send(Broadcast{Group: c.known(t, 0), Members: c.world}); err != nil {
		t.Fatal(err)
	}
	c.settle() // now n2 knows n0
	b := c.caught(t, Broadcast{Group: c.known(t, 0), Members: c.world})
	n := c.node(2)
	n.held[Map] = true
	for _, from := range []broadcastmsg.Node{"n3", "n1", "n1", "n3"} {
		n.step(Input{Kind: Message, Node: from, Bytes: b})
	}
	n.release()
	c.settle()
	if n.ran != 2 || c.node(3).ran != 2 || n.Counters().Requests != 0 {
		t.Errorf("n2 has run %d, n3 %d; %+v", n.ran, c.node(3).ran, n.Counters())
	}
	for _, e := range c.node(0).ends {
		if e.Err != nil {
			t.Error(e.Err)
		}
	}
}
