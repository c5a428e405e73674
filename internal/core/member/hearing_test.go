package member

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// quarrel is a core that watches b over a link, among others.
func quarrel(t *testing.T, change func(*Config)) (r *rig, link Link) {
	r = newRig(t, change)
	r.join("c", "d", "e", "f", "m")
	r.step(Input{Kind: SetMonitors, Nodes: []Index{r.index("m")}})
	link = r.accept("b", gossip.Ring)
	r.frame(link, Message{Type: gossip.Watchers, Watchers: []Index{r.self}})
	r.take()
	return r, link
}

// nack is another's word that it cannot reach who is probed.
func (r *rig) nack(from string, nonce uint32) *Message {
	return &Message{Type: gossip.Nack, From: r.entry(from, 1, 1), Nonce: nonce}
}

// overdue lets time pass until the silence of b is noticed.
func (r *rig) overdue() {
	r.t.Helper()
	r.silence("b")
	r.hung = true
	for end := r.at.Add(3 * r.cfg.Heartbeat); r.probing(r.index("b")) == nil; r.pass(time.Millisecond) {
		if r.at > end {
			r.t.Fatal("its silence is not noticed")
		}
	}
}

// TestSilenceTakesAWitness: a node that answers nothing is not accused while
// nobody else says that it cannot be reached; then it is at once.
func TestSilenceTakesAWitness(t *testing.T) {
	r, _ := quarrel(t, nil)
	r.silence("c", "d", "e", "f", "m")
	r.overdue()
	r.pass(r.cfg.Grace + time.Millisecond)
	d := r.probing(r.index("b"))
	if d == nil || r.logged("suspects") {
		t.Fatalf("accused without a witness: %q", r.log)
	}
	r.step(Input{Kind: Datagram, Message: r.nack("c", d.nonce+1)})
	if r.logged("suspects") {
		t.Fatal("a witness of something else is believed")
	}
	r.step(Input{Kind: Datagram, Message: r.nack("c", d.nonce)})
	if r.Has(r.index("b")) || !r.logged("to m: update suspects:a,b,1.1") {
		t.Errorf("not accused with a witness: %q", r.log)
	}
}

// TestAloneAccusesNobody: a core that nobody answers, or that is deaf, removes who
// is silent from its own view in the end, but does not accuse it: neighbours are asked
// to find out themselves.
func TestAloneAccusesNobody(t *testing.T) {
	r, _ := quarrel(t, nil)
	neighbour := r.accept("c", gossip.Random)
	r.take()
	r.silence("c", "d", "e", "f", "m")
	r.overdue()
	r.pass((lonely + 1) * r.cfg.Grace)
	if r.Has(r.index("b")) {
		t.Error("it stays in the view for ever")
	}
	r.pass(time.Second)
	if !r.logged(fmt.Sprintf("link %d: dispute dead:b,1.1", neighbour)) {
		t.Errorf("c is not instructed to find out: %q", r.log)
	}
	for _, line := range r.take() {
		if strings.Contains(line, "suspects:a,b") && !strings.HasPrefix(line, "link 1:") { // b itself may refute
			t.Errorf("it is accused: %q", line)
		}
	}
}

// TestTwoOfTwo: where nobody is left to be asked, a core decides in time.
func TestTwoOfTwo(t *testing.T) {
	r := newRig(t, nil)
	l := r.accept("b", gossip.Ring)
	r.silence("b")
	r.step(Input{Kind: Failed, Link: l})
	r.pass(r.cfg.Confirm)
	if r.Has(r.index("b")) {
		t.Error("a killed process stays in the view of two")
	}
}

// TestBrokenLinkOfTheLiving: a link that breaks is no sign of death where the
// address takes connections, or nothing is known of it: the node has Grace.
func TestBrokenLinkOfTheLiving(t *testing.T) {
	r, l := quarrel(t, nil)
	r.silence("b")
	r.hung = true
	r.step(Input{Kind: Failed, Link: l})
	r.pass(r.cfg.Grace - time.Millisecond)
	if !r.Has(r.index("b")) {
		t.Error("removed, though nothing refuses connections")
	}
	r.pass(2 * time.Millisecond)
	if r.Has(r.index("b")) {
		t.Error("it is in the view after Grace")
	}
}

// TestAskedOverALink: who answers no datagram is asked over its link, and its
// answer there ends the probing.
func TestAskedOverALink(t *testing.T) {
	r, l := quarrel(t, nil)
	r.overdue()
	r.take()
	r.pass(r.cfg.Confirm)
	if !r.logged("link 1: probe") {
		t.Fatalf("not asked over the link: %q", r.log)
	}
	r.frame(l, Message{Type: gossip.Echo, From: r.entry("b", 1, 1), Nonce: r.probing(r.index("b")).nonce})
	if r.pass(r.cfg.Grace); !r.Has(r.index("b")) {
		t.Error("it has answered")
	}
}

// TestAskedByDial: who has no link is asked over a connection that is dialled for
// that, and closed afterwards. It is no neighbour.
func TestAskedByDial(t *testing.T) {
	r, l := quarrel(t, nil)
	r.silence("b")
	r.hung = true
	r.step(Input{Kind: Failed, Link: l})
	if !r.logged("dial b") {
		t.Fatalf("not dialled: %q", r.log)
	}
	q := r.inquiries[0]
	r.take()
	r.step(Input{Kind: Connected, Link: q.link})
	r.want("connected", "link 2: probe")
	r.frame(q.link, Message{Type: gossip.Echo, From: r.entry("b", 1, 1), Nonce: q.nonce})
	if r.probing(r.index("b")) != nil || !r.logged("close 2") || r.logged("neighbour b up") {
		t.Errorf("it has answered: %q", r.log)
	}
}

// TestInquiryIsAnswered: on the connection that it came by, as long as the core
// is meant.
func TestInquiryIsAnswered(t *testing.T) {
	for _, meant := range []bool{true, false} {
		r := newRig(t, nil)
		r.join("b")
		target := r.key
		if !meant {
			target = idOf("x").Key()
		}
		r.take()
		r.step(Input{Kind: Accepted, Link: 1})
		r.frame(1, Message{Type: gossip.Probe, From: r.entry("b", 1, 1), Target: target, Nonce: 3})
		if r.logged("link 1: echo from a 5.1") != meant {
			t.Errorf("meant %v: %q", meant, r.log)
		}
	}
}

// TestRelayOverALink: a neighbour that asks over its link has the node asked over
// both transports, and is answered on the link.
func TestRelayOverALink(t *testing.T) {
	for _, end := range []string{"echo", "link", "refused", "nothing"} {
		r := newRig(t, nil)
		names := strings.Split("cdefghijklmnopqrstuvwxyz", "")
		r.join(names...)
		l := r.accept("b", gossip.Random)
		r.pass(time.Second)
		about := ""
		for _, n := range names {
			if r.linkTo(r.index(n)) == nil {
				about = n
			}
		}
		r.silence(about)
		r.hung = true
		r.take()
		r.frame(l, Message{Type: gossip.Relay, From: r.entry("b", 1, 1), Nonce: 9, About: r.entry(about, 0, 0)})
		var q inquiry
		if len(r.inquiries) == 1 {
			q = r.inquiries[0]
		} else {
			t.Fatalf("%s: no connection is dialled: %q", end, r.log)
		}
		want := "link 1: nack"
		switch end {
		case "echo":
			r.step(Input{Kind: Connected, Link: q.link})
			r.frame(q.link, Message{Type: gossip.Echo, From: r.entry(about, 1, 1), Nonce: q.nonce})
			want = "link 1: echo from " + about + " 1.1"
		case "link": // the node has dialled the core meanwhile
			r.accept(about, gossip.Ring)
			want = "link 1: echo from " + about + " 1.1"
		case "refused":
			r.step(Input{Kind: ConnectFailed, Link: q.link})
			r.pass(r.cfg.Confirm / 2)
		default:
			r.pass(r.cfg.Grace / relayOnLink)
		}
		if !r.logged(want) || !r.logged("to "+about+": probe") {
			t.Errorf("%s: %q, want %s", end, r.log, want)
		}
		if r.pass(time.Second); len(r.inquiries)+len(r.relays) > 0 {
			t.Errorf("%s: %d inquiries and %d relays are left", end, len(r.inquiries), len(r.relays))
		}
	}
}

// TestVoice: a core whose accusation was refuted takes one more witness for the
// next one, up to four, and one less again in time. Nobody is a witness twice.
func TestVoice(t *testing.T) {
	r, l := quarrel(t, nil)
	r.silence("b")
	r.step(Input{Kind: Failed, Link: l})
	r.pass(r.cfg.Confirm)
	if r.Has(r.index("b")) {
		t.Fatal("not accused")
	}
	r.inform(Message{Alives: []Entry{r.entry("b", 1, 2)}})
	r.unasked, r.hung = true, true
	accuse := func(minor uint32) (witnesses int) {
		r.now, r.Core.out = r.at, &r.out
		r.startProbing(suspect{node: r.index("b"), cause: silent})
		r.pass(r.cfg.Grace + time.Millisecond)
		for d := r.probing(r.index("b")); d != nil && witnesses < 4; witnesses++ {
			for range 5 { // it was asked over both transports, more than once
				r.step(Input{Kind: Datagram, Message: r.nack("cdef"[witnesses:witnesses+1], d.nonce)})
			}
			d = r.probing(r.index("b"))
		}
		if r.Has(r.index("b")) {
			t.Fatal("not accused")
		}
		r.inform(Message{Alives: []Entry{r.entry("b", 1, minor)}})
		return witnesses
	}
	for minor, want := range []int{2, 3, 4, 4, 4, 4, 4} {
		if got := accuse(uint32(3 + minor)); got != want {
			t.Errorf("wrong %d times, it takes %d witnesses, want %d", minor+1, got, want)
		}
	}
	delete(r.mute, r.index("b"))
	r.pass(mostWitnesses * forgiven)
	r.silence("b")
	if got := accuse(20); got != 1 {
		t.Errorf("long after, it takes %d witnesses", got)
	}
}

// TestRelayAboutTheUnknown: a neighbour may ask about somebody whom the core has
// never heard of. That is no error of its link.
func TestRelayAboutTheUnknown(t *testing.T) {
	theirs, ours := NewDirectory(), NewDirectory()
	from, about := theirs.Add(idOf("b")), theirs.Add(idOf("x"))
	m := &Message{Type: gossip.Relay, From: Entry{from, ver(1, 1), nil}, Nonce: 3, About: Entry{Node: about}}
	for _, p := range NewCodec(theirs).Pieces(m, gossip.MaxFrame) {
		got, err := NewCodec(ours).Message(p.Append(nil))
		if err != nil || got.About.Node != Nobody {
			t.Fatalf("%+v, %v", got, err)
		}
		r := newRig(t, nil)
		r.step(Input{Kind: Datagram, Message: &Message{Type: gossip.Relay, From: r.entry("b", 1, 1), Nonce: 3, About: Entry{Node: Nobody}}})
		r.want("about nobody")
	}
}
