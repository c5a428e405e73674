package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

// shrink has the survivors shrink their communicators, and checks that all have the same members.
// What is at the place of a dead member is nil.
func shrink(t testing.TB, comms []*Communicator, options ...GroupOption) []*Communicator {
	t.Helper()
	ctx := within(t)
	all := make([]*Communicator, len(comms))
	each(len(comms), func(i int) {
		if comms[i] == nil {
			return
		}
		var err error
		if all[i], err = comms[i].Shrink(ctx, options...); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	var smaller []*Communicator
	for i, c := range all {
		if c == nil {
			continue
		}
		if c.Rank() != len(smaller) || c.Members()[c.Rank()] != comms[i].Members()[i] {
			t.Fatalf("rank %d has become %d of %v", i, c.Rank(), c.Members())
		}
		smaller = append(smaller, c)
	}
	for _, c := range smaller {
		if c.Size() != len(smaller) || c.Name() != smaller[0].Name() {
			t.Fatalf("%q of %d, want %q of %d", c.Name(), c.Size(), smaller[0].Name(), len(smaller))
		}
	}
	return smaller
}

// without returns comms with nil at some places.
func without(comms []*Communicator, ranks ...int) []*Communicator {
	all := append([]*Communicator(nil), comms...)
	for _, rank := range ranks {
		all[rank] = nil
	}
	return all
}

// patient has nobody count as dead for its silence: what holds up the test's process kills none.
func patient(c *Config) { c.DeadAfter = patience }

// die kills a host, and has the others hear of that as from membership.
func die(t *testing.T, hosts []*Host, ranks ...int) {
	t.Helper()
	for _, rank := range ranks {
		kill(t, hosts[rank])
	}
	for _, rank := range ranks {
		for i, h := range hosts {
			if i != rank {
				report(h, hosts[rank].Member().process(), hosts[rank].Incarnation())
			}
		}
	}
}

// TestShrinkAlive: a communicator in which nobody has died has a copy, again and again, and goes on.
func TestShrinkAlive(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"})
	comms := form(t, "test", hosts, members)
	for range 3 {
		smaller := shrink(t, comms)
		sum(t, smaller, 100)
		sum(t, comms, 100)
		leave(t, smaller)
	}
	leave(t, comms)
	if _, err := comms[0].Shrink(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("after Leave: %v", err)
	}
}

// TestShrinkAfterDeath: whoever has died, abruptly or by closing its host, the others have a
// communicator without it, in their old order; that of two leaves one.
func TestShrinkAfterDeath(t *testing.T) {
	for _, n := range []int{2, 3, 6} {
		for dead := range n {
			for _, how := range []string{"killed", "closed", "aborted"} {
				t.Run(fmt.Sprintf("%d of %d %s", dead, n, how), func(t *testing.T) {
					hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5"}[:n], patient)
					comms := form(t, "test", hosts, members)
					sum(t, comms, 10)
					switch how {
					case "killed":
						die(t, hosts, dead)
					case "closed":
						if err := hosts[dead].Close(t.Context()); err != nil {
							t.Error(err)
						}
					default:
						comms[dead].Abort("a test")
						if _, err := comms[dead].Shrink(t.Context()); !errors.Is(err, ErrEnded) {
							t.Errorf("who has aborted gets %v", err)
						}
					}
					smaller := shrink(t, without(comms, dead))
					sum(t, smaller, 1000)
					leave(t, smaller)
				})
			}
		}
	}
}

// TestShrinkAtDifferentTimes: members call Shrink after others have given up, whose errors name
// who has not called. Those that had called count, though they wait no more.
func TestShrinkAtDifferentTimes(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient, func(c *Config) { c.SlowAfter = 10 * time.Millisecond })
	comms := form(t, "test", hosts, members)
	die(t, hosts, 1)
	waits := func(c *Communicator, on string) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Shrink(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), on) {
				t.Errorf("got %v, want that it waits for %s", err, on)
			}
		})
		until(within(t), t, "it is known who is waited for", func() bool {
			v := &c.recovery
			v.mu.Lock()
			isBegun := v.core != nil && v.core.IsDead(1) && v.core.HasStarted()
			v.mu.Unlock()
			return isBegun && strings.Contains(c.awaited(), on)
		})
		cancel()
		wg.Wait()
	}
	waits(comms[0], "rank 2 (h2)")
	waits(comms[2], "rank 3 (h3)")
	smaller := shrink(t, without(comms, 1))
	sum(t, smaller, 100)
	leave(t, smaller)
}

// TestShrinkAgain: members die one after the other, until one is left; what has ended before is
// forgotten.
func TestShrinkAgain(t *testing.T) {
	names := []string{"h0", "h1", "h2", "h3", "h4", "h5"}
	hosts, members := joinAs(t, names, patient)
	comms := form(t, "test", hosts, members)
	for _, dead := range []int{0, 4, 1, 2, 0} {
		sum(t, comms, 100)
		die(t, hosts, slices.Index(hosts, comms[dead].host))
		comms = shrink(t, without(comms, dead))
	}
	sum(t, comms, 100)
	h := comms[0].host
	h.mu.Lock()
	n := len(h.ended)
	h.mu.Unlock()
	if n > 2 {
		t.Errorf("%d communicators that have ended are kept", n)
	}
}

// TestDeathsDuringShrink: members die at any moment of it; the others go on without them.
func TestDeathsDuringShrink(t *testing.T) {
	for k := range 12 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5"}, patient)
			comms := form(t, "test", hosts, members)
			die(t, hosts, 3)
			dies := []int{0, 1, 5}[k%3]
			var wg sync.WaitGroup
			wg.Go(func() { // it dies when it has come so far, or never calls
				if k < 3 {
					die(t, hosts, dies)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var shrinking sync.WaitGroup
				shrinking.Go(func() { _, _ = comms[dies].Shrink(ctx) })
				v := &comms[dies].recovery
				until(within(t), t, "the member has come so far", func() bool {
					v.mu.Lock()
					defer v.mu.Unlock()
					if v.core == nil {
						return false
					}
					switch k / 3 {
					case 1:
						return v.core.HasStarted() || v.core.Number() >= 2
					case 2:
						return v.core.Number() >= 2
					default:
						return v.core.Number() == 2 && v.core.HasStarted() || v.core.Number() > 2
					}
				})
				die(t, hosts, dies)
				cancel()
				shrinking.Wait()
			})
			ctx := within(t)
			smaller := make([]*Communicator, 6)
			each(6, func(i int) {
				if i == 3 || i == dies {
					return
				}
				for c := comms[i]; ; { // it may have been formed with who died right after that
					var err error
					if c, err = c.Shrink(ctx); err != nil {
						t.Errorf("rank %d: %v", i, err)
						return
					}
					v := make([]int64, 10)
					if _, err = Allreduce(ctx, c, reduce.Sum, v, v); err == nil && c.Size() == 4 {
						smaller[i] = c
						return
					}
				}
			})
			wg.Wait()
			if !t.Failed() {
				shrunk := without(nil)
				for _, c := range smaller {
					if c != nil {
						shrunk = append(shrunk, c)
					}
				}
				sum(t, shrunk, 100)
				leave(t, shrunk)
			}
		})
	}
}

// TestShrinkOnSwitches: the survivors have a tree of switches of their own, whoever dies.
func TestShrinkOnSwitches(t *testing.T) {
	for dead := range 4 {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			f := newFabric(t, 2, func(*agentd.Config) {})
			hosts, members := f.join(patient)
			comms := form(t, "test", hosts, members)
			offloaded(t, comms, 0)
			sum(t, comms, 10_000)
			die(t, hosts, dead)
			smaller := shrink(t, without(comms, dead))
			offloaded(t, smaller, 0)
			wantTransport(t, sum(t, smaller, 10_000), Offload)
			leave(t, smaller)
		})
	}
}

// TestShrinkOfSeveralTrees: the communicator of the survivors has several trees, too, unless it is
// to have others.
func TestShrinkOfSeveralTrees(t *testing.T) {
	f := newFabric(t, 2, func(*agentd.Config) {})
	hosts, members := f.join(patient)
	comms := form(t, "test", hosts, members, Stripes(2))
	sum(t, comms, 10_000)
	die(t, hosts, 2)
	smaller := shrink(t, without(comms, 2))
	sum(t, smaller, 10_000)
	die(t, hosts, 0)
	single := shrink(t, without(smaller, 0), OnHosts())
	for _, c := range append(smaller[1:], single...) {
		if isSingle := c.Size() == 2; (c.multitree == nil) != isSingle {
			t.Errorf("%q of %d has several trees: %v", c.Name(), c.Size(), c.multitree != nil)
		}
	}
	sum(t, single, 1000)
	leave(t, single)
}

// TestShrinkArguments: who may not shrink gets an error that says why.
func TestShrinkArguments(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"}, patient)
	comms := form(t, "test", hosts, members)
	if _, err := comms[0].Shrink(t.Context(), nil); !errors.Is(err, ErrArgument) {
		t.Errorf("an option that is nil: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := comms[0].Shrink(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rank 1 (h1)") {
		t.Errorf("a context that has ended: %v", err)
	}
	die(t, hosts, 1)
	<-comms[0].Done()
	again := form(t, "test", hosts[:1], members[:1])
	leave(t, again)
	smaller := shrink(t, without(comms, 1))
	leave(t, smaller)
	if err := hosts[0].Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := comms[0].Shrink(t.Context()); !errors.Is(err, ErrEnded) && !errors.Is(err, ErrClosed) {
		t.Errorf("on a host that is closed: %v", err)
	}
}

// TestShrinkFormedAgain: a communicator that was formed again, by the same members, cannot be shrunk,
// but the new one can.
func TestShrinkFormedAgain(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	for range 3 {
		comms := form(t, "test", hosts, members)
		comms[1].Abort("a test")
		for _, c := range comms {
			<-c.Done()
		}
		again := form(t, "test", hosts, members)
		if _, err := comms[0].Shrink(t.Context()); !errors.Is(err, ErrEnded) {
			t.Errorf("the earlier one: %v", err)
		}
		smaller := shrink(t, again)
		sum(t, smaller, 10)
		leave(t, smaller)
		leave(t, again)
	}
}

// report has a host hear of a death as from membership.
func report(h *Host, name string, incarnation uint64) {
	x := membership.Notice{Kind: membership.Left, Cause: membership.Failed}
	x.Member.Name, x.Member.Version.Incarnation = name, incarnation
	h.died(x)
}

// TestDeathsBeforeShrink: what membership has reported before the first Shrink counts, of all that
// have died, though their connections stand.
func TestDeathsBeforeShrink(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
	comms := form(t, "test", hosts, members)
	for _, h := range hosts[:3] {
		for _, dead := range hosts[3:] {
			report(h, dead.Name(), dead.Incarnation())
		}
	}
	for _, c := range comms {
		<-c.Done()
	}
	smaller := shrink(t, without(comms, 3, 4))
	if len(smaller) != 3 {
		t.Fatalf("%d members are left", len(smaller))
	}
	sum(t, smaller, 10)
	leave(t, smaller)
}

// TestDeathOfEarlierLife: a death that membership reports late, of a process that has started again, is
// no death of a member.
func TestDeathOfEarlierLife(t *testing.T) {
	var hosts []*Host
	var members []Member
	for i := range 3 {
		h := joinOne(t, fmt.Sprint("h", i), patient, func(c *Config) {
			if c.Membership = new(membership.Config); i > 0 {
				c.Membership.Bootstrap = []string{hosts[0].Addr()}
			}
		})
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	for _, h := range hosts {
		until(within(t), t, "all are in the zone", func() bool {
			all, err := h.Members().View(t.Context())
			return err == nil && len(all) == 3
		})
	}
	comms := form(t, "test", hosts, members)
	again := shrink(t, comms)
	for _, h := range hosts[:2] {
		report(h, "h2", hosts[2].Incarnation()-1)
	}
	if once := shrink(t, comms); len(once) != 3 {
		t.Errorf("%d members are left", len(once))
	}
	leave(t, again)
}

// TestShrinkWithoutOneThatJoinsAgain: a member that closes its host after the end of the communicator, and joins
// again while the others shrink it, is dead in that, also where nobody but the first of the dead was its neighbour.
func TestShrinkWithoutOneThatJoinsAgain(t *testing.T) {
	ctx, names := within(t), []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"}
	hosts, members := joinAs(t, names, patient)
	fronts := map[int]*front{6: newFront(t), 7: newFront(t)}
	renew := func(rank int) {
		hosts[rank] = joinOne(t, names[rank])
		if _, err := rail.On(hosts[rank], rail.Config{}); err != nil {
			t.Error(err)
		}
		fronts[rank].lead(hosts[rank].Addr())
	}
	for rank, f := range fronts {
		f.lead(members[rank].Addr)
		members[rank].Addr = f.addr()
	}
	first := form(t, "first", hosts, members)
	for i := range 6 { // so that each has a session with rank 7
		r := StartRecv(first[7], i, 1, make([]int64, 1))
		if err := Send(ctx, first[i], 7, 1, make([]int64, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	comms := form(t, "second", hosts, members)
	kill(t, hosts[6])
	renew(6)
	for rank, c := range comms {
		if rank != 6 {
			<-c.Done()
		}
	}
	if err := hosts[7].Close(ctx); err != nil {
		t.Error(err)
	}
	var shrinking sync.WaitGroup
	smaller := make([]*Communicator, 6)
	for i := range smaller {
		shrinking.Go(func() {
			var err error
			if smaller[i], err = comms[i].Shrink(ctx); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	for _, c := range comms[:6] {
		until(ctx, t, "all shrink", func() bool {
			c.recovery.mu.Lock()
			defer c.recovery.mu.Unlock()
			return c.recovery.core != nil
		})
	}
	renew(7)
	if shrinking.Wait(); t.Failed() {
		return
	}
	for i, c := range smaller {
		if failed := comms[i].Failed(); c.Size() != 6 || !slices.Equal(failed, []int{6, 7}) {
			t.Errorf("rank %d: %d members are left, without %v", i, c.Size(), failed)
		}
	}
	leave(t, smaller)
}

// TestShrinkAfterSeveralAborts: members that abort at once each know their own end, and the others one of
// them. All of these count as dead.
func TestShrinkAfterSeveralAborts(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
	for range 100 {
		comms := form(t, "test", hosts, members)
		each(2, func(i int) { comms[2+i].Abort("a test") })
		if !comms[2].hasQuit() || !comms[3].hasQuit() { // one was first
			continue
		}
		for _, c := range comms {
			<-c.Done()
		}
		smaller := shrink(t, without(comms, 2, 3))
		if len(smaller) != 2 {
			t.Errorf("%d members are left", len(smaller))
		}
		leave(t, smaller)
		return
	}
	t.Error("one is always first")
}

// TestNeverFormed: a communicator that was not formed takes none of the places of those that can be shrunk.
func TestNeverFormed(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"}, patient)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hosts[0].Communicator(ctx, "test", members); !errors.Is(err, ErrFormation) {
		t.Fatal(err)
	}
	h := hosts[0]
	until(within(t), t, "it has ended", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.comms) == 0
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) > 0 {
		t.Errorf("%d communicators are kept", len(h.ended))
	}
}

// TestShrunkNames: names stay short enough, and differ.
func TestShrunkNames(t *testing.T) {
	seen, name := map[string]bool{}, "job"
	for range 300 {
		name = shrunkName(name, 1)
		if len(name) > maxName-maxSuffix || seen[name] {
			t.Fatalf("%q", name)
		}
		seen[name] = true
	}
}
