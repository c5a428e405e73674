//go:build !race

package rail

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
)

// mallocs returns how often something was allocated while do ran, by anybody.
func mallocs(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.Mallocs - before.Mallocs)
}

// TestAllocations: in the steady state neither a fragment allocates nor a small message, on
// either side. What the hosts do beside that, by the clock, passes in time. Not under the race
// detector, which allocates itself.
func TestAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is kept for later use stays
	for _, w := range []wiring{{same(tcp), false}, {same(tcp, tcp), false}} {
		for _, m := range []struct {
			size, times int
			per         int // at most one allocation in as many messages, or fragments
		}{{8, 500, 8}, {4 << 20, 16, 4}} {
			t.Run(fmt.Sprintf("%v/%d", w, m.size), func(t *testing.T) {
				s := newSite(t, w, Config{})
				s.whole()
				a, b := s.peers[0], s.peers[1]
				ctx := context.Background()
				data, into, answer := make([]byte, m.size), make([]byte, m.size), make([]byte, m.size)
				again, done := make(chan struct{}), make(chan error)
				go func() {
					for range again {
						_, err := b.Recv(ctx, 1, into)
						if err == nil {
							err = b.Send(ctx, 2, into)
						}
						done <- err
					}
				}()
				defer close(again)
				round := func() {
					for range m.times {
						again <- struct{}{}
						err := a.Send(ctx, 1, data)
						if err == nil {
							_, err = a.Recv(ctx, 2, answer)
						}
						if other := <-done; err != nil || other != nil {
							t.Fatal(err, other)
						}
					}
				}
				round()
				before := s.fragments()
				round()
				pieces := int(s.fragments() - before)
				least := -1
				await(t, fmt.Sprintf("a round of %d fragments with few allocations", pieces), func() bool {
					n := mallocs(round)
					if least < 0 || n < least {
						least = n
					}
					return n*m.per <= pieces
				})
				t.Logf("%d allocations for %d messages of %d bytes, in %d fragments", least, 2*m.times, m.size, pieces)
			})
		}
	}
}
