package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// agreeAll has members agree, each on flags of its own, and checks that all come to the same. What is at the
// place of a dead member is nil. Without failed the decision may name anybody, and the error be any.
func agreeAll(t testing.TB, comms []*Communicator, failed ...int) Agreement {
	t.Helper()
	ctx := within(t)
	all, errs := make([]Agreement, len(comms)), make([]error, len(comms))
	want, first := ^uint32(0), -1
	for i, c := range comms {
		if c != nil {
			want &= ^(1 << i)
			first = i
		}
	}
	each(len(comms), func(i int) {
		if comms[i] != nil {
			all[i], errs[i] = comms[i].Agree(ctx, ^(1 << i))
		}
	})
	for i, c := range comms {
		switch {
		case c == nil:
		case errs[i] != nil && !errors.Is(errs[i], ErrUnacknowledged):
			t.Fatalf("rank %d: %v", i, errs[i])
		case all[i].Flags&want != all[i].Flags || !slices.Equal(all[i].Failed, failed):
			t.Fatalf("rank %d: %+v, want flags of %b, and %v to have failed", i, all[i], want, failed)
		case all[i].Flags != all[first].Flags || (errs[i] == nil) != (errs[first] == nil):
			t.Fatalf("rank %d: %+v, %v, but rank %d: %+v, %v", i, all[i], errs[i], first, all[first], errs[first])
		}
	}
	if (errs[first] != nil) != (len(failed) > 0 && !slices.Equal(comms[first].Acknowledged(), failed)) {
		t.Fatalf("%v have failed, %v are acknowledged: %v", failed, comms[first].Acknowledged(), errs[first])
	}
	return all[first]
}

// TestAgree: the members of a communicator that lives agree on the AND of what they give, again and
// again, and the communicator goes on.
func TestAgree(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 17} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("h", i))
		}
		hosts, members := joinAs(t, names, patient)
		comms := form(t, "test", hosts, members)
		for range 3 {
			if got, want := agreeAll(t, comms), ^(uint32(1)<<n - 1); got.Flags != want {
				t.Fatalf("%d members: %b, want %b", n, got.Flags, want)
			}
			sum(t, comms, 10)
		}
		leave(t, comms)
		<-comms[0].Done()
		if _, err := comms[0].Agree(t.Context(), 0); !errors.Is(err, ErrEnded) {
			t.Errorf("after Leave: %v", err)
		}
	}
}

// TestAgreeOfProcesses: members are processes, several of which share a host.
func TestAgreeOfProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{3, 1, 2}, patient)
	comms := form(t, "test", hosts, members)
	agreeAll(t, comms)
	sum(t, comms, 10)
	die(t, hosts, 0, 4)
	agreeAll(t, without(comms, 0, 4), 0, 4)
}

// TestAgreeAfterDeath: the survivors agree on who has died, and get an error, all of them, until all
// have acknowledged that.
func TestAgreeAfterDeath(t *testing.T) {
	for _, dead := range []int{0, 2, 4} {
		hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
		comms := form(t, "test", hosts, members)
		agreeAll(t, comms)
		die(t, hosts, dead)
		living := without(comms, dead)
		agreeAll(t, living, dead)
		for i, c := range living { // all know now, and one after the other says that it does
			if c == nil {
				continue
			}
			if got := c.Failed(); !slices.Equal(got, []int{dead}) {
				t.Fatalf("rank %d knows of %v, want %d", i, got, dead)
			}
			if got := c.Acknowledged(); len(got) > 0 {
				t.Fatalf("rank %d has acknowledged %v", i, got)
			}
			var errs [5]error
			each(5, func(i int) {
				if living[i] != nil {
					_, errs[i] = living[i].Agree(within(t), 0)
				}
			})
			for i, err := range errs {
				if living[i] != nil && (!errors.Is(err, ErrUnacknowledged) || !strings.Contains(err.Error(), fmt.Sprintf("rank %d (h%d)", dead, dead))) {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			if got := c.AcknowledgeFailures(); !slices.Equal(got, []int{dead}) || !slices.Equal(c.Acknowledged(), got) {
				t.Fatalf("rank %d acknowledges %v", i, got)
			}
		}
		agreeAll(t, living, dead)
		sum(t, shrink(t, living), 10)
		second := (dead + 1) % 5 // after the communicator's end
		die(t, hosts, second)
		failed := []int{dead, second}
		slices.Sort(failed)
		agreeAll(t, without(comms, failed...), failed...)
	}
}

// TestAgreeWhileMembersDie: all that live decide the same, whenever others die.
func TestAgreeWhileMembersDie(t *testing.T) {
	for round := range 10 {
		hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4", "h5"}, patient)
		comms := form(t, "test", hosts, members)
		dead := []int{round % 6, (round + 1 + round/6) % 6}
		var dying sync.WaitGroup
		dying.Go(func() { die(t, hosts, dead...) })
		all, errs := make([][]Agreement, 6), make([]error, 6)
		each(6, func(i int) {
			for !slices.Contains(dead, i) {
				a, err := comms[i].Agree(within(t), ^(1 << i))
				if err != nil && !errors.Is(err, ErrUnacknowledged) {
					errs[i] = err
					return
				}
				if all[i] = append(all[i], a); len(a.Failed) == 2 {
					return
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = comms[i].Agree(ctx, 0) // it may take part before it dies
		})
		dying.Wait()
		first := (max(dead[0], dead[1]) + 1) % 6
		for slices.Contains(dead, first) {
			first = (first + 1) % 6
		}
		for i := range comms {
			if slices.Contains(dead, i) {
				continue
			}
			if errs[i] != nil || !slices.EqualFunc(all[i], all[first], func(a, b Agreement) bool { return a.Flags == b.Flags && slices.Equal(a.Failed, b.Failed) }) {
				t.Fatalf("%v died: rank %d has %+v, %v, and rank %d %+v", dead, i, all[i], errs[i], first, all[first])
			}
		}
	}
}

// TestAgreeRevoked: members agree in a communicator that is revoked, and nobody counts as dead.
func TestAgreeRevoked(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	comms[1].Revoke()
	agreeAll(t, comms)
	leave(t, shrink(t, comms))
	agreeAll(t, comms)
}

// TestAgreeMeetsShrink: members that call different ones get an error that says so, and can agree after it.
func TestAgreeMeetsShrink(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	for range 3 {
		each(3, func(i int) {
			var err error
			if i == 1 {
				_, err = comms[i].Shrink(within(t))
			} else {
				_, err = comms[i].Agree(within(t), 0)
			}
			if !errors.Is(err, ErrDisagreement) || !strings.Contains(err.Error(), "Shrink") {
				t.Errorf("rank %d: %v", i, err)
			}
		})
		agreeAll(t, comms)
	}
	leave(t, shrink(t, comms))
}

// TestAgreeAbandoned: the others decide with the flags of a member whose ctx has ended. Its next Agree
// returns that, and a Shrink in its place does not.
func TestAgreeAbandoned(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	abandon := func(rank int, flags uint32) {
		ctx, cancel := context.WithCancel(t.Context())
		var agreeing sync.WaitGroup
		agreeing.Go(func() {
			if _, err := comms[rank].Agree(ctx, flags); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that its context has ended", err)
			}
		})
		v := &comms[rank].recovery
		until(within(t), t, "it has given its flags", func() bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.core != nil && v.core.HasStarted()
		})
		cancel()
		agreeing.Wait()
	}
	agree := func(rank int, flags, want uint32) {
		if a, err := comms[rank].Agree(within(t), flags); err != nil || a.Flags != want {
			t.Errorf("rank %d: %+v, %v, want flags of %d", rank, a, err, want)
		}
	}
	abandon(0, 6)
	each(2, func(i int) { agree(1+i, 7, 6) })
	agree(0, 1, 6)
	abandon(2, 5)
	each(2, func(i int) { agree(i, 7, 5) })
	leave(t, shrink(t, comms))
	each(3, func(i int) { agree(i, 3, 3) })
}

// TestAgreeAfterAbort: who has aborted can take no part, and the others do not wait for it.
func TestAgreeAfterAbort(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	comms[1].Abort("a test")
	if _, err := comms[1].Agree(t.Context(), 0); !errors.Is(err, ErrEnded) {
		t.Errorf("who has aborted gets %v", err)
	}
	agreeAll(t, without(comms, 1), 1)
}

// TestAgreeTwiceAtOnce: calls of two goroutines of a member come one after the other.
func TestAgreeTwiceAtOnce(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	var mu sync.Mutex
	seen := map[uint32]int{}
	each(6, func(i int) {
		a, err := comms[i/2].Agree(within(t), 9)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen[a.Flags]++
		mu.Unlock()
	})
	if seen[9] != 6 {
		t.Errorf("got %v", seen)
	}
}

// TestAgreeAmidGarbage: what no member sends is counted, whether it comes before or after a member takes
// part, and changes nothing: bytes of no meaning, empty and too long messages, and one that has no end.
func TestAgreeAmidGarbage(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	refused := uint64(0)
	for range 3 {
		for i := 1; i < 3; i++ {
			v := &comms[i].recovery
			p, err := v.space.Peer(members[0].process())
			if err != nil {
				t.Fatal(err)
			}
			endless := append([]byte{1}, make([]byte, 100)...)
			for _, b := range [][]byte{{0, 2, 3, 4}, {}, {0, 255}, make([]byte, pieceMost+1), make([]byte, pieceMost+1), endless, endless, endless} {
				if _, err := v.part.StartSend(p, 0, b).Wait(within(t)); err != nil {
					t.Fatal(err)
				}
				refused++
			}
		}
		agreeAll(t, comms)
		until(within(t), t, "all is counted", func() bool { return hosts[0].Connections().Rejected == refused })
	}
}

// TestAgreeCountsOfFaulty: a member that has acknowledged a death that none is disturbs nobody.
func TestAgreeCountsOfFaulty(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	comms := form(t, "test", hosts, members)
	comms[1].recovery.acknowledged = []int{0}
	each(3, func(i int) {
		if a, err := comms[i].Agree(within(t), 5); err != nil || a.Flags != 5 || a.Failed != nil {
			t.Errorf("rank %d: %+v, %v", i, a, err)
		}
	})
}
