package member

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// renewable are the keys of a node whose host's certificates change.
type renewable struct {
	keys
	own     *byte           // when its birth was signed
	revoked map[string]byte // names whose births count only if they were signed later
	stolen  map[string]byte // those whose births do not if they were signed then
}

func (k renewable) Birth() []byte { return k.signed(*k.own) }

func (k renewable) Verify(id gossip.ID, incarnation uint64, record []byte) (LifeKey, bool) {
	key, ok := k.keys.Verify(id, incarnation, record)
	until, revoked := k.revoked[id.Name()]
	at, stolen := k.stolen[id.Name()]
	return key, ok && (!revoked || record[32] > until) && (!stolen || record[32] != at)
}

func newRenewableRig(t tester, names ...string) (*provenRig, renewable) {
	k := renewable{of("a", 5), new(byte), map[string]byte{}, map[string]byte{}}
	r := &provenRig{newRig(t, func(c *Config) { c.Identity = k })}
	for _, n := range names {
		r.greet(n, 1)
	}
	r.take()
	return r, k
}

// births returns how often a birth was sent, as it was signed at a moment, by link.
func (r *provenRig) births(k keys, at byte) map[Link]int {
	sent := map[Link]int{}
	for _, s := range r.out.Sends {
		for _, b := range s.Message.Births {
			if bytes.Equal(b.Record, k.signed(at)) {
				sent[s.Link]++
			}
		}
	}
	return sent
}

func (r *provenRig) birth(l Link, name string, record []byte) {
	r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.index(name), 1, record}}})
}

// recheck has the core ask all its neighbours for births of a node.
func (r *provenRig) recheck(name string) {
	r.step(Input{Kind: Recheck})
	asked := 0
	for _, s := range r.out.Sends {
		if w := s.Message.Alives; s.Message.Type == gossip.Wants && len(w) == 1 && w[0].Node == r.index(name) {
			asked++
		}
	}
	if asked != len(r.links) || len(r.out.Sends) != asked || !r.Has(r.index(name)) {
		r.t.Errorf("%d neighbours of %d are asked for %s: %q", asked, len(r.links), name, r.log)
	}
}

// TestUnprovenBirths: a node of which a neighbour has a birth that counts stays, also where the one that
// does not was signed later, by who had its certificate.
func TestUnprovenBirths(t *testing.T) {
	r, k := newRenewableRig(t, "b", "c", "m")
	m := r.linkTo(r.index("m")).number
	r.birth(m, "b", of("b", 1).signed(9))
	k.stolen["b"] = 9
	r.take()
	r.recheck("b")
	r.frame(m, Message{Type: gossip.Wants, Alives: []Entry{{Node: r.index("b"), Version: ver(1, 0)}}})
	if len(r.births(of("b", 1), 9)) > 0 {
		t.Error("a birth that does not count is sent to who asks for one that does")
	}
	r.birth(m, "b", of("b", 1).signed(4))
	if got := r.births(of("b", 1), 4); len(got) != 1 || !bytes.Equal(r.record(r.index("b"), 1), of("b", 1).signed(4)) {
		t.Errorf("one that counts is passed on to %v, want c alone", got)
	}
	r.pass(2 * r.cfg.askedFor())
	if !r.Has(r.index("b")) || len(r.unproven) > 0 {
		t.Errorf("b has left: %q", r.log)
	}
}

// TestRevokedInASmallView: where a node is gone whose birth does not count, fewer suspicions are enough
// for another.
func TestRevokedInASmallView(t *testing.T) {
	r, k := newRenewableRig(t, "b", "m")
	r.cfg.Theta = 2
	r.reports = []Suspicion{r.accuse(r.index("b"), ver(1, 1))} // one of two that it needs
	if r.convict(); !r.Has(r.index("b")) {
		t.Fatal("b is not in the view")
	}
	k.revoked["m"] = 3
	r.step(Input{Kind: Recheck})
	r.pass(r.cfg.askedFor())
	if r.Has(r.index("m")) || r.Has(r.index("b")) {
		t.Errorf("m is in the view: %v, b is: %v", r.Has(r.index("m")), r.Has(r.index("b")))
	}
}

// TestRenewedTooOften: who signs a birth again and again loads its neighbours no more than once a while.
func TestRenewedTooOften(t *testing.T) {
	r, _ := newRenewableRig(t, "b", "c", "m")
	m, sent := r.linkTo(r.index("m")).number, 0
	for at := range byte(100) {
		r.birth(m, "b", of("b", 1).signed(at+1))
		sent += len(r.births(of("b", 1), at+1))
	}
	if sent != 1 {
		t.Errorf("%d births are passed on to c, want 1", sent)
	}
	r.pass(renewalPause)
	if r.birth(m, "b", of("b", 1).signed(200)); len(r.births(of("b", 1), 200)) != 1 {
		t.Error("a later one is not taken")
	}
}

// TestRenewedBirths: a birth that is signed again takes the place of the one before, at the
// node, at its neighbours and at theirs, and nothing else does.
func TestRenewedBirths(t *testing.T) {
	r, k := newRenewableRig(t, "b", "c", "m")
	c, m := r.linkTo(r.index("c")).number, r.linkTo(r.index("m")).number
	if r.step(Input{Kind: Recheck}); len(r.out.Sends) > 0 {
		t.Errorf("nothing has changed, and it sends %q", r.log)
	}
	*k.own = 1
	if r.step(Input{Kind: Recheck}); len(r.births(of("a", 5), 1)) != 3 || !bytes.Equal(r.record(r.self, 5), of("a", 5).signed(1)) {
		t.Errorf("its own birth, signed again, is sent on %v, want 3 links", r.births(of("a", 5), 1))
	}
	before := of("b", 1).Birth()
	other := append(bytes.Clone(of("b", 2).signed(9)[:32]), of("b", 1).signed(9)[32:]...)
	for what, record := range map[string][]byte{"not signed": append(bytes.Clone(before[:32]), make([]byte, 65)...), "of m": of("m", 1).signed(9), "of another key": other, "the same": before, "none": nil} {
		if r.birth(m, "b", record); !bytes.Equal(r.record(r.index("b"), 1), before) || len(r.out.Sends) > 0 {
			t.Errorf("a record that is %s takes the place of b's", what)
		}
	}
	later := of("b", 1).signed(2)
	if r.birth(m, "b", later); !bytes.Equal(r.record(r.index("b"), 1), later) {
		t.Error("a birth that was signed again is not taken")
	}
	if got := r.births(of("b", 1), 2); len(got) != 1 || got[c] != 1 {
		t.Errorf("it is passed on to %v, want c alone, at %d", got, c)
	}
	for _, record := range [][]byte{later, before, of("b", 1).signed(1)} {
		if r.birth(c, "b", record); !bytes.Equal(r.record(r.index("b"), 1), later) || len(r.out.Sends) > 0 {
			t.Error("what is not later is taken, or passed on")
		}
	}
	if len(r.View()) != 4 {
		t.Errorf("%d nodes are in the view", len(r.View()))
	}
}

// TestRevokedBirths: nodes whose births do not count any more are removed, and their word is;
// they stay out until a birth counts.
func TestRevokedBirths(t *testing.T) {
	r, k := newRenewableRig(t, "b", "c", "m")
	r.cfg.Theta = 2
	b, m := r.index("b"), r.linkTo(r.index("m")).number
	r.frame(m, Message{Type: gossip.Update, Suspicions: []Suspicion{r.accusation("b", "c", ver(1, 1), of("b", 1))}})
	if len(r.Suspicions()) != 1 {
		t.Fatal("b does not suspect c")
	}
	r.take()
	k.revoked["b"] = 3
	r.recheck("b")
	r.pass(r.cfg.askedFor())
	if !r.logged("leave b 1.1 suspected") || r.Has(b) || len(r.Suspicions()) > 0 {
		t.Errorf("b is in the view: %v, its word counts: %v; %q", r.Has(b), r.Suspicions(), r.log)
	}
	if r.linkTo(b) != nil {
		t.Error("there is a link to b")
	}
	r.pass(r.cfg.Tau)
	for _, message := range r.last {
		if len(message.Leaves) > 0 {
			t.Error("it is said that b has left")
		}
	}
	r.take()
	r.frame(m, Message{Type: gossip.Update, Alives: []Entry{r.alive("b", ver(1, 2), of("b", 1))}})
	r.birth(m, "b", of("b", 1).signed(3))
	r.want("the revoked birth", fmt.Sprintf("link %d: wants alive:b,1.0", m))
	r.frame(m, Message{Type: gossip.Update, Alives: []Entry{r.alive("b", ver(1, 2), of("b", 1))}})
	r.birth(m, "b", of("b", 1).signed(4))
	r.want("one that counts", fmt.Sprintf("link %d: wants alive:b,1.0", m), "join b 1.2", "dial b")
}
