package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// found has hosts die, which others find by their connections alone.
func found(t *testing.T, hosts []*Host, ranks ...int) {
	t.Helper()
	for _, rank := range ranks {
		kill(t, hosts[rank])
	}
}

// vectorFrom returns n elements that only a message from rank has.
func vectorFrom(from, n int) []int64 { return slices.Repeat([]int64{int64(from + 1)}, n) }

// takes waits for a receive of vectorFrom(from, n), and checks it.
func takes(ctx context.Context, t *testing.T, m *Message, v []int64, from, n int) {
	t.Helper()
	if s, err := m.Wait(ctx); err != nil || s.Elements != n || !slices.Equal(v, vectorFrom(from, n)) {
		t.Errorf("a message of %d elements from rank %d: %+v, %v", n, from, s, err)
	}
}

// TestMessagesOutliveAnyDeath: messages between members that live arrive, whoever dies and however long
// they are, those that wait when it dies and later ones. Those with the dead, and collectives, fail.
func TestMessagesOutliveAnyDeath(t *testing.T) {
	const a, b = 5, 6 // whose parent in the tree of hosts is rank 4
	names := []string{"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"}
	for _, dead := range fewer([]int{0}, []int{4}, []int{7}, []int{0, 4, 7}) {
		for _, n := range []int{1, 100_000, 1_000_000} {
			t.Run(fmt.Sprintf("%v, %d elements", dead, n), func(t *testing.T) {
				hosts, members := joinAs(t, names, patient)
				outlive(t, hosts, form(t, "test", hosts, members), a, b, n, die, dead...)
			})
		}
	}
	t.Run("without membership", func(t *testing.T) {
		hosts, members := joinAs(t, names, func(c *Config) { c.DeadAfter = 3 * time.Second })
		outlive(t, hosts, form(t, "test", hosts, members), a, b, 100_000, found, 0, 4, 7)
	})
}

// TestMessagesOfProcessesOutliveDeaths is that for processes that share memory.
func TestMessagesOfProcessesOutliveDeaths(t *testing.T) {
	for _, dead := range fewer(0, 1, 2, 3) {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			hosts, members := joinProcesses(t, []int{2, 1, 3}, patient)
			outlive(t, hosts, form(t, "test", hosts, members), 4, 5, 100_000, die, dead)
		})
	}
}

func outlive(t *testing.T, hosts []*Host, comms []*Communicator, a, b, n int, dies func(t *testing.T, hosts []*Host, ranks ...int), dead ...int) {
	t.Helper()
	ctx, from, to := within(t), comms[a], comms[b]
	posted, under := make([]int64, n), make([]int64, n)
	before := StartSend(from, b, 1, vectorFrom(a, n))                                        // received after the death
	awaited := StartRecv(to, a, 2, posted)                                                   // sent after it
	underWay, arrives := StartRecv(to, a, 3, under), StartSend(from, b, 3, vectorFrom(a, n)) // at the same time
	var lost []*Message
	for _, rank := range dead {
		lost = append(lost, StartRecv(to, rank, 1, make([]int64, n)), StartSend(from, rank, 1, make([]int64, 100_000)))
	}
	barrier := StartBarrier(from)
	dies(t, hosts, dead...)
	for i, m := range lost {
		_, err := m.Wait(ctx)
		wantMember(t, err, dead[i/2], "")
	}
	if _, err := barrier.Wait(ctx); err == nil {
		t.Error("a collective goes on")
	}
	ended(t, from, to) // its connections are let go
	after := StartSend(from, b, 2, vectorFrom(a, n))
	takes(ctx, t, awaited, posted, a, n)
	takes(ctx, t, underWay, under, a, n)
	late := make([]int64, n)
	takes(ctx, t, StartRecv(to, a, 1, late), late, a, n)
	for _, m := range []*Message{before, arrives, after} {
		if _, err := m.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	for _, rank := range dead {
		wantMember(t, Send(ctx, from, rank, 1, make([]int64, 1)), rank, "")
		_, err := Recv(ctx, to, rank, 1, make([]int64, 1))
		wantMember(t, err, rank, "")
	}
	if got := to.Failed(); !slices.Equal(got, slices.Sorted(slices.Values(dead))) {
		t.Errorf("rank %d knows %v to be dead, want %v", b, got, dead)
	}
	var m *MemberError
	if err := from.Err(); !errors.As(err, &m) || !slices.Contains(dead, m.Rank) {
		t.Errorf("the communicator has ended by %v, want the death of one of %v", err, dead)
	}
}

// TestSurvivorsExchange: survivors exchange messages while others die, one after the other.
func TestSurvivorsExchange(t *testing.T) {
	const messages, dies, diesNext = 1000, 300, 600
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
	comms := form(t, "test", hosts, members)
	ctx := within(t)
	live := []int{1, 2, 4}
	var all sync.WaitGroup
	for i, rank := range live {
		all.Go(func() {
			next, before := live[(i+1)%3], live[(i+2)%3]
			for k := range messages {
				switch {
				case rank == 1 && k == dies:
					die(t, hosts, 0)
				case rank == 1 && k == diesNext:
					die(t, hosts, 3)
				}
				v := []int64{0}
				got := StartRecv(comms[rank], before, 7, v)
				if err := Send(ctx, comms[rank], next, 7, []int64{int64(k)}); err != nil {
					t.Errorf("rank %d, message %d: %v", rank, k, err)
					return
				}
				if _, err := got.Wait(ctx); err != nil || v[0] != int64(k) {
					t.Errorf("rank %d, message %d: %d, %v", rank, k, v[0], err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, rank := range live {
		for _, dead := range []int{0, 3} {
			wantMember(t, Send(ctx, comms[rank], dead, 1, []int64{1}), dead, "")
		}
	}
	smaller := shrink(t, without(comms, 0, 3))
	sum(t, smaller, 100)
	leave(t, smaller)
}

// TestWhatEndsMessages: after a death messages go on until a member revokes the communicator, which
// ends all, or leaves or aborts it, closes its host, or forms it again, which ends its own.
func TestWhatEndsMessages(t *testing.T) {
	for name, by := range map[string]struct {
		end   func(t *testing.T, c *Communicator)
		isAll bool
		want  error
	}{
		"revoke": {func(_ *testing.T, c *Communicator) { c.Revoke() }, true, ErrRevoked},
		"leave":  {func(_ *testing.T, c *Communicator) { _ = c.Leave(context.Background()) }, false, ErrEnded},
		"abort":  {func(_ *testing.T, c *Communicator) { c.Abort("a test") }, false, ErrEnded},
		"close": {func(t *testing.T, c *Communicator) {
			if err := c.host.Close(within(t)); err != nil {
				t.Error(err)
			}
		}, false, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"}, patient)
			comms := form(t, "test", hosts, members)
			die(t, hosts, 1)
			ended(t, without(comms, 1)[0], comms[2], comms[3])
			own := []*Message{StartRecv(comms[2], 3, 1, make([]int64, 1))}
			if !by.isAll { // a sender may see a message as sent that the other member drops when it is revoked
				own = append(own, StartSend(comms[2], 3, 1, make([]int64, 100_000)))
			}
			theirs := StartRecv(comms[3], 0, 1, make([]int64, 1))
			by.end(t, comms[2])
			for _, m := range append(own, StartRecv(comms[2], 3, 1, make([]int64, 1))) {
				if _, err := m.Wait(ctx); !errors.Is(err, by.want) {
					t.Errorf("got %v, want %v", err, by.want)
				}
			}
			if by.isAll {
				if _, err := theirs.Wait(ctx); !errors.Is(err, by.want) {
					t.Errorf("another gets %v, want %v", err, by.want)
				}
				return
			}
			if err := Send(ctx, comms[0], 3, 1, []int64{1}); err != nil {
				t.Error(err)
			}
			if _, err := theirs.Wait(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFormedAgainAfterDeath: a communicator of the same members and name gets no message of the one
// before, whose messages have ended, and what is done with that one does not touch it.
func TestFormedAgainAfterDeath(t *testing.T) {
	ctx := within(t)
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
	front := newFront(t)
	front.lead(members[1].Addr)
	members[1].Addr = front.addr()
	old := form(t, "test", hosts, members)
	die(t, hosts, 1)
	ended(t, old[0], old[2])
	if err := Send(ctx, old[0], 2, 1, []int64{1}); err != nil {
		t.Fatal(err)
	}
	sent := StartSend(old[0], 2, 1, vectorFrom(0, unread))
	waits := StartRecv(old[2], 0, 2, make([]int64, 1))
	hosts[1] = joinOne(t, "h1", patient)
	front.lead(hosts[1].Addr())
	again := form(t, "test", hosts, members)
	if _, err := waits.Wait(ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("a message of the communicator before: %v", err)
	}
	if _, err := sent.Wait(ctx); err != nil && !errors.Is(err, ErrEnded) { // nil: the other has dropped it
		t.Errorf("a message of the communicator before: %v", err)
	}
	v := []int64{0}
	gets := StartRecv(again[2], 0, AnyTag, v)
	old[2].Revoke() // it has its handle still
	_ = old[2].Leave(ctx)
	old[0].Abort("a test")
	if err := Send(ctx, again[0], 2, 1, []int64{2}); err != nil {
		t.Error(err)
	}
	if _, err := gets.Wait(ctx); err != nil || v[0] != 2 {
		t.Errorf("got %d, %v", v[0], err)
	}
	sum(t, again, 10)
	leave(t, again)
}
