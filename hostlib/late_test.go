package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
)

// TestLateMember: who waits in an operation learns who has not called it, and the log says it.
func TestLateMember(t *testing.T) {
	said := newJournal()
	var hosts []*Host
	var members []Member
	for i := range 5 {
		h := joinHooked(t, hooks.Hooks{}, fmt.Sprint("h", i), func(c *Config) { c.SlowAfter, c.Log = 20*time.Millisecond, slog.New(said) })
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	comms := form(t, "c", hosts, members)
	for round, start := range []func(c *Communicator) *Request{
		StartBarrier,
		func(c *Communicator) *Request {
			return StartAllgather(c, make([]int16, 7), make([]int16, 35))
		},
	} {
		requests := make([]*Request, 5)
		for i, c := range comms {
			if i != 1 && i != 4 {
				requests[i] = start(c)
			}
		}
		for _, i := range []int{0, 2, 3} {
			until(within(t), t, "it is known who is late", func() bool {
				w, isWaiting := comms[i].Waiting()
				return isWaiting && w.Operation == uint32(round) && slices.Equal(w.Late, []int{1, 4})
			})
		}
		until(within(t), t, "the log says it", func() bool {
			return said.has("an operation waits for members that have not called it", "rank 1 (h1), rank 4 (h4)", []string{"barrier", "allgather"}[round])
		})
		requests[1], requests[4] = start(comms[1]), start(comms[4])
		for _, r := range requests {
			if _, err := r.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if w, isWaiting := comms[0].Waiting(); isWaiting {
			t.Errorf("%+v", w)
		}
	}
	leave(t, comms)
}

// TestFarAhead: an operation by messages that is too far ahead of another one waits for its turn: tags
// have 16 bits of its number.
func TestFarAhead(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "c", hosts, members, OnHosts())
	var requests [2][]*Request
	for range furthest + 3 {
		requests[0] = append(requests[0], StartBarrier(comms[0]))
	}
	m := &comms[0].messaging
	m.mu.Lock()
	under, waiting := len(m.inFlight), len(m.waiting)
	m.mu.Unlock()
	if under != furthest+3 || waiting != 3 {
		t.Errorf("%d operations are under way, and %d of them wait for their turn", under, waiting)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	var u *UnfinishedError
	if _, err := Barrier(short, comms[0]); !errors.As(err, &u) {
		t.Fatal(err)
	}
	requests[0] = append(requests[0], u.Request)
	for range requests[0] {
		requests[1] = append(requests[1], StartBarrier(comms[1]))
	}
	for i := range requests {
		for _, r := range requests[i] {
			if _, err := r.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(m.inFlight)+len(m.order)+len(m.waiting) != 0 {
		t.Errorf("%v, %v and %v are left", m.inFlight, m.order, m.waiting)
	}
	for range furthest + 3 {
		requests[0] = append(requests[0], StartBarrier(comms[0]))
	}
	comms[0].Abort("enough")
	for _, r := range requests[0][furthest+4:] {
		if _, err := r.Wait(t.Context()); !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
	}
}
