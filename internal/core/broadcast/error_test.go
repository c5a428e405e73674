package broadcast

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

func TestPoint28BeforePreRequest(t *testing.T) {
	c := made(t, 8, binomial)
	n, parent, grand := c.node(0), c.node(6), c.node(4)
	if err := c.node(7).Unregister(testService); err != nil {
		t.Fatal(err)
	}
	id := n.must(t, Broadcast{})
	if got := parent.seen[0]; got.Source != "n7" || got.Status != broadcastmsg.NoService || got.Status.Type() != broadcastmsg.ByLibrary {
		t.Errorf("the parent is notified %+v", got)
	}
	for _, r := range grand.seen {
		if r.Status != broadcastmsg.OK {
			t.Errorf("the parent's parent is notified %+v: it goes no further by itself", r)
		}
	}
	if c.node(7).called[PreRequest] != 0 || missing(n.end(t, id).Outcome) != "n7 no service" {
		t.Errorf("%+v", n.end(t, id).Outcome)
	}
	c.noLeaks(t)
}

func TestPoint29FromPreRequest(t *testing.T) {
	c := made(t, 8, binomial)
	n, m := c.node(0), c.node(6)
	m.errs[PreRequest] = errors.New("no")
	var handle uint64
	m.after = func(_ *testNode, call Call) { handle = call.Request }
	id := n.must(t, Broadcast{})
	if len(m.called) != 1 || c.node(7).called[PreRequest] != 0 {
		t.Errorf("callbacks %v, and %v beneath", m.called, c.node(7).called)
	}
	if _, err := m.Request(handle); !errors.Is(err, ErrRequest) || statusOf(m.end(t, handle).Err) != broadcastmsg.Refused {
		t.Errorf("the handle lives: %v", err)
	}
	if e := n.end(t, id); missing(e.Outcome) != "n6 refused" || e.Outcome.Missing[0].Nodes != 2 {
		t.Errorf("%+v", e.Outcome)
	}
	// At the root, too: one way on every node.
	n.errs[PreRequest] = errors.New("no")
	id = n.must(t, Broadcast{})
	if statusOf(n.end(t, id).Err) != broadcastmsg.Refused || n.called[IncomingRequest] != 1 {
		t.Errorf("at the root: %v", n.end(t, id).Err)
	}
	c.noLeaks(t)
}

func TestPoint30LaterErrors(t *testing.T) {
	c := made(t, 8, binomial)
	n, m := c.node(0), c.node(4)
	m.step(Input{Kind: Down, Node: "n6"})
	id := n.must(t, Broadcast{})
	if len(m.seen) != 2 || m.called[PostReply] != 1 {
		t.Fatalf("n4 is notified %+v", m.seen)
	}
	for _, r := range m.seen {
		if want := map[broadcastmsg.Node]broadcastmsg.Status{"n6": broadcastmsg.Dead, "n5": broadcastmsg.OK}[r.Source]; r.Status != want {
			t.Errorf("%s: %v, want %v", r.Source, r.Status, want)
		}
	}
	if e := n.end(t, id); e.Outcome.Ran != 6 || missing(e.Outcome) != "n6 dead" {
		t.Errorf("%+v", e.Outcome)
	}
	if got := fmt.Sprintf("%s", n.bodies[id]); !strings.Contains(got, "n4 n5") {
		t.Errorf("replies %s: the others beneath n4 are awaited", got)
	}
	c.noLeaks(t)
}

func TestPoint31BulkErrors(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	m.held[PreRequest] = true
	id, err := n.send(Broadcast{Bulk: 100})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	clear(n.memory) // the network card forgets
	var status broadcastmsg.Status
	var replied error
	m.after = func(m *testNode, call Call) {
		if v, _ := m.Request(call.Request); call.Kind == IncomingRequest {
			status, replied = v.BulkStatus, m.Reply(m.clock, call.Request, nil, false, &m.out)
		}
	}
	m.held[IncomingRequest] = true
	calls := m.calls
	delete(m.held, PreRequest)
	m.calls = nil
	m.run(calls[0])
	m.settleOutput()
	if len(m.queue) != 1 {
		t.Fatal("the parent is not notified at once")
	}
	m.release()
	if status != broadcastmsg.BulkFailed || !errors.Is(replied, ErrNoReply) {
		t.Errorf("bulk status %v; a reply all the same: %v", status, replied)
	}
	if len(m.seen) != 1 || m.seen[0].Status != broadcastmsg.BulkFailed || m.called[PostReply] != 1 || m.called[ReplyOut] != 1 {
		t.Errorf("replies %+v, callbacks %v", m.seen, m.called)
	}
	c.settle()
	if e := n.end(t, id); missing(e.Outcome) != "n2 bulk failed" || c.node(3).ran != 0 {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

func TestPoint32Stopping(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	m.held[IncomingRequest] = true
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.next() // n2 has it, n3 has not
	m.errs[PreRequest] = errors.New("stopping")
	active := m.calls[0].Request
	if err := m.Abort(c.clock, active, &m.out); err != nil {
		t.Fatal(err)
	}
	m.settleOutput()
	if m.Counters().Requests != 1 || m.called[PostReply] != 0 {
		t.Error("it ends while incoming-request runs")
	}
	if err := m.Reply(c.clock, active, nil, false, &m.out); !errors.Is(err, ErrAborted) {
		t.Errorf("a reply to what is aborted: %v", err)
	}
	if err := m.Unregister(testService); !errors.Is(err, ErrBusy) {
		t.Errorf("unregister before the callbacks have drained: %v", err)
	}
	m.release()
	if statusOf(m.end(t, active).Err) != broadcastmsg.Aborted || m.seen[0].Status != broadcastmsg.Aborted || m.called[PostReply] != 1 || m.called[ReplyOut] != 1 {
		t.Errorf("%v; replies %+v, callbacks %v", m.end(t, active).Err, m.seen, m.called)
	}
	c.settle()
	if e := n.end(t, id); missing(e.Outcome) != "n2 aborted, n3 aborted" {
		t.Errorf("%+v", e.Outcome)
	}
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n2 refused" {
		t.Errorf("%+v: new requests are dropped, and the parent reported", e.Outcome)
	}
	if err := m.Unregister(testService); err != nil {
		t.Error(err)
	}
	c.noLeaks(t)
}

// Aborts in every phase end the request and free what it held.
func TestAbortInEveryPhase(t *testing.T) {
	for _, held := range []CallKind{Map, PreRequest, IncomingRequest, IncomingReply, PostReply, ReplyOut} {
		c := outOfBand(t, 4, binomial)
		n, m := c.node(0), c.node(2)
		m.held[held] = true
		id, err := n.send(Broadcast{Members: c.world, Bulk: 10})
		if err != nil {
			t.Fatal(err)
		}
		c.settle()
		if len(m.calls) != 1 {
			t.Fatalf("%v is not reached", held)
		}
		if err := m.Abort(c.clock, m.calls[0].Request, &m.out); err != nil {
			t.Error(err)
		}
		m.settleOutput()
		m.release()
		c.pass(10 * time.Second)
		if e := n.end(t, id); (e.Err == nil) != (held == ReplyOut) {
			t.Errorf("aborted in %v: %v", held, e.Err)
		}
		c.noLeaks(t)
	}
}

// A root's death, and its reboot, in every phase do the same.
func TestOrphansInEveryPhase(t *testing.T) {
	for _, held := range []CallKind{Map, PreRequest, IncomingRequest, IncomingReply, PostReply, ReplyOut} {
		for _, news := range []Input{{Kind: Down, Node: "n0"}, {Kind: Up, Node: "n0", Incarnation: 2}} {
			c := outOfBand(t, 4, binomial)
			m := c.node(2)
			m.held[held] = true
			if _, err := c.node(0).send(Broadcast{Members: c.world, Bulk: 10}); err != nil {
				t.Fatal(err)
			}
			c.settle()
			m.step(news)
			m.release()
			if leak := m.leaks(); leak != "" || m.Counters().Routes != 0 {
				t.Errorf("orphaned in %v: %s", held, leak)
			}
		}
	}
}
