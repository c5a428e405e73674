package hostlib

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/membership"
)

// TestProcessesOfOneHost: several processes of a host, each with a label of its own, form
// groups with the same other one, in whatever order they have started.
func TestProcessesOfOneHost(t *testing.T) {
	label := func(l string) func(*Config) { return func(c *Config) { c.Process = l } }
	other := joinOne(t, "h0")
	hosts := []*Host{joinOne(t, "h1", label("a")), joinOne(t, "h1"), joinOne(t, "h1", label("b"))}
	for i, h := range hosts {
		for k, hosts := range [][]*Host{{other, h}, {h, other}} {
			members := []Member{hosts[0].Member(), hosts[1].Member()}
			if m := h.Member(); m.Host != "h1" || m.Process != []string{"a", "", "b"}[i] {
				t.Errorf("%+v", m)
			}
			comms := form(t, string(rune('a'+2*i+k)), hosts, members)
			sum(t, comms, 100)
			leave(t, comms)
		}
	}
	for _, c := range []Config{{Name: "h#1"}, {Name: "h", Process: "a#b"}, {Name: "h", Process: strings.Repeat("x", 254)}} {
		if _, err := Join(t.Context(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTwoProcessesUnderOneName: the second one is refused by who knows the first, as
// parent and as child, with the first one's address; and has the name once that has gone.
func TestTwoProcessesUnderOneName(t *testing.T) {
	other, first := joinOne(t, "h0"), joinOne(t, "h1")
	comms := form(t, "first", []*Host{other, first}, []Member{other.Member(), first.Member()})
	second := joinOne(t, "h1")
	try := func(hosts ...*Host) (err error) {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		var wg sync.WaitGroup
		for _, h := range hosts {
			wg.Go(func() {
				_, e := h.Communicator(ctx, "second", []Member{hosts[0].Member(), hosts[1].Member()})
				if h == second {
					err = e
					cancel()
				}
			})
		}
		wg.Wait()
		return err
	}
	for _, hosts := range [][]*Host{{other, second}, {second, other}} {
		if err := try(hosts...); !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), `"h1" is the process at 127.0.0.1:`) {
			t.Errorf("rank 0 is %s: %v", hosts[0].Name(), err)
		}
	}
	sum(t, comms, 10)
	leave(t, comms)
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	comms = form(t, "third", []*Host{other, second}, []Member{other.Member(), second.Member()})
	sum(t, comms, 10)
	leave(t, comms)
}

// kill ends a host as the kernel does when its process is killed.
func kill(t *testing.T, h *Host) {
	t.Helper()
	if err := h.peers.Close(); err != nil {
		t.Error(err)
	}
}

// TestKilledProcess: the others find out when it is started again, however long DeadAfter
// is, and form the group again with the one that was.
func TestKilledProcess(t *testing.T) {
	for rank, name := range []string{"h0", "h1", "h2"} {
		t.Run(name, func(t *testing.T) {
			hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, func(c *Config) { c.DeadAfter = time.Hour })
			front := newFront(t)
			front.lead(members[rank].Addr)
			members[rank].Addr = front.addr()
			comms := form(t, "test", hosts, members)
			sum(t, comms, 10)
			kill(t, hosts[rank])
			hosts[rank] = joinOne(t, name)
			front.lead(hosts[rank].Addr())
			for i, c := range comms {
				if i != rank {
					<-c.Done()
					wantMember(t, c.Err(), rank, "")
				}
			}
			comms = form(t, "test", hosts, members)
			sum(t, comms, 10)
			leave(t, comms)
		})
	}
}

// TestDeathOfAnotherLife: what membership reports of a life of a host in which it was not
// met concerns no communicator, also of one that is being formed.
func TestDeathOfAnotherLife(t *testing.T) {
	h0 := joinOne(t, "h0", func(c *Config) { c.Incarnation = 5 })
	h1 := joinOne(t, "h1", func(c *Config) { c.Incarnation = 10 })
	members := []Member{h0.Member(), h1.Member()}
	end := func(incarnation uint64) {
		x := membership.Notice{Kind: membership.Left, Cause: membership.Failed}
		x.Member.Name, x.Member.Version.Incarnation = "h1", incarnation
		h0.died(x)
	}
	var early *Communicator
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if early, err = h0.Communicator(within(t), "test", members); err != nil {
			t.Error(err)
		}
	})
	until(within(t), t, "rank 0 waits", func() bool { return len(h0.links.toHost("h1")) == 1 })
	end(9)
	late, err := h1.Communicator(within(t), "test", members)
	if wg.Wait(); err != nil || t.Failed() {
		t.Fatal(err)
	}
	comms := []*Communicator{early, late}
	end(9)
	sum(t, comms, 10)
	end(10)
	<-early.Done()
	wantMember(t, early.Err(), 1, "membership reports: h1 left")
}

// TestOtherMembersAreNamed: who waits for a member that has called with another list says
// so when it gives up.
func TestOtherMembersAreNamed(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
	other := []Member{members[0], members[2], members[1]}
	ctx, cancel := context.WithCancel(within(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := hosts[0].Communicator(ctx, "test", members); err == nil || !strings.Contains(err.Error(), "rank 1 (h1) at "+members[1].Addr+" has called it with other members or settings") {
			t.Errorf("got %v, want that h1 is named", err)
		}
	})
	until(within(t), t, "rank 0 waits", func() bool { return len(hosts[0].links.toHost("h1")) == 1 })
	if _, err := hosts[1].Communicator(ctx, "test", other); !errors.Is(err, ErrFormation) {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}
