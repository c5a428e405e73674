package peering

import (
	"testing"
	"time"
)

// TestListsAreNoAmplifier: a peer that changes its rails again and again brings about no more calls
// than one whose rails do not answer.
func TestListsAreNoAmplifier(t *testing.T) {
	w := newTrial(func(c *Config) { c.KeepAlive, c.DeadAfter = time.Hour, 2*time.Hour })
	w.do("want b 0; answer d1 accept")
	k := w.c.peers["b"].channels[0].conn
	for range 1000 {
		for _, pairs := range []uint8{0xff, 1} {
			w.step(Input{Kind: Paired, ID: k.id, Pairs: pairs})
			w.pass(500 * time.Microsecond)
		}
	}
	// 10, 20, 40, 80, 160 and then 200 ms apart.
	if most := uint64(7 * (6 + 1000/200)); w.c.counters.PathCalls > most {
		t.Errorf("%d calls for paths in a second, want at most %d", w.c.counters.PathCalls, most)
	}
}
