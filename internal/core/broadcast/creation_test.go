package broadcast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

func TestPoint03Creation(t *testing.T) {
	c := newCluster(3, binomial)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	if n := c.node(0); len(n.created) > 0 {
		t.Fatal("created before anything has travelled")
	}
	c.settle()
	n := c.node(0)
	if len(n.created) != 1 || n.created[0] != nil {
		t.Fatalf("created: %v", n.created)
	}
	n.must(t, Broadcast{})
	if got := c.node(2).tags; got != 2 {
		t.Errorf("%d entities are targeted, want both of the target", got)
	}
	for name, p := range map[string]Creation{
		"unknown service": {Service: 99, Targets: c.targets(), Tree: binomial},
		"no targets":      {Service: testService, Tree: binomial},
		"a node twice":    {Service: testService, Targets: append(c.targets(), c.targets()[0]), Tree: binomial},
		"not a member":    {Service: testService, Targets: c.targets()[1:], Tree: binomial},
		"no such tree":    {Service: testService, Targets: c.targets(), Tree: broadcastmsg.Tree{Kind: 99}},
		"radix 1":         {Service: testService, Targets: c.targets(), Tree: broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: 1}},
		"long name":       {Service: testService, Name: strings.Repeat("g", 65), Targets: c.targets(), Tree: binomial},
	} {
		if _, err := n.CreateGroup(0, p, &n.out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPoint04Immediate(t *testing.T) {
	c := newCluster(4, binomial)
	n := c.node(0)
	id, err := n.CreateGroup(0, Creation{Service: testService, Targets: c.targets(), Tree: binomial}, &n.out)
	if err != nil {
		t.Fatal(err)
	}
	n.settleOutput()
	if _, err := n.NewRequest(Broadcast{Group: id}); !errors.Is(err, ErrGroup) {
		t.Errorf("a broadcast before the group is there: %v", err)
	}
	for i := range c.names[:3] {
		if c.next(); len(n.created) > 0 {
			t.Errorf("created after %d rounds", i+1)
		}
	}
	c.settle()
	if len(n.created) != 1 || n.group != id || c.node(3).Counters().Groups != 1 {
		t.Error("not created, or not everywhere")
	}
	c.noLeaks(t)
	// One member cannot: the creation fails, and those that have it free it.
	c = newCluster(4, binomial)
	if err := c.node(1).Unregister(testService); err != nil {
		t.Fatal(err)
	}
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if n := c.node(0); len(n.created) != 1 || n.created[0] == nil {
		t.Errorf("created: %v, want an error", n.created)
	}
	for i := range c.names {
		if got := c.node(i).Counters().Groups; got != 0 {
			t.Errorf("n%d keeps %d groups", i, got)
		}
	}
	c.noLeaks(t)
}

// creating returns how many requests of n's queue have the members aboard, of
// how many.
func (n *testNode) creating() (creating, all int) {
	for _, p := range n.queue {
		if r, err := decodeRequest(p.bytes); err == nil {
			if all++; r.Creation != nil {
				creating++
			}
		}
	}
	return creating, all
}

func TestPoint05Delayed(t *testing.T) {
	c := newCluster(4, binomial)
	n := c.node(0)
	if err := c.create(0, true); err != nil {
		t.Fatal(err)
	}
	if len(n.created) != 1 || len(n.queue) != 0 {
		t.Fatalf("created %v, %d messages; want it within the call, and none", n.created, len(n.queue))
	}
	first, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if creating, all := n.creating(); creating != 2 || all != 2 {
		t.Errorf("%d of %d first requests create", creating, all)
	}
	second, err := n.send(Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if _, all := n.creating(); all != 2 {
		t.Error("the second broadcast overtakes the first")
	}
	for c.next() {
		if len(n.ends) == 1 {
			break
		}
	}
	if creating, all := n.creating(); creating != 0 || all != 2 {
		t.Errorf("%d of %d second requests create, want none of two", creating, all)
	}
	c.settle()
	if n.end(t, first).Err != nil || n.end(t, second).Err != nil {
		t.Error("a broadcast fails")
	}
	c.noLeaks(t)
}

func TestPoint06TooLargeToDelay(t *testing.T) {
	c := newCluster(120, binomial)
	if err := c.create(0, true); !errors.Is(err, ErrDelayed) {
		t.Errorf("120 nodes with two entities each, delayed: %v", err)
	}
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if n := c.node(0); len(n.created) != 1 || n.created[0] != nil || c.node(119).Counters().Groups != 1 {
		t.Errorf("the same at once: %v", n.created)
	}
	c.noLeaks(t)
	c = newCluster(50, binomial)
	if err := c.create(0, true); err != nil {
		t.Fatal(err)
	}
	n := c.node(0)
	if _, err := n.send(Broadcast{Payload: make([]byte, 3000)}); !errors.Is(err, ErrDelayed) {
		t.Errorf("50 nodes beside 3000 bytes: %v", err)
	}
	n.must(t, Broadcast{Payload: make([]byte, 1000)})
	n.must(t, Broadcast{Payload: make([]byte, 3000)})
	c.noLeaks(t)
}

// outOfBand gives a cluster a mapping, and n0 a group of it.
func outOfBand(t *testing.T, n int, shape broadcastmsg.Tree) *cluster {
	t.Helper()
	c := newCluster(n, shape)
	c.world = c.members()
	id, err := c.node(0).CreateOutOfBand(testService, broadcastmsg.Index{0xf1, 0xd0}, shape)
	if err != nil {
		t.Fatal(err)
	}
	c.node(0).group = id
	return c
}

func TestPoint07OutOfBand(t *testing.T) {
	c := outOfBand(t, 200, binomial)
	n := c.node(0)
	if len(n.queue) != 0 || n.called[Created] != 0 {
		t.Error("its creation has traffic, or a callback")
	}
	id, err := n.send(Broadcast{Payload: []byte("hello"), Members: c.world})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range n.queue {
		if len(p.bytes) > 126 {
			t.Errorf("a request of %d bytes", len(p.bytes))
		}
	}
	c.settle()
	if e := n.end(t, id); e.Err != nil || c.node(199).called[Map] != 1 || c.node(199).ran != 1 {
		t.Errorf("%v; the last member maps %d times", e.Err, c.node(199).called[Map])
	}
	if _, err := n.NewRequest(Broadcast{Group: n.group}); !errors.Is(err, ErrMembers) {
		t.Errorf("a broadcast without a mapping: %v", err)
	}
	if err := n.Register(Service{ID: 8}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.CreateOutOfBand(8, broadcastmsg.Index{}, binomial); !errors.Is(err, ErrService) {
		t.Errorf("a service that cannot map: %v", err)
	}
	c.noLeaks(t)
}

// A population whose members are pulled fails where the pull does, where it is
// not what was announced, and where the creation is aborted meanwhile.
func TestPulledPopulationFails(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(m *testNode, p *Pull) error
		want      broadcastmsg.Status
	}{
		"the pull fails": {func(*testNode, *Pull) error { return errors.New("gone") }, broadcastmsg.BulkFailed},
		"no members":     {func(_ *testNode, p *Pull) error { clear(p.Into); return nil }, broadcastmsg.NoGroup},
		"another list":   {func(_ *testNode, p *Pull) error { p.Into[len(p.Into)-1]++; return nil }, broadcastmsg.Disagree},
		"aborted": {func(m *testNode, p *Pull) error {
			return m.Abort(m.clock, p.Request, &m.out)
		}, broadcastmsg.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(120, broadcastmsg.Tree{Kind: broadcastmsg.Flat})
			m := c.node(1)
			m.pulling = func(p *Pull) error { return tt.meanwhile(m, p) }
			if err := c.create(0, false); err != nil {
				t.Fatal(err)
			}
			c.settle()
			n := c.node(0)
			var incomplete *IncompleteError
			if len(n.created) != 1 || !errors.As(n.created[0], &incomplete) || len(incomplete.Missing) != 1 || incomplete.Missing[0].Status != tt.want {
				t.Errorf("created: %v, want n1 %v", n.created, tt.want)
			}
			if got := c.node(2).Counters().Groups + m.Counters().Groups; got != 0 {
				t.Errorf("%d groups are left", got)
			}
			c.noLeaks(t)
		})
	}
}

// What strangers announce of members does not take memory without bound, and
// none at all where the group's index is not the root's.
func TestAnnouncedMembersAreBounded(t *testing.T) {
	cfg := DefaultConfig("n", 1)
	cfg.CreationBytes = 1000
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Register(Service{ID: testService}); err != nil {
		t.Fatal(err)
	}
	var out Output
	announce := func(number uint64, root, creator broadcastmsg.Node) (pulls []Pull) {
		m := broadcastmsg.Request{
			Flags: broadcastmsg.Own | broadcastmsg.HasBulk, Service: testService, Tree: binomial,
			Key:   broadcastmsg.Key{Root: root, Incarnation: 5, Sequence: number},
			Index: broadcastmsg.MakeIndex(creator, 5, number), Bulk: broadcastmsg.Bulk{Key: number, Length: 1000},
		}
		out.Reset()
		n.Step(0, []Input{{Kind: Message, Node: root, Bytes: m.Append(nil)}}, &out)
		if len(out.Pulls)+len(out.Sends) != 1 {
			t.Fatalf("%d pulls and %d refusals, want one of them", len(out.Pulls), len(out.Sends))
		}
		return out.Pulls
	}
	var under []Pull
	for i := range uint64(2 * pullsAtOnce) {
		root := broadcastmsg.Node(fmt.Sprint("root", i))
		if len(announce(100+i, root, "another")) > 0 {
			t.Error("members are pulled for an index that is not the root's")
		}
		under = append(under, slices.Clone(announce(1+i, root, root))...)
	}
	if len(under) != pullsAtOnce {
		t.Errorf("%d pulls at once, want %d", len(under), pullsAtOnce)
	}
	out.Reset()
	n.Step(0, []Input{{Kind: Pulled, Request: under[0].Request, Err: errors.New("gone")}}, &out)
	if len(announce(50, "other", "other")) != 1 || len(announce(51, "another", "another")) != 0 {
		t.Error("the end of one pull makes room for other than one")
	}
}

// An abort, and the root's death, while bulk data is pulled.
func TestStoppedWhilePulling(t *testing.T) {
	for name, stop := range map[string]func(m *testNode, p *Pull){
		"abort": func(m *testNode, p *Pull) {
			if err := m.Abort(m.clock, p.Request, &m.out); err != nil {
				t.Error(err)
			}
		},
		"root dead": func(m *testNode, _ *Pull) {
			m.Core.Step(m.clock, []Input{{Kind: Down, Node: "n0"}}, &m.out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := made(t, 4, binomial)
			n, m := c.node(0), c.node(2)
			m.pulling = func(p *Pull) error { stop(m, p); return nil }
			id := n.must(t, Broadcast{Bulk: 100})
			c.pass(1e9)
			if n.end(t, id).Err == nil || c.node(3).ran != 0 || m.called[IncomingRequest] != 1 || m.called[PostReply] != 1 {
				t.Errorf("%v, callbacks %v", n.end(t, id).Err, m.called)
			}
			c.noLeaks(t)
		})
	}
}
