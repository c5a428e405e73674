package broadcast

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

func TestPoint14OneWayOnEveryNode(t *testing.T) {
	c := made(t, 4, binomial)
	order := map[broadcastmsg.Node][]string{}
	for _, name := range c.names {
		c.nodes[name].after = func(n *testNode, call Call) {
			order[n.name] = append(order[n.name], call.Kind.String())
		}
	}
	n := c.node(0)
	n.must(t, Broadcast{})
	for name, want := range map[broadcastmsg.Node][]string{
		"n0": {"pre-request", "incoming-request", "incoming-reply", "incoming-reply", "post-reply"},
		"n2": {"pre-request", "incoming-request", "incoming-reply", "post-reply", "reply-out"},
		"n3": {"pre-request", "incoming-request", "post-reply", "reply-out"},
	} {
		if !slices.Equal(order[name], want) {
			t.Errorf("%s: %v, want %v", name, order[name], want)
		}
	}
	// The sender is the parent, and the service is registered.
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	request := n.queue[0].bytes
	c.node(3).step(Input{Kind: Message, Node: "n0", Bytes: request})
	if q := c.node(3).queue; len(q) != 1 || q[0].to != "n0" {
		t.Fatalf("n3 answers %v", q)
	} else if r, _ := decodeReply(q[0].bytes); r.Status != broadcastmsg.WrongParent {
		t.Errorf("n3 answers %v, want wrong parent", r.Status)
	}
	c.settle()
	if e := n.end(t, id); e.Err != nil {
		t.Errorf("what n3 refused from n0 spoils what it gets from n2: %v", e.Err)
	}
	if err := c.node(3).Unregister(testService); err != nil {
		t.Fatal(err)
	}
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n3 no service" {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

func TestPoint15PreRequest(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	c.node(2).errs[PreRequest] = errors.New("the message is corrupt")
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n2 refused" || e.Outcome.Missing[0].Nodes != 2 {
		t.Errorf("%+v", e.Outcome)
	}
	delete(c.node(2).errs, PreRequest)
	// Too little room for bulk data counts as bulk data that did not come.
	m := c.node(2)
	m.after = func(m *testNode, call Call) {
		if call.Kind == PreRequest {
			m.Core.Step(m.clock, []Input{{Kind: Returned, Call: PreRequest, Request: call.Request, BulkRoom: 10}}, &m.out)
		}
	}
	if e := n.end(t, n.must(t, Broadcast{Bulk: 64})); missing(e.Outcome) != "n2 no buffer" || m.ran != 1 {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

func TestPoint16IncomingRequest(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	m.errs[IncomingRequest] = errors.New("no such object")
	var replied error
	m.after = func(m *testNode, call Call) {
		if call.Kind == PostReply {
			replied = m.Reply(m.clock, call.Request, nil, false, &m.out)
		}
	}
	e := n.end(t, n.must(t, Broadcast{}))
	if missing(e.Outcome) != "n2 failed" || e.Outcome.Ran != 3 || e.Outcome.Missing[0].Nodes != 1 {
		t.Errorf("%+v: n3 beneath has run it", e.Outcome)
	}
	if m.called[IncomingRequest] != 1 || m.tags != 2 || m.called[PostReply] != 1 || !errors.Is(replied, ErrNoReply) {
		t.Errorf("callbacks %v, %d entities, a reply all the same: %v", m.called, m.tags, replied)
	}
	n.errs[IncomingRequest] = errors.New("panic")
	if e := n.end(t, n.must(t, Broadcast{})); statusOf(e.Err) != broadcastmsg.Failed {
		t.Errorf("at the root: %v", e.Err)
	}
	c.noLeaks(t)
}

func TestPoint17CopiesOfTheRequest(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	for _, name := range c.names {
		c.nodes[name].after = func(n *testNode, call Call) {
			if v, err := n.Request(call.Request); err == nil {
				clear(v.Payload) // as early as in pre-request
			}
		}
	}
	payload := []byte("hello")
	n.must(t, Broadcast{Payload: payload})
	for _, name := range c.names {
		if got := c.nodes[name].payload[0]; string(got) != "hello" {
			t.Errorf("%s gets %q", name, got)
		}
	}
	if string(payload) != "hello" {
		t.Error("the root's own buffer was given to its service")
	}
}

func TestPoint18OncePerChild(t *testing.T) {
	c := made(t, 8, binomial)
	n, leaf := c.node(0), c.node(7)
	n.held[IncomingReply] = true
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	if n.called[PostReply] != 0 || len(n.calls) != 3 {
		t.Errorf("post-reply before incoming-reply has returned; %d of 3 run", len(n.calls))
	}
	n.release()
	var sources []broadcastmsg.Node
	for _, r := range n.seen {
		sources = append(sources, r.Source)
	}
	slices.Sort(sources)
	if !slices.Equal(sources, []broadcastmsg.Node{"n1", "n2", "n4"}) || n.called[PostReply] != 1 {
		t.Errorf("incoming-reply of %v, post-reply %d times", sources, n.called[PostReply])
	}
	if leaf.called[PostReply] != 1 || leaf.called[IncomingReply] != 0 {
		t.Errorf("the leaf's callbacks: %v", leaf.called)
	}
	if n.end(t, id).Err != nil {
		t.Error("it fails")
	}
}

func TestPoint19Reply(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	// A reply inside incoming-request is the local one: it waits for n3's.
	m.after = func(m *testNode, call Call) {
		if call.Kind == IncomingRequest {
			if err := m.Reply(m.clock, call.Request, []byte("local"), false, &m.out); err != nil {
				t.Error(err)
			}
			if err := m.Reply(m.clock, call.Request, []byte("again"), false, &m.out); !errors.Is(err, ErrReplied) {
				t.Errorf("a second local reply: %v", err)
			}
		}
		if v, _ := m.Request(call.Request); call.Kind == IncomingReply && string(v.Local) != "local" {
			t.Errorf("the local reply is %q", v.Local)
		}
	}
	c.node(3).held[IncomingRequest] = true
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	if len(m.queue) != 0 || m.called[ReplyOut] != 0 {
		t.Error("the local reply travels alone")
	}
	c.node(3).release()
	c.settle()
	if n.end(t, id).Err != nil || !bytes.Equal(n.bodies[id][1], []byte("n2 n3")) {
		t.Errorf("replies %q, want the aggregated one", n.bodies[id])
	}
	// Later, from elsewhere; and twice.
	m.noReply, m.after = true, nil
	var request uint64
	m.after = func(_ *testNode, call Call) { request = call.Request }
	if id, err = n.send(Broadcast{}); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if err := m.Reply(c.clock, request, []byte("late"), false, &m.out); err != nil {
		t.Error(err)
	}
	if err := m.Reply(c.clock, request, nil, false, &m.out); !errors.Is(err, ErrReplied) {
		t.Errorf("twice: %v", err)
	}
	m.settleOutput()
	c.settle()
	if n.end(t, id).Err != nil || !slices.ContainsFunc(n.bodies[id], func(b []byte) bool { return string(b) == "late" }) {
		t.Errorf("replies %q", n.bodies[id])
	}
	// Never: the library replies when the parent has given up.
	id = n.must(t, Broadcast{})
	c.pass(time.Second)
	if e := n.end(t, id); missing(e.Outcome) != "n2 expired" {
		t.Errorf("%+v", e.Outcome)
	}
	if e := m.ends[len(m.ends)-1]; statusOf(e.Err) != broadcastmsg.NoReply {
		t.Errorf("n2's request ends with %v", e.Err)
	}
	c.noLeaks(t)
}

func TestPoint20Completion(t *testing.T) {
	c := made(t, 2, binomial)
	n, m := c.node(0), c.node(1)
	m.held[ReplyOut], n.held[PostReply] = true, true
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	if len(m.ends) != 1 || len(n.ends) != 1 { // those of the creation
		t.Fatal("ended before reply-out, or post-reply, has returned")
	}
	other := m.calls[0].Request
	if _, err := m.Request(other); err != nil {
		t.Errorf("the handle within reply-out: %v", err)
	}
	m.release()
	n.release()
	if _, err := m.Request(other); !errors.Is(err, ErrRequest) || m.end(t, other).Err != nil {
		t.Errorf("the handle after reply-out: %v", err)
	}
	if _, err := n.Request(id); !errors.Is(err, ErrRequest) || n.end(t, id).Err != nil {
		t.Errorf("the root's handle after post-reply: %v", err)
	}
	if n.called[ReplyOut] != 0 {
		t.Error("reply-out at the root")
	}
}

func TestPoint21ManyGroupsAndTrees(t *testing.T) {
	c := made(t, 6, binomial)
	n, m := c.node(0), c.node(3)
	m.after = func(m *testNode, call Call) {
		if call.Kind != IncomingRequest || call.Request == 0 {
			return
		}
		if err := m.Core.Send(m.clock, call.Request, &m.out); !errors.Is(err, ErrRequest) {
			t.Errorf("another than the root sends it: %v", err)
		}
		group, err := m.GroupOf(call.Request)
		if err != nil {
			t.Fatal(err)
		}
		m.group = group
	}
	n.must(t, Broadcast{})
	m.after = nil
	// Another member is the root of another tree over the same group, at once.
	a, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	b := m.must(t, Broadcast{Payload: []byte("from n3")})
	if n.end(t, a).Err != nil || m.end(t, b).Err != nil {
		t.Error("one of two broadcasts over one group fails")
	}
	if got := c.node(5).Counters(); got.Groups != 1 || got.Routes != 2 {
		t.Errorf("n5 has %d groups and %d trees, want one and two", got.Groups, got.Routes)
	}
	if err := c.create(1, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if got := c.node(5).Counters().Groups; got != 2 {
		t.Errorf("n5 is in %d groups, want two", got)
	}
	for _, name := range c.names { // no node only forwards
		if c.nodes[name].ran != 3 {
			t.Errorf("%s ran %d requests, want 3", name, c.nodes[name].ran)
		}
	}
	c.noLeaks(t)
}

func TestPoint22OnePassUp(t *testing.T) {
	for _, n := range []int{1, 2, 7, 16, 33} {
		c := made(t, n, binomial)
		if _, err := c.node(0).send(Broadcast{}); err != nil {
			t.Fatal(err)
		}
		down, up := 0, 0
		for moved := true; moved; {
			for _, name := range c.names {
				if q := c.nodes[name].queue; len(q) > 0 && broadcastmsg.IsReply(q[0].bytes) {
					up++
				} else if len(q) > 0 {
					down++
				}
			}
			moved = c.next()
		}
		if down != n-1 || up != n-1 {
			t.Errorf("%d nodes: %d messages down and %d up, want one of each a node", n, down, up)
		}
	}
}

func TestPoint23AllAreAlive(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	n.step(Input{Kind: Down, Node: "n7"})
	id, err := n.send(Broadcast{})
	if !errors.Is(err, ErrDead) || err.Error() != "send: scoll: members are dead: 1, n7" {
		t.Errorf("with n7 dead: %v", err)
	}
	if len(n.queue) != 0 || n.called[PreRequest] != 0 {
		t.Error("something was sent, or called")
	}
	if e := n.ends[len(n.ends)-1]; !errors.Is(e.Err, ErrDead) || id == 0 {
		t.Errorf("it ends with %v", e.Err)
	}
	n.step(Input{Kind: Down, Node: "stranger"}, Input{Kind: Up, Node: "n7", Incarnation: 1})
	if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil {
		t.Errorf("with n7 alive again: %v", e.Err)
	}
	c.noLeaks(t)
}

func TestPoint24DeliveryFails(t *testing.T) {
	// A local failure is sent again: here the second of three attempts passes.
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	n.failing = errors.New("the queue is full")
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	n.failing = nil
	c.pass(5 * time.Millisecond)
	if n.end(t, id).Err != nil || n.Counters().Retries != 2 {
		t.Errorf("%v after %d retries", n.end(t, id).Err, n.Counters().Retries)
	}
	// Again and again: the subtree is unsent, and the reply reports which.
	m.failing = errors.New("the card is on fire")
	id, err = n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	c.clock = c.clock.Add(time.Millisecond)
	m.step()
	c.clock = c.clock.Add(time.Millisecond)
	m.step()
	if got := m.seen[len(m.seen)-1]; got.Source != "n3" || got.Status != broadcastmsg.Unsent {
		t.Errorf("n2 is notified %+v", got)
	}
	m.failing = nil
	c.pass(5 * time.Millisecond)
	if e := n.end(t, id); missing(e.Outcome) != "n3 unsent" || e.Outcome.Ran != 3 {
		t.Errorf("%+v", e.Outcome)
	}
	// News of a death, and of a reboot, after the send.
	for _, news := range []struct {
		in   Input
		want string
	}{
		{Input{Kind: Down, Node: "n3"}, "n3 dead"},
		{Input{Kind: Up, Node: "n3", Incarnation: 2}, "n3 rebooted"},
	} {
		c := made(t, 4, binomial)
		n := c.node(0)
		c.notifyAll(Input{Kind: Up, Node: "n3", Incarnation: 1})
		c.node(3).mute = true
		id, err := n.send(Broadcast{})
		if err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.notifyAll(news.in)
		c.settle()
		if e := n.end(t, id); missing(e.Outcome) != news.want {
			t.Errorf("%+v, want %s", e.Outcome, news.want)
		}
	}
	// A reply that cannot be sent is given up.
	c = made(t, 2, binomial)
	c.node(1).failing = errors.New("the card is on fire")
	id, err = c.node(0).send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	if e := c.node(0).end(t, id); missing(e.Outcome) != "n1 expired" || c.node(1).called[ReplyOut] != 1 {
		t.Errorf("%+v", e.Outcome)
	}
	c.noLeaks(t)
}

func TestPoint25ProcessingTime(t *testing.T) {
	c := made(t, 8, binomial)
	n, m := c.node(0), c.node(4)
	m.after = func(m *testNode, call Call) {
		if call.Kind == PreRequest {
			m.Core.Step(m.clock, []Input{{Kind: Returned, Call: PreRequest, Request: call.Request, PatienceSet: true}}, &m.out)
		}
	}
	c.node(6).mute, c.node(7).mute = true, true
	n.must(t, Broadcast{Patience: 7 * time.Millisecond})
	if got, want := m.Deadline(), c.clock.Add(20*time.Millisecond); got != want {
		t.Errorf("n4 waits until %v, want 2R and P of 0: %v", got, want)
	}
	if got, want := c.node(6).Deadline(), c.clock.Add(17*time.Millisecond); got != want {
		t.Errorf("n6 waits until %v, want R and P of the header: %v", got, want)
	}
	n.SetRoundTrip(time.Millisecond)
	n.SetRoundTrip(0) // ignored
	id := n.must(t, Broadcast{})
	c.pass(3 * time.Millisecond)
	if e := n.end(t, id); missing(e.Outcome) != "n6 expired" || e.Outcome.Ran != 6 {
		t.Errorf("3R of the root's new R, which rules the whole tree, and no P: %v", e.Err)
	}
}

func TestPoint26Cascade(t *testing.T) {
	c := made(t, 8, binomial)
	n := c.node(0)
	const r, p = 10 * time.Millisecond, 5 * time.Millisecond
	start := c.clock
	for _, child := range []int{1, 2, 4} {
		c.node(child).mute = true
	}
	id := n.must(t, Broadcast{Patience: p})
	for i, want := range []time.Duration{r + p, 2*r + p, 3*r + p} {
		c.pass(start.Add(want).Sub(c.clock) - 1)
		if len(n.seen) != i {
			t.Fatalf("%v before %v: %d replies are reported as expired, want %d", time.Duration(1), want, len(n.seen), i)
		}
		c.pass(1)
		if len(n.seen) != i+1 || n.seen[i].Status != broadcastmsg.Expired || n.seen[i].Source != broadcastmsg.Node(fmt.Sprintf("n%d", 1<<i)) {
			t.Fatalf("after %v: %+v", want, n.seen)
		}
	}
	if n.end(t, id).Err == nil {
		t.Error("it succeeds")
	}
}

func TestPoint27Expiry(t *testing.T) {
	c := made(t, 8, binomial)
	n, m := c.node(0), c.node(6)
	c.node(7).mute = true
	id := n.must(t, Broadcast{Patience: time.Millisecond})
	c.pass(time.Second)
	if got := m.seen[0]; got.Source != "n7" || got.Status != broadcastmsg.Expired || m.called[PostReply] != 1 {
		t.Errorf("n6 is notified %+v, post-reply %d times", got, m.called[PostReply])
	}
	if e := n.end(t, id); missing(e.Outcome) != "n7 expired" || e.Outcome.Ran != 7 {
		t.Errorf("%+v, want all but n7: the partial result", e.Outcome)
	}
	if got := slices.Concat(n.bodies[id]...); !bytes.Contains(got, []byte("n6")) || bytes.Contains(got, []byte("n7")) {
		t.Errorf("replies %q", n.bodies[id])
	}
	c.noLeaks(t)
}
