package scoll_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// TestGreetingReportsReboot: without a Liveness a node that calls again in a
// later incarnation counts as rebooted at once, whoever still waits for it.
func TestGreetingReportsReboot(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{})
	r, release := rolls[1].holds(t, g)
	ended, end := context.WithCancel(t.Context())
	end()
	_ = c.nodes[1].Close(ended) // it is cut off
	cfg := c.settings("n1")
	cfg.host.Incarnation = c.nodes[1].host.Incarnation() + 1
	reborn, err := open(background(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = reborn
	service, err := reborn.Register(testService, (&rollCall{node: "n1"}).callbacks())
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	if err := service.CreateGroup(scoll.GroupSpec{Name: "its own", Targets: c.targets()}, func(_ *scoll.Group, err error) { made <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
	<-r.Done()
	close(release)
	if m := missing(t, r.Err()); m != (scoll.Missing{Node: "n1", Nodes: 1, Status: scoll.StatusRebooted}) {
		t.Errorf("%+v", m)
	}
}

// TestRequestIsReadWhileItRuns: methods of a request that was sent may be called
// while its callbacks run. It is for the race detector.
func TestRequestIsReadWhileItRuns(t *testing.T) {
	c := start(t, 2, nil)
	c.rolls()
	g := c.group(0, scoll.GroupSpec{})
	for range 20 {
		r, err := g.NewRequest(scoll.Broadcast{Payload: []byte("payload")})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		done := r.Done()
		for ended := false; !ended; {
			if !r.IsRoot() || r.Root() != "n0" || r.Last() || r.NumChildren() != 1 || len(r.Children()) != 1 ||
				len(r.Target().Tags) != 2 || len(r.Payload()) != 7 || r.BulkLen() != 0 || r.Timeout() != time.Nanosecond {
				t.Fatal("the request has changed")
			}
			select {
			case <-done:
				ended = true
			default:
				runtime.Gosched()
			}
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAbortedAggregationLeavesNothing: a request that is aborted while
// pre-request runs has no further callback, and what it was to gather into goes
// with it.
func TestAbortedAggregationLeavesNothing(t *testing.T) {
	c := start(t, 1, nil)
	gone := make(chan struct{})
	c.register(func(int) scoll.Callbacks {
		return scoll.Aggregation{
			New: func(r *scoll.Request) (aggregate.Aggregator, error) {
				r.Abort()
				s := &aggregate.Statuses{}
				runtime.AddCleanup(s, func(gone chan struct{}) { close(gone) }, gone)
				return s, nil
			},
			Size: func(*scoll.Request, scoll.Child) int { return 0 },
			Run:  func(*scoll.Request) (func(aggregate.Aggregator) error, error) { panic("it was aborted") },
		}.Callbacks()
	})
	if _, err := call(t, c.group(0, scoll.GroupSpec{}), scoll.Broadcast{}); err == nil {
		t.Fatal("it was not aborted")
	}
	await(t, "the aggregator to be collected", func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// hung is a Bulk whose pulls are never answered.
type hung struct{}

func (hung) Expose(uint64, []string, [][]byte) error { return nil }
func (hung) Revoke(uint64)                           {}
func (hung) Close() error                            { return nil }
func (hung) Pull(ctx context.Context, _ string, _, _ uint64, _ [][]byte) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestPullIsGivenUp: a pull that the parent does not answer ends when the parent
// has surely given up, and the request with it.
func TestPullIsGivenUp(t *testing.T) {
	c := start(t, 2, func(_ int, cfg *config) { cfg.RoundTrip, cfg.Bulk = 20*time.Millisecond, hung{} })
	rolls := c.rolls()
	var g *scoll.Group
	await(t, "a group", func() (made bool) { // on a slow machine it may take longer than R
		var err error
		g, err = c.tryGroup(0, scoll.GroupSpec{})
		return err == nil
	})
	if _, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{make([]byte, 100)}}); err == nil {
		t.Error("it succeeds without its bulk data")
	}
	await(t, "the request to end at n1", func() bool { return c.nodes[1].Counters().Requests == 0 })
	if ran := rolls[1].calls(); len(ran) > 0 && ran[0] != "pre-request" {
		t.Errorf("n1 has had %v", ran)
	}
}

// TestEarlierIncarnationIsGivenUp: what is left of a node after its reboot is
// neither heard nor sent to.
func TestEarlierIncarnationIsGivenUp(t *testing.T) {
	c := start(t, 1, nil)
	c.rolls()
	n := c.nodes[0]
	later := c.forgeIn("x", 2)
	later.send(n.Name(), []byte("hello"))
	await(t, "the later one to be heard", func() bool { return n.connections() == 1 })
	earlier := c.forge("x") // of incarnation 1
	defer earlier.close()
	if err := earlier.try(n.Name(), []byte("hello")); !errors.Is(err, peering.ErrOutdated) {
		t.Errorf("the earlier one is spoken to: %v", err)
	}
	later.close()
	await(t, "the later one to be gone", func() bool { return n.connections() == 0 })
	_, err := c.tryGroup(0, scoll.GroupSpec{Targets: []scoll.Target{{Node: n.Name(), Tags: []scoll.Tag{{1}}}, {Node: "x", Tags: []scoll.Tag{{1}}}}})
	if m := missing(t, err); m != (scoll.Missing{Node: "x", Nodes: 1, Status: scoll.StatusOutdated}) || len(earlier.got) > 0 {
		t.Errorf("%+v; the earlier one has got %d messages", m, len(earlier.got))
	}
}

// TestFinding7NameIsFree: without certificates a stranger who has used a node's name in a
// high incarnation keeps it out for a while alone.
func TestFinding7NameIsFree(t *testing.T) {
	c := start(t, 2, func(_ int, cfg *config) { cfg.host.ForgetAfter = time.Millisecond })
	c.rolls()
	c.group(1, scoll.GroupSpec{Name: "before"})
	if err := c.nodes[1].Close(background(t)); err != nil {
		t.Fatal(err)
	}
	stranger := c.forgeIn("n1", c.nodes[1].host.Incarnation()+uint64(time.Hour))
	stranger.send("n0", []byte("I am n1"))
	await(t, "it to be heard", func() bool { return c.nodes[0].Counters().Unreadable == 1 })
	stranger.close()
	again, err := open(background(t), c.settings("n1"))
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = again
	c.set("n1", again.host.Addr())
	if c.service[1], err = again.Register(testService, (&rollCall{node: "n1"}).callbacks()); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes { // as a root, and as a child
		await(t, "n1 to take part", func() bool {
			_, err := c.tryGroup(1-i, scoll.GroupSpec{Name: "after"})
			return err == nil
		})
	}
}
