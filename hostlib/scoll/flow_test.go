package scoll_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// also has every node do something at the beginning of its callbacks.
func also(rolls []*rollCall, do func(node, callback string, r *scoll.Request) error) {
	for _, s := range rolls {
		s.set(func(s *rollCall) {
			s.also = func(callback string, r *scoll.Request) error { return do(s.node, callback, r) }
		})
	}
}

// TestPoint14OneWayOnEveryNode: the callbacks of every node, in their order.
func TestPoint14OneWayOnEveryNode(t *testing.T) {
	c := start(t, 16, nil)
	rolls := c.rolls()
	r, err := call(t, c.group(0, scoll.GroupSpec{Name: "all"}), scoll.Broadcast{Payload: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	children, err := c.group(0, scoll.GroupSpec{Name: "again"}).Children()
	if err != nil || len(children) != r.NumChildren() {
		t.Fatal(err)
	}
	for i, s := range rolls {
		await(t, "reply-out", func() bool { return i == 0 || len(s.outs()) == 1 })
		got := s.calls()
		replies := 0
		for _, name := range got[1 : len(got)-1] {
			if name == "incoming-reply" {
				replies++
			}
		}
		end := len(got) - 1
		if i > 0 {
			if got[end] != "reply-out" || s.outs()[0] != nil {
				t.Errorf("%s ends with %q, %v", s.node, got[end], s.outs())
			}
			end--
		}
		if got[0] != "pre-request" || got[end] != "post-reply" || len(got[:end]) != 2+replies || !slices.Contains(got, "incoming-request") {
			t.Errorf("%s: %q", s.node, got)
		}
		if want := [...]int{4, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0}[i]; replies != want {
			t.Errorf("%s had %d replies, want %d", s.node, replies, want)
		}
	}
}

// TestPoint13WhatIsShown: of the bulk data, of the timeout, and of replies.
func TestPoint13WhatIsShown(t *testing.T) {
	c := start(t, 3, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.Flat()})
	mine, data := make([]byte, 64), []byte("bulk data")
	also(rolls, func(node, callback string, r *scoll.Request) error {
		if node != "n1" {
			return nil
		}
		switch callback {
		case "pre-request":
			if r.BulkLen() != uint64(len(data)) || r.Timeout() != 7 {
				t.Errorf("shown are %d bytes of bulk data, timeout %v", r.BulkLen(), r.Timeout())
			}
			r.SetBulk([][]byte{mine[:4], mine[4:]})
			r.SetTimeout(9)
		case "incoming-request":
			if b := r.Bulk(); r.BulkErr() != nil || len(b) != 2 || &b[0][0] != &mine[0] || string(bytes.Join(b, nil)) != string(data) || r.Timeout() != 9 {
				t.Errorf("shown are %q, %v, timeout %v", b, r.BulkErr(), r.Timeout())
			}
			return errOdd
		}
		return nil
	})
	if _, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{data[:5], data[5:]}, Timeout: 7}); missing(t, err).Node != "n1" {
		t.Error(err)
	}
	good, bad := replyOf(t, rolls[0], "n2"), replyOf(t, rolls[0], "n1")
	if good.Status != scoll.StatusOK || good.Type() != scoll.NoError || string(good.Body) != "n2" || good.Reason != "" {
		t.Errorf("%+v", good)
	}
	if bad.Status != scoll.StatusFailed || bad.Type() != scoll.ByService || bad.Reason != errOdd.Error() || bad.Source != bad.Request.Child(bad.Child).Node {
		t.Errorf("%+v", bad)
	}
}

// TestPoint19Reply: a reply from another goroutine, after post-reply has
// returned; and one that is given early, which post-reply finds and replaces.
func TestPoint19Reply(t *testing.T) {
	c := start(t, 8, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	var late sync.WaitGroup
	for _, s := range rolls {
		s.set(func(s *rollCall) { s.quiet = true })
	}
	also(rolls, func(node, callback string, r *scoll.Request) error {
		if callback == "post-reply" && !r.IsRoot() {
			late.Go(func() { // which may be before post-reply has returned, or after it
				all := r.Private().(*roll).String()
				if err := r.ReplyMore([]byte(all[:len(all)/2])); err != nil {
					t.Errorf("%s: %v", node, err)
				}
				if err := r.Reply([]byte(all[len(all)/2:])); err != nil {
					t.Errorf("%s: %v", node, err)
				}
			})
		}
		return nil
	})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(8) {
		t.Errorf("late: %v, %s", err, heard(r))
	}
	late.Wait()

	also(rolls, func(node, callback string, r *scoll.Request) error {
		switch callback {
		case "incoming-request":
			return r.Reply([]byte("early " + node))
		case "post-reply":
			if local := string(r.Local()); local != "early "+node {
				t.Errorf("%s finds the local reply %q", node, local)
			}
			if r.NumChildren() > 0 {
				return r.Reply([]byte(r.Private().(*roll).String()))
			}
		}
		return nil
	})
	r, err := call(t, g, scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	// The leaves' went out itself; that of others never alone.
	if got, want := heard(r), "early n0 n1 n2 n3 n4 n5 n6 n7"; !strings.HasPrefix(got, "early ") || strings.ReplaceAll(got, "early ", "") != want[6:] {
		t.Errorf("%q", got)
	}
}

// TestPoint20Completion: when it has ended a handle is of no use, on any node.
func TestPoint20Completion(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	var mu sync.Mutex
	var member *scoll.Request
	also(rolls, func(node, callback string, r *scoll.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if node == "n1" && callback == "reply-out" {
			member = r
		}
		return nil
	})
	r, err := call(t, c.group(0, scoll.GroupSpec{}), scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "reply-out", func() bool { return len(rolls[1].outs()) == 1 })
	mu.Lock()
	defer mu.Unlock()
	<-member.Done()
	for _, r := range []*scoll.Request{r, member} {
		for name, err := range map[string]error{"reply": r.Reply(nil), "more": r.ReplyMore(nil), "send": r.Send(), "post": r.PostReplySize(0, 1, nil)} {
			if !errors.Is(err, scoll.ErrRequest) {
				t.Errorf("%s on %s after the end: %v", name, r.Target().Node, err)
			}
		}
		r.Abort()
		if r.Local() != nil || r.Err() != nil {
			t.Errorf("%q, %v", r.Local(), r.Err())
		}
	}
	if o := r.Outcome(); o.Nodes != 2 || o.Ran != 2 || o.Missing != nil {
		t.Errorf("%+v", o)
	}
}

// TestPoint21ManyGroupsAndTrees: by the group of a request every member can be a
// root, in trees of its own, all at once.
func TestPoint21ManyGroupsAndTrees(t *testing.T) {
	c := start(t, 8, nil)
	rolls := c.rolls()
	var mu sync.Mutex
	groups := map[string]*scoll.Group{}
	also(rolls, func(node, callback string, r *scoll.Request) error {
		if callback != "incoming-request" || r.Root() != "n3" {
			return nil
		}
		g, err := r.Group()
		mu.Lock()
		defer mu.Unlock()
		groups[node] = g
		return err
	})
	g := c.group(3, scoll.GroupSpec{Name: "eight", Private: "mine"})
	if _, err := call(t, g, scoll.Broadcast{}); err != nil {
		t.Fatal(err)
	}
	also(rolls, func(string, string, *scoll.Request) error { return nil })
	var under []*scoll.Request
	for _, node := range names(8) {
		g := groups[node]
		if g.Name() != "eight" || (g.Private() == "mine") != (node == "n3") {
			t.Errorf("%s has the group %q, %v", node, g.Name(), g.Private())
		}
		for range 20 {
			r, err := g.NewRequest(scoll.Broadcast{})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Send(); err != nil {
				t.Fatal(err)
			}
			under = append(under, r)
		}
	}
	for _, r := range under {
		if <-r.Done(); r.Err() != nil || heard(r) != sorted(8) {
			t.Errorf("from %s: %v, %s", r.Root(), r.Err(), heard(r))
		}
	}
	for i, n := range c.nodes {
		if k := n.Counters(); k.Groups != 1 || k.Places != 8 {
			t.Errorf("node %d has %d groups, %d trees", i, k.Groups, k.Places)
		}
	}
}

// TestPoint33NothingIsDropped: many requests at once at nodes that keep one
// buffer ready.
func TestPoint33NothingIsDropped(t *testing.T) {
	const many = 2000
	c := start(t, 4, func(_ int, cfg *config) { cfg.ReceiveBuffers, cfg.Workers = 1, 3 })
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	var under []*scoll.Request
	for i := range many {
		r, err := g.NewRequest(scoll.Broadcast{Payload: bytes.Repeat([]byte{byte(i)}, i%3500)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		under = append(under, r)
	}
	for i, r := range under {
		if <-r.Done(); r.Err() != nil || heard(r) != sorted(4) {
			t.Fatalf("broadcast %d: %v", i, r.Err())
		}
	}
	for _, s := range rolls {
		ran := s.has()
		if len(ran) != many {
			t.Fatalf("%s ran %d", s.node, len(ran))
		}
		for _, payload := range ran {
			if strings.Trim(payload, payload[:min(1, len(payload))]) != "" {
				t.Fatalf("%s ran a damaged one", s.node)
			}
		}
	}
	if k := c.nodes[3].Counters(); k.Refills == 0 {
		t.Errorf("receive buffers were never made anew: %+v", k)
	}
}

// TestPoint35LargeReplies: 5 MiB from each of three nodes, in pieces.
func TestPoint35LargeReplies(t *testing.T) {
	const size, piece = 5 << 20, 700_000
	c := start(t, 4, nil)
	bodies := map[string][]byte{}
	for _, n := range c.nodes {
		bodies[n.Name()] = bytes.Repeat([]byte(n.Name()), size/2)
	}
	type gathered struct {
		mu  sync.Mutex
		sum map[string][32]byte
	}
	got := &gathered{sum: map[string][32]byte{}}
	c.register(func(i int) scoll.Callbacks {
		var mu sync.Mutex
		beneath := map[*scoll.Request][]byte{}
		return scoll.Callbacks{
			PreRequest: func(r *scoll.Request) error {
				for i := range r.NumChildren() {
					if err := r.PostReplySize(i, size*r.Child(i).Nodes, nil); err != nil {
						return err
					}
				}
				return nil
			},
			IncomingRequest: func(*scoll.Request) error { return nil },
			IncomingReply: func(reply *scoll.Reply) {
				mu.Lock()
				beneath[reply.Request] = append(beneath[reply.Request], reply.Body...)
				mu.Unlock()
				if !reply.Request.IsRoot() {
					return
				}
				for body := reply.Body; len(body) >= size; body = body[size:] {
					got.mu.Lock()
					got.sum[string(body[:2])] = sha256.Sum256(body[:size])
					got.mu.Unlock()
				}
			},
			PostReply: func(r *scoll.Request) {
				mu.Lock()
				rest := beneath[r]
				delete(beneath, r)
				mu.Unlock()
				if r.IsRoot() {
					return
				}
				for rest = append(rest, bodies[r.Target().Node]...); len(rest) > piece; rest = rest[piece:] {
					if err := r.ReplyMore(rest[:piece]); err != nil {
						t.Error(err)
					}
				}
				if err := r.Reply(rest); err != nil {
					t.Error(err)
				}
			},
		}
	})
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	before := c.nodes[1].Counters()
	if _, err := call(t, g, scoll.Broadcast{}); err != nil {
		t.Fatal(err)
	}
	for _, node := range names(4)[1:] {
		if got.sum[node] != sha256.Sum256(bodies[node]) {
			t.Errorf("the reply of %s is damaged, or not there", node)
		}
	}
	// As few messages as possible: 5 of 1 MiB from the leaf n1.
	if sent := c.nodes[1].Counters().MessagesOut - before.MessagesOut; sent != 5 {
		t.Errorf("n1 sent %d messages, want 5", sent)
	}
}

// TestPoint43Versions: members that know an older version say so and forward all
// the same; the root tries again with the lowest.
func TestPoint43Versions(t *testing.T) {
	c := start(t, 8, nil)
	versions := []byte{5, 3, 5, 5, 4, 5, 5, 5}
	type lowest struct {
		mu sync.Mutex
		v  byte
	}
	var ran sync.Map
	c.register(func(i int) scoll.Callbacks {
		fold := func(r *scoll.Request, v byte) {
			l := r.Private().(*lowest)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.v = min(l.v, v)
		}
		return scoll.Callbacks{
			PreRequest: func(r *scoll.Request) error {
				if !r.IsRoot() {
					r.SetPrivate(&lowest{v: versions[i]})
				}
				for i := range r.NumChildren() {
					if err := r.PostReplySize(i, 1, nil); err != nil {
						return err
					}
				}
				return nil
			},
			IncomingRequest: func(r *scoll.Request) error {
				if v := r.Payload()[0]; v <= versions[i] {
					ran.Store(fmt.Sprint(i, " ran ", v), true)
				}
				return nil
			},
			IncomingReply: func(reply *scoll.Reply) { fold(reply.Request, reply.Body[0]) },
			PostReply: func(r *scoll.Request) {
				if !r.IsRoot() {
					_ = r.Reply([]byte{r.Private().(*lowest).v})
				}
			},
		}
	})
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	found := &lowest{v: 5}
	if _, err := call(t, g, scoll.Broadcast{Payload: []byte{5}, Private: found}); err != nil || found.v != 3 {
		t.Fatalf("the lowest version is %d, %v", found.v, err)
	}
	if _, err := call(t, g, scoll.Broadcast{Payload: []byte{found.v}, Private: &lowest{v: found.v}}); err != nil {
		t.Fatal(err)
	}
	for i := range versions {
		if _, ok := ran.Load(fmt.Sprint(i, " ran 3")); !ok {
			t.Errorf("n%d did not run version 3", i)
		}
	}
}
