package broadcast

import (
	"errors"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestDeathOfAnEarlierLife: that a life is over which a later one has followed
// kills nobody, however late the news; that of the later one does.
func TestDeathOfAnEarlierLife(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.notifyAll(Input{Kind: Up, Node: "n2", Incarnation: 1})
	c.restart(2, 2) // at a new address: up, and then
	c.notifyAll(Input{Kind: Down, Node: "n2", Incarnation: 1})
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil || c.node(2).ran != 1 {
		t.Errorf("%v: n2 lives", e.Err)
	}
	c.notifyAll(Input{Kind: Down, Node: "n2", Incarnation: 2})
	if _, err := n.send(Broadcast{}); !errors.Is(err, ErrDead) {
		t.Errorf("%v, want ErrDead", err)
	}
	c.notifyAll(Input{Kind: Up, Node: "n2", Incarnation: 1}) // old news
	if _, err := n.send(Broadcast{}); !errors.Is(err, ErrDead) {
		t.Errorf("%v, want ErrDead", err)
	}
	c.notifyAll(Input{Kind: Up, Node: "n2", Incarnation: 2}) // a false alarm
	if _, err := n.send(Broadcast{}); err != nil {
		t.Error(err)
	}
	c.settle()
	c.noLeaks(t)
}

// TestRootOfALaterLife: a request of a life that began after the one that is
// known to be over is run, before any news of it.
func TestRootOfALaterLife(t *testing.T) {
	c := newCluster(2, binomial)
	m := c.node(1)
	m.step(Input{Kind: Down, Node: "n0", Incarnation: 1})
	n := c.add("n0", 2)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil || m.ran != 1 {
		t.Errorf("%v", e.Err)
	}
	m.step(Input{Kind: Down, Node: "n0"}) // whichever life that was
	if id, _ := n.send(Broadcast{}); id == 0 || len(n.queue) != 1 {
		t.Fatal("not sent")
	}
	c.next()
	if got, _ := decodeReply(m.queue[0].bytes); got.Status != broadcastmsg.StaleRoot {
		t.Errorf("%v, want stale root", got.Status)
	}
}

// TestCut: who waits for a child whose connection has ended finds out whether it
// can be reached, once at a time, and later the more often that happens. If it
// cannot be, nobody waits for P.
func TestCut(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.node(3).mute = true // what n2 waits for does not come
	id := n.must(t, Broadcast{Patience: time.Hour})
	n.step(Input{Kind: Cut, Node: "n1"}) // has replied
	n.step(Input{Kind: Cut, Node: "n3"}) // is another's child
	n.step(Input{Kind: Cut, Node: "stranger"})
	c.pass(time.Second)
	if len(n.asked) > 0 {
		t.Fatalf("%v are called, and nobody waits for them", n.asked)
	}
	for want, pause := 1, n.cfg.RecallAfter; want < 5; want, pause = want+1, 2*pause {
		n.step(Input{Kind: Cut, Node: "n2"})
		c.pass(pause - time.Millisecond)
		if len(n.asked) != want-1 {
			t.Fatalf("%v are called before %v have passed", n.asked, pause)
		}
		if c.pass(time.Millisecond); len(n.asked) != want {
			t.Fatalf("%v are called after %v, want n2 once more", n.asked, pause)
		}
	}
	// An end of the connection while a message is on its way: on that one or on the
	// next. It is called once more, and after that no more.
	n.step(Input{Kind: Cut, Node: "n2"}, Input{Kind: Cut, Node: "n2"})
	if c.pass(time.Minute); len(n.asked) != 6 {
		t.Fatalf("%v are called, want n2 twice more", n.asked)
	}
	m := c.node(2)
	m.failing = errors.New("refused")
	before := c.clock
	m.step(Input{Kind: Cut, Node: "n3"})
	c.pass(m.cfg.RecallAfter + time.Duration(m.cfg.Attempts)*m.cfg.RetryAfter)
	if m.called[PostReply] != 1 || len(m.asked) != m.cfg.Attempts || c.clock.Sub(before) > time.Second {
		t.Errorf("n3 cannot be reached, n2 has called it %d times, and waits", len(m.asked))
	}
	n.failing = m.failing
	n.step(Input{Kind: Cut, Node: "n2"})
	c.pass(time.Hour / 2)
	if e := n.end(t, id); missing(e.Outcome) != "n2 unsent" || e.Outcome.Ran != 2 {
		t.Errorf("%+v", e.Outcome)
	}
	m.failing = nil
	c.pass(2 * time.Hour)
	c.noLeaks(t)
}

// TestAbsent: who waits for a node whose host has none does so no more, nor for others of
// the tree beneath it.
func TestAbsent(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.node(2).mute, c.node(3).mute = true, true
	id := n.must(t, Broadcast{Patience: time.Hour})
	n.step(Input{Kind: Absent, Node: "n1"}) // has replied
	n.step(Input{Kind: Absent, Node: "n3"}) // is another's child
	n.step(Input{Kind: Absent, Node: "stranger"})
	n.step(Input{Kind: Absent, Node: "n2"})
	c.pass(0)
	if e := n.end(t, id); missing(e.Outcome) != "n2 no service" || e.Outcome.Ran != 2 {
		t.Errorf("%+v", e.Outcome)
	}
	c.pass(2 * time.Hour)
	c.noLeaks(t)
}
