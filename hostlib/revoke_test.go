package hostlib

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// wantRevoked checks that err says that one of some members has revoked the communicator.
func wantRevoked(t testing.TB, err error, by ...int) {
	t.Helper()
	var r *RevokedError
	if !errors.As(err, &r) || !errors.Is(err, ErrRevoked) || !errors.Is(err, ErrEnded) || !slices.Contains(by, r.Rank) {
		t.Errorf("got %v, want that rank %v has revoked it", err, by)
	}
}

// interrupt has all members but one wait for that one, which revokes the communicator, and checks that
// nothing goes on there.
func interrupt(t *testing.T, comms []*Communicator, by int, run func(ctx context.Context, c *Communicator) error) {
	t.Helper()
	ctx := within(t)
	var begun, running sync.WaitGroup
	begun.Add(len(comms) - 1)
	for rank, c := range comms {
		if rank != by {
			running.Go(func() {
				begun.Done()
				var err error
				for err == nil { // one that only sends may be done
					err = run(ctx, c)
				}
				wantRevoked(t, err, by)
			})
		}
	}
	begun.Wait()
	comms[by].Revoke()
	_, err := Barrier(ctx, comms[by])
	wantRevoked(t, err, by)
	running.Wait()
	for _, c := range comms {
		_, err := Barrier(ctx, c)
		wantRevoked(t, err, by)
		wantRevoked(t, c.Err(), by)
		wantRevoked(t, Send(ctx, c, (c.rank+1)%len(comms), 1, []int64{1}), by)
	}
	ended(t, comms...)
}

// waitings are ways to wait for a member that does not take part.
var waitings = map[string]struct {
	options []GroupOption
	run     func(ctx context.Context, c *Communicator) error
}{
	"over the tree": {[]GroupOption{OnTree()}, func(ctx context.Context, c *Communicator) error {
		_, err := Allreduce(ctx, c, reduce.Sum, make([]int64, 1000), make([]int64, 1000))
		return err
	}},
	"several over the tree": {[]GroupOption{OnTree()}, func(ctx context.Context, c *Communicator) error {
		v := make([]int64, 50_000)
		StartAllreduce(c, reduce.Sum, v, v)
		_, err := StartBroadcast(c, 1, v).Wait(ctx)
		return err
	}},
	"by messages": {[]GroupOption{OnHosts()}, func(ctx context.Context, c *Communicator) error {
		_, err := Allgather(ctx, c, make([]int64, 1000), make([]int64, 1000*c.Size()))
		return err
	}},
	"a barrier": {nil, func(ctx context.Context, c *Communicator) error {
		_, err := Barrier(ctx, c)
		return err
	}},
	"for a message": {nil, func(ctx context.Context, c *Communicator) error {
		_, err := Recv(ctx, c, (c.Rank()+1)%c.Size(), 1, make([]int64, 10))
		return err
	}},
	"for a receive": {nil, func(ctx context.Context, c *Communicator) error {
		return Send(ctx, c, (c.Rank()+1)%c.Size(), 1, make([]int64, 1<<20))
	}},
	"persistent": {nil, func(ctx context.Context, c *Communicator) error {
		v := make([]int64, 10)
		_, err := Prepare(func() *Request { return StartAllreduce(c, reduce.Sum, v, v) }).Run(ctx)
		return err
	}},
	"to split": {nil, func(ctx context.Context, c *Communicator) error {
		_, err := c.Split(ctx, c.Rank()%2, 0)
		return err
	}},
	"to duplicate": {nil, func(ctx context.Context, c *Communicator) error {
		_, err := c.Duplicate(ctx)
		return err
	}},
	"to leave": {nil, func(ctx context.Context, c *Communicator) error { return c.Leave(ctx) }},
}

// TestRevokeInterruptsAll: whatever members wait for, and whoever revokes the communicator, all get its
// error; others go on; and Shrink makes one of all members, of whom none is dead.
func TestRevokeInterruptsAll(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5"}, patient)
	other := form(t, "other", hosts, members)
	for name, w := range waitings {
		t.Run(name, func(t *testing.T) {
			for by := range hosts {
				comms := form(t, "test", hosts, members, w.options...)
				sum(t, comms, 10)
				interrupt(t, comms, by, w.run)
				sum(t, other, 100)
				again := shrink(t, comms)
				sum(t, again, 100)
				leave(t, again)
			}
		})
	}
	leave(t, other)
}

// TestRevokeOfSeveralTrees: a stripe may end before the communicator.
func TestRevokeOfSeveralTrees(t *testing.T) {
	hosts, members := drafted(t, 5, stripesPlanned, patient)
	for by := range hosts {
		comms := form(t, "test", hosts, members, Stripes(3))
		interrupt(t, comms, by, func(ctx context.Context, c *Communicator) error {
			v := make([]int64, 200_000)
			_, err := Allreduce(ctx, c, reduce.Sum, v, v)
			return err
		})
		again := shrink(t, comms)
		sum(t, again, 200_000)
		leave(t, again)
	}
}

// TestRevokeOfProcesses: who waits in shared memory is interrupted, whether it leads its host or not.
func TestRevokeOfProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1, 3}, patient)
	for _, n := range []int{10, 300_000} {
		for by := range hosts {
			comms := form(t, "test", hosts, members)
			interrupt(t, comms, by, func(ctx context.Context, c *Communicator) error {
				v := make([]int64, n)
				_, err := Allreduce(ctx, c, reduce.Sum, v, v)
				return err
			})
			again := shrink(t, comms)
			sum(t, again, n)
			leave(t, again)
		}
	}
}

// TestRevokeBySeveral: of members that revoke at once, in the middle of operations of all, each member
// names one.
func TestRevokeBySeveral(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
	for _, by := range [][]int{{3}, {0, 4}, {1, 2, 3}, {0, 1, 2, 3, 4}} {
		comms := form(t, "test", hosts, members)
		var running sync.WaitGroup
		for _, c := range comms {
			running.Go(func() {
				v := make([]int64, 1000)
				for k := 0; ; k++ {
					if k == 5 && slices.Contains(by, c.Rank()) {
						for range 3 {
							running.Go(c.Revoke)
						}
					}
					if _, err := Allreduce(within(t), c, reduce.Sum, v, v); err != nil {
						wantRevoked(t, err, by...)
						return
					}
				}
			})
		}
		running.Wait()
		leave(t, shrink(t, comms))
	}
}

// TestRevokeBeforeOthersHaveIt: all have come, and two members still wait for a tree of switches, when
// the third revokes the communicator, or dies. They get it, so that all can shrink it.
func TestRevokeBeforeOthersHaveIt(t *testing.T) {
	manager, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	for _, dies := range []bool{false, true} {
		hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient, func(c *Config) {
			if c.Manager, c.OfferWait = manager.Addr().String(), time.Hour; c.Name == "h1" {
				c.OfferWait = time.Nanosecond
			}
		})
		comms := make([]*Communicator, 3)
		each(3, func(i int) {
			var err error
			if comms[i], err = hosts[i].Communicator(within(t), "test", members); err != nil {
				t.Error(err)
				return
			}
			if i == 1 && dies {
				die(t, hosts, 1)
			} else if i == 1 {
				comms[1].Revoke()
			}
		})
		if t.Failed() {
			return
		}
		for _, i := range []int{0, 2} {
			if _, err := Barrier(within(t), comms[i]); dies {
				wantMember(t, err, 1, "")
			} else {
				wantRevoked(t, err, 1)
			}
		}
		for _, h := range hosts {
			h.cfg.OfferWait = time.Nanosecond
		}
		if dies {
			comms = without(comms, 1)
		}
		sum(t, shrink(t, comms), 10)
	}
}

// TestRevokeDuringSplit: who waits for a member of the new communicator does not wait for ever.
func TestRevokeDuringSplit(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	for _, by := range []int{1, 2} { // one that waits, and one that does not
		comms := form(t, "test", hosts, members)
		each(3, func(i int) {
			if i == 2 { // it has split the communicator, as far as the others know
				if _, err := Allgather(within(t), comms[2], []int64{0, 0}, make([]int64, 6)); err != nil {
					t.Error(err)
				}
				for _, h := range hosts[:2] {
					waitsFor(t, h, "test/1.0", "rank 2 (h2)")
				}
				comms[by].Revoke()
				return
			}
			_, err := comms[i].Split(within(t), 0, 0)
			wantRevoked(t, err, by)
			if !errors.Is(err, ErrFormation) {
				t.Error(err)
			}
		})
		leave(t, shrink(t, comms))
	}
}

// TestRevokePersistent: what was under way when the communicator was revoked cannot be started again,
// for that reason.
func TestRevokePersistent(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"}, patient)
	comms := form(t, "test", hosts, members)
	v := []int64{1}
	p := Prepare(func() *Request { return StartAllreduce(comms[0], reduce.Sum, v, v) })
	r, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	comms[0].Revoke()
	_, err = p.Start()
	wantRevoked(t, err, 0)
	_, err = r.Wait(within(t))
	wantRevoked(t, err, 0)
}

// TestRevokeAmongDeaths: all that live are notified, though no neighbour of who revokes in the tree of
// hosts is left, and nobody reports the deaths.
func TestRevokeAmongDeaths(t *testing.T) {
	for by, dead := range map[int][]int{7: {0, 1, 3, 6}, 2: {0, 3, 4, 6}, 0: {1, 2, 4, 7}, 5: {0, 4, 6, 7}} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"}, func(c *Config) { c.DeadAfter = 2 * patience })
			comms := form(t, "test", hosts, members)
			for _, rank := range dead {
				kill(t, hosts[rank])
			}
			var living []*Communicator
			for rank, c := range comms {
				if !slices.Contains(dead, rank) {
					living = append(living, c)
				}
			}
			var running sync.WaitGroup
			for _, c := range living {
				if c.Rank() != by {
					running.Go(func() {
						_, err := Barrier(within(t), c)
						wantRevoked(t, err, by)
					})
				}
			}
			comms[by].Revoke()
			running.Wait()
			for _, rank := range dead {
				for _, c := range living {
					report(c.host, hosts[rank].Name(), hosts[rank].Incarnation())
				}
			}
			for _, c := range living { // nobody is called that is dead
				until(within(t), t, "it awaits nobody", func() bool { return !c.host.keepsRevoked() })
			}
			smaller := shrink(t, without(comms, dead...))
			sum(t, smaller, 100)
			leave(t, smaller)
		})
	}
}

// keepsRevoked reports whether others may not know of a revocation.
func (h *Host) keepsRevoked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.revoked) > 0
}

// TestRevokeAfterDeath: the communicator has ended by a death already, which stays the reason.
func TestRevokeAfterDeath(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
	comms := form(t, "test", hosts, members)
	die(t, hosts, 2)
	living := without(comms, 2)
	for _, c := range living {
		if c != nil {
			<-c.Done()
		}
	}
	for _, c := range living {
		if c != nil {
			c.Revoke()
			wantMember(t, c.Err(), 2, "")
		}
	}
	smaller := shrink(t, living)
	sum(t, smaller, 10)
	smaller[1].Revoke() // when others have died, it goes the same way
	for _, c := range smaller {
		_, err := Barrier(within(t), c)
		wantRevoked(t, err, 1)
	}
	leave(t, shrink(t, smaller))
}

// TestAbortMeetsRevoke: a member aborts before it is notified of a revoke, and when all others have ended by
// that. It counts as dead, though no other knows yet.
func TestAbortMeetsRevoke(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
	for by := range hosts {
		for quits := range hosts {
			if quits == by {
				continue
			}
			comms := form(t, "test", hosts, members)
			v := &comms[quits].revocation
			v.mu.Lock()
			comms[by].Revoke()
			living := without(comms, quits)
			for _, c := range living {
				if c != nil {
					ended(t, c)
					wantRevoked(t, c.Err(), by)
				}
			}
			comms[quits].Abort("a test")
			v.mu.Unlock()
			wantMember(t, comms[quits].Err(), quits, "a test")
			leave(t, shrink(t, living))
		}
	}
}

// TestAbortBeforeRevoke: a member has called Abort, and then Revoke, before its loop has come to either. It
// counts as dead, although its operations fail because the communicator is revoked.
func TestAbortBeforeRevoke(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
	for quits := range hosts {
		comms := form(t, "test", hosts, members)
		c := comms[quits]
		stands, goesOn := make(chan struct{}), make(chan struct{})
		var stopping sync.WaitGroup
		stopping.Go(func() {
			if err := c.loop.Do(t.Context(), func() { close(stands); <-goesOn }); err != nil {
				t.Error(err)
			}
		})
		<-stands
		c.abort("a test")
		c.Revoke()
		living := without(comms, quits)
		for _, o := range living {
			if o != nil {
				ended(t, o)
			}
		}
		close(goesOn)
		stopping.Wait()
		for _, o := range comms {
			ended(t, o)
			wantRevoked(t, o.Err(), quits)
		}
		wantMember(t, c.ending(), quits, "a test")
		leave(t, shrink(t, living))
	}
}

// TestRevokeDuringShrink: what the members agree upon meanwhile is not disturbed.
func TestRevokeDuringShrink(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
	for by := range hosts {
		comms := form(t, "test", hosts, members)
		var revoking sync.WaitGroup
		revoking.Go(comms[by].Revoke)
		smaller := shrink(t, comms)
		revoking.Wait()
		sum(t, smaller, 100)
		leave(t, smaller)
		ended(t, comms...)
	}
}

// TestRevokeAndFormAgain: the name is free at once, and late notices end no successor.
func TestRevokeAndFormAgain(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
	for k := range 20 {
		comms := form(t, "test", hosts, members)
		comms[k%4].Revoke()
		for _, c := range comms {
			_, err := Barrier(within(t), c)
			wantRevoked(t, err, k%4)
			<-c.Done() // by which the name is free
		}
		again := form(t, "test", hosts, members)
		sum(t, again, 10)
		leave(t, again)
	}
}

// TestRevokeMeetsLeave: each member has left or is interrupted, and nobody waits for those that are.
func TestRevokeMeetsLeave(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
	for k := range 50 {
		comms := form(t, "test", hosts, members)
		by := k % len(comms)
		var revoking sync.WaitGroup
		revoking.Go(func() {
			if k%2 == 0 { // the others are leaving then
				until(within(t), t, "it is leaving", comms[by].leaving)
			}
			comms[by].Revoke()
		})
		each(len(comms), func(i int) {
			if err := comms[i].Leave(within(t)); err != nil {
				wantRevoked(t, err, by)
			}
		})
		revoking.Wait()
		ended(t, comms...)
	}
}

// TestRevokeAlone: one of one member is interrupted, too.
func TestRevokeAlone(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0"})
	comms := form(t, "test", hosts, members)
	comms[0].Revoke()
	_, err := Barrier(t.Context(), comms[0])
	wantRevoked(t, err, 0)
	again := shrink(t, comms)
	sum(t, again, 10)
	leave(t, again)
	if hosts[0].keepsRevoked() {
		t.Error("it waits for others")
	}
}

// TestRevokeAfterLeave does nothing.
func TestRevokeAfterLeave(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
	comms := form(t, "test", hosts, members)
	leave(t, comms)
	ended(t, comms...)
	for _, c := range comms {
		if c.Revoke(); errors.Is(c.Err(), ErrRevoked) || !errors.Is(c.Err(), ErrEnded) || c.host.keepsRevoked() {
			t.Errorf("rank %d: %v", c.Rank(), c.Err())
		}
	}
}
