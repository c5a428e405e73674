package scoll_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// TestBlockedServiceHoldsUpNoOther: callbacks of one service that block, more of
// them than may run at once, leave those of another alone. When too many wait new
// requests of the blocked service are refused, and the parent reads why.
func TestBlockedServiceHoldsUpNoOther(t *testing.T) {
	const workers, waiting = 4, 6
	c := start(t, 2, func(_ int, cfg *config) { cfg.Workers, cfg.Waiting = workers, waiting })
	var release atomic.Pointer[chan struct{}]
	first, second := make(chan struct{}), make(chan struct{})
	release.Store(&first)
	blocked := scoll.Callbacks{IncomingRequest: func(r *scoll.Request) error {
		if !r.IsRoot() {
			<-*release.Load()
		}
		return nil
	}}
	why := make(chan string, 100)
	blocked.IncomingReply = func(reply *scoll.Reply) {
		if reply.Status == scoll.StatusRefused {
			why <- reply.Reason
		}
	}
	var service *scoll.Service
	for _, n := range c.nodes {
		s, err := n.Register(8, blocked)
		if err != nil {
			t.Fatal(err)
		}
		if service == nil {
			service = s
		}
	}
	rolls := c.rolls()
	var group *scoll.Group
	if err := service.CreateGroup(scoll.GroupSpec{Targets: c.targets(), Delayed: true}, func(g *scoll.Group, _ error) { group = g }); err != nil {
		t.Fatal(err)
	}
	send := func() *scoll.Request {
		t.Helper()
		r, err := group.NewRequest(scoll.Broadcast{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	var all []*scoll.Request
	all = append(all, send())
	await(t, "the first to run", func() bool { return c.nodes[1].Counters().Callbacks > 0 })
	close(first)
	<-all[0].Done() // so that no later one waits for it
	release.Store(&second)
	for len(all) < 1+workers+waiting {
		all = append(all, send())
		await(t, "it to be taken", func() bool {
			k := c.nodes[1].Counters()
			return k.Callbacks+k.Waiting == len(all)-1
		})
	}
	g := c.group(0, scoll.GroupSpec{Name: "another service's"})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(2) || len(rolls[1].has()) != 1 {
		t.Errorf("%v", err)
	}
	crowded := send()
	if m := missing(t, func() error { <-crowded.Done(); return crowded.Err() }()); m.Status != scoll.StatusRefused {
		t.Errorf("%+v", m)
	}
	if got := <-why; !strings.Contains(got, "wait") {
		t.Errorf("the reason is %q", got)
	}
	close(second)
	for _, r := range all {
		if <-r.Done(); r.Err() != nil {
			t.Error(r.Err())
		}
	}
}

// TestLowerIncarnation: a node that begins with a lower incarnation than others
// know is reported by that name, as a child and as a root.
func TestLowerIncarnation(t *testing.T) {
	c := start(t, 2, func(_ int, cfg *config) { cfg.host.Incarnation = 7 })
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	if err := c.nodes[1].Close(background(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "n0 to notice", func() bool { return c.nodes[0].connections() == 0 })
	cfg := c.settings("n1")
	cfg.host.Incarnation = 5
	again, err := open(background(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = again
	c.set("n1", again.host.Addr())
	if c.service[1], err = again.Register(testService, (&rollCall{node: "n1"}).callbacks()); err != nil {
		t.Fatal(err)
	}
	want := scoll.Missing{Node: "n1", Nodes: 1, Status: scoll.StatusOutdated}
	_, err = call(t, g, scoll.Broadcast{})
	if m := missing(t, err); m != want {
		t.Errorf("as a child: %+v", m)
	}
	if k := again.host.Connections(); k.Open != 0 {
		t.Errorf("n1 has taken a call of n0, which does not want it: %+v", k)
	}
	_, err = c.tryGroup(1, scoll.GroupSpec{Name: "its own"})
	if want.Node = "n0"; missing(t, err) != want {
		t.Errorf("as a root: %+v", missing(t, err))
	}
	var incomplete *scoll.IncompleteError
	if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "earlier incarnation") {
		t.Errorf("%v", err)
	}
}

// TestServiceOfOneCallback: what a service does not say has defaults: room for the
// replies, and an empty one; its requests have no bulk data.
func TestServiceOfOneCallback(t *testing.T) {
	c := start(t, 5, nil)
	ran := make(chan string, 100)
	long := make([]byte, scoll.DefaultReply)
	var reply atomic.Bool
	c.register(func(i int) scoll.Callbacks {
		call := scoll.Callbacks{IncomingRequest: func(r *scoll.Request) error {
			ran <- c.nodes[i].Name()
			if reply.Load() && r.NumChildren() == 0 {
				return r.Reply(long)
			}
			return nil
		}}
		if i == 0 {
			call.IncomingReply = func(r *scoll.Reply) {
				if want := len(long); reply.Load() && r.Status == scoll.StatusOK && r.Source != "n2" && len(r.Body) != want {
					t.Errorf("%d bytes of %s, want %d", len(r.Body), r.Source, want)
				}
			}
		}
		return call
	})
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	for _, long := range []bool{false, true} {
		reply.Store(long)
		if r, err := call(t, g, scoll.Broadcast{}); err != nil || r.Outcome().Ran != 5 || len(ran) != 5 {
			t.Errorf("%v, %d ran", err, len(ran))
		}
		for len(ran) > 0 {
			<-ran
		}
	}
	r, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{{1}}})
	if o := r.Outcome(); err == nil || o.Ran != 1 || o.Missing[0].Status != scoll.StatusRefused {
		t.Errorf("%v, %+v", err, o)
	}
}
