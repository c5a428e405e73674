package collective

import (
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// TestDeathOfAnEarlierLife: that a life is over which a later one has followed
// kills nobody, however late the news; that of the later one does.
func TestDeathOfAnEarlierLife(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.tellAll(Input{Kind: Up, Node: "n2", Incarnation: 1})
	c.restart(2, 2) // at a new address: up, and then
	c.tellAll(Input{Kind: Down, Node: "n2", Incarnation: 1})
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil || c.node(2).ran != 1 {
		t.Errorf("%v: n2 lives", e.Err)
	}
	c.tellAll(Input{Kind: Down, Node: "n2", Incarnation: 2})
	if _, err := n.send(Broadcast{}); !errors.Is(err, ErrDead) {
		t.Errorf("%v, want ErrDead", err)
	}
	c.tellAll(Input{Kind: Up, Node: "n2", Incarnation: 1}) // old news
	if _, err := n.send(Broadcast{}); !errors.Is(err, ErrDead) {
		t.Errorf("%v, want ErrDead", err)
	}
	c.tellAll(Input{Kind: Up, Node: "n2", Incarnation: 2}) // a false alarm
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
	if got, _ := collect.DecodeReply(m.queue[0].bytes); got.Status != collect.StaleRoot {
		t.Errorf("%v, want stale root", got.Status)
	}
}
