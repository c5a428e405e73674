package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// keys are those of a node of the tests: hosts' keys, which stand for certificates, and
// those of lives come from their names.
type keys struct {
	id          gossip.ID
	incarnation uint64
}

func seeded(what string, id gossip.ID, n uint64) ed25519.PrivateKey {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what+string(id)), n))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (k keys) life() ed25519.PrivateKey { return seeded("life", k.id, k.incarnation) }

func (k keys) statement(life []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(k.id), k.incarnation), life...)
}

func (k keys) Birth() []byte { return k.signed(0) }

// signed returns the birth as it was signed at a moment.
func (k keys) signed(at byte) []byte {
	says := append(slices.Clone(k.life().Public().(ed25519.PublicKey)), at)
	return append(says, ed25519.Sign(seeded("host", k.id, 0), k.statement(says))...)
}

func (k keys) Later(record, than []byte) bool {
	return len(record) > 32 && bytes.Equal(record[:32], than[:32]) && record[32] > than[32]
}

func (k keys) Sign(statement []byte) *Signature {
	s := Signature(ed25519.Sign(k.life(), statement))
	return &s
}

func (k keys) Verify(id gossip.ID, incarnation uint64, record []byte) (LifeKey, bool) {
	if len(record) != 33+ed25519.SignatureSize {
		return LifeKey{}, false
	}
	host := seeded("host", id, 0).Public().(ed25519.PublicKey)
	return LifeKey(record), ed25519.Verify(host, keys{id, incarnation}.statement(record[:33]), record[33:])
}

func (k keys) Check(key LifeKey, statement []byte, s *Signature) bool {
	return ed25519.Verify(key[:], statement, s[:])
}

// provenRig is a rig of nodes that prove what they say; the others are at incarnation 1.
type provenRig struct{ *rig }

func newProvenRig(t tester, proofs bool, names ...string) *provenRig {
	t.Helper()
	r := &provenRig{newRig(t, func(c *Config) {
		if proofs {
			c.Identity = keys{idOf("a"), 5}
		}
	})}
	for _, n := range names {
		r.greet(n, 1)
	}
	r.take()
	return r
}

func of(name string, incarnation uint64) keys { return keys{idOf(name), incarnation} }

// greet has a node connect.
func (r *provenRig) greet(name string, incarnation uint64) Link {
	l := r.link
	r.link += 2
	r.step(Input{Kind: Accepted, Link: l})
	r.frame(l, Message{
		Type: gossip.Hello, From: r.entry(name, incarnation, 1), Target: r.key, Need: gossip.Ring, Tag: uint32(l), Birth: of(name, incarnation).Birth(),
	})
	return l
}

// alive is a node at a version, proven by another's keys or its own.
func (r *provenRig) alive(name string, v Version, by keys) Entry {
	return Entry{r.index(name), v, by.Sign(statement(saysMinor, uint64(v.Minor)))}
}

func (r *provenRig) leave(name string, v Version, by keys) Departure {
	d := Departure{Node: r.index(name), Version: v}
	d.Proof = by.Sign(d.statement())
	return d
}

func (r *provenRig) accusation(reporter, suspect string, v Version, by keys) Suspicion {
	s := suspicion(r.rig, reporter, suspect, v)
	s.Proof = by.Sign(r.Core.suspicion(s.Suspect, v))
	return s
}

const ever = ^uint64(0)

// attack is something that node m, which has a certificate and the zone's keys, sends to a
// about b or a itself.
type attack struct {
	what string
	send func(r *provenRig, l Link)
	// harms without proofs: with them, nothing does.
	harms bool
}

func attacks() []attack {
	m := of("m", 1)
	datagram := func(f func(r *provenRig) Message) func(*provenRig, Link) {
		return func(r *provenRig, _ Link) {
			message := f(r)
			r.step(Input{Kind: Datagram, Message: &message})
		}
	}
	frame := func(f func(r *provenRig) Message) func(*provenRig, Link) {
		return func(r *provenRig, l Link) { r.frame(l, f(r)) }
	}
	both := func(what string, harms bool, f func(r *provenRig) Message) []attack {
		return []attack{{what + ", datagram", datagram(f), harms}, {what + ", link", frame(f), harms}}
	}
	all := slices.Concat(
		both("b leaves, unsigned", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Leaves: []Departure{{Node: r.index("b"), Version: ver(1, 1)}}}
		}),
		both("b leaves, signed by m", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Leaves: []Departure{r.leave("b", ver(1, 1), m)}}
		}),
		both("b leaves, signed by its former life", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Leaves: []Departure{r.leave("b", ver(1, 1), of("b", 0))}}
		}),
		both("b leaves in a life to come", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Leaves: []Departure{r.leave("b", ver(ever, 1), m)}}
		}),
		both("c suspects b, signed by m", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Suspicions: []Suspicion{r.accusation("c", "b", ver(1, 1), m)}}
		}),
		both("c suspects b, unsigned", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Suspicions: []Suspicion{suspicion(r.rig, "c", "b", ver(1, 1))}}
		}),
		both("a suspects b, as if it had said so itself", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Suspicions: []Suspicion{suspicion(r.rig, "a", "b", ver(1, 1))}}
		}),
		both("c suspects b as it never was", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Suspicions: []Suspicion{r.accusation("c", "b", ver(1, gossip.MaxMinor), of("c", 1))}}
		}),
		both("c has suspected another", true, func(r *provenRig) Message {
			s := r.accusation("c", "d", ver(1, 1), of("c", 1))
			s.Suspect = r.index("b")
			return Message{Type: gossip.Update, Suspicions: []Suspicion{s}}
		}),
		both("a is suspected at a minor that cannot be refuted", true, func(r *provenRig) Message {
			return Message{Type: gossip.Update, Suspicions: []Suspicion{r.accusation("m", "a", ver(5, gossip.MaxMinor), m)}}
		}),
	)
	for _, v := range []Version{ver(ever, 1), ver(2, 1), ver(1, gossip.MaxMinor), ver(1, 2)} {
		all = append(all,
			attack{fmt.Sprintf("b asks for discovery at %v", v), datagram(func(r *provenRig) Message {
				return Message{Type: gossip.DiscoveryRequest, From: r.alive("b", v, m), Nonce: 99, Boot: true}
			}), true},
			attack{fmt.Sprintf("b answers a probe at %v", v), func(r *provenRig, _ Link) {
				r.silence("b")
				r.startProbing(suspect{node: r.index("b"), cause: silent, duty: watching})
				r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Echo, From: r.alive("b", v, m), Nonce: r.suspected[0].nonce}})
			}, true},
			attack{fmt.Sprintf("b answers a request at %v", v), datagram(func(r *provenRig) Message {
				return Message{Type: gossip.DiscoveryReply, From: r.alive("b", v, m), Nonce: r.expect(r.index("b")), Boot: true, Birth: m.Birth()}
			}), true},
			attack{fmt.Sprintf("b is in a view at %v", v), frame(func(r *provenRig) Message {
				return Message{Type: gossip.Base, Alives: []Entry{r.alive("b", v, m)}}
			}), true},
			attack{fmt.Sprintf("b is at %v, with births of m", v), func(r *provenRig, l Link) {
				r.frame(l, Message{Type: gossip.Update, Alives: []Entry{r.alive("b", v, m)}})
				for _, record := range [][]byte{m.Birth(), of("b", 1).Birth(), of("b", 0).Birth(), {1}, nil} {
					r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.index("b"), v.Incarnation, record}}})
				}
			}, true},
			attack{fmt.Sprintf("b connects at %v", v), func(r *provenRig, _ Link) {
				r.step(Input{Kind: Accepted, Link: 99})
				r.frame(99, Message{Type: gossip.Hello, From: r.alive("b", v, m), Target: r.key, Need: gossip.Ring, Birth: m.Birth()})
			}, true},
		)
	}
	for _, v := range []Version{ver(ever, 1), ver(6, 1), ver(5, gossip.MaxMinor)} {
		all = append(all,
			attack{fmt.Sprintf("a is probed at %v", v), datagram(func(r *provenRig) Message {
				return Message{Type: gossip.Probe, From: r.entry("m", 1, 1), Target: r.key, About: Entry{Node: r.self, Version: v}}
			}), true},
			attack{fmt.Sprintf("a is asked for at %v", v), datagram(func(r *provenRig) Message {
				return Message{Type: gossip.Relay, From: r.entry("m", 1, 1), About: Entry{Node: r.self, Version: v}}
			}), true},
			attack{fmt.Sprintf("a is in a view at %v", v), func(r *provenRig, l Link) {
				r.frame(l, Message{Type: gossip.Base, Alives: []Entry{r.alive("a", v, m)}})
				r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.self, v.Incarnation, m.Birth()}, {r.self, v.Incarnation, of("a", 5).Birth()}}})
			}, true},
			attack{fmt.Sprintf("a is dead at %v", v), frame(func(r *provenRig) Message {
				return Message{Type: gossip.Dispute, Alives: []Entry{{Node: r.self, Version: v}}}
			}), v.Incarnation == 5},
			attack{fmt.Sprintf("a has asked while it was dead at %v", v), datagram(func(r *provenRig) Message {
				return Message{Type: gossip.DiscoveryReply, From: r.entry("m", 1, 1), Nonce: r.expect(r.index("m")), Boot: true, About: Entry{Node: Nobody, Version: v}}
			}), v.Incarnation == 5},
			attack{fmt.Sprintf("a has left at %v", v), frame(func(r *provenRig) Message {
				return Message{Type: gossip.Update, Leaves: []Departure{r.leave("a", v, m)}}
			}), v.Incarnation == 5},
			attack{fmt.Sprintf("a is refused at %v", v), func(r *provenRig, _ Link) {
				r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryReply, From: r.entry("e", 1, 1), Nonce: r.expect(r.index("e")), Boot: true}})
				number := r.links[len(r.links)-1].number
				r.step(Input{Kind: Connected, Link: number})
				r.frame(number, Message{Type: gossip.Refuse, Reason: gossip.Dead, About: Entry{Node: r.self, Version: v}, Birth: m.Birth()})
			}, true},
		)
	}
	return append(all,
		attack{"b is dead as it never was", frame(func(r *provenRig) Message {
			return Message{Type: gossip.Dispute, Alives: []Entry{{Node: r.index("b"), Version: ver(1, gossip.MaxMinor)}}}
		}), true},
		attack{"others than m cannot reach b", func(r *provenRig, l Link) {
			r.silence("b", "c", "d")
			r.hung, r.unasked = true, true
			r.startProbing(suspect{node: r.index("b"), cause: silent, duty: watching})
			r.step()
			r.pass(r.cfg.Grace / 2)
			for _, n := range []string{"c", "d"} {
				nack := Message{Type: gossip.Nack, From: r.entry(n, 1, 1), Nonce: r.suspected[0].nonce, Proof: m.Sign(r.Core.silence(r.suspected[0].nonce, r.self, r.index("b")))}
				r.step(Input{Kind: Datagram, Message: &nack})
				r.frame(l, nack)
			}
			r.pass(r.cfg.Grace)
		}, true},
		attack{"d could not reach another", func(r *provenRig, l Link) {
			r.silence("b", "c", "d")
			r.hung, r.unasked = true, true
			r.startProbing(suspect{node: r.index("b"), cause: silent, duty: watching})
			r.step()
			r.pass(r.cfg.Grace / 2)
			nonce := r.suspected[0].nonce
			for _, said := range [][]byte{r.Core.silence(nonce, r.self, r.index("c")), r.Core.silence(nonce, r.index("m"), r.index("b")), r.Core.silence(nonce-1, r.self, r.index("b"))} {
				r.frame(l, Message{Type: gossip.Nack, From: r.entry("d", 1, 1), Nonce: nonce, Proof: of("d", 1).Sign(said)})
			}
			r.pass(r.cfg.Grace)
		}, true},
		attack{"a stranger is there", func(r *provenRig, l Link) {
			r.frame(l, Message{Type: gossip.Base, Alives: []Entry{r.alive("x", ver(1, 1), m)}})
			r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.index("x"), 1, m.Birth()}}})
		}, true},
	)
}

// harmed reports what an attack has done.
func (r *provenRig) harmed() string {
	b := r.index("b")
	switch {
	case r.stopped:
		return "a has stopped"
	case r.Self().Version.Incarnation != 5 || r.Self().Version.Minor > 3:
		return fmt.Sprintf("a is at %v", r.Self().Version)
	case !r.Has(b) || r.Version(b) != ver(1, 1):
		return fmt.Sprintf("b is at %v, in the view: %v", r.Version(b), r.Has(b))
	case r.Has(r.index("x")):
		return "x is in the view"
	}
	for _, m := range r.last {
		if slices.ContainsFunc(m.Leaves, func(d Departure) bool { return d.Node == b }) || slices.ContainsFunc(m.Suspicions, func(s Suspicion) bool { return s.Suspect == b }) {
			return fmt.Sprintf("it is passed on: %s", r.message(&m))
		}
	}
	return ""
}

// TestForgeries: what a member says of another's existence, incarnation, minor, leave, and
// of what third ones say of it, has no effect where nodes prove what they say; and has one
// where they do not.
func TestForgeries(t *testing.T) {
	for _, x := range attacks() {
		for _, proofs := range []bool{false, true} {
			r := newProvenRig(t, proofs, "b", "c", "d", "m")
			l := r.linkTo(r.index("m")).number
			x.send(r, l)
			r.pass(2 * r.cfg.Tau)
			if harm := r.harmed(); (harm != "") != (x.harms && !proofs) {
				t.Errorf("%s, proofs %v: harm: %q, want one: %v", x.what, proofs, harm, x.harms && !proofs)
			}
		}
	}
}

// TestProofs: what nodes say of themselves, and prove, counts.
func TestProofs(t *testing.T) {
	r := newProvenRig(t, true, "b", "c", "m")
	l := r.linkTo(r.index("m")).number
	b := r.index("b")
	r.frame(l, Message{Type: gossip.Update, Alives: []Entry{r.alive("b", ver(1, 2), of("b", 1))}})
	if r.Version(b) != ver(1, 2) {
		t.Fatalf("b is at %v, which it has signed as 1.2", r.Version(b))
	}
	r.frame(l, Message{Type: gossip.Update, Alives: []Entry{r.entry("d", 7, 1), r.alive("e", ver(8, 4), of("e", 8))}})
	r.want("news of lives that are unknown", fmt.Sprintf("link %d: wants alive:d,7.0 alive:e,8.0", l))
	r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.index("d"), 7, of("d", 7).Birth()}, {r.index("e"), 8, of("e", 8).Birth()}}})
	r.want("the births", "join d 7.1", "join e 8.4")
	r.frame(l, Message{Type: gossip.Update, Leaves: []Departure{r.leave("d", ver(7, 1), of("d", 7))}})
	r.frame(l, Message{Type: gossip.Update, Suspicions: []Suspicion{r.accusation("c", "e", ver(8, 4), of("c", 1))}})
	r.want("a leave, a suspicion", "leave d 7.1 departed", "leave e 8.4 suspected")
	r.frame(l, Message{Type: gossip.Update, Leaves: []Departure{r.leave("f", ver(9, 1), of("f", 9))}, Alives: []Entry{r.entry("f", 9, 1)}})
	r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.index("f"), 9, of("f", 9).Birth()}}})
	r.want("a leave before the birth is there", fmt.Sprintf("link %d: wants alive:f,9.0", l), "join f 9.1", "leave f 9.1 departed")
	r.frame(l, Message{Type: gossip.Update, Alives: []Entry{r.entry("a", 6, 1)}})
	r.frame(l, Message{Type: gossip.Births, Births: []Birth{{r.self, 6, of("a", 6).Birth()}}})
	if !r.logged("superseded by 6.1") {
		t.Errorf("its own later life: %q", r.log)
	}
	r = newProvenRig(t, true)
	r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.DiscoveryReply, From: r.entry("b", 1, 1), Nonce: r.expect(b), Boot: true}})
	number := r.links[0].number
	r.step(Input{Kind: Connected, Link: number})
	r.frame(number, Message{Type: gossip.Refuse, Reason: gossip.Dead, About: r.entry("a", 6, 1), Birth: of("a", 6).Birth()})
	if !r.logged("superseded by 6.1") {
		t.Errorf("who dials is refused with its own later life: %q", r.log)
	}
}

// TestBirthsAreAskedElsewhere: who does not prove what it says, or proves it wrongly, is
// followed by others who say it; what none of them proves is forgotten, and what is nobody's
// question is not taken.
func TestBirthsAreAskedElsewhere(t *testing.T) {
	news := func(r *provenRig) Message {
		return Message{Type: gossip.Update, Alives: []Entry{r.entry("d", 7, 1)}}
	}
	for _, how := range []string{"is silent", "is wrong", "is gone"} {
		r := newProvenRig(t, true, "b", "m")
		b, m := r.linkTo(r.index("b")).number, r.linkTo(r.index("m")).number
		r.frame(m, news(r))
		r.frame(b, news(r))
		if asked := fmt.Sprintf("link %d: wants alive:d,7.0", m); r.count(asked) != 1 || r.logged(fmt.Sprintf("link %d: wants", b)) {
			t.Fatalf("asked are %q, want m alone", r.log)
		}
		birth := Message{Type: gossip.Births, Births: []Birth{{r.index("d"), 7, of("d", 7).Birth()}}}
		if r.frame(b, birth); r.Has(r.index("d")) {
			t.Fatal("b was not asked")
		}
		switch how {
		case "is silent":
			r.pass(r.cfg.askedFor())
		case "is wrong":
			r.frame(m, Message{Type: gossip.Births, Births: []Birth{{r.index("d"), 7, of("m", 7).Birth()}}})
		case "is gone":
			r.step(Input{Kind: Failed, Link: m})
		}
		r.step()
		if !r.logged(fmt.Sprintf("link %d: wants alive:d,7.0", b)) {
			t.Fatalf("m %s: then asked: %q", how, r.log)
		}
		if r.frame(b, birth); !r.Has(r.index("d")) || len(r.claims) > 0 {
			t.Errorf("m %s: d is not in the view, %d claims", how, len(r.claims))
		}
	}
	r := newProvenRig(t, true, "m")
	r.frame(r.linkTo(r.index("m")).number, news(r))
	if r.pass(2 * r.cfg.askedFor()); len(r.claims) > 0 || r.wants != core.Never {
		t.Errorf("what nobody proves is kept: %v", r.claims)
	}
}

// TestClaimsAreBounded: neighbours that invent lives take no memory without end, and leave
// room for the news of others.
func TestClaimsAreBounded(t *testing.T) {
	liars := strings.Split("cefghijkm", "")
	r := newProvenRig(t, true, append(liars, "b")...)
	incarnation := uint64(1)
	claim := func(name string, n int) {
		m := Message{Type: gossip.Update}
		for range n {
			incarnation++
			m.Alives = append(m.Alives, r.entry("z", incarnation, 1))
		}
		r.frame(r.linkTo(r.index(name)).number, m)
	}
	if claim("m", 2*maxClaims); len(r.claims) != maxClaimsOfLink {
		t.Errorf("%d claims of one neighbour, want %d", len(r.claims), maxClaimsOfLink)
	}
	for _, name := range liars {
		claim(name, maxClaims)
	}
	if n := len(r.claims); n < maxClaims || n > maxClaims+sureClaims {
		t.Errorf("%d claims of %d neighbours, want %d, and some", n, len(liars), maxClaims)
	}
	b := r.linkTo(r.index("b")).number
	r.frame(b, Message{Type: gossip.Update, Alives: []Entry{r.entry("d", 7, 1)}})
	if r.frame(b, Message{Type: gossip.Births, Births: []Birth{{r.index("d"), 7, of("d", 7).Birth()}}}); !r.Has(r.index("d")) {
		t.Error("a life that a neighbour proves has no room beside those that others have invented")
	}
	for _, name := range append(liars, "b") {
		l := r.linkTo(r.index(name))
		if l.claims != 0 == (name != "b") {
			continue
		}
		t.Errorf("%s has %d claims", name, l.claims)
	}
	for _, name := range liars {
		r.step(Input{Kind: Failed, Link: r.linkTo(r.index(name)).number})
	}
	if r.pass(0); len(r.claims) != 0 {
		t.Errorf("%d claims of nobody", len(r.claims))
	}
}

// TestLeavesBeforeTheBirth: a neighbour that invents leaves of a life that is not proven yet
// does not keep the one out that another reports.
func TestLeavesBeforeTheBirth(t *testing.T) {
	r := newProvenRig(t, true, "b", "m")
	b, m := r.linkTo(r.index("b")).number, r.linkTo(r.index("m")).number
	for k := range uint32(2 * maxLefts) {
		r.frame(m, Message{Type: gossip.Update, Leaves: []Departure{r.leave("d", ver(7, 1+k), of("m", 1))}})
	}
	r.frame(b, Message{Type: gossip.Update, Leaves: []Departure{r.leave("d", ver(7, 1), of("d", 7))}})
	r.take()
	r.frame(m, Message{Type: gossip.Births, Births: []Birth{{r.index("d"), 7, of("d", 7).Birth()}}})
	r.want("the birth", "join d 7.1", "leave d 7.1 departed")
}

// TestServedBirths: who is asked answers with the births that it has, in pieces.
func TestServedBirths(t *testing.T) {
	r := newProvenRig(t, true, "b", "m")
	l := r.linkTo(r.index("m")).number
	ask := Message{Type: gossip.Wants, Alives: []Entry{{Node: r.self, Version: ver(5, 0)}, {Node: r.index("b"), Version: ver(2, 0)}, {Node: r.index("x"), Version: ver(1, 0)}}}
	for range birthsAtOnce {
		ask.Alives = append(ask.Alives, Entry{Node: r.index("b"), Version: ver(1, 0)})
	}
	r.frame(l, ask)
	if len(r.last) != 2 || len(r.last[0].Births) != birthsAtOnce || len(r.last[1].Births) != 1 || !bytes.Equal(r.last[0].Births[0].Record, of("a", 5).Birth()) {
		t.Errorf("the answer: %+v", r.last)
	}
}

// TestAmplification: all that a datagram draws from a core that does not know its sender is
// at most three times as large, whatever its type and its fields, with proofs and without.
func TestAmplification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newProvenRig(t, rapid.Bool().Draw(t, "proofs"), "b", "c", "d", "m")
		long := rapid.SampledFrom([]int{1, 40, 200}).Draw(t, "name")
		id := gossip.ID(fmt.Sprintf("%s@10.9.9.9:1", bytes.Repeat([]byte("v"), long)))
		victim := r.dir.Add(id)
		r.mute[victim] = true
		var m Message
		for m.Type == 0 {
			m = *rapid.SampledFrom(messages(r.dir)).Draw(t, "message")
			if m.Type == gossip.Births || m.Type == gossip.Hello {
				m.Type = 0
			}
		}
		m.From = Entry{Node: victim, Version: ver(rapid.Uint64().Draw(t, "incarnation"), 1)}
		if m.Type == gossip.DiscoveryRequest {
			m.Stealth = rapid.Bool().Draw(t, "stealth")
		}
		m.Target, m.Boot, m.Nonce = r.key, rapid.Bool().Draw(t, "boot"), rapid.Uint32().Draw(t, "nonce")
		m.About = Entry{Node: r.index(rapid.SampledFrom([]string{"a", "b", "z"}).Draw(t, "about")), Version: ver(5, rapid.Uint32Max(2).Draw(t, "minor"))}
		codec := NewCodec(r.dir)
		size := func(m *Message) (n int) {
			for _, p := range codec.Pieces(m, gossip.MaxDatagram) {
				n += len(p.Append(nil))
			}
			return n
		}
		asked := size(&m)
		r.out.Reset()
		r.Step(r.at, []Input{{Kind: Datagram, Message: &m}}, &r.out)
		r.passKeeping(200 * time.Millisecond)
		drawn := 0
		for _, p := range r.out.Packets {
			if p.To == victim || m.Type == gossip.Relay {
				drawn += size(p.Message)
			}
		}
		if drawn > 3*asked {
			t.Errorf("a %v of %d bytes draws %d", m.Type, asked, drawn)
		}
	})
}

// passKeeping lets time pass and keeps the output.
func (r *provenRig) passKeeping(d time.Duration) {
	for end := r.at.Add(d); r.Deadline() <= end; {
		r.at = max(r.at, r.Deadline())
		r.Step(r.at, nil, &r.out)
	}
}
