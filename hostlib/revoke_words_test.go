package hostlib

import (
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// TestFailureFreePaysNothing: no connection is made, and no memory taken, before somebody revokes.
func TestFailureFreePaysNothing(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"})
	comms := form(t, "test", hosts, members, OnTree())
	sum(t, comms, 100)
	open := 0
	for _, h := range hosts {
		open += h.Connections().Open
	}
	if n := len(hosts) - 1; open != 2*n {
		t.Errorf("%d ends of connections, want those of %d links of the tree", open, n)
	}
	for _, c := range comms {
		if v := &c.revocation; v.held != nil || v.out.Sends != nil {
			t.Errorf("rank %d has sent or held something", c.Rank())
		}
	}
	leave(t, comms)
}

// notice is that a member of a communicator has revoked it, as rank 0 knows the communicator.
func notice(c *Communicator, by uint32) word {
	n := revoke.Notice{Of: revoke.Identity{Group: c.group, Life: uint64(c.own)}, By: by}
	return word{kind: revokes, rest: n.Append(nil)}
}

// TestBrokenConnectionRepeatsNotice: until the neighbour has sent its own.
func TestBrokenConnectionRepeatsNotice(t *testing.T) {
	h := joinOne(t, "h0", patient)
	f := newFake(t, "h1", h)
	c, _ := f.formed(within(t), h, "test")
	c.Revoke()
	for k := range 4 {
		if k > 0 {
			f.host.Disconnect("h0", peer.ErrClosed)
		}
		until(within(t), t, "the notice has come", func() bool { return f.count(revokes) > k })
		for _, w := range f.heard(revokes) {
			if want := notice(c, 0); string(w.rest) != string(want.rest) {
				t.Fatalf("%x, want %x", w.rest, want.rest)
			}
		}
	}
	f.say(peer.Control, notice(c, 1))
	until(within(t), t, "its own is taken", func() bool { return !h.keepsRevoked() })
}

// TestNoticesOfStrangers end nothing: of who is no member, or no neighbour; of another life; and of a
// rank that there is not.
func TestNoticesOfStrangers(t *testing.T) {
	h := joinOne(t, "h0", patient)
	f, stranger := newFake(t, "h1", h), newFake(t, "h2", h)
	c, number := f.formed(within(t), h, "test")
	other := notice(c, 1)
	other.rest[32]++ // its life
	f.say(peer.Control, other)
	f.say(peer.Control, notice(c, 2))
	stranger.say(peer.Control, notice(c, 1))
	for _, by := range []*fake{f, stranger} {
		by.answer(peer.Control, word{kind: opens, from: 3, own: 77, hello: hello{met: 1234, name: "nothing"}}) // when it is through
	}
	if c.Err() != nil {
		t.Fatalf("it has ended: %v", c.Err())
	}
	f.frame(peer.Control, number, (&wire.Fail{Kind: wire.FailRevoked, Rank: 1}).Append(nil))
	<-c.Done()
	wantRevoked(t, c.Err(), 1)
}

// TestWordOfTheTreeIsRelayed: a member that finds out on the tree of hosts sends notices to its
// neighbours as any other.
func TestWordOfTheTreeIsRelayed(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h2"}, patient)
	f := newFake(t, "h1", hosts[0])
	members = []Member{members[0], f.member(), members[1]}
	comms := make([]*Communicator, 2)
	var forming sync.WaitGroup
	for i, h := range hosts {
		forming.Go(func() {
			var err error
			if comms[i], err = h.Communicator(within(t), "test", members); err != nil {
				t.Error(err)
			}
		})
	}
	number := f.link("test", members)
	if forming.Wait(); t.Failed() {
		t.FailNow()
	}
	f.frame(peer.Control, number, (&wire.Fail{Kind: wire.FailRevoked, Rank: 1}).Append(nil))
	for _, c := range comms {
		<-c.Done()
		wantRevoked(t, c.Err(), 1)
	}
	until(within(t), t, "both have sent the notice", func() bool { return f.count(revokes) >= 2 })
}

// TestNoticeBeforeFormed: a member that is not formed yet is revoked as soon as it is.
func TestNoticeBeforeFormed(t *testing.T) {
	h := joinOne(t, "h0", patient)
	f := newFake(t, "h1", h)
	members := []Member{h.Member(), f.member()}
	var forming sync.WaitGroup
	forming.Go(func() {
		c, err := h.Communicator(within(t), "test", members)
		if err == nil { // it was formed before it ended
			<-c.Done()
			err = c.Err()
		}
		wantRevoked(t, err, 1)
	})
	a := f.answer(peer.Control, opening("test", members, 5))
	f.say(peer.Control, word{kind: confirms, to: a.from})
	n := revoke.Notice{Of: revoke.Identity{Group: opening("test", members, 5).group, Life: uint64(a.own)}, By: 1}
	f.say(peer.Control, word{kind: revokes, rest: n.Append(nil)})
	f.frame(peer.Control, a.from, new(wire.Missing).Append(nil)) // none beneath it is
	forming.Wait()
	until(within(t), t, "it is relayed", func() bool { return f.count(revokes) == 1 })
}
