package broadcast

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// made returns n nodes with a group of all of them from n0.
func made(t *testing.T, n int, shape broadcastmsg.Tree) *cluster {
	t.Helper()
	return grouped(t, newCluster(n, shape))
}

// grouped returns c with a group of all its nodes from n0.
func grouped(t testing.TB, c *cluster) *cluster {
	t.Helper()
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if c.node(0).created == nil || c.node(0).created[0] != nil {
		t.Fatalf("no group: %v", c.node(0).created)
	}
	return c
}

// must broadcasts from n and lets all settle.
func (n *testNode) must(t *testing.T, b Broadcast) uint64 {
	t.Helper()
	id, err := n.send(b)
	if err != nil {
		t.Fatal(err)
	}
	n.settle()
	return id
}

func (n *testNode) settle() { n.cluster.settle() }

// end returns how a node's request ended.
func (n *testNode) end(t *testing.T, id uint64) End {
	t.Helper()
	var found []End
	for _, e := range n.ends {
		if e.Request == id {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: request %d has %d ends, want 1", n.name, id, len(found))
	}
	return found[0]
}

// noLeaks reports what nodes hold when nothing is under way.
func (c *cluster) noLeaks(t *testing.T) {
	t.Helper()
	for _, name := range c.names {
		if leak := c.nodes[name].leaks(); leak != "" {
			t.Error(leak)
		}
	}
}

func statusOf(err error) broadcastmsg.Status {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Status
	}
	return broadcastmsg.OK
}

// missing returns the subtrees that an outcome names, as "node status".
func missing(o Outcome) string {
	var all []string
	for _, m := range o.Missing {
		all = append(all, string(m.Node)+" "+m.Status.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestPoint01Services(t *testing.T) {
	c := made(t, 2, binomial)
	n := c.node(0)
	if err := n.Register(Service{ID: testService}); !errors.Is(err, ErrService) {
		t.Errorf("a second service of one number: %v", err)
	}
	if err := n.Register(Service{ID: 8}); err != nil {
		t.Error(err)
	}
	if err := n.Unregister(9); !errors.Is(err, ErrService) {
		t.Errorf("unregister what is not registered: %v", err)
	}
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Unregister(testService); !errors.Is(err, ErrBusy) {
		t.Errorf("unregister with a request: %v", err)
	}
	c.settle()
	if n.end(t, id).Err != nil || n.Unregister(testService) != nil || n.Unregister(8) != nil {
		t.Error("the services cannot be unregistered")
	}
	if got := n.Counters().Groups; got != 0 {
		t.Errorf("%d groups of a service that is gone", got)
	}
}

func TestPoint02SameTagUnderTwoServices(t *testing.T) {
	c := newCluster(2, binomial)
	other, err := NewMembers(8, c.targets())
	if err != nil {
		t.Fatal(err)
	}
	if c.members().Digest() == other.Digest() {
		t.Error("one digest under two services")
	}
	n := c.node(0)
	if err := n.Register(Service{ID: 8}); err != nil {
		t.Fatal(err)
	}
	for _, service := range []broadcastmsg.Service{testService, 8} {
		if _, err := n.CreateGroup(0, Creation{Service: service, Targets: c.targets(), Tree: binomial, Delayed: true}, &n.out); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.Counters().Groups; got != 2 {
		t.Errorf("%d groups, want one of each service", got)
	}
}

func TestPoint08Broadcast(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	payload := []byte("hello")
	id, err := n.send(Broadcast{Payload: payload, Bulk: 100, Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var atPost int
	n.after = func(n *testNode, call Call) {
		if call.Kind == IncomingReply && len(n.memory) == 0 {
			t.Error("bulk data is gone before post-reply")
		}
		if call.Kind == PostReply {
			atPost = len(n.memory)
		}
	}
	c.settle()
	if n.end(t, id).Err != nil || atPost != 0 || string(payload) != "hello" {
		t.Errorf("%d of memory to be read in post-reply, payload %q", atPost, payload)
	}
	for name, b := range map[string]Broadcast{
		"no group":      {Group: 999},
		"negative time": {Group: n.group, Patience: -1},
		"too large":     {Group: n.group, Payload: make([]byte, 4096)},
	} {
		if _, err := n.NewRequest(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if bytes.ContainsAny(c.node(3).payload[0], "x") || string(c.node(3).payload[0]) != "hello" {
		t.Errorf("n3 gets %q", c.node(3).payload[0])
	}
}

func TestPoint09Queries(t *testing.T) {
	c := made(t, 14, binomial)
	got, err := c.node(0).Children(c.node(0).group, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Branch{{"n8", 6, 12, 2}, {"n4", 4, 8, 2}, {"n2", 2, 4, 1}, {"n1", 1, 2, 0}}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("children %+v, want %+v", got, want)
			break
		}
	}
	leaf := c.node(13)
	leaf.after = func(n *testNode, call Call) {
		if v, err := n.Request(call.Request); call.Kind == PreRequest && (err != nil || len(v.Children) != 0) {
			t.Errorf("the leaf has children %v, %v", v.Children, err)
		}
	}
	c.node(0).must(t, Broadcast{})
	if leaf.called[PreRequest] != 1 {
		t.Error("the leaf was not asked")
	}
}

func TestPoint10ReplyBuffers(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	id, err := n.NewRequest(Broadcast{Group: n.group})
	if err != nil {
		t.Fatal(err)
	}
	own := make([]byte, 100)
	if err := n.PostReplyBuffer(id, 0, own, 0); err != nil {
		t.Error(err)
	}
	if err := n.PostReplyBuffer(id, 0, own, 0); !errors.Is(err, ErrPosted) {
		t.Errorf("a second one for a child: %v", err)
	}
	if err := n.PostReplyBuffer(id, 2, own, 0); !errors.Is(err, ErrChild) {
		t.Errorf("one for a child that is none: %v", err)
	}
	n.after = func(n *testNode, call Call) {
		if r := call.Reply; call.Kind == IncomingReply && r.Child == 0 && &r.Body[0] != &own[0] {
			t.Error("the reply is not in the buffer that was posted")
		}
	}
	n.held[IncomingReply] = true
	if err := n.Core.Send(0, id, &n.out); err != nil {
		t.Fatal(err)
	}
	n.settleOutput()
	c.settle()
	if got := n.Counters().Posted; got != 2 {
		t.Errorf("%d buffers are posted while incoming-reply runs, want 2", got)
	}
	n.release()
	if e := n.end(t, id); e.Err != nil {
		t.Error(e.Err)
	}
	// Without one nothing is forwarded.
	n.after = nil
	c.node(2).noBuffer = true
	if e := n.end(t, n.must(t, Broadcast{})); missing(e.Outcome) != "n2 no buffer" || e.Outcome.Ran != 2 {
		t.Errorf("%+v", e.Outcome)
	}
	n.noBuffer = true
	if e := n.end(t, n.must(t, Broadcast{})); statusOf(e.Err) != broadcastmsg.NoBuffer {
		t.Errorf("at the root: %v", e.Err)
	}
	c.noLeaks(t)
}

func TestPoint11SendReplyAbort(t *testing.T) {
	c := made(t, 4, binomial)
	n := c.node(0)
	for name, err := range map[string]error{
		"send":  n.Core.Send(0, 999, &n.out),
		"reply": n.Reply(0, 999, nil, false, &n.out),
		"abort": n.Abort(0, 999, &n.out),
		"post":  n.PostReplyBuffer(999, 0, nil, 1),
	} {
		if !errors.Is(err, ErrRequest) {
			t.Errorf("%s a request that is none: %v", name, err)
		}
	}
	id := n.must(t, Broadcast{})
	if err := n.Core.Send(0, id, &n.out); !errors.Is(err, ErrRequest) {
		t.Errorf("send what has ended: %v", err)
	}
	unsent, err := n.NewRequest(Broadcast{Group: n.group})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Abort(0, unsent, &n.out); err != nil {
		t.Error(err)
	}
	n.settleOutput()
	if e := n.end(t, unsent); !errors.Is(e.Err, ErrAborted) {
		t.Error(e.Err)
	}
	running, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Abort(0, running, &n.out); err != nil {
		t.Error(err)
	}
	n.settleOutput()
	if e := n.end(t, running); statusOf(e.Err) != broadcastmsg.Aborted {
		t.Error(e.Err)
	}
	if got := n.seen[len(n.seen)-1]; got.Status != broadcastmsg.Aborted || got.Status.Type() != broadcastmsg.ByAbort {
		t.Errorf("incoming-reply reports %v", got.Status)
	}
	c.settle() // replies that nobody waits for
	c.noLeaks(t)
}

func TestPoint12Callbacks(t *testing.T) {
	// They race: replies are taken while incoming-request still runs.
	c := made(t, 4, binomial)
	n := c.node(0)
	n.held[IncomingRequest] = true
	id, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	c.settle()
	if n.called[IncomingReply] != 2 || n.called[PostReply] != 0 {
		t.Errorf("%d incoming-reply and %d post-reply beside incoming-request", n.called[IncomingReply], n.called[PostReply])
	}
	n.release()
	if n.end(t, id).Err != nil {
		t.Error("it fails")
	}
	// incoming-reply may be absent.
	c = newCluster(4, binomial)
	for i := range c.names {
		if err := errors.Join(c.node(i).Unregister(testService), c.node(i).Register(Service{ID: testService, NoReplies: true})); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.create(0, true); err != nil {
		t.Fatal(err)
	}
	n = c.node(0)
	if e := n.end(t, n.must(t, Broadcast{})); e.Err != nil || n.called[IncomingReply] != 0 || n.called[PostReply] != 1 {
		t.Errorf("%v, callbacks %v", e.Err, n.called)
	}
	c.noLeaks(t)
}

func TestPoint13WhatIsShown(t *testing.T) {
	c := made(t, 4, binomial)
	n, m := c.node(0), c.node(2)
	m.after = func(m *testNode, call Call) {
		if call.Kind != IncomingRequest {
			return
		}
		v, err := m.Request(call.Request)
		if err != nil || v.Bulk != 64 || v.BulkStatus != broadcastmsg.OK || v.Patience != 3*time.Millisecond || v.Root != "n0" || v.IsRoot {
			t.Errorf("%+v, %v", v, err)
		}
	}
	c.node(3).errs[PreRequest] = errors.New("stopping")
	n.must(t, Broadcast{Bulk: 64, Patience: 3 * time.Millisecond})
	if m.called[IncomingRequest] != 1 || len(m.seen) != 1 {
		t.Fatal("n2 was not asked, or not reported")
	}
	got := m.seen[0]
	if got.Source != "n3" || got.Status != broadcastmsg.Refused || got.Status.Type() != broadcastmsg.ByService || got.Reason != "stopping" {
		t.Errorf("%+v", got)
	}
}
