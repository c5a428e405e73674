package hostlib

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// await has spares await invitations until the test ends, and returns the communicators that they get.
func await(t *testing.T, spares ...*Host) func() []*Communicator {
	t.Helper()
	ctx := within(t)
	all := make([]*Communicator, len(spares))
	var wg sync.WaitGroup
	for i, h := range spares {
		wg.Go(func() {
			var err error
			if all[i], err = h.AwaitInvitation(ctx); err != nil {
				t.Errorf("%s: %v", h.Name(), err)
			}
		})
	}
	return func() []*Communicator { wg.Wait(); return all }
}

// growAll has all members call Grow, and returns what each got.
func growAll(ctx context.Context, comms []*Communicator, spares []Member, options ...GroupOption) ([]*Communicator, []error) {
	all, errs := make([]*Communicator, len(comms)), make([]error, len(comms))
	each(len(comms), func(i int) { all[i], errs[i] = comms[i].Grow(ctx, spares, options...) })
	return all, errs
}

// grown is growAll that succeeds, at members and spares.
func grown(t *testing.T, comms []*Communicator, hosts []*Host, options ...GroupOption) []*Communicator {
	t.Helper()
	spares := make([]Member, len(hosts))
	for i, h := range hosts {
		spares[i] = h.Member()
	}
	joined := await(t, hosts...)
	larger, errs := growAll(within(t), comms, spares, options...)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	larger = append(larger, joined()...)
	for rank, c := range larger {
		if c == nil || c.Rank() != rank || c.Size() != len(larger) || c.Name() != larger[0].Name() {
			t.Fatalf("rank %d has %+v", rank, c)
		}
	}
	return larger
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("h%d", i))
	}
	return all
}

// TestGrow: members take spares, which know nothing of them, and both communicators work.
func TestGrow(t *testing.T) {
	for _, n := range [][2]int{{1, 1}, {2, 1}, {3, 2}, {8, 1}, {1, 4}} {
		t.Run(fmt.Sprintf("%d and %d", n[0], n[1]), func(t *testing.T) {
			hosts, members := joinAs(t, names(n[0]+n[1]), patient)
			comms := form(t, "test", hosts[:n[0]], members[:n[0]])
			larger := grown(t, comms, hosts[n[0]:])
			sum(t, larger, 1000)
			sum(t, comms, 10)
			leave(t, comms)
			sum(t, larger, 10)
			leave(t, larger)
		})
	}
}

// TestGrowAgain: what has grown grows, loses members, and takes spares that were members before.
func TestGrowAgain(t *testing.T) {
	hosts, members := joinAs(t, names(5), patient)
	comms := form(t, "test", hosts[:2], members[:2], OnlyTypes(reduce.Int64))
	for i := 2; i < 5; i++ {
		comms = grown(t, comms, hosts[i:i+1])
		sum(t, comms, 100)
	}
	if _, err := Allreduce(t.Context(), comms[4], reduce.Sum, []float32{1}, []float32{1}); !errors.Is(err, ErrArgument) {
		t.Errorf("the spare has other options: %v", err)
	}
	die(t, hosts, 0, 3)
	comms = shrink(t, without(comms, 0, 3))
	sum(t, comms, 100)
	comms[0].Revoke()
	comms = shrink(t, comms)
	again := joinOne(t, "h3", patient)
	comms = grown(t, comms, []*Host{again}, OnHosts())
	sum(t, comms, 100)
	leave(t, comms)
	h := hosts[1]
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.ended); n > 2 {
		t.Errorf("%d communicators that have ended are kept", n)
	}
}

// TestAbortAfterEnd: a member that does not go on when another has died is not waited for.
func TestAbortAfterEnd(t *testing.T) {
	for _, first := range []bool{true, false} { // before the others shrink
		hosts, members := joinAs(t, names(4), patient)
		comms := form(t, "test", hosts, members)
		die(t, hosts, 1)
		<-comms[2].Done()
		if first {
			comms[2].Abort("a test")
		}
		var wg sync.WaitGroup
		if !first {
			wg.Go(func() {
				until(within(t), t, "another member shrinks", func() bool {
					v := &comms[0].recovery
					v.mu.Lock()
					defer v.mu.Unlock()
					return v.core != nil && v.core.HasStarted()
				})
				comms[2].Abort("a test")
			})
		}
		smaller := shrink(t, without(comms, 1, 2))
		wg.Wait()
		sum(t, smaller, 10)
		if _, err := comms[2].Shrink(t.Context()); !errors.Is(err, ErrEnded) {
			t.Errorf("who has aborted gets %v", err)
		}
		leave(t, smaller)
	}
}

// TestGrowByProcess: the spare is another process of a member's host, and shares memory with it.
func TestGrowByProcess(t *testing.T) {
	hosts, members := joinAs(t, names(2), patient)
	comms := form(t, "test", hosts, members)
	spare := joinOne(t, "h1", patient, func(c *Config) { c.Process = "b" })
	larger := grown(t, comms, []*Host{spare})
	sum(t, larger, 1000)
	if _, why := larger[0].Transport(); larger[0].processes == nil {
		t.Errorf("no memory is shared: %s", why)
	}
	another := joinOne(t, "h0", patient, func(c *Config) { c.Process = "b" })
	largest := grown(t, larger, []*Host{another})
	sum(t, largest, 1000)
	leave(t, largest)
	leave(t, larger)
	leave(t, comms)
}

// TestGrowArguments: what cannot be, at one member or at all, and what differs, is an error at all.
func TestGrowArguments(t *testing.T) {
	hosts, members := joinAs(t, names(4), patient)
	comms := form(t, "test", hosts[:2], members[:2])
	spare := members[2]
	for what, spares := range map[string][]Member{
		"nil": nil, "empty": {}, "itself": {members[0]}, "a member": {members[1]}, "twice": {spare, spare},
		"a member's address": {{Host: "x", Addr: members[1].Addr}}, "no port": {{Host: "x", Addr: "127.0.0.1"}}, "no address": {{Host: "x"}},
		"no host": {{Addr: spare.Addr}}, "too long": {{Host: strings.Repeat("x", 250), Addr: spare.Addr}},
	} {
		for _, other := range [][]Member{{spare}, spares} {
			each(2, func(i int) {
				if _, err := comms[i].Grow(within(t), [][]Member{spares, other}[i]); !errors.Is(err, ErrArgument) {
					t.Errorf("%s: rank %d: %v", what, i, err)
				}
			})
		}
	}
	each(2, func(i int) {
		if _, err := comms[i].Grow(within(t), []Member{spare}, make([]GroupOption, i)...); !errors.Is(err, ErrArgument) {
			t.Errorf("no option: rank %d: %v", i, err)
		}
	})
	for _, f := range []func(i int) (*Communicator, error){
		func(i int) (*Communicator, error) { return comms[i].Grow(within(t), members[2+i:3+i]) },
		func(i int) (*Communicator, error) {
			return comms[i].Grow(within(t), members[2:3], [][]GroupOption{nil, {OnHosts()}}[i]...)
		},
	} {
		each(2, func(i int) {
			if _, err := f(i); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "rank 0 and rank 1") {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	larger := grown(t, comms, hosts[2:])
	leave(t, larger)
	leave(t, comms)
}

// TestGrowWithoutSpare: a spare that never calls, or is dead, is named when ctx ends, at all members; the
// other spare goes on waiting, and is there the next time.
func TestGrowWithoutSpare(t *testing.T) {
	hosts, members := joinAs(t, names(4), patient)
	comms := form(t, "test", hosts[:2], members[:2])
	if err := hosts[3].Close(t.Context()); err != nil {
		t.Error(err)
	}
	joined := await(t, hosts[2])
	for _, who := range []int{0, 1} { // whose ctx ends: all get an error, though the other's goes on
		ctx, cancel := context.WithCancel(within(t))
		var wg sync.WaitGroup
		wg.Go(func() {
			until(within(t), t, "it is known who is missing", func() bool {
				hosts[who].mu.Lock()
				c := hosts[who].names[fmt.Sprintf("test/%d", who+1)]
				hosts[who].mu.Unlock()
				return c != nil && strings.HasPrefix(c.missing(), "rank 3 (h3)")
			})
			cancel()
		})
		each(2, func(i int) {
			with := within(t)
			if i == who {
				with = ctx
			}
			_, err := comms[i].Grow(with, members[2:])
			if !errors.Is(err, ErrFormation) || i == who && !strings.Contains(err.Error(), "rank 3 (h3)") {
				t.Errorf("rank %d: %v", i, err)
			}
		})
		wg.Wait()
	}
	sum(t, comms, 10)
	larger, errs := growAll(within(t), comms, members[2:3])
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	larger = append(larger, joined()...)
	sum(t, larger, 10)
	leave(t, larger)
	leave(t, comms)
}

// TestEndsDuringGrow: the lowest rank dies, another does, or somebody revokes, while a spare is a member
// already and another one is awaited. The members get what has ended the communicator, also those that
// hear that others have given up before they hear why, shrink it, and let that grow; the spare awaits the next invitation meanwhile.
func TestEndsDuringGrow(t *testing.T) {
	for _, how := range []string{"rank 0 dies", "rank 0 dies, as one hears", "rank 1 dies", "revoked", "the spare dies"} {
		t.Run(how, func(t *testing.T) {
			hosts, members := joinAs(t, names(5), patient)
			comms := form(t, "test", hosts[:3], members[:3])
			joined := func() []*Communicator { return nil }
			if how != "the spare dies" {
				joined = await(t, hosts[3])
			}
			ctx, cancel := context.WithCancel(within(t))
			var wg sync.WaitGroup
			if how == "the spare dies" {
				wg.Go(func() { _, _ = hosts[3].AwaitInvitation(ctx) })
			}
			wg.Go(func() {
				for _, h := range hosts[:4] {
					until(within(t), t, h.Name()+" forms it", func() bool {
						h.mu.Lock()
						defer h.mu.Unlock()
						return h.names["test/1"] != nil
					})
				}
				switch how {
				case "rank 0 dies":
					die(t, hosts, 0)
				case "rank 0 dies, as one hears": // rank 2 learns it by what they agree on
					kill(t, hosts[0])
					for _, h := range []*Host{hosts[1], hosts[3]} {
						report(h, hosts[0].Member().process(), hosts[0].Incarnation())
					}
				case "rank 1 dies":
					die(t, hosts, 1)
				case "revoked":
					comms[2].Revoke()
				default:
					die(t, hosts, 3)
					cancel()
				}
			})
			live, alive := comms, comms
			switch how {
			case "rank 0 dies", "rank 0 dies, as one hears":
				live, alive = without(comms, 0), comms[1:]
				go comms[0].Grow(ctx, members[3:])
			case "rank 1 dies":
				live, alive = without(comms, 1), []*Communicator{comms[0], comms[2]}
				go comms[1].Grow(ctx, members[3:])
			}
			_, errs := growAll(ctx, alive, members[3:])
			wg.Wait()
			for _, err := range errs {
				want := ErrEnded
				if how == "the spare dies" {
					want = ErrFormation
				}
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			if how == "the spare dies" {
				sum(t, comms, 10)
				leave(t, grown(t, comms, hosts[4:]))
				leave(t, comms)
				return
			}
			smaller := shrink(t, live)
			larger, errs := growAll(within(t), smaller, members[3:4])
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			larger = append(larger, joined()...)
			sum(t, larger, 100)
			leave(t, larger)
			leave(t, smaller)
		})
	}
}

// TestSparesAreFoundAndDismissed: those that await an invitation are found, as many as are wanted, and
// return when they are not needed any more.
func TestSparesAreFoundAndDismissed(t *testing.T) {
	hosts, members := joinAs(t, names(5), patient)
	var wg sync.WaitGroup
	for _, h := range hosts[1:4] {
		wg.Go(func() {
			if c, err := h.AwaitInvitation(within(t)); c != nil || !errors.Is(err, ErrDismissed) {
				t.Errorf("%s: %v, %v", h.Name(), c, err)
			}
		})
	}
	for n := 1; n <= 3; n++ {
		if found := hosts[0].FindSpares(within(t), members[1:], n); len(found) != n {
			t.Errorf("found %v, want %d", found, n)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if found := hosts[0].FindSpares(ctx, members[4:], 1); len(found) != 0 {
		t.Errorf("found %v, which does not wait", found)
	}
	if done := hosts[0].DismissSpares(within(t), members[1:4]); len(done) != 3 {
		t.Errorf("%v were dismissed", done)
	}
	wg.Wait()
}

// TestAwaitInvitationEnds: with its ctx, and with its host.
func TestAwaitInvitationEnds(t *testing.T) {
	h := joinOne(t, "h0")
	ctx, cancel := context.WithCancel(t.Context())
	var first, second sync.WaitGroup
	first.Go(func() {
		if _, err := h.AwaitInvitation(within(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want %v", err, ErrClosed)
		}
	})
	until(within(t), t, "it waits", func() bool { return len(h.awaits) == 1 })
	second.Go(func() {
		if _, err := h.AwaitInvitation(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
	cancel()
	second.Wait()
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	first.Wait()
	if _, err := h.AwaitInvitation(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}

// TestGrowOntoSwitches: what has grown has a tree of switches of its own, which reaches the spare.
func TestGrowOntoSwitches(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join(patient)
	comms := form(t, "test", hosts[:3], members[:3])
	offloaded(t, comms, 0)
	larger := grown(t, comms, hosts[3:])
	offloaded(t, larger, 0)
	wantTransport(t, sum(t, larger, 1000), Offload)
	wantTransport(t, sum(t, comms, 1000), Offload)
	leave(t, comms)
	leave(t, larger)
}
