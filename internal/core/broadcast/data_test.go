package broadcast

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

func TestPoint33Receive(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	room := broadcastmsg.MaxRequest - 112 - len("n0")
	if _, err := n.NewRequest(Broadcast{Group: n.group, Payload: make([]byte, room+1)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("4097 bytes: %v", err)
	}
	n.must(t, Broadcast{Payload: make([]byte, room)})
	m.step(Input{Kind: Message, Node: "n0", Bytes: make([]byte, 5000)})
	if m.Counters().Unreadable != 1 {
		t.Error("5000 bytes are taken for a message")
	}
	// As many as come are taken, from anyone; the pool is refilled before it is
	// empty, and shrinks again.
	m.held[PreRequest] = true
	const burst = 1000
	for range burst {
		if _, err := n.send(Broadcast{Payload: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
	}
	c.settle()
	if got := m.Counters(); got.Requests != burst || got.Refills == 0 {
		t.Errorf("%d of %d requests are here, %d refills", got.Requests, burst, got.Refills)
	}
	m.release()
	c.settle()
	if got := len(m.pool.shelves[receiveClass].free); m.ran != burst+1 || got > burst+64 {
		t.Errorf("%d ran, %d receive buffers are kept", m.ran, got)
	}
	for range 2 * period {
		n.must(t, Broadcast{})
	}
	if got := len(m.pool.shelves[receiveClass].free); got > 64+4 {
		t.Errorf("%d receive buffers are kept when no more than a few are needed", got)
	}
	c.noLeaks(t)
}

func TestPoint34ReplyBuffersMatch(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	a, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	one, other := n.requests[a].key, n.requests[b].key
	forge := func(from broadcastmsg.Node, k broadcastmsg.Key) {
		m := broadcastmsg.Reply{Key: k, Final: true, Ran: 1, Body: []byte("forged")}
		n.step(Input{Kind: Message, Node: from, Bytes: m.Append(nil)})
	}
	stale := one
	stale.Sequence += 1000
	forge("n3", one) // not a child
	forge("n1", stale)
	if got := n.Counters().Unmatched; got != 2 || len(n.seen) != 0 {
		t.Errorf("%d replies match nothing, want 2; reported %+v", got, n.seen)
	}
	forge("n1", other)
	if len(n.bodies[a]) != 0 || len(n.bodies[b]) != 1 {
		t.Error("a reply to one broadcast is taken for another's")
	}
	forge("n1", other) // twice
	if got := n.Counters().Unmatched; got != 3 {
		t.Errorf("%d replies match nothing, want 3", got)
	}
	c.settle()
	if n.end(t, a).Err != nil {
		t.Error("it fails")
	}
	before := n.groups[n.handles[n.group].group.key].roots["n0"].whole
	n.must(t, Broadcast{})
	if after := n.groups[n.handles[n.group].group.key].roots["n0"].whole; after != before {
		t.Error("the sizes of subtrees are computed again")
	}
	for size, want := range map[int]int{1: 512, 513: 4096, 5000: 65536, 70000: 1<<20 + 4096, 3 << 20: 3 << 20} {
		b := n.pool.get(size)
		if cap(b.b) != want {
			t.Errorf("a buffer for %d bytes has %d, want %d", size, cap(b.b), want)
		}
		n.pool.release(b)
	}
	// A reply that is larger than its buffer.
	n.room = 3
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n2 overflow" {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

func TestPoint35LargeReplies(t *testing.T) {
	const mib = 1 << 20
	c := made(t, 2, binomial)
	n, m := c.node(0), c.node(1)
	n.room = 4 * mib
	m.noReply = true
	var request uint64
	m.after = func(_ *testNode, call Call) { request = call.Request }
	id := n.must(t, Broadcast{})
	want := make([]byte, 2*mib+mib/2)
	for i := range want {
		want[i] = byte(i * 7 / 5)
	}
	// Piece by piece: what fills a message goes out at once, and no more
	// messages than there must be.
	for at := 0; at < len(want); at += mib / 4 {
		if err := m.Reply(c.clock, request, want[at:at+mib/4], true, &m.out); err != nil {
			t.Fatal(err)
		}
		m.settleOutput()
		if sent := len(m.queue); sent != at/mib {
			t.Fatalf("%d bytes given, %d messages sent", at+mib/4, sent)
		}
	}
	if err := m.Reply(c.clock, request, nil, false, &m.out); err != nil {
		t.Fatal(err)
	}
	m.settleOutput()
	if len(m.queue) != 3 {
		t.Fatalf("%d messages, want 3", len(m.queue))
	}
	m.queue[0], m.queue[2] = m.queue[2], m.queue[0] // in any order
	m.queue = append(m.queue[:1:1], append([]packet{m.queue[0]}, m.queue[1:]...)...)
	c.settle()
	if n.end(t, id).Err != nil || len(n.bodies[id]) != 1 || !bytes.Equal(n.bodies[id][0], want) {
		t.Errorf("%v, or another reply", n.end(t, id).Err)
	}
	// Exactly one message's worth is one message.
	id = n.must(t, Broadcast{})
	if err := m.Reply(c.clock, request, want[:mib], false, &m.out); err != nil {
		t.Fatal(err)
	}
	m.settleOutput()
	if len(m.queue) != 1 {
		t.Errorf("%d messages for 1 MiB, want 1", len(m.queue))
	}
	c.settle()
	if !bytes.Equal(n.bodies[id][0], want[:mib]) {
		t.Error("another reply")
	}
	c.noLeaks(t)
}

func TestPoint36Bulk(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	id, err := n.send(Broadcast{Bulk: 1000})
	if err != nil {
		t.Fatal(err)
	}
	sender := n.bulk[id]
	for i := range sender {
		sender[i] = byte(i)
	}
	m := c.node(4)
	m.held[IncomingReply] = true
	from := map[broadcastmsg.Node]broadcastmsg.Node{}
	for i := range c.names {
		to := c.node(i)
		to.pulling = func(p *Pull) error { from[to.name] = p.From; return nil }
	}
	var got []byte
	c.node(7).after = func(n *testNode, call Call) {
		if call.Kind == IncomingRequest {
			got = n.bulk[call.Request]
		}
	}
	c.settle()
	if !bytes.Equal(got, sender) {
		t.Error("n7, at depth 3, has other bulk data")
	}
	if len(n.memory) != 1 || len(m.memory) != 1 || len(c.node(7).memory) != 0 {
		t.Error("a node does not describe its own copy to its children, or a leaf does")
	}
	parents := map[broadcastmsg.Node]broadcastmsg.Node{"n1": "n0", "n2": "n0", "n3": "n2", "n4": "n0", "n5": "n4", "n6": "n4", "n7": "n6"}
	if !maps.Equal(from, parents) {
		t.Errorf("pulled from %v, want from the parents, %v: a descriptor is passed on", from, parents)
	}
	for _, memory := range m.memory {
		if &memory[0] == &sender[0] || !bytes.Equal(memory, sender) {
			t.Error("a node does not describe its own copy")
		}
	}
	m.release()
	c.settle()
	if n.end(t, id).Err != nil || len(n.memory)+len(m.memory) != 0 {
		t.Error("memory can be read after post-reply")
	}
	c.noLeaks(t)
}

func TestPoint37AggregationIsTheServices(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	id := n.must(t, Broadcast{}) // testNode concatenates, framed by spaces, all at once in post-reply
	if got := string(bytes.Join(n.bodies[id], []byte(" | "))); got != "n1 | n2 n3 | n4 n5 n6 n7" {
		t.Errorf("the root has %q", got)
	}
	// Statuses: the library names who failed, whatever the service says.
	c.node(5).errs[IncomingRequest] = errors.New("disk full")
	c.node(3).mute = true
	id = n.must(t, Broadcast{})
	c.pass(time.Second)
	if e := n.end(t, id); missing(e.Outcome) != "n3 expired, n5 failed" {
		t.Errorf("%+v", e.Outcome)
	}
}

// More subtrees are missing than a reply can name: they are counted all the
// same.
func TestMissingIsBounded(t *testing.T) {
	var all []broadcastmsg.Missing
	for range 100 {
		all = append(all, broadcastmsg.Missing{Node: "n", Nodes: 2, Status: broadcastmsg.Dead})
	}
	folded, nodes := fold(all), uint32(0)
	for _, m := range folded {
		nodes += m.Nodes
	}
	if len(folded) != broadcastmsg.MaxMissing || nodes != 200 || all[broadcastmsg.MaxMissing-1].Nodes != 2 {
		t.Errorf("%d subtrees of %d nodes", len(folded), nodes)
	}
}

// TestMemoryKeysAreSecret: keys to exposed memory do not repeat, and do not
// follow from each other, but from the secret.
func TestMemoryKeysAreSecret(t *testing.T) {
	keys := func(secret byte) []uint64 {
		cfg := DefaultConfig("n0", 1)
		cfg.Secret[0] = secret
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var all []uint64
		for range 100 {
			all = append(all, c.memoryKey())
		}
		return all
	}
	a, b := keys(1), keys(2)
	seen := map[uint64]bool{}
	for i := range a {
		if seen[a[i]] || a[i] < 1<<20 || a[i] == b[i] || i > 0 && a[i]-a[i-1] < 1<<20 {
			t.Fatalf("key %d is %#x, with another secret %#x", i, a[i], b[i])
		}
		seen[a[i]] = true
	}
	if open := keys(0); open[1] != open[0]+1 {
		t.Errorf("without a secret: %v, want one after the other", open[:2])
	}
}
