package managerd

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// fakeHost is a host's session without a network.
type fakeHost struct {
	asks  chan rpc.HostRequest
	hears chan manager.Event
	ended chan error
}

func (h *fakeHost) Recv() (rpc.HostRequest, error) {
	q, open := <-h.asks
	if !open {
		return q, io.EOF
	}
	return q, nil
}

func (h *fakeHost) Send(e manager.Event) error {
	h.hears <- e
	return nil
}

func (h *fakeHost) ask(in manager.Input) { h.asks <- rpc.HostRequest{Input: in} }

// newDaemon returns a manager with a fabric, but without a server, and how to end it.
func newDaemon(t *testing.T) *Daemon {
	t.Helper()
	g, err := topology.LeafSpine(2, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Topology: g, Store: new(Memory)}.withDefaults()
	machine, err := manager.New(g, c.Core)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{
		cfg: c, log: c.Log, core: machine, overlay: topology.NewOverlay(g), counts: newCounts(nil), operator: Operator{Graph: g},
		gone: make(chan struct{}), sessions: map[uint32]*session{},
	}
	if err := d.run(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Daemon) host() *fakeHost {
	h := &fakeHost{asks: make(chan rpc.HostRequest), hears: make(chan manager.Event, 1000), ended: make(chan error, 1)}
	go func() { h.ended <- d.HostSession(context.Background(), h) }()
	return h
}

// watches returns how many watches all sessions have.
func (d *Daemon) watches() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.sessions {
		s.mu.Lock()
		n += len(s.watches)
		s.mu.Unlock()
	}
	return n
}

// pair returns two sessions of hosts, and the number of a group of both that the first one has made.
func (d *Daemon) pair() (one, two *fakeHost, group uint32) {
	one, two = d.host(), d.host()
	members := []string{d.cfg.Topology.Name(0), d.cfg.Topology.Name(1)}
	one.ask(manager.Create{Req: 7, Name: "job", Members: members, ChunkBytes: 1432, Window: 8})
	return one, two, (<-one.hears).Reply.Group
}

var someAddr = netip.MustParseAddrPort("127.0.0.1:9")

// TestSessionForgetsWatches: a session that lasts knows of the watches that stand,
// whatever else the host has tried, and however many groups have come and gone.
func TestSessionForgetsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t)
		h := d.host()
		for group := range uint32(100) {
			h.ask(manager.Watch{Group: 1000 + group, DataAddr: someAddr}) // there is no such group
			if e := <-h.hears; e.Notice == nil || !e.Notice.End || !errors.Is(e.Notice.Err, manager.ErrUnknownGroup) {
				t.Fatalf("got %+v", e)
			}
		}
		if n := d.watches(); n > 0 {
			t.Errorf("%d watches of unknown groups are known", n)
		}
		members := []string{d.cfg.Topology.Name(0), d.cfg.Topology.Name(1)}
		for range 3 {
			h.ask(manager.Create{Req: 7, Name: "job", Members: members, ChunkBytes: 1432, Window: 8})
			group := (<-h.hears).Reply.Group
			h.ask(manager.Watch{Group: group, DataAddr: someAddr})
			h.ask(manager.Watch{Group: group, DataAddr: someAddr}) // takes the first one's place, which is no news
			for range 2 {
				if e := <-h.hears; e.Links == nil || e.Links.Rate != topology.DefaultBandwidth {
					t.Fatalf("got %+v, and no links", e)
				}
			}
			synctest.Wait()
			if n := d.watches(); n != 1 || len(h.hears) > 0 {
				t.Errorf("group %d: %d watches stand, and it hears of %d", group, n, len(h.hears))
			}
			h.ask(manager.Release{Req: 8, Group: group})
			for end := range 2 { // of the watch, and of the release
				if e := <-h.hears; e.Notice == nil && e.Reply == nil || e.Reply != nil && e.Reply.Err != nil {
					t.Errorf("end %d: %+v", end, e)
				}
			}
			if n := d.watches(); n != 0 {
				t.Errorf("group %d: %d watches are known after the release", group, n)
			}
		}
		h.ask(manager.Unwatch{Group: 1}) // what it does not watch
		close(h.asks)
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		d.shutdown()
		d.end()
	})
}

// TestSessionsEndUnwatches: what a session watched last is watched no more after its
// end, also where it began anew meanwhile, and what another watches stays.
func TestSessionsEndUnwatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t)
		one, two, group := d.pair()
		for range 3 {
			one.ask(manager.Watch{Group: group, DataAddr: someAddr})
		}
		two.ask(manager.Watch{Group: group, Rank: 1, DataAddr: someAddr})
		two.ask(manager.Unwatch{Group: group}) // that is the other's
		watching := func() (n int) {
			synctest.Wait()
			if err := d.loop.Do(t.Context(), func() { n = d.core.Groups()[0].Watching }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := watching(); n != 2 {
			t.Errorf("%d members watch", n)
		}
		close(one.asks)
		if err := <-one.ended; err != nil {
			t.Error(err)
		}
		if n := watching(); n != 1 {
			t.Errorf("%d members watch after the end of one session", n)
		}
		close(two.asks)
		if err := <-two.ended; err != nil {
			t.Error(err)
		}
		if n := watching(); n != 0 {
			t.Errorf("%d members watch after the end of both", n)
		}
		d.shutdown()
		d.end()
	})
}

// TestSessionsEndGroups: the first session that reports a revoke for a member of its own ends the group
// for all.
func TestSessionsEndGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t)
		one, two, group := d.pair()
		one.ask(manager.Watch{Group: group, DataAddr: someAddr})
		two.ask(manager.Watch{Group: group, Rank: 1, DataAddr: someAddr})
		two.ask(manager.Unwatch{Group: group, Over: true}) // that is the other's
		synctest.Wait()
		if n := d.watches(); n != 2 {
			t.Errorf("%d watches stand", n)
		}
		if e := <-one.hears; e.Links == nil {
			t.Errorf("got %+v", e)
		}
		if e := <-one.hears; e.Notice == nil || e.Notice.End { // there are no agents, and so no tree
			t.Errorf("got %+v", e)
		}
		two.ask(manager.Unwatch{Group: group, Rank: 1, Over: true})
		if e := <-one.hears; e.Notice == nil || !e.Notice.End || !errors.Is(e.Notice.Err, manager.ErrReleased) {
			t.Errorf("got %+v", e)
		}
		one.ask(manager.Unwatch{Group: group, Over: true}) // late
		one.ask(manager.Release{Req: 8, Group: group})
		if e := <-one.hears; e.Reply == nil || !errors.Is(e.Reply.Err, manager.ErrUnknownGroup) {
			t.Errorf("got %+v", e)
		}
		for _, h := range []*fakeHost{one, two} {
			close(h.asks)
			if err := <-h.ended; err != nil {
				t.Error(err)
			}
		}
		d.shutdown()
		d.end()
	})
}
