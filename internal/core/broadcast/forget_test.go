package broadcast

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestParkedUntilTheirSendersGiveUp: what waits for a root that does not answer is refused
// when its own sender waits no more, whatever came before it, and whatever time a hop
// claims, when a root that is there would have answered; the rest is looked at in its order.
func TestParkedUntilTheirSendersGiveUp(t *testing.T) {
	for _, first := range []bool{true, false} { // the one that waits longest comes first, or last
		c := provenChain(t, 4)
		m, err := decodeRequest(c.caught(t, Broadcast{}))
		if err != nil {
			t.Fatal(err)
		}
		n := c.node(2)
		n.mute = true
		m.Incarnation++ // not known
		waits := []time.Duration{broadcastmsg.MaxLevel, 3 * time.Second, time.Second, 2 * time.Second}
		if !first {
			slices.Reverse(waits)
		}
		begun := c.clock
		for i, level := range waits {
			m.Sequence, m.Level, m.Patience, m.Late = uint64(1000+i), level, 0, 0
			if level == broadcastmsg.MaxLevel {
				m.Patience = broadcastmsg.MaxPatience
			}
			n.step(Input{Kind: Message, Node: "n1", Bytes: m.Append(nil)})
		}
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, parkedFor} {
			if got := n.Deadline().Sub(begun); got != want+n.cfg.RoundTrip {
				t.Errorf("longest first %v: request %d waits for %v, want %v", first, i, got, want+n.cfg.RoundTrip)
			}
			c.clock = max(c.clock, n.Deadline())
			n.step()
			if n.proofs.waiting != 3-i {
				t.Errorf("longest first %v: after %v %d wait, want %d", first, want, n.proofs.waiting, 3-i)
			}
		}
		if leak := n.leaks(); leak != "" {
			t.Error(leak)
		}
	}
}

// TestForgottenRootsAreAskedAnew: what proves a root's requests goes with a host that is
// forgotten, at both ends; what has run does not run again, and what follows runs as before.
func TestForgottenRootsAreAskedAnew(t *testing.T) {
	c := provenChain(t, 4)
	old := c.caught(t, Broadcast{Payload: []byte("once")})
	c.node(1).queue = append(c.node(1).queue, packet{"n2", old})
	c.settle()
	for i, name := range c.names {
		for _, other := range c.names {
			c.nodes[name].Forget(other, i == 2)
		}
		if p := &c.nodes[name].proofs; len(p.roots)+len(p.readers) > 0 {
			t.Errorf("%s keeps %d roots and %d readers", name, len(p.roots), len(p.readers))
		}
	}
	c.give("n1", old)
	if c.pass(time.Second); c.node(2).ran != 1 {
		t.Errorf("n2 has run it %d times", c.node(2).ran)
	}
	for i := range 2 {
		c.node(0).must(t, Broadcast{})
		if c.node(2).ran != 2+i || c.node(3).ran != 2+i || len(c.node(2).proofs.roots) != 1 || len(c.node(0).proofs.readers) != 2 {
			t.Errorf("request %d: n2 has run %d, n3 %d; n2 believes %d, who have %d asked n0", i, c.node(2).ran, c.node(3).ran, len(c.node(2).proofs.roots), len(c.node(0).proofs.readers))
		}
	}
}

// TestNamesOfForgottenHosts: a host that asks, answers and calls under ever other names, or
// in ever later incarnations, leaves nothing once those names are forgotten, or over.
func TestNamesOfForgottenHosts(t *testing.T) {
	c := newProven(1, chain)
	n := c.node(0)
	const names = 1000
	public := [ed25519.PublicKeySize]byte(n.cfg.Key.Public().(ed25519.PublicKey))
	for i := range names {
		evil := broadcastmsg.Node(fmt.Sprint("evil#", i%(names/2)))
		life := uint64(1 + i/(names/2))
		n.step(Input{Kind: Up, Node: evil, Incarnation: life})
		question := broadcastmsg.Question{Secret: [broadcastmsg.SecretSize]byte{1}}
		n.step(Input{Kind: Message, Node: evil, Bytes: question.Append(nil)})
		m := &broadcastmsg.Request{
			Flags: broadcastmsg.Proven, Service: testService, Tree: chain, Patience: time.Second, Key: broadcastmsg.Key{Root: evil, Incarnation: life, Sequence: 7},
			Proof: &broadcastmsg.Proof{Signature: make([]byte, broadcastmsg.SignatureSize), Floor: 7},
		}
		n.step(Input{Kind: Message, Node: "evil", Bytes: m.Append(nil)}) // it has to be asked
		answer := broadcastmsg.Answer{Incarnation: life, Floor: 7, Public: public}
		n.step(Input{Kind: Message, Node: evil, Bytes: answer.Append(nil)})
		n.step(Input{Kind: Message, Node: evil, Bytes: m.Append(nil)})
		c.pass(time.Second)
	}
	if len(n.proofs.roots) != names/2 || n.Counters().Unproven != names {
		t.Fatalf("%d roots have answered, %d requests are unproven", len(n.proofs.roots), n.Counters().Unproven)
	}
	if k := len(n.finished.pasts); k != names/2 {
		t.Errorf("of %d names %d are remembered", names/2, k)
	}
	for i := range names / 2 {
		n.Forget(broadcastmsg.Node(fmt.Sprint("evil#", i)), false)
	}
	if p := &n.proofs; len(p.roots)+len(p.readers)+len(n.finished.pasts)+len(n.incarnations) > 0 {
		t.Errorf("%d roots, %d readers, %d roots with their pasts, and %d incarnations are kept", len(p.roots), len(p.readers), len(n.finished.pasts), len(n.incarnations))
	}
}

// TestEvictedPastsOfForgottenRoots: what has ended of roots that are forgotten goes when other broadcasts need
// its place, and leaves nothing.
func TestEvictedPastsOfForgottenRoots(t *testing.T) {
	m := newMemory(16 * pageBits)
	for i := range 1000 {
		root := broadcastmsg.Node(fmt.Sprint("evil#", i))
		m.keep(life{root, 1})
		m.add(broadcastmsg.Key{Root: root, Incarnation: 1, Sequence: 7}, core.Never)
		m.release(root)
	}
	if len(m.pasts) > len(m.pages) || len(m.pages) > 16 {
		t.Errorf("%d roots are remembered, for %d pages", len(m.pasts), len(m.pages))
	}
}
