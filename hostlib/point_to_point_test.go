package hostlib_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestSendRecv: messages go between any two members, by tag.
func TestSendRecv(t *testing.T) {
	const n = 5
	hosts, members := join(t, n)
	comms := form(t, hosts, members)
	each(n, func(i int) {
		ctx, c := t.Context(), comms[i]
		var sent []*hostlib.Message
		for to := range n {
			if to != i {
				for tag := range hostlib.Tag(3) {
					v := slices.Repeat([]float32{float32(100*i) + float32(tag)}, 1+int(tag)*20_000)
					sent = append(sent, hostlib.StartSend(c, to, tag, v))
				}
			}
		}
		for from := range n {
			if from == i {
				continue
			}
			for _, tag := range []hostlib.Tag{2, hostlib.AnyTag, 1} {
				v := make([]float32, 50_000)
				s, err := hostlib.Recv(ctx, c, from, tag, v)
				want := tag
				if tag == hostlib.AnyTag {
					want = 0
				}
				if err != nil || s.Tag != want || s.Elements != 1+int(want)*20_000 || v[s.Elements-1] != float32(100*from)+float32(want) {
					t.Errorf("rank %d, from %d, tag %d: %+v, %v", i, from, tag, s, err)
				}
			}
		}
		for _, m := range sent {
			if _, err := m.Wait(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	each(2, func(i int) {
		ctx, c := t.Context(), comms[i]
		if i == 0 {
			for range 2 {
				if err := hostlib.Send(ctx, c, 1, 7, []int32{1, 2, 3}); err != nil {
					t.Error(err)
				}
			}
			return
		}
		if s, err := hostlib.Recv(ctx, c, 0, 7, make([]int32, 2)); !errors.Is(err, hostlib.ErrTruncated) || s.Elements != 2 {
			t.Errorf("a message that is too long: %+v, %v", s, err)
		}
		if _, err := hostlib.Recv(ctx, c, 0, 7, make([]float64, 2)); !errors.Is(err, hostlib.ErrArgument) || !strings.Contains(err.Error(), "int32, for elements of float64") {
			t.Errorf("a message of other elements: %v", err)
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := hostlib.Recv(short, c, 0, 8, make([]int32, 2)); !errors.Is(err, context.Canceled) || !errors.Is(err, hostlib.ErrCanceled) {
			t.Errorf("a receive that is cancelled: %v", err)
		}
	})
	waiting := hostlib.StartRecv(comms[0], 1, 9, make([]int32, 2))
	comms[2].Abort("enough")
	if _, err := waiting.Wait(t.Context()); !errors.Is(err, hostlib.ErrEnded) {
		t.Errorf("a receive when the communicator has ended: %v", err)
	}
}

// TestMessagesNobodyReceives: messages that nobody receives, more of them than a peer takes, do not keep
// collectives from going on, and arrive when they are received.
func TestMessagesNobodyReceives(t *testing.T) {
	comms := group(t, 2)
	const messages = 5000
	sent := make([]*hostlib.Message, messages)
	for k := range sent {
		sent[k] = hostlib.StartSend(comms[0], 1, 1, []int64{int64(k)})
	}
	each(2, func(i int) {
		for range 1000 {
			if _, err := hostlib.Allgather(t.Context(), comms[i], []int64{1}, make([]int64, 2)); err != nil {
				t.Error(err)
			}
		}
	})
	for k := range sent {
		v := []int64{-1}
		if _, err := hostlib.Recv(t.Context(), comms[1], 0, 1, v); err != nil || v[0] != int64(k) {
			t.Fatalf("message %d: %d, %v", k, v[0], err)
		}
	}
	for _, m := range sent {
		if _, err := m.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	leave(t, comms)
}

// TestOneIsAhead: a member has called many more operations than the other, whose messages come
// between those of the one that both are in.
func TestOneIsAhead(t *testing.T) {
	hosts, members := join(t, 2)
	comms := form(t, hosts, members, hostlib.OnHosts(hostlib.Rabenseifner))
	each(2, func(i int) {
		var requests []*hostlib.Request
		for range 5000 {
			v := []int64{1, 2}
			if i == 0 {
				requests = append(requests, hostlib.StartAllreduce(comms[i], reduce.Sum, v, v))
			} else if _, err := hostlib.Allreduce(t.Context(), comms[i], reduce.Sum, v, v); err != nil || v[1] != 4 {
				t.Errorf("%v, %v", v, err)
				comms[i].Abort("a test has failed")
				return
			}
		}
		for _, r := range requests {
			if _, err := r.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	leave(t, comms)
}

// TestSplit: members that give one color have a communicator, in the order of their keys.
func TestSplit(t *testing.T) {
	const n = 6
	hosts, members := join(t, n)
	comms := form(t, hosts, members)
	each(n, func(i int) {
		ctx := t.Context()
		for range 2 {
			color := i % 2
			if i == 5 {
				color = hostlib.Undefined
			}
			c, err := comms[i].Split(ctx, color, -i)
			if err != nil {
				t.Error(err)
				return
			}
			if i == 5 {
				if c != nil {
					t.Errorf("%v", c)
				}
				continue
			}
			want := map[int][]int{0: {4, 2, 0}, 1: {3, 1}}[color]
			out := make([]int64, c.Size())
			if _, err := hostlib.Allgather(ctx, c, []int64{int64(i)}, out); err != nil {
				t.Error(err)
			}
			for k, x := range out {
				if int64(want[k]) != x {
					t.Errorf("color %d: %v, want %v", color, out, want)
				}
			}
			if err := c.Leave(ctx); err != nil {
				t.Error(err)
			}
		}
		d, err := comms[i].Duplicate(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		if d.Rank() != i || d.Size() != n || d.Name() == comms[i].Name() {
			t.Errorf("rank %d of %d, %q", d.Rank(), d.Size(), d.Name())
		}
		if err := d.Leave(ctx); err != nil {
			t.Error(err)
		}
		if _, err := comms[i].Split(ctx, -2, 0); !errors.Is(err, hostlib.ErrArgument) {
			t.Error(err)
		}
	})
	leave(t, comms)
}

// TestSplitDisagreement: members that split and duplicate a communicator in different orders get a
// disagreement, and do not wait for each other.
func TestSplitDisagreement(t *testing.T) {
	hosts, members := join(t, 3, func(c *hostlib.Config) { c.SlowAfter = 20 * time.Millisecond })
	comms := form(t, hosts, members)
	each(3, func(i int) {
		var err error
		if i == 1 {
			_, err = comms[i].Duplicate(t.Context())
		} else {
			_, err = comms[i].Split(t.Context(), 0, i)
		}
		if !errors.Is(err, hostlib.ErrDisagreement) {
			t.Errorf("rank %d: %v", i, err)
		}
	})
}

// TestPersistent: an operation is started again and again on the same buffers, and not while it
// is under way.
func TestPersistent(t *testing.T) {
	hosts, members := join(t, 3)
	comms := form(t, hosts, members)
	each(3, func(i int) {
		v, all := []int64{int64(i)}, make([]int64, 3)
		step := hostlib.Prepare(func() *hostlib.Request { return hostlib.StartAllgather(comms[i], v, all) })
		for round := range int64(100) {
			v[0] = int64(i) + round
			if _, err := step.Run(t.Context()); err != nil || all[2] != 2+round {
				t.Errorf("round %d: %v, %v", round, all, err)
			}
		}
	})
	slow := hostlib.Prepare(func() *hostlib.Request { return hostlib.StartBarrier(comms[0]) })
	r, err := slow.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Start(); !errors.Is(err, hostlib.ErrArgument) {
		t.Errorf("an operation that is under way: %v", err)
	}
	each(3, func(i int) {
		if i > 0 {
			if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
				t.Error(err)
			}
		} else if _, err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
	leave(t, comms)
}

// TestFormedAgain: what a communicator has sent is not taken for a message of its successor, of the
// same name and members.
func TestFormedAgain(t *testing.T) {
	hosts, members := join(t, 3)
	for round := range 20 {
		comms := form(t, hosts, members)
		each(3, func(i int) {
			// Rank 0 sends what nobody receives, and operations that others do not take part in.
			if i == 0 {
				hostlib.StartSend(comms[0], 1, 1, []int64{-1})
				hostlib.StartAllgather(comms[0], []int64{-1}, make([]int64, 3))
				if round%2 == 0 {
					hostlib.StartAllgather(comms[0], make([]int64, 100_000), make([]int64, 300_000))
				}
				comms[0].Abort("again")
			}
			<-comms[i].Done()
		})
		comms = form(t, hosts, members)
		each(3, func(i int) {
			out := make([]int64, 3)
			if _, err := hostlib.Allgather(t.Context(), comms[i], []int64{int64(round)}, out); err != nil || slices.Contains(out, -1) {
				t.Errorf("round %d: %v, %v", round, out, err)
			}
		})
		leave(t, comms)
	}
}

// TestRestartedMember: a host that has started again takes part in a communicator of the same name,
// whatever others still believe of its earlier life.
func TestRestartedMember(t *testing.T) {
	hosts, members := join(t, 3)
	for round := range 5 {
		comms := form(t, hosts, members)
		each(3, func(i int) {
			out := make([]int64, 3)
			for k := range 3 {
				if _, err := hostlib.Allgather(t.Context(), comms[i], []int64{int64(10*round + k)}, out); err != nil || out[2] != int64(10*round+k) {
					t.Errorf("round %d: %v, %v", round, out, err)
				}
				if _, err := hostlib.Alltoall(t.Context(), comms[i], make([]int64, 30_000), make([]int64, 30_000)); err != nil {
					t.Error(err)
				}
			}
		})
		again := 1 + round%2
		if err := hosts[again].Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, c := range comms {
			if <-c.Done(); i != again {
				var m *hostlib.MemberError
				if err := c.Err(); !errors.As(err, &m) || m.Rank != again {
					t.Errorf("rank %d: %v", i, err)
				}
			}
		}
		h, err := hostlib.Join(t.Context(), hostlib.Config{Name: members[again].Host})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		hosts[again], members[again] = h, h.Member()
	}
}
