package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
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

// TestOverAt: what a message names by 16 bits of a position.
func TestOverAt(t *testing.T) {
	for _, x := range []struct {
		serial   uint16
		finished uint32
		position uint32
		isOver   bool
	}{
		{serial: 0, finished: 0},
		{serial: 0, finished: 1, position: 0, isOver: true},
		{serial: 5, finished: 5},
		{serial: 0xffff, finished: 3}, // not operation -1, but 65,535
		{serial: 0xffff, finished: 0x10002, position: 0xffff, isOver: true},
		{serial: 0x8000, finished: 0x10000}, // of a member that is far ahead
		{serial: 0xf000, finished: 0x10000, position: 0xf000, isOver: true},
		{serial: 0xefff, finished: 0x10000},
	} {
		if position, isOver := overAt(x.serial, x.finished); isOver != x.isOver || isOver && position != x.position {
			t.Errorf("%+v: %d, %t", x, position, isOver)
		}
	}
}

// TestFarAheadIsNoStray: a member may be more than 32,768 operations ahead of another one, which has
// called none yet. Its message awaits a call.
func TestFarAheadIsNoStray(t *testing.T) {
	const n = 10
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("h", i))
	}
	hosts, members := joinAs(t, names)
	comms := form(t, "c", hosts, members, OnHosts(Linear))
	call := func(root int) {
		t.Helper()
		if _, err := Gather(t.Context(), comms[0], root, []int8{1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for root := 1; root < n-1; root++ {
		for range 4096 { // as many as one that takes none has room for
			call(root)
		}
	}
	call(n - 1)
	last := comms[n-1]
	p, err := last.peer(0)
	if err != nil {
		t.Fatal(err)
	}
	until(within(t), t, "the message is there", func() bool {
		_, has := last.messaging.calls.Probe(p, 0, ^rail.Tag(0))
		return has
	})
	if last.findStrays() {
		<-last.Done()
		t.Error(last.Err())
	}
}

// TestMemoryOfferIsNoStray: where a host's processes are about to share memory, the offer of it has come
// and an operation is over before, it is no message of that operation.
func TestMemoryOfferIsNoStray(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "c", hosts, members)
	sum(t, comms, 1)
	for _, tag := range []rail.Tag{offerTag, takenTag} {
		to, err := comms[0].peer(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := comms[0].messaging.calls.StartSend(to, tag, []byte{0}).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, err := comms[1].peer(0)
		if err != nil {
			t.Fatal(err)
		}
		until(within(t), t, "the message is there", func() bool {
			_, has := comms[1].messaging.calls.Probe(p, tag, ^rail.Tag(0))
			return has
		})
		if comms[1].findStrays() {
			<-comms[1].Done()
			t.Fatal(comms[1].Err())
		}
	}
}
