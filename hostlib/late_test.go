package hostlib

import (
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
